//! The setup of a team or swarm, for the head of its log.

use std::sync::Arc;

use super::plan::TeamPlan;
use super::spec::TeamSpec;
use super::starting::starting_agent;
use crate::agents::facts::SessionHead;
use crate::agents::head::agent_heads;
use crate::event::id::millis;
use crate::run::Session;

/// The setup of a run that answers the message of this session.
pub(crate) fn setup(spec: &TeamSpec, session: &Session) -> TeamPlan {
    let starts = starting_agent(spec, session);
    TeamPlan {
        root: spec.root.clone(),
        agents: agent_heads(&spec.agents, [&spec.root].into_iter(), session),
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
