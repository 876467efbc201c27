//! The prompts of a program. Equal beginnings of growing conversations are stored once: a prompt has only the messages
//! that differ from the earlier call with which it shares the most.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ReportedCall;
use crate::log::event::{ChatMessage, Prompt, SpanId};
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// Maximum size of the new messages of a call in bytes; its tools and its reply each have the same limit.
const MAX_CALL: usize = 256 << 10;

/// What a message, a tool or a tool call takes besides its texts, in bytes.
const OVERHEAD: usize = 64;

/// Maximum number of beginnings in [`Conversations::known`]; later prompts are stored whole.
const MAX_KNOWN: usize = 200_000;

/// The question in an input: the user's last message where it has messages, or its only field; else all of it.
pub(super) fn asked_in(input: &Arc<str>) -> Arc<str> {
    let value: Option<Value> = serde_json::from_str(input).ok();
    value.as_ref().and_then(question).map_or_else(|| Arc::clone(input), Arc::from)
}

fn question(value: &Value) -> Option<&str> {
    let is_user = |role: Option<&Value>| {
        role.and_then(Value::as_str).is_some_and(|role| matches!(role, "user" | "human"))
    };
    let is_question = |text: &&str| !text.trim().is_empty();
    match value {
        Value::Array(items) if items.len() == 2 && is_user(items.first()) => {
            items.last()?.as_str().filter(is_question)
        }
        Value::Array(items) => items.iter().rev().find_map(question),
        Value::Object(fields) if is_user(fields.get("role").or_else(|| fields.get("type"))) => {
            let content = fields.get("content").or_else(|| fields.get("parts"))?;
            content.as_str().or_else(|| content.get(0)?.get("text")?.as_str()).filter(is_question)
        }
        Value::Object(fields) => {
            let is_empty =
                |value: &&Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            let mut known = fields.values().filter(|value| !is_empty(value));
            let only = known.next().filter(|_| known.next().is_none());
            let named =
                ["prompt", "question", "query", "input"].iter().find_map(|it| fields.get(*it));
            let text = only.or(named).and_then(Value::as_str).filter(is_question);
            text.or_else(|| fields.values().filter(|it| !it.is_string()).find_map(question))
        }
        _ => None,
    }
}

/// The digest of the first messages of a conversation.
pub(super) type Beginning = [u8; 32];

/// The conversations of a run.
#[derive(Default)]
pub(super) struct Conversations {
    /// The first call with this beginning, and the number of messages in the beginning.
    known: HashMap<Beginning, (SpanId, u32)>,
    calls: HashMap<SpanId, StartedCall>,
}

struct StartedCall {
    /// The digest and the number of its messages.
    all: (Beginning, u32),
    tools: Arc<[ToolOffer]>,
}

/// The number of messages, tools and tool calls that were too much for the log.
#[derive(Clone, Copy, Default)]
pub(super) struct LeftOut {
    messages: usize,
    tools: usize,
    tool_calls: usize,
}

impl LeftOut {
    /// One sentence about it. `None`: nothing was left out.
    pub(super) fn note(self) -> Option<String> {
        let counts =
            [(self.messages, "message"), (self.tools, "tool"), (self.tool_calls, "tool call")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = counts
            .map(|(count, noun)| format!("{count} {noun}{}", if count == 1 { "" } else { "s" }))
            .collect();
        let most = MAX_CALL >> 10;
        let parts = parts.join(", ");
        (!parts.is_empty()).then(|| format!("left out of this call: {parts} (limit: {most} KiB)"))
    }
}

impl Conversations {
    /// The earlier call that a prompt continues: its whole prompt is the beginning of this one.
    pub(super) fn continued_by(&self, beginnings: &[Beginning]) -> Option<SpanId> {
        let (_, shorter) = beginnings.split_last()?;
        shorter.iter().enumerate().rev().find_map(|(nth, digest)| {
            let (call, _) = self.known.get(digest)?;
            let (of_call, count) = self.calls.get(call)?.all;
            (of_call == *digest && count as usize == nth + 1).then_some(*call)
        })
    }

