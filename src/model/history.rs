//! The history of a conversation as endpoints accept it. Our log keeps the original order, names and ids;
//! strict servers and chat templates refuse a part of that (docs/rules/decisions.md, *Histories*).

use std::borrow::Cow;
use std::sync::Arc;

use super::Conversation;
use super::client::kept_fields::FieldOrigin;
use crate::base::sha256_of_text;
use crate::log::event::result_text::error_text;
use crate::log::event::{ChatMessage, MessageRole};
use crate::scenario::spec::tool::ToolCall;

/// What the user says where the model would speak first.
const OPENING: &str = "Begin.";

/// What the model says between the results of its calls and the next message of a user.
const CONTINUED: &str = "(continued)";

/// The longest tool name that APIs accept.
const NAME_CHARS: usize = 64;

/// The length of an id that replaces one that the API refuses.
const MADE_ID_CHARS: usize = 9;

/// The rules of an API. See [`normalized`] for what both APIs require.
pub(crate) struct HistoryRules<'a> {
    /// The model that the history goes to.
    pub(crate) to: FieldOrigin<'a>,
    /// Whether user and model must alternate, message by message. Otherwise the writer joins them.
    pub(super) alternates: bool,
    /// Whether the API accepts the id of a call.
    pub(super) accepts_id: fn(&str) -> bool,
    /// Whether a message of the model is sent as it came, with the ids and names in it.
    pub(super) sends_as_it_came: fn(&ChatMessage, FieldOrigin<'_>) -> bool,
}

/// The same conversation in the form that the API accepts:
///
/// - instructions come first; a user speaks first after them;
/// - every call has its result directly after its message, in the order of the calls; one without a
///   result gets one that says so, and a result without a call becomes a user's text;
/// - names of tools are in `[a-zA-Z0-9_-]{1,64}`, and ids are such that the API accepts them;
/// - no message is blank;
/// - where roles must alternate, messages in a row are joined, and `(continued)` is put between a
///   result and a user's message.
///
/// A conversation that is like this already is returned as it is, after one pass without an
/// allocation.
pub(super) fn normalized<'a>(
    history: &'a Conversation,
    rules: &HistoryRules<'_>,
) -> Cow<'a, Conversation> {
    match rules.accept(history) {
        true => Cow::Borrowed(history),
        false => Cow::Owned(rules.rebuild(history)),
    }
}

