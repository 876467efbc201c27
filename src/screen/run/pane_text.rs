//! The text of the page's subject: a contribution while it is streamed or once it is accepted, the
//! answer, or why there is none. Of a long text only a part is kept, so that a frame wraps little.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::data::RunData;
use crate::log::event::{EventKind, SpanId};
use crate::log::world::{RunState, World};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::scroll::{Scroll, WrappingLines};
use crate::words::measure::{row_count, wrap_within};
use crate::words::patterns::words_of;
use crate::words::question::tally_text;
use crate::words::verdict::refused_text;

/// The text for a call that is still running at the playhead.
pub(super) const NO_PARTIAL_TEXT: &str = "Partial text is not recorded; scrub to the answer.";

/// The text of the subject, and how it is painted.
#[derive(Clone, Debug, PartialEq)]
pub struct PaneText<'a> {
    /// The text, or the part of it in the window.
    pub text: Cow<'a, str>,
    pub state: TextState,
    /// The actions of a contribution; the last one may be incomplete while it is streamed.
    pub actions: Vec<Cow<'a, str>>,
    /// Bytes left out: before the text while it is streamed, else after it.
    pub left_out: usize,
    /// The counts of the run's questions, if it is the outcome of a run that had some.
    pub questions: Option<String>,
}

/// The state of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextState {
    /// It is still being streamed.
    Streaming,
    Complete,
    /// It is a message of the page about the state.
    Note,
    /// It says why something failed, and what to do.
    Problem,
}

impl<'a> PaneText<'a> {
    pub(crate) fn new(
        text: impl Into<Cow<'a, str>>,
        state: TextState,
        actions: Vec<Cow<'a, str>>,
    ) -> Self {
        let (text, left_out) = windowed(text.into(), state == TextState::Streaming);
        Self { text, state, actions, left_out, questions: None }
    }

    pub(crate) fn note(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(text, TextState::Note, Vec::new())
    }

    pub(crate) fn problem(text: String) -> Self {
        Self::new(text, TextState::Problem, Vec::new())
    }

    pub(crate) fn complete(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(text, TextState::Complete, Vec::new())
    }

    /// Rows of the text at this width, at most `most`.
    pub fn rows_within(&self, width: u16, most: u16) -> u16 {
        TextLines::new(&self.text, width).rows_within(most)
    }

    /// Rows reserved for the "… left out" note.
    pub fn left_out_rows(&self, rows: u16) -> u16 {
        u16::from(self.left_out > 0 && rows > 3)
    }
}

/// The part of the speaker's pane for text: padded by a blank on both sides if there is room.
pub fn text_area(pane: Rect) -> Rect {
    match pane.width {
        12.. => Rect { x: pane.x + 1, width: pane.width - 2, ..pane },
        _ => pane,
    }
}

/// Maximum rows of a text that the layout of a page counts.
pub const MAX_ROWS: u16 = 100;

/// Columns before the text of an action: the word, then its number.
pub const ACTION: u16 = 11;

/// Number of rows of each action, at most 4.
pub fn action_rows(width: u16, words: &PaneText<'_>) -> Vec<u16> {
    let width = usize::from(width.saturating_sub(ACTION).max(1));
    let rows = |text: &Cow<'_, str>| wrap_within(text, width, 4).0.len() as u16;
    words.actions.iter().take(6).map(rows).collect()
}

/// Rows of the counts of a run's questions, at most 2.
pub fn question_rows(width: u16, words: &PaneText<'_>) -> Vec<String> {
    let width = usize::from(width.saturating_sub(ACTION).max(1));
    words.questions.as_deref().map_or_else(Vec::new, |text| wrap_within(text, width, 2).0)
}

/// How the rows of the speaker's pane are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShares {
    /// Rows that say how the run ended, if the subject is the outcome.
    pub above: u16,
    pub words: u16,
    /// Rows of the actions, and of the call's attempts and tokens.
    pub below: u16,
}

impl RowShares {
    /// Rows in which all of an outcome is shown at this width.
    pub fn outcome_rows(width: u16, words: &PaneText<'_>) -> u16 {
        let above = if words.state == TextState::Problem { 3 } else { 2 };
        let below = 3 + question_rows(width, words).len() as u16;
        above + words.rows_within(width, MAX_ROWS) + below
    }

