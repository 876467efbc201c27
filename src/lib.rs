//! `roundtable`: launches runs of multi-agent patterns and shows them live.
//!
//! The central idea: **a run is a log of events, and every view of it is a fold of that log.** The
//! engine only appends; the dashboard, the headless outcome and every export read the same log, so
//! they cannot disagree.
//!
//! A program that embeds the engine loads a scenario, starts it, reads its events and gets its outcome:
//!
//! ```
//! use std::sync::Arc;
//!
//! use roundtable::{Engine, EngineSettings, Launch, World, load, shipped};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = shipped().iter().find(|it| it.name == "checkout-unanimous").ok_or("not shipped")?;
//! let scenario = Arc::new(load(file.text, file.origin(), &[])?);
//! let engine = Engine::new(EngineSettings::default());
//! let run = engine.start(Launch::scripted(scenario, true));
//! let (mut reader, mut events, mut world) = (run.first_reader(), Vec::new(), World::default());
//! while reader.next_batch(&mut events, 64).await > 0 {
//!     events.drain(..).for_each(|event| world.apply(&event));
//! }
//! let outcome = world.outcome().ok_or("the run has not ended")?;
//! assert!(outcome.stop_reason.is_success());
//! # Ok(())
//! # }
//! ```
//!
//! `examples/` has a model and a tool of one's own.
//!
//! `ARCHITECTURE.md` says what each module contains, and `tests/structure` fails when a module
//! imports one that it may not.

// Only in the library: tests and benches may panic.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// What is public: a scenario and its problems; the engine, which starts and steers runs; their events, world
// and outcome; models; tools. The modules below are private, so the compiler finds what nothing uses; `bench` has
// what the project's own program, benches and integration tests need of them.
pub use self::base::name::{AgentName, FlagName, RoleName, ScenarioName, TaskId, ToolName};
pub use self::engine::{
    Engine, EngineSettings, Launch, ModelChoice, ResumeError, Resumption, RunHandle, Schedule,
    ToolNotReady, Toolbox,
};
pub use self::gateway::{GuardSnapshot, Tool, ToolRequest};
pub use self::log::bus::{Bus, Divergence, LogLimits, LogReader, Recording, RecordingError};
pub use self::log::event::{
    AttemptFailed, BoundaryId, ChatMessage, Command, Elapsed, Event, EventKind, FailureClass,
    Initiator, LineError, MessageRole, ModelLabel, Purpose, Reply, RunClosed, RunId, RunStarted,
    SCHEMA_VERSION, Seq, SpanId, StopClass, StopReason, Usage,
};
pub use self::log::facts::PatternFact;
pub use self::log::facts::agents::AgentFact;
pub use self::log::facts::collaboration::CollaborationFact;
pub use self::log::facts::orchestrator::OrchestratorFact;
pub use self::log::facts::research::ResearchFact;
pub use self::log::facts::router::RouterFact;
pub use self::log::world::{Outcome, OutcomeFields, OutcomeUsage, RunFold, World};
pub use self::model::anthropic::Anthropic;
pub use self::model::endpoint::{Endpoint, EndpointError, EndpointRequest, find_here};
pub use self::model::openai::OpenAi;
pub use self::model::{
    ChatModel, ChatRequest, Conversation, Listener, Models, ReplyContract, ReplyForm,
};
pub use self::net::{Http, ProxyMode};
pub use self::scenario::spec::script::ReplyEnd;
pub use self::scenario::spec::tool::{ToolCall, ToolOffer};
pub use self::scenario::spec::{InDoubt, Tuning};
pub use self::scenario::{
    CheckedScenario, Override, OverrideError, Problem, Problems, Scenario, ScenarioOrigin,
    Severity, ShippedScenario, check, load, schema, shipped,
};
pub use self::tool::process_group::supervise_children;

#[cfg(test)]
extern crate self as roundtable;
#[cfg(test)]
#[path = "../tests/internals/mod.rs"]
mod internals;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

mod base;
#[doc(hidden)]
pub mod bench;
mod cli;
mod cluster;
mod engine;
mod gateway;
mod host;
mod log;
mod model;
mod net;
mod pattern;
mod run;
mod scenario;
mod screen;
mod store;
mod terminal;
mod tool;
mod traces;
mod watch;
mod words;
