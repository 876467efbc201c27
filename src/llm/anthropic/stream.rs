//! A streamed reply, assembled from the API's events.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::blocks::ReplyBlocks;
use super::wire::{
    BlockDelta, BlockStart, MessageDelta, MessageStart, MessageUsage, StreamEventKind, finish,
};
use crate::event::kind::{Reply, ReplyEnd};
use crate::llm::adaptation::ParameterSet;
use crate::llm::client::Client;
use crate::llm::client::json::JsonText;
use crate::llm::client::stream::{BadEvent, ReplyAssembler, StreamStep, event_place};
use crate::llm::client::surrogates::Surrogates;
use crate::llm::{ChatRequest, Failure, Listener};
use crate::net::redact::StreamRedactor;
use crate::net::sse::SseEvent;

/// What is wrong with an event.
enum BadMessageEvent {
    /// It reports an error.
    Reported(Value),
    /// It is not an event of the API.
    Unreadable { why: String, data: String },
}

/// A partial reply.
pub(in crate::llm) struct PartialMessage<'a> {
    client: &'a Client,
    request: &'a ChatRequest,
    asked: Instant,
    events: usize,
    /// Whether the message has begun.
    begun: bool,
    blocks: ReplyBlocks,
    /// How much of the text the listener has received.
    said: StreamRedactor,
    /// The half of a character at the end of the last event.
    halves: Surrogates,
    first_token_ms: Option<u64>,
    counted: Option<MessageUsage>,
    model: Option<Arc<str>>,
    finish: Option<Arc<str>>,
    end: ReplyEnd,
}

impl<'a> PartialMessage<'a> {
    pub(super) fn of(client: &'a Client, request: &'a ChatRequest, asked: Instant) -> Self {
        Self {
            client,
            request,
            asked,
            events: 0,
            begun: false,
            blocks: ReplyBlocks::default(),
            said: StreamRedactor::default(),
            halves: Surrogates::default(),
            first_token_ms: None,
            counted: None,
            model: None,
            finish: None,
            end: ReplyEnd::Stop,
        }
    }

    fn read(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadMessageEvent> {
        let kind: StreamEventKind<'_> = match serde_json::from_str(event.data) {
            Ok(kind) => kind,
            // The end of streams in other APIs, which some servers add to this one's.
            Err(_) if self.begun && event.data.trim() == "[DONE]" => return Ok(StreamStep::Done),
            Err(_) if event.name == "error" => {
                return Err(BadMessageEvent::Reported(Value::String(event.data.to_owned())));
            }
            Err(error) => return Err(unreadable(event.data, error.to_string())),
        };
        match JsonText::as_optional_str(&kind.kind).unwrap_or(event.name) {
            "message_start" => {
                let MessageStart { message } = parsed(event.data)?;
                self.begun = true;
                self.model = message.model.map(|model| self.client.model_name(&model.0));
                self.count(message.usage);
            }
            "content_block_start" => {
                let BlockStart { index, content_block } = parsed(event.data)?;
                self.begun = true;
                self.blocks.start(index, content_block);
                self.say(listener);
            }
            "content_block_delta" => {
                let BlockDelta { index, delta } = parsed(event.data)?;
                self.begun = true;
                if self.blocks.append_delta(index, &delta) && self.first_token_ms.is_none() {
                    let waited = self.asked.elapsed().as_millis();
                    self.first_token_ms = Some(u64::try_from(waited).unwrap_or(u64::MAX));
                }
                self.say(listener);
            }
            "message_delta" => {
                let MessageDelta { delta, usage } = parsed(event.data)?;
                self.begun = true;
                self.count(usage);
                if let Some(ending) = delta {
                    let (end, why) = finish(self.client, ending.stop_reason, ending.stop_details);
                    if why.is_some() {
                        (self.end, self.finish) = (end, why);
                    }
                }
            }
            "message_stop" => return Ok(StreamStep::Done),
            "error" => {
                let whole = || serde_json::from_str(event.data).unwrap_or_default();
                return Err(BadMessageEvent::Reported(kind.error.unwrap_or_else(whole)));
            }
            "" => match kind.error {
                Some(error) => return Err(BadMessageEvent::Reported(error)),
                None => return Err(unreadable(event.data, "it has no `type`".to_owned())),
            },
            // `ping`, `content_block_stop`, and event types of the future.
            _ => {}
        }
        Ok(StreamStep::More)
    }

    fn count(&mut self, usage: Option<MessageUsage>) {
        if let Some(usage) = usage {
            self.counted = Some(self.counted.unwrap_or_default().updated_with(usage));
        }
    }

    /// Passes new text to the listener, except for an end that could be the beginning of the key.
    fn say(&mut self, listener: &dyn Listener) {
        if let Some(new) = self.said.next(&self.client.redactor, &self.blocks.text) {
            listener.piece(&new);
        }
    }

    fn failed(&self, bad: BadMessageEvent) -> Box<Failure> {
        match bad {
            BadMessageEvent::Reported(error) => {
                let (place, none) = (event_place(self.events), ParameterSet::default());
                self.client.reported_failure(&error, &place, none, self.partial())
            }
            BadMessageEvent::Unreadable { why, data } => {
                self.client.unreadable_event(self.events, &data, &why, self.partial())
            }
        }
    }
}

impl ReplyAssembler for PartialMessage<'_> {
    fn take(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadEvent> {
        self.events += 1;
        let continued = self.halves.continued(event.data);
        let data = continued.as_deref().unwrap_or(event.data);
        let mut read = self.read(SseEvent { data, ..event }, listener);
        if let (Err(BadMessageEvent::Unreadable { .. }), None) = (&read, &continued)
            && let Some(data) = self.halves.repaired(event.data)
        {
            read = self.read(SseEvent { data: &data, ..event }, listener);
        }
        read.map_err(|bad| {
            let reported = matches!(bad, BadMessageEvent::Reported(_));
            BadEvent { failure: self.failed(bad), reported }
        })
    }

    fn exceeded_cap(&self) -> Option<usize> {
        self.blocks.beyond()
    }

    fn partial(&self) -> Option<Arc<str>> {
        // It can end anywhere, also inside the key.
        let text = &self.blocks.text;
        (!text.is_empty()).then(|| self.client.redactor.redact_known(text).into())
    }

    fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    fn done(mut self) -> Result<Reply, Box<Failure>> {
        if !self.begun {
            return Err(self.client.ended_without("a message"));
        }
        if self.halves.is_pending_in("text") {
            self.blocks.text.push(char::REPLACEMENT_CHARACTER);
        }
        let partial = self.partial();
        let said = self.blocks.done(self.client, &self.request.messages, self.end);
        let said = said.map_err(|why| self.client.bad_tool_calls(why, partial))?;
        Ok(Reply {
            text: self.client.without_the_key(&said.text),
            tool_calls: said.calls,
            result: None,
            usage: self.counted.and_then(MessageUsage::usage),
            estimated: false,
            first_token_ms: self.first_token_ms,
            model: self.model,
            finish: self.finish,
            end: self.end,
            blocks: said.kept,
            adopted: false,
        })
    }
}

fn parsed<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, BadMessageEvent> {
    serde_json::from_str(data).map_err(|error| unreadable(data, error.to_string()))
}

fn unreadable(data: &str, why: String) -> BadMessageEvent {
    BadMessageEvent::Unreadable { why, data: data.chars().take(400).collect() }
}
