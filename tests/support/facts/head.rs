//! The tools of a run as its first fact has them.

use std::time::Duration;

use roundtable::bench::{
    BreakerCounts, BreakerLimits, BreakerMode, BulkheadLimits, SafeModeHead, ToolHead, ToolLimits,
};

fn limits(timeout_ms: u64, guarded: bool) -> ToolLimits {
    ToolLimits {
        timeout_ms,
        max_attempts: 3,
        backoff_ms: vec![200, 400],
        jitter: true,
        breaker: guarded.then_some(BreakerLimits {
            fail_threshold: 3,
            open_for: Duration::from_millis(3_000),
            probe_permits: 1,
            mode: BreakerMode::HalfOpen,
            counts: BreakerCounts::Attempts,
            window: None,
        }),
        bulkhead: guarded.then_some(BulkheadLimits {
            max_in_flight: 8,
            max_wait: Some(Duration::from_millis(200)),
        }),
        retry_budget: None,
        safe_mode: Some(SafeModeHead {
            allow_partial: true,
            cache_ttl_ms: Some(60_000),
            fallback: guarded,
        }),
    }
}

/// A tool with its limits.
pub fn tool(name: &str, kind: &str, timeout_ms: u64, guarded: bool) -> ToolHead {
    let limits = limits(timeout_ms, guarded);
    ToolHead { name: name.into(), kind: kind.to_owned(), shared: false, limits, faults: vec![] }
}
