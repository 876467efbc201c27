//! `roundtable`: launches runs of multi-agent patterns and shows them live.
//!
//! The central idea: **a run is a log of events, and every view of it is a fold of that log.** The
//! engine only appends; the dashboard, the headless outcome and every export read the same log, so
//! they cannot disagree.
//!
//! `ARCHITECTURE.md` says what each module contains, and `tests/structure` fails when a module
//! imports one that it may not.

// Only in the library: tests and benches may panic.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod app;
pub mod base;
pub mod bus;
pub mod cli;
pub mod decide;
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
pub mod shell;
pub mod tool;
pub mod ui;

#[cfg(test)]
extern crate self as roundtable;
pub mod agents;
#[cfg(test)]
#[path = "../tests/internals/mod.rs"]
mod internals;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
