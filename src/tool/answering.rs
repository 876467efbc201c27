//! What answers behind the gateway: the trait that every kind of tool fulfils.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::event::kind::AttemptFailed;

/// What a tool is asked in one attempt.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'a> {
    /// What it is given.
    pub args: &'a Map<String, Value>,
    /// Which attempt of its call, from 1.
    pub attempt: u32,
    /// Random bits of this attempt's own: a hash of (seed, path, attempt).
    pub draw: u64,
    /// How long the run has gone on when it asks, pauses left out.
    pub active: Duration,
}

/// A tool: one attempt each call. It neither retries nor bounds its time, and dropping the future
/// cancels the attempt, whatever it has started included.
pub trait Tool: Send + Sync {
    /// Asks it once.
    ///
    /// # Errors
    /// How it failed, with a text that says what to do; keys and addresses redacted.
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>>;
}
