//! Pane 4 of a run with agents: the session before this run, the messages and call results of this
//! run, and partial replies, indented by depth. It follows the run until the operator scrolls.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::LowerPanes;
use super::calls::current_attempt;
use crate::log::event::{Elapsed, Seq, SpanId};
use crate::log::facts::agents::{HistoryEntry, MemberOutput};
use crate::log::world::agents::{HopKind, LineKind, ResultEnd, TranscriptLine, shown_output};
use crate::screen::DrawContext;
use crate::screen::layout::line;
use crate::screen::list::row_style;
use crate::screen::run::data::RunData;
use crate::screen::run::origin::NextMessage;
use crate::screen::scroll::WrappingLines;
use crate::screen::text::Pen;
use crate::screen::widgets::{empty, none_yet, out_of_view};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::{columns, wrap_within};
use crate::words::patterns::agents::answerer;
use crate::words::patterns::agents::written_text;
use crate::words::question::{asker, asks_text, fallback_said};
use crate::words::readable::{call_text, readable_result};
use crate::words::sentence::{cut_reply, took_ms};
use crate::words::styled::StyleRole;
use crate::words::verdict::stop_lead;

/// Columns before each line: the mark and the time.
pub const TIME: u16 = 9;
/// Columns of indent for each team that a speaker is nested in.
pub const STEP: u16 = 2;
/// Maximum number of levels that are indented.
const MAX_INDENT: u16 = 2;
/// Number of last lines whose names set the width of the column.
const NAMED_LINES: usize = 1_000;
/// Columns for the model of an author, with a blank.
const MODEL: u16 = 15;
/// Columns after the text, in a pane that has room for them.
const AFTER: u16 = 1;
/// Minimum width of a pane with columns after the text.
const MIN_WITH_AFTER: u16 = 40;
/// Minimum width of the text for which models are shown.
const MIN_TEXT: u16 = 26;
/// Maximum bytes of one text that a line uses.
const MAX_BYTES: usize = 16 * 1024;
/// Replaces the answer in the transcript: pane 2 has it.
const SEE_OUTCOME: &str = "answer: see Outcome";
/// Maximum rows of a text, of a tool's call and of its result; the inspector shows all of it.
const MAX_ROWS_OF: [usize; 3] = [400, 3, 4];

/// One line of the transcript, before it is wrapped.
#[derive(Clone, Debug, PartialEq)]
pub struct SpokenLine<'a> {
    /// When it was said; `None`: before this run.
    pub at: Option<Elapsed>,
    /// The author; empty for the operator.
    pub author: &'a str,
    /// Number of teams that the author is nested in, without the outermost.
    pub depth: u16,
    pub kind: TranscriptKind,
    pub text: Cow<'a, str>,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptKind {
    /// The operator's message.
    Message,
    /// An agent's text.
    Said,
    /// A partial reply.
    Streaming,
    /// The text before is not whole.
    Cut,
    /// A call of a tool or an agent.
    Call,
    /// The result of a call.
    Result,
    /// A failed call.
    Failed,
    /// A call that was cancelled with the run.
    Cancelled,
    Handoff,
    /// A handoff or a call that was refused.
    Refused,
    /// An open question to a person.
    Asks,
    /// The operator's next message, queued until the run ends.
    Next,
}

impl SpokenLine<'_> {
    /// The model of its author, in a run with more than one model.
    pub fn model<'p>(&self, run: &'p RunData) -> Option<&'p str> {
        self.at?;
        run.shown().models.for_agent(self.author)
    }
}

impl TranscriptKind {
    /// Columns of the glyph before the text, with its blank.
    pub fn indent(self) -> u16 {
        match self {
            Self::Message | Self::Said | Self::Streaming => 0,
            _ => 2,
        }
    }

    fn max_rows(self) -> usize {
        match self {
            Self::Message | Self::Said | Self::Streaming | Self::Next => MAX_ROWS_OF[0],
            Self::Cut | Self::Call | Self::Handoff | Self::Refused | Self::Asks => MAX_ROWS_OF[1],
            Self::Result | Self::Failed | Self::Cancelled => MAX_ROWS_OF[2],
        }
    }
}

