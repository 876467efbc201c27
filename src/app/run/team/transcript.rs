//! The transcript of a team as lines that wrap: the session before this run, this run, and partial
//! replies.

use std::borrow::Cow;

use serde_json::Value;

use super::super::scroll::Lines;
use super::super::told::took_ms;
use super::super::{Next, RunPage};
use super::tree::speaking;
use crate::app::measure::{columns, wrap_within};
use crate::event::kind::{Entry, Inner, ToolCall};
use crate::event::world::team::{HopKind, Line, LineKind, shown};
use crate::event::{Elapsed, Seq, SpanId, StopReason};
use crate::scenario::integer::changed;
use crate::scenario::name::AgentName;

/// Columns before each line: the mark and the time.
pub const TIME: u16 = 9;
/// Columns of indent for each team that a speaker is nested in.
pub const STEP: u16 = 2;
/// Columns for the model of an author, with a blank.
const MODEL: u16 = 15;
/// Fewest columns of text for which models are shown.
const LEAST_TEXT: u16 = 26;
/// Most bytes of one text that are used for a line.
const LOOKED_AT: usize = 16 * 1024;
/// Most rows of a text, of a tool's call and of its result; the inspector shows all of it.
const MOST: [usize; 3] = [400, 3, 4];

/// One line of the transcript, before it is wrapped.
#[derive(Clone, Debug, PartialEq)]
pub struct Spoken<'a> {
    /// When it was said; `None`: before this run.
    pub at: Option<Elapsed>,
    /// The author; empty for the operator.
    pub author: &'a str,
    /// Number of teams that the author is nested in, without the outermost.
    pub depth: u16,
    /// What kind of line it is.
    pub how: How,
    /// The text.
    pub text: Cow<'a, str>,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The operator's message.
    Message,
    /// An agent's text.
    Said,
    /// A partial reply.
    Coming,
    /// A call of a tool or an agent.
    Called,
    /// The result of a call.
    Good,
    /// A failed call.
    Bad,
    /// A call that was cancelled with the run.
    Cancelled,
    /// A handoff.
    Over,
    /// A handoff or a call that was refused.
    Refused,
    /// The operator's next message, queued until the run ends.
    Next,
}

impl Spoken<'_> {
    /// The model of its author, in a run with more than one model.
    pub fn model<'p>(&self, page: &'p RunPage) -> Option<&'p str> {
        self.at?;
        page.shown().models.of_agent(self.author)
    }
}

impl How {
    /// Columns of the glyph before the text, with its blank.
    pub fn indent(self) -> u16 {
        match self {
            Self::Message | Self::Said | Self::Coming => 0,
            _ => 2,
        }
    }

    fn most(self) -> usize {
        match self {
            Self::Message | Self::Said | Self::Coming | Self::Next => MOST[0],
            Self::Called | Self::Over | Self::Refused => MOST[1],
            Self::Good | Self::Bad | Self::Cancelled => MOST[2],
        }
    }
}

/// A tool call as readable text: its name and its arguments.
pub fn call_told(call: &ToolCall) -> String {
    match serde_json::from_str::<Value>(&call.arguments) {
        // A number that JSON would change is shown as the model wrote it.
        Ok(args) if changed(&call.arguments, &args).is_some() => {
            format!("{}({})", call.name, call.arguments)
        }
        Ok(Value::Object(args)) if args.len() == 1 && args.get("request").is_some() => {
            format!("{}: {}", call.name, bare(&args["request"]))
        }
        Ok(Value::Object(args)) => {
            let args: Vec<String> =
                args.iter().map(|(name, value)| format!("{name}: {}", bare(value))).collect();
            format!("{}({})", call.name, args.join(", "))
        }
        _ => format!("{}({})", call.name, call.arguments),
    }
}

fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The lines of a run's transcript at a width.
pub struct Transcript<'a> {
    page: &'a RunPage,
    before: &'a [Entry],
    lines: usize,
    /// The open model calls that are shown: agent, attempt, depth.
    coming: Vec<(&'a AgentName, SpanId, u16)>,
    /// Lines about the end of the run, once it has ended.
    ending: Vec<(How, String)>,
    /// Columns for the names of authors.
    pub names: u16,
    /// Columns for the models of authors, with a blank; 0 if there is one model, or no room.
    pub models: u16,
    width: u16,
}

