//! `roundtable`: launches runs of multi-agent patterns and shows them live.
//!
//! The central idea: **a run is a log of events, and every view of it is a fold of that log.** The
//! engine only appends; the dashboard, the headless outcome and every export read the same log, so
//! they cannot disagree.
//!
//! `ARCHITECTURE.md` says what each module contains, and `tests/structure` fails when a module
//! imports one that it may not.

// Dead code is judged where everything is built: the parts that a feature leaves out use the rest.
#![cfg_attr(not(all(feature = "tui", feature = "documents")), allow(dead_code))]
// Only in the library: tests and benches may panic.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod agents;
#[cfg(feature = "tui")]
pub mod app;
pub mod base;
pub mod bus;
#[cfg(feature = "tui")]
pub mod cli;
pub mod decide;
#[cfg(feature = "documents")]
pub mod document;
pub mod engine;
pub mod event;
pub mod gateway;
pub mod host;
pub mod llm;
pub mod narrate;
pub mod net;
pub(crate) mod panes;
pub mod pattern;
pub mod run;
pub mod scenario;
#[cfg(feature = "tui")]
pub mod shell;
pub mod tool;
#[cfg(feature = "tui")]
pub mod ui;

// The tests of internals use every part; `cargo test` builds them with both features.
#[cfg(test)]
extern crate self as roundtable;
#[cfg(all(test, feature = "tui", feature = "documents"))]
#[path = "../tests/internals/mod.rs"]
mod internals;
#[cfg(all(test, feature = "tui", feature = "documents"))]
#[path = "../tests/support/mod.rs"]
mod support;