/// The lines of a run's transcript at a width.
pub struct Transcript<'a> {
    run: &'a RunData,
    history: &'a [HistoryEntry],
    lines: usize,
    /// The open model calls that are shown: agent, attempt, depth.
    coming: Vec<(&'a str, SpanId, u16)>,
    /// The line with the answer, which the outcome has.
    answer: Option<usize>,
    /// Lines about the end of the run, once it has ended.
    ending: Vec<(TranscriptKind, String)>,
    /// Columns for the names of authors.
    pub names: u16,
    /// Columns for the models of authors, with a blank; 0 if there is one model, or no room.
    pub models: u16,
    width: u16,
}

impl<'a> Transcript<'a> {
    /// The transcript of the shown world at this width; `None` for a run without agents.
    pub fn of_run(run: &'a RunData, width: u16) -> Option<Self> {
        let world = run.shown();
        let team = world.agents()?;
        let plan = &team.plan;
        let agents = plan.agents.iter().map(|agent| &agent.name);
        let authors = team.lines.iter().rev().take(NAMED_LINES);
        let names = agents.chain(authors.filter_map(|line| line.author.as_ref()));
        let names = names.map(|name| columns(name.as_str())).max();
        let names = u16::try_from(names.unwrap_or(0)).unwrap_or(u16::MAX);
        let names = names.clamp(3, (width / 4).clamp(3, 20));
        let left = width.saturating_sub(TIME + names + 1);
        let models = match world.models.is_empty() {
            false if left >= MODEL + MIN_TEXT => MODEL,
            _ => 0,
        };
        let runs = team.running().map(|row| {
            // An agent that is consulted is indented below the row of its call.
            let within = u16::from(row.kind == HopKind::Consult);
            (&row.to, row.span, row.depth + within)
        });
        let head = plan.coordinator().map(|root| (root, SpanId::RUN, 0));
        let coming = head.into_iter().chain(runs).filter_map(|(who, run, depth)| {
            let attempt = current_attempt(world, run).filter(|_| world.progress.is_live())?;
            let seen = shown_output(attempt.id, &world.spans) == MemberOutput::Text;
            seen.then_some((who.as_str(), attempt.id, depth))
        });
        // A call of a watched program has no attempts.
        let of_watched = run.live_spans().filter_map(|call| {
            let about = &world.observed()?.span(world.spans.get(call)?.parent)?.about;
            Some((about.agent.as_deref().unwrap_or(&about.name), call, 0))
        });
        let coming = coming.chain(of_watched);
        Some(Self {
            run,
            history: world.session().map_or(&[], |session| &session.history),
            lines: team.lines.len(),
            coming: coming.collect(),
            answer: answer_line(run),
            ending: ending(run),
            names,
            models,
            width,
        })
    }

    /// Columns before the text of a line.
    pub fn text_indent(&self, spoken: &SpokenLine<'_>) -> u16 {
        TIME + self.names
            + 1
            + self.models
            + STEP * spoken.depth.min(MAX_INDENT)
            + spoken.kind.indent()
    }

    /// The rows of a line, and whether text was left out.
    pub fn wrapped(&self, spoken: &SpokenLine<'_>) -> (Vec<String>, bool) {
        let after = if self.width >= MIN_WITH_AFTER { AFTER } else { 0 };
        let width = self.width.saturating_sub(self.text_indent(spoken) + after).max(8);
        let cut = spoken.text.len() > MAX_BYTES;
        let text = match cut {
            true => {
                let mut end = MAX_BYTES;
                while !spoken.text.is_char_boundary(end) {
                    end -= 1;
                }
                &spoken.text[..end]
            }
            false => &spoken.text,
        };
        let (rows, more) = wrap_within(text, usize::from(width), spoken.kind.max_rows());
        (rows, more || cut)
    }

