//! The patterns, each in its own folder. `policy.rs` is pure (validate, decide) and holds the rules
//! that a user must be able to trust; `play.rs` is the loop that calls models and tools, applies
//! the policy and publishes events.
//!
//! A pattern does not know that a dashboard exists. Everything that is not deterministic goes
//! through its [`RunContext`](crate::run::RunContext).

pub mod collaboration;
pub mod orchestrator;
pub(crate) mod prompting;
pub mod reply;
pub mod research;
pub mod resilience;
pub mod team;
