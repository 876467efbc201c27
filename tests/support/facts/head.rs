//! The head of a run and its tools, as its first fact has them.

use std::time::Duration;

use roundtable::bench::{
    BreakerCounts, BreakerLimits, BreakerMode, BulkheadLimits, PatternPlan, SafeModeHead, ToolHead,
    ToolLimits,
};
use roundtable::{ModelLabel, RunId, RunStarted};
use serde_json::Map;

/// A scripted run of this plan that has nothing else.
pub fn started(run: &str, plan: PatternPlan) -> RunStarted {
    RunStarted {
        run: RunId::new(run),
        wall_ms: 1_772_442_000_000,
        scenario: "a-story".into(),
        title: String::new(),
        goal: String::new(),
        model: ModelLabel::Scripted,
        inputs: Map::new(),
        flags: Vec::new(),
        seed: 7,
        prices: None,
        model_prices: Vec::new(),
        tools: Vec::new(),
        people: Vec::new(),
        ask_again: 0,
        shows_flags: false,
        alerts: Default::default(),
        spending: Default::default(),
        launch: None,
        redacted: false,
        plan,
    }
}

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
        rate: None,
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
