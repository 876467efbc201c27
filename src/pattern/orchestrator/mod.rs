//! The orchestrator pattern (orchestrator source document): a planner writes tasks, workers run
//! them in parallel, and the scenario's rules aggregate the results.

mod aggregate;
pub(crate) mod concurrency;
mod detail;
mod dispatch;
pub mod facts;
pub(crate) mod faults;
pub mod file;
pub(crate) mod head;
pub(crate) mod outcome;
mod payload;
pub mod plan;
pub mod play;
pub mod policy;
pub mod projection;
pub mod spec;

pub use aggregate::{DecidedLevel, gather_results, overwritten_tasks};
pub(crate) mod words;
