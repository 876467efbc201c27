//! Agents that work together (teams source document): model agents, coordinators and swarms. The
//! patterns team and router use them; a caller does not see which kind an agent is.
//!
//! `agent_run.rs` is the one loop of a model agent: ask, carry out the tool calls
//! (`tool_calls.rs`), until it answers or hands over. `swarm.rs` goes from hop to hop. `policy.rs`
//! has the pure rules: the loop guard, repeated calls, arguments. `shared_history.rs` is what each
//! agent of a team sees: its own words as its own, those of others by their names.
//!
//! A consultation or a hop is a call through the gateway, and its attempt contains the agent's
//! model calls and its members, so the tree of spans is the tree of calls. A session is a chain of
//! runs, one for each message; the head of each log has the session, so each log is complete.

pub mod agent_call;
mod agent_run;
pub mod policy;
pub mod shared_history;
pub mod swarm;
mod tool_calls;

use std::sync::Arc;

use futures::future::BoxFuture;

use self::agent_call::Halt;
use self::policy::Transfer;
use self::shared_history::SharedHistory;
use self::swarm::{Rosters, RunningSwarm};
use crate::base::name::{AgentName, PersonName};
use crate::log::event::{Boundary, ChatMessage, QuestionAnswered, SpanId, StopReason, Subject};
use crate::log::facts::agents::LoopGuard;
use crate::pattern::people::answer_text;
use crate::run::RunContext;
use crate::run::questions::Question;
use crate::scenario::Scenario;
use crate::scenario::cel::CelBindings;
use crate::scenario::patterns::agents::{
    AgentKind, AgentSpec, AgentsSpec, CoordinatorTeam, ModelAgent, Swarm, SwarmLimits,
};
use crate::scenario::people::Otherwise;
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
    /// How the reply with the text ended.
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
    pub path: &'p str,
}

/// One run of an agent.
pub(crate) struct AgentRun<'t> {
    pub name: &'t AgentName,
    pub model: &'t ModelAgent,
    pub role: AgentRole<'t>,
    pub place: AgentPosition<'t>,
    pub team: TeamPosition<'t>,
    pub team_history: &'t SharedHistory,
    /// Turn number of the agent in its team, from 1.
    pub turn: u32,
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
pub(crate) struct ModelReply<'r> {
    pub call: SpanId,
    /// Number of the model call in this run of the agent, from 1.
    pub round: u32,
    /// What the model said besides its calls.
    pub text: &'r Arc<str>,
}

/// A handoff that the limits accepted.
pub(crate) struct AcceptedHandoff {
    pub transfer: Transfer,
    pub guard: LoopGuard,
}

impl AgentRunner<'_> {
    /// Asks a person who has the turn of an agent, inside an attempt of the call of that agent.
    async fn ask_for_turn(
        &self,
        person: &PersonName,
        agent: &AgentName,
        attempt: SpanId,
        request: &Arc<str>,
        hand_over_to: Arc<[AgentName]>,
    ) -> Result<Arc<QuestionAnswered>, Box<Halt>> {
        let question = Question {
            span: attempt,
            inside: attempt,
            by: None,
            why: None,
            subject: Subject::Turn {
                agent: agent.clone(),
                request: Arc::clone(request),
                hand_over_to,
            },
            asking: self.cx.asking(person, Otherwise::Stop),
            rule: None,
        };
        let ended = self.cx.questions().ask(question).await;
        ended.map(|ended| ended.answered).map_err(Halt::by_limit)
    }

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
                AgentKind::Model(_) | AgentKind::Team(_) | AgentKind::Person(_) => {
                    (SwarmLimits::default(), &agent.name)
                }
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
            AgentKind::Person(person) => {
                let answered =
                    self.ask_for_turn(person, &agent.name, place.span, input, [].into()).await?;
                let (text, by) = (answer_text(&answered.answer), agent.name.clone());
                return Ok(AgentAnswer { text, by, end: ReplyEnd::Stop });
            }
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
