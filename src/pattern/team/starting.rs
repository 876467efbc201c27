//! The agent that a run starts with.

use super::spec::TeamSpec;
use crate::agents::spec::AgentKind;
use crate::base::name::AgentName;
use crate::run::Session;

/// The agent that starts: the root, or the entry of a swarm. With `cross_request_transfer` the
/// session's next message starts at the agent that gave the last answer, unless it has left the
/// swarm.
pub(super) fn starting_agent(spec: &TeamSpec, session: &Session) -> AgentName {
    let Some(AgentKind::Swarm(swarm)) = spec.agent(&spec.root).map(|root| &root.kind) else {
        return spec.root.clone();
    };
    let left = session.memory.rosters.get(&spec.root);
    let members = left.map_or(&*swarm.members, |members| members);
    match &session.memory.owner {
        Some(owner) if swarm.cross_request_transfer && members.contains(owner) => owner.clone(),
        _ => swarm.entry.clone(),
    }
}
