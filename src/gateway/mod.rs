//! The gateway: every call of a tool or model goes through it. It applies the policies that keep a
//! failure from spreading (cascading failures source document): timeouts, retries, breaker, bulkhead,
//! retry budget, safe mode and injected faults.
//!
//! [`breaker`], [`bulkhead`] and [`budget`] are pure state machines with the clock passed in; a
//! [`Guard`] holds those of one tool. This module knows nothing of patterns, runs or tools: what it
//! needs of a run is the trait [`CallScope`], and of a tool the trait [`Tool`].

pub mod breaker;
pub mod budget;
pub mod bulkhead;
pub mod call;
pub mod call_scope;
pub(crate) mod call_turn;
pub(crate) mod change;
pub mod contract;
pub(crate) mod failed_attempt;
pub mod faults;
pub mod guard;
pub mod guard_state;
pub mod interface;
pub(crate) mod last_good;
pub(crate) mod recorded_attempt;
pub mod refusal;
pub mod registry;
pub mod retry;
pub(crate) mod time_limit;

pub use call::{CallFailed, CallSuccess, GatewayCall};
pub use call_scope::{Attempt, CallScope, Callee, QueueMarker};
pub use guard::{Guard, GuardSnapshot};
pub use interface::{Tool, ToolRequest};
pub use registry::{GuardedTool, ToolRegistry, ToolSetup};
