//! One turn of an agent: its position in the run, its role in its team, its input, and how it
//! ended.

use std::sync::Arc;

use crate::agents::facts::LoopGuard;
use crate::agents::policy::Transfer;
use crate::agents::shared_history::SharedHistory;
use crate::agents::spec::{CoordinatorTeam, ModelAgent, Swarm};
use crate::base::name::AgentName;
use crate::event::SpanId;
use crate::event::kind::ReplyEnd;

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
pub(super) struct ModelReply {
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
