//! Agents in words: lines of events and of headless text (the transcript's lines, so messages that
//! a team hides are hidden here too), details for the inspector, hops as Markdown.

use std::fmt::Write as _;

use serde_json::Value;

use super::Narrate;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::log::event::kind::{Purpose, Reply};
use crate::log::event::{Event, EventKind, SpanId};
use crate::log::facts::agents::{AgentFact, LoopGuard, MissingResult, RosterChange};
use crate::log::world::agents::{
    AgentRow, AgentsFold, HANDED_OVER, HopKind, HopState, LineKind, TranscriptLine,
};
use crate::log::world::{RunFold, SpanKind};
use crate::pattern::agents::policy::TRANSFER;
use crate::scenario::spec::tool::ToolCall;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::headless::{event_words, signed_line, with_model};
use crate::words::markdown::table_cell;
use crate::words::measure::{columns, padded};
use crate::words::readable::top_text;
use crate::words::sentence::{EventLine, cut_reply};
use crate::words::styled::{StyleRole, StyledLine, StyledText};

/// The text for an agent that takes control.
fn hop_text(purpose: &Purpose) -> String {
    match purpose {
        Purpose::SwarmTurn { swarm, hop, from: Some(from), .. } => {
            format!("in control of {swarm}, hop {hop}, from {from}")
        }
        Purpose::SwarmTurn { swarm, hop, .. } => format!("in control of {swarm}, hop {hop}"),
        _ => String::new(),
    }
}

/// The tools that a reply calls, or that it hands over; appended to the size of the reply.
pub(crate) fn calls_text(reply: &Reply) -> String {
    if reply.finish.as_deref() == Some(HANDED_OVER) {
        return ", handed over".to_owned();
    }
    let names: Vec<&str> = reply.tool_calls.iter().map(|call| &*call.name).collect();
    if names.is_empty() { String::new() } else { format!(", calls {}", names.join(", ")) }
}

/// Fills the line of an event of a team; leaves other events alone.
pub(super) fn fill_line<'a>(line: &mut EventLine<'a>, kind: &'a EventKind) {
    match kind {
        EventKind::CallStarted(call) => match (&call.purpose, &call.args) {
            (Purpose::Member { agent, by, .. }, Some(args)) => {
                line.subject = by.as_str().into();
                let request = args.get("request").and_then(Value::as_str).map(str::to_owned);
                let request = request.unwrap_or_else(|| top_text(args));
                line.text = format!("consults {agent}: {request}").into();
            }
            (Purpose::SwarmTurn { .. }, None) => line.text = hop_text(&call.purpose).into(),
            _ => {}
        },
        kind => {
            if let Some(fact) = AgentFact::of(kind) {
                fill_fact(line, fact);
            }
        }
    }
}

/// What is said of a tool call that a model wrote as text.
pub(crate) fn written_text(told: bool) -> &'static str {
    match told {
        true => "wrote a tool call as text, nothing was called; the model is called again",
        false => "its answer is a tool call written as text, nothing was called",
    }
}

fn fill_fact<'a>(line: &mut EventLine<'a>, fact: &'a AgentFact) {
    match fact {
        AgentFact::AnswerPartial { text, by } => {
            line.subject = by.as_str().into();
            line.text = format!("best partial answer: {text}").into();
        }
        AgentFact::AnswerIncomplete { missing } => {
            let each = |of: fn(&MissingResult) -> &str, between: &str| {
                missing.iter().map(of).collect::<Vec<_>>().join(between)
            };
            line.subject = each(|it| &it.name, ", ").into();
            let it = if missing.len() == 1 { "it" } else { "them" };
            line.text = format!("the answer lacks {it}: {}", each(|it| &it.text, "; ")).into();
            line.tone = StyleRole::Failed;
        }
        AgentFact::HandoffMade { from, to, message, .. } => {
            line.subject = from.as_str().into();
            line.text = match message {
                Some(message) => format!("hands over to {to}: {message}").into(),
                None => format!("hands over to {to}").into(),
            };
        }
        AgentFact::HandoffRefused { from, to, reason: why, .. } => {
            line.subject = from.as_str().into();
            line.text = format!("handoff to {to} refused: {why}").into();
            line.tone = StyleRole::Refused;
        }
        AgentFact::ToolCallRefused { agent, tool, text, .. } => {
            line.subject = agent.as_str().into();
            line.text = format!("{tool}: {text}").into();
            line.tone = StyleRole::Refused;
        }
        AgentFact::ToolCallWritten { agent, preview, told } => {
            line.subject = agent.as_str().into();
            line.text = format!("{}: {preview}", written_text(*told)).into();
            line.tone = StyleRole::Refused;
        }
        AgentFact::RosterChanged { swarm, change, members, .. } => {
            line.subject = swarm.as_str().into();
            let there = members.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
            line.text = match change {
                RosterChange::Add { agent } => format!("{agent} joined, members: {there}"),
                RosterChange::Remove { agent } => format!("{agent} left, members: {there}"),
                RosterChange::Replace { .. } => format!("members: {there}"),
            }
            .into();
        }
    }
}

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
            let described = event_words(words, event, run);
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
    signed_line(glyph, word, role).then(text.trim_end().to_owned())
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

