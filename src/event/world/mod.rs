//! The only fold of a log: every screen, result and export shows its state. [`World::apply`] is
//! total: any event in any order, as a file may have them, changes something or nothing, and never
//! fails.
//!
//! This module has what all patterns share; each pattern has its own projection in its own module.

pub mod activity;
pub mod alerts;
mod back_off;
pub mod chunked;
mod last_errors;
pub mod latency;
pub mod models;
pub(crate) mod outcome;
pub mod pauses;
mod refusals;
pub mod spans;
mod spending;
mod stop_cause;
pub mod tools;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use crate::agents::projection::Team;
pub use crate::pattern::collaboration::projection::Collaboration;
pub use crate::pattern::orchestrator::projection::Orchestrator;
pub use crate::pattern::research::projection::Research;
pub use crate::pattern::resilience::projection::Resilience;
pub use activity::Activity;
pub use alerts::Alerts;
pub use models::ModelsByCaller;
pub use outcome::{Outcome, SessionOutcome};
pub use pauses::Pauses;
pub use spans::{Span, SpanKind, SpanState, Spans};
pub use spending::SpendingUsed;
pub use tools::Tools;

use last_errors::LastErrors;
use refusals::Refusals;
use spending::SpendingTally;

use super::kind::{
    BreakerStage, BudgetReached, CallStarted, CollaborationPlan, Initiator, OrchestratorPlan,
    PatternPlan, Purpose, ResearchPlan, ResiliencePlan, RunClosed, RunStarted, SourceNo,
    SourceOutcome, StepSize, TeamPlan, Usage,
};
use super::{BoundaryId, Elapsed, Event, EventKind, Seq, SpanId, StopReason};
use crate::base::name::{AgentName, FlagName, ToolName};
use crate::scenario::spec::price::Price;

/// Most marks for the scrubber; further ones are counted in [`World::marks_left_out`].
const MARKS: usize = 2048;

/// State of a run after the events so far.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The setup of the run; `None` before the first event.
    pub head: Option<Arc<RunStarted>>,
    /// Whether the run is running, paused or closed.
    pub stage: RunState,
    /// The tree of spans.
    pub spans: Spans,
    /// Counts.
    pub tally: Tally,
    spending: SpendingTally,
    /// The flags, in the scenario's order.
    pub flags: Vec<FlagNow>,
    /// Moments to mark on the scrubber, in order.
    pub marks: Vec<ScrubberMark>,
    /// Number of marks that were not kept.
    pub marks_not_kept: u64,
    /// Number of events over time.
    pub activity: Activity,
    /// The tools behind the gateway.
    pub tools: Tools,
    /// Alerts to the operator.
    pub alerts: Alerts,
    /// The models of a run that uses more than one.
    pub models: ModelsByCaller,
    last_errors: LastErrors,
    refusals: Refusals,
    /// The call that was not made because it would exceed the budget.
    budget_reached: Option<BudgetReached>,
    /// The pattern's own projection.
    pub pattern: PatternWorld,
    /// The answer, once it is composed.
    pub answer: Option<Arc<str>>,
    /// Whether the last step was one to the next round, where the run will pause.
    pub pauses_at_next_round: bool,
    /// Boundaries at which the run will pause.
    pub breakpoints: BTreeSet<BoundaryId>,
    /// How the run ended, once it has.
    pub closed: Option<Arc<RunClosed>>,
    /// Time of the last event.
    pub at: Elapsed,
    /// Sequence number of the next event.
    pub next: Seq,
    pauses: Duration,
    pause_list: Pauses,
    back_off: back_off::BackOff,
}

/// The projection of the run's pattern.
#[derive(Clone, Debug, Default)]
pub enum PatternWorld {
    /// No head yet.
    #[default]
    None,
    /// A collaboration.
    Collaboration(Collaboration),
    /// An orchestrator.
    Orchestrator(Orchestrator),
    /// A team or swarm.
    Team(Team),
    /// A resilience run.
    Resilience(Resilience),
    /// A research run.
    Research(Box<Research>),
}

