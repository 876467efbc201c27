//! Breaker of a tool: fails calls at once while the tool is in trouble (docs/rules/patterns.md,
//! *Tool gateway*). Pure: the time is passed in, with no lock and no await. It uses tokio's
//! monotonic clock, so changes of the wall clock have no effect.

use std::time::Duration;

use tokio::time::Instant;

use crate::log::event::BreakerCause;
use crate::log::event::call_window::{CallWindow, WindowCounts};
use crate::scenario::spec::policy::{BreakerLimits, BreakerMode};

/// Upper bound of an open time that the clock cannot represent: about 30 years.
const MAX_OPEN_TIME: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Breaker of one tool.
#[derive(Debug)]
pub struct Breaker {
    limits: BreakerLimits,
    state: BreakerState,
    /// Number of state changes; a ticket stores the value from its time.
    epoch: u64,
    /// Time until which all attempts are refused, from a `Retry-After` that reaches past the
    /// deadline.
    retry_after: Option<Instant>,
    /// The latest calls, if they decide instead of failures in a row.
    window: Option<Box<BreakerWindow>>,
}

/// The window of a breaker.
#[derive(Debug)]
struct BreakerWindow {
    calls: CallWindow,
    /// The moment from which its times are counted.
    since: Option<Instant>,
    /// Why it opened the breaker, until the state changes again.
    opened: Option<(BreakerCause, WindowCounts)>,
}

impl BreakerWindow {
    fn time(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

/// State of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Attempts are allowed.
    Closed {
        /// Consecutive failures so far; 0 where a window decides.
        failures: u32,
    },
    /// Attempts are refused.
    Open {
        since: Instant,
        /// End of the open time; `None` while it is held open manually.
        until: Option<Instant>,
    },
    /// A few probes are allowed; their verdicts decide.
    HalfOpen {
        /// Probes in flight.
        out: u32,
        /// Probes that succeeded; 0 where the first success closes the breaker.
        good: u32,
    },
    /// Disabled manually: attempts are allowed, and nothing is counted.
    Disabled,
}

/// Permission for one attempt. It must be returned through [`Breaker::record`], with
/// [`AttemptVerdict::Neither`] if the attempt was not made or was cancelled: a probe occupies its place
/// until then.
#[derive(Debug)]
#[must_use = "a probe occupies its place until its ticket is recorded"]
pub struct Ticket {
    epoch: u64,
}

/// What the result of an attempt says about its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// The tool works.
    Success,
    /// The tool works, but took longer than `slow_call_ms`.
    SlowSuccess,
    /// The tool is in trouble.
    Failure,
    /// The tool is in trouble, and took longer than `slow_call_ms`.
    SlowFailure,
    /// Unknown: refused, cancelled, or the caller's own error.
    Neither,
}

impl AttemptVerdict {
    /// The verdict on a result.
    pub fn of_result(failed: bool, slow: bool) -> Self {
        match (failed, slow) {
            (false, false) => Self::Success,
            (false, true) => Self::SlowSuccess,
            (true, false) => Self::Failure,
            (true, true) => Self::SlowFailure,
        }
    }

    /// Whether the attempt failed through the tool's fault; `None` if that is unknown.
    pub fn is_failure(self) -> Option<bool> {
        match self {
            Self::Success | Self::SlowSuccess => Some(false),
            Self::Failure | Self::SlowFailure => Some(true),
            Self::Neither => None,
        }
    }

    /// Whether the attempt took longer than `slow_call_ms`.
    pub fn is_slow(self) -> bool {
        matches!(self, Self::SlowSuccess | Self::SlowFailure)
    }
}

/// Effect of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Counted; the state is unchanged.
    Counted,
    /// The breaker opened: no wait, no retry.
    Opened,
    /// The breaker closed.
    Closed,
    /// The breaker had changed state in the meantime; the verdict is ignored.
    Stale,
}

/// A refusal by the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRefusal {
    pub reason: RefusalReason,
    /// Time until a new attempt makes sense; `None` if it depends on something else than time.
    pub retry_in: Option<Duration>,
}

