//! The gateway: every call of a tool or model goes through it. It applies the policies that keep a
//! failure from spreading (cascading failures source document). The tools themselves are here too.
//!
//! [`breaker`], [`bulkhead`] and [`budget`] are pure state machines with the clock passed in; a
//! [`Guard`] holds those of one tool. This module knows nothing of patterns or runs: what it needs
//! of a run is the trait [`CallScope`].

mod address;
pub mod breaker;
pub mod budget;
pub mod bulkhead;
mod change;
pub mod command;
pub mod contract;
pub mod endpoint;
mod failed_attempt;
pub mod faults;
pub mod fixture;
pub mod folder;
pub mod gateway;
pub mod guard;
pub mod http;
pub mod interface;
mod last_good;
mod process_group;
pub mod registry;
mod result_json;
pub mod retry;
pub mod settings;
mod time_limit;
pub mod web;

pub use gateway::{Attempt, CallFailed, CallScope, CallSuccess, Callee, GatewayCall, QueueMarker};
pub use guard::{Guard, GuardSnapshot};
pub use interface::{Tool, ToolRequest};
pub use registry::{GuardedTool, ToolRegistry, ToolSetup};
