//! The rows of a team's projection: its agents, who passed work to whom, its swarms, its transcript.

use std::sync::Arc;
use std::time::Duration;

use crate::event::kind::{HandoffRefusal, LoopGuard, StandIn, ToolCall};
use crate::event::{Elapsed, Seq, SpanId, StopReason};
use crate::scenario::name::AgentName;

/// An agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    /// Who.
    pub name: AgentName,
    /// How it stands.
    pub state: AgentState,
    /// How often it was put to work.
    pub turns: u32,
    /// Model calls it has made.
    pub calls: u32,
    /// How long it was at work, rests left out, work that still goes on not counted.
    pub dwell: Duration,
    /// Since when it is at work, where it is.
    pub since: Option<Elapsed>,
    /// The attempt of its model call that is out, the latest where it runs more than once at a
    /// time: its live text is there.
    pub speaking: Option<SpanId>,
    /// Its last model call.
    pub said: Option<SpanId>,
    /// Of its runs those that have not ended.
    pub(super) running: u32,
}

/// How an agent stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentState {
    /// It was not asked yet.
    #[default]
    Idle,
    /// At work.
    Running,
    /// It answered, or handed over.
    Done,
    /// Its last run failed.
    Failed,
    /// Its last run was cancelled.
    Cancelled,
}

/// One time that an agent was put to work, or a hand-off that was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct HopRow {
    /// When it began.
    pub at: Elapsed,
    /// When it ended.
    pub until: Option<Elapsed>,
    /// How.
    pub kind: HopKind,
    /// Who passed it on; `None`: the person, or whoever asked the swarm.
    pub from: Option<AgentName>,
    /// To whom.
    pub to: AgentName,
    /// The team or swarm that it happened in.
    pub team: AgentName,
    /// What was said to it: of a hand-off the message, of a consultation the request.
    pub message: Option<Arc<str>>,
    /// Tokens of the first prompt that it was given: the context carried. `None`: not counted.
    pub context: Option<u64>,
    /// How it stands.
    pub state: HopState,
    /// The span of its call; of a refused hand-off that of the model call that asked for it.
    pub span: SpanId,
    /// The model call that asked for it, if one did.
    pub said: Option<SpanId>,
    /// In how many teams it stands, beyond the outermost.
    pub depth: u16,
    /// The fact that it began with.
    pub seq: Seq,
}

/// How an agent was put to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopKind {
    /// A swarm began with it.
    Start,
    /// It was handed over to.
    Handoff,
    /// A coordinator consults it.
    Consult,
}

/// How a hop stands.
#[derive(Clone, Debug, PartialEq)]
pub enum HopState {
    /// At work.
    Running,
    /// It answered.
    Done,
    /// It handed over.
    HandedOver,
    /// It came to nothing, and something stands in for what it would have said.
    Degraded {
        /// What stands in.
        by: StandIn,
        /// Why it came to nothing.
        reason: StopReason,
    },
    /// It came to nothing.
    Failed(StopReason),
    /// The limits refused it.
    Refused(HandoffRefusal),
}

/// How often one agent passed work to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// From whom; `None`: the person. A swarm within a team puts its first member to work.
    pub from: Option<AgentName>,
    /// To whom.
    pub to: AgentName,
    /// Whether control came back: a consultation, not a hand-off.
    pub consults: bool,
    /// How often.
    pub count: u32,
    /// How often it was refused.
    pub refused: u32,
}

/// A swarm.
#[derive(Clone, Debug, PartialEq)]
pub struct SwarmRow {
    /// Which.
    pub name: AgentName,
    /// Its members now.
    pub members: Arc<[AgentName]>,
    /// The span of its run that moved last: it may run more than once at a time.
    pub span: Option<SpanId>,
    /// How its limits stand, in that run of it.
    pub guard: LoopGuard,
    /// Refusals in that run.
    pub rejections: u32,
    /// The last refusal in that run.
    pub refused: Option<HandoffRefusal>,
}

impl SwarmRow {
    /// Hand-offs that were made in that run: its limits count those too that they refused.
    pub fn made(&self) -> u32 {
        self.guard.handoffs.saturating_sub(self.rejections)
    }
}

/// A line of the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// When.
    pub at: Elapsed,
    /// The fact.
    pub seq: Seq,
    /// The span that it belongs to: of what an agent says that of its model call, of what stands in
    /// for that the call of its run.
    pub span: SpanId,
    /// Who; `None`: the person.
    pub author: Option<AgentName>,
    /// In how many teams the author stands, beyond the outermost.
    pub depth: u16,
    /// What.
    pub what: LineKind,
}

/// What a line of the transcript says.
#[derive(Clone, Debug, PartialEq)]
pub enum LineKind {
    /// The person's message.
    Message(Arc<str>),
    /// An agent's text.
    Said(Arc<str>),
    /// A tool, member or hand-off that an agent calls.
    Called(ToolCall),
    /// What the call of a member or tool came to.
    Result {
        /// Which.
        of: Arc<str>,
        /// What the one who called was told; empty where its team shows no prose.
        text: Arc<str>,
        /// Whether it is an answer, not a failure.
        ok: bool,
    },
    /// Control went over.
    HandedOver {
        /// To whom.
        to: AgentName,
        /// With what message.
        message: Option<Arc<str>>,
    },
    /// A hand-off was refused.
    Refused {
        /// To whom.
        to: AgentName,
        /// Why.
        why: HandoffRefusal,
    },
    /// A tool call was not carried out.
    NotCalled {
        /// What was called.
        tool: String,
        /// What the agent was told.
        text: String,
    },
}
