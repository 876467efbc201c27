//! What the tests inside the library share. `program.rs` is what the tests of the real binary share.
//! Benches use parts of this folder too, so the library is called `roundtable` here.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod api;
pub mod console;
pub mod facts;
pub mod files;
pub mod folder;
pub mod gateway_call;
pub mod kept;
pub mod messages;
pub mod nats;
pub mod nats_proxy;
pub mod own_runner;
pub mod people;
#[cfg(unix)]
pub mod pipe;
pub mod plan;
pub mod relay;
pub mod research;
pub mod screen;
pub mod server;
pub mod site;
pub mod sources;
pub mod storm;
pub mod table;
pub mod team;
pub mod vectors;
pub mod web_research;
pub mod wire;

use proptest::test_runner::{Config, FileFailurePersistence};

/// So many random cases of a property. Those that fail are kept beside the source of the test.
pub fn random_cases(cases: u32) -> Config {
    let beside = FileFailurePersistence::WithSource("proptest-regressions");
    Config { cases, failure_persistence: Some(Box::new(beside)), ..Config::default() }
}
