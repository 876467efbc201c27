//! A recorded run as a model: a call gets the reply that the run got for the same prompt.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::iter;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{ChatModel, ChatRequest, Failure, Listener, failure};
use crate::base::visible::visible_within;
use crate::log::event::{
    AttemptFailed, CallStarted, ChatMessage, Event, EventKind, FailureClass, ModelLabel, Purpose,
    Reply, RunId, SpanId,
};
use crate::scenario::spec::tool::ToolOffer;

/// Characters of a prompt that an error shows at the first difference of two prompts.
const SHOWN_CHARS: usize = 60;

/// Characters before that place that are shown too.
const CONTEXT_CHARS: usize = 20;

/// A model that answers from the log of a run. It takes no time and no tokens are paid; the usage of
/// a reply is the recorded one.
pub struct RecordedModel {
    run: RunId,
    /// Whether an endpoint gave the replies.
    is_live: bool,
    /// The calls, in the order of their start.
    calls: Vec<RecordedCall>,
    /// The calls with a purpose and number of the repeat.
    by_key: HashMap<String, Vec<usize>>,
}

/// A recorded call of a model.
struct RecordedCall {
    /// The earlier call whose conversation it continues.
    after: Option<usize>,
    /// What its prompt has beyond that conversation.
    messages: Vec<ChatMessage>,
    tools: Arc<[ToolOffer]>,
    /// How each attempt ended, by its number.
    attempts: BTreeMap<u32, Result<Reply, Box<Failure>>>,
}

impl RecordedModel {
    /// The model calls of a run with these events.
    pub fn new(run: RunId, events: &[Arc<Event>]) -> Self {
        let (mut calls, mut by_key) = (Vec::new(), HashMap::<String, Vec<usize>>::new());
        let mut spans: HashMap<SpanId, usize> = HashMap::new();
        let mut attempts: HashMap<SpanId, (usize, u32)> = HashMap::new();
        let mut is_live = false;
        for event in events {
            match &event.kind {
                EventKind::RunStarted(head) => {
                    is_live = matches!(head.model, ModelLabel::Live { .. });
                }
                EventKind::CallStarted(started) => {
                    let key = key_of(&started.purpose, started.repeat);
                    by_key.entry(key).or_default().push(calls.len());
                    let after = started.prompt.after.and_then(|span| spans.get(&span)).copied();
                    spans.insert(event.span, calls.len());
                    calls.push(opened(started, after, &calls));
                }
                EventKind::AttemptStarted { parent, attempt, .. } => {
                    if let Some(call) = spans.get(parent) {
                        attempts.insert(event.span, (*call, *attempt));
                    }
                }
                EventKind::AttemptAnswered(reply) => {
                    end(&mut calls, attempts.get(&event.span), Ok((**reply).clone()));
                }
                EventKind::AttemptFailed(failed) if failed.class != FailureClass::Cancelled => {
                    end(&mut calls, attempts.get(&event.span), Err(failed.clone()));
                }
                _ => {}
            }
        }
        Self { run, is_live, calls, by_key }
    }

    fn has_prompt(&self, call: usize, messages: &[&ChatMessage], tools: &Arc<[ToolOffer]>) -> bool {
        // From its end: two prompts of a conversation differ there.
        self.calls.get(call).is_some_and(|call| call.tools == *tools)
            && messages.iter().rev().copied().map(Cow::Borrowed).eq(self.backwards(call))
    }

    /// The whole prompt of a call, the last message first.
    fn backwards(&self, call: usize) -> impl Iterator<Item = Cow<'_, ChatMessage>> {
        let continued = move |at: &usize| self.calls.get(*at)?.after;
        iter::successors(Some(call), continued).flat_map(|at| {
            let call = self.calls.get(at);
            let before = call.and_then(|call| self.calls.get(call.after?));
            let reply = before.and_then(RecordedCall::reply).map(Cow::Owned);
            let new = call.map(|call| call.messages.iter().rev().map(Cow::Borrowed));
            new.into_iter().flatten().chain(reply)
        })
    }

    fn answer(&self, request: &ChatRequest) -> Result<Reply, Box<Failure>> {
        let missing = |text: String| failure(FailureClass::ScriptMissing, text);
        let none = || format!("the recording {} has no such call", self.run);
        let key = key_of(&request.purpose, request.again);
        let calls = self.by_key.get(&key).map(Vec::as_slice).unwrap_or_default();
        let messages: Vec<&ChatMessage> = request.messages.iter().collect();
        let same = calls.iter().find(|call| self.has_prompt(**call, &messages, &request.tools));
        let Some(call) = same.and_then(|call| self.calls.get(*call)) else {
            let first = calls.first().ok_or_else(|| missing(none()))?;
            let mut recorded: Vec<_> = self.backwards(*first).collect();
            recorded.reverse();
            let why = difference(&recorded, request);
            return Err(missing(format!("the recording {} has another prompt: {why}", self.run)));
        };
        let last = || call.attempts.last_key_value().map(|(_, ended)| ended);
        let ended = call.attempts.get(&request.attempt).or_else(last);
        ended.cloned().unwrap_or_else(|| Err(missing(none())))
    }
}

impl RecordedCall {
    /// What it returned, as the next message of its conversation.
    fn reply(&self) -> Option<ChatMessage> {
        let reply = self.attempts.values().rev().find_map(|ended| ended.as_ref().ok());
        reply.map(ChatMessage::from_reply)
    }
}

/// The first difference between the prompt of a request and the recorded one.
fn difference(recorded: &[Cow<'_, ChatMessage>], request: &ChatRequest) -> String {
    let mut recorded = recorded.iter().map(|message| &**message);
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

/// A call as it starts. It offers the tools of the call before it, unless it names others.
fn opened(started: &CallStarted, after: Option<usize>, calls: &[RecordedCall]) -> RecordedCall {
    let before = || after.and_then(|at| calls.get(at)).map(|before| Arc::clone(&before.tools));
    let tools = started.prompt.tools.as_ref().map(Arc::clone).or_else(before).unwrap_or_default();
    let messages = started.prompt.messages.to_vec();
    RecordedCall { after, messages, tools, attempts: BTreeMap::new() }
}

fn end(
    calls: &mut [RecordedCall],
    attempt: Option<&(usize, u32)>,
    ended: Result<Reply, Box<AttemptFailed>>,
) {
    if let Some((call, attempt)) = attempt
        && let Some(call) = calls.get_mut(*call)
    {
        call.attempts.insert(*attempt, ended);
    }
}

/// The key of a call in `by_key`. The purpose of a model call names no span.
fn key_of(purpose: &Purpose, again: u32) -> String {
    format!("{again} {purpose:?}")
}

impl ChatModel for RecordedModel {
    fn label(&self) -> ModelLabel {
        ModelLabel::Scripted
    }

    fn has_live_replies(&self) -> bool {
        self.is_live
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        async { self.answer(request) }.boxed()
    }
}
