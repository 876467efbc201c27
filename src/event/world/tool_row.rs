//! One tool in the projection of the gateway: its counts, its latest attempts and its breaker.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::base::name::ToolName;
use crate::event::kind::{BreakerCause, BreakerStage, Initiator, ToolHead};
use crate::event::world::latency::Latencies;
use crate::event::world::tool_timeline::ToolTimeline;
use crate::event::{Elapsed, Seq};
use crate::scenario::spec::tool::InjectedFault;

/// Marks to keep per tool: its latest attempts and refusals.
pub const MARKS: usize = 120;

/// State changes to keep per breaker; the oldest are dropped first.
pub(super) const HISTORY: usize = 256;

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
    /// The tool over time.
    pub timeline: ToolTimeline,
    /// State of its breaker.
    pub breaker: BreakerStage,
    /// When the breaker got into this state.
    pub since: Elapsed,
    /// When it lets a call through again, if it is open and that is known.
    pub until: Option<Elapsed>,
    /// Failures in a row.
    pub failures: u32,
    /// Error of the last failed attempt. Before the first: why a call failed without an attempt.
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
    /// Openings of its breaker, also manual ones.
    pub openings: u64,
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
    pub(super) fn new(head: ToolHead) -> Self {
        let breaker = match head.limits.breaker {
            Some(_) => BreakerStage::Closed,
            None => BreakerStage::Disabled,
        };
        Self {
            faults: head.faults.clone(),
            breaker,
            head,
            tally: ToolTally::default(),
            in_flight: 0,
            peak: 0,
            queued: 0,
            marks: VecDeque::new(),
            oldest_cached_ms: 0,
            latencies: Latencies::default(),
            timeline: ToolTimeline::new(breaker),
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

    /// Records the present load and the state of the breaker in the timeline.
    pub(super) fn record_level(&mut self, at: Elapsed) {
        self.timeline.set_level(at, self.in_flight, self.queued, self.breaker);
    }

    pub(super) fn mark(&mut self, mark: CallMark) {
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }
}
