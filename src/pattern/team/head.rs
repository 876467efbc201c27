//! The setup of a team or swarm, for the head of its log.

use std::sync::Arc;

use super::plan::TeamPlan;
use super::spec::TeamSpec;
use super::starting::starting_agent;
use crate::agents::facts::SessionHead;
use crate::agents::head::agent_head;
use crate::agents::plan::AgentHead;
use crate::event::id::millis;
use crate::run::Session;

/// The setup of a run that answers the message of this session.
pub(crate) fn setup(spec: &TeamSpec, session: &Session) -> TeamPlan {
    let mut agents: Vec<AgentHead> = Vec::new();
    let mut next = vec![&spec.root];
    // Agents in no `members` list come last.
    let others = spec.agents.keys().rev().filter(|name| **name != spec.root);
    let mut waiting: Vec<_> = others.collect();
    while let Some(name) = next.pop().or_else(|| waiting.pop()) {
        let Some(agent) = spec.agent(name).filter(|_| agents.iter().all(|it| it.name != *name))
        else {
            continue;
        };
        next.extend(agent.kind.members().iter().rev());
        agents.push(agent_head(agent, session));
    }
    let starts = starting_agent(spec, session);
    TeamPlan {
        root: spec.root.clone(),
        agents: agents.into(),
        max_ms: millis(spec.max_seconds),
        session: SessionHead {
            message: session.message,
            text: Arc::clone(&session.text),
            previous_run: session.after.clone(),
            history: Arc::clone(&session.memory.history),
            owner: session.memory.owner.clone(),
            first_agent: starts,
        },
    }
}
