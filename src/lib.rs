//! `roundtable`: launches runs of multi-agent patterns and shows them live.
//!
//! One idea carries everything: **a run is a log of events, and all that anyone sees is a fold of
//! that log.** The engine only appends; the dashboard, the headless result and every export are
//! readers of the same log, so they cannot disagree.
//!
//! Each module is a *room*; `ARCHITECTURE.md` says what lives where, and `tests/layering.rs` fails
//! when a room imports one that it may not.

// In the library alone: tests and benches may fail loudly.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod app;
pub mod bus;
pub mod cli;
pub mod decide;
pub mod engine;
pub mod event;
pub mod llm;
pub mod net;
pub mod pattern;
pub mod private;
pub mod regular;
pub mod run;
pub mod scenario;
pub mod shell;
pub mod tool;
pub mod ui;
