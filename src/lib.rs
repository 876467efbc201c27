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
//! Without the default features (`tui`, the dashboard and the program; `documents`, the tools that read
//! folders and web pages) the library has only the engine. `examples/` has a model and a tool of one's own.
//!
//! `ARCHITECTURE.md` says what each module contains, and `tests/structure` fails when a module
//! imports one that it may not.

// Dead code and unused names are judged where everything is built: what a feature leaves out uses them.
#![cfg_attr(not(all(feature = "tui", feature = "documents")), allow(dead_code, unused_imports))]
// Only in the library: tests and benches may panic.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// What is public. The modules below are private, so the compiler finds what nothing uses; `bench` has
// what the project's own program, benches and integration tests need of them.

// A scenario: load it, say what is wrong with it.
pub use scenario::{
    CheckedScenario, Override, OverrideError, Problem, Problems, Scenario, ScenarioOrigin,
    Severity, ShippedScenario, check, load, schema, shipped,
};
// Start it, steer it.
pub use engine::{
    Engine, EngineSettings, Launch, ModelChoice, ResumeError, Resumption, RunHandle, Schedule,
    ToolNotReady, Toolbox,
};
pub use event::kind::Initiator;
pub use event::{BoundaryId, Command};
pub use scenario::spec::in_doubt::InDoubt;
// Read its events and its outcome.
pub use bus::{Bus, Divergence, LogLimits, LogReader, Recording, RecordingError};
pub use event::kind::{RunClosed, RunStarted, SCHEMA_VERSION};
pub use event::world::{Outcome, OutcomeFields, OutcomeUsage, RunFold, World};
pub use event::{Elapsed, Event, EventKind, LineError, RunId, Seq, SpanId, StopClass, StopReason};
// What its pattern did: an event of `EventKind::Pattern` has one of these.
pub use agents::facts::AgentFact;
pub use event::patterns::PatternFact;
pub use pattern::collaboration::facts::CollaborationFact;
pub use pattern::orchestrator::facts::OrchestratorFact;
pub use pattern::research::facts::ResearchFact;
pub use pattern::router::facts::RouterFact;
// The names in them.
pub use base::name::{AgentName, FlagName, RoleName, ScenarioName, TaskId, ToolName};
// A model: over HTTP, or one's own.
pub use event::kind::{
    AttemptFailed, ChatMessage, FailureClass, MessageRole, ModelLabel, Purpose, Reply, ReplyEnd,
    ToolCall, ToolOffer, Usage,
};
pub use llm::anthropic::Anthropic;
pub use llm::endpoint::{Endpoint, EndpointError, EndpointRequest, find_here};
pub use llm::openai::OpenAi;
pub use llm::{
    ChatModel, ChatRequest, Conversation, Listener, Models, ReplyContract, ReplyForm, Tuning,
};
pub use net::{Http, ProxyMode};
// Its child processes, if the program is killed.
pub use tool::process_group::supervise_children;
// A tool of one's own.
pub use gateway::{GuardSnapshot, Tool, ToolRequest};

mod agents;
#[cfg(feature = "tui")]
mod app;
mod base;
#[doc(hidden)]
pub mod bench;
mod bus;
#[cfg(feature = "tui")]
mod cli;
mod clock;
#[cfg(feature = "nats")]
mod cluster;
mod decide;
#[cfg(feature = "documents")]
mod document;
mod engine;
mod event;
mod expectations;
mod gateway;
mod host;
mod llm;
mod narrate;
mod net;
#[cfg(feature = "tui")]
mod panes;
mod pattern;
mod run;
#[cfg(feature = "nats")]
mod runner;
mod scenario;
#[cfg(feature = "tui")]
mod shell;
#[cfg(feature = "store")]
mod store;
mod tool;
#[cfg(feature = "tui")]
mod ui;

// The tests of internals use every part; `cargo test` builds them with both features.
#[cfg(test)]
extern crate self as roundtable;
#[cfg(test)]
#[cfg(all(feature = "tui", feature = "documents"))]
#[path = "../tests/internals/mod.rs"]
mod internals;
#[cfg(test)]
#[cfg(all(feature = "tui", feature = "documents"))]
#[path = "../tests/support/mod.rs"]
mod support;
