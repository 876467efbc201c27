//! A conversation in the format of the API: the instructions are separate, then turns of the user
//! and the model alternate, each a list of blocks.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::event::kind::{ChatMessage, MessageRole};
use crate::llm::Conversation;
use crate::llm::client::json::RequestBody;
use crate::scenario::spec::tool::ToolCall;

/// The first turn of a conversation that would not begin with a user's turn, as the API requires.
const OPENING: &str = "Begin.";

/// The longest tool name that the API accepts.
const NAME_CHARS: usize = 64;

/// The system messages, in order.
pub(super) fn instructions(conversation: &Conversation) -> impl Iterator<Item = &str> {
    let system = conversation.iter().filter(|message| message.role == MessageRole::System);
    system.map(|message| &*message.content).filter(|text| !is_blank(text))
}

/// The role of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Serialize), serde(rename_all = "snake_case"))]
enum TurnRole {
    User,
    Assistant,
}

/// One turn.
#[derive(Debug)]
#[cfg_attr(test, derive(Serialize))]
pub(super) struct MessageTurn<'a> {
    role: TurnRole,
    content: Vec<TurnBlock<'a>>,
}

/// One block of a turn.
#[derive(Debug)]
#[cfg_attr(test, derive(Serialize), serde(tag = "type", rename_all = "snake_case"))]
enum TurnBlock<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: CallInput<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[cfg_attr(test, serde(skip_serializing_if = "str::is_empty"))]
        content: &'a str,
    },
    /// A block as the model sent it.
    #[cfg_attr(test, serde(untagged))]
    Kept(&'a Value),
}

impl MessageTurn<'_> {
    /// Writes the turn to a request.
    ///
    /// # Errors
    /// Our own turns cause none; the signature is serde_json's.
    pub(super) fn write(&self, body: &mut RequestBody) -> Result<(), serde_json::Error> {
        body.raw(match self.role {
            TurnRole::User => r#"{"role":"user","content":["#,
            TurnRole::Assistant => r#"{"role":"assistant","content":["#,
        });
        for (nth, block) in self.content.iter().enumerate() {
            body.raw(if nth == 0 { "" } else { "," });
            block.write(body)?;
        }
        body.raw("]}");
        Ok(())
    }
}

impl TurnBlock<'_> {
    fn write(&self, body: &mut RequestBody) -> Result<(), serde_json::Error> {
        match self {
            Self::Text { text } => {
                body.raw(r#"{"type":"text","text":"#);
                body.text(text);
            }
            Self::ToolUse { id, name, input } => {
                body.raw(r#"{"type":"tool_use","id":"#);
                body.text(id);
                body.raw(r#","name":"#);
                body.text(name);
                body.raw(r#","input":"#);
                body.value(input)?;
            }
            Self::ToolResult { tool_use_id, content } => {
                body.raw(r#"{"type":"tool_result","tool_use_id":"#);
                body.text(tool_use_id);
                if !content.is_empty() {
                    body.raw(r#","content":"#);
                    body.text(content);
                }
            }
            Self::Kept(block) => return body.value(block),
        }
        body.raw("}");
        Ok(())
    }
}

/// The arguments of a call: always an object, even if the model sent something else.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum CallInput<'a> {
    Raw(&'a RawValue),
    Made(Value),
}

impl<'a> CallInput<'a> {
    fn of(arguments: &'a str) -> Self {
        let begins = arguments.trim_start();
        if begins.is_empty() {
            return Self::Made(json!({}));
        }
        match serde_json::from_str::<&RawValue>(arguments) {
            Ok(raw) if begins.starts_with('{') => Self::Raw(raw),
            _ => Self::Made(json!({ "unreadable": arguments })),
        }
    }
}

/// The turns of a conversation.
pub(super) fn turns(conversation: &Conversation) -> Vec<MessageTurn<'_>> {
    let mut turns: Vec<MessageTurn<'_>> = Vec::new();
    // Whether the previous calls were sent back unchanged, with their own ids.
    let mut as_they_came = false;
    for message in conversation.iter() {
        let (role, blocks) = match message.role {
            MessageRole::System => continue,
            MessageRole::User => (TurnRole::User, text(&message.content).into_iter().collect()),
            MessageRole::Tool => (TurnRole::User, vec![result(message, as_they_came)]),
            MessageRole::Assistant => {
                let kept = kept_blocks(message);
                as_they_came = kept.is_some();
                (TurnRole::Assistant, kept.unwrap_or_else(|| reply_blocks(message)))
            }
        };
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => turns.push(MessageTurn { role, content: blocks }),
        }
    }
    if turns.first().is_none_or(|first| first.role != TurnRole::User) {
        turns.insert(
            0,
            MessageTurn { role: TurnRole::User, content: text(OPENING).into_iter().collect() },
        );
    }
    // Results must come first in a user's turn after a call.
    for turn in turns.iter_mut().filter(|turn| turn.role == TurnRole::User) {
        turn.content.sort_by_key(|block| !matches!(block, TurnBlock::ToolResult { .. }));
    }
    turns
}

/// The blocks as the model sent them, if they are from this API. Blank texts are omitted: the API
/// rejects them, even its own.
fn kept_blocks(message: &ChatMessage) -> Option<Vec<TurnBlock<'_>>> {
    let blocks = message.blocks.as_deref()?.as_array()?;
    let is_ours = |block: &Value| block.get("type").is_some_and(Value::is_string);
    let is_silent = |block: &Value| {
        block["type"] == "text" && block.get("text").and_then(Value::as_str).is_none_or(is_blank)
    };
    let kept: Vec<TurnBlock<'_>> =
        blocks.iter().filter(|block| !is_silent(block)).map(TurnBlock::Kept).collect();
    (blocks.iter().all(is_ours) && !kept.is_empty()).then_some(kept)
}

/// The text and the tool calls of a reply.
fn reply_blocks(message: &ChatMessage) -> Vec<TurnBlock<'_>> {
    // The API rejects a final turn of the model that ends in white space.
    let said = text(message.content.trim_end());
    said.into_iter().chain(message.tool_calls.iter().map(call)).collect()
}

fn text(text: &str) -> Option<TurnBlock<'_>> {
    (!is_blank(text)).then_some(TurnBlock::Text { text })
}

/// The API rejects texts of white space only.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn call(call: &ToolCall) -> TurnBlock<'_> {
    let name = match call.name.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => call.name.get(..end).unwrap_or_default(),
        None => &call.name,
    };
    TurnBlock::ToolUse {
        id: api_safe(&call.id),
        name: api_safe(name),
        input: CallInput::of(&call.arguments),
    }
}

fn result(message: &ChatMessage, as_it_came: bool) -> TurnBlock<'_> {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    TurnBlock::ToolResult {
        tool_use_id: if as_it_came { Cow::Borrowed(id) } else { api_safe(id) },
        content: &message.content,
    }
}

/// A name or an id with only the characters that the API accepts; other models and servers use
/// more.
fn api_safe(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    Cow::Owned(if plain.is_empty() { "_".to_owned() } else { plain })
}
