//! A reply that comes piece by piece, as server-sent events: reading it under the caps.

use std::sync::Arc;

use super::{Client, EVENT_CAP, STREAM_CAP};
use crate::event::kind::Reply;
use crate::llm::{Failure, Listener};
use crate::net::sse::{SseEvent, SseParser};
use crate::net::{Answer, NetError};

/// What an event of a stream leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum StreamStep {
    /// More events are to come.
    More,
    /// The reply is whole.
    Done,
}

/// An event that ends the reading.
#[derive(Debug)]
pub(in crate::llm) struct BadEvent {
    /// How the attempt fails.
    pub(in crate::llm) failure: Box<Failure>,
    /// It reports an error, where others are no events of the API.
    pub(in crate::llm) reported: bool,
}

/// What has come of a reply, as an API puts it together.
pub(in crate::llm) trait Gathers {
    /// The next event.
    fn take(
        &mut self,
        event: SseEvent<'_>,
        listener: &dyn Listener,
    ) -> Result<StreamStep, BadEvent>;

    /// The cap, in bytes, that what has come is beyond.
    fn beyond(&self) -> Option<usize>;

    /// The text that has come.
    fn partial(&self) -> Option<Arc<str>>;

    /// Whether the model has said why it ended, so that nothing is missing.
    fn has_ended(&self) -> bool;

    /// The reply.
    fn done(self) -> Result<Reply, Box<Failure>>;
}

/// Where an event stands, for the texts of failures; `nth` counts from 1.
pub(in crate::llm) fn event_place(nth: usize) -> String {
    format!("in event {nth} of the stream")
}

/// Reads a stream to its end.
///
/// # Errors
/// A stream that breaks, ends early, grows past a cap, reports an error or holds what is no event
/// of the API; the text that had come stands in `partial`.
pub(in crate::llm) async fn read(
    client: &Client,
    mut answer: Answer,
    mut reply: impl Gathers,
    listener: &dyn Listener,
) -> Result<Reply, Box<Failure>> {
    let mut parser = SseParser::new(EVENT_CAP);
    let mut received = 0_usize;
    let too_large = |cap, partial| client.broke_off(&NetError::TooLarge { cap }, partial);
    loop {
        let chunk = match answer.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => return Err(client.broke_off(&error, reply.partial())),
        };
        received += chunk.len();
        if received > STREAM_CAP {
            return Err(too_large(STREAM_CAP, reply.partial()));
        }
        let mut rest: &[u8] = &chunk;
        loop {
            match parser.next(&mut rest) {
                Ok(Some(event)) => match reply.take(event, listener) {
                    Ok(StreamStep::More) => {
                        if let Some(cap) = reply.beyond() {
                            return Err(too_large(cap, reply.partial()));
                        }
                    }
                    Ok(StreamStep::Done) => {
                        let reply = reply.done();
                        answer.settle().await;
                        return reply;
                    }
                    Err(bad) => return Err(bad.failure),
                },
                Ok(None) => break,
                Err(error) => return Err(client.unparsed(error, reply.partial())),
            }
        }
    }
    // A last event without the empty line after it counts where it is whole: some servers leave the
    // line out. Where it is not, the stream was cut off in the middle of it.
    match parser.finish().map(|last| last.map(|event| reply.take(event, listener))) {
        Ok(Some(Ok(StreamStep::Done))) => reply.done(),
        Ok(Some(Err(bad))) if bad.reported => Err(bad.failure),
        _ if reply.has_ended() => reply.done(),
        _ => Err(client.cut_off(reply.partial())),
    }
}
