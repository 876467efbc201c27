//! The setup of a team or swarm, as the head of a log has it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Plan;
use super::agents::{AgentHead, AgentsPlan, SessionHead};
use crate::base::name::AgentName;

/// Setup of a team or swarm: its agents, and the message that the run answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct TeamPlan {
    /// The agent that the user talks to.
    pub root: AgentName,
    /// Every agent: the root first, each before its members; agents in no `members` list last.
    pub agents: Arc<[AgentHead]>,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
    /// The place of the run in its session.
    pub session: SessionHead,
}

impl TeamPlan {
    /// Its agents, with the root.
    pub(crate) fn agents_plan(&self) -> AgentsPlan {
        AgentsPlan { root: Some(self.root.clone()), agents: Arc::clone(&self.agents) }
    }
}

impl Plan for TeamPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }

    fn message(&self) -> Option<&str> {
        Some(&self.session.text)
    }
}
