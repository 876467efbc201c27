//! What agents do, folded from the events, for all patterns that are made of agents: the agent in
//! control, hops and consultations, how they end, the limits of each swarm, and the call and cause
//! of an event.

mod outcome;
mod rows;
mod transcript;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use self::rows::{Edge, Root, SwarmRow};
use self::transcript::{CallResult, call_depth};
use super::chunked::Chunked;
use super::progress::Pauses;
use super::spans::{SpanKind, Spans};
use super::{EventLog, MarkKind, RunFold};
use crate::base::name::AgentName;
use crate::log::event::{
    AnsweredBy, CallStarted, Elapsed, Event, EventKind, FallbackKind, Purpose, Seq, SpanId,
    StopClass, StopReason, result_text,
};
use crate::log::facts::agents::{
    AgentFact, AgentHead, AgentsPlan, HandoffRefusal, LoopGuard, MissingResult,
};

pub use self::rows::{
    AgentRow, AgentState, HopCounts, HopKind, HopRow, HopState, LineKind, MAX_BELOW_ROOT,
    MAX_DEPTH, ResultEnd, TranscriptLine, is_in_tree, root_of,
};
pub use self::transcript::shown_output;

/// State of the agents of a run.
#[derive(Clone, Debug)]
pub struct AgentsFold {
    pub plan: AgentsPlan,
    /// The agents, in the order of the plan.
    pub agents: Vec<AgentRow>,
    /// Every turn of an agent in the order of their start: hops of swarms, consultations of
    /// coordinators, and refused handoffs.
    pub hops: Chunked<HopRow>,
    /// The number of hops of each kind.
    pub hop_counts: HopCounts,
    /// Each pair of agents that passed work, in the order of the first time.
    pub edges: Vec<Edge>,
    /// The outermost calls of hops, consultations and tools in the order of their start: the roots
    /// of the call tree.
    pub roots: Chunked<Root>,
    /// The lines of the transcript that are shown.
    pub lines: Chunked<TranscriptLine>,
    /// The swarms, in the order of the plan.
    pub swarms: Vec<SwarmRow>,
    /// The agent in control: the one that the outermost swarm is at, or the coordinator.
    pub in_control: Option<AgentName>,
    /// The agent that wrote the answer.
    pub answered_by: Option<AgentName>,
    /// Whether the answer is the scenario's for the case that this person does not answer.
    pub is_fallback: bool,
    /// The best text when the run was stopped, and the agent that gave it.
    pub partial: Option<(Arc<str>, AgentName)>,
    /// Failed calls: the answer of the run lacks their results.
    pub missing: Arc<[MissingResult]>,
    /// Whether the answer of any team, nested ones included, lacks the results of failed calls.
    pub incomplete: bool,
    /// The answers of agents that are tool calls written as text: the agent, and how its answer
    /// begins.
    pub written_calls: Vec<(AgentName, String)>,
    pub(crate) model_calls: BTreeMap<SpanId, OpenModelCall>,
    /// Last error of each open call, by the call's span.
    pub(super) last_errors: BTreeMap<SpanId, Arc<str>>,
    /// What the callers of open calls read below the result, by the call's span: a person has changed
    /// the arguments.
    pub(super) changed: BTreeMap<SpanId, Arc<str>>,
    /// Open calls whose person did not answer.
    pub(super) unanswered: BTreeSet<SpanId>,
    /// The loop guard's counts in each run of a swarm, by the swarm's span.
    swarm_counts: BTreeMap<SpanId, SwarmCounts>,
    /// Index of each unfinished hop, by the span of its call.
    pub(crate) open: BTreeMap<SpanId, usize>,
    /// Handoffs to agents that have not started yet, by the swarm's span.
    pending_handoffs: BTreeMap<SpanId, PendingHandoff>,
}

#[derive(Clone, Debug)]
pub(crate) struct PendingHandoff {
    pub(crate) message: Option<Arc<str>>,
    pub(crate) said: SpanId,
}

/// An open model call: its agent, and the attempt that receives the reply.
#[derive(Clone, Debug)]
pub(crate) struct OpenModelCall {
    pub(crate) agent: AgentName,
    pub(crate) attempt: Option<SpanId>,
}

