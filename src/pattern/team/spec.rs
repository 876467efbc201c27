//! A team or swarm as a scenario declares it (teams source document).

use std::sync::Arc;
use std::time::Duration;

use crate::agents::spec::{AgentKind, AgentSpec, AgentsSpec};
use crate::base::name::AgentName;

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
