//! The lines of the events of teams and swarms.

use serde_json::Value;

use crate::agents::facts::roster::RosterChange;
use crate::agents::facts::{AgentFact, MissingResult};
use crate::agents::projection::HANDED_OVER;
use crate::event::EventKind;
use crate::event::kind::{Purpose, Reply};
use crate::narrate::event_line::EventLine;
use crate::narrate::readable::top_text;
use crate::narrate::style_role::StyleRole;

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
pub(crate) fn fill_line<'a>(line: &mut EventLine<'a>, kind: &'a EventKind) {
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
