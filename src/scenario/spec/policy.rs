//! The gateway's policy for calls of one tool or of the model: timeout, retries, breaker, bulkhead,
//! retry budget. Plain data; `gateway/` enforces it. The defaults are those of the cascading
//! failures source document where it has any.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::time::as_millis;

/// The gateway's policy for one tool (cascading failures source document, checklist: a timeout on
/// every call, retries in one place with backoff and jitter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPolicy {
    /// Timeout of one attempt, until its result is complete. `None`: `OPENAI_TIMEOUT_SECONDS`, else
    /// 60 s.
    pub timeout: Option<Duration>,
    /// Maximum number of attempts of one call, the first included; at least 1.
    pub max_attempts: u32,
    /// Waits before attempt 2, 3, …; the last value repeats. Empty: no wait.
    pub backoff: Arc<[Duration]>,
    /// Equal jitter: half of each wait is fixed, the other half is random from the run's seed.
    pub jitter: bool,
    /// Whether a call may be retried at all.
    pub idempotent: bool,
    /// Which failures are retried.
    pub retry_on: RetryOn,
    /// How many attempts may be retries; `None`: only `max_attempts` limits them.
    pub retry_budget: Option<RetryBudgetLimits>,
    /// When calls are rejected without an attempt; `None`: never.
    pub breaker: Option<BreakerLimits>,
    /// How many attempts may run concurrently; `None`: any number.
    pub bulkhead: Option<BulkheadLimits>,
    /// Most attempts that start in a minute; `None`: any number.
    pub rate: Option<u32>,
    /// The fallback for a call that fails.
    pub safe_mode: SafeMode,
}

/// The defaults of docs/rules/patterns.md, *Tool gateway*, from the cascading failures source
/// document.
impl Default for CallPolicy {
    fn default() -> Self {
        Self {
            timeout: None,
            max_attempts: 2,
            backoff: [250, 750].map(Duration::from_millis).into(),
            jitter: true,
            idempotent: true,
            retry_on: RetryOn::Transient,
            retry_budget: Some(RetryBudgetLimits::default()),
            breaker: Some(BreakerLimits::default()),
            bulkhead: Some(BulkheadLimits::default()),
            rate: None,
            safe_mode: SafeMode::OFF,
        }
    }
}

/// The largest numbers of a policy, in a scenario file and for a change while a run plays. Times are in
/// milliseconds.
pub mod max {
    /// Attempts of one call.
    pub const ATTEMPTS: u32 = 20;
    /// A wait before a further attempt.
    pub const BACKOFF_MS: u32 = 600_000;
    /// Retries that are always allowed.
    pub const FREE_RETRIES: u32 = 10_000;
    /// Failures in a row that open a breaker.
    pub const FAIL_THRESHOLD: u32 = 10_000;
    /// Probes of a half-open breaker.
    pub const PROBES: u32 = 1_000;
    /// Attempts in flight.
    pub const IN_FLIGHT: u32 = 100_000;
    /// Attempts that start in a minute.
    pub const RATE: u32 = 100_000;
    /// A timeout, the time that a breaker stays open, the time in a queue, the age of a cached value.
    pub const TIME_MS: u32 = 86_400_000;
    /// An injected latency.
    pub const LATENCY_MS: u32 = 600_000;
}

/// Which failures are retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    /// Transient ones: timeout, connection errors, 5xx, 429 (docs/rules/patterns.md, *Tool
    /// gateway*).
    Transient,
    /// Only a timeout, as in the orchestrator source document for its workers.
    Timeout,
}

/// The fallback for a call that fails (cascading failures source document: "safe mode").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeMode {
    /// Whether a fallback is used.
    pub enabled: bool,
    /// Whether the run may continue without a result; if not, it stops with the tool's reason.
    pub allow_partial: bool,
    /// Maximum age of the cached last good value; `None`: it is not cached.
    pub cache_ttl: Option<Duration>,
    /// The default value that the scenario declares.
    pub fallback: Option<Arc<Value>>,
}

impl SafeMode {
    /// No fallback; the run may continue without a result.
    pub const OFF: Self =
        Self { enabled: false, allow_partial: true, cache_ttl: None, fallback: None };
}

