//! The registry of what a log has of each pattern: its setup, and its facts.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::fact::Fact;
use super::id::SpanId;
use super::plan::Plan;
use super::redact::TextRedactor;
use super::span::{SpanKind, SpanState};
use crate::agents::facts::AgentFact;
use crate::pattern::collaboration::facts::CollaborationFact;
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::orchestrator::facts::OrchestratorFact;
use crate::pattern::orchestrator::plan::OrchestratorPlan;
use crate::pattern::research::facts::ResearchFact;
use crate::pattern::research::plan::ResearchPlan;
use crate::pattern::resilience::plan::ResiliencePlan;
use crate::pattern::router::facts::RouterFact;
use crate::pattern::router::plan::RouterPlan;
use crate::pattern::team::plan::TeamPlan;

/// The pattern of a run, with its limits at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "pattern", rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
    /// Classify, choose a route, let its agent answer.
    Router(Arc<RouterPlan>),
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
            Self::Router(_) => "router",
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
            Self::Router(plan) => &**plan,
        }
    }

    /// Replaces its texts, and declares its names.
    pub(super) fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::Collaboration(plan) => Arc::make_mut(plan).redact(by),
            Self::Orchestrator(plan) => Arc::make_mut(plan).redact(by),
            Self::Team(plan) | Self::Swarm(plan) => Arc::make_mut(plan).redact(by),
            Self::Resilience(plan) => Arc::make_mut(plan).redact(by),
            Self::Research(plan) => Arc::make_mut(plan).redact(by),
            Self::Router(plan) => Arc::make_mut(plan).redact(by),
        }
    }

    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub fn max_ms(&self) -> u64 {
        self.get().max_ms()
    }
}

/// A fact of one pattern. In JSON it is the fact alone: its kind says which pattern it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PatternFact {
    /// Of a collaboration.
    Collaboration(CollaborationFact),
    /// Of an orchestrator.
    Orchestrator(OrchestratorFact),
    /// Of agents: a team, or a swarm.
    Agents(AgentFact),
    /// Of a research run.
    Research(ResearchFact),
    /// Of a router.
    Router(RouterFact),
}

impl PatternFact {
    /// The dotted names of each pattern's facts, as in JSON.
    pub const NAMES: [&'static [&'static str]; 5] = [
        CollaborationFact::NAMES,
        OrchestratorFact::NAMES,
        AgentFact::NAMES,
        ResearchFact::NAMES,
        RouterFact::NAMES,
    ];

    /// Reads the fact of this name; `None` if no pattern has one.
    pub(super) fn read(name: &str, from: &Value) -> Option<serde_json::Result<Self>> {
        Some(if CollaborationFact::NAMES.contains(&name) {
            CollaborationFact::deserialize(from).map(Self::Collaboration)
        } else if OrchestratorFact::NAMES.contains(&name) {
            OrchestratorFact::deserialize(from).map(Self::Orchestrator)
        } else if AgentFact::NAMES.contains(&name) {
            AgentFact::deserialize(from).map(Self::Agents)
        } else if ResearchFact::NAMES.contains(&name) {
            ResearchFact::deserialize(from).map(Self::Research)
        } else if RouterFact::NAMES.contains(&name) {
            RouterFact::deserialize(from).map(Self::Router)
        } else {
            return None;
        })
    }

    /// Reads the fact of this name, given as the variant of an enum: its name, then its fields. Gives
    /// that back if no pattern has one.
    pub(super) fn read_fields<'de, D: Deserializer<'de>>(
        name: &str,
        from: D,
    ) -> Result<Result<Self, D::Error>, D> {
        Ok(if CollaborationFact::NAMES.contains(&name) {
            CollaborationFact::read_fields(from).map(Self::Collaboration)
        } else if OrchestratorFact::NAMES.contains(&name) {
            OrchestratorFact::read_fields(from).map(Self::Orchestrator)
        } else if AgentFact::NAMES.contains(&name) {
            AgentFact::read_fields(from).map(Self::Agents)
        } else if ResearchFact::NAMES.contains(&name) {
            ResearchFact::read_fields(from).map(Self::Research)
        } else if RouterFact::NAMES.contains(&name) {
            RouterFact::read_fields(from).map(Self::Router)
        } else {
            return Err(from);
        })
    }

    /// The fact.
    pub fn get(&self) -> &dyn Fact {
        match self {
            Self::Collaboration(fact) => fact,
            Self::Orchestrator(fact) => fact,
            Self::Agents(fact) => fact,
            Self::Research(fact) => fact,
            Self::Router(fact) => fact,
        }
    }

    /// Replaces its texts.
    pub(super) fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::Collaboration(fact) => fact.redact(by),
            Self::Orchestrator(fact) => fact.redact(by),
            Self::Agents(fact) => fact.redact(by),
            Self::Research(fact) => fact.redact(by),
            Self::Router(fact) => fact.redact(by),
        }
    }

    /// [`Fact::opens`] by a static match, because each fact of a log needs it.
    pub(super) fn opens(&self) -> Option<(SpanId, SpanKind)> {
        match self {
            Self::Collaboration(fact) => fact.opens(),
            Self::Orchestrator(fact) => fact.opens(),
            Self::Agents(fact) => fact.opens(),
            Self::Research(fact) => fact.opens(),
            Self::Router(fact) => fact.opens(),
        }
    }

    /// [`Fact::closes`] by a static match.
    pub(super) fn closes(&self) -> Option<SpanState> {
        match self {
            Self::Collaboration(fact) => fact.closes(),
            Self::Orchestrator(fact) => fact.closes(),
            Self::Agents(fact) => fact.closes(),
            Self::Research(fact) => fact.closes(),
            Self::Router(fact) => fact.closes(),
        }
    }
}
