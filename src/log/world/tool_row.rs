//! One tool in the projection of the gateway: its counts, its latest attempts and its breaker.
//!
//! Durations of the latest calls, in bounded memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::tool_timeline::ToolTimeline;
use crate::base::name::ToolName;
use crate::log::event::call_window::{CallWindow, WindowCounts};
use crate::log::event::{BreakerCause, BreakerStage, Elapsed, Initiator, Seq, ToolHead};
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
    pub timeline: ToolTimeline,
    /// The latest calls in the window of its breaker, if that has one.
    pub window: Option<BreakerWindowRow>,
    /// State of its breaker.
    pub breaker: BreakerStage,
    /// When the breaker got into this state.
    pub since: Elapsed,
    /// When it lets a call through again, if it is open and that is known.
    pub until: Option<Elapsed>,
    pub failures: u32,
    /// Error of the last failed attempt. Before the first: why a call failed without an attempt.
    pub last_failure: Option<Arc<str>>,
    /// State changes of its breaker, the oldest first.
    pub history: VecDeque<BreakerMove>,
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
    /// Calls that a person or a rule did not approve.
    pub denied: u64,
    /// Calls that were cancelled with their run.
    pub cancelled: u64,
    pub attempts: u64,
    /// Retries by the tool's own client.
    pub client_retries: u64,
    /// Attempts after the first of their call that were made.
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
    pub at: Elapsed,
    pub seq: Seq,
    /// The new state.
    pub to: BreakerStage,
    pub why: BreakerCause,
    /// Who changed it, if it was changed manually.
    pub by: Option<Initiator>,
    /// Error of the attempt that opened it, if it was one of this run.
    pub opened_by: Option<Arc<str>>,
    /// The counts of the breaker's window when it opened the breaker.
    pub counted: Option<WindowCounts>,
}

/// The window of a breaker: the calls that the gateway counts and that are in this log. The calls of
/// other runs to a shared tool are not in it.
#[derive(Clone, Debug)]
pub struct BreakerWindowRow {
    calls: CallWindow,
    /// The calls, the oldest first, at most [`MARKS`]. While the breaker is not closed they are those
    /// that opened it.
    marks: VecDeque<CallMark>,
    /// The event since which calls are counted; attempts that began before it are not.
    since: Seq,
    /// Whether only a `Retry-After` keeps the breaker from being closed: then the window continues.
    is_waiting: bool,
    /// Probes that succeeded since the breaker became half-open.
    good_probes: u32,
}

impl BreakerWindowRow {
    fn new(head: &ToolHead) -> Option<Self> {
        Some(Self {
            calls: CallWindow::new(head.limits.breaker?.window?),
            marks: VecDeque::new(),
            since: Seq(0),
            is_waiting: false,
            good_probes: 0,
        })
    }

    /// The counts of the window now.
    pub fn counts(&self, now: Elapsed) -> WindowCounts {
        self.calls.counts(now.duration())
    }

    /// The latest calls, the oldest first: those that it has now, or those that opened the breaker.
    pub fn marks(&self) -> &VecDeque<CallMark> {
        &self.marks
    }

    /// Probes that succeeded since the breaker became half-open.
    pub fn good_probes(&self) -> u32 {
        self.good_probes
    }
}