    /// Starts a call with the part of its prompt that no earlier call has. `digests`: those of its messages; `open`
    /// writes it to the log.
    pub(super) fn start(
        &mut self,
        call: &ReportedCall,
        digests: Vec<Beginning>,
        open: impl FnOnce(Prompt) -> SpanId,
    ) -> (SpanId, LeftOut) {
        let last = digests.last().copied().unwrap_or_default();
        let mut longest = digests.iter().enumerate().rev();
        let shared = longest.find_map(|(nth, digest)| Some((nth + 1, *self.known.get(digest)?)));
        let count = shared.map_or(0, |(count, _)| count);
        let after = shared.map(|(_, after)| after);
        let mut left_out = LeftOut::default();
        let new = call.messages.get(count..).unwrap_or_default();
        let messages = within_limit(new, &mut left_out);
        let tools: Arc<[ToolOffer]> = call
            .tools
            .get(..fitting(&call.tools, tool_size))
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        left_out.tools = call.tools.len() - tools.len();
        let before = after.and_then(|(of, _)| self.calls.get(&of)).map(|before| &before.tools);
        let is_same = before.map_or(tools.is_empty(), |before| *before == tools);
        let id = open(Prompt {
            after: after.map(|(of, _)| of),
            first: after.map(|(_, first)| first),
            left_out: u32::try_from(left_out.messages).unwrap_or(u32::MAX),
            messages,
            tools: (!is_same).then(|| Arc::clone(&tools)),
        });
        // Later prompts cannot refer to messages that are not in the log.
        let is_whole = left_out.messages + left_out.tool_calls == 0;
        if is_whole && self.known.len() < MAX_KNOWN {
            let count = u32::try_from(digests.len()).unwrap_or(u32::MAX);
            for (nth, digest) in (1..).zip(digests) {
                self.known.entry(digest).or_insert((id, nth));
            }
            self.calls.insert(id, StartedCall { all: (last, count), tools });
        }
        (id, left_out)
    }

