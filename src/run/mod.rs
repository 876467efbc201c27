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

pub use context::{Ask, LLM, RunContext, RunSettings, model_tool};
pub use crew::Crew;
pub use gate::{Gate, Stop};
pub use lanes::Lanes;
pub use phase::Phase;
pub use rosters::Rosters;
pub use session::{Memory, Session};
pub use tools::{Caller, REQUEST_ID, ToolAsk};
