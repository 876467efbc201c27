//! The text of the page's subject: a contribution while it is streamed or once it is accepted, the
//! answer, or why there is none.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::inspect::WrappedDocument;
use super::scroll::{Scroll, WrappingLines};
use super::speech;
use super::subject::Subject;
use super::text_window::windowed;
use super::{Pane, RunPage};
use crate::event::{EventKind, SpanId};
use crate::narrate::measure::{row_count, wrap_within};
use crate::pattern::collaboration::projection::SeatState;
use crate::pattern::orchestrator::projection::Orchestrator;

/// The text of the subject, and how it is painted.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectText<'a> {
    /// The text, or the part of it in the window.
    pub text: Cow<'a, str>,
    /// How it is painted.
    pub state: TextState,
    /// The actions of a contribution; the last one may be incomplete while it is streamed.
    pub actions: Vec<Cow<'a, str>>,
    /// Bytes left out: before the text while it is streamed, else after it.
    pub left_out: usize,
}

/// The state of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextState {
    /// It is still being streamed.
    Streaming,
    /// It is complete.
    Complete,
    /// It is a message of the page about the state.
    Note,
    /// It says why something failed, and what to do.
    Problem,
}

impl<'a> SubjectText<'a> {
    fn new(text: impl Into<Cow<'a, str>>, state: TextState, actions: Vec<Cow<'a, str>>) -> Self {
        let (text, left_out) = windowed(text.into(), state == TextState::Streaming);
        Self { text, state, actions, left_out }
    }

    fn note(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(text, TextState::Note, Vec::new())
    }

    fn problem(text: String) -> Self {
        Self::new(text, TextState::Problem, Vec::new())
    }

    fn complete(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(text, TextState::Complete, Vec::new())
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

/// Columns before the text of an action: the word, then its number.
pub const ACTION: u16 = 11;

/// Number of rows of each action, at most 3.
pub fn action_rows(width: u16, words: &SubjectText<'_>) -> Vec<u16> {
    let width = usize::from(width.saturating_sub(ACTION).max(1));
    let rows = |text: &Cow<'_, str>| wrap_within(text, width, 3).0.len() as u16;
    words.actions.iter().take(3).map(rows).collect()
}

/// How the rows of the speaker's pane are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShares {
    /// Rows that say how the run ended, if the subject is the outcome.
    pub above: u16,
    /// Rows of the text.
    pub words: u16,
    /// Rows of the actions, and of the call's attempts and tokens.
    pub below: u16,
}

impl RowShares {
    /// Divides the rows of the pane's text area: the text gets at least a third.
    pub fn divide(area: Rect, subject: Subject, words: &SubjectText<'_>) -> RowShares {
        let rows = area.height;
        // The stop reason, for a stop also how far the run came, and a gap.
        let above = match (subject, words.state) {
            (Subject::Outcome, TextState::Problem) => 3.min(rows / 3),
            (Subject::Outcome, _) => 2.min(rows / 3),
            _ => 0,
        };
        let actions = action_rows(area.width, words).iter().sum::<u16>();
        // A gap, the attempts (of one call), the tokens, the key; a gap before the actions.
        let asked = if subject == Subject::Outcome { 3 } else { 4 };
        let wanted = asked + if actions > 0 { actions + 1 } else { 0 };
        let left = rows - above;
        let words = left.saturating_sub(wanted).max(left.div_ceil(3)).min(left);
        RowShares { above, words, below: left - words }
    }
}

impl RunPage {
    /// The text of the subject in the world that is shown.
    pub fn subject_text(&self) -> SubjectText<'_> {
        let world = self.shown();
        let table = match (world.collaboration(), world.orchestrator()) {
            (Some(table), _) => table,
            (None, Some(orchestrator)) => return self.orchestrator_text(orchestrator),
            (None, None) if world.head.is_some() => {
                return match self.subject() {
                    Subject::Outcome => self.outcome_text(),
                    _ => SubjectText::note("The agents call their tools: t opens the tools."),
                };
            }
            (None, None) => return SubjectText::note("The run is starting."),
        };
        match self.subject() {
            Subject::Plan | Subject::Task(_) | Subject::Join => SubjectText::note(""),
            Subject::None => SubjectText::note("No call has been made yet."),
            Subject::Outcome => self.outcome_text(),
            Subject::Finalize => match (&world.answer, table.finalize) {
                (Some(answer), _) => SubjectText::complete(answer.as_ref()),
                (None, Some(call)) => self.call_text(call),
                (None, None) => SubjectText::note("The brief has not been requested yet."),
            },
            Subject::Seat { round, seat } => {
                let Some(seat) = table.round(round).and_then(|round| round.seats.get(seat)) else {
                    return SubjectText::note("No such seat in this round.");
                };
                if let Some(taken) = &seat.contribution {
                    let actions = taken.actions.iter().map(|said| said.as_ref().into());
                    return SubjectText::new(
                        taken.summary.as_ref(),
                        TextState::Complete,
                        actions.collect(),
                    );
                }
                if let Some(reason) = &seat.refused {
                    let mut text = format!("Refused by the gateway: {}.", reason.phrase());
                    if let Some(advice) = reason.advice() {
                        text.push_str(&format!("\n{advice}"));
                    }
                    return SubjectText::problem(text);
                }
                match (seat.state, seat.call) {
                    (SeatState::Off, _) => SubjectText::note(match world.collaboration() {
                        Some(table) if table.plan.role_flags.contains_key(&seat.role) => {
                            "Its flag is off, so its seat is empty in this round. f opens the flags."
                        }
                        _ => "The run stops before its turn.",
                    }),
                    (SeatState::Cancelled, _) => {
                        SubjectText::note("The run was stopped during this call.")
                    }
                    (_, Some(call)) => self.call_text(call),
                    (_, None) if !world.is_live() => {
                        SubjectText::note("The run ended before this seat was called.")
                    }
                    (_, None) => SubjectText::note("Waiting for its turn."),
                }
            }
        }
    }

