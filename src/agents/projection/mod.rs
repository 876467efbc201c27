//! What agents do, folded from the events: the agent in control, consultations, the transcript, and the
//! limits of each swarm.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

mod calls;
mod lines;
mod questions;
mod roots;
mod rows;

pub use self::lines::shown_output;
pub use self::roots::{MAX_BELOW_ROOT, MAX_DEPTH, Root, is_in_tree, root_of};
pub use self::rows::{
    AgentRow, AgentState, Edge, HopKind, HopRow, HopState, LineKind, SwarmRow, TranscriptLine,
};

use self::calls::CallEnd;
use self::lines::depth;
use crate::agents::plan::AgentsPlan;
use crate::base::name::AgentName;
use crate::event::kind::{AgentFact, HandoffRefusal, LoopGuard, MissingResult, PatternFact};
use crate::event::world::chunked::Chunked;
use crate::event::world::pauses::Pauses;
use crate::event::world::spans::Spans;
use crate::event::{Elapsed, Event, EventKind, Seq, SpanId, StopClass, StopReason};

/// State of the agents of a run.
#[derive(Clone, Debug)]
pub struct AgentsFold {
    /// The setup of the agents.
    pub plan: AgentsPlan,
    /// The agents, in the order of the plan.
    pub agents: Vec<AgentRow>,
    /// Every turn of an agent in the order of their start: hops of swarms, consultations of
    /// coordinators, and refused handoffs.
    pub hops: Chunked<HopRow>,
    /// Each pair of agents that passed work, in the order of the first time.
    pub edges: Vec<Edge>,
    /// The outermost calls of hops, consultations and tools in the order of their start: the roots
    /// of the call tree.
    pub roots: Chunked<Root>,
    /// The transcript, as far as it is shown.
    pub lines: Chunked<TranscriptLine>,
    /// The swarms, in the order of the plan.
    pub swarms: Vec<SwarmRow>,
    /// The agent in control: the one that the outermost swarm is at, or the coordinator.
    pub in_control: Option<AgentName>,
    /// The agent whose reply is the answer.
    pub answered_by: Option<AgentName>,
    /// The best text when the run was stopped, and the agent that gave it.
    pub partial: Option<(Arc<str>, AgentName)>,
    /// The failed calls whose results are missing in the run's answer.
    pub missing: Arc<[MissingResult]>,
    /// Whether the answer of any team, nested ones included, lacks the results of failed calls.
    pub incomplete: bool,
    /// Open model calls, by their span.
    model_calls: BTreeMap<SpanId, OpenModelCall>,
    /// Last error of each open call, by the call's span.
    last_errors: BTreeMap<SpanId, Arc<str>>,
    /// The loop guard's counts in each run of a swarm, by the swarm's span.
    swarm_counts: BTreeMap<SpanId, SwarmCounts>,
    /// Index of each unfinished hop, by the span of its call.
    open: BTreeMap<SpanId, usize>,
    /// Handoffs whose target has not started yet, by the swarm's span.
    pending_handoffs: BTreeMap<SpanId, PendingHandoff>,
}

#[derive(Clone, Debug)]
struct PendingHandoff {
    message: Option<Arc<str>>,
    said: SpanId,
}

/// An open model call: its agent, and the attempt that receives the reply.
#[derive(Clone, Debug)]
struct OpenModelCall {
    agent: AgentName,
    attempt: Option<SpanId>,
}

/// The loop guard's counts in one run of a swarm.
#[derive(Clone, Copy, Debug, Default)]
struct SwarmCounts {
    guard: LoopGuard,
    rejections: u32,
    refused: Option<HandoffRefusal>,
}

impl AgentsFold {
    /// Number of hops of this kind, without refused ones.
    pub fn made(&self, kind: HopKind) -> u64 {
        let made = |hop: &&HopRow| hop.kind == kind && !matches!(hop.state, HopState::Refused(_));
        self.hops.iter().filter(made).count() as u64
    }

