//! The content of a reply: reads the same from an answer and from the events of a stream.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::TEXT_CAP;
use super::calls::{PartialCalls, ToolCallPart};
use crate::event::kind::Reply;
use crate::llm::ChatRequest;
use crate::llm::client::Client;
use crate::llm::client::fields::{
    BadAnswer, Fields, IgnoredFields, JsonText, TokenCounts, parse_needed,
};
use crate::llm::client::kept_fields::{FieldPlace, KeptFields};
use crate::llm::client::reply_end::end_of_completion;
use crate::llm::client::tool_calls::ToolCallFault;
use crate::scenario::spec::tool::ToolOffer;

/// Types of content parts that are the model's thinking; the reply does not include it.
const THINKING: [&str; 4] = ["thinking", "redacted_thinking", "reasoning", "summary"];

/// A message, or the next part of one.
struct MessagePart<'a> {
    text: Cow<'a, str>,
    refusal: String,
    calls: Vec<ToolCallPart<'a>>,
    /// The fields that go back with the message.
    kept: KeptFields,
}

impl<'a> MessagePart<'a> {
    /// # Errors
    /// Its text or its calls cannot be read.
    fn of(message: &Fields<'a>, ignored: &mut IgnoredFields) -> Result<Self, BadAnswer> {
        // A refusal of another type says nothing.
        let refuses = message.get("refusal").is_some_and(|it| it.get().starts_with('"'));
        let mut refusal =
            if refuses { message.text("refusal")?.into_owned() } else { String::new() };
        let is_list = |content: &RawValue| content.get().starts_with('[');
        let text = match message.get("content") {
            Some(content) if is_list(content) => {
                text_of_parts(&message.list("content")?, &mut refusal, ignored)?.into()
            }
            _ => message.text("content")?,
        };
        let mut calls = Vec::new();
        for call in message.list("tool_calls")? {
            calls.push(ToolCallPart::of(&parse_needed("tool_calls", call)?, ignored)?);
        }
        let kept = KeptFields::of(FieldPlace::Message, message);
        Ok(Self { text, refusal, calls, kept })
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }
}

/// The text in a list of content parts; a refusal in it is added to `refusal`.
fn text_of_parts(
    parts: &[&RawValue],
    refusal: &mut String,
    ignored: &mut IgnoredFields,
) -> Result<String, BadAnswer> {
    let mut text = String::new();
    for part in parts {
        if let Ok(JsonText(piece)) = serde_json::from_str(part.get()) {
            text.push_str(&piece);
            continue;
        }
        let part: Fields<'_> = parse_needed("content", part)?;
        match part.word("type").as_deref() {
            None | Some("text" | "output_text") => text.push_str(&part.text("text")?),
            Some("refusal") => refusal.push_str(&part.text("refusal")?),
            Some(kind) if THINKING.contains(&kind) => {}
            Some(_) => ignored.add("content"),
        }
    }
    Ok(text)
}

/// The content of a reply so far.
#[derive(Debug, Default)]
pub(super) struct CompletionContent {
    /// Whether a choice has arrived, even an empty one.
    pub(super) has_choice: bool,
    /// Whether a choice with a message has arrived.
    pub(super) has_message: bool,
    pub(super) text: String,
    pub(super) calls: PartialCalls,
    refusal: String,
    /// Whether a part of the reply came in a `delta`.
    is_streamed: bool,
    finish: Option<String>,
    model: Option<Arc<str>>,
    counts: TokenCounts,
    ignored: IgnoredFields,
    /// The fields that go back with the message.
    kept: KeptFields,
}

impl CompletionContent {
    /// Adds an answer, or an event of a stream. `offered`: the tools that calls may name.
    ///
    /// # Errors
    /// It reports an error; something that the reply needs cannot be read.
    pub(super) fn add(
        &mut self,
        answer: &Fields<'_>,
        offered: &[ToolOffer],
        client: &Client,
    ) -> Result<(), BadAnswer> {
        self.count(answer);
        if self.model.is_none() {
            self.model = answer.word("model").map(|name| client.model_name(&name));
        }
        let Some(choice) = answer.list("choices")?.into_iter().next() else {
            return Ok(());
        };
        let choice: Fields<'_> = parse_needed("choices", choice)?;
        self.has_choice = true;
        self.count(&choice);
        if let Some(delta) = choice.needed("delta")? {
            let delta = MessagePart::of(&delta, &mut self.ignored)?;
            self.add_delta(delta, offered)?;
        }
        // Next to deltas, some servers repeat the message as a whole.
        if !self.is_streamed && choice.raw("message").is_some_and(|it| it.get() != "null") {
            let message = choice.needed("message")?.unwrap_or_default();
            let message = MessagePart::of(&message, &mut self.ignored)?;
            self.add_message(message)?;
        }
        // OpenRouter reports the error of its provider here.
        if let Some(error) = choice.error() {
            return Err(BadAnswer::Reported(error));
        }
        if let Some(reason) = choice.word("finish_reason").filter(|reason| reason != "null") {
            self.finish = Some(reason.into_owned());
        }
        Ok(())
    }

