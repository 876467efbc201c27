//! Reads a streamed reply (server-sent events), within the caps.

use std::sync::Arc;

use super::fields::is_keep_alive;
use super::{Client, EVENT_CAP, STREAM_CAP};
use crate::event::kind::Reply;
use crate::llm::{Failure, Listener};
use crate::net::sse::{SseEvent, SseParser};
use crate::net::{HttpResponse, NetError};

/// The most characters kept of an event that is not of the API.
const EXCERPT_CHARS: usize = 400;

/// The result of one event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum StreamStep {
    /// More events follow.
    More,
    /// The reply is complete.
    Done,
}

/// An event that ends the stream.
#[derive(Debug)]
pub(in crate::llm) struct BadEvent {
    /// The failure of the attempt.
    pub(in crate::llm) failure: Box<Failure>,
    /// Whether the event reports an error; otherwise it is not an event of the API.
    pub(in crate::llm) reported: bool,
}

/// An event that is not of the API. It is ignored, unless nothing else comes.
#[derive(Debug)]
pub(in crate::llm) struct ForeignEvent {
    /// Its number, from 1.
    pub(in crate::llm) nth: usize,
    /// The beginning of its data.
    pub(in crate::llm) data: String,
}

impl ForeignEvent {
    pub(in crate::llm) fn new(nth: usize, data: &str) -> Self {
        Self { nth, data: data.chars().take(EXCERPT_CHARS).collect() }
    }
}

/// A partial reply, as an API assembles it.
pub(in crate::llm) trait ReplyAssembler {
    /// Processes the next event.
    fn take(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadEvent>;

    /// The cap in bytes that the partial reply exceeds, if it does.
    fn exceeded_cap(&self) -> Option<usize>;

    /// The text so far.
    fn partial(&self) -> Option<Arc<str>>;

    /// Whether the reply has said why it ends (a reason that is not empty), so that nothing is missing if the
    /// stream ends in order.
    fn has_ended(&self) -> bool;

    /// The failure of a stream that had only events that are not of the API; `None` if it had others, or none.
    fn foreign(&self) -> Option<Box<Failure>>;

    /// The complete reply, after an event that ends the stream, or after its end.
    ///
    /// # Errors
    /// A part of the reply is missing, or its tool calls are invalid.
    fn done(self) -> Result<Reply, Box<Failure>>;
}

/// The position of an event, for the texts of failures; `nth` counts from 1.
pub(in crate::llm) fn event_place(nth: usize) -> String {
    format!("in event {nth} of the stream")
}

/// Reads a stream to its end.
///
/// # Errors
/// The stream breaks, ends early, exceeds a cap, reports an error or has an event that is not of
/// this API; `partial` has the text that had arrived.
pub(in crate::llm) async fn read_stream(
    client: &Client,
    mut answer: HttpResponse,
    mut reply: impl ReplyAssembler,
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
                        if let Some(cap) = reply.exceeded_cap() {
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
        _ if reply.has_ended() => reply.done(),
        _ => Err(reply.foreign().unwrap_or_else(|| client.cut_off(reply.partial()))),
    }
}
