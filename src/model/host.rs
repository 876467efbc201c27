//! What an attempt of a model or a tool may do with its run before it ends.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::log::event::AgentStep;

/// The run, for an attempt.
pub trait AttemptHost: Send + Sync {
    /// Publishes how far the attempt is. It has more time then, up to a bound.
    fn progress(&self, progress: AttemptProgress);
    /// Asks a person for something that the other program needs. The attempt's timeout does not count
    /// the wait.
    fn ask(&self, request: InputRequest) -> BoxFuture<'_, InputReply>;
    /// Asks a person whether the other program may do something. Returns the index of the choice; `None`:
    /// a person said no, or nobody answered.
    fn permit(&self, request: PermissionRequest) -> BoxFuture<'_, Option<usize>> {
        let _ = request;
        Box::pin(std::future::ready(None))
    }
    /// Publishes what the other program does. The attempt has more time then, up to a bound.
    fn step(&self, step: AgentStep) {
        let _ = step;
    }
    /// The other program is at work, with nothing to show. The attempt has more time then, up to a bound.
    fn alive(&self) {}
}

/// No run: nobody answers, and nobody sees progress.
pub struct NoHost;

impl AttemptHost for NoHost {
    fn progress(&self, _: AttemptProgress) {}

    fn ask(&self, _: InputRequest) -> BoxFuture<'_, InputReply> {
        Box::pin(std::future::ready(InputReply::Cancel))
    }
}

/// How far an attempt is, in the words and the unit of the other program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptProgress {
    /// What it does; may be empty.
    pub text: String,
    pub done: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
}

/// What another program asks a person for.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRequest {
    /// The program: the name of the MCP server, or of the agent.
    pub from: String,
    /// Why, in its own words.
    pub text: String,
    /// JSON schema of the answer, an object with fields that are no objects.
    pub schema: Value,
}

/// The answer of a person to another program.
#[derive(Clone, Debug, PartialEq)]
pub enum InputReply {
    /// This object.
    Accept(Value),
    /// A person said no.
    Decline,
    /// Nobody answered.
    Cancel,
}

/// What another program wants to do.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionRequest {
    /// The agent.
    pub from: Arc<str>,
    /// What it wants to do, with all that a person has to know.
    pub text: String,
    /// The answers to choose from, each of them another text.
    pub choices: Vec<Arc<str>>,
}
