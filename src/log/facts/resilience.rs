//! The setup of a resilience run, as the head of a log has it.

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::base::name::ToolName;

/// Setup of a resilience run: who calls which tools how often, and through what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct ResiliencePlan {
    /// Number of agents, which run concurrently.
    pub agents: u32,
    /// Turns of each agent.
    pub turns: u32,
    /// The tools that an agent calls in each turn, in order.
    pub steps: Vec<ToolName>,
    /// Call slots that all agents share.
    pub pool: u32,
    /// Whether calls go through the tools' policies.
    pub guarded: bool,
    /// Max attempts of one step if they do not: client x tool x agent.
    pub naive_attempts: u32,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
}

impl Plan for ResiliencePlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }
}