    fn count(&mut self, of: &Fields<'_>) {
        let ignored = &mut self.ignored;
        let Some(usage) = of.optional("usage", ignored) else { return };
        let prompt_details = usage.optional("prompt_tokens_details", ignored).unwrap_or_default();
        let details = usage.optional("completion_tokens_details", ignored).unwrap_or_default();
        self.counts = self.counts.updated_with(TokenCounts {
            prompt: usage.count("prompt_tokens", ignored),
            completion: usage.count("completion_tokens", ignored),
            total: usage.count("total_tokens", ignored),
            cached: prompt_details.count("cached_tokens", ignored),
            cache_written: None,
            reasoning: details.count("reasoning_tokens", ignored),
        });
    }

    fn add_delta(
        &mut self,
        mut delta: MessagePart<'_>,
        offered: &[ToolOffer],
    ) -> Result<(), BadAnswer> {
        self.kept.add_part(std::mem::take(&mut delta.kept));
        if delta.is_empty() {
            return Ok(());
        }
        if self.has_begun() && !self.is_streamed {
            let why = "it has a `delta` after a whole `message`";
            return Err(BadAnswer::Unreadable(why.to_owned()));
        }
        self.is_streamed = true;
        self.text.push_str(&delta.text);
        self.refusal.push_str(&delta.refusal);
        for piece in delta.calls {
            self.calls.piece(piece, offered);
        }
        Ok(())
    }

    /// Adds a whole message. In a stream, each message repeats the text so far.
    fn add_message(&mut self, mut message: MessagePart<'_>) -> Result<(), BadAnswer> {
        self.has_message = true;
        self.kept.replace(std::mem::take(&mut message.kept));
        match message.text.strip_prefix(&*self.text) {
            Some(more) => self.text.push_str(more),
            None if message.text.is_empty() => {}
            None => {
                let why = "its `message` does not begin with the text before it";
                return Err(BadAnswer::Unreadable(why.to_owned()));
            }
        }
        if !message.refusal.is_empty() {
            self.refusal = message.refusal;
        }
        if !message.calls.is_empty() {
            self.calls = PartialCalls::default();
        }
        for call in message.calls {
            self.calls.whole(call);
        }
        Ok(())
    }

    /// Notes an event that is not of the API.
    pub(super) fn ignore_event(&mut self) {
        self.ignored.add("event");
    }

    /// Whether the reply has said why it ends.
    pub(super) fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether a part of a reply has arrived.
    pub(super) fn has_begun(&self) -> bool {
        !self.text.is_empty() || self.calls.has_some() || !self.refusal.is_empty()
    }

    /// Ends the text, or the refusal, with half a character.
    pub(super) fn push_half(&mut self, field: &str) {
        let text = if field == "refusal" { &mut self.refusal } else { &mut self.text };
        text.push(char::REPLACEMENT_CHARACTER);
    }

    /// The cap in bytes that the reply exceeds, if it does.
    pub(super) fn exceeded_cap(&self) -> Option<usize> {
        (self.text.len() + self.calls.bytes() > TEXT_CAP).then_some(TEXT_CAP)
    }

    /// The reply.
    ///
    /// # Errors
    /// A call cannot be kept.
    pub(super) fn done(
        mut self,
        client: &Client,
        request: &ChatRequest,
    ) -> Result<Reply, ToolCallFault> {
        let end = end_of_completion(self.finish.as_deref(), Some(&self.refusal));
        let (tool_calls, kept_calls) = match self.calls.done(client, &request.messages) {
            Err(why) if end.is_whole() => return Err(why),
            calls => calls.unwrap_or_default(),
        };
        Ok(Reply {
            tool_calls,
            blocks: client.kept_blocks(self.kept, kept_calls, &mut self.ignored),
            usage: self.counts.usage(),
            model: self.model,
            end,
            finish: client.finish(self.finish.as_deref(), Some(&self.refusal)),
            ignored: self.ignored.names(),
            ..Reply::from_agent_text(client.without_the_key(&self.text))
        })
    }
}
