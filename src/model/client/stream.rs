//! Reads a streamed reply (server-sent events) within the caps, and says how a reply ended. Servers and
//! proxies use each other's words for that, in any case, so both APIs share one table.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::Instant;

use super::fields::{BadAnswer, Fields, ToolCallFault, is_keep_alive, read_event};
use super::{Client, EVENT_CAP, STREAM_CAP};
use crate::base::json_text::repaired;
use crate::base::time::millis;
use crate::log::event::Reply;
use crate::model::adaptation::OptionalParts;
use crate::model::{ChatRequest, Failure, Listener};
use crate::net::redact::StreamRedactor;
use crate::net::sse::{SseEvent, SseParser};
use crate::net::{HttpResponse, NetError};
use crate::scenario::spec::script::ReplyEnd;

/// The most characters kept of an event that is not of the API.
const EXCERPT_CHARS: usize = 400;

/// The result of one event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStep {
    /// More events follow.
    More,
    /// The reply is complete.
    Done,
}

/// An event that ends the stream.
#[derive(Debug)]
struct BadEvent {
    failure: Box<Failure>,
    /// Whether the event reports an error; otherwise it is not an event of the API.
    reported: bool,
}

/// An event that is not of the API. It is ignored, unless nothing else comes.
#[derive(Debug)]
struct ForeignEvent {
    /// Its number, from 1.
    nth: usize,
    /// The beginning of its data.
    data: String,
}

impl ForeignEvent {
    fn new(nth: usize, data: &str) -> Self {
        Self { nth, data: data.chars().take(EXCERPT_CHARS).collect() }
    }
}

/// The content of a reply of one API, to which events are added.
pub(crate) trait StreamedContent: Default + Send {
    /// What every reply of the API has: `a choice`.
    const NEEDED: &'static str;
    /// What is wrong with an event that is not of the API.
    const FOREIGN: &'static str;

    /// Adds an event of a stream, with its name; `None` if it is not of the API.
    fn add_event(
        &mut self,
        name: &str,
        event: &Fields<'_>,
        request: &ChatRequest,
        client: &Client,
    ) -> Result<Option<StreamStep>, BadAnswer>;

    /// The text so far.
    fn text(&self) -> &str;

    /// Whether it has what every reply of the API has.
    fn has_needed(&self) -> bool;

    /// Whether a text or a call has begun.
    fn has_begun(&self) -> bool;

    /// Whether the reply has said why it ends (a reason that is not empty), so that nothing is missing if
    /// the stream ends in order.
    fn has_ended(&self) -> bool;

    /// The cap in bytes that it exceeds, if it does.
    fn exceeded_cap(&self) -> Option<usize>;

    /// The reply.
    fn done(self, client: &Client, request: &ChatRequest) -> Result<Reply, ToolCallFault>;
}

/// A reply that is received as a stream.
pub(crate) struct PartialReply<'a, C> {
    client: &'a Client,
    request: &'a ChatRequest,
    asked: Instant,
    /// The optional parts of the request.
    sent: OptionalParts,
    events: usize,
    content: C,
    /// The first event that is not of the API.
    foreign: Option<ForeignEvent>,
    /// How much of the text the listener has received.
    said: StreamRedactor,
    first_token_ms: Option<u64>,
}

impl<'a, C: StreamedContent> PartialReply<'a, C> {
    /// An empty reply to this request, which was sent at `asked` with these optional parts.
    pub(crate) fn new(
        client: &'a Client,
        request: &'a ChatRequest,
        asked: Instant,
        sent: OptionalParts,
    ) -> Self {
        Self {
            client,
            request,
            asked,
            sent,
            events: 0,
            content: C::default(),
            foreign: None,
            said: StreamRedactor::default(),
            first_token_ms: None,
        }
    }