/// Adds the details of an agent's call.
pub fn add_call(purpose: &Purpose, to: &mut StyledText) {
    match purpose {
        Purpose::ModelCall { agent, turn, round } => {
            to.field("agent", agent.as_str());
            to.field("turn", turn.to_string());
            to.field("call", round.to_string());
        }
        Purpose::Member { agent, by, turn, .. } => {
            to.field("member", agent.as_str());
            to.field("called by", by.as_str());
            to.field("turn", turn.to_string());
        }
        Purpose::SwarmTurn { agent, swarm, hop, from, .. } => {
            to.field("agent", agent.as_str());
            to.field("swarm", swarm.as_str());
            to.field("hop", hop.to_string());
            if let Some(from) = from {
                to.field("from", from.as_str());
            }
        }
        Purpose::Tool { agent, tool, .. } => {
            to.field("agent", agent.as_str());
            to.field("tool", tool.as_str());
        }
        _ => {}
    }
}

/// Adds the details of an event of agents.
pub fn add_event(kind: &EventKind, to: &mut StyledText) {
    let Some(fact) = AgentFact::of(kind) else { return };
    match fact {
        AgentFact::HandoffMade { to: next, message, guard, .. } => {
            to.field("to", next.as_str());
            if let Some(message) = message {
                to.field("message", message.replace('\n', " "));
            }
            add_loop_guard(guard, to);
        }
        AgentFact::HandoffRefused { to: next, reason, guard, rejections, .. } => {
            to.field("to", next.as_str());
            to.field("reason", reason.to_string());
            add_loop_guard(guard, to);
            to.field("refusals", rejections.to_string());
        }
        AgentFact::RosterChanged { members, .. } => {
            let names: Vec<&str> = members.iter().map(|name| name.as_str()).collect();
            to.field("members", names.join(", "));
        }
        _ => {}
    }
}

/// Adds the state of a swarm's loop guard.
fn add_loop_guard(guard: &LoopGuard, to: &mut StyledText) {
    to.field("handoffs", guard.handoffs.to_string());
    to.field("distinct", format!("{} of the last {}", guard.distinct_agents, guard.window));
}

/// Adds the hops of a team: who handed over to or consulted whom.
pub fn add_hops(agents: &AgentsFold, out: &mut String) {
    /// Most hops that are listed; further ones are only counted.
    const MAX_HOPS: usize = 500;
    if agents.hops.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Hops\n\n| # | from | to | how | why |");
    let _ = writeln!(out, "| --- | --- | --- | --- | --- |");
    for (nth, hop) in agents.hops.iter().take(MAX_HOPS).enumerate() {
        let from = hop.from.as_ref().map_or("you", |from| from.as_str());
        let how = match (&hop.state, hop.kind) {
            (HopState::Refused(_), _) => "refused",
            (_, HopKind::Consult) => "consults",
            (_, HopKind::Start | HopKind::Handoff) => "hands over",
        };
        let why = match &hop.state {
            HopState::Refused(why) => why.to_string(),
            HopState::Failed(reason) => reason.phrase().into_owned(),
            HopState::Degraded { by, reason } => {
                format!("{}; {}", reason.phrase(), by.word())
            }
            _ => table_cell(hop.message.as_deref().unwrap_or_default()),
        };
        let _ = writeln!(out, "| {} | {from} | {} | {how} | {why} |", nth + 1, hop.to);
    }
    if let Some(more) = agents.hops.len().checked_sub(MAX_HOPS).filter(|more| *more > 0) {
        let _ = writeln!(out, "\nAnd {}.", format::count_noun(more as u64, "more hop"));
    }
}
