//! The calls in the window of a breaker. The gateway decides by them, and the fold of a log counts them
//! again for the screen (docs/rules/patterns.md, *Tool gateway*). Pure: times are passed in.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tool::BreakerCause;
use crate::scenario::spec::policy::{WindowKind, WindowLimits};

/// The calls in a window, with their sums.
#[derive(Clone, Debug)]
pub struct CallWindow {
    limits: WindowLimits,
    /// The oldest first: one part for each call, or for each second that has calls.
    parts: VecDeque<WindowPart>,
    sum: WindowCounts,
    /// Time of the first call; seconds are counted from it.
    first: Option<Duration>,
}

/// A call, or the calls of a second.
#[derive(Clone, Copy, Debug)]
struct WindowPart {
    second: u64,
    counts: WindowCounts,
}

/// How many calls a window has.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct WindowCounts {
    /// All of its calls.
    pub calls: u32,
    /// Those that failed.
    pub failures: u32,
    /// Those that were slow, failed or not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slow: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl WindowCounts {
    /// One call.
    pub fn of_call(failed: bool, slow: bool) -> Self {
        Self { calls: 1, failures: failed.into(), slow: slow.into() }
    }

    /// Share of failed calls; zero without any.
    pub fn failure_share(self) -> f64 {
        f64::from(self.failures) / f64::from(self.calls.max(1))
    }

    /// Share of slow calls; zero without any.
    pub fn slow_share(self) -> f64 {
        f64::from(self.slow) / f64::from(self.calls.max(1))
    }

    fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failures = self.failures.saturating_add(other.failures);
        self.slow = self.slow.saturating_add(other.slow);
    }

    fn remove(&mut self, other: Self) {
        self.calls = self.calls.saturating_sub(other.calls);
        self.failures = self.failures.saturating_sub(other.failures);
        self.slow = self.slow.saturating_sub(other.slow);
    }
}

impl CallWindow {
    /// An empty window.
    pub fn new(limits: WindowLimits) -> Self {
        let (parts, sum) = (VecDeque::new(), WindowCounts::default());
        Self { limits, parts, sum, first: None }
    }

    /// Changes the limits. A smaller window forgets its oldest calls; a larger one does not get back
    /// what it has forgotten.
    pub fn set_limits(&mut self, limits: WindowLimits) {
        self.limits = limits;
        let newest = self.parts.back().map_or(0, |part| part.second);
        self.drop_old(newest);
    }

    /// Forgets all calls.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Counts a call that ended at `at`, a time since any fixed moment. Returns why the breaker opens,
    /// if it does.
    pub fn count(&mut self, call: WindowCounts, at: Duration) -> Option<BreakerCause> {
        let first = *self.first.get_or_insert(at);
        let newest = self.parts.back().map_or(0, |part| part.second);
        let second = at.saturating_sub(first).as_secs().max(newest);
        match self.parts.back_mut() {
            Some(part) if self.limits.kind == WindowKind::Time && part.second == second => {
                part.counts.add(call);
            }
            _ => self.parts.push_back(WindowPart { second, counts: call }),
        }
        self.sum.add(call);
        self.drop_old(second);
        self.judge()
    }

    /// The counts of the window at this time.
    pub fn counts(&self, at: Duration) -> WindowCounts {
        let Some(first) = self.first else { return self.sum };
        let second = at.saturating_sub(first).as_secs();
        let mut counts = self.sum;
        if self.limits.kind == WindowKind::Time {
            let old = self.parts.iter().take_while(|part| self.is_old(part, second));
            old.for_each(|part| counts.remove(part.counts));
        }
        counts
    }

    fn is_old(&self, part: &WindowPart, second: u64) -> bool {
        part.second.saturating_add(self.limits.size.into()) <= second
    }

    fn drop_old(&mut self, second: u64) {
        while let Some(part) = self.parts.front().copied() {
            let is_old = match self.limits.kind {
                WindowKind::Count => self.parts.len() > self.limits.size as usize,
                WindowKind::Time => self.is_old(&part, second),
            };
            if !is_old {
                return;
            }
            self.parts.pop_front();
            self.sum.remove(part.counts);
        }
    }

    fn judge(&self) -> Option<BreakerCause> {
        let WindowLimits { min_calls, failure_rate, slow_call_ms, slow_rate, .. } = self.limits;
        let WindowCounts { calls, failures, slow } = self.sum;
        if calls < min_calls {
            None
        } else if failure_rate.is_reached(failures, calls) {
            Some(BreakerCause::FailureRate)
        } else if slow_call_ms.is_some() && slow_rate.is_reached(slow, calls) {
            Some(BreakerCause::SlowCalls)
        } else {
            None
        }
    }
}
