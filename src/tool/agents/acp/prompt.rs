//! The conversation of a request as the next prompt of a session, which remembers what it has received; and the
//! calls of tools that an agent writes as text, because the protocol has none for a client.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::log::event::{ChatMessage, MessageRole, Reply};
use crate::model::ChatRequest;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// What a session has received and has said, as hashes.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// The messages of the conversation that it is in.
    messages: Vec<u64>,
    /// Instructions and offers of tools, which are said once.
    told: BTreeSet<u64>,
}

/// A prompt, and what the session knows then.
pub(super) struct NextPrompt {
    pub text: String,
    pub heard: Heard,
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn message_hash(message: &ChatMessage) -> u64 {
    let calls = message.tool_calls.iter().map(|call| (&call.id, &call.name, &call.arguments));
    let calls: Vec<_> = calls.collect();
    hash_of(&(message.role.word(), &message.content, calls, &message.tool_call_id))
}

impl Heard {
    /// How many messages of the conversation the session knows, all of them from its beginning.
    pub(super) fn known_part(&self, request: &ChatRequest) -> usize {
        let mut messages = request.messages.iter().map(message_hash);
        let is_known = self.messages.iter().all(|known| messages.next() == Some(*known));
        if is_known { self.messages.len() } else { 0 }
    }

    /// The session is one of an earlier process, which knows so many messages of the conversation.
    pub(super) fn load(&mut self, request: &ChatRequest, known: usize) {
        self.messages = request.messages.iter().take(known).map(message_hash).collect();
        let instructions = request.messages.iter().filter(|it| it.role == MessageRole::System);
        self.told.extend(instructions.map(message_hash));
        self.told.insert(hash_of(&offers_text(&request.tools)));
    }

    /// The prompt with what the session does not know yet.
    pub(super) fn next_prompt(&self, request: &ChatRequest) -> NextPrompt {
        let known = self.known_part(request);
        let mut heard = self.clone();
        heard.messages = request.messages.iter().map(message_hash).collect();
        let new = || request.messages.iter().skip(known);
        let has_replies = new().any(|message| message.role == MessageRole::Assistant);
        let names: BTreeMap<&str, &str> = request
            .messages
            .iter()
            .flat_map(|message| message.tool_calls.iter())
            .map(|call| (&*call.id, &*call.name))
            .collect();
        let mut parts: Vec<String> = Vec::new();
        for message in new() {
            let text = message.content.trim();
            match message.role {
                MessageRole::System if !heard.told.insert(message_hash(message)) => {}
                MessageRole::System => parts.push(text.to_owned()),
                MessageRole::User if has_replies => parts.push(format!("Message to you:\n{text}")),
                MessageRole::User => parts.push(text.to_owned()),
                MessageRole::Assistant => {
                    let calls = message.tool_calls.iter();
                    let calls = calls.map(|call| format!("\n(called {})", call.name));
                    parts.push(format!("You said:\n{text}{}", calls.collect::<String>()));
                }
                MessageRole::Tool => {
                    let id = message.tool_call_id.as_deref().unwrap_or_default();
                    let name = names.get(id).copied().unwrap_or("the tool");
                    parts.push(format!("Result of {name}:\n{text}"));
                }
            }
        }
        let offers = offers_text(&request.tools);
        if !offers.is_empty() && heard.told.insert(hash_of(&offers)) {
            parts.push(offers);
        }
        NextPrompt { text: parts.join("\n\n"), heard }
    }