/// The loop guard's counts in one run of a swarm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SwarmCounts {
    pub(crate) guard: LoopGuard,
    pub(crate) rejections: u32,
    pub(crate) refused: Option<HandoffRefusal>,
}

impl AgentsFold {
    /// Whether an answer lacks results of calls, or is a tool call written as text.
    pub fn is_degraded(&self) -> bool {
        self.incomplete || !self.written_calls.is_empty()
    }

    /// Adds a hop and counts it; returns its index.
    pub(crate) fn add_hop(&mut self, hop: HopRow) -> usize {
        let counts = &mut self.hop_counts;
        let count = match (&hop.state, hop.kind) {
            (HopState::Refused(_), _) => &mut counts.refused,
            (_, HopKind::Start | HopKind::Next) => &mut counts.starts,
            (_, HopKind::Handoff) => &mut counts.handoffs,
            (_, HopKind::Consult) => &mut counts.consultations,
        };
        *count += 1;
        self.hops.push(hop)
    }

    /// The state at the start of a run that this message starts.
    pub fn new(plan: AgentsPlan, message: &Arc<str>) -> Self {
        let agents = plan.agents.iter().map(|agent| AgentRow::idle(agent.name.clone()));
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
            is_fallback: false,
            partial: None,
            missing: Arc::default(),
            incomplete: false,
            written_calls: Vec::new(),
            model_calls: BTreeMap::new(),
            last_errors: BTreeMap::new(),
            changed: BTreeMap::new(),
            unanswered: BTreeSet::new(),
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

    /// Adds an agent that no plan names; `false`: there are as many as fit.
    pub(crate) fn add_agent(&mut self, name: &AgentName, most: usize) -> bool {
        if self.agents.len() >= most {
            return false;
        }
        self.agents.push(AgentRow::idle(name.clone()));
        let heads = self.plan.agents.iter().cloned();
        self.plan.agents = heads.chain([AgentHead::unknown(name.clone())]).collect();
        true
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

    pub(crate) fn row(&mut self, name: &AgentName) -> Option<&mut AgentRow> {
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

    pub(crate) fn edge(
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

    pub(crate) fn begins(&mut self, name: &AgentName, at: Elapsed) {
        if let Some(row) = self.row(name) {
            row.turns += 1;
            row.running += 1;
            row.since = row.since.or(Some(at));
            row.state = AgentState::Running;
        }
    }

    pub(crate) fn over(
        &mut self,
        name: &AgentName,
        from: Elapsed,
        at: Elapsed,
        failed: Option<&StopReason>,
        pauses: &Pauses,
    ) {
        let Some(row) = self.row(name).filter(|row| row.running > 0) else { return };
        row.running -= 1;
        row.work_time += at.since(from).saturating_sub(pauses.between(from, at));
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

impl AgentsFold {
    pub(crate) fn fold(&mut self, event: &Event, run: &RunFold) {
        let (spans, pauses) = (&run.spans, run.progress.pauses());
        match &event.kind {
            EventKind::Pattern(_) => {
                if let Some(fact) = AgentFact::of(&event.kind) {
                    self.fold_fact(event, fact, spans);
                }
            }
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
            // This attempt was never made, so the call has no last error now.
            EventKind::AttemptRefused { .. } => {
                self.last_errors.remove(&event.span);
                if let Some(denied) = run.questions.denial_text(event.span) {
                    self.last_errors.insert(event.span, denied);
                }
            }
            EventKind::CallAnswered { .. } => self.ends(event, &CallEnd::Answered, spans, pauses),
            EventKind::CallDegraded { reason, by, value: Some(value), .. } => {
                let ended = CallEnd::Degraded { by: *by, reason, value };
                self.ends(event, &ended, spans, pauses);
            }
            EventKind::CallDegraded { reason, .. } | EventKind::CallFailed { reason, .. } => {
                self.ends(event, &CallEnd::Failed(reason), spans, pauses);
            }
            EventKind::QuestionAnswered(answered) => {
                if let Some(note) = run.questions.changed_text(answered) {
                    self.changed.insert(event.span, note);
                }
                let is_fallback = answered.by == AnsweredBy::Nobody;
                if let Some(attempt) = spans.get(event.span).filter(|_| is_fallback) {
                    self.unanswered.insert(attempt.parent);
                }
                if let Some((agent, text)) = run.questions.turn_of(answered) {
                    let said =
                        if is_fallback { LineKind::Fallback(text) } else { LineKind::Said(text) };
                    self.add_line(event, event.span, &agent.clone(), said, spans);
                }
            }
            EventKind::AnswerComposed { by: Some(by), .. } => {
                self.is_fallback = run.questions.fallback_turns.contains(by);
                self.answered_by = Some(by.clone());
            }
            EventKind::RunClosed(closed) => {
                let failed = (!closed.reason.is_success()).then_some(&closed.reason);
                if let Some(root) = self.plan.root.clone() {
                    self.over(&root, Elapsed(0), event.at, failed, pauses);
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
            AgentFact::RosterChanged { swarm, members, .. } => {
                if let Some(row) = self.swarms.iter_mut().find(|row| row.name == *swarm) {
                    row.members = Arc::clone(members);
                }
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
                self.add_hop(HopRow {
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
                    depth: call_depth(*said, spans),
                    in_control: self.in_control.clone(),
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
            AgentFact::ToolCallWritten { agent, preview, told } => {
                let what = LineKind::Written { told: *told };
                self.add_line(event, event.span, agent, what, spans);
                if !told {
                    self.written_calls.push((agent.clone(), preview.clone()));
                }
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
}

impl AgentsFold {
    pub(crate) fn call(&mut self, event: &Event, call: &CallStarted, spans: &Spans) {
        self.count_in_tree(event.span, call, spans);
        let (team, from, kind) = match &call.purpose {
            Purpose::ModelCall { agent, .. } => {
                self.model_calls
                    .insert(event.span, OpenModelCall { agent: agent.clone(), attempt: None });
                if let Some(row) = self.row(agent) {
                    row.calls += 1;
                    row.last_call = Some(event.span);
                }
                return;
            }
            // The pattern itself calls the agent that answers.
            Purpose::Member { by, .. } if self.plan.agent(by).is_none() => {
                (by, None, HopKind::Start)
            }
            Purpose::Member { by, .. } => (by, Some(by), HopKind::Consult),
            Purpose::SwarmTurn { swarm, from: Some(from), .. } => {
                (swarm, Some(from), HopKind::Handoff)
            }
            Purpose::SwarmTurn { swarm, from: None, .. } => {
                // A swarm starts with new counts each time it is put to work.
                self.update_counts(swarm, call.parent, |limits| *limits = SwarmCounts::default());
                (swarm, None, HopKind::Start)
            }
            _ => return,
        };
        let Some(to) = call.purpose.agent() else { return };
        let passing =
            self.pending_handoffs.remove(&call.parent).filter(|_| kind == HopKind::Handoff);
        let message = match &call.args {
            Some(args) => args.get("request").and_then(Value::as_str).map(Arc::from),
            None => passing.as_ref().and_then(|it| it.message.clone()),
        };
        let said = match &call.purpose {
            Purpose::Member { requested_by: said, .. } => Some(*said),
            _ => passing.map(|it| it.said),
        };
        // A swarm inside a team is consulted by its caller, and starts its first member.
        let nested = kind == HopKind::Start && call.parent != SpanId::RUN;
        let passer = if nested { Some(team) } else { from };
        self.edge(passer, to, nested || kind == HopKind::Consult).count += 1;
        self.begins(to, event.at);
        if kind != HopKind::Consult && call.parent == SpanId::RUN {
            self.in_control = Some(to.clone());
        }
        let row = HopRow {
            at: event.at,
            until: None,
            kind,
            from: from.cloned(),
            to: to.clone(),
            team: team.clone(),
            message,
            context_tokens: None,
            state: HopState::Running,
            span: event.span,
            requested_by: said,
            depth: call_depth(call.parent, spans),
            in_control: self.in_control.clone(),
            seq: event.seq,
        };
        let at = self.add_hop(row);
        self.open.insert(event.span, at);
    }

    pub(crate) fn ends(
        &mut self,
        event: &Event,
        ended: &CallEnd<'_>,
        spans: &Spans,
        pauses: &Pauses,
    ) {
        let last = self.last_errors.remove(&event.span);
        if let Some(say) = self.model_calls.remove(&event.span) {
            self.update_speaking(&say.agent);
            return;
        }
        let purpose = match spans.get(event.span).map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => purpose,
            _ => return,
        };
        if let Some(place) = self.open.remove(&event.span)
            && let Some(row) = self.hops.get_mut(place)
        {
            row.until = Some(event.at);
            match *ended {
                CallEnd::Failed(reason) => row.state = HopState::Failed(reason.clone()),
                CallEnd::Degraded { by, reason, .. } => {
                    row.state = HopState::Degraded { by, reason: reason.clone() };
                }
                CallEnd::Answered if row.state == HopState::Running => row.state = HopState::Done,
                CallEnd::Answered => {}
            }
            let (to, from) = (row.to.clone(), row.at);
            let failed = match ended {
                CallEnd::Answered => None,
                CallEnd::Degraded { reason, .. } | CallEnd::Failed(reason) => Some(*reason),
            };
            self.over(&to, from, event.at, failed, pauses);
        }
        let came = match ended {
            CallEnd::Answered => return,
            CallEnd::Degraded { value, .. } => CallResult::Text(result_text::value_text(value)),
            CallEnd::Failed(reason) => CallResult::Failed(reason, last),
        };
        match (purpose, came) {
            // The fallback for a member of a swarm is the swarm's answer.
            (Purpose::SwarmTurn { agent, .. }, CallResult::Text(text)) if !text.is_empty() => {
                self.add_line(event, event.span, agent, LineKind::Said(text), spans);
            }
            (_, came) => self.add_result(event, event.span, purpose, came, spans),
        }
    }
}

/// How a call ended.
pub(crate) enum CallEnd<'e> {
    Answered,
    Degraded { by: FallbackKind, reason: &'e StopReason, value: &'e Value },
    Failed(&'e StopReason),
}

impl AgentsFold {
    /// What the scrubber marks at a fact of agents.
    pub(crate) fn mark(&self, event: &Event) -> Option<MarkKind> {
        match AgentFact::of(&event.kind)? {
            AgentFact::HandoffMade { to, .. } => Some(MarkKind::Handoff(to.clone())),
            AgentFact::HandoffRefused { .. } => Some(MarkKind::Refused),
            _ => None,
        }
    }

    /// The call that an event is about, if it is not the call of its span.
    pub(crate) fn call_of(&self, event: &Event) -> Option<SpanId> {
        match (&event.kind, AgentFact::of(&event.kind)) {
            (
                _,
                Some(
                    AgentFact::HandoffMade { requested_by, .. }
                    | AgentFact::HandoffRefused { requested_by, .. },
                ),
            ) => Some(*requested_by),
            (EventKind::AnswerComposed { by: Some(by), .. }, _) => self.agent(by)?.last_call,
            _ => None,
        }
    }

    /// The event that caused this one.
    pub(crate) fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match &event.kind {
            EventKind::Pattern(_) => match AgentFact::of(&event.kind)? {
                AgentFact::HandoffMade { requested_by, .. }
                | AgentFact::HandoffRefused { requested_by, .. } => {
                    run.spans.closed_by(*requested_by)
                }
                AgentFact::ToolCallRefused { .. } | AgentFact::ToolCallWritten { .. } => {
                    run.spans.closed_by(event.span)
                }
                AgentFact::AnswerPartial { .. }
                | AgentFact::AnswerIncomplete { .. }
                | AgentFact::RosterChanged { .. } => None,
            },
            EventKind::AnswerComposed { by: Some(by), .. } => {
                run.spans.closed_by(self.agent(by)?.last_call?)
            }
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::SwarmTurn { from: Some(from), .. } => log.last_before(event.seq, &|it| {
                    matches!(
                        AgentFact::of(&it.kind),
                        Some(AgentFact::HandoffMade { from: who, .. }) if who == from
                    )
                }),
                Purpose::ModelCall { .. } | Purpose::SwarmTurn { .. } => {
                    run.spans.opened_by(call.parent)
                }
                Purpose::Member { requested_by, .. } | Purpose::Tool { requested_by, .. } => {
                    run.spans.closed_by(*requested_by)
                }
                _ => None,
            },
            _ => None,
        }
    }
}