impl<'a> Transcript<'a> {
    fn new(page: &'a RunPage, width: u16) -> Option<Self> {
        let world = page.shown();
        let (team, plan) = world.team()?;
        let names = plan.agents.iter().map(|agent| columns(agent.name.as_str())).max();
        let names = u16::try_from(names.unwrap_or(0)).unwrap_or(u16::MAX);
        let names = names.clamp(3, (width / 4).clamp(3, 20));
        let left = width.saturating_sub(TIME + names + 1);
        let models = match world.models.is_empty() {
            false if left >= MODEL + LEAST_TEXT => MODEL,
            _ => 0,
        };
        let runs = team.running().map(|row| {
            // An agent that is consulted is indented below the row of its call.
            let within = u16::from(row.kind == HopKind::Consult);
            (&row.to, row.span, row.depth + within)
        });
        let head = (plan.swarm(&plan.root).is_none()).then_some((&plan.root, SpanId::RUN, 0));
        let coming = head.into_iter().chain(runs).filter_map(|(who, run, depth)| {
            let attempt = speaking(world, run).filter(|_| world.is_live())?;
            let seen = shown(attempt.id, &world.spans) == Inner::Text;
            seen.then_some((who, attempt.id, depth))
        });
        Some(Self {
            page,
            before: &plan.session.history,
            lines: team.lines.len(),
            coming: coming.collect(),
            ending: ending(page),
            names,
            models,
            width,
        })
    }

    /// Columns before the text of a line.
    pub fn left(&self, spoken: &Spoken<'_>) -> u16 {
        TIME + self.names + 1 + self.models + STEP * spoken.depth.min(6) + spoken.how.indent()
    }

    /// The rows of a line, and whether text was left out.
    pub fn wrapped(&self, spoken: &Spoken<'_>) -> (Vec<String>, bool) {
        let width = self.width.saturating_sub(self.left(spoken)).max(8);
        let cut = spoken.text.len() > LOOKED_AT;
        let text = match cut {
            true => {
                let mut end = LOOKED_AT;
                while !spoken.text.is_char_boundary(end) {
                    end -= 1;
                }
                &spoken.text[..end]
            }
            false => &spoken.text,
        };
        let (rows, more) = wrap_within(text, usize::from(width), spoken.how.most());
        (rows, more || cut)
    }

    /// The line with this index.
    pub fn line(&self, at: usize) -> Option<Spoken<'a>> {
        if let Some(entry) = self.before.get(at) {
            return Some(remembered(entry));
        }
        let at = at - self.before.len();
        if at < self.lines {
            let (team, _) = self.page.shown().team()?;
            return team.lines.get(at).map(told);
        }
        let at = at - self.lines;
        if let Some((how, text)) =
            at.checked_sub(self.coming.len()).and_then(|it| self.ending.get(it))
        {
            let (at, text) = (Some(self.page.shown().at), text.clone().into());
            return Some(Spoken { at, author: "", depth: 0, how: *how, text });
        }
        let (who, attempt, depth) = *self.coming.get(at)?;
        let live = self.page.live(attempt);
        let at = live.and_then(|live| live.first_at);
        let opened = self.page.shown().spans.get(attempt).map(|span| span.opened);
        Some(Spoken {
            at: at.or(opened),
            author: who.as_str(),
            depth,
            how: How::Coming,
            text: live.map_or("".into(), |live| {
                // Of a long partial reply, the end is what is new.
                let from = super::super::words::tail_from(&live.text, LOOKED_AT / 2);
                live.text[from..].into()
            }),
        })
    }

    /// The event behind a line, and the call that it belongs to.
    pub(super) fn fact(&self, at: usize) -> Option<(Seq, Option<SpanId>)> {
        let Some(at) = at.checked_sub(self.before.len()) else { return Some((Seq(0), None)) };
        let world = self.page.shown();
        if at < self.lines {
            let line = world.team()?.0.lines.get(at)?;
            let call = match line.what {
                LineKind::Said(_) | LineKind::Called(_) | LineKind::Result { .. } => {
                    Some(line.span)
                }
                _ => None,
            };
            return Some((line.seq, call));
        }
        let at = at - self.lines;
        if at >= self.coming.len() {
            let last = self.page.shown_facts().checked_sub(1)?;
            return self.page.log().get(last).map(|event| (event.seq, None));
        }
        let (_, attempt, _) = self.coming.get(at)?;
        let attempt = world.spans.get(*attempt)?;
        Some((attempt.opened_by, Some(attempt.parent)))
    }
}

