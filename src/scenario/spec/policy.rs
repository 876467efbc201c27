//! The gateway's policy for calls of one tool or of the model.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::limits::{BreakerLimits, BulkheadLimits, RetryBudgetLimits};

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
            safe_mode: SafeMode::OFF,
        }
    }
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