/// Whether a run is running, paused or closed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RunState {
    /// No event yet.
    #[default]
    Empty,
    /// Running.
    Running,
    /// A pause was requested; active branches finish first.
    Pausing {
        /// Who requested it.
        by: Initiator,
    },
    /// Every branch waits at a boundary.
    Paused {
        /// The boundaries; the first one resumes first.
        at: Vec<BoundaryId>,
        /// When the pause began.
        since: Elapsed,
    },
    /// Ended; [`World::closed`] says how.
    Closed,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events.
    pub events: u64,
    /// Calls started.
    pub calls: u64,
    /// Calls with a reply or result.
    pub answered: u64,
    /// Calls without a result.
    pub failed: u64,
    /// Calls with a fallback or an omitted result.
    pub degraded: u64,
    /// Calls that were cancelled because the run stopped.
    pub cancelled: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Attempts after the first of their call.
    pub retries: u64,
    /// Attempts that policy refused before the tool was called.
    pub refused: u64,
    /// Calls that wait for their next attempt now.
    pub retrying: u64,
    /// Tokens of the replies, counted or estimated.
    pub usage: Usage,
    /// Replies whose tokens are estimated because the endpoint did not count them.
    pub estimated: u64,
    /// Replies whose tokens are unknown; only in logs of earlier versions.
    pub uncounted: u64,
    /// Events of kinds that this version does not know.
    pub unknown: u64,
}

impl Tally {
    /// Number of open calls.
    pub fn open(&self) -> u64 {
        let over = self.answered + self.failed + self.degraded + self.cancelled;
        self.calls.saturating_sub(over)
    }
}

/// A flag and its current position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagNow {
    /// Name of the flag.
    pub name: FlagName,
    /// What the flag does, for display.
    pub label: String,
    /// The current position.
    pub on: bool,
    /// The position at the start.
    pub at_start: bool,
    /// The last change: its time, its boundary, and who made it.
    pub changed: Option<(Elapsed, BoundaryId, Initiator)>,
}

/// A moment to mark on the scrubber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubberMark {
    /// Time of the event.
    pub at: Elapsed,
    /// The event.
    pub seq: Seq,
    /// What to mark.
    pub what: MarkKind,
}

/// The meaning of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A round started.
    Round(u32),
    /// The answer is being composed.
    Finalize,
    /// A flag was switched.
    Flag(FlagName, bool),
    /// An agent of a swarm took over.
    Handoff(AgentName),
    /// The root agent consults another agent.
    Consulted(AgentName),
    /// A source's page was read.
    Page(SourceNo),
    /// A call is retried.
    Retry,
    /// A tool's breaker changed its state.
    Breaker(ToolName, BreakerStage),
    /// A fault was injected into a tool (`true`) or removed.
    Fault(ToolName, bool),
    /// The run was paused.
    Paused,
    /// A handoff was refused by the limits of a swarm, or a source by an allowlist.
    Refused,
    /// A call or a contribution failed.
    Failed,
    /// The run ended.
    Closed,
}

