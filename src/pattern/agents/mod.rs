//! Agents that work together (teams source document): model agents, coordinators and swarms. The
//! pattern team starts them; a pattern that needs agents of its own uses the same ones.
//!
//! As in the folder of a pattern, the name of a file says its layer: `spec` and `file` what a
//! scenario says, `facts`, `plan`, `projection`, `outcome` and `policy` what happened and the rules, `words`
//! events in words, all other files the loop.
//!
//! What the agents of a run share, and what they answer. The methods in the other files of this folder
//! call one another: an agent that consults a member runs that member in the same way.
//!
//! One turn of an agent: its position in the run, its role in its team, its input, and how it
//! ended.
//!
//! Runs an agent of any kind to its answer: a model agent, a coordinator team or a swarm.

pub mod agent_call;
mod agent_run;
pub mod boundary;
pub mod file;
pub mod policy;
pub mod script;
pub mod shared_history;
pub mod spec;
pub mod swarm;
pub mod table;
mod tool_calls;

use std::sync::Arc;

use futures::future::BoxFuture;

use self::agent_call::Halt;
use self::policy::Transfer;
use self::shared_history::SharedHistory;
use self::spec::{
    AgentKind, AgentSpec, AgentsSpec, CoordinatorTeam, ModelAgent, Swarm, SwarmLimits,
};
use self::swarm::{Rosters, RunningSwarm};
use crate::base::name::AgentName;
use crate::log::event::kind::ChatMessage;
use crate::log::event::{Boundary, SpanId, StopReason};
use crate::log::facts::agents::LoopGuard;
use crate::run::RunContext;
use crate::scenario::Scenario;
use crate::scenario::cel::CelBindings;
use crate::scenario::spec::script::ReplyEnd;

/// What the agents of a run share.
pub(crate) struct AgentRunner<'p> {
    pub cx: &'p RunContext,
    pub scenario: &'p Scenario,
    pub agents: &'p AgentsSpec,
    /// The members of each swarm now.
    pub rosters: &'p Rosters,
    /// The values that conditions can read during the whole run.
    pub base: Option<CelBindings>,
}

/// The answer of an agent.
pub(crate) struct AgentAnswer {
    pub text: Arc<str>,
    /// The agent that wrote the text.
    pub by: AgentName,
    /// How the reply ended that the text is from.
    pub end: ReplyEnd,
}

impl AgentRunner<'_> {
    /// Waits at a boundary. A run that is over is ended from outside, so this never returns then
    /// and no agent reports a failure.
    pub async fn wait_at_boundary(&self, at: Boundary) {
        if self.cx.boundary(at).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The position of a running agent in the run.
pub(crate) struct AgentPosition<'p> {
    /// The parent span of its calls.
    pub span: SpanId,
    /// Its path: `pm`, `pm/dev_team.1`.
    pub path: &'p str,
    /// The path with the attempts around it; seeds the random numbers.
    pub seed_path: &'p str,
    /// Whether the user talks to this agent directly.
    pub outer: bool,
}

/// The position of a team in the run.
#[derive(Clone, Copy)]
pub(crate) struct TeamPosition<'p> {
    /// The span of the team's own events.
    pub span: SpanId,
    /// Path of the team.
    pub path: &'p str,
}

/// One run of an agent.
pub(crate) struct AgentRun<'t> {
    pub name: &'t AgentName,
    pub model: &'t ModelAgent,
    pub role: AgentRole<'t>,
    pub place: AgentPosition<'t>,
    /// Position of its team.
    pub team: TeamPosition<'t>,
    pub team_history: &'t SharedHistory,
    /// Turn number of the agent in its team, from 1.
    pub turn: u32,
    /// The input of this run.
    pub input: &'t Arc<str>,
    /// The agent that gave the input; `None` for the user or the team.
    pub from: Option<&'t AgentName>,
    /// A boundary (a handoff) was already passed before the first call.
    pub begun: bool,
}

/// What an agent can do besides calling its tools.
#[derive(Clone, Copy)]
pub(crate) enum AgentRole<'t> {
    /// Nothing more.
    Alone,
    /// Consult members.
    Coordinator(&'t CoordinatorTeam),
    /// Hand over to other members.
    Member(&'t AgentName, &'t Swarm),
}

/// How an agent's run ended without an error.
pub(crate) enum AgentReply {
    /// The agent answered. `by`: the member whose reply became the answer, if it was one.
    Answered { text: Arc<str>, by: Option<AgentName>, end: ReplyEnd },
    /// The agent handed over.
    HandedOver { handed: AcceptedHandoff, said: SpanId },
}

/// A reply of an agent's model.
#[derive(Clone, Copy)]
pub(crate) struct ModelReply {
    /// Span of the model call.
    pub call: SpanId,
    /// Number of the model call in this run of the agent, from 1.
    pub round: u32,
}

/// A handoff that the limits accepted.
pub(crate) struct AcceptedHandoff {
    pub transfer: Transfer,
    pub guard: LoopGuard,
}

impl AgentRunner<'_> {
    /// Runs an agent that another agent or the pattern calls, until it answers. It has its own
    /// history.
    pub(super) fn run_consulted<'r>(
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
            let history = SharedHistory::new(inherited, &[], limits);
            self.run_agent_on(&history, agent, place, request, from, turn, start).await
        })
    }

    /// Runs an agent to its answer on this history.
    #[expect(clippy::too_many_arguments, reason = "an agent with its position and its input")]
    pub(super) async fn run_agent_on(
        &self,
        history: &SharedHistory,
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
                let running = RunningSwarm { name: &agent.name, swarm, place, history };
                return self.run_swarm(&running, start, input).await;
            }
        };
        history.record_input(&agent.name, None, input);
        let team = TeamPosition { span: place.span, path: place.path };
        let (name, begun) = (&agent.name, false);
        let run = AgentRun {
            name,
            model,
            role,
            place,
            team,
            team_history: history,
            turn,
            input,
            from,
            begun,
        };
        match self.run_agent_turn(&run).await? {
            AgentReply::Answered { text, by, end } => {
                Ok(AgentAnswer { text, by: by.unwrap_or_else(|| agent.name.clone()), end })
            }
            AgentReply::HandedOver { .. } => Err(Halt::by_limit(StopReason::InternalError)),
        }
    }
}