    /// The text of an orchestrator's subject; empty for rows that have a document instead.
    fn orchestrator_text(&self, orchestrator: &Orchestrator) -> SubjectText<'_> {
        let world = self.shown();
        match (self.subject(), &world.answer, orchestrator.finalize) {
            (Subject::Outcome, ..) => self.outcome_text(),
            (Subject::Finalize, Some(answer), _) => SubjectText::complete(answer.as_ref()),
            (Subject::Finalize, None, Some(call)) => self.call_text(call),
            (Subject::Finalize, None, None) => {
                SubjectText::note("The report is waiting for the results.")
            }
            (Subject::None, ..) => SubjectText::note("No call has been made yet."),
            _ => SubjectText::note(""),
        }
    }

    /// The text of a call that has no verdict yet.
    fn call_text(&self, call: SpanId) -> SubjectText<'_> {
        let world = self.shown();
        let Some(attempt) = world.spans.last_child(call) else {
            return SubjectText::note("Waiting for the first attempt.");
        };
        if let Some(live) = self.live(attempt.id).filter(|live| !live.text.is_empty()) {
            return readable_reply(&live.text, TextState::Streaming);
        }
        // Later events must not show: the attempt counts as closed only up to the playhead.
        let closed = attempt.closed_by.and_then(|seq| self.event(seq)).map(|event| &event.kind);
        match closed {
            Some(EventKind::AttemptAnswered(reply)) => {
                readable_reply(&reply.text, TextState::Complete)
            }
            Some(EventKind::AttemptFailed(failed)) => SubjectText::problem(failed.text.clone()),
            _ if self.is_scrubbed() => {
                SubjectText::note("Partial text is not recorded; scrub to the answer.")
            }
            _ => SubjectText::note("Waiting for the first token."),
        }
    }

    fn outcome_text(&self) -> SubjectText<'_> {
        let world = self.shown();
        let Some(closed) = &world.closed else { return SubjectText::note("The run has ended.") };
        if closed.reason.is_success() {
            return match &world.answer {
                Some(answer) => SubjectText::complete(answer.as_ref()),
                None => SubjectText::note("The run ended without an answer."),
            };
        }
        let mut text = String::new();
        // What happened first, then what to do.
        let refused = world.stop_refusal().map(|refused| format!("Refused: {}.", refused.detail));
        let cause = refused.or_else(|| world.stop_cause().map(|cause| cause.to_string()));
        if let Some(cause) = cause.or_else(|| self.last_failure()).filter(|it| !it.is_empty()) {
            text.push_str(&format!("{cause}\n\n"));
        }
        if let Some(advice) = world.stop_advice() {
            text.push_str(advice);
        }
        SubjectText::problem(text)
    }

    /// The error text of the subject's last attempt, if it failed.
    fn last_failure(&self) -> Option<String> {
        let world = self.shown();
        let attempt = world.spans.last_child(self.subject_call()?)?;
        match &self.event(attempt.closed_by?)?.kind {
            EventKind::AttemptFailed(failed) => Some(failed.text.clone()),
            _ => None,
        }
    }

    /// The first line and row of the text in view; `None` shows the end of a streamed text, and the
    /// start of a complete one.
    pub fn text_scroll(&self) -> Option<Scroll> {
        self.text_scroll
    }

    /// Scrolls the text of the subject.
    pub(super) fn scroll_text(&mut self, by: isize, areas: &super::Areas) {
        let Some(area) = areas.pane(Pane::Second).map(text_area) else { return };
        if matches!(self.subject(), Subject::Plan | Subject::Task(_) | Subject::Join) {
            // The document as of its last event: a countdown in it must not move lines.
            let document = self.task_document(self.shown().at);
            let lines = WrappedDocument { document: &document, width: area.width };
            let at =
                self.text_scroll.unwrap_or_default().step(by, &lines, usize::from(area.height));
            self.text_scroll = (at != Scroll::default()).then_some(at);
            return;
        }
        let words = self.subject_text();
        let rows = RowShares::divide(area, self.subject(), &words).words;
        let rows = rows - words.left_out_rows(rows);
        let coming = words.state == TextState::Streaming;
        let lines = TextLines::new(&words.text, area.width);
        let height = usize::from(rows);
        let end = Scroll::end(&lines, height);
        let start = if coming { end } else { Scroll::default() };
        let at = self.text_scroll.unwrap_or(start).step(by, &lines, height);
        self.text_scroll = if at == start || (coming && at == end) { None } else { Some(at) };
    }
}

/// A reply as readable text: the summary, if it is a contribution.
fn readable_reply(text: &str, how: TextState) -> SubjectText<'_> {
    match speech::parse_partial(text) {
        Some(speech) if speech.summary.is_some() => {
            let actions = speech.actions.into_iter().map(Cow::Owned).collect();
            SubjectText::new(speech.summary.unwrap_or_default(), how, actions)
        }
        _ => SubjectText::new(text, how, Vec::new()),
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
