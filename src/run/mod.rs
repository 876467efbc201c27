//! What a pattern gets to run with: the [`RunContext`] with its boundaries, flags, deadline and
//! model, and the [`OrderedJoinSet`] that runs several calls concurrently inside one task.
//!
//! Pause, step, breakpoints, cancel and the deadline are all in [`control`] and nowhere else.

mod concurrency;
mod context;
pub mod control;
mod join_set;
mod phase;
mod rosters;
mod session;
mod spending;
mod tools;

pub use concurrency::ConcurrencyLimit;
pub use context::{LLM, ModelRequest, RunContext, RunSettings, model_tool};
pub use control::{RunControl, RunStopped};
pub use join_set::OrderedJoinSet;
pub use phase::Phase;
pub use rosters::Rosters;
pub use session::{Session, SessionMemory};
pub use tools::{CallerPolicy, ToolCallRequest};
