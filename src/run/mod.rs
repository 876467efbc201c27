//! What a pattern gets to run with: the [`RunContext`] with its boundaries, flags, deadline and
//! model, and the [`Crew`] that runs several calls concurrently inside one task.
//!
//! Pause, step, breakpoints, cancel and the deadline are all in [`gate`] and nowhere else.

mod context;
mod crew;
pub mod gate;
mod lanes;
mod phase;
mod rosters;
mod session;
mod spending;
mod tools;

pub use context::{LLM, ModelRequest, RunContext, RunSettings, model_tool};
pub use crew::OrderedJoinSet;
pub use gate::{RunControl, RunStopped};
pub use lanes::ConcurrencyLimit;
pub use phase::Phase;
pub use rosters::Rosters;
pub use session::{Session, SessionMemory};
pub use tools::{CallerPolicy, REQUEST_ID, ToolCallRequest};
