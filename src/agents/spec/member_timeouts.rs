//! Which agents work under the timeout of the agent that they are members of.

use std::time::Duration;

use super::{AgentKind, AgentSpec};
use crate::base::name::AgentName;

impl AgentSpec {
    /// The members of a swarm that work under its `node_timeout`, with that timeout. The entry is
    /// not one of them: the timeout begins with a handoff.
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
