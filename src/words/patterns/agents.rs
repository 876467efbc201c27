//! Agents in words: sentences for events, the transcript as headless text (so messages that a team
//! hides are hidden there too), details for the inspector, hops as Markdown.

use std::fmt::Write as _;

use serde_json::Value;

use crate::base::time::duration_text;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::log::event::{Event, EventKind, Purpose, Reply, SpanId};
use crate::log::facts::agents::{AgentFact, LoopGuard, MissingResult, RosterChange};
use crate::log::world::agents::{
    AgentRow, AgentState, AgentsFold, HANDED_OVER, HopKind, HopState, LineKind, ResultEnd,
    TranscriptLine,
};
use crate::log::world::{RunFold, SpanKind};
use crate::scenario::spec::tool::{TRANSFER, ToolCall};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::headless::{SAID_CHARS, signed_line, with_model};
use crate::words::markdown::table_cell;
use crate::words::measure::{columns, padded};
use crate::words::readable::top_text;
use crate::words::sentence::{HeadlessForm, Sentence, cut_reply};
use crate::words::styled::{StyleRole, StyledLine, StyledPart, StyledText};

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

/// Fills the sentence for an event of a team. Headless, what the transcript says is not repeated.
pub(super) fn fill<'a>(it: &mut Sentence<'a>, event: &'a Event, run: &RunFold) {
    match &event.kind {
        EventKind::CallStarted(call) => match (&call.purpose, &call.args) {
            (Purpose::Member { agent, by, .. }, Some(args)) => {
                let request = args.get("request").and_then(Value::as_str).map(str::to_owned);
                let request = request.unwrap_or_else(|| top_text(args));
                it.about(by.as_str()).text = format!("consults {agent}: {request}").into();
            }
            (Purpose::SwarmTurn { .. }, None) => it.text = hop_text(&call.purpose).into(),
            _ => {}
        },
        // Reported elsewhere: by the member's coordinator, or at the end of the run.
        EventKind::CallFailed { .. }
            if runs_agent(event.span, run) || is_member_model_call(event.span, run) =>
        {
            it.headless = HeadlessForm::Hidden;
        }
        kind => {
            if let Some(fact) = AgentFact::of(kind) {
                fill_fact(it, fact);
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

fn fill_fact<'a>(it: &mut Sentence<'a>, fact: &'a AgentFact) {
    match fact {
        AgentFact::AnswerPartial { text, by } => {
            it.set(StyleRole::Text, "best partial answer")
                .about(by.as_str())
                .with_detail(&**text)
                .as_sign(Glyph::Alert, "note");
        }
        AgentFact::AnswerIncomplete { missing } => {
            let each = |of: fn(&MissingResult) -> &str, between: &str| {
                missing.iter().map(of).collect::<Vec<_>>().join(between)
            };
            let lacks = if missing.len() == 1 { "it" } else { "them" };
            it.set(StyleRole::Failed, format!("the answer lacks {lacks}"))
                .about(each(|it| &it.name, ", "))
                .with_detail(each(|it| &it.text, "; "))
                .as_sign(Glyph::Alert, "note");
        }
        AgentFact::RosterChanged { swarm, change, members, .. } => {
            let there = members.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
            let text = match change {
                RosterChange::Add { agent } => format!("{agent} joined, members: {there}"),
                RosterChange::Remove { agent } => format!("{agent} left, members: {there}"),
                RosterChange::Replace { .. } => format!("members: {there}"),
            };
            it.set(StyleRole::Text, text).about(swarm.as_str()).as_sign(Glyph::Alert, "note");
        }
        AgentFact::HandoffMade { from, to, message, .. } => {
            it.set(StyleRole::Text, format!("to {to}"))
                .about(from.as_str())
                .with_detail(message.as_deref().unwrap_or_default());
        }
        AgentFact::HandoffRefused { from, to, reason, .. } => {
            it.set(StyleRole::Refused, format!("handoff to {to}: {reason}")).about(from.as_str());
        }
        AgentFact::ToolCallRefused { agent, tool, text, .. } => {
            it.set(StyleRole::Refused, &**tool).about(agent.as_str()).with_detail(&**text);
        }
        AgentFact::ToolCallWritten { agent, preview, told } => {
            it.set(StyleRole::Refused, written_text(*told))
                .about(agent.as_str())
                .with_detail(&**preview);
        }
    }
}

/// What is said in an event, in lines of headless text.
pub fn transcript(agents: &AgentsFold, event: &Event, run: &RunFold) -> Vec<StyledLine> {
    let new = agents.lines.iter().rev().take_while(|line| line.seq == event.seq);
    let mut lines: Vec<StyledLine> = new.filter_map(|line| transcript_line(line, run)).collect();
    lines.reverse();
    lines
}

/// Who gave the answer of the run: an agent, or `the fallback of ann`, where that person did not answer.
pub fn answerer(agents: &AgentsFold) -> Option<String> {
    let by = agents.answered_by.as_ref()?;
    Some(if agents.is_fallback { format!("the fallback of {by}") } else { by.to_string() })
}

/// The totals on the last line of a run.
pub fn totals(agents: &AgentsFold) -> String {
    let mut text = String::new();
    if let Some(by) = answerer(agents) {
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

fn transcript_line(line: &TranscriptLine, run: &RunFold) -> Option<StyledLine> {
    let author = line.author.as_ref().map_or("you", |author| author.as_str());
    let (who, glyph, word, role, text) = match &line.what {
        LineKind::Message(text) => {
            (author, Glyph::Right, "message", StyleRole::Strong, shorten(text))
        }
        LineKind::Said(text) => (author, Glyph::Dot, "says", StyleRole::Text, shorten(text)),
        LineKind::Fallback(text) => (
            author,
            Glyph::Alert,
            "no answer",
            StyleRole::Retry,
            format!("fallback: {}", shorten(text)),
        ),
        LineKind::Cut { end, calls } => {
            (author, Glyph::Alert, "note", StyleRole::Flag, cut_reply(*end, *calls))
        }
        // The handoff itself has a line.
        LineKind::Called(call) if *call.name == *TRANSFER => return None,
        LineKind::Called(call) => (author, Glyph::Arrow, "calls", StyleRole::Text, call_text(call)),
        LineKind::Result { of, text, end } => {
            let (glyph, word, role) = match end {
                ResultEnd::Unanswered => (Glyph::Alert, "no answer", StyleRole::Retry),
                ResultEnd::Answered => (Glyph::Done, "answered", StyleRole::Done),
                ResultEnd::Denied => (Glyph::Refused, "denied", StyleRole::Refused),
                ResultEnd::Failed | ResultEnd::Cancelled => {
                    (Glyph::Failed, "failed", StyleRole::Failed)
                }
            };
            let lead = if *end == ResultEnd::Unanswered { "fallback: " } else { "" };
            (&**of, glyph, word, role, format!("{lead}{}", shorten(text)))
        }
        LineKind::HandedOver { to, message } => {
            let message = message.as_ref().map(|it| format!(": {}", shorten(it)));
            let text = format!("to {}{}", visible(to.as_str()), message.unwrap_or_default());
            (author, Glyph::Arrow, "handoff", StyleRole::Strong, text)
        }
        LineKind::Refused { to, why } => {
            let text = format!("handoff to {}: {why}", visible(to.as_str()));
            (author, Glyph::Refused, "refused", StyleRole::Refused, text)
        }
        LineKind::NotCalled { tool, text } => {
            let text = format!("{}: {}", visible_within(tool, SAID_CHARS), shorten(text));
            (author, Glyph::Refused, "refused", StyleRole::Refused, text)
        }
        LineKind::Written { told: true } => {
            (author, Glyph::Refused, "refused", StyleRole::Refused, written_text(true).to_owned())
        }
        LineKind::Written { told: false } => {
            (author, Glyph::Alert, "note", StyleRole::Flag, written_text(false).to_owned())
        }
    };
    let who = with_model(visible(who).into_owned(), run.models.for_agent(who));
    Some(signed_line(StyledPart::with_glyph(glyph, role, word), &who, line.depth, &text))
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

/// The agents, a line for each.
pub(super) fn agent_rows(agents: &AgentsFold) -> Vec<String> {
    let in_control = agents.in_control.as_ref();
    let rows = agents.agents.iter();
    rows.map(|row| {
        let state = match row.state {
            AgentState::Idle => "unused",
            AgentState::Running => "at work",
            AgentState::Done => "done",
            AgentState::Failed => "failed",
            AgentState::Cancelled => "cancelled",
        };
        let turns = format::count_noun(row.turns.into(), "turn");
        let (calls, time) = (row.calls, duration_text(row.work_time));
        let control = if in_control == Some(&row.name) { ", in control" } else { "" };
        let calls = format::count_noun(calls.into(), "model call");
        format!("{}: {state}{control}, {turns}, {calls}, {time} at work", row.name)
    })
    .collect()
}

/// The hops, a line for each.
pub(super) fn hop_rows(agents: &AgentsFold, run: &RunFold) -> Vec<String> {
    let progress = &run.progress;
    agents
        .hops
        .iter()
        .enumerate()
        .map(|(at, hop)| {
            let from = hop.from.as_ref().map_or("the user", |from| from.as_str());
            let what = match (hop.kind, &hop.state) {
                (HopKind::Start, _) => format!("starts with {}", hop.to),
                (HopKind::Handoff, HopState::Refused(_)) => {
                    format!("{from} may not hand over to {}", hop.to)
                }
                (HopKind::Handoff, _) => format!("{from} hands over to {}", hop.to),
                (HopKind::Consult, _) => format!("{from} consults {}", hop.to),
                (HopKind::Next, _) => format!("{} has its turn", hop.to),
            };
            let state = match &hop.state {
                HopState::Running => "at work".to_owned(),
                HopState::Done => "answered".to_owned(),
                HopState::HandedOver => "handed over".to_owned(),
                HopState::Degraded { reason, .. } => format!("fallback: {}", reason.phrase()),
                HopState::Failed(reason) => format!("failed: {}", reason.phrase()),
                HopState::Refused(_) => "refused".to_owned(),
            };
            let took = hop.until.map(|until| {
                format!(" after {}", duration_text(progress.active_between(hop.at, until)))
            });
            let message = hop.message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            let time = format::time_in_run(progress.run_time(hop.at));
            let (number, took) = (at + 1, took.unwrap_or_default());
            let line = format!("hop {number} at {time}: {what}, {state}{took}{message}");
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect()
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
            (_, HopKind::Next) => "has its turn",
            (_, HopKind::Start | HopKind::Handoff) => "hands over",
        };
        let why = match &hop.state {
            HopState::Refused(why) => table_cell(&why.to_string()),
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