/// Which keys of `[tools.llm]` the scenario leaves to the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsetLlmKeys {
    /// `retries.max_attempts`
    pub max_attempts: bool,
    /// `retries.backoff_ms`
    pub backoff: bool,
    /// `retry_budget.min`
    pub retry_min: bool,
    /// `breaker.counts`
    pub breaker_counts: bool,
}

/// Limits of a tool's breaker. A change takes effect during the run; counts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "BreakerHead")]
pub struct BreakerLimits {
    /// Consecutive failures that open it. 0 counts as 1.
    pub fail_threshold: u32,
    /// Milliseconds that it stays open.
    #[serde(rename = "open_for_ms", with = "as_millis")]
    #[schemars(with = "u64")]
    pub open_for: Duration,
    /// Concurrent probes while it is half-open. 0 counts as 1: without probes it could never close
    /// again.
    pub probe_permits: u32,
    /// What happens after the open time, and to late results.
    pub mode: BreakerMode,
    /// Whether failed attempts or failed calls count.
    #[serde(default, skip_serializing_if = "BreakerCounts::is_per_attempt")]
    pub counts: BreakerCounts,
    /// The window of calls by which it decides; `None`: failures in a row decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowLimits>,
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self {
            fail_threshold: 5,
            open_for: Duration::from_secs(30),
            probe_permits: 1,
            mode: BreakerMode::HalfOpen,
            counts: BreakerCounts::Attempts,
            window: None,
        }
    }
}

/// When a breaker opens that judges its tool by the latest calls, as those of resilience4j and Polly
/// do: after `min_calls`, where one of the two rates is reached. The source document counts failures
/// in a row only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WindowLimits {
    /// What `size` counts.
    pub kind: WindowKind,
    /// The latest calls, or the latest seconds.
    pub size: u32,
    /// Calls in the window before it decides.
    pub min_calls: u32,
    /// Share of failed calls that opens the breaker.
    pub failure_rate: Rate,
    /// A call that takes longer, in milliseconds, is slow; `None`: no call is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_call_ms: Option<u64>,
    /// Share of slow calls, failed ones included, that opens the breaker.
    pub slow_rate: Rate,
}

impl WindowLimits {
    /// The largest size of a window, in calls or in seconds.
    pub const MAX_SIZE: u32 = 3_600;

    /// The largest `min_calls`: a window of calls never has more than its size.
    pub fn max_min_calls(&self) -> u32 {
        match self.kind {
            WindowKind::Count => self.size,
            WindowKind::Time => Self::MAX_SIZE,
        }
    }
}

/// What the size of a breaker's window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// The latest calls.
    Count,
    /// The calls of the latest seconds. It moves on by whole seconds, counted from its first call.
    Time,
}

/// A share above zero in whole thousandths, so that it is compared exactly. In JSON it is a number up
/// to 1.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(from = "f64", into = "f64")]
pub struct Rate(u16);

impl Rate {
    /// All of them.
    pub const ALL: Self = Self(1_000);
    /// The smallest rate that a scenario file may have.
    pub const MIN_SHARE: f64 = 0.01;

    /// The rate that is closest to this share.
    pub fn from_share(share: f64) -> Self {
        Self((share * 1_000.0).round().clamp(1.0, 1_000.0) as u16)
    }

    /// The share, above 0 and up to 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1_000.0
    }

    /// Whether `part` of `all` is at least this share.
    pub fn is_reached(self, part: u32, all: u32) -> bool {
        u64::from(part) * 1_000 >= u64::from(self.0) * u64::from(all)
    }
}

impl From<f64> for Rate {
    fn from(share: f64) -> Self {
        Self::from_share(share)
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> Self {
        rate.share()
    }
}

/// What a breaker counts as a failure.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "BulkheadHead")]
pub struct BulkheadLimits {
    /// The concurrency limit: attempts in flight.
    pub max_in_flight: u32,
    /// Max milliseconds that an attempt may be queued: 0 means no queue; `None` means until the
    /// run's time is up.
    #[serde(rename = "max_wait_ms", with = "as_millis::option")]
    #[schemars(with = "Option<u64>")]
    pub max_wait: Option<Duration>,
}

impl Default for BulkheadLimits {
    fn default() -> Self {
        Self { max_in_flight: 10, max_wait: Some(Duration::ZERO) }
    }
}

/// Limits of a tool's retry budget, over the last 60 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