/// Why the breaker refused an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// Open, cooling down.
    Open,
    /// Half-open, and all probes are in flight.
    Probing,
    /// Held open manually.
    Held,
    /// The tool sent `Retry-After`; no failures opened the breaker.
    RetryAfter,
}

/// State of a breaker for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerView {
    /// Attempts are allowed.
    Closed {
        /// Consecutive failures so far.
        failures: u32,
        /// Consecutive failures that open it.
        of: u32,
    },
    /// Attempts are refused.
    Open {
        /// Time left to cool down: zero if it is over and no attempt was made since, `None` while
        /// held.
        left: Option<Duration>,
        /// Held open manually.
        held: bool,
    },
    /// Probes decide.
    HalfOpen {
        /// Probes in flight; may be above `permits` just after that was lowered.
        out: u32,
        /// Most probes in flight at once.
        permits: u32,
    },
    /// Disabled manually.
    Disabled,
}

impl Breaker {
    /// A closed breaker without failures.
    pub fn new(limits: BreakerLimits) -> Self {
        let window = limits.window.map(|window| {
            Box::new(BreakerWindow { calls: CallWindow::new(window), since: None, opened: None })
        });
        let state = BreakerState::Closed { failures: 0 };
        Self { limits, state, epoch: 0, retry_after: None, window }
    }

    /// Current limits.
    #[cfg(test)]
    pub fn limits(&self) -> BreakerLimits {
        self.limits
    }

    /// Current state. An open breaker stays open after its time until the next attempt.
    pub fn state(&self) -> BreakerState {
        self.state
    }

    /// Requests permission for one attempt. The first request after the open time makes the breaker
    /// half-open (in [`BreakerMode::TwoState`] it closes it). The source document compares with `>`.
    /// Here the exact instant is allowed too, so that a caller that waits exactly `retry_in` is not
    /// refused with a wait of zero.
    pub fn allow(&mut self, now: Instant) -> Result<Ticket, BreakerRefusal> {
        let refused = self.refusal(now);
        if let Some(gate_left) = self.retry_after_left(now) {
            // The later of the two times counts. A breaker held open manually stays held, and no
            // probe starts before `Retry-After` is over.
            return Err(match refused {
                Some(held @ BreakerRefusal { reason: RefusalReason::Held, .. }) => held,
                Some(open @ BreakerRefusal { retry_in: Some(left), .. }) if left > gate_left => {
                    open
                }
                _ => {
                    BreakerRefusal { reason: RefusalReason::RetryAfter, retry_in: Some(gate_left) }
                }
            });
        }
        self.retry_after = None;
        if let Some(refused) = refused {
            return Err(refused);
        }
        if let BreakerState::Open { .. } = self.state {
            self.enter(match self.limits.mode {
                BreakerMode::HalfOpen => BreakerState::HalfOpen { out: 0, good: 0 },
                BreakerMode::TwoState => BreakerState::Closed { failures: 0 },
            });
        }
        if let BreakerState::HalfOpen { out, .. } = &mut self.state {
            *out += 1;
        }
        Ok(Ticket { epoch: self.epoch })
    }

    /// Whether it would refuse an attempt now.
    pub fn would_refuse(&self, now: Instant) -> bool {
        self.retry_after_left(now).is_some() || self.refusal(now).is_some()
    }

    /// Records the verdict of an attempt. [`Recorded::Stale`] if the state has changed since; in
    /// [`BreakerMode::TwoState`] every verdict counts unless the breaker is held or disabled
    /// manually.
    pub fn record(&mut self, ticket: Ticket, verdict: AttemptVerdict, now: Instant) -> Recorded {
        let stale = ticket.epoch != self.epoch;
        match self.limits.mode {
            BreakerMode::HalfOpen if stale => Recorded::Stale,
            BreakerMode::HalfOpen => self.apply_verdict(verdict, now),
            BreakerMode::TwoState => match self.state {
                BreakerState::Open { until: None, .. } | BreakerState::Disabled if stale => {
                    Recorded::Stale
                }
                _ => self.apply_verdict(verdict, now),
            },
        }
    }

