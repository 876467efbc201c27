//! The machines before a tool: breaker, bulkhead and retry budget, each against a plain reference
//! that is written another way, over random orders of everything that can happen to it. Time is
//! passed in or paused. Tests named `fault_N` show a fault of the list that the gateway survives.

mod breaker;
mod breaker_model;
mod budget;
mod bulkhead;
mod bulkhead_model;
mod rate;

use std::path::Path;

use crate::support::files::files;
use crate::support::sources::{code, of_std};
use proptest::prelude::ProptestConfig;

/// Things that happen in one random case.
pub const STEPS: usize = 200;
/// Random cases of each property: 51,200 steps.
pub const CASES: u32 = 256;

/// Failing cases are shown, not kept in a file.
pub fn config() -> ProptestConfig {
    ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }
}

/// Fault 15, as far as the machines go: a jump of a clock cannot reach them, for none of them reads
/// one at all; time is passed in.
#[test]
fn fault_15_machines_read_no_clock() {
    let machines = [
        ("breaker", include_str!("../../../../src/gateway/breaker.rs")),
        ("bulkhead", include_str!("../../../../src/gateway/bulkhead.rs")),
        ("retry", include_str!("../../../../src/gateway/retry.rs")),
    ];
    for (machine, source) in machines {
        for clock in ["::now()", ".elapsed()"] {
            assert!(!source.contains(clock), "{machine} reads a clock: {clock}");
        }
    }
}

/// The clocks of the standard library that a source can name; `Duration` is none.
fn clocks(source: &str) -> Vec<String> {
    let mut found = of_std(source);
    found.retain(|path| {
        let time = path.starts_with("std::time") && !path.starts_with("std::time::Duration");
        time || ["std::*", "std::self", "std as"].iter().any(|all| path.starts_with(all))
    });
    let names = ["SystemTime", "UNIX_EPOCH", "chrono::"].into_iter();
    found.extend(names.filter(|name| code(source).contains(name)).map(str::to_owned));
    found
}

/// Fault 15: all of the gateway and the run read tokio's clock alone, which is monotonic and which
/// tests pause. A wall clock that jumps moves nothing where none is read.
#[test]
fn fault_15_sources_avoid_system_clock() {
    let mut found = Vec::new();
    for module in ["gateway", "tool", "run"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(module);
        found.extend(files(&folder, "rs"));
    }
    assert!(found.iter().any(|path| path.ends_with("gateway/guard.rs")), "{found:?}");
    assert!(found.iter().any(|path| path.ends_with("run/control.rs")), "{found:?}");
    for path in found {
        let source = std::fs::read_to_string(&path).expect("a source");
        let mut read = clocks(&source);
        // Files and pages have days of their own: times of the wall are data there, and what time
        // it is they are told. One place asks, to take away files that nobody has used for long.
        if path.ends_with("folder/text_index.rs") {
            continue;
        }
        if ["text", "folder", "web"].iter().any(|module| path.iter().any(|part| part == *module)) {
            read.retain(|clock| {
                clock.contains("Instant") || code(&source).contains("SystemTime::now")
            });
        }
        assert!(read.is_empty(), "{} reads a clock: {read:?}", path.display());
    }
}

#[test]
fn finds_every_clock_import() {
    for source in [
        "use std::time::Instant;",
        "use std::time::{Duration, Instant};",
        "use std::{sync::Arc, time::{Duration, Instant as Clock}};",
        "use std::{\n    sync::{Arc, Mutex},\n    time,\n};",
        "use std::time;\nfn f() { time::Instant::now(); }",
        "use std::time::{self, Duration};",
        "use std::time as t;",
        "use std::time::*;",
        "use std::*;",
        "use std::{self as s};",
        "use std as s;",
        "fn f() { let _ = ::std :: time :: Instant::now(); }",
        "use crate::SystemTime;",
    ] {
        assert!(!clocks(source).is_empty(), "{source}");
    }
    for source in [
        "use std::time::Duration;\nuse tokio::time::{Instant, sleep};",
        "use std::{sync::Arc, time::Duration};",
        "// std::time::Instant is not read here\nuse std::sync::Arc;",
        "fn f() -> std::time::Duration { std::time::Duration::from_secs(1) }",
    ] {
        assert_eq!(clocks(source), [""; 0], "{source}");
    }
}
