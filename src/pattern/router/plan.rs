//! The setup of a router, as the head of a log has it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agents::plan::{AgentHead, AgentsPlan, agents_weight, redact_agents};
use crate::base::name::{AgentName, FlagName};
use crate::event::plan::Plan;
use crate::event::redact::TextRedactor;

/// Setup of a router: its routes, and the agents behind them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct RouterPlan {
    /// The request that is classified.
    pub request: Arc<str>,
    /// The routes, in the scenario's order: the policy list.
    pub routes: Vec<RouteHead>,
    /// The route where the classifier's cannot be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<AgentName>,
    /// The confidence, from 0 to 1, that the classifier's route needs.
    pub min_confidence: f64,
    /// Every agent: each route before its members; agents in no `members` list last.
    pub agents: Arc<[AgentHead]>,
    /// Time limit of the run in milliseconds, pauses not counted.
    pub max_ms: u64,
}

impl RouterPlan {
    /// Its agents: the router calls them itself.
    pub(crate) fn agents_plan(&self) -> AgentsPlan {
        AgentsPlan { root: None, agents: Arc::clone(&self.agents) }
    }

    /// The route with this name.
    pub(crate) fn route(&self, name: &AgentName) -> Option<&RouteHead> {
        self.routes.iter().find(|route| route.agent == *name)
    }
}

/// A route: the agent that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct RouteHead {
    /// Name of the agent, which is the route's.
    pub agent: AgentName,
    /// The flag that takes the route off the execution list while it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

impl Plan for RouterPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }

    fn weight(&self) -> usize {
        let routes = self.routes.iter().map(|route| {
            let flag = route.flag.as_ref().map_or(0, |flag| flag.as_str().len());
            size_of_val(route) + route.agent.as_str().len() + flag
        });
        size_of::<Self>() + self.request.len() + routes.sum::<usize>() + agents_weight(&self.agents)
    }

    fn redact(&mut self, by: &mut TextRedactor) {
        let Self { request, routes: _, fallback: _, min_confidence: _, agents, max_ms: _ } = self;
        by.text(request);
        redact_agents(agents, by);
    }
}