    /// Processes the next event.
    fn take(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadEvent> {
        self.events += 1;
        let mut read = self.read(event, listener);
        if let Err(BadAnswer::Unreadable(_)) = &read
            && let Cow::Owned(data) = repaired(event.data)
        {
            read = self.read(SseEvent { data: &data, ..event }, listener);
        }
        read.map_err(|bad| {
            let reported = matches!(bad, BadAnswer::Reported(_));
            BadEvent { failure: self.failed(bad, event.data), reported }
        })
    }

    fn read(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadAnswer> {
        // The end of a stream of chat completions, which some servers add to other APIs.
        if event.data.trim() == "[DONE]" {
            return Ok(StreamStep::Done);
        }
        let fields = read_event(event)?;
        let added = self.content.add_event(event.name, &fields, self.request, self.client);
        if self.first_token_ms.is_none() && self.content.has_begun() {
            self.first_token_ms = Some(millis(self.asked.elapsed()));
        }
        // An end of the text that could be the beginning of the key waits for the next piece.
        if let Some(new) = self.said.next(&self.client.redactor, self.content.text()) {
            listener.piece(&new);
        }
        Ok(added?.unwrap_or_else(|| {
            self.foreign.get_or_insert_with(|| ForeignEvent::new(self.events, event.data));
            StreamStep::More
        }))
    }

    fn failed(&self, bad: BadAnswer, data: &str) -> Box<Failure> {
        match bad {
            BadAnswer::Reported(error) => {
                // A reply that has begun means that the request was valid.
                let begun = self.first_token_ms.is_some();
                let none = OptionalParts::default();
                let sent = if begun { &none } else { &self.sent };
                let place = event_place(self.events);
                self.client.reported_failure(&error, &place, sent, self.partial())
            }
            BadAnswer::Unreadable(why) => {
                self.client.unreadable_event(self.events, data, &why, self.partial())
            }
        }
    }

    /// The text so far.
    fn partial(&self) -> Option<Arc<str>> {
        // It can end anywhere, also inside the key.
        let text = self.content.text();
        (!text.is_empty()).then(|| self.client.redactor.redact_known(text).into())
    }

    /// The failure of a stream that had only events that are not of the API; `None` if it had others,
    /// or none.
    fn foreign(&self) -> Option<Box<Failure>> {
        let foreign = self.foreign.as_ref().filter(|_| !self.content.has_needed())?;
        Some(self.client.unreadable_event(foreign.nth, &foreign.data, C::FOREIGN, None))
    }

    /// The complete reply, after an event that ends the stream, or after its end.
    fn done(self) -> Result<Reply, Box<Failure>> {
        if !self.content.has_needed() {
            return Err(self.foreign().unwrap_or_else(|| self.client.ended_without(C::NEEDED)));
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

/// The position of an event, for the texts of failures; `nth` counts from 1.
pub(super) fn event_place(nth: usize) -> String {
    format!("in event {nth} of the stream")
}

/// Reads a stream to its end.
pub(super) async fn read_stream<C: StreamedContent>(
    client: &Client,
    mut answer: HttpResponse,
    mut reply: PartialReply<'_, C>,
    listener: &dyn Listener,
) -> Result<Reply, Box<Failure>> {
    let mut parser = SseParser::new(EVENT_CAP);
    let mut received = 0_usize;
    let too_large = |cap, partial| client.incomplete_answer(&NetError::TooLarge { cap }, partial);
    loop {
        let chunk = match answer.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => return Err(client.incomplete_answer(&error, reply.partial())),
        };
        received += chunk.len();
        if received > STREAM_CAP {
            return Err(too_large(STREAM_CAP, reply.partial()));
        }
        let mut rest: &[u8] = &chunk;
        loop {
            match parser.next(&mut rest) {
                Ok(Some(event)) if is_keep_alive(event) => {}
                Ok(Some(event)) => match reply.take(event, listener) {
                    Ok(StreamStep::More) => {
                        if let Some(cap) = reply.content.exceeded_cap() {
                            return Err(too_large(cap, reply.partial()));
                        }
                    }
                    Ok(StreamStep::Done) => {
                        let reply = reply.done();
                        answer.release().await;
                        return reply;
                    }
                    Err(bad) => return Err(bad.failure),
                },
                Ok(None) => break,
                Err(error) => return Err(client.unparsed(error, reply.partial())),
            }
        }
    }
    // A complete last event counts even without the empty line after it, which some servers omit.
    // If it is incomplete, the stream was cut off inside it.
    let last = parser.finish().map(|last| last.filter(|event| !is_keep_alive(*event)));
    match last.map(|last| last.map(|event| reply.take(event, listener))) {
        Ok(Some(Ok(StreamStep::Done))) => reply.done(),
        Ok(Some(Err(bad))) if bad.reported => Err(bad.failure),
        _ if reply.content.has_ended() => reply.done(),
        _ => Err(reply.foreign().unwrap_or_else(|| client.cut_off(reply.partial()))),
    }
}

/// The end of a chat completion: of its `finish_reason`, and of the text with which the model
/// refused.
pub(crate) fn end_of_completion(reason: Option<&str>, refusal: Option<&str>) -> ReplyEnd {
    match end_named(reason.unwrap_or_default()) {
        ReplyEnd::Stop | ReplyEnd::Length if refusal.is_some_and(|refusal| !refusal.is_empty()) => {
            ReplyEnd::Refused
        }
        // This API cannot continue a reply.
        ReplyEnd::Paused => ReplyEnd::Length,
        end => end,
    }
}

/// The end of a message: of its `stop_reason`.
pub(crate) fn end_of_message(reason: Option<&str>) -> ReplyEnd {
    end_named(reason.unwrap_or_default())
}

/// Parts of the words for each end. The first row with a part of the word counts; a word that is in
/// no row is an end of a future or local server, and the reply is taken as whole.
const PARTS: [(ReplyEnd, &[&str]); 6] = [
    (ReplyEnd::Paused, &["pause"]),
    // Before the filters: Gemini says `function_call_filter: MALFORMED_FUNCTION_CALL`.
    (ReplyEnd::Failed, &["malformed", "unexpected_tool", "missing_thought", "too_many_tool"]),
    (
        ReplyEnd::Filtered,
        &[
            "filter",
            "safety",
            "guardrail",
            "sensitive",
            "blocklist",
            "prohibited",
            "recitation",
            "spii",
            "toxic",
            "moderat",
            "policy",
            "censor",
        ],
    ),
    (ReplyEnd::Refused, &["refus"]),
    (
        ReplyEnd::Length,
        &[
            "length",
            "max_tok",
            "max_output",
            "max_new",
            "max_compl",
            "token_limit",
            "error_limit",
            "context_window",
            "truncat",
            "incomplete",
        ],
    ),
    (
        ReplyEnd::Failed,
        &[
            "error",
            "fail",
            "abort",
            "cancel",
            "interrupt",
            "timeout",
            "timed_out",
            "network",
            "invalid",
            "unexpected",
            "insufficient",
            "unavailable",
            "overload",
        ],
    ),
];

fn end_named(reason: &str) -> ReplyEnd {
    // Nearly every reply.
    if matches!(reason, "stop" | "end_turn" | "tool_calls" | "tool_use" | "") {
        return ReplyEnd::Stop;
    }
    let word = reason.trim().to_ascii_lowercase().replace(['-', ' '], "_");
    let row = PARTS.iter().find(|(_, parts)| parts.iter().any(|part| word.contains(part)));
    row.map_or(ReplyEnd::Stop, |(end, _)| *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_end() {
        use ReplyEnd::*;
        let table: [(ReplyEnd, &[&str]); 6] = [
            (
                Stop,
                &[
                    "",
                    "stop",
                    "STOP",
                    "end_turn",
                    "tool_calls",
                    "tool_use",
                    "function_call",
                    "stop_sequence",
                    "eos",
                    "eos_token",
                    "COMPLETE",
                    "done",
                ],
            ),
            (
                Length,
                &[
                    "length",
                    "LENGTH",
                    "max_tokens",
                    "MAX_TOKENS",
                    "max_output_tokens",
                    "model_length",
                    "model_context_window_exceeded",
                    "context_length_exceeded",
                    "ERROR_LIMIT",
                    "max-tokens",
                ],
            ),
            (
                Filtered,
                &[
                    "content_filter",
                    "SAFETY",
                    "RECITATION",
                    "PROHIBITED_CONTENT",
                    "sensitive",
                    "guardrail_intervened",
                    "content_filtered",
                    "ERROR_TOXIC",
                    "IMAGE_SAFETY",
                ],
            ),
            (Refused, &["refusal", "refused"]),
            (
                Failed,
                &[
                    "error",
                    "ERROR",
                    "abort",
                    "aborted",
                    "network_error",
                    "malformed_function_call",
                    "insufficient_system_resource",
                    "cancelled",
                    "timeout",
                    "server_error",
                    "USER_CANCEL",
                    "UNEXPECTED_TOOL_CALL",
                ],
            ),
            (Paused, &["pause_turn"]),
        ];
        for (end, reasons) in table {
            for reason in reasons {
                assert_eq!(end_of_message(Some(reason)), end, "{reason}");
                let end = if end == Paused { Length } else { end };
                assert_eq!(end_of_completion(Some(reason), None), end, "{reason}");
            }
        }
        assert_eq!(end_of_completion(None, None), Stop);
        assert_eq!(end_of_message(None), Stop);
    }

    #[test]
    fn a_refusal_in_words_is_one() {
        use ReplyEnd::*;
        for (reason, refusal, end) in [
            (Some("stop"), "I cannot.", Refused),
            (None, "I cannot.", Refused),
            (Some("length"), "I cannot.", Refused),
            (Some("content_filter"), "I cannot.", Filtered),
            (Some("error"), "I cannot.", Failed),
            (Some("stop"), "", Stop),
        ] {
            assert_eq!(end_of_completion(reason, Some(refusal)), end, "{reason:?} {refusal}");
        }
    }
}
