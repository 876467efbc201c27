//! The details of agents' calls and events for the inspector.

use crate::agents::facts::{AgentFact, LoopGuard};
use crate::event::EventKind;
use crate::event::kind::Purpose;
use crate::narrate::styled::StyledText;

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
