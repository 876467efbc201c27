//! The gateway: the one choke point that every call of a tool or model goes through, with the
//! policies that keep a failure from spreading (source `003`).
//!
//! What lives here knows nothing of patterns or runs: what it needs of a run is the trait
//! [`CallScope`].

pub mod breaker;
pub mod budget;
pub mod bulkhead;
pub mod contained;
pub mod gateway;
pub mod retry;

pub use gateway::{Attempt, Call, CallFailed, CallScope, Callee};
