//! A request to a model.

use std::borrow::Cow;
use std::sync::Arc;

use crate::event::SpanId;
use crate::event::kind::{ChatMessage, MessageRole, Prompt, Purpose, Reply, ToolOffer};
use crate::llm::{Conversation, ReplyForm};
use crate::scenario::condition::CelBindings;

/// A request to the model.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The span that the call belongs to.
    pub parent: SpanId,
    /// What the call is for.
    pub purpose: Purpose,
    /// Name of the call within the run, the same in every run: random numbers are derived from it.
    pub path: String,
    /// The whole conversation.
    pub messages: Conversation,
    /// The part of the conversation that the log does not have yet.
    pub prompt: Prompt,
    /// The tools that the model may call.
    pub tools: Arc<[ToolOffer]>,
    /// The format that the reply must have.
    pub form: ReplyForm,
    /// The values that conditions of a script may read, if there are conditions.
    pub shown: Option<Arc<CelBindings>>,
    /// How many replies to this request were refused before: the model is asked again.
    pub again: u32,
    /// How often the model has paused before this call, and is asked to continue.
    pub pauses: u32,
}

impl ModelRequest {
    /// A single question without an earlier conversation.
    pub fn single(
        parent: SpanId,
        purpose: Purpose,
        path: String,
        messages: Arc<[ChatMessage]>,
        form: ReplyForm,
        shown: Option<CelBindings>,
    ) -> Self {
        Self {
            parent,
            purpose,
            path,
            messages: Conversation::from(Arc::clone(&messages)),
            prompt: Prompt::complete(messages),
            tools: Arc::default(),
            form,
            shown: shown.map(Arc::new),
            again: 0,
            pauses: 0,
        }
    }

    /// The same request after a refused reply: the conversation continues with that reply and with
    /// what is wrong with it.
    pub fn repeat_after_refusal(mut self, call: SpanId, reply: &Reply, wrong: String) -> Self {
        let wrong: Arc<[ChatMessage]> = [ChatMessage::new(MessageRole::User, wrong)].into();
        // Some providers refuse a conversation with an empty message.
        if !reply.text.trim().is_empty() {
            self.messages.push([ChatMessage::from_reply(reply)].into());
        }
        self.messages.push(Arc::clone(&wrong));
        self.prompt = Prompt { after: Some(call), messages: wrong, tools: None };
        self.again += 1;
        self
    }

    /// The request with which a model continues after it paused: the conversation ends with what it
    /// had said so far.
    pub fn continue_after_pause(mut self, call: SpanId, reply: &Reply) -> Self {
        self.messages.push([ChatMessage::from_reply(reply)].into());
        self.prompt = Prompt { after: Some(call), messages: Arc::default(), tools: None };
        self.pauses += 1;
        self
    }

    /// The path that random numbers are derived from: each request to repeat gets its own.
    pub(super) fn random_path(&self) -> Cow<'_, str> {
        match (self.again, self.pauses) {
            (0, 0) => Cow::Borrowed(&self.path),
            (again, 0) => Cow::Owned(format!("{}+{again}", self.path)),
            (again, pauses) => Cow::Owned(format!("{}+{again}-{pauses}", self.path)),
        }
    }
}
