//! The registry of what a log has of each pattern: its setup.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::agents::plan::TeamPlan;
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::orchestrator::plan::OrchestratorPlan;
use crate::pattern::research::plan::ResearchPlan;
use crate::pattern::resilience::plan::ResiliencePlan;

/// The pattern of a run, with its limits at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "pattern", rename_all = "snake_case")]
pub enum PatternPlan {
    /// Seats vote in rounds (collaboration source document).
    Collaboration(Arc<CollaborationPlan>),
    /// A planner and its workers (orchestrator source document).
    Orchestrator(Arc<OrchestratorPlan>),
    /// A coordinator and its members (teams source document).
    Team(Arc<TeamPlan>),
    /// Agents that hand over to each other (teams source document).
    Swarm(Arc<TeamPlan>),
    /// Agents that put load on tools (cascading failures source document).
    Resilience(Arc<ResiliencePlan>),
    /// Search, read, take notes, verify, answer (research source document).
    Research(Arc<ResearchPlan>),
}

impl PatternPlan {
    /// Name of the pattern.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Collaboration(_) => "collaboration",
            Self::Orchestrator(_) => "orchestrator",
            Self::Team(_) => "team",
            Self::Swarm(_) => "swarm",
            Self::Resilience(_) => "resilience",
            Self::Research(_) => "research",
        }
    }

    /// The setup.
    pub fn get(&self) -> &dyn Plan {
        match self {
            Self::Collaboration(plan) => &**plan,
            Self::Orchestrator(plan) => &**plan,
            Self::Team(plan) | Self::Swarm(plan) => &**plan,
            Self::Resilience(plan) => &**plan,
            Self::Research(plan) => &**plan,
        }
    }

    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub fn max_ms(&self) -> u64 {
        self.get().max_ms()
    }
}