    /// The line with this index.
    pub fn line(&self, at: usize) -> Option<SpokenLine<'a>> {
        if let Some(entry) = self.history.get(at) {
            return Some(history_line(entry));
        }
        let at = at - self.history.len();
        if at < self.lines {
            let team = self.run.shown().agents()?;
            let line = team.lines.get(at).map(line_text)?;
            let text = if self.answer == Some(at) { SEE_OUTCOME.into() } else { line.text };
            return Some(SpokenLine { text, ..line });
        }
        let at = at - self.lines;
        if let Some((how, text)) =
            at.checked_sub(self.coming.len()).and_then(|it| self.ending.get(it))
        {
            let (at, text) = (Some(self.run.shown().progress.at), text.clone().into());
            return Some(SpokenLine { at, author: "", depth: 0, kind: *how, text });
        }
        let (who, attempt, depth) = *self.coming.get(at)?;
        let live = self.run.live(attempt);
        let at = live.and_then(|live| live.first_at);
        let opened = self.run.shown().spans.get(attempt).map(|span| span.opened);
        Some(SpokenLine {
            at: at.or(opened),
            author: who,
            depth,
            kind: TranscriptKind::Streaming,
            text: live.map_or("".into(), |live| {
                // Only the end of a long partial reply is new.
                let from = crate::screen::run::pane_text::tail_start(&live.text, MAX_BYTES / 2);
                live.text[from..].into()
            }),
        })
    }

    /// The whole text of a line.
    pub fn text_of_line(&self, at: usize) -> Option<String> {
        let own = at.checked_sub(self.history.len()).filter(|at| Some(*at) == self.answer);
        let answer = own.and_then(|_| self.run.shown().progress.answer.as_deref());
        answer.map(str::to_owned).or_else(|| self.line(at).map(|line| line.text.into_owned()))
    }

    /// The event behind a line, and the call that it belongs to.
    pub fn event_of_line(&self, at: usize) -> Option<(Seq, Option<SpanId>)> {
        let Some(at) = at.checked_sub(self.history.len()) else { return Some((Seq(0), None)) };
        let world = self.run.shown();
        if at < self.lines {
            let line = world.agents()?.lines.get(at)?;
            let call = match line.what {
                LineKind::Said(_)
                | LineKind::Fallback(_)
                | LineKind::Cut { .. }
                | LineKind::Called(_)
                | LineKind::Result { .. } => Some(line.span),
                _ => None,
            };
            return Some((line.seq, call));
        }
        let at = at - self.lines;
        if at >= self.coming.len() {
            let last = self.run.shown_event_count().checked_sub(1)?;
            return self.run.log().get(last).map(|event| (event.seq, None));
        }
        let (_, attempt, _) = self.coming.get(at)?;
        let attempt = world.spans.get(*attempt)?;
        Some((attempt.opened_by, Some(attempt.parent)))
    }
}

impl WrappingLines for Transcript<'_> {
    fn count(&self) -> usize {
        self.history.len() + self.lines + self.coming.len() + self.ending.len()
    }

    fn rows(&self, line: usize) -> usize {
        self.line(line).map_or(1, |spoken| self.wrapped(&spoken).0.len().max(1))
    }
}

/// The line of a run's answer: the last thing that was said, if that is the answer of this run.
fn answer_line(run: &RunData) -> Option<usize> {
    let world = run.shown();
    let closed = world.progress.closed.as_ref()?;
    let answer = world.progress.answer.as_ref().filter(|_| closed.reason.is_success())?;
    let lines = &world.agents()?.lines;
    let last = lines.len().checked_sub(1)?;
    let is_said = |line: &TranscriptLine| matches!(&line.what, LineKind::Said(text) if text.trim() == answer.trim());
    (last.saturating_sub(3)..=last).rev().find(|at| lines.get(*at).is_some_and(is_said))
}