    /// Divides the rows of the pane's text area: the text gets at least a third.
    pub fn divide(area: Rect, is_outcome: bool, words: &PaneText<'_>) -> RowShares {
        let rows = area.height;
        // The stop reason, for a stop also how far the run came, and a gap.
        let above = match (is_outcome, words.state) {
            (true, TextState::Problem) => 3.min(rows / 3),
            (true, _) => 2.min(rows / 3),
            _ => 0,
        };
        let actions = action_rows(area.width, words).iter().sum::<u16>();
        // A gap, the attempts (of one call), the questions (of a run), the tokens, the key; a gap before
        // the actions.
        let call = if is_outcome { 3 } else { 4 };
        let wanted = call
            + question_rows(area.width, words).len() as u16
            + if actions > 0 { actions + 1 } else { 0 };
        let left = rows - above;
        // A short text leaves its share to the actions.
        let third = left.div_ceil(3).min(words.rows_within(area.width, left));
        let words = left.saturating_sub(wanted).max(third).min(left);
        RowShares { above, words, below: left - words }
    }
}

/// The text of a pane, and the call that it belongs to.
#[derive(Clone, Debug)]
pub struct TextPane<'a> {
    pub words: PaneText<'a>,
    /// The call behind it, if any.
    pub call: Option<SpanId>,
    /// Whether it is the outcome of the run.
    pub is_outcome: bool,
    /// What the key for the prompt shows.
    pub prompt: &'static str,
    /// The first line and row in view; `None` shows the end of a streamed text, and the start of a
    /// complete one.
    pub scroll: Option<Scroll>,
}

impl TextPane<'_> {
    /// The text with its actions, for the clipboard.
    pub fn to_text(&self) -> String {
        let mut text = self.words.text.to_string();
        for action in &self.words.actions {
            text.push_str("\n- ");
            text.push_str(action);
        }
        text
    }

    /// The scroll position after this many rows, in a pane of this area.
    pub fn scrolled(&self, by: isize, pane: Rect) -> Option<Scroll> {
        let area = text_area(pane);
        let words = &self.words;
        let rows = RowShares::divide(area, self.is_outcome, words).words;
        let rows = rows - words.left_out_rows(rows);
        let coming = words.state == TextState::Streaming;
        let lines = TextLines::new(&words.text, area.width);
        let height = usize::from(rows);
        let end = Scroll::end(&lines, height);
        let start = if coming { end } else { Scroll::default() };
        let at = self.scroll.unwrap_or(start).step(by, &lines, height);
        if at == start || (coming && at == end) { None } else { Some(at) }
    }
}

/// The rows that an action scrolls a text in this pane; `None` if it does not scroll.
pub fn rows_scrolled(action: Action, pane: Option<Rect>) -> Option<isize> {
    let page = pane.map_or(1, |area| isize::from(area.height as i16 / 2)).max(1);
    Some(match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::PageUp => -page,
        Action::PageDown => page,
        Action::Top => isize::MIN / 2,
        Action::Bottom => isize::MAX / 2,
        _ => return None,
    })
}

/// The text of a run without another subject: its outcome, or where to look.
pub fn run_text(run: &RunData, call: Option<SpanId>) -> PaneText<'_> {
    let world = run.shown();
    if world.head.is_none() {
        return PaneText::note("No outcome yet: the run is starting.");
    }
    match world.progress.stage {
        RunState::Closed => outcome_text(run, call),
        _ => {
            let key = key_of(Action::Tools);
            PaneText::note(format!("The agents call their tools: {key} opens the tools."))
        }
    }
}

/// The text of a call that has no verdict yet: what the model writes, as it is.
pub fn call_text(run: &RunData, call: SpanId) -> PaneText<'_> {
    call_text_as(run, call, |text, state| PaneText::new(text, state, Vec::new()))
}

/// The same, of a reply with a form: `readable` makes a text of it. Of a streamed reply it gets the part
/// received so far.
pub fn call_text_as<'a>(
    run: &'a RunData,
    call: SpanId,
    readable: impl FnOnce(&'a str, TextState) -> PaneText<'a>,
) -> PaneText<'a> {
    let world = run.shown();
    let Some(attempt) = world.spans.last_child(call) else {
        return PaneText::note("Waiting for the first attempt.");
    };
    if let Some(live) = run.live(attempt.id).filter(|live| !live.text.is_empty()) {
        return readable(&live.text, TextState::Streaming);
    }
    // Later events must not show: the attempt counts as closed only up to the playhead.
    let closed = attempt.closed_by.and_then(|seq| run.event(seq)).map(|event| &event.kind);
    match closed {
        Some(EventKind::AttemptAnswered(reply)) => readable(&reply.text, TextState::Complete),
        Some(EventKind::AttemptFailed(failed)) => PaneText::problem(failed.text.clone()),
        _ if run.is_scrubbed() => PaneText::note(NO_PARTIAL_TEXT),
        _ => PaneText::note("Waiting for the first token."),
    }
}

/// The outcome of a run: its answer, or why there is none. `call` is the one that prevented it.
pub fn outcome_text(run: &RunData, call: Option<SpanId>) -> PaneText<'_> {
    PaneText { questions: tally_text(&run.shown().questions), ..end_text(run, call) }
}

