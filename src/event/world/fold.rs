//! The part of the fold that is the same for all patterns: stage, spans, counts, flags, marks, tools,
//! alerts, spending, pauses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::activity::Activity;
use super::alerts::Alerts;
use super::back_off::BackOff;
use super::last_errors::LastErrors;
use super::marks::{MarkKind, ScrubberMark};
use super::models::ModelsByCaller;
use super::pauses::Pauses;
use super::refusals::Refusals;
use super::spans::{SpanKind, Spans};
use super::spending::{SpendingTally, SpendingUsed};
use super::tally::Tally;
use super::tools::Tools;
use crate::base::name::FlagName;
use crate::event::kind::{
    Asks, BudgetReached, CallStarted, Initiator, Purpose, RunClosed, RunStarted, StepSize,
};
use crate::event::{BoundaryId, Elapsed, Event, EventKind, Seq, SpanId, StopReason};
use crate::scenario::spec::price::Price;

/// Most marks for the scrubber; further ones are counted in [`RunFold::marks_not_kept`].
const MARKS: usize = 2048;

/// What the fold knows of every run, whatever its pattern.
#[derive(Clone, Debug, Default)]
pub struct RunFold {
    /// The setup of the run; `None` before the first event.
    pub head: Option<Arc<RunStarted>>,
    /// Whether the run is running, paused or closed.
    pub stage: RunState,
    /// The tree of spans.
    pub spans: Spans,
    /// Counts.
    pub tally: Tally,
    pub(super) spending: SpendingTally,
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
    pub(super) last_errors: LastErrors,
    pub(super) refusals: Refusals,
    /// The call that was not made because it would exceed the budget.
    pub(super) budget_reached: Option<BudgetReached>,
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
    pub(super) pauses: Duration,
    pub(super) pause_list: Pauses,
    pub(super) back_off: BackOff,
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
    /// Ended; [`RunFold::closed`] says how.
    Closed,
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

impl RunFold {
    /// Processes one event.
    pub(super) fn apply(&mut self, event: &Event) {
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
            EventKind::PlanRefused { .. } => self.mark(event, MarkKind::Failed),
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
        if event.kind.closes().is_some() {
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

    /// The pauses so far.
    pub(crate) fn pauses(&self) -> &Pauses {
        &self.pause_list
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

    /// Whether an attempt is a model call, whose tokens count: not that of a tool or an agent,
    /// because an agent's own calls are counted.
    fn is_model_attempt(&self, attempt: SpanId) -> bool {
        let call = self.spans.get(attempt).and_then(|span| self.spans.get(span.parent));
        match call.map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => purpose.asks() == Asks::Model,
            _ => true,
        }
    }

    /// A closed run stays closed, whatever follows in a file.
    fn set_stage(&mut self, stage: RunState) {
        if self.is_live() {
            self.stage = stage;
        }
    }

    pub(super) fn mark(&mut self, event: &Event, what: MarkKind) {
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
