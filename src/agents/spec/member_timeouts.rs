//! Which agents work under the timeout of the agent that they are members of.

use std::time::Duration;

use super::{AgentKind, AgentSpec};
use crate::base::name::AgentName;

impl AgentSpec {
    /// The members whose turns have a timeout, with that timeout. That of a swarm does not apply to
    /// the entry until it receives a handoff.
    pub fn member_timeouts(&self) -> impl Iterator<Item = (&AgentName, Duration)> {
        let swarm = match &self.kind {
            AgentKind::Swarm(swarm) => Some(swarm),
            AgentKind::Model(_) | AgentKind::Team(_) => None,
        };
        let limited = swarm.and_then(|swarm| Some((swarm, swarm.node_timeout?)));
        limited.into_iter().flat_map(|(swarm, timeout)| {
            let members = swarm.members.iter().filter(|member| **member != swarm.entry);
            members.map(move |member| (member, timeout))
        })
    }
}
