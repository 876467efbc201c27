//! Runs whose calls become ready at the same moment: which of them takes the free slot, the place in
//! a queue or the last retry is what the log says.

use std::sync::Arc;

use proptest::prelude::*;

use super::{faults, resume, stored};
use crate::engine::Launch;
use crate::log::event::{Elapsed, Event};
use crate::support::table::{engine, facts, read};

/// Agents that share a pool and a flaky tool behind all guards. All times are a few whole
/// milliseconds, so many of them end together.
#[derive(Clone, Debug)]
struct Crowd {
    agents: u32,
    pool: u32,
    permits: u32,
    max_wait_ms: u32,
    attempts: u32,
    open_for_ms: u32,
    capacity: u32,
    guarded: bool,
    seed: u64,
}

impl Crowd {
    fn text(&self) -> String {
        let Self { agents, pool, permits, max_wait_ms, attempts, capacity, guarded, .. } = self;
        let open_for_s = f64::from(self.open_for_ms) / 1_000.0;
        format!(
            r#"
title = "A crowd"
pattern = "resilience"
about = "For tests."
goal = "Do it."
[budget]
max_seconds = 60
[resilience]
agents = {agents}
turns = 3
steps = ["vendor", "orders"]
pool = {pool}
pace = "1ms..3ms"
guarded = {guarded}
naive = {{ client_retries = 1, tool_retries = 1, agent_retries = 1 }}
[tools.vendor]
timeout_s = 2
retries = {{ max_attempts = {attempts}, backoff_ms = [2], jitter = true }}
retry_budget = {{ percent = 10, min = 3 }}
breaker = {{ fail_threshold = 3, open_for_s = {open_for_s}, probe_permits = 1 }}
bulkhead = {{ max_in_flight = {permits}, max_wait_ms = {max_wait_ms} }}
[tools.vendor.safe_mode]
allow_partial = true
fallback = {{ segment = "unknown" }}
[tools.vendor.fixture.load]
capacity = {capacity}
flaky_rate = 0.5
flaky_from = "10ms"
flaky_until = "30ms"
[[tools.vendor.fixture.rows]]
latency = "1ms..4ms"
result = {{ segment = "returning" }}
[tools.orders]
timeout_s = 2
bulkhead = {{ max_in_flight = {permits}, max_wait_ms = {max_wait_ms} }}
[[tools.orders.fixture.rows]]
latency = "1ms..3ms"
result = {{ open_orders = 2 }}
"#
        )
    }

    fn launch(&self) -> Launch {
        let mut launch = Launch::scripted(read(&self.text(), &[]), false);
        launch.seed = Some(self.seed);
        launch
    }

    /// The faults of the run when it is continued after `part` of its events, and after all but the
    /// last.
    async fn continue_after(&self, part: f64, late_us: u64) -> Vec<String> {
        let full = later(&facts(&engine().start(self.launch())).await, late_us);
        let last = full.len() - 1;
        let mut wrong = Vec::new();
        for cut in [((last as f64 * part) as usize).max(1), last] {
            wrong.extend(match resume(self.launch(), stored(&full[..cut])).await {
                Ok(continued) => faults(&full, cut, &continued),
                Err(divergence) => vec![format!("cut after {cut}: {divergence}")],
            });
        }
        wrong
    }
}

/// The log of a slower computer: each event comes this much later after the one before it.
fn later(events: &[Arc<Event>], late_us: u64) -> Vec<Arc<Event>> {
    let moved = events.iter().map(|event| {
        let at = Elapsed(event.at.0 + event.seq.0 * late_us);
        Arc::new(Event { at, ..Event::clone(event) })
    });
    moved.collect()
}

fn crowds() -> impl Strategy<Value = Crowd> {
    let guards = (1_u32..6, 1_u32..8, 1_u32..4, 1_u32..20);
    (2_u32..12, 1_u32..10, guards, 1_u32..6, prop::bool::weighted(0.8), any::<u64>()).prop_map(
        |(agents, pool, (permits, max_wait_ms, attempts, open_for_ms), capacity, guarded, seed)| {
            Crowd {
                agents,
                pool,
                permits,
                max_wait_ms,
                attempts,
                open_for_ms,
                capacity,
                guarded,
                seed,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn simultaneous_calls_keep_recorded_order(
        crowd in crowds(),
        part in 0.0_f64..=1.0,
        late_us in 0_u64..200,
    ) {
        let runtime = crate::support::table::paused_runtime();
        let wrong = runtime.block_on(crowd.continue_after(part, late_us));
        prop_assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
