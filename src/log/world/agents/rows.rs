//! The rows of a team's projection: agents, hops, edges, swarms, transcript, and the positions in the
//! call tree. Those are counted when calls start, so no one has to walk the tree to know its length or
//! the content of a row.

use std::sync::Arc;
use std::time::Duration;

use super::AgentsFold;
use crate::base::name::AgentName;
use crate::log::event::{CallStarted, Elapsed, FallbackKind, Purpose, Seq, SpanId, StopReason};
use crate::log::facts::agents::{HandoffRefusal, LoopGuard};
use crate::log::world::spans::{SpanKind, Spans};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolCall;

/// An agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    pub name: AgentName,
    pub state: AgentState,
    /// How often it was put to work.
    pub turns: u32,
    /// Model calls it has made.
    pub calls: u32,
    /// How long it has worked, without pauses and without unfinished work.
    pub work_time: Duration,
    /// When its current work began, if it is working.
    pub since: Option<Elapsed>,
    /// The attempt of its model call in flight, which has its live text; the latest, if it has
    /// several runs at once.
    pub speaking: Option<SpanId>,
    /// Its last model call.
    pub last_call: Option<SpanId>,
    /// Number of its unfinished runs.
    pub(crate) running: u32,
}

impl AgentRow {
    /// An agent that has not been put to work yet.
    pub(super) fn idle(name: AgentName) -> Self {
        Self {
            name,
            state: AgentState::Idle,
            turns: 0,
            calls: 0,
            work_time: Duration::ZERO,
            since: None,
            speaking: None,
            last_call: None,
            running: 0,
        }
    }
}

/// State of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentState {
    /// It has not been put to work yet.
    #[default]
    Idle,
    /// At work.
    Running,
    /// It replied or handed over.
    Done,
    Failed,
    Cancelled,
}

/// One turn of an agent, or a refused handoff.
#[derive(Clone, Debug, PartialEq)]
pub struct HopRow {
    pub at: Elapsed,
    pub until: Option<Elapsed>,
    /// How the agent was put to work.
    pub kind: HopKind,
    /// The agent that passed the work; `None`: the user, or the caller of the swarm.
    pub from: Option<AgentName>,
    /// The agent that got the work.
    pub to: AgentName,
    /// The team or swarm it happened in.
    pub team: AgentName,
    /// The message of a handoff, or the request of a consultation.
    pub message: Option<Arc<str>>,
    /// Tokens of its first prompt, that is, of the context it got; `None`: not counted.
    pub context_tokens: Option<u64>,
    pub state: HopState,
    /// Span of its call; for a refused handoff, that of the model call that requested it.
    pub span: SpanId,
    /// The model call that requested it, if there is one.
    pub requested_by: Option<SpanId>,
    /// How deep it is nested in teams; 0 in the outermost.
    pub depth: u16,
    /// The agent in control of the run from here on: the coordinator, or the member that the
    /// outermost swarm is at.
    pub in_control: Option<AgentName>,
    pub seq: Seq,
}

/// The number of hops of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounts {
    /// Agents that a swarm, or the run, started with.
    pub starts: u64,
    pub handoffs: u64,
    pub consultations: u64,
    /// Refused handoffs.
    pub refused: u64,
}

/// How an agent is put to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopKind {
    /// A swarm, or the run, starts with it.
    Start,
    /// Another agent hands over to it.
    Handoff,
    /// A coordinator consults it.
    Consult,
    /// Of a watched program: its turn comes after others or at the same time. No agent hands over to it.
    Next,
}

/// State of a hop.
#[derive(Clone, Debug, PartialEq)]
pub enum HopState {
    /// At work.
    Running,
    /// It replied.
    Done,
    HandedOver,
    /// It failed, and a fallback is used for its reply.
    Degraded {
        by: FallbackKind,
        /// Why it failed.
        reason: StopReason,
    },
    Failed(StopReason),
    /// The limits refused it.
    Refused(HandoffRefusal),
}

/// How often one agent passed work to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The agent that passed the work; `None`: the user. A nested swarm itself starts its first
    /// member.
    pub from: Option<AgentName>,
    /// The agent that got the work.
    pub to: AgentName,
    /// Whether control returned: a consultation, not a handoff.
    pub is_consultation: bool,
    pub count: u32,
    pub refused: u32,
}

/// A swarm.
#[derive(Clone, Debug, PartialEq)]
pub struct SwarmRow {
    pub name: AgentName,
    pub members: Arc<[AgentName]>,
    /// Span of its run that changed last; it may have several runs at once.
    pub span: Option<SpanId>,
    /// The counts of the loop guard in that run.
    pub guard: LoopGuard,
    /// Refused handoffs in that run.
    pub rejections: u32,
    pub refused: Option<HandoffRefusal>,
}

impl SwarmRow {
    /// Handoffs made in that run. The loop guard also counts refused ones.
    pub fn made(&self) -> u32 {
        self.guard.handoffs.saturating_sub(self.rejections)
    }
}

