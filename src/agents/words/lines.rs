//! Lines of teams and swarms: consultations, handoffs and messages. They are the transcript's
//! lines, so members' messages that a team hides are hidden here too.

use std::fmt::Write as _;

use crate::agents::facts::AgentFact;
use crate::agents::policy::TRANSFER;
use crate::agents::projection::{AgentRow, AgentsFold, LineKind, TranscriptLine};
use crate::agents::words::event_line::written_text;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::event::kind::{Purpose, ToolCall};
use crate::event::world::{RunFold, SpanKind};
use crate::event::{Event, EventKind, SpanId};
use crate::narrate::event_line::cut_reply;
use crate::narrate::format;
use crate::narrate::glyph::Glyph;
use crate::narrate::line_parts::{signed, with_model};
use crate::narrate::lines::described;
use crate::narrate::measure::{columns, padded};
use crate::narrate::pattern_words::Narrate;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledLine;

/// Length limit of a message, in characters; the answer at the end is complete.
const SAID_CHARS: usize = 200;

/// The lines of an event of agents, in the words of the pattern; `None` if another module may show it.
pub fn lines(
    agents: &AgentsFold,
    words: &dyn Narrate,
    event: &Event,
    run: &RunFold,
) -> Option<Vec<StyledLine>> {
    let new = agents.lines.iter().rev().take_while(|line| line.seq == event.seq);
    let mut lines: Vec<StyledLine> = new.filter_map(|line| transcript_line(line, run)).collect();
    lines.reverse();
    match &event.kind {
        kind if AgentFact::of(kind).is_some_and(has_no_transcript_line) => {
            let described = described(words, event, run);
            lines.push(agent_line(
                TeamLineKind::Note,
                0,
                &described.subject,
                &shorten(&described.text),
            ));
        }
        // Reported elsewhere: by the member's coordinator, or at the end of the run.
        EventKind::CallFailed { .. }
            if runs_agent(event.span, run) || is_member_model_call(event.span, run) => {}
        _ if lines.is_empty() => return None,
        _ => {}
    }
    Some(lines)
}

/// Whether the transcript says nothing about a fact that headless text tells.
fn has_no_transcript_line(fact: &AgentFact) -> bool {
    matches!(
        fact,
        AgentFact::AnswerPartial { .. }
            | AgentFact::AnswerIncomplete { .. }
            | AgentFact::RosterChanged { .. }
    )
}

/// The totals on the last line of a run.
pub fn totals(agents: &AgentsFold) -> String {
    let mut text = String::new();
    if let Some(by) = &agents.answered_by {
        let _ = write!(text, "  by {by}");
    }
    let counts = agents.hop_counts;
    let (handoffs, consulted) = (counts.handoffs, counts.consultations);
    for (count, what) in [(handoffs, "handoff"), (consulted, "consultation")] {
        if count > 0 {
            let _ = write!(text, "  {}", format::count_noun(count, what));
        }
    }
    text
}

/// The table of agents: the turns and model calls of each.
pub fn turns(agents: &AgentsFold) -> String {
    let name = |row: &AgentRow| visible_within(row.name.as_str(), REASON_CHARS);
    let width = agents.assignable_agents().map(|row| columns(&name(row))).max().unwrap_or(0).max(5);
    let heads = padded("agent", width);
    let mut text = format!("\n{heads}  {:>5}  {:>11}\n", "turns", "model calls");
    for row in agents.assignable_agents() {
        let name = padded(&name(row), width);
        let _ = writeln!(text, "{name}  {:>5}  {:>11}", row.turns, row.calls);
    }
    text
}

/// The kind of a line, shown as glyph and word before the author's name.
#[derive(Clone, Copy)]
enum TeamLineKind {
    Message,
    Said,
    Asks,
    Result,
    Failed,
    HandsOver,
    Refused,
    Note,
}

impl TeamLineKind {
    fn parts(self) -> (Glyph, &'static str, StyleRole) {
        match self {
            Self::Message => (Glyph::Right, "message", StyleRole::Strong),
            Self::Said => (Glyph::Dot, "says", StyleRole::Text),
            Self::Asks => (Glyph::Arrow, "calls", StyleRole::Text),
            Self::Result => (Glyph::Done, "answered", StyleRole::Done),
            Self::Failed => (Glyph::Failed, "failed", StyleRole::Failed),
            Self::HandsOver => (Glyph::Arrow, "handoff", StyleRole::Strong),
            Self::Refused => (Glyph::Refused, "refused", StyleRole::Refused),
            Self::Note => (Glyph::Alert, "note", StyleRole::Flag),
        }
    }
}

