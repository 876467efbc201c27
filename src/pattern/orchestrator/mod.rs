//! Pattern `001`, the orchestrator: a planner's tasks, dispatched to workers in parallel, put
//! together by the scenario's rules.

mod aggregate;
mod detail;
mod dispatch;
mod payload;
pub mod play;
pub mod policy;

pub use aggregate::{gather, overwritten};
