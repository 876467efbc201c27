//! The orchestrator pattern (orchestrator source document): a planner writes tasks, workers run
//! them in parallel, and the scenario's rules aggregate the results.

mod aggregate;
pub mod dispatch;
pub mod play;
pub mod policy;

pub use self::aggregate::{DecidedLevel, gather_results, overwritten_tasks};
