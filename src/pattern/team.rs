//! A run of a coordinator team or a swarm (teams source document): its root answers the message of
//! the session.

use std::sync::OnceLock;

use crate::base::name::AgentName;
use crate::log::event::{EventKind, SpanId, StopReason};
use crate::pattern::agents::shared_history::SharedHistory;
use crate::pattern::agents::swarm::Rosters;
use crate::pattern::agents::{AgentAnswer, AgentPosition, AgentRunner};
use crate::pattern::prompting;
use crate::run::{RunContext, Session, SessionMemory};
use crate::scenario::Scenario;
use crate::scenario::patterns::agents::{AgentKind, SwarmLimits};
use crate::scenario::patterns::team::TeamSpec;

/// Runs a team or swarm to its answer.
///
/// # Errors
/// The stop reason, if the run ends without an answer.
pub async fn play(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &TeamSpec,
    rosters: &Rosters,
) -> Result<(), StopReason> {
    let base = prompting::run_conditions(cx, scenario);
    let runner = AgentRunner { cx, scenario, agents: &spec.agents, rosters, base };
    let Some(root) = spec.agent(&spec.root) else { return Err(StopReason::InternalError) };
    let session = cx.session();
    let limits = match &root.kind {
        AgentKind::Swarm(swarm) => swarm.limits,
        AgentKind::Model(_) | AgentKind::Team(_) | AgentKind::Person(_) => SwarmLimits::default(),
    };
    let start = starting_agent(spec, session);
    let history = SharedHistory::new([].into(), &session.memory.history, limits);
    // The session's next message continues from here after any end of the run.
    let leaves = SessionMemoryGuard { cx, rosters, history: &history, owner: OnceLock::new() };
    cx.set_phase(start.to_string());
    let path = spec.root.as_str();
    let place = AgentPosition { span: SpanId::RUN, path, seed_path: path, outer: true };
    let ended = runner.run_agent_on(&history, root, place, &session.text, None, 1, &start).await;
    let AgentAnswer { text, by, end } = ended.map_err(|halt| halt.reason)?;
    let text = text.trim().into();
    let _ = leaves.owner.set(by.clone());
    cx.publish(SpanId::RUN, EventKind::AnswerComposed { text, by: Some(by), end });
    Ok(())
}

/// Saves the state for the session's next message when the run ends.
struct SessionMemoryGuard<'l> {
    cx: &'l RunContext,
    rosters: &'l Rosters,
    history: &'l SharedHistory,
    /// The agent that gave the answer, once there is one.
    owner: OnceLock<AgentName>,
}

impl Drop for SessionMemoryGuard<'_> {
    fn drop(&mut self) {
        let before = &self.cx.session().memory;
        self.cx.session().save(SessionMemory {
            history: self.history.complete_entries(),
            owner: self.owner.get().or(before.owner.as_ref()).cloned(),
            rosters: self.rosters.changed(),
        });
    }
}

/// The agent that starts: the root, or the entry of a swarm. With `cross_request_transfer` the
/// session's next message starts at the agent that gave the last answer, unless it has left the
/// swarm.
pub(in crate::pattern) fn starting_agent(spec: &TeamSpec, session: &Session) -> AgentName {
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
