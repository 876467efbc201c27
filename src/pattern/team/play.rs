//! The loops of the teams source document: run an agent of any kind to its answer.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;

use crate::agents::agent_call::Halt;
use crate::agents::agent_run::{AgentPosition, AgentReply, AgentRole, AgentRun, TeamPosition};
use crate::agents::shared_history::SharedHistory;
use crate::agents::spec::{AgentKind, AgentSpec, SwarmLimits, TeamSpec};
use crate::agents::starting::starting_agent;
use crate::agents::swarm::RunningSwarm;
use crate::base::name::AgentName;
use crate::event::kind::ChatMessage;
use crate::event::{EventKind, SpanId, StopReason};
use crate::pattern::prompting;
use crate::run::{RunContext, SessionMemory};
use crate::scenario::Scenario;
use crate::scenario::condition::CelBindings;

/// One run of a team.
pub(crate) struct TeamRun<'p> {
    pub cx: &'p RunContext,
    pub scenario: &'p Scenario,
    pub spec: &'p TeamSpec,
    /// The values that conditions can read during the whole run.
    pub base: Option<CelBindings>,
}

/// The answer of an agent.
pub(crate) struct AgentAnswer {
    pub text: Arc<str>,
    /// The agent that wrote the text.
    pub by: AgentName,
}

/// Runs a team or swarm to its answer.
///
/// # Errors
/// The stop reason, if the run ends without an answer.
pub async fn play(cx: &RunContext, scenario: &Scenario, spec: &TeamSpec) -> Result<(), StopReason> {
    let play = TeamRun { cx, scenario, spec, base: prompting::run_conditions(cx, scenario) };
    let Some(root) = spec.agent(&spec.root) else { return Err(StopReason::InternalError) };
    let session = cx.session();
    let limits = match &root.kind {
        AgentKind::Swarm(swarm) => swarm.limits,
        AgentKind::Model(_) | AgentKind::Team(_) => SwarmLimits::default(),
    };
    let start = starting_agent(spec, session);
    let floor = SharedHistory::new([].into(), &session.memory.history, limits);
    // Whatever the end of the run, the session's next message continues from here.
    let leaves = SessionMemoryGuard { cx, floor: &floor, owner: OnceLock::new() };
    cx.set_phase(start.to_string());
    let path = spec.root.as_str();
    let place = AgentPosition { span: SpanId::RUN, path, seed_path: path, outer: true };
    let ended = play.run_agent_on(&floor, root, place, &session.text, None, 1, &start).await;
    let AgentAnswer { text, by } = ended.map_err(|halt| halt.reason)?;
    let text = text.trim().into();
    let _ = leaves.owner.set(by.clone());
    cx.publish(SpanId::RUN, EventKind::AnswerComposed { text, by: Some(by) });
    Ok(())
}

/// Saves the state for the session's next message when the run ends.
struct SessionMemoryGuard<'l> {
    cx: &'l RunContext,
    floor: &'l SharedHistory,
    /// The agent that gave the answer, once there is one.
    owner: OnceLock<AgentName>,
}

impl Drop for SessionMemoryGuard<'_> {
    fn drop(&mut self) {
        let before = &self.cx.session().memory;
        self.cx.session().save(SessionMemory {
            history: self.floor.complete_entries(),
            owner: self.owner.get().or(before.owner.as_ref()).cloned(),
            rosters: self.cx.rosters().changed(),
        });
    }
}

impl TeamRun<'_> {
    /// Runs a consulted agent to its answer, with a history of its own.
    pub(crate) fn run_consulted<'r>(
        &'r self,
        agent: &'r AgentSpec,
        place: AgentPosition<'r>,
        request: &'r Arc<str>,
        from: Option<&'r AgentName>,
        turn: u32,
        inherited: Arc<[ChatMessage]>,
    ) -> BoxFuture<'r, Result<AgentAnswer, Box<Halt>>> {
        Box::pin(async move {
            let (limits, start) = match &agent.kind {
                AgentKind::Swarm(swarm) => (swarm.limits, &swarm.entry),
                AgentKind::Model(_) | AgentKind::Team(_) => (SwarmLimits::default(), &agent.name),
            };
            let floor = SharedHistory::new(inherited, &[], limits);
            self.run_agent_on(&floor, agent, place, request, from, turn, start).await
        })
    }

    /// Runs an agent to its answer on this history.
    #[expect(clippy::too_many_arguments, reason = "an agent with its position and its input")]
    async fn run_agent_on(
        &self,
        floor: &SharedHistory,
        agent: &AgentSpec,
        place: AgentPosition<'_>,
        input: &Arc<str>,
        from: Option<&AgentName>,
        turn: u32,
        start: &AgentName,
    ) -> Result<AgentAnswer, Box<Halt>> {
        let (model, role) = match &agent.kind {
            AgentKind::Model(model) => (model, AgentRole::Alone),
            AgentKind::Team(team) => (&team.coordinator, AgentRole::Coordinator(team)),
            AgentKind::Swarm(swarm) => {
                let running = RunningSwarm { name: &agent.name, swarm, place, floor };
                return self.run_swarm(&running, start, input).await;
            }
        };
        floor.record_input(&agent.name, None, input);
        let team = TeamPosition { span: place.span, path: place.path };
        let (name, begun) = (&agent.name, false);
        let talk = AgentRun {
            name,
            model,
            role,
            place,
            team,
            team_history: floor,
            turn,
            input,
            from,
            begun,
        };
        match self.run_agent_turn(&talk).await? {
            AgentReply::Answered { text, by } => {
                Ok(AgentAnswer { text, by: by.unwrap_or_else(|| agent.name.clone()) })
            }
            AgentReply::HandedOver { .. } => Err(Halt::by_limit(StopReason::InternalError)),
        }
    }
}
