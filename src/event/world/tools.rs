//! Projection of the gateway: the counts of each tool, and the state of its breaker and bulkhead
//! (cascading failures source document). It is the same for every pattern.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::spans::Spans;
use super::{Activity, Pauses, latency::Latencies};
use crate::base::name::ToolName;
use crate::event::kind::{
    BreakerCause, BreakerStage, CallStarted, FailureClass, FallbackKind, Initiator, ToolHead,
};
use crate::event::{Elapsed, Event, EventKind, Seq, SpanId, StopReason};
use crate::scenario::spec::tool::InjectedFault;

/// Marks to keep per tool: its latest attempts and refusals.
pub const MARKS: usize = 40;
/// State changes to keep per breaker; the oldest are dropped first.
const HISTORY: usize = 256;

/// Every tool behind the gateway.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    rows: Vec<ToolRow>,
    /// Index of the tool of each open call.
    open: BTreeMap<SpanId, usize>,
    /// Calls with an attempt in the bulkhead's queue.
    queued_calls: BTreeSet<SpanId>,
    /// Index of the tool whose call was closed last.
    closed: Option<usize>,
}

/// One tool.
#[derive(Clone, Debug)]
pub struct ToolRow {
    /// Its setup; the limits are the current ones.
    pub head: ToolHead,
    /// Its counts.
    pub tally: ToolTally,
    /// Attempts in flight now.
    pub in_flight: u32,
    /// Most attempts in flight at the same time.
    pub peak: u32,
    /// Attempts in the bulkhead's queue now.
    pub queued: u32,
    /// Its latest attempts and refusals, the oldest first, at most [`MARKS`].
    pub marks: VecDeque<CallMark>,
    /// Age of the oldest cached value that was used, in milliseconds.
    pub oldest_cached_ms: u64,
    /// Durations of its answered calls, from start to end.
    pub latencies: Latencies,
    /// Requests over time: the load on the tool.
    pub load: Activity,
    /// State of its breaker.
    pub breaker: BreakerStage,
    /// When the breaker got into this state.
    pub since: Elapsed,
    /// When it lets a call through again, if it is open and that is known.
    pub until: Option<Elapsed>,
    /// Failures in a row.
    pub failures: u32,
    /// Error of the last failed attempt.
    pub last_failure: Option<Arc<str>>,
    /// State changes of its breaker, the oldest first.
    pub history: VecDeque<BreakerMove>,
    /// Faults that are injected now.
    pub faults: Vec<InjectedFault>,
}

/// Counts of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolTally {
    /// Calls requested; an agent's repeats of the same call are not counted.
    pub calls: u64,
    /// Calls that repeat a call without a result.
    pub repeats: u64,
    /// Calls with a result.
    pub answered: u64,
    /// Calls without a result or fallback.
    pub failed: u64,
    /// Calls that were cancelled with their run.
    pub cancelled: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Retries by the tool's own client.
    pub client_retries: u64,
    /// Attempts after the first of their call.
    pub retries: u64,
    /// Attempts with a result.
    pub good: u64,
    /// Attempts that failed because of the tool.
    pub bad: u64,
    /// Attempts refused by an open breaker.
    pub circuit_open: u64,
    /// Attempts refused by a full bulkhead.
    pub bulkhead_full: u64,
    /// Milliseconds in the bulkhead's queue.
    pub waited_ms: u64,
    /// Calls answered with a cached value.
    pub cached: u64,
    /// Calls answered with the default value.
    pub fallback: u64,
    /// Calls whose result was omitted.
    pub omitted: u64,
    /// Late results that were ignored.
    pub stale: u64,
}

impl ToolTally {
    /// Requests that reached the tool.
    pub fn requests(&self) -> u64 {
        self.attempts + self.client_retries
    }

    /// Calls with a fallback or an omitted result.
    pub fn degraded(&self) -> u64 {
        self.cached + self.fallback + self.omitted
    }

    /// Attempts that were refused without calling the tool.
    pub fn refused(&self) -> u64 {
        self.circuit_open + self.bulkhead_full
    }

    /// Requests per call: the amplification that the cascading failures source document is about.
    /// `None` before the first call.
    pub fn amplification(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.requests() as f64 / self.calls as f64)
    }

    /// Share of failed attempts among those that count; refused ones do not count.
    pub fn error_rate(&self) -> Option<f64> {
        let judged = self.good + self.bad;
        (judged > 0).then(|| self.bad as f64 / judged as f64)
    }
}

/// Result of an attempt, as a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMark {
    /// Success.
    Good,
    /// Success, but it took more than half of its timeout.
    Slow,
    /// Failed because of the tool.
    Bad,
    /// Failed for another reason: a rate limit, a refused request, a cancellation.
    NotCounted,
    /// Refused without calling the tool.
    Refused,
}

