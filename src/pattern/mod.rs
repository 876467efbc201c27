//! The patterns. Each is a folder: `policy.rs` is pure (validate, decide) and carries the rules
//! that a user must trust; `play.rs` is the loop that asks, judges and publishes.
//!
//! A pattern never knows that a dashboard exists, and asks everything that is not deterministic
//! of its [`RunContext`](crate::run::RunContext).

mod asked;
pub mod collaboration;
pub mod orchestrator;
pub mod reply;
pub mod research;
pub mod resilience;
pub mod team;