fn end_text(run: &RunData, call: Option<SpanId>) -> PaneText<'_> {
    let world = run.shown();
    let Some(closed) = &world.progress.closed else {
        return PaneText::note("The run was interrupted: its process ended before it did.");
    };
    if closed.reason.is_success() {
        return match &world.progress.answer {
            Some(answer) => PaneText::complete(answer.as_ref()),
            None => PaneText::note(unanswered(world)),
        };
    }
    let mut text = String::new();
    // What happened first, then what to do.
    let refused = world.stop_refusal().map(|stop| {
        let (lead, detail) = (refused_text(stop), &stop.refused.detail);
        // The whole detail also says where the JSON is wrong, and which setting would accept it.
        let more = if lead.ends_with(&**detail) { String::new() } else { format!("\n{detail}") };
        format!("{lead}.{more}")
    });
    let own = || words_of(world).and_then(|words| words.stop_detail(closed));
    let cause = refused.or_else(|| world.stop_cause().map(|cause| cause.to_string()));
    let cause = cause.or_else(own);
    if let Some(cause) =
        cause.or_else(|| call.and_then(|call| last_failure(run, call))).filter(|it| !it.is_empty())
    {
        text.push_str(&format!("{cause}\n\n"));
    }
    if let Some(advice) = world.stop_advice() {
        text.push_str(advice);
    }
    PaneText::problem(text)
}

/// That a run completed without an answer, and what an observed one lacks.
fn unanswered(world: &World) -> String {
    let Some(observed) = world.observed() else {
        return "The run ended without an answer.".to_owned();
    };
    match observed.spans.is_empty() {
        true => "The program reported nothing of an agent.".to_owned(),
        false => "Its answer is not known: no span has an output.".to_owned(),
    }
}

/// The error text of a call's last attempt, if it failed.
fn last_failure(run: &RunData, call: SpanId) -> Option<String> {
    let attempt = run.shown().spans.last_child(call)?;
    match &run.event(attempt.closed_by?)?.kind {
        EventKind::AttemptFailed(failed) => Some(failed.text.clone()),
        _ => None,
    }
}

/// A text whose lines wrap.
pub struct TextLines<'a> {
    lines: Vec<&'a str>,
    width: usize,
}

impl<'a> TextLines<'a> {
    /// The lines of a text in a window of this width.
    pub fn new(text: &'a str, width: u16) -> Self {
        /// Longest line that is wrapped as one, in bytes; a longer one is continued on the next.
        const LONGEST: usize = 4096;
        let mut lines = Vec::new();
        for line in text.split('\n') {
            let mut rest = line;
            while rest.len() > LONGEST {
                let cut = (0..=LONGEST).rev().find(|cut| rest.is_char_boundary(*cut));
                let (line, after) = rest.split_at(cut.unwrap_or(0));
                lines.push(line);
                rest = after;
            }
            lines.push(rest);
        }
        Self { lines, width: usize::from(width) }
    }

    /// The line with this index.
    pub fn line(&self, at: usize) -> Option<&'a str> {
        self.lines.get(at).copied()
    }
}

impl WrappingLines for TextLines<'_> {
    fn count(&self) -> usize {
        self.lines.len()
    }
    fn rows(&self, line: usize) -> usize {
        self.line(line).map_or(1, |line| row_count(line, self.width))
    }
}

/// Maximum size of the pane's text, in bytes: more than any screen shows, and small enough to wrap for
/// each frame.
const WINDOW: usize = 24 * 1024;
/// Step by which the window of a streamed text moves, in bytes, so that rows keep their place.
const WINDOW_STEP: usize = 4096;

/// Where the last `most` bytes of a text begin: a multiple of [`WINDOW_STEP`], moved to the start of a
/// character.
pub(super) fn tail_start(text: &str, most: usize) -> usize {
    let over = text.len().saturating_sub(most);
    let mut from = over.div_ceil(WINDOW_STEP) * WINDOW_STEP;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    from
}

/// The part of a text that the pane shows, and the bytes left out.
pub(crate) fn windowed(text: Cow<'_, str>, coming: bool) -> (Cow<'_, str>, usize) {
    if text.len() <= WINDOW {
        return (text, 0);
    }
    let (from, to) = if coming {
        (tail_start(&text, WINDOW), text.len())
    } else {
        let mut to = WINDOW;
        while !text.is_char_boundary(to) {
            to -= 1;
        }
        (0, to)
    };
    let left_out = text.len() - (to - from);
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[from..to]),
        Cow::Owned(text) => Cow::Owned(text[from..to].to_owned()),
    };
    (text, left_out)
}
