//! What a pattern gets to run with: the [`RunContext`] with its boundaries, flags, deadline and
//! model, and the [`OrderedJoinSet`] that runs several calls concurrently inside one task.
//!
//! Pause, step, breakpoints, cancel and the deadline are all in [`control`] and nowhere else.

mod context;
pub mod control;
mod join_set;
mod live_control;
mod model_call;
mod model_request;
mod phase;
pub(crate) mod replay;
mod session;
mod spending;
mod tools;

pub use context::{AskingRules, LLM, RunContext, RunSettings, model_tool};
pub use control::RunControl;
pub use join_set::OrderedJoinSet;
pub use live_control::LiveControl;
pub use model_request::ModelRequest;
pub use phase::Phase;
#[cfg(feature = "nats")]
pub use session::LeftSession;
pub use session::{Session, SessionMemory};
pub use tools::{CallerPolicy, ToolCallRequest};
