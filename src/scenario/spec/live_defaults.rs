//! Defaults of the gateway's policy for a live model: endpoints fail now and then, and several
//! seats of a run call one at the same time.

use std::sync::Arc;
use std::time::Duration;

use super::limits::{BreakerCounts, RetryBudgetLimits};
use super::model::Scenario;
use super::policy::{CallPolicy, UnsetLlmKeys};

/// Default of `max_attempts`.
const MAX_ATTEMPTS: u32 = 4;
/// Waits in milliseconds before attempt 2, 3, …; the last value repeats.
const BACKOFF_MS: [u64; 5] = [500, 1_000, 2_000, 4_000, 8_000];
/// Retries per minute that each caller of the model may always make.
const RETRIES_PER_CALLER: u32 = 2;

impl Scenario {
    /// The gateway's policy for calls of a live model: [`Scenario::llm`], with the defaults of a
    /// live model for keys that the file does not set.
    pub fn llm_live(&self) -> Arc<CallPolicy> {
        self.prepared.live_policy(|| self.with_live_defaults())
    }

    fn with_live_defaults(&self) -> CallPolicy {
        let UnsetLlmKeys { max_attempts, backoff, retry_min, breaker_counts } =
            self.model.unset_keys;
        let mut policy = CallPolicy::clone(&self.llm);
        if max_attempts {
            policy.max_attempts = MAX_ATTEMPTS;
        }
        if backoff {
            policy.backoff = BACKOFF_MS.map(Duration::from_millis).into();
        }
        if let Some(budget) = &mut policy.retry_budget
            && retry_min
        {
            let callers =
                u32::try_from(self.pattern.get().model_callers().len()).unwrap_or(u32::MAX);
            let floor = RETRIES_PER_CALLER.saturating_mul(callers);
            budget.min = floor.max(RetryBudgetLimits::default().min);
        }
        if let Some(breaker) = &mut policy.breaker
            && breaker_counts
        {
            breaker.counts = BreakerCounts::Calls;
        }
        policy
    }
}