/// A line of the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptLine {
    pub at: Elapsed,
    pub seq: Seq,
    /// The span it belongs to: the model call of a reply, or the agent's call if a fallback is used
    /// for the reply.
    pub span: SpanId,
    /// The agent; `None`: the user.
    pub author: Option<AgentName>,
    /// How deep the author is nested in teams; 0 in the outermost.
    pub depth: u16,
    /// Content of the line.
    pub what: LineKind,
}

/// How the call of a member or a tool ended for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultEnd {
    /// With a result or a fallback value.
    Answered,
    /// A person was asked and did not answer: it is the scenario's answer for that case.
    Unanswered,
    Failed,
    /// A person or a rule did not approve it.
    Denied,
    /// The caller was cancelled as well.
    Cancelled,
}

/// Content of a line of the transcript.
#[derive(Clone, Debug, PartialEq)]
pub enum LineKind {
    /// The user's message.
    Message(Arc<str>),
    /// The text of an agent's reply.
    Said(Arc<str>),
    /// The scenario's answer for a person who had the turn of an agent and did not answer.
    Fallback(Arc<str>),
    /// The reply before was not whole.
    Cut {
        end: ReplyEnd,
        /// The number of its calls, which are not made.
        calls: usize,
    },
    /// A call of a tool or member that an agent makes.
    Called(ToolCall),
    /// The result of a call of a member or tool.
    Result {
        /// Name of the member or tool.
        of: Arc<str>,
        /// The text that the caller got; empty if the caller's team hides text.
        text: Arc<str>,
        /// How the call ended.
        end: ResultEnd,
    },
    /// A handoff was made.
    HandedOver {
        /// The agent that took over.
        to: AgentName,
        message: Option<Arc<str>>,
    },
    /// A handoff was refused.
    Refused {
        /// The agent that would have taken over.
        to: AgentName,
        why: HandoffRefusal,
    },
    /// A tool call was not carried out.
    NotCalled {
        /// Name of the tool, as the model gave it.
        tool: String,
        /// The text that the agent got.
        text: String,
    },
    /// The agent's whole reply was a tool call written as text.
    Written {
        /// Whether its model received a message about it and was called again.
        told: bool,
    },
}

/// A root of the call tree: a call outside of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Span of the call.
    pub span: SpanId,
    /// Number of calls below the earlier roots.
    pub above: u64,
    /// Number of calls below this one, down to
    /// [`MAX_DEPTH`](crate::log::world::agents::rows::MAX_DEPTH) levels; one more than
    /// [`MAX_BELOW_ROOT`](crate::log::world::agents::rows::MAX_BELOW_ROOT) means more than those.
    pub within: u32,
}

/// Most calls in the tree below one root.
pub const MAX_BELOW_ROOT: u32 = 2_000;

/// Most levels of the call tree. Runs never get so deep, but a file may have anything.
pub const MAX_DEPTH: u16 = 64;

/// Whether a call is part of the call tree: that of a member, a hop or a tool, not of a model.
pub fn is_in_tree(what: &SpanKind) -> bool {
    matches!(
        what,
        SpanKind::Call(Purpose::Member { .. } | Purpose::SwarmTurn { .. } | Purpose::Tool { .. })
    )
}

/// The root above a call of the tree: each call belongs to an attempt of the call above it.
pub fn root_of(call: SpanId, spans: &Spans) -> Option<SpanId> {
    let mut at = spans.get(call)?;
    for _ in 0..=MAX_DEPTH {
        if !is_in_tree(&at.kind) {
            return None;
        }
        if at.parent == SpanId::RUN {
            return Some(at.id);
        }
        let attempt = spans.get(at.parent)?;
        if !matches!(attempt.kind, SpanKind::Attempt(_)) {
            return None;
        }
        at = spans.get(attempt.parent)?;
    }
    None
}

impl AgentsFold {
    /// Adds a call to the counts of the call tree.
    pub(super) fn count_in_tree(&mut self, span: SpanId, call: &CallStarted, spans: &Spans) {
        if call.purpose.agent().is_none() || matches!(call.purpose, Purpose::ModelCall { .. }) {
            return;
        }
        if call.parent == SpanId::RUN {
            let above = self.roots.last().map_or(0, |last| last.above + u64::from(last.within));
            self.roots.push(Root { span, above, within: 0 });
            return;
        }
        let Some(place) = root_of(span, spans).and_then(|root| self.root_at(root, spans)) else {
            return;
        };
        match self.roots.get_mut(place) {
            Some(root) if root.within <= MAX_BELOW_ROOT => root.within += 1,
            _ => return,
        }
        // Only roots that started while this one ran come after it.
        for below in place + 1..self.roots.len() {
            if let Some(root) = self.roots.get_mut(below) {
                root.above += 1;
            }
        }
    }

    /// Index of a call among the roots, which are in the order of their first events.
    pub fn root_at(&self, span: SpanId, spans: &Spans) -> Option<usize> {
        let wanted = spans.get(span)?.opened_by;
        let began = |place: usize| spans.get(self.roots.get(place)?.span).map(|it| it.opened_by);
        let (mut low, mut high) = (0, self.roots.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if began(middle)? < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.roots.get(low).is_some_and(|root| root.span == span).then_some(low)
    }
}
