//! A team or swarm as a scenario declares it (teams source document).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::agents::spec::boundary::{self, TeamAgents};
use crate::agents::spec::{AgentKind, AgentSpec, AgentsSpec};
use crate::base::name::{AgentName, FlagName, ToolName};
use crate::scenario::spec::model_assignment::ModelCaller;
use crate::scenario::spec::pattern::{LabelledText, LimitField, Spec};
use crate::scenario::spec::tool::ToolSpec;

/// `pattern = "team"` or `pattern = "swarm"`: the root agent that the user talks to, and all other
/// agents.
#[derive(Debug)]
pub struct TeamSpec {
    /// The agent that the user talks to: a coordinator team or a swarm.
    pub root: AgentName,
    /// Every agent.
    pub agents: AgentsSpec,
    /// Messages that follow the goal in the session, in order.
    pub follow_ups: Vec<Arc<str>>,
    /// Time limit of each run of the session; pauses are not counted.
    pub max_seconds: Duration,
}

impl TeamSpec {
    /// The agent with this name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentSpec> {
        self.agents.get(name)
    }

    /// Whether the root is a swarm.
    pub fn is_swarm(&self) -> bool {
        self.agent(&self.root).is_some_and(|root| matches!(root.kind, AgentKind::Swarm(_)))
    }
}

impl Spec for TeamSpec {
    fn name(&self) -> &'static str {
        if self.is_swarm() { "swarm" } else { "team" }
    }

    fn max_time(&self) -> Duration {
        self.max_seconds
    }

    fn size(&self) -> (u64, &'static str) {
        (self.agents.len() as u64, "agent")
    }

    fn limits(&self) -> Vec<LimitField> {
        vec![LimitField::max_seconds(self.max_seconds)]
    }

    fn preview(&self) -> Vec<LabelledText> {
        let seconds = format!("{} s per message", self.max_seconds.as_secs());
        let agents = self.agents.values();
        let agents = agents
            .map(|agent| format!("{} {}: {}", agent.kind.word(), agent.name, agent.description));
        let mut lines = vec![LabelledText::new("limits", seconds)];
        lines.extend(LabelledText::list("agents", agents));
        lines
    }

    fn check_boundary(&self, at: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let team = TeamAgents { root: &self.root, all: &self.agents };
        boundary::check(team, at, &|| boundary::example_boundaries(team))
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        self.agents.model_callers()
    }

    fn agents(&self) -> Option<&AgentsSpec> {
        Some(&self.agents)
    }

    fn root(&self) -> Option<&AgentName> {
        Some(&self.root)
    }

    fn follow_ups(&self) -> &[Arc<str>] {
        &self.follow_ups
    }

    fn reads_flag(&self, flag: &FlagName) -> bool {
        self.agents.say_flag(flag)
    }
}
