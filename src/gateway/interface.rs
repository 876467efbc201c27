//! The trait that every kind of tool implements.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::event::kind::AttemptFailed;

/// What a tool receives for one attempt.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'a> {
    /// Arguments of the call.
    pub args: &'a Map<String, Value>,
    /// Number of the attempt within its call, from 1.
    pub attempt: u32,
    /// Random bits for this attempt: a hash of (seed, path, attempt).
    pub draw: u64,
    /// Time since the start of the run, pauses excluded.
    pub active: Duration,
}

/// A tool: one attempt per call of `ask`. It has no retries and no timeout of its own. Dropping the
/// future cancels the attempt and everything that it started.
pub trait Tool: Send + Sync {
    /// Makes one attempt.
    ///
    /// # Errors
    /// The failure, with advice; keys and addresses are redacted.
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>>;
}