impl HistoryRules<'_> {
    fn accept(&self, history: &Conversation) -> bool {
        use MessageRole::{Assistant, System, Tool, User};
        let mut last = None;
        // The calls whose results come next.
        let mut pending: &[ToolCall] = &[];
        for message in history.iter() {
            let is_accepted = match (message.role, pending) {
                (Tool, [call, rest @ ..]) => {
                    pending = rest;
                    message.tool_call_id.as_ref() == Some(&call.id)
                }
                (Tool, []) | (_, [_, ..]) => false,
                _ if self.is_blank(message) => false,
                (System, []) => last.is_none() || (last == Some(System) && !self.alternates),
                (User, []) => !self.alternates || !matches!(last, Some(User | Tool)),
                (Assistant, []) => {
                    pending = &message.tool_calls;
                    let begins = matches!(last, None | Some(System));
                    let again = last == Some(Assistant) && self.alternates;
                    let accepts =
                        |call: &ToolCall| is_plain(&call.name) && (self.accepts_id)(&call.id);
                    let calls = &message.tool_calls;
                    !begins
                        && !again
                        && (calls.iter().all(accepts) || (self.sends_as_it_came)(message, self.to))
                }
            };
            if !is_accepted {
                return false;
            }
            last = Some(message.role);
        }
        pending.is_empty() && !matches!(last, None | Some(System))
    }

    /// Whether a message says nothing. Endpoints refuse such a message, but not such a result.
    fn is_blank(&self, message: &ChatMessage) -> bool {
        message.tool_calls.is_empty()
            && message.content.trim_start().is_empty()
            && !(self.sends_as_it_came)(message, self.to)
    }

    fn rebuild(&self, history: &Conversation) -> Conversation {
        let messages: Vec<&ChatMessage> = history.iter().collect();
        let mut rebuilt = RebuiltHistory { rules: self, messages: Vec::new() };
        for message in messages.iter().filter(|message| message.role == MessageRole::System) {
            rebuilt.push((*message).clone());
        }
        let mut is_used = vec![false; messages.len()];
        for (at, message) in messages.iter().enumerate() {
            match message.role {
                MessageRole::System => {}
                MessageRole::User => rebuilt.push((*message).clone()),
                MessageRole::Tool if is_used[at] => {}
                MessageRole::Tool if message.content.trim_start().is_empty() => {}
                MessageRole::Tool => {
                    let text = format!("[result of an earlier call] {}", message.content);
                    rebuilt.push(ChatMessage::new(MessageRole::User, text));
                }
                MessageRole::Assistant => {
                    let sent = self.with_accepted_calls(message);
                    let ids: Vec<Arc<str>> =
                        sent.tool_calls.iter().map(|call| Arc::clone(&call.id)).collect();
                    rebuilt.push(sent);
                    for (call, id) in message.tool_calls.iter().zip(ids) {
                        let result = result_of(call, &messages, at, &is_used);
                        let text = match result {
                            None => error_text("this call has no result"),
                            Some(result) => {
                                is_used[result] = true;
                                Arc::clone(&messages[result].content)
                            }
                        };
                        let result = ChatMessage::new(MessageRole::Tool, text);
                        rebuilt.messages.push(ChatMessage { tool_call_id: Some(id), ..result });
                    }
                }
            }
        }
        if rebuilt.messages.last().is_none_or(|last| last.role == MessageRole::System) {
            rebuilt.push(ChatMessage::new(MessageRole::User, OPENING));
        }
        Conversation::from(Arc::from(rebuilt.messages))
    }

    /// The message, its calls with names and ids that the API accepts.
    fn with_accepted_calls(&self, message: &ChatMessage) -> ChatMessage {
        let mut message = message.clone();
        if (self.sends_as_it_came)(&message, self.to) {
            return message;
        }
        let accepts = |call: &ToolCall| is_plain(&call.name) && (self.accepts_id)(&call.id);
        if !message.tool_calls.iter().all(accepts) {
            let calls = message.tool_calls.iter().map(|call| ToolCall {
                id: match (self.accepts_id)(&call.id) {
                    true => Arc::clone(&call.id),
                    false => made_id(&call.id),
                },
                name: plain_name(&call.name).into(),
                arguments: Arc::clone(&call.arguments),
            });
            message.tool_calls = calls.collect();
        }
        message
    }
}

/// The messages of a history in its new form.
struct RebuiltHistory<'r> {
    rules: &'r HistoryRules<'r>,
    messages: Vec<ChatMessage>,
}

impl RebuiltHistory<'_> {
    /// Adds a message other than a result, or joins it with the last one.
    fn push(&mut self, message: ChatMessage) {
        use MessageRole::{Assistant, System, Tool, User};
        if self.rules.is_blank(&message) {
            return;
        }
        let alternates = self.rules.alternates;
        match (self.messages.last_mut(), message.role) {
            (Some(last), role) if alternates && last.role == role => return join(last, message),
            (Some(ChatMessage { role: Tool, .. }), User) if alternates => {
                self.messages.push(ChatMessage::new(Assistant, CONTINUED));
            }
            (None | Some(ChatMessage { role: System, .. }), Assistant) => {
                self.messages.push(ChatMessage::new(User, OPENING));
            }
            _ => {}
        }
        self.messages.push(message);
    }
}

/// Joins two messages of one role. The first one has no calls: their results would follow.
fn join(last: &mut ChatMessage, message: ChatMessage) {
    let texts = [&*last.content, &*message.content];
    let said: Vec<&str> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    last.content = said.join("\n\n").into();
    last.tool_calls = message.tool_calls;
    last.blocks = message.blocks.or_else(|| last.blocks.take());
}

/// The place of a call's result: the first one under its id that no other call has, before the id is
/// used again.
fn result_of(
    call: &ToolCall,
    messages: &[&ChatMessage],
    at: usize,
    is_used: &[bool],
) -> Option<usize> {
    let after = messages.iter().enumerate().skip(at + 1);
    let is_reused = |message: &ChatMessage| message.tool_calls.iter().any(|it| it.id == call.id);
    let mut before_reuse = after.take_while(|(_, message)| !is_reused(message));
    let is_result = |at: usize, message: &ChatMessage| {
        message.role == MessageRole::Tool
            && !is_used[at]
            && message.tool_call_id.as_ref() == Some(&call.id)
    };
    before_reuse.find(|(at, message)| is_result(*at, message)).map(|(at, _)| at)
}