/// A line: kind, author (indented by nesting depth), text.
fn agent_line(kind: TeamLineKind, depth: u16, who: &str, what: &str) -> StyledLine {
    let (glyph, word, role) = kind.parts();
    let inward = "  ".repeat(depth.into());
    let text = format!("  {inward}{}  {what}", visible(who));
    signed(glyph, word, role).then(text.trim_end().to_owned())
}

fn transcript_line(line: &TranscriptLine, run: &RunFold) -> Option<StyledLine> {
    let (sign, what) = match &line.what {
        LineKind::Message(text) => (TeamLineKind::Message, shorten(text)),
        LineKind::Said(text) => (TeamLineKind::Said, shorten(text)),
        LineKind::Cut { end, calls } => (TeamLineKind::Note, cut_reply(*end, *calls)),
        // The handoff itself has a line.
        LineKind::Called(call) if *call.name == *TRANSFER => return None,
        LineKind::Called(call) => (TeamLineKind::Asks, call_text(call)),
        LineKind::Result { of, text, ok } => {
            let sign = if *ok { TeamLineKind::Result } else { TeamLineKind::Failed };
            let of = with_model(of.to_string(), run.models.for_agent(of));
            return Some(agent_line(sign, line.depth, &of, &shorten(text)));
        }
        LineKind::HandedOver { to, message } => {
            let message =
                message.as_ref().map_or_else(String::new, |it| format!(": {}", shorten(it)));
            (TeamLineKind::HandsOver, format!("to {to}{message}"))
        }
        LineKind::Refused { to, why } => (TeamLineKind::Refused, format!("handoff to {to}: {why}")),
        LineKind::NotCalled { tool, text } => (
            TeamLineKind::Refused,
            format!("{}: {}", visible_within(tool, SAID_CHARS), shorten(text)),
        ),
        LineKind::Written { told } => {
            let sign = if *told { TeamLineKind::Refused } else { TeamLineKind::Note };
            (sign, written_text(*told).to_owned())
        }
    };
    let who = line.author.as_ref().map_or("you", |author| author.as_str());
    let who = with_model(who.to_owned(), run.models.for_agent(who));
    Some(agent_line(sign, line.depth, &who, &what))
}

/// The text of a call: a member's request, or a tool's arguments.
fn call_text(call: &ToolCall) -> String {
    let name = visible_within(&call.name, SAID_CHARS);
    let arguments: Option<serde_json::Value> = serde_json::from_str(&call.arguments).ok();
    let request = arguments.as_ref().and_then(|it| it.get("request")).and_then(|it| it.as_str());
    match request {
        Some(request) => format!("{name}: {}", shorten(request)),
        None => format!("{name} {}", shorten(&call.arguments)).trim_end().to_owned(),
    }
}

fn shorten(text: &str) -> String {
    visible_within(text.trim(), SAID_CHARS)
}

/// Whether the call runs an agent, not a model or a tool.
fn runs_agent(span: SpanId, run: &RunFold) -> bool {
    let what = run.spans.get(span).map(|span| &span.kind);
    matches!(what, Some(SpanKind::Call(Purpose::Member { .. } | Purpose::SwarmTurn { .. })))
}

/// Whether the call is a model call of an agent that a coordinator consults. If it fails, the
/// consultation fails with the same reason, and that line names the agent too.
fn is_member_model_call(span: SpanId, run: &RunFold) -> bool {
    let within = |span: SpanId| run.spans.get(span).and_then(|it| run.spans.get(it.parent));
    let Some(SpanKind::Call(Purpose::ModelCall { agent, .. })) =
        run.spans.get(span).map(|span| &span.kind)
    else {
        return false;
    };
    let call = within(span).and_then(|attempt| within(attempt.id)).map(|call| &call.kind);
    matches!(call, Some(SpanKind::Call(Purpose::Member { agent: whose, .. })) if whose == agent)
}
