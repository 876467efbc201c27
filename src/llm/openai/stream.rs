//! A streamed reply, assembled from server-sent events.

use std::sync::Arc;

use tokio::time::Instant;

use super::TEXT_CAP;
use super::calls::PartialCalls;
use super::wire::{Completion, CompletionUsage};
use crate::event::kind::{Reply, Usage};
use crate::llm::adaptation::ParameterSet;
use crate::llm::client::Client;
use crate::llm::client::reply_end::end_of_completion;
use crate::llm::client::reported::bare_error;
use crate::llm::client::stream::{BadEvent, ReplyAssembler, StreamStep, event_place};
use crate::llm::client::surrogates::Surrogates;
use crate::llm::client::tool_calls::ToolCallFault;
use crate::llm::{ChatRequest, Failure, Listener};
use crate::net::redact::StreamRedactor;
use crate::net::sse::SseEvent;

/// What is wrong with an event.
enum BadCompletionEvent {
    /// It reports an error.
    Reported(serde_json::Value),
    /// It is not part of a chat completion.
    Unreadable { why: String, data: String },
    /// Its tool calls are invalid.
    Miscalled(ToolCallFault),
}

/// A partial reply.
pub(in crate::llm) struct PartialCompletion<'a> {
    by: &'a Client,
    request: &'a ChatRequest,
    asked: Instant,
    /// The optional parameters of the request.
    sent: ParameterSet,
    events: usize,
    /// Whether a choice has arrived, even an empty one.
    chosen: bool,
    text: String,
    calls: PartialCalls,
    /// How much of the text the listener has received.
    said: StreamRedactor,
    /// The half of a character at the end of the last event.
    halves: Surrogates,
    first_token_ms: Option<u64>,
    usage: Option<Usage>,
    model: Option<Arc<str>>,
    finish: Option<String>,
    refusal: String,
}

impl<'a> PartialCompletion<'a> {
    pub(super) fn of(
        by: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        sent: ParameterSet,
    ) -> Self {
        Self {
            by,
            request,
            asked,
            sent,
            events: 0,
            chosen: false,
            text: String::new(),
            calls: PartialCalls::default(),
            said: StreamRedactor::default(),
            halves: Surrogates::default(),
            first_token_ms: None,
            usage: None,
            model: None,
            finish: None,
            refusal: String::new(),
        }
    }

    fn read(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadCompletionEvent> {
        if event.data.trim() == "[DONE]" {
            return Ok(StreamStep::Done);
        }
        let piece: Completion<'_> = match serde_json::from_str(event.data) {
            Ok(piece) => piece,
            Err(_) if event.name == "error" => {
                return Err(BadCompletionEvent::Reported(serde_json::Value::String(
                    event.data.to_owned(),
                )));
            }
            Err(error) => return Err(unreadable(event.data, error.to_string())),
        };
        if let Some(error) = piece.error {
            return Err(BadCompletionEvent::Reported(error));
        }
        if event.name == "error" {
            return Err(BadCompletionEvent::Reported(
                serde_json::from_str(event.data).unwrap_or_default(),
            ));
        }
        if piece.choices.is_none() && piece.usage.is_none() {
            return Err(match bare_error(event.data.as_bytes()) {
                Some(error) => BadCompletionEvent::Reported(error),
                None => unreadable(event.data, "it has no `choices`".to_owned()),
            });
        }
        if let Some(usage) = piece.usage.and_then(CompletionUsage::usage) {
            self.usage = Some(usage);
        }
        if let (None, Some(model)) = (&self.model, &piece.model) {
            self.model = Some(self.by.model_name(&model.0));
        }
        let Some(choice) = piece.choices.and_then(|choices| choices.into_iter().next()) else {
            return Ok(StreamStep::More);
        };
        self.chosen = true;
        if let Some(delta) = choice.delta {
            if let Some(text) = delta.content.filter(|text| !text.0.is_empty()) {
                self.has_begun();
                self.text.push_str(&text.0);
                self.say(listener);
            }
            if let Some(refusal) = delta.refusal {
                self.refusal.push_str(&refusal.0);
            }
            for piece in delta.tool_calls.into_iter().flatten() {
                self.has_begun();
                self.calls
                    .piece(piece, &self.request.tools)
                    .map_err(BadCompletionEvent::Miscalled)?;
            }
        }
        if let Some(error) = choice.error {
            return Err(BadCompletionEvent::Reported(error));
        }
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(reason.0.into_owned());
        }
        Ok(StreamStep::More)
    }

    fn has_begun(&mut self) {
        if self.first_token_ms.is_none() {
            let waited = self.asked.elapsed().as_millis();
            self.first_token_ms = Some(u64::try_from(waited).unwrap_or(u64::MAX));
        }
    }

    /// Passes new text to the listener, except for an end that could be the beginning of the key:
    /// that part waits for the next piece, and the key itself is never passed on.
    fn say(&mut self, listener: &dyn Listener) {
        if let Some(new) = self.said.next(&self.by.redactor, &self.text) {
            listener.piece(&new);
        }
    }

    fn failed(&self, bad: BadCompletionEvent) -> Box<Failure> {
        match bad {
            BadCompletionEvent::Reported(error) => {
                // A reply that has begun means that the request was valid.
                let begun = self.first_token_ms.is_some();
                let sent = if begun { ParameterSet::default() } else { self.sent };
                self.by.reported_failure(&error, &event_place(self.events), sent, self.partial())
            }
            BadCompletionEvent::Miscalled(why) => self.by.bad_tool_calls(why, self.partial()),
            BadCompletionEvent::Unreadable { why, data } => {
                self.by.unreadable_event(self.events, &data, &why, self.partial())
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
        if let (Err(BadCompletionEvent::Unreadable { .. }), None) = (&read, &continued)
            && let Some(data) = self.halves.repaired(event.data)
        {
            read = self.read(SseEvent { data: &data, ..event }, listener);
        }
        read.map_err(|bad| {
            let reported = matches!(bad, BadCompletionEvent::Reported(_));
            BadEvent { failure: self.failed(bad), reported }
        })
    }

    fn exceeded_cap(&self) -> Option<usize> {
        (self.text.len() + self.calls.bytes() > TEXT_CAP).then_some(TEXT_CAP)
    }

    fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    fn done(mut self) -> Result<Reply, Box<Failure>> {
        if !self.chosen {
            return Err(self.by.ended_without("a choice"));
        }
        for (field, text) in [("content", &mut self.text), ("refusal", &mut self.refusal)] {
            if self.halves.is_pending_in(field) {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        let partial = self.partial();
        let end = end_of_completion(self.finish.as_deref(), Some(&self.refusal));
        let tool_calls = match self.calls.done(self.by, &self.request.messages) {
            Err(why) if end.is_whole() => return Err(self.by.bad_tool_calls(why, partial)),
            calls => calls.unwrap_or_default(),
        };
        Ok(Reply {
            tool_calls,
            result: None,
            text: self.by.without_the_key(&self.text),
            usage: self.usage,
            estimated: false,
            first_token_ms: self.first_token_ms,
            model: self.model,
            finish: self.by.finish(self.finish.as_deref(), Some(&self.refusal)),
            end,
            blocks: None,
            adopted: false,
        })
    }

    fn partial(&self) -> Option<Arc<str>> {
        // It can end anywhere, also inside the key.
        (!self.text.is_empty()).then(|| self.by.redactor.redact_known(&self.text).into())
    }
}

fn unreadable(data: &str, why: String) -> BadCompletionEvent {
    BadCompletionEvent::Unreadable { why, data: data.chars().take(400).collect() }
}