/// A state change of a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerMove {
    /// When it happened.
    pub at: Elapsed,
    /// The event.
    pub seq: Seq,
    /// The new state.
    pub to: BreakerStage,
    /// The cause.
    pub why: BreakerCause,
    /// Who changed it, if it was changed manually.
    pub by: Option<Initiator>,
    /// Error of the attempt that opened it, if it was one of this run.
    pub opened_by: Option<Arc<str>>,
}

impl ToolRow {
    fn new(head: ToolHead) -> Self {
        Self {
            faults: head.faults.clone(),
            breaker: match head.limits.breaker {
                Some(_) => BreakerStage::Closed,
                None => BreakerStage::Disabled,
            },
            head,
            tally: ToolTally::default(),
            in_flight: 0,
            peak: 0,
            queued: 0,
            marks: VecDeque::new(),
            oldest_cached_ms: 0,
            latencies: Latencies::default(),
            load: Activity::default(),
            since: Elapsed::default(),
            until: None,
            failures: 0,
            last_failure: None,
            history: VecDeque::new(),
        }
    }

    /// Name of the tool.
    pub fn name(&self) -> &ToolName {
        &self.head.name
    }

    /// Time until its open breaker lets a call through again; `None` in any other state.
    pub fn retry_in(&self, now: Elapsed) -> Option<Duration> {
        self.until.filter(|_| self.breaker == BreakerStage::Open).map(|until| until.since(now))
    }

    /// How often failures opened its breaker in the minute before `now`. Openings by the operator
    /// or by Retry-After do not count: they are not unexpected.
    pub fn recent_openings(&self, now: Elapsed) -> u32 {
        let lately = |it: &&BreakerMove| now.since(it.at) <= Duration::from_secs(60);
        let moves = self.history.iter().rev().take_while(lately);
        let opened = |it: &&BreakerMove| it.to == BreakerStage::Open && it.why.is_failure();
        let count = moves.filter(opened).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn mark(&mut self, mark: CallMark) {
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }
}

impl Tools {
    /// Whether an attempt of this call is in a bulkhead's queue now.
    pub fn is_queued(&self, call: SpanId) -> bool {
        self.queued_calls.contains(&call)
    }

    /// The tools in the order of the log's head; tools that it does not name come last.
    pub fn rows(&self) -> &[ToolRow] {
        &self.rows
    }

    /// The tool with this name.
    pub fn get(&self, name: &str) -> Option<&ToolRow> {
        self.rows.iter().find(|row| row.head.name.as_str() == name)
    }

    /// The tool of an open call.
    pub fn for_call(&self, call: SpanId) -> Option<&ToolRow> {
        self.rows.get(*self.open.get(&call)?)
    }

    /// Requests per call, over all tools except the model.
    pub fn amplification(&self) -> Option<f64> {
        let tools = self.rows.iter().filter(|row| row.head.name.as_str() != "llm");
        let (asked, requests) = tools.fold((0, 0), |(asked, requests), row| {
            (asked + row.tally.calls, requests + row.tally.requests())
        });
        (asked > 0).then(|| requests as f64 / asked as f64)
    }

    /// The tool whose call was closed last.
    pub(super) fn last_closed(&self) -> Option<&ToolRow> {
        self.rows.get(self.closed?)
    }

    pub(super) fn begin(&mut self, heads: &[ToolHead]) {
        self.rows.reserve_exact(heads.len());
        for head in heads {
            if self.get(head.name.as_str()).is_none() {
                self.rows.push(ToolRow::new(head.clone()));
            }
        }
    }

    fn named(&mut self, name: &ToolName) -> Option<&mut ToolRow> {
        self.rows.iter_mut().find(|row| row.head.name == *name)
    }

    fn asked(&mut self, span: SpanId, call: &CallStarted) {
        let Some(place) = self.rows.iter().position(|row| row.head.name == call.tool) else {
            return;
        };
        if self.open.insert(span, place).is_none() {
            let tally = &mut self.rows[place].tally;
            if call.purpose.is_repeat() { tally.repeats += 1 } else { tally.calls += 1 }
        }
    }

    fn row(&mut self, call: SpanId) -> Option<&mut ToolRow> {
        let place = *self.open.get(&call)?;
        self.rows.get_mut(place)
    }

    /// The tool of an open attempt.
    fn row_of_attempt(&mut self, attempt: SpanId, spans: &Spans) -> Option<&mut ToolRow> {
        self.row(spans.get(attempt)?.parent)
    }

