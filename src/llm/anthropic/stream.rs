//! A streamed reply, assembled from the API's events.

use std::sync::Arc;

use tokio::time::Instant;

use super::content::MessageContent;
use crate::event::id::millis;
use crate::event::kind::Reply;
use crate::llm::adaptation::OptionalParts;
use crate::llm::client::Client;
use crate::llm::client::fields::{BadAnswer, read_event};
use crate::llm::client::stream::{BadEvent, ForeignEvent, ReplyAssembler, StreamStep, event_place};
use crate::llm::client::surrogates::Surrogates;
use crate::llm::{ChatRequest, Failure, Listener};
use crate::net::redact::StreamRedactor;
use crate::net::sse::SseEvent;

/// A partial reply.
pub(in crate::llm) struct PartialMessage<'a> {
    client: &'a Client,
    request: &'a ChatRequest,
    asked: Instant,
    events: usize,
    content: MessageContent,
    /// The first event that is not of the API.
    foreign: Option<ForeignEvent>,
    /// How much of the text the listener has received.
    said: StreamRedactor,
    /// The half of a character at the end of the last event.
    halves: Surrogates,
    first_token_ms: Option<u64>,
}

impl<'a> PartialMessage<'a> {
    pub(super) fn of(client: &'a Client, request: &'a ChatRequest, asked: Instant) -> Self {
        Self {
            client,
            request,
            asked,
            events: 0,
            content: MessageContent::default(),
            foreign: None,
            said: StreamRedactor::default(),
            halves: Surrogates::default(),
            first_token_ms: None,
        }
    }

    fn read(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadAnswer> {
        // The end of streams in other APIs, which some servers add to this one's.
        if event.data.trim() == "[DONE]" {
            return Ok(StreamStep::Done);
        }
        let fields = read_event(event)?;
        let kind = fields.word("type");
        let kind = kind.as_deref().unwrap_or(event.name);
        if kind.is_empty() {
            if fields.is_empty() {
                return Ok(StreamStep::More);
            }
            if let Some(error) = fields.error_without_reply() {
                return Err(BadAnswer::Reported(error));
            }
        }
        let Some(step) = self.content.add_event(kind, &fields, self.client)? else {
            self.foreign.get_or_insert_with(|| ForeignEvent::new(self.events, event.data));
            return Ok(StreamStep::More);
        };
        if self.first_token_ms.is_none() && self.content.has_begun() {
            self.first_token_ms = Some(millis(self.asked.elapsed()));
        }
        self.say(listener);
        Ok(step)
    }

    /// Passes new text to the listener, except for an end that could be the beginning of the key.
    fn say(&mut self, listener: &dyn Listener) {
        if let Some(new) = self.said.next(&self.client.redactor, &self.content.blocks.text) {
            listener.piece(&new);
        }
    }

    fn failed(&self, bad: BadAnswer, data: &str) -> Box<Failure> {
        match bad {
            BadAnswer::Reported(error) => {
                let (place, none) = (event_place(self.events), OptionalParts::default());
                self.client.reported_failure(&error, &place, &none, self.partial())
            }
            BadAnswer::Unreadable(why) => {
                self.client.unreadable_event(self.events, data, &why, self.partial())
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
        if let (Err(BadAnswer::Unreadable(_)), None) = (&read, &continued)
            && let Some(data) = self.halves.repaired(event.data)
        {
            read = self.read(SseEvent { data: &data, ..event }, listener);
        }
        read.map_err(|bad| {
            let reported = matches!(bad, BadAnswer::Reported(_));
            BadEvent { failure: self.failed(bad, event.data), reported }
        })
    }

    fn exceeded_cap(&self) -> Option<usize> {
        self.content.blocks.beyond()
    }

    fn partial(&self) -> Option<Arc<str>> {
        // It can end anywhere, also inside the key.
        let text = &self.content.blocks.text;
        (!text.is_empty()).then(|| self.client.redactor.redact_known(text).into())
    }

    fn has_ended(&self) -> bool {
        self.content.has_ended()
    }

    fn foreign(&self) -> Option<Box<Failure>> {
        let foreign = self.foreign.as_ref().filter(|_| !self.content.has_message)?;
        Some(self.client.unreadable_event(
            foreign.nth,
            &foreign.data,
            "it is not of this API",
            None,
        ))
    }

    fn done(mut self) -> Result<Reply, Box<Failure>> {
        if !self.content.has_message {
            return Err(self.foreign().unwrap_or_else(|| self.client.ended_without("a message")));
        }
        if self.halves.is_pending_in("text") {
            self.content.blocks.text.push(char::REPLACEMENT_CHARACTER);
        }
        if !self.content.has_ended() && !self.content.has_begun() {
            return Err(self.client.ended_empty());
        }
        let partial = self.partial();
        let reply = self.content.done(self.client, self.request);
        let reply = reply.map_err(|why| self.client.bad_tool_calls(why, partial))?;
        Ok(Reply { first_token_ms: self.first_token_ms, ..reply })
    }
}
