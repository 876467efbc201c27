//! The content of a reply: reads the same from an answer and from the events of a stream.

use std::sync::Arc;

use super::blocks::ReplyBlocks;
use crate::event::kind::{Reply, ReplyEnd};
use crate::llm::ChatRequest;
use crate::llm::client::Client;
use crate::llm::client::fields::{BadAnswer, Fields, IgnoredFields, TokenCounts, parse_needed};
use crate::llm::client::reply_end::end_of_message;
use crate::llm::client::stream::StreamStep;
use crate::llm::client::tool_calls::ToolCallFault;

/// The content of a reply so far.
#[derive(Debug, Default)]
pub(super) struct MessageContent {
    /// Whether the message has begun.
    pub(super) has_message: bool,
    pub(super) blocks: ReplyBlocks,
    /// As the API counts: `prompt` excludes what was read from or written to the cache.
    counts: TokenCounts,
    model: Option<Arc<str>>,
    finish: Option<Arc<str>>,
    end: ReplyEnd,
    ignored: IgnoredFields,
}

impl MessageContent {
    /// Adds a whole message.
    ///
    /// # Errors
    /// Its text or its calls cannot be read.
    pub(super) fn add_message(
        &mut self,
        message: &Fields<'_>,
        client: &Client,
    ) -> Result<(), BadAnswer> {
        if message.get("content").is_some_and(|content| content.get().starts_with('"')) {
            self.blocks.add_text(&message.text("content")?);
        } else {
            for block in message.list("content")? {
                let block: Fields<'_> = parse_needed("content", block)?;
                self.blocks.start(None, &block)?;
            }
        }
        self.start(message, client);
        Ok(())
    }

    /// Adds what is known of a message at its start.
    fn start(&mut self, message: &Fields<'_>, client: &Client) {
        self.has_message = true;
        self.model = message.word("model").map(|name| client.model_name(&name));
        self.count(message);
        self.end(message, client);
    }

    /// Adds an event of a stream; `None` if it is not of the API.
    ///
    /// # Errors
    /// Something that the reply needs cannot be read.
    pub(super) fn add_event(
        &mut self,
        kind: &str,
        event: &Fields<'_>,
        client: &Client,
    ) -> Result<Option<StreamStep>, BadAnswer> {
        match kind {
            "message_start" => {
                let message = event.optional("message", &mut self.ignored);
                self.start(&message.unwrap_or_default(), client);
            }
            // Not of the API, but plain: the whole message in one event.
            "message" => self.add_message(event, client)?,
            "content_block_start" => {
                self.has_message = true;
                if let Some(block) = event.needed::<Fields<'_>>("content_block")? {
                    self.blocks.start(event.index(&mut self.ignored), &block)?;
                }
            }
            "content_block_delta" => {
                self.has_message = true;
                if let Some(delta) = event.needed::<Fields<'_>>("delta")? {
                    self.blocks.append_delta(event.index(&mut self.ignored), &delta)?;
                }
            }
            "message_delta" => {
                self.has_message = true;
                self.count(event);
                if let Some(delta) = event.optional("delta", &mut self.ignored) {
                    self.end(&delta, client);
                }
            }
            "message_stop" => return Ok(Some(StreamStep::Done)),
            "ping" | "content_block_stop" => {}
            _ => {
                self.ignored.add("event");
                return Ok(None);
            }
        }
        Ok(Some(StreamStep::More))
    }

    fn count(&mut self, of: &Fields<'_>) {
        let ignored = &mut self.ignored;
        let Some(usage) = of.optional("usage", ignored) else { return };
        let details = usage.optional("output_tokens_details", ignored).unwrap_or_default();
        self.counts = self.counts.updated_with(TokenCounts {
            prompt: usage.count("input_tokens", ignored),
            completion: usage.count("output_tokens", ignored),
            total: usage.count("total_tokens", ignored),
            cached: usage.count("cache_read_input_tokens", ignored),
            cache_written: usage.count("cache_creation_input_tokens", ignored),
            reasoning: details.count("thinking_tokens", ignored),
        });
    }

    /// Takes over why the message ends: the API's word, or the text of the model's refusal.
    fn end(&mut self, of: &Fields<'_>, client: &Client) {
        let details = of.optional("stop_details", &mut self.ignored).unwrap_or_default();
        let (reason, explanation) = (of.word("stop_reason"), details.word("explanation"));
        let reason = reason.filter(|reason| reason != "null");
        if let Some(finish) = client.finish(reason.as_deref(), explanation.as_deref()) {
            (self.end, self.finish) = (end_of_message(reason.as_deref()), Some(finish));
        }
    }

    /// Whether the reply has said why it ends.
    pub(super) fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether a text or a call has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.blocks.has_begun()
    }

    /// The reply.
    ///
    /// # Errors
    /// A call cannot be kept.
    pub(super) fn done(
        self,
        client: &Client,
        request: &ChatRequest,
    ) -> Result<Reply, ToolCallFault> {
        let from_cache = self.counts.cached.unwrap_or_default();
        let cached = from_cache + self.counts.cache_written.unwrap_or_default();
        let prompt = self.counts.prompt.map(|tokens| tokens + cached);
        let said = self.blocks.done(client, &request.messages, self.end)?;
        Ok(Reply {
            tool_calls: said.calls,
            usage: TokenCounts { prompt, ..self.counts }.usage(),
            model: self.model,
            finish: self.finish,
            end: self.end,
            blocks: said.kept,
            ignored: self.ignored.names(),
            ..Reply::from_agent_text(client.without_the_key(&said.text))
        })
    }
}