    /// The state at the start of a run that this message starts.
    pub fn new(plan: AgentsPlan, message: &Arc<str>) -> Self {
        let agents = plan.agents.iter().map(|agent| AgentRow {
            name: agent.name.clone(),
            state: AgentState::Idle,
            turns: 0,
            calls: 0,
            work_time: Duration::ZERO,
            since: None,
            speaking: None,
            last_call: None,
            running: 0,
        });
        let swarms = plan.agents.iter().filter(|agent| agent.swarm.is_some());
        let mut fold = Self {
            agents: agents.collect(),
            swarms: swarms
                .map(|agent| SwarmRow {
                    name: agent.name.clone(),
                    members: agent.members.clone().into(),
                    span: None,
                    guard: LoopGuard::default(),
                    rejections: 0,
                    refused: None,
                })
                .collect(),
            hops: Chunked::default(),
            edges: Vec::new(),
            roots: Chunked::default(),
            lines: Chunked::default(),
            in_control: None,
            answered_by: None,
            partial: None,
            missing: Arc::default(),
            incomplete: false,
            model_calls: BTreeMap::new(),
            last_errors: BTreeMap::new(),
            swarm_counts: BTreeMap::new(),
            open: BTreeMap::new(),
            pending_handoffs: BTreeMap::new(),
            plan,
        };
        fold.lines.push(TranscriptLine {
            at: Elapsed(0),
            seq: Seq(0),
            span: SpanId::RUN,
            author: None,
            depth: 0,
            what: LineKind::Message(Arc::clone(message)),
        });
        if let Some(coordinator) = fold.plan.coordinator().cloned() {
            fold.begins(&coordinator, Elapsed(0));
            fold.in_control = Some(coordinator);
        }
        fold
    }