/// Lines about the end of a run, with the partial answer if it was stopped.
fn ending(run: &RunData) -> Vec<(TranscriptKind, String)> {
    let world = run.shown();
    if world.progress.is_live() {
        // One line, so that the text before it stays in view.
        let asks = match world.questions.open().len() {
            0 => None,
            1 => world.questions.oldest().map(|open| asks_text(&asker(open, world), &open.asked)),
            open => Some(format!("{open} questions wait for people")),
        };
        let asks = asks.map(|text| (TranscriptKind::Asks, text));
        let mut lines: Vec<(TranscriptKind, String)> = asks.into_iter().collect();
        let queued = world.progress.queued.iter().map(|text| text.to_string());
        lines.extend(queued.map(|text| (TranscriptKind::Next, text)));
        if let NextMessage::Waiting(text) = run.next_message() {
            lines.push((TranscriptKind::Next, text.to_string()));
        }
        return lines;
    }
    if let NextMessage::Waiting(text) = run.next_message() {
        return vec![(TranscriptKind::Next, text.to_string())];
    }
    let Some((team, closed)) = world.agents().zip(world.progress.closed.as_ref()) else {
        return Vec::new();
    };
    let took = took_ms(closed.elapsed_ms);
    if closed.reason.is_success() {
        let answered = world.progress.answer.as_ref();
        let by = answered.and(answerer(team)).map(|by| format!(" by {by}"));
        let mut lines = Vec::new();
        if !team.missing.is_empty() {
            let names: Vec<&str> = team.missing.iter().map(|it| &*it.name).collect();
            lines.push((TranscriptKind::Failed, format!("the answer lacks {}", names.join(", "))));
        }
        if !team.written_calls.is_empty() {
            let names: Vec<&str> = team.written_calls.iter().map(|(who, _)| who.as_str()).collect();
            let text = format!("a tool call written as text is the answer of {}", names.join(", "));
            lines.push((TranscriptKind::Failed, text));
        }
        let ended = if answered.is_some() { "answered" } else { "ended" };
        let text = format!("{ended}{} after {took}", by.unwrap_or_default());
        lines.push((TranscriptKind::Result, text));
        return lines;
    }
    let mut lines = Vec::new();
    if let Some((text, by)) = &team.partial {
        lines.push((TranscriptKind::Call, format!("best partial answer ({by}): {text}")));
    }
    let mut text = format!("{} after {took}", stop_lead(world, closed));
    if let Some(cause) = world.stop_cause() {
        text.push_str(&format!(": {}", cause.trim_end_matches('.')));
    }
    if let Some(advice) = world.stop_advice() {
        text.push_str(&format!(". {advice}"));
    }
    lines.push((TranscriptKind::Failed, text));
    lines
}

fn line_text(line: &TranscriptLine) -> SpokenLine<'_> {
    let (how, text): (TranscriptKind, Cow<'_, str>) = match &line.what {
        LineKind::Message(text) => (TranscriptKind::Message, (&**text).into()),
        LineKind::Said(text) => (TranscriptKind::Said, (&**text).into()),
        LineKind::Fallback(text) => (TranscriptKind::Cut, fallback_said(text).into()),
        LineKind::Cut { end, calls } => (TranscriptKind::Cut, cut_reply(*end, *calls).into()),
        LineKind::Called(call) => (TranscriptKind::Call, call_text(call).into()),
        LineKind::Result { of, text, end } => match end {
            ResultEnd::Answered => (TranscriptKind::Result, result_text(of, text)),
            ResultEnd::Unanswered => {
                let text = fallback_said(&readable_result(text.trim()));
                (TranscriptKind::Cut, format!("{of}: {text}").into())
            }
            ResultEnd::Failed => (TranscriptKind::Failed, result_text(of, text)),
            ResultEnd::Denied => (TranscriptKind::Refused, result_text(of, text)),
            ResultEnd::Cancelled => (TranscriptKind::Cancelled, (&**of).into()),
        },
        LineKind::HandedOver { to, message } => match message {
            Some(message) => (TranscriptKind::Handoff, format!("{to}: {message}").into()),
            None => (TranscriptKind::Handoff, to.as_str().into()),
        },
        LineKind::Refused { to, why } => {
            (TranscriptKind::Refused, format!("handoff to {to} refused: {why}").into())
        }
        LineKind::NotCalled { tool, text } => {
            (TranscriptKind::Refused, format!("{tool}: {text}").into())
        }
        LineKind::Written { told: true } => (TranscriptKind::Refused, written_text(true).into()),
        LineKind::Written { told: false } => (TranscriptKind::Cut, written_text(false).into()),
    };
    let author = line.author.as_ref().map_or("", |author| author.as_str());
    SpokenLine { at: Some(line.at), author, depth: line.depth, kind: how, text }
}

