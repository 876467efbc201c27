//! A conversation as the messages of AG-UI, and the threads of conversations.
//!
//! A message has the same id in every request, so that a server which keeps the thread itself
//! recognises it. What the agent said is sent as it came, its own calls among it: see [`REPLY_KEY`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use rustls::crypto::ring;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::base::{sha256_of_text, to_hex};
use crate::log::event::{ChatMessage, MessageRole};
use crate::model::{ChatRequest, Conversation};
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// Key of a reply's blocks. Its value has the `agent`, the `thread` and the `messages` that the agent made.
pub(super) const REPLY_KEY: &str = "ag_ui";

/// Conversations of one caller that are remembered without a reply.
const MAX_CONVERSATIONS: usize = 1_000;

/// Digits of the digest in an id.
const ID_DIGITS: usize = 24;

/// The messages of a request.
pub(super) fn messages_of(conversation: &Conversation, agent: &str) -> Vec<Value> {
    let mut messages = MessageList::default();
    for message in conversation.iter() {
        match message.blocks.as_deref().and_then(|blocks| reply_of(blocks, agent)) {
            Some(reply) => messages.add_reply(message, reply),
            None => messages.add_own(message),
        }
    }
    messages.list
}

/// What the blocks of a message say of a reply of this agent.
fn reply_of<'b>(blocks: &'b Value, agent: &str) -> Option<&'b Value> {
    let reply = blocks.get(REPLY_KEY)?;
    (reply.get("agent").and_then(Value::as_str) == Some(agent)).then_some(reply)
}

#[derive(Default)]
struct MessageList {
    list: Vec<Value>,
    ids: BTreeSet<String>,
    said: BTreeMap<String, u32>,
    /// Calls with a result.
    results: BTreeSet<String>,
}

impl MessageList {
    /// Adds a message unless it is there already.
    fn add(&mut self, id: &str, message: Value) {
        let call = message.get("toolCallId").and_then(Value::as_str).map(str::to_owned);
        let is_new = call.is_none_or(|call| self.results.insert(call));
        if is_new && self.ids.insert(id.to_owned()) {
            self.list.push(message);
        }
    }

    /// Adds what the agent said, as it said it.
    fn add_reply(&mut self, message: &ChatMessage, reply: &Value) {
        let messages = reply.get("messages").and_then(Value::as_array);
        let with_ids = |one: &Value| Some((one.get("id")?.as_str()?.to_owned(), one.clone()));
        let own: Vec<_> = messages.into_iter().flatten().filter_map(with_ids).collect();
        if own.is_empty() {
            return self.add_own(message);
        }
        for (id, one) in own {
            self.add(&id, one);
        }
    }

    fn add_own(&mut self, message: &ChatMessage) {
        let id = self.id_of(message);
        let content = &*message.content;
        let written = match message.role {
            MessageRole::Assistant => assistant_message(&id, content, &message.tool_calls),
            MessageRole::Tool => {
                let call = message.tool_call_id.as_deref().unwrap_or_default();
                tool_message(&id, call, content)
            }
            role => json!({ "id": id, "role": role.word(), "content": content }),
        };
        self.add(&id, written);
    }

    /// An id from what the message says, and how often the same was said before it.
    fn id_of(&mut self, message: &ChatMessage) -> String {
        let calls = message.tool_calls.iter().map(|call| format!("\n{}", call.id));
        let call = message.tool_call_id.as_deref().unwrap_or_default();
        let (role, content) = (message.role.word(), &message.content);
        let text = format!("{role}\n{call}\n{content}{}", calls.collect::<String>());
        let nth = self.said.entry(sha256_of_text(&text)).or_default();
        *nth += 1;
        made_id(&format!("{nth}\n{text}"))
    }
}

/// An id with this text's digest.
pub(super) fn made_id(text: &str) -> String {
    let digest = sha256_of_text(text);
    format!("rt-{}", digest.get(..ID_DIGITS).unwrap_or(&digest))
}

/// A message of the agent.
pub(super) fn assistant_message(id: &str, content: &str, calls: &[ToolCall]) -> Value {
    let mut message = Map::new();
    message.insert("id".to_owned(), json!(id));
    message.insert("role".to_owned(), json!("assistant"));
    if !content.is_empty() || calls.is_empty() {
        message.insert("content".to_owned(), json!(content));
    }
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            let arguments = if call.arguments.is_empty() { "{}" } else { &*call.arguments };
            let function = json!({ "name": call.name, "arguments": arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        });
        message.insert("toolCalls".to_owned(), calls.collect());
    }
    Value::Object(message)
}

/// The result of a call.
pub(super) fn tool_message(id: &str, call: &str, content: &str) -> Value {
    json!({ "id": id, "role": "tool", "toolCallId": call, "content": content })
}

/// The tools of a request.
pub(super) fn tools_of(offers: &[ToolOffer]) -> Vec<Value> {
    let tool = |offer: &ToolOffer| {
        json!({
            "name": offer.name, "description": offer.description,
            "parameters": offer.strict_parameters(),
        })
    };
    offers.iter().map(tool).collect()
}

/// The threads of the conversations of one caller.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<KnownThreads>);

#[derive(Debug, Default)]
struct KnownThreads {
    /// By the digest of a prompt.
    by_prompt: BTreeMap<String, String>,
    oldest_first: VecDeque<String>,
}

impl Threads {
    /// The thread of this request: that of the agent's last reply in it, else that of an earlier prompt
    /// which this one repeats or continues, else a new one.
    pub(super) fn of_request(&self, request: &ChatRequest, agent: &str) -> String {
        let digests = prompt_digests(&request.messages);
        let last = request.messages.iter().filter_map(|it| reply_of(it.blocks.as_deref()?, agent));
        let of_reply =
            last.last().and_then(|reply| Some(reply.get("thread")?.as_str()?.to_owned()));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A first attempt at the same prompt is another conversation that begins alike.
        let same = usize::from(request.attempt <= 1 && request.again == 0);
        let earlier = digests.iter().rev().skip(same);
        let of_prompt = earlier.filter_map(|digest| known.by_prompt.get(digest)).next().cloned();
        let thread = of_reply.or(of_prompt).unwrap_or_else(new_thread);
        if let Some(digest) = digests.last() {
            known.remember(digest.clone(), thread.clone());
        }
        thread
    }
}

impl KnownThreads {
    fn remember(&mut self, digest: String, thread: String) {
        if self.by_prompt.insert(digest.clone(), thread).is_none() {
            self.oldest_first.push_back(digest);
        }
        if self.oldest_first.len() > MAX_CONVERSATIONS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.by_prompt.remove(&oldest);
        }
    }
}

/// The digests of the beginnings of a conversation, one for each message.
fn prompt_digests(conversation: &Conversation) -> Vec<String> {
    let mut digest = Sha256::new();
    let add = |message: &ChatMessage| {
        let (role, content) = (message.role.word(), &message.content);
        let call = message.tool_call_id.as_deref().unwrap_or_default();
        digest.update(format!("{role}\n{call}\n{}\n{content}", content.len()));
        to_hex(&digest.clone().finalize())
    };
    conversation.iter().map(add).collect()
}

/// An id that nobody has.
pub(super) fn random_id(prefix: &str) -> String {
    let mut bytes = [0; 16];
    // Without random numbers of the system TLS does not work either.
    let _ = ring::default_provider().secure_random.fill(&mut bytes);
    format!("{prefix}-{}", to_hex(&bytes))
}

fn new_thread() -> String {
    random_id("thread")
}
