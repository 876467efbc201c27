//! Chat models: what is asked of one ([`ChatRequest`]), what it answers ([`Reply`]), how it fails
//! ([`Failure`]). `openai` talks HTTP, `scripted` plays the scenario's script.
//!
//! One call of [`ChatModel::chat`] is one attempt: no model retries, waits or times out by itself
//! (the gateway does), and dropping the future cancels the attempt.

pub mod endpoint;
pub mod openai;
pub mod scripted;

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::event::kind::{AttemptFailed, ChatMessage, FailureClass, ModelLabel, Purpose, Reply};
use crate::scenario::condition::Shown;

/// What is asked of a model in one attempt.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The whole conversation.
    pub messages: Arc<[ChatMessage]>,
    /// Whether the reply must be a JSON object.
    pub json: bool,
    /// On whose behalf.
    pub purpose: Purpose,
    /// Which attempt of its call, from 1.
    pub attempt: u32,
    /// A draw that is this attempt's own: a hash of (seed, span path, attempt).
    pub draw: u64,
    /// What conditions of a script may look at; empty for a live model.
    pub shown: Arc<Shown>,
}

/// Takes the text of a reply while it comes: each piece as it arrives. It must not block.
pub trait Listener: Send + Sync {
    /// The next piece of the reply's text.
    fn piece(&self, text: &str);
    /// A condition of a script could not be evaluated; it counts as false.
    fn condition_failed(&self, place: &str, text: &str) {
        let _ = (place, text);
    }
}

/// How an attempt failed: the fact without the part of the text that had come.
pub type Failure = AttemptFailed;

/// A failure of a class with its text, nothing else known.
pub fn failure(class: FailureClass, text: impl Into<String>) -> Box<Failure> {
    AttemptFailed::of(class, text)
}

/// A chat model.
pub trait ChatModel: Send + Sync {
    /// What the screen and the log call it.
    fn label(&self) -> ModelLabel;

    /// Whether answers depend on what is shown to conditions; where not, nothing is prepared.
    fn reads_conditions(&self) -> bool {
        false
    }

    /// One attempt.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>>;
}
