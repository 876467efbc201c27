//! The machines before a tool: breaker, bulkhead and retry budget, each against a plain reference
//! that is written another way, over random orders of everything that can happen to it. Time is
//! passed in or paused. Tests named `fault_N` show a fault of the list that the gateway survives.

mod breaker;
mod breaker_model;
mod budget;
mod bulkhead;
mod bulkhead_model;

use proptest::prelude::ProptestConfig;

/// Things that happen in one random case.
pub const STEPS: usize = 200;
/// Random cases of each property: 51,200 steps.
pub const CASES: u32 = 256;

/// Failing cases are shown, not kept in a file.
pub fn config() -> ProptestConfig {
    ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }
}

/// Fault 15, as far as the machines go: a jump of the wall clock cannot reach them, for none of
/// them reads a clock at all.
#[test]
fn fault_15_no_machine_reads_a_clock() {
    let machines = [
        ("breaker", include_str!("../../src/tool/breaker.rs")),
        ("bulkhead", include_str!("../../src/tool/bulkhead.rs")),
        ("budget", include_str!("../../src/tool/budget.rs")),
    ];
    for (machine, source) in machines {
        for clock in ["::now()", "SystemTime", "std::time::Instant", ".elapsed()"] {
            assert!(!source.contains(clock), "{machine} reads a clock: {clock}");
        }
    }
}
