//! Limits of a tool's breaker, bulkhead and retry budget. Plain data; `tool/` enforces them. The
//! defaults are those of the cascading failures source document where it has any.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of a tool's breaker. A change takes effect during the run; counts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Consecutive failures that open it. 0 counts as 1.
    pub fail_threshold: u32,
    /// How long it stays open.
    pub open_for: Duration,
    /// Concurrent probes while it is half-open. 0 counts as 1: without probes it could never close
    /// again.
    pub probe_permits: u32,
    /// What happens after the open time, and to late results.
    pub mode: BreakerMode,
    /// What counts as a failure.
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
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum BreakerCounts {
    /// Each attempt that fails through the tool's fault (cascading failures source document).
    #[default]
    Attempts,
    /// Each call once, by its last attempt: attempts that are retried do not count. A probe is
    /// always judged by itself.
    Calls,
}

impl BreakerCounts {
    /// Whether it counts as the source document does.
    pub fn is_per_attempt(&self) -> bool {
        *self == Self::Attempts
    }
}

/// What a breaker does after its open time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum BreakerMode {
    /// Probes decide whether it closes; a result from before the last change of state is stale and
    /// ignored.
    #[default]
    HalfOpen,
    /// The two states of the cascading failures source document: the next attempt closes it and
    /// resets the failure count, and every result counts, however late.
    TwoState,
}

/// Limits of a tool's bulkhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkheadLimits {
    /// The concurrency limit: attempts in flight.
    pub max_in_flight: u32,
    /// How long an attempt may be queued: zero means not at all, `None` until the caller's own
    /// deadline.
    pub max_wait: Option<Duration>,
}

impl Default for BulkheadLimits {
    fn default() -> Self {
        Self { max_in_flight: 10, max_wait: Some(Duration::ZERO) }
    }
}

/// Limits of a tool's retry budget, over the last 60 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct RetryBudgetLimits {
    /// Maximum number of retries as a percentage of the attempts in the window, rounded down.
    pub ratio_percent: u32,
    /// Number of retries that are always allowed, even after few attempts.
    pub min: u32,
}

impl RetryBudgetLimits {
    /// The window in which attempts and retries are counted.
    pub const WINDOW: Duration = Duration::from_secs(60);
}

impl Default for RetryBudgetLimits {
    fn default() -> Self {
        Self { ratio_percent: 10, min: 3 }
    }
}