    /// The agent with this name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentRow> {
        self.agents.iter().find(|row| row.name == *name)
    }

    /// The agents that can be put to work. An outermost swarm is not one of them: its members are.
    pub fn assignable_agents(&self) -> impl Iterator<Item = &AgentRow> {
        let outer = self.outer_swarm().map(|swarm| &swarm.name);
        self.agents.iter().filter(move |row| outer != Some(&row.name))
    }

    /// The swarm with this name.
    pub fn swarm(&self, name: &AgentName) -> Option<&SwarmRow> {
        self.swarms.iter().find(|row| row.name == *name)
    }

    /// The swarm that the user talks to.
    pub fn outer_swarm(&self) -> Option<&SwarmRow> {
        self.swarm(self.plan.root.as_ref()?)
    }

    /// Unfinished hops in the order of their start.
    pub fn running(&self) -> impl Iterator<Item = &HopRow> {
        let mut places: Vec<usize> = self.open.values().copied().collect();
        places.sort_unstable();
        places.into_iter().filter_map(|place| self.hops.get(place))
    }

    /// Processes one event.
    pub(crate) fn fold(&mut self, event: &Event, spans: &Spans, rests: &Pauses) {
        match &event.kind {
            EventKind::Pattern(PatternFact::Agents(fact)) => self.fold_fact(event, fact, spans),
            EventKind::CallStarted(call) => self.call(event, call, spans),
            EventKind::AttemptStarted { parent, .. } => self.set_attempt(*parent, Some(event.span)),
            EventKind::AttemptAnswered(reply) => {
                self.swarm_counts.remove(&event.span);
                self.answered(event, reply, spans);
            }
            EventKind::AttemptFailed(failed) => {
                self.swarm_counts.remove(&event.span);
                let Some(call) = spans.get(event.span).map(|span| span.parent) else { return };
                self.set_attempt(call, None);
                self.last_errors.insert(call, failed.text.as_str().into());
            }
            // It has no error of its own, so the error of the attempt before is no longer the last
            // one.
            EventKind::AttemptRefused { .. } => {
                self.last_errors.remove(&event.span);
            }
            EventKind::CallAnswered { .. } => self.ends(event, &CallEnd::Answered, spans, rests),
            EventKind::CallDegraded { reason, by, value: Some(value), .. } => {
                let ended = CallEnd::Degraded { by: *by, reason, value };
                self.ends(event, &ended, spans, rests);
            }
            EventKind::CallDegraded { reason, .. } | EventKind::CallFailed { reason, .. } => {
                self.ends(event, &CallEnd::Failed(reason), spans, rests);
            }
            EventKind::RosterChanged { swarm, members, .. } => {
                if let Some(row) = self.swarms.iter_mut().find(|row| row.name == *swarm) {
                    row.members = Arc::clone(members);
                }
            }
            EventKind::AnswerComposed { by: Some(by), .. } => self.answered_by = Some(by.clone()),
            EventKind::RunClosed(closed) => {
                let failed = (!closed.reason.is_success()).then_some(&closed.reason);
                if let Some(root) = self.plan.root.clone() {
                    self.over(&root, Elapsed(0), event.at, failed, rests);
                }
            }
            _ => {}
        }
    }

    fn fold_fact(&mut self, event: &Event, fact: &AgentFact, spans: &Spans) {
        match fact {
            AgentFact::HandoffMade { swarm, from, to, message, guard, requested_by: said } => {
                let passing = PendingHandoff { message: message.clone(), said: *said };
                self.pending_handoffs.insert(event.span, passing);
                self.update_counts(swarm, event.span, |limits| limits.guard = *guard);
                let what = LineKind::HandedOver { to: to.clone(), message: message.clone() };
                self.add_line(event, *said, from, what, spans);
            }
            AgentFact::HandoffRefused {
                swarm,
                from,
                to,
                reason: why,
                guard,
                rejections,
                requested_by: said,
            } => {
                self.update_counts(swarm, event.span, |limits| {
                    (limits.guard, limits.rejections) = (*guard, *rejections);
                    limits.refused = Some(*why);
                });
                self.edge(Some(from), to, false).refused += 1;
                self.hops.push(HopRow {
                    at: event.at,
                    until: Some(event.at),
                    kind: HopKind::Handoff,
                    from: Some(from.clone()),
                    to: to.clone(),
                    team: swarm.clone(),
                    message: None,
                    context_tokens: None,
                    state: HopState::Refused(*why),
                    span: *said,
                    requested_by: Some(*said),
                    depth: depth(*said, spans),
                    seq: event.seq,
                });
                self.add_line(
                    event,
                    *said,
                    from,
                    LineKind::Refused { to: to.clone(), why: *why },
                    spans,
                );
            }
            AgentFact::ToolCallRefused { agent, tool, text, .. } => {
                let what = LineKind::NotCalled { tool: tool.clone(), text: text.clone() };
                self.add_line(event, event.span, agent, what, spans);
            }
            AgentFact::AnswerPartial { text, by } if event.span == SpanId::RUN => {
                self.partial = Some((Arc::clone(text), by.clone()));
            }
            AgentFact::AnswerIncomplete { missing } => {
                self.incomplete = true;
                if event.span == SpanId::RUN {
                    self.missing = Arc::clone(missing);
                }
            }
            _ => {}
        }
    }

    fn row(&mut self, name: &AgentName) -> Option<&mut AgentRow> {
        self.agents.iter_mut().find(|row| row.name == *name)
    }

    /// Sets or clears the attempt of a model call.
    fn set_attempt(&mut self, call: SpanId, attempt: Option<SpanId>) {
        if let Some(say) = self.model_calls.get_mut(&call) {
            say.attempt = attempt;
            let agent = say.agent.clone();
            self.update_speaking(&agent);
        }
    }

    /// Points an agent's row to its latest open attempt: it may have several runs at once.
    fn update_speaking(&mut self, agent: &AgentName) {
        let its = self.model_calls.values().filter(|say| say.agent == *agent);
        let latest = its.filter_map(|say| say.attempt).max();
        if let Some(row) = self.row(agent) {
            row.speaking = latest;
        }
    }

    /// Changes the counts of one run of a swarm. The swarm's row shows the run that changed last.
    fn update_counts(
        &mut self,
        swarm: &AgentName,
        span: SpanId,
        change: impl FnOnce(&mut SwarmCounts),
    ) {
        let limits = self.swarm_counts.entry(span).or_default();
        change(limits);
        if let Some(row) = self.swarms.iter_mut().find(|row| row.name == *swarm) {
            row.span = Some(span);
            (row.guard, row.rejections) = (limits.guard, limits.rejections);
            row.refused = limits.refused;
        }
    }

    fn edge(&mut self, from: Option<&AgentName>, to: &AgentName, consults: bool) -> &mut Edge {
        let place = self.edges.iter().position(|edge| {
            edge.from.as_ref() == from && edge.to == *to && edge.is_consultation == consults
        });
        let place = place.unwrap_or_else(|| {
            let (from, to) = (from.cloned(), to.clone());
            self.edges.push(Edge { from, to, is_consultation: consults, count: 0, refused: 0 });
            self.edges.len() - 1
        });
        &mut self.edges[place]
    }

    fn begins(&mut self, name: &AgentName, at: Elapsed) {
        if let Some(row) = self.row(name) {
            row.turns += 1;
            row.running += 1;
            row.since = row.since.or(Some(at));
            row.state = AgentState::Running;
        }
    }

    fn over(
        &mut self,
        name: &AgentName,
        from: Elapsed,
        at: Elapsed,
        failed: Option<&StopReason>,
        rests: &Pauses,
    ) {
        let Some(row) = self.row(name).filter(|row| row.running > 0) else { return };
        row.running -= 1;
        row.work_time += at.since(from).saturating_sub(rests.between(from, at));
        if row.running == 0 {
            row.since = None;
            row.state = match failed.map(StopReason::class) {
                None => AgentState::Done,
                Some(StopClass::Cancelled) => AgentState::Cancelled,
                Some(_) => AgentState::Failed,
            };
        }
    }
}

/// Value of a reply's `finish` if the hop ended with a handoff.
pub const HANDED_OVER: &str = "handoff";