impl Lines for Transcript<'_> {
    fn count(&self) -> usize {
        self.before.len() + self.lines + self.coming.len() + self.ending.len()
    }

    fn rows(&self, line: usize) -> usize {
        self.line(line).map_or(1, |spoken| self.wrapped(&spoken).0.len().max(1))
    }
}

/// Lines about the end of a run, with the partial answer if it was stopped.
fn ending(page: &RunPage) -> Vec<(How, String)> {
    let world = page.shown();
    if let Next::Waiting(text) = page.next_message() {
        return vec![(How::Next, text.to_string())];
    }
    let Some(((team, _), closed)) = world.team().zip(world.closed.as_ref()) else {
        return Vec::new();
    };
    let took = took_ms(closed.elapsed_ms);
    if closed.reason.is_success() {
        let by = team.answered_by.as_ref().map(|by| format!(" by {by}"));
        let mut lines = Vec::new();
        if !team.missing.is_empty() {
            let names: Vec<&str> = team.missing.iter().map(|it| &*it.of).collect();
            lines.push((How::Bad, format!("the answer lacks {}", names.join(", "))));
        }
        lines.push((How::Good, format!("answered{} after {took}", by.unwrap_or_default())));
        return lines;
    }
    let mut lines = Vec::new();
    if let Some((text, by)) = &team.partial {
        lines.push((How::Called, format!("best partial answer ({by}): {text}")));
    }
    let advice = closed.reason.advice().map(|advice| format!(". {advice}"));
    let text = format!("{} after {took}{}", closed.reason, advice.unwrap_or_default());
    lines.push((How::Bad, text));
    lines
}

fn told(line: &Line) -> Spoken<'_> {
    let (how, text): (How, Cow<'_, str>) = match &line.what {
        LineKind::Message(text) => (How::Message, (&**text).into()),
        LineKind::Said(text) => (How::Said, (&**text).into()),
        LineKind::Called(call) => (How::Called, call_told(call).into()),
        LineKind::Result { of, text, ok: true } => (How::Good, told_of(of, text)),
        LineKind::Result { of, text, ok: false }
            if **text == *StopReason::Cancelled.to_string() =>
        {
            (How::Cancelled, (&**of).into())
        }
        LineKind::Result { of, text, ok: false } => (How::Bad, told_of(of, text)),
        LineKind::HandedOver { to, message } => match message {
            Some(message) => (How::Over, format!("{to}: {message}").into()),
            None => (How::Over, to.as_str().into()),
        },
        LineKind::Refused { to, why } => (How::Refused, format!("{to}: {why}").into()),
        LineKind::NotCalled { tool, text } => (How::Refused, format!("{tool}: {text}").into()),
    };
    let author = line.author.as_ref().map_or("", |author| author.as_str());
    Spoken { at: Some(line.at), author, depth: line.depth, how, text }
}

/// The result of a call; the name alone if the result is empty.
fn told_of<'a>(of: &'a str, text: &str) -> Cow<'a, str> {
    if text.trim().is_empty() { of.into() } else { format!("{of}: {text}").into() }
}

/// A line of the session before this run.
fn remembered(entry: &Entry) -> Spoken<'_> {
    let of = |author, how, text| Spoken { at: None, author, depth: 0, how, text };
    match entry {
        Entry::Input { from: None, text, .. } => of("", How::Message, (&**text).into()),
        Entry::Input { from: Some(from), to, text } => {
            of(from.as_str(), How::Over, format!("{to}: {text}").into())
        }
        Entry::Said { by, text, calls, .. } if text.is_empty() => {
            let told: Vec<String> = calls.iter().map(call_told).collect();
            of(by.as_str(), How::Called, told.join(", ").into())
        }
        Entry::Said { by, text, .. } => of(by.as_str(), How::Said, (&**text).into()),
        Entry::Result { by, call, text } => of(by.as_str(), How::Good, told_of(&call.name, text)),
    }
}

impl RunPage {
    /// The transcript of the shown world at a width.
    pub fn transcript(&self, width: u16) -> Option<Transcript<'_>> {
        Transcript::new(self, width)
    }
}
