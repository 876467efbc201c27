//! The setup of a team or swarm, as the head of a log has it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Plan;
use super::agents::{AgentHead, AgentsPlan, HistoryEntry, SessionHead, agents_weight};
use crate::base::name::AgentName;
use crate::log::event::weight::{calls, json_weight};

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

    fn weight(&self) -> usize {
        size_of::<Self>()
            + agents_weight(&self.agents)
            + self.session.text.len()
            + self.session.history.iter().map(entry).sum::<usize>()
    }
}

fn entry(entry: &HistoryEntry) -> usize {
    let held = match entry {
        HistoryEntry::Input { text, .. } => text.len(),
        HistoryEntry::Reply { text, calls: made, blocks, .. } => {
            text.len() + calls(made) + blocks.as_deref().map_or(0, json_weight)
        }
        HistoryEntry::Result { call, text, .. } => text.len() + calls(std::slice::from_ref(call)),
    };
    size_of_val(entry) + held
}
