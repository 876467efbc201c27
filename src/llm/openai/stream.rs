//! A reply that comes piece by piece, as server-sent events.

use std::sync::Arc;

use tokio::time::Instant;

use super::calls::{Calls, Miscalled};
use super::wire::{Completion, Counted};
use super::{EVENT_CAP, OpenAi, STREAM_CAP, TEXT_CAP};
use crate::event::kind::{Reply, Usage};
use crate::llm::{ChatRequest, Failure, Listener};
use crate::net::redact::Unfinished;
use crate::net::sse::{SseEvent, SseParser};
use crate::net::{Answer, NetError};

/// Reads a stream to its end, the last event being `[DONE]`.
///
/// # Errors
/// A stream that breaks, ends early, grows past a cap, reports an error or holds what is no piece of
/// a chat completion; the text that had come stands in `partial`.
pub(super) async fn read(
    model: &OpenAi,
    request: &ChatRequest,
    mut answer: Answer,
    asked: Instant,
    listener: &dyn Listener,
) -> Result<Reply, Box<Failure>> {
    let mut parser = SseParser::new(EVENT_CAP);
    let mut reply = Gathered::of(model, request, asked);
    let mut received = 0_usize;
    loop {
        let chunk = match answer.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => return Err(model.broke_off(&error, reply.partial())),
        };
        received += chunk.len();
        if received > STREAM_CAP {
            let error = NetError::TooLarge { cap: STREAM_CAP };
            return Err(model.broke_off(&error, reply.partial()));
        }
        let mut rest: &[u8] = &chunk;
        loop {
            match parser.next(&mut rest) {
                Ok(Some(event)) => match reply.take(event, listener) {
                    Ok(Next::More) if reply.bytes() > TEXT_CAP => {
                        let error = NetError::TooLarge { cap: TEXT_CAP };
                        return Err(model.broke_off(&error, reply.partial()));
                    }
                    Ok(Next::More) => {}
                    Ok(Next::Done) => {
                        let reply = reply.done();
                        answer.settle().await;
                        return reply;
                    }
                    Err(bad) => return Err(reply.failed(bad)),
                },
                Ok(None) => break,
                Err(error) => return Err(model.unparsed(error, reply.partial())),
            }
        }
    }
    // A last event without the empty line after it counts where it is whole: some servers leave the
    // line out. Where it is not, the stream was cut off in the middle of it.
    match parser.finish().map(|last| last.map(|event| reply.take(event, listener))) {
        Ok(Some(Ok(Next::Done))) => reply.done(),
        Ok(Some(Err(bad @ Bad::Reported(_)))) => Err(reply.failed(bad)),
        _ if reply.finish.is_some() => reply.done(),
        _ => Err(model.cut_off(reply.partial())),
    }
}

/// What an event leads to.
enum Next {
    More,
    Done,
}

/// What is wrong with an event.
enum Bad {
    /// It reports an error.
    Reported(serde_json::Value),
    /// It is no piece of a chat completion.
    Unreadable { why: String, data: String },
    /// The tools that it calls cannot be taken.
    Miscalled(Miscalled),
}

/// What has come of a reply.
struct Gathered<'a> {
    by: &'a OpenAi,
    request: &'a ChatRequest,
    asked: Instant,
    events: usize,
    /// A choice has come, be it an empty one.
    chosen: bool,
    text: String,
    calls: Calls,
    /// How much of the text the listener has been told.
    said: Unfinished,
    first_token_ms: Option<u64>,
    usage: Option<Usage>,
    model: Option<Arc<str>>,
    finish: Option<String>,
    refusal: String,
}

impl<'a> Gathered<'a> {
    fn of(by: &'a OpenAi, request: &'a ChatRequest, asked: Instant) -> Self {
        Self {
            by,
            request,
            asked,
            events: 0,
            chosen: false,
            text: String::new(),
            calls: Calls::default(),
            said: Unfinished::default(),
            first_token_ms: None,
            usage: None,
            model: None,
            finish: None,
            refusal: String::new(),
        }
    }

    fn take(&mut self, event: SseEvent<'_>, listener: &dyn Listener) -> Result<Next, Bad> {
        self.events += 1;
        if event.data.trim() == "[DONE]" {
            return Ok(Next::Done);
        }
        let piece: Completion<'_> = match serde_json::from_str(event.data) {
            Ok(piece) => piece,
            Err(_) if event.name == "error" => {
                return Err(Bad::Reported(serde_json::Value::String(event.data.to_owned())));
            }
            Err(error) => return Err(unreadable(event.data, error.to_string())),
        };
        if let Some(error) = piece.error {
            return Err(Bad::Reported(error));
        }
        if event.name == "error" {
            return Err(Bad::Reported(serde_json::from_str(event.data).unwrap_or_default()));
        }
        if piece.choices.is_none() && piece.usage.is_none() {
            return Err(unreadable(event.data, "it has no `choices`".to_owned()));
        }
        if let Some(usage) = piece.usage.and_then(Counted::usage) {
            self.usage = Some(usage);
        }
        if let (None, Some(model)) = (&self.model, &piece.model) {
            self.model = Some(self.by.model_name(&model.0));
        }
        let Some(choice) = piece.choices.and_then(|choices| choices.into_iter().next()) else {
            return Ok(Next::More);
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
                self.calls.piece(piece, &self.request.tools).map_err(Bad::Miscalled)?;
            }
        }
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(reason.0.into_owned());
        }
        Ok(Next::More)
    }

    fn has_begun(&mut self) {
        if self.first_token_ms.is_none() {
            let waited = self.asked.elapsed().as_millis();
            self.first_token_ms = Some(u64::try_from(waited).unwrap_or(u64::MAX));
        }
    }

    /// How much of it there is to keep.
    fn bytes(&self) -> usize {
        self.text.len() + self.calls.bytes()
    }

    /// Says what is new, as far as it cannot be the beginning of the key in use: that waits for the
    /// next piece, and the key itself is never said.
    fn say(&mut self, listener: &dyn Listener) {
        if let Some(new) = self.said.next(&self.by.redactor, &self.text) {
            listener.piece(&new);
        }
    }

    fn done(self) -> Result<Reply, Box<Failure>> {
        if !self.chosen {
            return Err(self.by.without_choice());
        }
        let partial = self.partial();
        let calls = self.calls.done(self.by, &self.request.messages);
        Ok(Reply {
            tool_calls: calls.map_err(|why| self.by.miscalled(why, partial))?,
            result: None,
            text: self.by.without_the_key(&self.text),
            usage: self.usage,
            first_token_ms: self.first_token_ms,
            model: self.model,
            finish: self.by.finish(self.finish.as_deref(), Some(&self.refusal)),
            blocks: None,
        })
    }

    fn failed(&self, bad: Bad) -> Box<Failure> {
        let place = format!("in event {} of the stream", self.events);
        match bad {
            Bad::Reported(error) => self.by.complained(&error, &place, self.partial()),
            Bad::Miscalled(why) => self.by.miscalled(why, self.partial()),
            Bad::Unreadable { why, data } => {
                self.by.unreadable_event(&place, &data, &why, self.partial())
            }
        }
    }

    fn partial(&self) -> Option<Arc<str>> {
        // It ends anywhere, in the middle of the key too.
        (!self.text.is_empty()).then(|| self.by.redactor.redact_known(&self.text).into())
    }
}

fn unreadable(data: &str, why: String) -> Bad {
    Bad::Unreadable { why, data: data.chars().take(400).collect() }
}
