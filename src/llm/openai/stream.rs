//! A streamed reply, assembled from server-sent events.

use std::sync::Arc;

use tokio::time::Instant;

use super::content::CompletionContent;
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
pub(in crate::llm) struct PartialCompletion<'a> {
    by: &'a Client,
    request: &'a ChatRequest,
    asked: Instant,
    /// The optional parts of the request.
    sent: OptionalParts,
    events: usize,
    content: CompletionContent,
    /// The first event that is not of the API.
    foreign: Option<ForeignEvent>,
    /// How much of the text the listener has received.
    said: StreamRedactor,
    /// The half of a character at the end of the last event.
    halves: Surrogates,
    first_token_ms: Option<u64>,
}

impl<'a> PartialCompletion<'a> {
    pub(super) fn of(
        by: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        sent: OptionalParts,
    ) -> Self {
        Self {
            by,
            request,
            asked,
            sent,
            events: 0,
            content: CompletionContent::default(),
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
        if event.data.trim() == "[DONE]" {
            return Ok(StreamStep::Done);
        }
        let fields = read_event(event)?;
        if fields.raw("choices").is_none() && fields.get("usage").is_none() {
            if let Some(error) = fields.error_without_reply() {
                return Err(BadAnswer::Reported(error));
            }
            // A new kind of event may come in any stream, and one that keeps it open.
            if !fields.is_empty() && fields.word("type").is_none_or(|kind| kind != "ping") {
                self.content.ignore_event();
                self.foreign.get_or_insert_with(|| ForeignEvent::new(self.events, event.data));
            }
        }
        let added = self.content.add(&fields, &self.request.tools, self.by);
        if self.first_token_ms.is_none() && self.content.has_begun() {
            self.first_token_ms = Some(millis(self.asked.elapsed()));
        }
        self.say(listener);
        added.map(|()| StreamStep::More)
    }

    /// Passes new text to the listener, except for an end that could be the beginning of the key:
    /// that part waits for the next piece, and the key itself is never passed on.
    fn say(&mut self, listener: &dyn Listener) {
        if let Some(new) = self.said.next(&self.by.redactor, &self.content.text) {
            listener.piece(&new);
        }
    }

    fn failed(&self, bad: BadAnswer, data: &str) -> Box<Failure> {
        match bad {
            BadAnswer::Reported(error) => {
                // A reply that has begun means that the request was valid.
                let begun = self.first_token_ms.is_some();
                let none = OptionalParts::default();
                let sent = if begun { &none } else { &self.sent };
                self.by.reported_failure(&error, &event_place(self.events), sent, self.partial())
            }
            BadAnswer::Unreadable(why) => {
                self.by.unreadable_event(self.events, data, &why, self.partial())
            }
        }
    }
}

impl ReplyAssembler for PartialCompletion<'_> {
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
        self.content.exceeded_cap()
    }

    fn has_ended(&self) -> bool {
        self.content.has_ended()
    }

    fn foreign(&self) -> Option<Box<Failure>> {
        let foreign = self.foreign.as_ref().filter(|_| !self.content.has_choice)?;
        Some(self.by.unreadable_event(foreign.nth, &foreign.data, "it has no `choices`", None))
    }

    fn done(mut self) -> Result<Reply, Box<Failure>> {
        if !self.content.has_choice {
            return Err(self.foreign().unwrap_or_else(|| self.by.ended_without("a choice")));
        }
        for field in ["content", "refusal"] {
            if self.halves.is_pending_in(field) {
                self.content.push_half(field);
            }
        }
        if !self.content.has_ended() && !self.content.has_begun() {
            return Err(self.by.ended_empty());
        }
        let partial = self.partial();
        let reply = self.content.done(self.by, self.request);
        let reply = reply.map_err(|why| self.by.bad_tool_calls(why, partial))?;
        Ok(Reply { first_token_ms: self.first_token_ms, ..reply })
    }

    fn partial(&self) -> Option<Arc<str>> {
        // It can end anywhere, also inside the key.
        let text = &self.content.text;
        (!text.is_empty()).then(|| self.by.redactor.redact_known(text).into())
    }
}