    /// The session has said this.
    pub(super) fn and_reply(mut self, reply: &Reply) -> Self {
        self.messages.push(message_hash(&ChatMessage::from_reply(reply)));
        self
    }
}

/// The session of an earlier turn of this conversation, and how many messages it knows.
pub(super) fn session_in(request: &ChatRequest) -> Option<(String, usize)> {
    let messages: Vec<&ChatMessage> = request.messages.iter().collect();
    let session = |message: &ChatMessage| {
        let id = message.blocks.as_ref()?.pointer("/acp/session")?.as_str()?;
        Some(id.to_owned())
    };
    messages.iter().enumerate().rev().find_map(|(at, message)| Some((session(message)?, at + 1)))
}

/// The tools that the agent may call by a text; empty if there are none.
fn offers_text(offers: &[ToolOffer]) -> String {
    if offers.is_empty() {
        return String::new();
    }
    let offers = offers.iter().map(|offer| {
        format!("\n- {}: {} Arguments: {}", offer.name, offer.description, offer.parameters)
    });
    format!(
        "Besides your own tools there are these. To call one, end your answer with one JSON object on a \
         line of its own, {{\"tool\": \"NAME\", \"arguments\": {{…}}}}, and nothing after it. You get the \
         result as the next message.{}",
        offers.collect::<String>()
    )
}

#[derive(Deserialize)]
struct WrittenCall {
    tool: String,
    #[serde(default)]
    arguments: Value,
}

/// The text of a reply without the call at its end, and that call.
pub(super) fn split_call(text: &str, request: &ChatRequest) -> (String, Option<ToolCall>) {
    if request.tools.is_empty() {
        return (text.to_owned(), None);
    }
    let whole = text.trim_end();
    let whole = whole.strip_suffix("```").unwrap_or(whole).trim_end();
    let starts = whole.match_indices('{').map(|(at, _)| at);
    let mut starts = starts.filter(|at| {
        let line = whole[..*at].rsplit('\n').next().unwrap_or_default();
        line.trim().is_empty()
    });
    let found = starts.find_map(|at| {
        let call: WrittenCall = serde_json::from_str(&whole[at..]).ok()?;
        let name = request.tools.iter().find(|offer| *offer.name == *call.tool)?.name.clone();
        Some((at, name, call.arguments))
    });
    let Some((at, name, arguments)) = found else { return (text.to_owned(), None) };
    let before = whole[..at].trim_end();
    let fence = ["```json", "```"].iter().find_map(|fence| before.strip_suffix(fence));
    let arguments = if arguments.is_null() { "{}".to_owned() } else { arguments.to_string() };
    // No other message of the conversation has this number.
    let id: Arc<str> = format!("call_{}", request.messages.iter().count()).into();
    let call = ToolCall { id, name, arguments: arguments.into() };
    (fence.unwrap_or(before).trim_end().to_owned(), Some(call))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::log::event::Purpose;
    use crate::model::{Conversation, ReplyForm};

    fn request(messages: &[ChatMessage], tools: &[&str]) -> ChatRequest {
        let messages: Arc<[ChatMessage]> = messages.into();
        ChatRequest {
            messages: Conversation::from(messages),
            tools: tools.iter().map(|name| ToolOffer::bare(name)).collect(),
            form: ReplyForm::Text,
            purpose: Purpose::Finalize,
            message: 1,
            attempt: 1,
            nth: 1,
            again: 0,
            draw: 0,
            shown: Arc::default(),
        }
    }

    fn said(role: MessageRole, text: &str) -> ChatMessage {
        ChatMessage::new(role, text)
    }

    #[test]
    fn session_is_told_only_new_messages() {
        let mut messages =
            vec![said(MessageRole::System, "You review."), said(MessageRole::User, "Look at it.")];
        let first = Heard::default().next_prompt(&request(&messages, &[]));
        assert_eq!(first.text, "You review.\n\nLook at it.");
        let reply = Reply::from_agent_text("Done.".into());
        let heard = first.heard.and_reply(&reply);
        messages.push(ChatMessage::from_reply(&reply));
        messages.push(said(MessageRole::User, "Again."));
        assert_eq!(heard.next_prompt(&request(&messages, &[])).text, "Again.");
        // Another conversation of the same caller: its instruction is known.
        let other = [messages[0].clone(), said(MessageRole::User, "Round 2.")];
        assert_eq!(heard.next_prompt(&request(&other, &[])).text, "Round 2.");
        // A session that knows nothing gets all of it.
        let all = Heard::default().next_prompt(&request(&messages, &[])).text;
        assert_eq!(
            all,
            "You review.\n\nMessage to you:\nLook at it.\n\nYou said:\nDone.\n\nMessage to you:\nAgain."
        );
    }

    #[test]
    fn tools_are_offered_once() {
        let messages = [said(MessageRole::User, "Go.")];
        let first = Heard::default().next_prompt(&request(&messages, &["transfer_to_agent"]));
        assert!(first.text.contains("\n- transfer_to_agent: "), "{}", first.text);
        let again = first.heard.next_prompt(&request(&messages, &["transfer_to_agent"]));
        assert!(!again.text.contains("transfer_to_agent"), "{}", again.text);
    }

    #[test]
    fn earlier_session_is_found() {
        let blocks = Some(Arc::new(json!({ "acp": { "session": "s1" } })));
        let own = ChatMessage { blocks, ..said(MessageRole::Assistant, "x") };
        let messages = [said(MessageRole::User, "a"), own, said(MessageRole::User, "b")];
        let request = request(&messages, &[]);
        assert_eq!(session_in(&request), Some(("s1".to_owned(), 2)));
        let mut heard = Heard::default();
        heard.load(&request, 2);
        assert_eq!(heard.next_prompt(&request).text, "b");
    }

    #[test]
    fn calls_at_the_end_are_read() {
        let request = request(&[said(MessageRole::User, "a")], &["transfer_to_agent"]);
        let call = r#"{"tool": "transfer_to_agent", "arguments": {"agent_name": "b"}}"#;
        for (text, before) in [
            (call.to_owned(), ""),
            (format!("I am done.\n{call}"), "I am done."),
            (format!("I am done.\n```json\n{call}\n```\n"), "I am done."),
            (format!("Like {{this}}:\n{{\"a\": 1}}\n{call}"), "Like {this}:\n{\"a\": 1}"),
        ] {
            let (left, made) = split_call(&text, &request);
            assert_eq!(left, before, "{text}");
            let made = made.expect("a call");
            assert_eq!(
                (&*made.name, &*made.arguments),
                ("transfer_to_agent", r#"{"agent_name":"b"}"#)
            );
        }
        for text in [
            "No call.".to_owned(),
            format!("{call} and more"),
            r#"{"tool": "unknown", "arguments": {}}"#.to_owned(),
            format!("inline {call}"),
        ] {
            assert_eq!(split_call(&text, &request), (text.clone(), None));
        }
    }
}