/// Whether APIs accept the name of a tool.
fn is_plain(name: &str) -> bool {
    (1..=NAME_CHARS).contains(&name.len()) && name.bytes().all(is_plain_byte)
}

/// Whether an id or a name has only the characters that every API accepts.
pub(super) fn has_plain_characters(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_plain_byte)
}

fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The name of a tool in the form that APIs accept; models make up other ones.
pub(crate) fn plain_name(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let plain =
        |c: char| u8::try_from(c).ok().filter(|byte| is_plain_byte(*byte)).map_or('_', char::from);
    let plain: String = name.chars().take(NAME_CHARS).map(plain).collect();
    Cow::Owned(if plain.is_empty() { "_".to_owned() } else { plain })
}

/// The id that is sent in place of this one: letters and digits, as every API accepts them.
fn made_id(id: &str) -> Arc<str> {
    let digest = sha256_of_text(id);
    digest.get(..MADE_ID_CHARS).unwrap_or(&digest).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// The rules of a strict server of each API.
    fn rules() -> [HistoryRules<'static>; 2] {
        let short = |id: &str| (1..=40).contains(&id.len());
        let kept = |message: &ChatMessage, _: FieldOrigin<'_>| message.blocks.is_some();
        let to = FieldOrigin { host: "h", model: "m" };
        [
            HistoryRules {
                to,
                alternates: true,
                accepts_id: short,
                sends_as_it_came: |_, _| false,
            },
            HistoryRules {
                to,
                alternates: false,
                accepts_id: has_plain_characters,
                sends_as_it_came: kept,
            },
        ]
    }

    /// Why a server with these rules refuses a history, found without a look at the code above.
    fn refusal(messages: &[ChatMessage], rules: &HistoryRules<'_>) -> Option<&'static str> {
        let begin = messages.iter().take_while(|it| it.role == MessageRole::System).count();
        let (system, said) = messages.split_at(begin);
        if rules.alternates && system.len() > 1 {
            return Some("two instructions");
        }
        if system.iter().any(|it| it.content.trim().is_empty()) {
            return Some("a blank instruction");
        }
        if said.first().is_none_or(|first| first.role != MessageRole::User) {
            return Some("no user first");
        }
        for (at, message) in said.iter().enumerate() {
            let kept = (rules.sends_as_it_came)(message, rules.to);
            match message.role {
                MessageRole::System => return Some("late instructions"),
                MessageRole::Tool => {
                    let caller = said[..at].iter().rposition(|it| it.role != MessageRole::Tool);
                    let calls = caller.map(|caller| (at - caller - 1, &said[caller].tool_calls));
                    let call = calls.and_then(|(nth, calls)| calls.get(nth));
                    if call.map(|call| &call.id) != message.tool_call_id.as_ref() {
                        return Some("a result that is not of a call before it");
                    }
                }
                _ => {
                    if message.content.trim().is_empty() && message.tool_calls.is_empty() && !kept {
                        return Some("a blank message");
                    }
                    let after = said[at + 1..].iter();
                    let results = after.take_while(|it| it.role == MessageRole::Tool).count();
                    if results != message.tool_calls.len() {
                        return Some("a call without a result");
                    }
                }
            }
            for call in message.tool_calls.iter().filter(|_| !kept) {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if call.name.is_empty() || call.name.len() > 64 || !call.name.chars().all(plain) {
                    return Some("a name");
                }
                if !(rules.accepts_id)(&call.id) {
                    return Some("an id");
                }
            }
        }
        let strict = said.iter().zip(said.iter().skip(1)).filter(|_| rules.alternates);
        for (one, next) in strict {
            match (one.role, next.role) {
                (MessageRole::User, MessageRole::User) => return Some("two of the user"),
                (MessageRole::Assistant, MessageRole::Assistant) => {
                    return Some("two of the model");
                }
                (MessageRole::Tool, MessageRole::User) => return Some("a user after a result"),
                _ => {}
            }
        }
        None
    }

    fn id() -> impl Strategy<Value = Arc<str>> {
        let long = "call_0123456789abcdefghijklmnopqrstuvwxyz_more";
        select(vec!["a", "b", "call_1", "x.é 2", "functions.look:0", "", long]).prop_map(Arc::from)
    }

    fn call() -> impl Strategy<Value = ToolCall> {
        let long = "look_".repeat(13);
        let names =
            ["look", "functions.look", "look<|channel|>commentary", "look ", "é", "", &long];
        let names: Vec<Arc<str>> = names.map(Arc::from).into();
        (id(), select(names)).prop_map(|(id, name)| ToolCall { id, name, arguments: "{}".into() })
    }

    fn message() -> impl Strategy<Value = ChatMessage> {
        use MessageRole::{Assistant, System, Tool, User};
        let role =
            select(vec![System, User, User, Assistant, Assistant, Assistant, Tool, Tool, Tool]);
        let text = select(vec!["one", "two", "three", "", " \n"]);
        let calls = prop::collection::vec(call(), 0..3);
        (role, text, calls, prop::option::of(id()), any::<bool>()).prop_map(
            |(role, text, calls, id, kept)| {
                let (is_said, is_result) = (role == Assistant, role == Tool);
                ChatMessage {
                    tool_calls: if is_said { calls.into() } else { Arc::default() },
                    tool_call_id: id.filter(|_| is_result),
                    blocks: (is_said && kept).then(|| Arc::new(serde_json::json!([{}]))),
                    ..ChatMessage::new(role, text)
                }
            },
        )
    }

    /// A history as our agents have it where nothing is odd.
    fn plain_history() -> impl Strategy<Value = Vec<ChatMessage>> {
        let called = prop::collection::vec((1_usize..4, "[a-z]{0,9}"), 0..3);
        let turns = prop::collection::vec((called, "[a-z]{1,9}"), 0..4);
        (any::<bool>(), turns).prop_map(|(instructed, turns)| {
            let new = |role, text: &str| ChatMessage::new(role, text);
            let mut said = Vec::new();
            said.extend(instructed.then(|| new(MessageRole::System, "You judge.")));
            said.push(new(MessageRole::User, "Go."));
            for (nth, (called, text)) in turns.into_iter().enumerate() {
                for (round, (calls, text)) in called.into_iter().enumerate() {
                    let calls: Arc<[ToolCall]> = (0..calls)
                        .map(|call| ToolCall {
                            id: format!("call_{nth}_{round}_{call}").into(),
                            name: "look-up_2".into(),
                            arguments: "[".into(),
                        })
                        .collect();
                    said.push(ChatMessage::assistant(text, Arc::clone(&calls)));
                    said.extend(calls.iter().map(|call| ChatMessage::tool_result(call, "")));
                }
                said.push(new(MessageRole::Assistant, &text));
                said.push(new(MessageRole::User, "And?"));
            }
            said
        })
    }

    fn conversation(messages: &[ChatMessage]) -> Conversation {
        Conversation::from(Arc::from(messages))
    }

    fn list(history: &Conversation) -> Vec<ChatMessage> {
        history.iter().cloned().collect()
    }

    proptest! {
        #[test]
        fn any_history_becomes_an_accepted_one(said in prop::collection::vec(message(), 0..12)) {
            for rules in rules() {
                let history = conversation(&said);
                let sent = normalized(&history, &rules);
                let messages = list(&sent);
                prop_assert_eq!(refusal(&messages, &rules), None, "{:?}", messages);
                let is_unchanged = matches!(sent, Cow::Borrowed(_));
                prop_assert_eq!(is_unchanged, refusal(&said, &rules).is_none());
                let again = conversation(&messages);
                prop_assert!(matches!(normalized(&again, &rules), Cow::Borrowed(_)));
                // Nothing is lost, and nothing is said twice.
                for text in ["one", "two", "three"] {
                    let times = |messages: &[ChatMessage]| -> usize {
                        messages.iter().map(|it| it.content.matches(text).count()).sum()
                    };
                    prop_assert_eq!(times(&messages), times(&said), "{}", text);
                }
                let calls = |messages: &[ChatMessage]| -> usize {
                    messages.iter().map(|message| message.tool_calls.len()).sum()
                };
                prop_assert_eq!(calls(&messages), calls(&said));
            }
        }

        #[test]
        fn an_accepted_history_stays_unchanged(said in plain_history()) {
            for rules in rules() {
                prop_assert_eq!(refusal(&said, &rules), None);
                let history = conversation(&said);
                prop_assert!(matches!(normalized(&history, &rules), Cow::Borrowed(_)));
            }
        }

        #[test]
        fn ids_are_mapped_alike_everywhere(ids in prop::collection::hash_set("[a-z.]{1,60}", 2..6)) {
            let ids: Vec<Arc<str>> = ids.into_iter().map(Arc::from).collect();
            let calls: Arc<[ToolCall]> = ids
                .iter()
                .map(|id| ToolCall { id: Arc::clone(id), name: "a".into(), arguments: "".into() })
                .collect();
            let mut said = vec![
                ChatMessage::new(MessageRole::User, "Go."),
                ChatMessage::assistant("", Arc::clone(&calls)),
            ];
            // The results come in another order than the calls.
            said.extend(calls.iter().rev().map(|call| ChatMessage::tool_result(call, &*call.id)));
            for rules in rules() {
                let history = conversation(&said);
                let messages = list(&normalized(&history, &rules));
                let sent = &messages[1].tool_calls;
                for (nth, (call, sent)) in calls.iter().zip(&**sent).enumerate() {
                    prop_assert_eq!(&messages[2 + nth].content, &call.id, "its own result");
                    prop_assert_eq!(messages[2 + nth].tool_call_id.as_ref(), Some(&sent.id));
                    let as_it_was = (rules.accepts_id)(&call.id);
                    prop_assert_eq!(sent.id == call.id, as_it_was);
                    prop_assert!(as_it_was || sent.id.len() == 9);
                }
                let different: std::collections::BTreeSet<_> = sent.iter().map(|it| &it.id).collect();
                prop_assert_eq!(different.len(), calls.len());
            }
        }
    }

    /// A message in one line: its role, its text, its calls by name and id.
    fn line(message: &ChatMessage) -> String {
        let calls = message.tool_calls.iter().map(|call| format!(" {}#{}", call.name, call.id));
        let id = message.tool_call_id.as_ref().map(|id| format!("#{id}")).unwrap_or_default();
        let calls: String = calls.collect();
        format!("{}{id}: {}{calls}", message.role.word(), message.content)
    }

    #[test]
    fn each_rule_has_its_remedy() {
        use MessageRole::{Assistant, System, Tool, User};
        let new = |role, text: &str| ChatMessage::new(role, text);
        let calls = |names: &[&str]| -> ChatMessage {
            let call = |(nth, name): (usize, &&str)| ToolCall {
                id: format!("c{nth}").into(),
                name: (**name).into(),
                arguments: "{}".into(),
            };
            ChatMessage::assistant("", names.iter().enumerate().map(call).collect())
        };
        let result =
            |id: &str, text: &str| ChatMessage { tool_call_id: Some(id.into()), ..new(Tool, text) };
        let long = "l".repeat(70);
        let table: Vec<(Vec<ChatMessage>, Vec<&str>)> = vec![
            (vec![], vec!["user: Begin."]),
            (vec![new(System, "S")], vec!["system: S", "user: Begin."]),
            (
                vec![
                    new(Assistant, "I began."),
                    new(System, "S"),
                    new(System, " "),
                    new(System, "T"),
                ],
                vec!["system: S\n\nT", "user: Begin.", "assistant: I began."],
            ),
            (
                vec![
                    new(User, "a"),
                    new(User, ""),
                    new(User, "b"),
                    new(Assistant, "c"),
                    new(Assistant, "d"),
                ],
                vec!["user: a\n\nb", "assistant: c\n\nd"],
            ),
            (
                vec![
                    new(User, "a"),
                    calls(&["x"]),
                    result("c0", "r"),
                    new(User, "b"),
                    new(User, "c"),
                ],
                vec![
                    "user: a",
                    "assistant:  x#c0",
                    "tool#c0: r",
                    "assistant: (continued)",
                    "user: b\n\nc",
                ],
            ),
            (
                vec![new(User, "a"), calls(&["functions.x", "x y", &long])],
                vec![
                    "user: a",
                    "assistant:  functions_x#c0 x_y#c1 llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll#c2",
                    "tool#c0: error: this call has no result",
                    "tool#c1: error: this call has no result",
                    "tool#c2: error: this call has no result",
                ],
            ),
            (
                vec![
                    new(User, "a"),
                    calls(&["x", "y"]),
                    result("c1", "2"),
                    new(User, "b"),
                    result("c0", "1"),
                    result("c0", "again"),
                ],
                vec![
                    "user: a",
                    "assistant:  x#c0 y#c1",
                    "tool#c0: 1",
                    "tool#c1: 2",
                    "assistant: (continued)",
                    "user: b\n\n[result of an earlier call] again",
                ],
            ),
        ];
        let [rules, _] = rules();
        for (said, expected) in table {
            let history = conversation(&said);
            let sent: Vec<String> = normalized(&history, &rules).iter().map(line).collect();
            assert_eq!(sent, expected);
        }
    }
}