impl ToolRow {
    pub(crate) fn new(head: ToolHead) -> Self {
        let breaker = match head.limits.breaker {
            Some(_) => BreakerStage::Closed,
            None => BreakerStage::Disabled,
        };
        Self {
            faults: head.faults.clone(),
            breaker,
            tally: ToolTally::default(),
            in_flight: 0,
            peak: 0,
            queued: 0,
            marks: VecDeque::new(),
            oldest_cached_ms: 0,
            latencies: Latencies::default(),
            timeline: ToolTimeline::new(breaker),
            window: BreakerWindowRow::new(&head),
            since: Elapsed::default(),
            until: None,
            failures: 0,
            last_failure: None,
            history: VecDeque::new(),
            head,
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

    pub(crate) fn mark(&mut self, mark: CallMark) {
        push_mark(&mut self.marks, mark);
    }

    /// Whether the breaker counts a call once, by its last attempt.
    pub(super) fn counts_calls(&self) -> bool {
        self.head.limits.breaker.is_some_and(|breaker| !breaker.counts.is_per_attempt())
    }

    /// Counts the result of an attempt in the breaker's window. The attempt was started by the event
    /// `started`.
    pub(crate) fn count_in_window(&mut self, started: Seq, failed: bool, slow: bool, at: Elapsed) {
        let Some(window) = self.window.as_mut().filter(|window| started >= window.since) else {
            return;
        };
        match self.breaker {
            BreakerStage::Closed => {}
            BreakerStage::Open if window.is_waiting => {}
            BreakerStage::HalfOpen if !failed && !slow => {
                window.good_probes += 1;
                return;
            }
            _ => return,
        }
        // Why it opens is in the event that follows.
        window.calls.count(WindowCounts::of_call(failed, slow), at.duration());
        let mark = match (failed, slow) {
            (true, _) => CallMark::Bad,
            (false, true) => CallMark::Slow,
            (false, false) => CallMark::Good,
        };
        push_mark(&mut window.marks, mark);
    }

    /// Begins a new window where the breaker changed its state; `before`: the state until now.
    pub(super) fn change_window(&mut self, before: BreakerStage, why: BreakerCause, seq: Seq) {
        let Some(window) = &mut self.window else { return };
        let (was_waiting, is_wait) = (window.is_waiting, why == BreakerCause::RetryAfter);
        let was_closed = before == BreakerStage::Closed || was_waiting;
        window.is_waiting = is_wait && self.breaker == BreakerStage::Open && was_closed;
        let continues = window.is_waiting
            || was_waiting
                && why == BreakerCause::CooldownOver
                && self.breaker == BreakerStage::Closed;
        if continues {
            return;
        }
        window.since = seq;
        window.calls.clear();
        window.good_probes = 0;
        if self.breaker == BreakerStage::Closed {
            window.marks.clear();
        }
    }

    /// Takes over changed limits of the breaker's window.
    pub(super) fn limit_window(&mut self) {
        if let Some(window) = &mut self.window
            && let Some(limits) = self.head.limits.breaker.and_then(|breaker| breaker.window)
        {
            window.calls.set_limits(limits);
        }
    }
}

fn push_mark(marks: &mut VecDeque<CallMark>, mark: CallMark) {
    if marks.len() == MARKS {
        marks.pop_front();
    }
    marks.push_back(mark);
}

/// Number of samples; further ones replace the oldest.
const SAMPLES: usize = 256;
/// Min number of samples for a percentile.
pub const MIN_SAMPLES: usize = 5;

/// The latest durations, for their percentiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    samples: Vec<u32>,
    next: usize,
    count: u64,
}

impl Latencies {
    /// Adds a duration.
    pub fn add(&mut self, took: Duration) {
        let sample = u32::try_from(took.as_micros() / 100).unwrap_or(u32::MAX);
        self.count += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push(sample);
        } else {
            self.samples[self.next] = sample;
            self.next = (self.next + 1) % SAMPLES;
        }
    }

    /// Number of durations ever added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest of the latest durations.
    pub fn longest(&self) -> Option<Duration> {
        self.samples.iter().max().map(|sample| Duration::from_micros(u64::from(*sample) * 100))
    }

    /// The `percent`th percentile of the latest durations (nearest rank, to a tenth of a
    /// millisecond); `None` with fewer than [`MIN_SAMPLES`] samples.
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        if self.samples.len() < MIN_SAMPLES {
            return None;
        }
        let mut samples = self.samples.clone();
        let rank = (samples.len() * percent.min(100) as usize).div_ceil(100).max(1) - 1;
        let (_, sample, _) = samples.select_nth_unstable(rank);
        Some(Duration::from_micros(u64::from(*sample) * 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_use_latest_samples() {
        let mut latencies = Latencies::default();
        for ms in 1..MIN_SAMPLES as u64 {
            latencies.add(Duration::from_millis(ms));
        }
        assert_eq!(latencies.percentile(50), None, "too few to say");
        for ms in MIN_SAMPLES as u64..=100 {
            latencies.add(Duration::from_millis(ms));
        }
        assert_eq!(latencies.percentile(50), Some(Duration::from_millis(50)));
        assert_eq!(latencies.percentile(95), Some(Duration::from_millis(95)));
        assert_eq!(latencies.percentile(100), Some(Duration::from_millis(100)));
        for _ in 0..SAMPLES {
            latencies.add(Duration::from_millis(7));
        }
        assert_eq!(latencies.percentile(100), Some(Duration::from_millis(7)), "old ones are gone");
        assert_eq!(latencies.count(), 100 + SAMPLES as u64);
    }
}
