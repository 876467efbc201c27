//! Source `002`: agents that work together, as a coordinator team or as a swarm.

mod carry;
mod consult;
mod floor;
mod gate;
mod handover;
mod offers;
pub mod play;
pub mod policy;
mod swarm;
mod talk;

use crate::run::Session;
use crate::scenario::agent::{AgentKind, TeamSpec};
use crate::scenario::name::AgentName;

/// Who starts: the root, or of a swarm its entry. A session's next message starts at the agent that
/// owned the last reply where the swarm says so (`cross_request_transfer`), unless that has left.
pub fn starting(spec: &TeamSpec, session: &Session) -> AgentName {
    let Some(AgentKind::Swarm(swarm)) = spec.agent(&spec.root).map(|root| &root.kind) else {
        return spec.root.clone();
    };
    let left = session.before.rosters.get(&spec.root);
    let members = left.map_or(&*swarm.members, |members| members);
    match &session.before.owner {
        Some(owner) if swarm.cross_request_transfer && members.contains(owner) => owner.clone(),
        _ => swarm.entry.clone(),
    }
}
