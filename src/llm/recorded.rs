//! A recorded run as a model: a call gets the reply that the run got for the same prompt.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{ChatModel, ChatRequest, Failure, Listener, failure};
use crate::base::visible::visible_within;
use crate::event::kind::{
    AttemptFailed, CallStarted, ChatMessage, FailureClass, ModelLabel, Purpose, Reply,
};
use crate::event::{Event, EventKind, RunId, SpanId};
use crate::scenario::spec::tool::ToolOffer;

/// Characters of a prompt that an error shows where two prompts part.
const SHOWN_CHARS: usize = 60;

/// Characters before that place that are shown too.
const CONTEXT_CHARS: usize = 20;

/// A model that answers from the log of a run. It takes no time and no tokens are paid; the usage of
/// a reply is the recorded one.
pub struct RecordedModel {
    run: RunId,
    /// The calls, by purpose and number of the repeat.
    calls: HashMap<String, Vec<RecordedCall>>,
}

/// A recorded call of a model.
#[derive(Default)]
struct RecordedCall {
    messages: Vec<ChatMessage>,
    tools: Arc<[ToolOffer]>,
    /// How each attempt ended, by its number.
    attempts: BTreeMap<u32, Result<Reply, Box<Failure>>>,
}

/// What is known of a call while a log is read.
struct CallInLog {
    key: String,
    call: RecordedCall,
}

impl RecordedModel {
    /// The model calls of a run with these events.
    pub fn new(run: RunId, events: &[Arc<Event>]) -> Self {
        let mut open: BTreeMap<SpanId, CallInLog> = BTreeMap::new();
        let mut attempts: BTreeMap<SpanId, (SpanId, u32)> = BTreeMap::new();
        for event in events {
            match &event.kind {
                EventKind::CallStarted(started) => {
                    let call = opened(started, &open);
                    let key = key_of(&started.purpose, started.repeat);
                    open.insert(event.span, CallInLog { key, call });
                }
                EventKind::AttemptStarted { parent, attempt, .. } => {
                    attempts.insert(event.span, (*parent, *attempt));
                }
                EventKind::AttemptAnswered(reply) => {
                    end(&mut open, attempts.get(&event.span), Ok((**reply).clone()));
                }
                EventKind::AttemptFailed(failed) if failed.class != FailureClass::Cancelled => {
                    end(&mut open, attempts.get(&event.span), Err(failed.clone()));
                }
                _ => {}
            }
        }
        let mut calls: HashMap<String, Vec<RecordedCall>> = HashMap::new();
        for CallInLog { key, call } in open.into_values() {
            calls.entry(key).or_default().push(call);
        }
        Self { run, calls }
    }

    fn answer(&self, request: &ChatRequest) -> Result<Reply, Box<Failure>> {
        let missing = |text: String| failure(FailureClass::ScriptMissing, text);
        let none = || format!("the recording {} has no such call", self.run);
        let key = key_of(&request.purpose, request.again);
        let calls = self.calls.get(&key).map(Vec::as_slice).unwrap_or_default();
        let same = calls
            .iter()
            .find(|call| request.messages.iter().eq(&call.messages) && request.tools == call.tools);
        let Some(call) = same else {
            let first = calls.first().ok_or_else(|| missing(none()))?;
            let why = first.difference(request);
            return Err(missing(format!("the recording {} has another prompt: {why}", self.run)));
        };
        let last = || call.attempts.last_key_value().map(|(_, ended)| ended);
        let ended = call.attempts.get(&request.attempt).or_else(last);
        ended.cloned().unwrap_or_else(|| Err(missing(none())))
    }
}

impl RecordedCall {
    /// Where the prompt of a request parts from the recorded one.
    fn difference(&self, request: &ChatRequest) -> String {
        let mut recorded = self.messages.iter();
        for (nth, message) in request.messages.iter().enumerate() {
            let nth = nth + 1;
            let Some(before) = recorded.next() else {
                return format!("message {nth} is new");
            };
            if message.content != before.content {
                let same = before.content.chars().zip(message.content.chars());
                // With a few words before the place.
                let at = same.take_while(|(a, b)| a == b).count().saturating_sub(CONTEXT_CHARS);
                let part = |text: &str| {
                    let rest: String = text.chars().skip(at).collect();
                    visible_within(&rest, SHOWN_CHARS).to_string()
                };
                let (old, new) = (part(&before.content), part(&message.content));
                return format!("message {nth} has `{new}` in place of `{old}`");
            }
            if message != before {
                return format!("message {nth} has other tool calls");
            }
        }
        match recorded.next() {
            Some(_) => "it has fewer messages".to_owned(),
            None => "it offers other tools".to_owned(),
        }
    }
}

/// A call as it starts: its whole prompt, with that of the calls before it.
fn opened(started: &CallStarted, open: &BTreeMap<SpanId, CallInLog>) -> RecordedCall {
    let (mut messages, mut tools) = (Vec::new(), Arc::default());
    if let Some(before) = started.prompt.after.and_then(|span| open.get(&span)) {
        messages.extend(before.call.messages.iter().cloned());
        let reply = before.call.attempts.values().rev().find_map(|ended| ended.as_ref().ok());
        messages.extend(reply.map(ChatMessage::from_reply));
        tools = Arc::clone(&before.call.tools);
    }
    messages.extend(started.prompt.messages.iter().cloned());
    if let Some(offered) = &started.prompt.tools {
        tools = Arc::clone(offered);
    }
    RecordedCall { messages, tools, attempts: BTreeMap::new() }
}

fn end(
    open: &mut BTreeMap<SpanId, CallInLog>,
    attempt: Option<&(SpanId, u32)>,
    ended: Result<Reply, Box<AttemptFailed>>,
) {
    if let Some((call, attempt)) = attempt
        && let Some(open) = open.get_mut(call)
    {
        open.call.attempts.insert(*attempt, ended);
    }
}

/// What a call is found by. The purpose of a model call names no span.
fn key_of(purpose: &Purpose, again: u32) -> String {
    format!("{again} {purpose:?}")
}

impl ChatModel for RecordedModel {
    fn label(&self) -> ModelLabel {
        ModelLabel::Scripted
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        async { self.answer(request) }.boxed()
    }
}
