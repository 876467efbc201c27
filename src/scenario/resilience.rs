//! The limits of what guards a tool: its breaker, its bulkhead and its retry budget. Plain data; the
//! machines that keep to them live in `tool/`. The defaults are those of source `003` where it has
//! any.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of a tool's breaker. A change takes effect live, counts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Failures in a row that open it. 0 is taken as 1.
    pub fail_threshold: u32,
    /// How long it stays open, from the moment that it opened.
    pub open_for: Duration,
    /// Attempts that half-open lets through at once. 0 is taken as 1: with none it could never
    /// close again.
    pub probe_permits: u32,
    /// What comes after the open time, and what a late result does.
    pub mode: BreakerMode,
    /// What it counts.
    pub counts: BreakerCounts,
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self {
            fail_threshold: 5,
            open_for: Duration::from_secs(30),
            probe_permits: 1,
            mode: BreakerMode::HalfOpen,
            counts: BreakerCounts::Attempts,
        }
    }
}

/// What a breaker counts as a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerCounts {
    /// Each attempt that fails by the tool's fault (source `003`).
    #[default]
    Attempts,
    /// Each call, once, by its last attempt: an attempt that is followed by another says nothing. A
    /// probe is judged by itself all the same.
    Calls,
}

impl BreakerCounts {
    /// Whether it is what the source counts.
    pub fn is_of_source(&self) -> bool {
        *self == Self::Attempts
    }
}

/// The two ways that a breaker can work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerMode {
    /// After the open time a few probes decide; a result from before the last change of state is
    /// stale and changes nothing.
    #[default]
    HalfOpen,
    /// The two states of source `003`: after the open time the next attempt closes it with a clean
    /// count, and every result counts, however late it comes.
    Source,
}

/// Limits of a tool's bulkhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkheadLimits {
    /// Attempts in flight at once.
    pub max_in_flight: u32,
    /// How long an attempt may stand in line for a permit: zero is not at all, `None` as long as
    /// the caller's own deadline lets it.
    pub max_wait: Option<Duration>,
}

impl Default for BulkheadLimits {
    fn default() -> Self {
        Self { max_in_flight: 10, max_wait: Some(Duration::ZERO) }
    }
}

/// Limits of a tool's retry budget, over the last [`RetryBudgetLimits::WINDOW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryBudgetLimits {
    /// Retries at most, in per cent of the attempts in the window, rounded down.
    pub ratio_percent: u32,
    /// Retries that are allowed however few attempts there were.
    pub min: u32,
}

impl RetryBudgetLimits {
    /// How far back attempts and retries are counted.
    pub const WINDOW: Duration = Duration::from_secs(60);
}

impl Default for RetryBudgetLimits {
    fn default() -> Self {
        Self { ratio_percent: 10, min: 3 }
    }
}