/// The result of a call; the name alone if the result is empty.
fn result_text<'a>(of: &'a str, text: &str) -> Cow<'a, str> {
    match text.trim() {
        "" => of.into(),
        text => format!("{of}: {}", readable_result(text)).into(),
    }
}

/// A line of the session before this run.
fn history_line(entry: &HistoryEntry) -> SpokenLine<'_> {
    let of = |author, how, text| SpokenLine { at: None, author, depth: 0, kind: how, text };
    match entry {
        HistoryEntry::Input { from: None, text, .. } => {
            of("", TranscriptKind::Message, (&**text).into())
        }
        HistoryEntry::Input { from: Some(from), to, text } => {
            of(from.as_str(), TranscriptKind::Handoff, format!("{to}: {text}").into())
        }
        HistoryEntry::Reply { by, text, calls, .. } if text.is_empty() => {
            let texts: Vec<String> = calls.iter().map(call_text).collect();
            of(by.as_str(), TranscriptKind::Call, texts.join(", ").into())
        }
        HistoryEntry::Reply { by, text, end, .. } => {
            let text = match end.mark() {
                None => (&**text).into(),
                Some(mark) => format!("{} ({mark})", text.trim_end()).into(),
            };
            of(by.as_str(), TranscriptKind::Said, text)
        }
        HistoryEntry::Result { by, call, text } => {
            of(by.as_str(), TranscriptKind::Result, result_text(&call.name, text))
        }
    }
}

pub(crate) fn render(
    view: &LowerPanes,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let Some(lines) = Transcript::of_run(data, area.width) else { return };
    let height = usize::from(area.height);
    if lines.count() == 0 {
        let comes = "what the agents say is listed here, from the first turn on";
        let text = none_yet("messages", comes, &data.shown().progress);
        return empty(cx, area, &text, buf);
    }
    let (top, selected) = view.transcript_position(&lines, height);
    let mut row = 0;
    let mut at = top.line;
    while row < height
        && let Some(spoken) = lines.line(at)
    {
        let skip = if at == top.line { top.row } else { 0 };
        let (parts, cut) = lines.wrapped(&spoken);
        let last = parts.len().saturating_sub(1);
        for (nth, part) in parts.iter().enumerate().skip(skip) {
            if row == height {
                break;
            }
            let here = line(area, row as u16);
            row_style(cx, here, selected == Some(at), buf);
            let mut pen = Pen::new(buf, here, cx.glyphs);
            if nth == 0 {
                let mark = if selected == Some(at) { Glyph::Selected } else { Glyph::NotYet };
                let mark = (mark == Glyph::Selected).then_some(mark);
                head(cx, &mut pen, &spoken, mark, (lines.names, lines.models), data);
            }
            pen.advance_to(here.x + lines.text_indent(&spoken)).put(part, style(cx, &spoken));
            if nth == last && cut {
                pen.glyph(Glyph::Ellipsis, cx.theme.style(StyleRole::Dim));
            }
            if nth == last && spoken.kind == TranscriptKind::Streaming {
                pen.glyph(Glyph::Cursor, cx.theme.style(StyleRole::Cursor));
            }
            row += 1;
        }
        at += 1;
    }
    out_of_view(cx, area, top, &lines, buf);
}

