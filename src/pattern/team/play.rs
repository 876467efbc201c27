//! The loops of the teams source document: run an agent of any kind to its answer.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;

use super::floor::Floor;
use super::gate::Halt;
use super::starting;
use super::swarm::Running;
use super::talk::{Place, Role, Talk, TeamPlace, Turned};
use crate::event::kind::ChatMessage;
use crate::event::{EventKind, SpanId, StopReason};
use crate::pattern::asked;
use crate::run::{Memory, RunContext};
use crate::scenario::Scenario;
use crate::scenario::agent::{AgentKind, AgentSpec, SwarmLimits, TeamSpec};
use crate::scenario::condition::Shown;
use crate::scenario::name::AgentName;

/// One run of a team.
pub(super) struct Play<'p> {
    pub cx: &'p RunContext,
    pub scenario: &'p Scenario,
    pub spec: &'p TeamSpec,
    /// The values that conditions can read during the whole run.
    pub base: Option<Shown>,
}

/// The answer of an agent.
pub(super) struct Answer {
    pub text: Arc<str>,
    /// The agent that wrote the text.
    pub by: AgentName,
}

/// Runs a team or swarm to its answer.
///
/// # Errors
/// The stop reason, if the run ends without an answer.
pub async fn play(cx: &RunContext, scenario: &Scenario, spec: &TeamSpec) -> Result<(), StopReason> {
    let play = Play { cx, scenario, spec, base: asked::base_of(cx, scenario) };
    let Some(root) = spec.agent(&spec.root) else { return Err(StopReason::InternalError) };
    let session = cx.session();
    let limits = match &root.kind {
        AgentKind::Swarm(swarm) => swarm.limits,
        AgentKind::Model(_) | AgentKind::Team(_) => SwarmLimits::default(),
    };
    let start = starting(spec, session);
    let floor = Floor::new([].into(), &session.before.history, limits);
    // Whatever the end of the run, the session's next message continues from here.
    let leaves = Leaves { cx, floor: &floor, owner: OnceLock::new() };
    cx.at_phase(start.to_string());
    let path = spec.root.as_str();
    let place = Place { span: SpanId::RUN, path, draws: path, outer: true };
    let ended = play.on(&floor, root, place, &session.text, None, 1, &start).await;
    let Answer { text, by } = ended.map_err(|halt| halt.reason)?;
    let text = text.trim().into();
    let _ = leaves.owner.set(by.clone());
    cx.publish(SpanId::RUN, EventKind::AnswerComposed { text, by: Some(by) });
    Ok(())
}

/// Saves the state for the session's next message when the run ends.
struct Leaves<'l> {
    cx: &'l RunContext,
    floor: &'l Floor,
    /// The agent that gave the answer, once there is one.
    owner: OnceLock<AgentName>,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        let before = &self.cx.session().before;
        self.cx.session().leave(Memory {
            history: self.floor.settled(),
            owner: self.owner.get().or(before.owner.as_ref()).cloned(),
            rosters: self.cx.rosters().changed(),
        });
    }
}

impl Play<'_> {
    /// Runs a consulted agent to its answer, with a history of its own.
    pub(super) fn run<'r>(
        &'r self,
        agent: &'r AgentSpec,
        place: Place<'r>,
        request: &'r Arc<str>,
        from: Option<&'r AgentName>,
        turn: u32,
        inherited: Arc<[ChatMessage]>,
    ) -> BoxFuture<'r, Result<Answer, Box<Halt>>> {
        Box::pin(async move {
            let (limits, start) = match &agent.kind {
                AgentKind::Swarm(swarm) => (swarm.limits, &swarm.entry),
                AgentKind::Model(_) | AgentKind::Team(_) => (SwarmLimits::default(), &agent.name),
            };
            let floor = Floor::new(inherited, &[], limits);
            self.on(&floor, agent, place, request, from, turn, start).await
        })
    }

    /// Runs an agent to its answer on this history.
    #[expect(clippy::too_many_arguments, reason = "an agent with its position and its input")]
    async fn on(
        &self,
        floor: &Floor,
        agent: &AgentSpec,
        place: Place<'_>,
        input: &Arc<str>,
        from: Option<&AgentName>,
        turn: u32,
        start: &AgentName,
    ) -> Result<Answer, Box<Halt>> {
        let (model, role) = match &agent.kind {
            AgentKind::Model(model) => (model, Role::Alone),
            AgentKind::Team(team) => (&team.coordinator, Role::Coordinator(team)),
            AgentKind::Swarm(swarm) => {
                let running = Running { name: &agent.name, swarm, place, floor };
                return self.swarm(&running, start, input).await;
            }
        };
        floor.give(&agent.name, None, input);
        let team = TeamPlace { span: place.span, path: place.path };
        let (name, begun) = (&agent.name, false);
        let talk = Talk { name, model, role, place, team, floor, turn, input, from, begun };
        match self.talk(&talk).await? {
            Turned::Answered { text, by } => {
                Ok(Answer { text, by: by.unwrap_or_else(|| agent.name.clone()) })
            }
            Turned::HandedOver { .. } => Err(Halt::of(StopReason::InternalError)),
        }
    }
}