    /// Adds the reply of a call: the next prompt may have it as a message. Returns the reply for the log.
    pub(super) fn reply(&mut self, id: SpanId, reply: &ChatMessage) -> (ChatMessage, LeftOut) {
        let mut left_out = LeftOut::default();
        let kept = with_fitting_calls(reply, &mut left_out);
        if let Some(StartedCall { all: (digest, count), .. }) = self.calls.get(&id)
            && left_out.tool_calls == 0
        {
            self.known.entry(beginning(*digest, reply)).or_insert((id, count.saturating_add(1)));
        }
        (kept, left_out)
    }
}

/// The digests of the beginnings of a conversation, the shortest first.
pub(super) fn beginnings(messages: &[ChatMessage]) -> Vec<Beginning> {
    let next = |last: &mut Beginning, message| {
        *last = beginning(*last, message);
        Some(*last)
    };
    messages.iter().scan(Beginning::default(), next).collect()
}

/// The digest of some messages and the next one.
fn beginning(before: Beginning, message: &ChatMessage) -> Beginning {
    let calls = message.tool_calls.iter();
    let parts = calls.flat_map(|call| [&call.id, &call.name, &call.arguments]);
    let parts = [&message.content].into_iter().chain(&message.tool_call_id).chain(parts);
    let mut digest = Sha256::new();
    digest.update(before);
    digest.update([message.role as u8]);
    for part in parts {
        digest.update(part.len().to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

fn call_size(call: &ToolCall) -> usize {
    OVERHEAD + call.name.len() + call.arguments.len()
}

fn message_size(message: &ChatMessage) -> usize {
    OVERHEAD + message.content.len() + message.tool_calls.iter().map(call_size).sum::<usize>()
}

fn tool_size(tool: &ToolOffer) -> usize {
    OVERHEAD + tool.description.len() + tool.parameters.to_string().len()
}

/// The number of items at the beginning that fit into [`MAX_CALL`].
fn fitting<'i, T: 'i>(items: impl IntoIterator<Item = &'i T>, size: impl Fn(&T) -> usize) -> usize {
    let mut room = MAX_CALL;
    let fits = |item: &&T| {
        let rest = room.checked_sub(size(item));
        room = rest.unwrap_or(0);
        rest.is_some()
    };
    items.into_iter().take_while(fits).count()
}

/// The message with the tool calls that fit.
fn with_fitting_calls(message: &ChatMessage, left_out: &mut LeftOut) -> ChatMessage {
    let fit = fitting(&*message.tool_calls, call_size);
    left_out.tool_calls += message.tool_calls.len() - fit;
    let mut kept = message.clone();
    if fit < message.tool_calls.len() {
        kept.tool_calls = message.tool_calls.iter().take(fit).cloned().collect();
    }
    kept
}

/// The first message and the last ones that fit. The first one often has the instructions.
fn within_limit(messages: &[ChatMessage], left_out: &mut LeftOut) -> Arc<[ChatMessage]> {
    let Some((first, rest)) = messages.split_first() else { return Arc::default() };
    let first = with_fitting_calls(first, left_out);
    let fit = fitting([&first].into_iter().chain(rest.iter().rev()), message_size);
    left_out.messages = rest.len() - fit.saturating_sub(1);
    [first].into_iter().chain(rest.iter().skip(left_out.messages).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::event::MessageRole;

    /// A conversation: whether it continues an earlier one, how much of that, and what is new.
    fn conversation() -> impl Strategy<Value = (usize, usize, Vec<u8>, Option<u8>)> {
        let new = proptest::collection::vec(0..3_u8, 0..4);
        (0..8_usize, 0..12_usize, new, proptest::option::of(0..3_u8))
    }

    fn message(of: u8) -> ChatMessage {
        ChatMessage::new(MessageRole::User, format!("message {of}"))
    }

    proptest! {
        #[test]
        fn stored_parts_make_the_prompts(
            steps in proptest::collection::vec(conversation(), 1..20)
        ) {
            let mut conversations = Conversations::default();
            // The whole messages with the reply, and what is stored.
            let mut whole: Vec<Vec<ChatMessage>> = Vec::new();
            let mut stored: Vec<(Prompt, Option<ChatMessage>)> = Vec::new();
            for (earlier, first, new, reply) in steps {
                let mut messages = whole.get(earlier).cloned().unwrap_or_default();
                messages.truncate(first);
                messages.extend(new.into_iter().map(message));
                let call = ReportedCall { messages: messages.clone(), ..ReportedCall::default() };
                let id = SpanId(stored.len() as u32);
                conversations.start(&call, beginnings(&call.messages), |prompt| {
                    stored.push((prompt, None));
                    id
                });
                let mut at = stored.len() - 1;
                let mut parts: Vec<(Vec<ChatMessage>, Option<u32>)> = Vec::new();
                loop {
                    let (prompt, reply) = &stored[at];
                    let reply = reply.iter().filter(|_| !parts.is_empty()).cloned();
                    parts.push((prompt.messages.iter().cloned().chain(reply).collect(), prompt.first));
                    let Some(after) = prompt.after else { break };
                    at = after.0 as usize;
                }
                let mut read = Vec::new();
                for (part, first) in parts.into_iter().rev() {
                    read.truncate(first.map_or(usize::MAX, |first| first as usize));
                    read.extend(part);
                }
                prop_assert_eq!(&read, &messages);
                if let Some(reply) = reply.map(message) {
                    conversations.reply(id, &reply);
                    stored.last_mut().expect("a call").1 = Some(reply.clone());
                    messages.push(reply);
                }
                whole.push(messages);
            }
        }
    }

    #[test]
    fn titles_are_the_question() {
        for (input, asked) in [
            ("How many lamps?", "How many lamps?"),
            (r#"{"messages":[["system","s"],["user","How many?"]]}"#, "How many?"),
            (
                r#"[{"type":"human","content":"1?"},{"type":"ai","content":"1"},{"type":"human","content":"2?"}]"#,
                "2?",
            ),
            (r#"[{"role":"user","parts":[{"text":"Lamps?"}]}]"#, "Lamps?"),
            (r#"{"topic":"lamps"}"#, "lamps"),
            (r#"{"system":"Be brief.","prompt":"How many?"}"#, "How many?"),
            (r#"{"graph":null,"resume":"yes","goto":[]}"#, "yes"),
            (r#"{"topic":"lamps","count":"2"}"#, r#"{"topic":"lamps","count":"2"}"#),
            (
                r#"{"data":{"role":"user","content":" "}}"#,
                r#"{"data":{"role":"user","content":" "}}"#,
            ),
            ("[1, 2]", "[1, 2]"),
        ] {
            assert_eq!(&*asked_in(&input.into()), asked);
        }
    }
}