/// Draws a line's time and author, and a glyph for its kind if it is not a message.
fn head(
    cx: &DrawContext,
    pen: &mut Pen,
    spoken: &SpokenLine<'_>,
    mark: Option<Glyph>,
    (names, models): (u16, u16),
    data: &RunData,
) {
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let start = pen.x();
    match mark {
        Some(glyph) => pen.glyph(glyph, theme.style(StyleRole::Key)),
        None => pen.space(1),
    };
    let at = match (spoken.kind, spoken.at) {
        (TranscriptKind::Next, _) => "next".to_owned(),
        (_, None) => "before".to_owned(),
        (_, Some(at)) => format::time_in_run(data.shown().progress.run_time(at)),
    };
    pen.put(&at, dim).advance_to(start + TIME);
    let (author, role) = match (spoken.author, spoken.kind, spoken.at) {
        ("", TranscriptKind::Message, None) => ("you", StyleRole::Dim),
        ("", TranscriptKind::Message, Some(_)) => ("you", StyleRole::Strong),
        ("", TranscriptKind::Next, _) => ("you", StyleRole::Notice),
        ("", ..) => ("run", StyleRole::Dim),
        (author, _, None) => (author, StyleRole::Dim),
        (author, TranscriptKind::Streaming, _) => (author, StyleRole::Running),
        (author, ..) => (author, StyleRole::Text),
    };
    pen.name(author, names, theme.style(role)).space(1);
    if models > 0 {
        // Only replies have a model, not messages to an agent.
        let says = matches!(
            spoken.kind,
            TranscriptKind::Said
                | TranscriptKind::Streaming
                | TranscriptKind::Call
                | TranscriptKind::Handoff
        );
        let model = spoken.model(data).filter(|_| says).unwrap_or_default();
        super::put_model(cx, pen, model, models - 1, dim);
        pen.space(1);
    }
    pen.space(STEP * spoken.depth.min(MAX_INDENT));
    let (glyph, role) = match spoken.kind {
        TranscriptKind::Message | TranscriptKind::Said | TranscriptKind::Streaming => return,
        TranscriptKind::Cut => (Glyph::Alert, StyleRole::Retry),
        TranscriptKind::Call => (Glyph::Within, StyleRole::Dim),
        TranscriptKind::Result => (Glyph::Done, StyleRole::Done),
        TranscriptKind::Failed => (Glyph::Failed, StyleRole::Failed),
        TranscriptKind::Cancelled => (Glyph::Off, StyleRole::Off),
        TranscriptKind::Handoff => (Glyph::Arrow, StyleRole::Strong),
        TranscriptKind::Refused => (Glyph::Refused, StyleRole::Refused),
        TranscriptKind::Asks => {
            pen.put_within(cx.glyphs.symbol(Glyph::NeedsYou), 2, theme.waiting_style());
            return;
        }
        TranscriptKind::Next => (Glyph::Waiting, StyleRole::NeedsYou),
    };
    let role = if spoken.at.is_none() { StyleRole::Dim } else { role };
    pen.put_within(cx.glyphs.symbol(glyph), 2, theme.style(role));
}

fn style(cx: &DrawContext, spoken: &SpokenLine<'_>) -> Style {
    cx.theme.style(match (spoken.at, spoken.kind) {
        (None, _) => StyleRole::Dim,
        (_, TranscriptKind::Message) => StyleRole::Strong,
        (_, TranscriptKind::Said | TranscriptKind::Streaming | TranscriptKind::Handoff) => {
            StyleRole::Text
        }
        (_, TranscriptKind::Call | TranscriptKind::Result) => StyleRole::Dim,
        (_, TranscriptKind::Cut) => StyleRole::Retry,
        (_, TranscriptKind::Failed) => StyleRole::Failed,
        (_, TranscriptKind::Cancelled) => StyleRole::Off,
        (_, TranscriptKind::Refused) => StyleRole::Refused,
        (_, TranscriptKind::Asks) => StyleRole::Strong,
        (_, TranscriptKind::Next) => StyleRole::Notice,
    })
}
