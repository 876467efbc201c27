//! State of the agents of a run, and the small changes that its fold is made of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::rows::{
    AgentRow, AgentState, Edge, HopCounts, HopKind, HopRow, HopState, LineKind, Root, SwarmRow,
    TranscriptLine,
};
use crate::agents::facts::{HandoffRefusal, LoopGuard, MissingResult};
use crate::agents::plan::AgentsPlan;
use crate::base::name::AgentName;
use crate::event::world::chunked::Chunked;
use crate::event::world::pauses::Pauses;
use crate::event::{Elapsed, Seq, SpanId, StopClass, StopReason};

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
    /// Their number by what they are.
    pub hop_counts: HopCounts,
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
    /// The agent that wrote the answer.
    pub answered_by: Option<AgentName>,
    /// The best text when the run was stopped, and the agent that gave it.
    pub partial: Option<(Arc<str>, AgentName)>,
    /// Failed calls: the answer of the run lacks their results.
    pub missing: Arc<[MissingResult]>,
    /// Whether the answer of any team, nested ones included, lacks the results of failed calls.
    pub incomplete: bool,
    /// The answers of agents that are tool calls written as text: the agent, and how its answer
    /// begins.
    pub written_calls: Vec<(AgentName, String)>,
    /// Open model calls, by their span.
    pub(super) model_calls: BTreeMap<SpanId, OpenModelCall>,
    /// Last error of each open call, by the call's span.
    pub(super) last_errors: BTreeMap<SpanId, Arc<str>>,
    /// The loop guard's counts in each run of a swarm, by the swarm's span.
    pub(super) swarm_counts: BTreeMap<SpanId, SwarmCounts>,
    /// Index of each unfinished hop, by the span of its call.
    pub(super) open: BTreeMap<SpanId, usize>,
    /// Handoffs to agents that have not started yet, by the swarm's span.
    pub(super) pending_handoffs: BTreeMap<SpanId, PendingHandoff>,
}

#[derive(Clone, Debug)]
pub(super) struct PendingHandoff {
    pub(super) message: Option<Arc<str>>,
    pub(super) said: SpanId,
}

/// An open model call: its agent, and the attempt that receives the reply.
#[derive(Clone, Debug)]
pub(super) struct OpenModelCall {
    pub(super) agent: AgentName,
    pub(super) attempt: Option<SpanId>,
}

/// The loop guard's counts in one run of a swarm.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SwarmCounts {
    pub(super) guard: LoopGuard,
    pub(super) rejections: u32,
    pub(super) refused: Option<HandoffRefusal>,
}

impl AgentsFold {
    /// Whether an answer lacks what was to be called.
    pub fn is_degraded(&self) -> bool {
        self.incomplete || !self.written_calls.is_empty()
    }

    /// Adds a hop and counts it; returns its index.
    pub(super) fn add_hop(&mut self, hop: HopRow) -> usize {
        let counts = &mut self.hop_counts;
        let count = match (&hop.state, hop.kind) {
            (HopState::Refused(_), _) => &mut counts.refused,
            (_, HopKind::Start) => &mut counts.starts,
            (_, HopKind::Handoff) => &mut counts.handoffs,
            (_, HopKind::Consult) => &mut counts.consultations,
        };
        *count += 1;
        self.hops.push(hop)
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
            hop_counts: HopCounts::default(),
            edges: Vec::new(),
            roots: Chunked::default(),
            lines: Chunked::default(),
            in_control: None,
            answered_by: None,
            partial: None,
            missing: Arc::default(),
            incomplete: false,
            written_calls: Vec::new(),
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

    pub(super) fn row(&mut self, name: &AgentName) -> Option<&mut AgentRow> {
        self.agents.iter_mut().find(|row| row.name == *name)
    }

    /// Sets or clears the attempt of a model call.
    pub(super) fn set_attempt(&mut self, call: SpanId, attempt: Option<SpanId>) {
        if let Some(say) = self.model_calls.get_mut(&call) {
            say.attempt = attempt;
            let agent = say.agent.clone();
            self.update_speaking(&agent);
        }
    }

    /// Points an agent's row to its latest open attempt: it may have several runs at once.
    pub(super) fn update_speaking(&mut self, agent: &AgentName) {
        let its = self.model_calls.values().filter(|say| say.agent == *agent);
        let latest = its.filter_map(|say| say.attempt).max();
        if let Some(row) = self.row(agent) {
            row.speaking = latest;
        }
    }

    /// Changes the counts of one run of a swarm. The swarm's row shows the run that changed last.
    pub(super) fn update_counts(
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

    pub(super) fn edge(
        &mut self,
        from: Option<&AgentName>,
        to: &AgentName,
        consults: bool,
    ) -> &mut Edge {
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

    pub(super) fn begins(&mut self, name: &AgentName, at: Elapsed) {
        if let Some(row) = self.row(name) {
            row.turns += 1;
            row.running += 1;
            row.since = row.since.or(Some(at));
            row.state = AgentState::Running;
        }
    }

    pub(super) fn over(
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
