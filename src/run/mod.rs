//! What a pattern is handed while it runs: the [`RunContext`] with its boundaries, flags, deadline
//! and model, and the [`Crew`] that lets several calls go on side by side inside one task.
//!
//! Pausing, stepping, breakpoints, cancelling and the deadline are all in [`gate`], nowhere else.

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