    pub(super) fn apply(&mut self, event: &Event, spans: &Spans, rests: &Pauses) {
        match &event.kind {
            EventKind::CallStarted(call) => self.asked(event.span, call),
            EventKind::CallAnswered { .. } => {
                let took = spans.get(event.span).map(|span| {
                    // A call may wait at the boundary of its next attempt while the run is paused.
                    span.duration(event.at).saturating_sub(rests.between(span.opened, event.at))
                });
                self.close(event.span, |row| {
                    row.tally.answered += 1;
                    row.latencies.add(took.unwrap_or_default());
                });
            }
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.close(event.span, |row| row.tally.cancelled += 1);
            }
            EventKind::CallFailed { .. } => self.close(event.span, |row| row.tally.failed += 1),
            EventKind::CallDegraded { by, .. } => self.close(event.span, |row| match by {
                FallbackKind::Cached { age_ms } => {
                    row.tally.cached += 1;
                    row.oldest_cached_ms = row.oldest_cached_ms.max(*age_ms);
                }
                FallbackKind::Fallback => row.tally.fallback += 1,
                FallbackKind::LeftOut => row.tally.omitted += 1,
            }),
            EventKind::AttemptQueued { .. } => {
                let is_new = self.queued_calls.insert(event.span);
                if let Some(row) = self.row(event.span).filter(|_| is_new) {
                    row.queued += 1;
                }
            }
            EventKind::AttemptRefused { reason, .. } => {
                self.leave_line(event.span);
                let Some(row) = self.row(event.span) else { return };
                match reason {
                    StopReason::CircuitOpen(_) => row.tally.circuit_open += 1,
                    StopReason::BulkheadFull(_) => row.tally.bulkhead_full += 1,
                    _ => return,
                }
                row.mark(CallMark::Refused);
            }
            EventKind::AttemptStarted { parent, attempt, waited_ms, .. } => {
                self.leave_line(*parent);
                let Some(row) = self.row(*parent) else { return };
                row.tally.attempts += 1;
                row.tally.retries += u64::from(*attempt > 1);
                row.tally.waited_ms = row.tally.waited_ms.saturating_add(*waited_ms);
                row.in_flight += 1;
                row.peak = row.peak.max(row.in_flight);
                row.load.count(event.at);
            }
            EventKind::ClientRetried { .. } => {
                if let Some(row) = self.row_of_attempt(event.span, spans) {
                    row.tally.client_retries += 1;
                    row.load.count(event.at);
                }
            }
            EventKind::AttemptAnswered(_) => {
                let took = spans.get(event.span).map_or(Duration::ZERO, |it| it.duration(event.at));
                let Some(row) = self.row_of_attempt(event.span, spans) else { return };
                row.in_flight = row.in_flight.saturating_sub(1);
                row.tally.good += 1;
                row.failures = 0;
                let slow = Duration::from_millis(row.head.limits.timeout_ms / 2);
                row.mark(if took > slow { CallMark::Slow } else { CallMark::Good });
            }
            EventKind::AttemptFailed(failed) => {
                let Some(row) = self.row_of_attempt(event.span, spans) else { return };
                row.in_flight = row.in_flight.saturating_sub(1);
                if failed.class != FailureClass::Cancelled && failed.adapted.is_none() {
                    row.last_failure = Some(failed.text.as_str().into());
                }
                if failed.class.is_failure_of_tool(failed.status) {
                    row.tally.bad += 1;
                    row.failures += 1;
                    row.mark(CallMark::Bad);
                } else {
                    row.mark(CallMark::NotCounted);
                }
            }
            EventKind::BreakerChanged { tool, to, why, open_for_ms, by } => {
                let Some(row) = self.named(tool) else { return };
                row.breaker = *to;
                row.since = event.at;
                row.until = open_for_ms
                    .map(|ms| Elapsed(event.at.0.saturating_add(ms.saturating_mul(1_000))));
                if *to == BreakerStage::Closed {
                    row.failures = 0;
                }
                if row.history.len() == HISTORY {
                    row.history.pop_front();
                }
                row.history.push_back(BreakerMove {
                    at: event.at,
                    seq: event.seq,
                    to: *to,
                    why: *why,
                    by: *by,
                    opened_by: match to {
                        BreakerStage::Open if by.is_none() => row.last_failure.clone(),
                        _ => None,
                    },
                });
            }
            EventKind::ResultStale { tool, .. } => {
                if let Some(row) = self.named(tool) {
                    row.tally.stale += 1;
                }
            }
            EventKind::LimitsChanged { tool, limits, .. } => {
                if let Some(row) = self.named(tool) {
                    row.head.limits = (**limits).clone();
                }
            }
            EventKind::FaultInjected { tool, fault, .. } => {
                if let Some(row) = self.named(tool) {
                    row.faults.retain(|had| had.kind() != fault.kind());
                    row.faults.push(*fault);
                }
            }
            EventKind::FaultHealed { tool, fault, .. } => {
                if let Some(row) = self.named(tool) {
                    row.faults.retain(|had| had.kind() != *fault);
                }
            }
            _ => {}
        }
    }

    fn leave_line(&mut self, call: SpanId) {
        if self.queued_calls.remove(&call)
            && let Some(row) = self.row(call)
        {
            row.queued = row.queued.saturating_sub(1);
        }
    }

    fn close(&mut self, call: SpanId, how: impl FnOnce(&mut ToolRow)) {
        self.leave_line(call);
        let Some(place) = self.open.remove(&call) else { return };
        self.closed = Some(place);
        if let Some(row) = self.rows.get_mut(place) {
            how(row);
        }
    }
}