    /// Applies a verdict that counts in the current state.
    fn apply_verdict(&mut self, verdict: AttemptVerdict, now: Instant) -> Recorded {
        match (self.state, verdict.is_failure()) {
            (BreakerState::Closed { .. }, Some(failed)) if self.window.is_some() => {
                self.count_in_window(failed, verdict.is_slow(), now)
            }
            (BreakerState::HalfOpen { out, good }, Some(false)) if self.window.is_some() => {
                // It may have been opened because of slow calls.
                if verdict.is_slow() {
                    self.trip(now);
                    return Recorded::Opened;
                }
                let good = good.saturating_add(1);
                if good >= self.probes() {
                    self.enter(BreakerState::Closed { failures: 0 });
                    return Recorded::Closed;
                }
                self.state = BreakerState::HalfOpen { out: out.saturating_sub(1), good };
                Recorded::Counted
            }
            (BreakerState::Closed { .. }, Some(false)) => {
                self.state = BreakerState::Closed { failures: 0 };
                Recorded::Counted
            }
            (BreakerState::Closed { failures }, Some(true)) => {
                let failures = failures.saturating_add(1);
                if failures >= self.limits.fail_threshold {
                    self.trip(now);
                    return Recorded::Opened;
                }
                self.state = BreakerState::Closed { failures };
                Recorded::Counted
            }
            (BreakerState::HalfOpen { .. }, Some(true)) => {
                self.trip(now);
                Recorded::Opened
            }
            (BreakerState::HalfOpen { .. }, Some(false))
            | (BreakerState::Open { until: Some(_), .. }, Some(false)) => {
                self.enter(BreakerState::Closed { failures: 0 });
                Recorded::Closed
            }
            (BreakerState::HalfOpen { out, good }, None) => {
                self.state = BreakerState::HalfOpen { out: out.saturating_sub(1), good };
                Recorded::Counted
            }
            // Only in the source document's mode: a late failure restarts the open time
            // (`opened_at`), which does not count as a second opening.
            (BreakerState::Open { until: Some(_), .. }, Some(true)) => {
                self.state = self.open_from(now);
                Recorded::Counted
            }
            (BreakerState::Open { .. } | BreakerState::Disabled, _)
            | (BreakerState::Closed { .. }, None) => Recorded::Counted,
        }
    }

    /// Counts a call in the window, which may open the breaker.
    fn count_in_window(&mut self, failed: bool, slow: bool, now: Instant) -> Recorded {
        let Some(window) = &mut self.window else { return Recorded::Counted };
        window.since.get_or_insert(now);
        let time = window.time(now);
        let Some(cause) = window.calls.count(WindowCounts::of_call(failed, slow), time) else {
            return Recorded::Counted;
        };
        let counts = window.calls.counts(time);
        self.trip(now);
        if let Some(window) = &mut self.window {
            window.opened = Some((cause, counts));
        }
        Recorded::Opened
    }

    /// The counts of the window at `now`; `None` for a breaker that counts failures in a row.
    pub fn window_counts(&self, now: Instant) -> Option<WindowCounts> {
        self.window.as_ref().map(|window| window.calls.counts(window.time(now)))
    }

    /// Why the window opened the breaker, with its counts then; `None` if anything else made the state.
    pub fn opened_by_window(&self) -> Option<(BreakerCause, WindowCounts)> {
        self.window.as_ref()?.opened
    }

    /// Opens the breaker for the usual open time from `now`, because of failures or manually.
    pub fn trip(&mut self, now: Instant) {
        let open = self.open_from(now);
        self.enter(open);
    }

    /// Holds the breaker open until it is changed manually.
    pub fn hold_open(&mut self, now: Instant) {
        self.enter(BreakerState::Open { since: now, until: None });
    }

    /// Disables the breaker: attempts are allowed and nothing is counted. A `Retry-After` still
    /// applies, because it is the tool's request, not the breaker's judgement.
    pub fn disable(&mut self) {
        self.enter(BreakerState::Disabled);
    }