impl World {
    /// The state before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// The state after these events.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut world = Self::new();
        for event in events {
            world.apply(event);
        }
        world
    }

    /// Processes one event.
    pub fn apply(&mut self, event: &Event) {
        self.tally.events += 1;
        self.at = self.at.max(event.at);
        self.next = self.next.max(Seq(event.seq.0.saturating_add(1)));
        self.activity.count(event.at);
        self.spans.apply(event);
        self.back_off.apply(event, &self.spans);
        self.tally.retrying = self.back_off.len();
        match &event.kind {
            EventKind::RunStarted(head) => {
                if self.head.is_some() {
                    return;
                }
                if self.closed.is_none() {
                    self.stage = RunState::Running;
                }
                self.flags = head
                    .flags
                    .iter()
                    .map(|flag| FlagNow {
                        name: flag.name.clone(),
                        label: flag.label.clone(),
                        on: flag.on,
                        at_start: flag.on,
                        changed: None,
                    })
                    .collect();
                self.spending.set_models(&head.model_prices);
                self.tools.begin(&head.tools);
                self.alerts.begin(head.alerts);
                self.pattern = match &head.plan {
                    PatternPlan::Collaboration(_) => {
                        PatternWorld::Collaboration(Collaboration::default())
                    }
                    PatternPlan::Orchestrator(plan) => {
                        PatternWorld::Orchestrator(Orchestrator::new(plan))
                    }
                    PatternPlan::Team(plan) | PatternPlan::Swarm(plan) => {
                        PatternWorld::Team(Team::new(plan))
                    }
                    PatternPlan::Resilience(plan) => {
                        PatternWorld::Resilience(Resilience::new(plan))
                    }
                    PatternPlan::Research(_) => PatternWorld::Research(Box::default()),
                };
                self.head = Some(Arc::clone(head));
            }
            EventKind::RunClosed(closed) => {
                if let RunState::Paused { since, .. } = self.stage {
                    self.pause_list.add(since, event.at);
                }
                self.stage = RunState::Closed;
                self.pauses_at_next_round = false;
                self.closed = Some(Arc::new((**closed).clone()));
                self.pauses = Duration::from_millis(closed.paused_ms);
                self.mark(event, MarkKind::Closed);
            }
            EventKind::Pausing { by } => self.set_stage(RunState::Pausing { by: *by }),
            EventKind::Paused { at } => {
                self.pauses_at_next_round = false;
                let since = match self.stage {
                    // One more branch has arrived: the pause began earlier.
                    RunState::Paused { since, .. } => since,
                    _ => {
                        self.mark(event, MarkKind::Paused);
                        event.at
                    }
                };
                self.set_stage(RunState::Paused { at: at.clone(), since });
            }
            EventKind::Resumed { paused_ms, .. } => {
                self.add_pause(event.at, *paused_ms);
                self.pauses_at_next_round = false;
                self.set_stage(RunState::Running);
            }
            EventKind::Stepped { paused_ms, step, .. } => {
                self.add_pause(event.at, *paused_ms);
                self.pauses_at_next_round = matches!(step, StepSize::Round);
                self.set_stage(match step {
                    StepSize::Boundary => RunState::Pausing { by: Initiator::You },
                    StepSize::Round => RunState::Running,
                });
            }
            EventKind::FlagChanged { flag, on, by, boundary } => {
                if let Some(row) = self.flags.iter_mut().find(|row| row.name == *flag) {
                    row.on = *on;
                    row.changed = Some((event.at, boundary.clone(), *by));
                }
                self.mark(event, MarkKind::Flag(flag.clone(), *on));
            }
            EventKind::BreakpointChanged { at, set: true } => {
                self.breakpoints.insert(at.clone());
            }
            EventKind::BreakpointChanged { at, set: false } => {
                self.breakpoints.remove(at);
            }
            EventKind::RoundStarted { round, .. } => self.mark(event, MarkKind::Round(*round)),
            EventKind::ContributionRefused { .. } => self.mark(event, MarkKind::Failed),
            EventKind::HandoffMade { to, .. } => self.mark(event, MarkKind::Handoff(to.clone())),
            EventKind::PageRead(page) => self.mark(event, MarkKind::Page(page.source)),
            EventKind::SourceClosed(came) if matches!(**came, SourceOutcome::Denied { .. }) => {
                self.mark(event, MarkKind::Refused);
            }
            EventKind::SourceClosed(came) if matches!(**came, SourceOutcome::Skipped { .. }) => {
                self.mark(event, MarkKind::Failed);
            }
            EventKind::HandoffRefused { .. } => self.mark(event, MarkKind::Refused),
            EventKind::BudgetReached(reached) => {
                self.budget_reached = Some(*reached);
                self.mark(event, MarkKind::Failed);
            }
            EventKind::AnswerComposed { text, .. } => self.answer = Some(Arc::clone(text)),
            EventKind::CallStarted(call) => {
                self.tally.calls += 1;
                self.spending.call_started(event.span, call.model.as_deref());
                self.models.record(call);
                self.mark_call(event, call);
            }
            EventKind::CallAnswered { .. } => self.tally.answered += 1,
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.tally.cancelled += 1;
            }
            EventKind::CallFailed { .. } => {
                self.tally.failed += 1;
                self.mark(event, MarkKind::Failed);
            }
            EventKind::CallDegraded { .. } => self.tally.degraded += 1,
            EventKind::AttemptRefused { .. } => self.tally.refused += 1,
            EventKind::PlanRefused { .. }
            | EventKind::TaskFailed { .. }
            | EventKind::NoteRefused(_)
            | EventKind::AnswerRefused(_) => {
                self.mark(event, MarkKind::Failed);
            }
            EventKind::BreakerChanged { tool, to, .. } => {
                self.mark(event, MarkKind::Breaker(tool.clone(), *to));
            }
            EventKind::FaultInjected { tool, .. } => {
                self.mark(event, MarkKind::Fault(tool.clone(), true));
            }
            EventKind::FaultRemoved { tool, .. } => {
                self.mark(event, MarkKind::Fault(tool.clone(), false));
            }
            EventKind::CallRetried { .. } => {
                self.tally.retries += 1;
                self.mark(event, MarkKind::Retry);
            }
            EventKind::AttemptStarted { .. } => self.tally.attempts += 1,
            EventKind::AttemptAnswered(reply)
                if reply.result.is_some() || !self.is_model_attempt(event.span) => {}
            EventKind::AttemptAnswered(reply) => match reply.usage {
                Some(usage) => {
                    self.tally.usage.add(usage);
                    self.tally.estimated += u64::from(reply.estimated);
                    self.spending.add_usage(self.spans.get(event.span).map(|it| it.parent), usage);
                }
                None => self.tally.uncounted += 1,
            },
            // The request is repeated without a parameter: nothing has failed.
            EventKind::AttemptFailed(failed) if failed.adapted.is_some() => {}
            EventKind::AttemptFailed(failed) => {
                self.tally.failed_attempts += 1;
                if let Some(usage) = failed.usage {
                    self.tally.usage.add(usage);
                    self.tally.estimated += 1;
                    self.spending.add_usage(self.spans.get(event.span).map(|it| it.parent), usage);
                }
            }
            EventKind::Unknown { .. } => self.tally.unknown += 1,
            _ => {}
        }
        if event.kind.closes() {
            self.spending.span_ended(event.span);
        }
        self.tools.apply(event, &self.spans, &self.pause_list);
        self.alerts.apply(event, &self.tools, &self.spans);
        if let EventKind::AttemptAnswered(_) = &event.kind {
            for used in self.spending_used() {
                self.alerts.check_spending(event, used);
            }
        }
        self.last_errors.apply(event, &self.spans);
        self.refusals.apply(event, &self.spans);
        match &mut self.pattern {
            PatternWorld::None => {}
            PatternWorld::Orchestrator(orchestrator) => orchestrator.apply(event, &self.spans),
            PatternWorld::Resilience(resilience) => resilience.apply(event),
            PatternWorld::Research(research) => research.apply(event, &self.spans),
            PatternWorld::Team(team) => team.apply(event, &self.spans, &self.pause_list),
            PatternWorld::Collaboration(collaboration) => {
                collaboration.apply(event, &self.spans);
            }
        }
    }

    /// Forgets ended calls of endless kinds that closed before this event; the outcome stays the
    /// same. A host that follows an endless run calls this now and then, with an event some way
    /// back, because screens still show calls that have just ended.
    pub fn forget_before(&mut self, fact: Seq) {
        self.spans.forget_before(fact);
    }

    /// Time that the run has been active until `now`, without pauses: `max_seconds` limits it.
    pub fn active(&self, now: Elapsed) -> Duration {
        if let Some(closed) = &self.closed {
            return Duration::from_millis(closed.elapsed_ms);
        }
        let standing = match &self.stage {
            RunState::Paused { since, .. } => now.since(*since),
            _ => Duration::ZERO,
        };
        now.duration().saturating_sub(self.pauses).saturating_sub(standing)
    }

    /// Time between two moments, without the pauses between them.
    pub fn active_between(&self, from: Elapsed, until: Elapsed) -> Duration {
        let standing = match &self.stage {
            RunState::Paused { since, .. } => until.since((*since).max(from)),
            _ => Duration::ZERO,
        };
        until
            .since(from)
            .saturating_sub(self.pause_list.between(from, until))
            .saturating_sub(standing)
    }

    /// The run resumes at `until` after a pause of `paused_ms`.
    fn add_pause(&mut self, until: Elapsed, paused_ms: u64) {
        self.pauses = self.pauses.saturating_add(Duration::from_millis(paused_ms));
        let from = until.0.saturating_sub(paused_ms.saturating_mul(1_000));
        self.pause_list.add(Elapsed(from), until);
    }

    /// How much of each spending limit the run has used.
    pub fn spending_used(&self) -> Vec<SpendingUsed> {
        let limits = self.head.as_ref().map(|head| head.spending).unwrap_or_default();
        let tokens = limits
            .max_total_tokens
            .map(|limit| SpendingUsed::Tokens { used: self.tally.usage.total(), limit });
        let cost = limits
            .max_cost_usd
            .and_then(|limit| Some(SpendingUsed::Cost { used: self.cost_usd()?, limit }));
        tokens.into_iter().chain(cost).collect()
    }

    /// Estimated cost of the run so far in US dollars; `None` if a model that it may use has no
    /// price, or the tokens of a reply are unknown.
    pub fn cost_usd(&self) -> Option<f64> {
        let head = self.head.as_ref()?;
        if self.tally.uncounted > 0 {
            return None;
        }
        match head.prices {
            Some(prices) => Some(Price::from(prices).cost(&self.tally.usage)),
            None => self.spending.cost(),
        }
    }

    /// Whether the run has started and is not closed.
    pub fn is_live(&self) -> bool {
        !matches!(self.stage, RunState::Empty | RunState::Closed)
    }

    /// Projection and plan of a collaboration; `None` for other patterns.
    pub fn collaboration(&self) -> Option<(&Collaboration, &CollaborationPlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (PatternWorld::Collaboration(world), Some(PatternPlan::Collaboration(plan))) => {
                Some((world, plan))
            }
            _ => None,
        }
    }

    /// Projection and plan of an orchestrator; `None` for other patterns.
    pub fn orchestrator(&self) -> Option<(&Orchestrator, &OrchestratorPlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (PatternWorld::Orchestrator(world), Some(PatternPlan::Orchestrator(plan))) => {
                Some((world, plan))
            }
            _ => None,
        }
    }

    /// Projection and plan of a team or swarm; `None` for other patterns.
    pub fn team(&self) -> Option<(&Team, &TeamPlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (
                PatternWorld::Team(world),
                Some(PatternPlan::Team(plan) | PatternPlan::Swarm(plan)),
            ) => Some((world, plan)),
            _ => None,
        }
    }

    /// Whether an attempt is a model call, whose tokens count: not that of a tool or an agent,
    /// because an agent's own calls are counted.
    fn is_model_attempt(&self, attempt: SpanId) -> bool {
        let call = self.spans.get(attempt).and_then(|span| self.spans.get(span.parent));
        !matches!(
            call.map(|span| &span.kind),
            Some(SpanKind::Call(
                Purpose::Task { .. }
                    | Purpose::AgentStep { .. }
                    | Purpose::Member { .. }
                    | Purpose::SwarmTurn { .. }
                    | Purpose::Tool { .. }
                    | Purpose::Search
                    | Purpose::Read { .. }
            ))
        )
    }

    /// Projection and plan of a resilience run; `None` for other patterns.
    pub fn resilience(&self) -> Option<(&Resilience, &ResiliencePlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (PatternWorld::Resilience(world), Some(PatternPlan::Resilience(plan))) => {
                Some((world, plan))
            }
            _ => None,
        }
    }

    /// Projection and plan of a research run; `None` for other patterns.
    pub fn research(&self) -> Option<(&Research, &ResearchPlan)> {
        match (&self.pattern, self.head.as_ref().map(|head| &head.plan)) {
            (PatternWorld::Research(world), Some(PatternPlan::Research(plan))) => {
                Some((world, plan))
            }
            _ => None,
        }
    }

    /// Whether a result was replaced by a fallback or omitted.
    pub fn is_degraded(&self) -> bool {
        self.tally.degraded > 0
            || self.orchestrator().is_some_and(|(orchestrator, _)| orchestrator.is_degraded())
            || self.team().is_some_and(|(team, _)| team.incomplete)
    }

    /// A closed run stays closed, whatever follows in a file.
    fn set_stage(&mut self, stage: RunState) {
        if self.is_live() {
            self.stage = stage;
        }
    }

    fn mark(&mut self, event: &Event, what: MarkKind) {
        if self.marks.len() < MARKS {
            self.marks.push(ScrubberMark { at: event.at, seq: event.seq, what });
        } else {
            self.marks_not_kept += 1;
        }
    }

    fn mark_call(&mut self, event: &Event, call: &CallStarted) {
        if matches!(call.purpose, Purpose::Finalize | Purpose::Synthesize) {
            self.mark(event, MarkKind::Finalize);
        }
        if let (Purpose::Member { agent, .. }, SpanId::RUN) = (&call.purpose, call.parent) {
            self.mark(event, MarkKind::Consulted(agent.clone()));
        }
    }
}