    /// Closes the breaker, and clears its failures and any `Retry-After`.
    pub fn reset(&mut self) {
        self.retry_after = None;
        self.enter(BreakerState::Closed { failures: 0 });
    }

    /// Refuses all attempts until then, without counting a failure. The later of two such times
    /// applies.
    pub fn set_retry_after(&mut self, until: Instant) {
        self.retry_after = self.retry_after.max(Some(until));
    }

    /// End of a `Retry-After`; `None` if none applies at `now`.
    pub fn retry_after_end(&self, now: Instant) -> Option<Instant> {
        self.retry_after.filter(|until| *until > now)
    }

    /// Time left of a `Retry-After`; `None` if none applies at `now`.
    pub fn retry_after_left(&self, now: Instant) -> Option<Duration> {
        self.retry_after_end(now).map(|until| until.saturating_duration_since(now))
    }

    /// When the breaker allows an attempt again, if time decides that.
    pub fn refuses_until(&self) -> Option<Instant> {
        match self.state {
            BreakerState::Open { until: None, .. } => None,
            BreakerState::Open { until, .. } => until.max(self.retry_after),
            _ => self.retry_after,
        }
    }

    /// Changes the limits. Counts are kept: a lower threshold applies from the next recorded
    /// failure on. A running open time is recalculated from its start.
    pub fn set_limits(&mut self, limits: BreakerLimits) {
        self.limits = limits;
        if let (Some(window), Some(limits)) = (&mut self.window, limits.window) {
            window.calls.set_limits(limits);
        }
        match (self.state, limits.mode) {
            // All probes that are needed now have succeeded already.
            (BreakerState::HalfOpen { good, .. }, _) if good >= self.probes() => {
                self.enter(BreakerState::Closed { failures: 0 });
            }
            (BreakerState::Open { since, until: Some(_) }, _) => {
                self.state = self.open_from(since);
            }
            // The source document has no half-open state: its breaker would be closed by now.
            (BreakerState::HalfOpen { .. }, BreakerMode::TwoState) => {
                self.enter(BreakerState::Closed { failures: 0 });
            }
            _ => {}
        }
    }

    /// State for display at `now`. No duration in it is negative, even if the clock misbehaves.
    pub fn view(&self, now: Instant) -> BreakerView {
        match self.state {
            BreakerState::Closed { failures } => {
                BreakerView::Closed { failures, of: self.limits.fail_threshold.max(1) }
            }
            BreakerState::Open { until, .. } => BreakerView::Open {
                left: until.map(|until| until.saturating_duration_since(now)),
                held: until.is_none(),
            },
            BreakerState::HalfOpen { out, .. } => {
                BreakerView::HalfOpen { out, permits: self.probes() }
            }
            BreakerState::Disabled => BreakerView::Disabled,
        }
    }

    /// Why the state refuses attempts at `now`, `Retry-After` not considered.
    fn refusal(&self, now: Instant) -> Option<BreakerRefusal> {
        match self.state {
            BreakerState::Open { until: None, .. } => {
                Some(BreakerRefusal { reason: RefusalReason::Held, retry_in: None })
            }
            BreakerState::Open { until: Some(until), .. } if now < until => {
                let left = until.saturating_duration_since(now);
                Some(BreakerRefusal { reason: RefusalReason::Open, retry_in: Some(left) })
            }
            BreakerState::HalfOpen { out, good } if out.saturating_add(good) >= self.probes() => {
                Some(BreakerRefusal { reason: RefusalReason::Probing, retry_in: None })
            }
            _ => None,
        }
    }

    fn probes(&self) -> u32 {
        self.limits.probe_permits.max(1)
    }

    fn open_from(&self, since: Instant) -> BreakerState {
        let until =
            since.checked_add(self.limits.open_for).unwrap_or_else(|| since + MAX_OPEN_TIME);
        BreakerState::Open { since, until: Some(until) }
    }

    /// Each change of state is a new epoch, so tickets from before are stale.
    fn enter(&mut self, state: BreakerState) {
        self.state = state;
        self.epoch += 1;
        if let Some(window) = &mut self.window {
            window.calls.clear();
            window.opened = None;
        }
    }
}
