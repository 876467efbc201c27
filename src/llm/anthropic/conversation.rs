//! A conversation in the format of the API: the instructions are separate, then turns of the user
//! and the model alternate, each a list of blocks.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::event::kind::{ChatMessage, MessageRole};
use crate::llm::Conversation;
use crate::llm::client::json::RequestBody;
use crate::llm::client::kept_fields::{FieldOrigin, content_to_return};
use crate::llm::history::{HistoryRules, has_plain_characters, plain_name};
use crate::scenario::spec::tool::ToolCall;

/// The history that the API accepts. It takes any number of messages of one role in a row: they are
/// the blocks of one turn.
pub(super) fn history_rules(to: FieldOrigin<'_>) -> HistoryRules<'_> {
    HistoryRules {
        to,
        alternates: false,
        accepts_id: has_plain_characters,
        sends_as_it_came: |message, to| blocks_to_return(message, to).is_some(),
    }
}

/// The system messages, in order.
pub(super) fn instructions(conversation: &Conversation) -> impl Iterator<Item = &str> {
    let system = conversation.iter().filter(|message| message.role == MessageRole::System);
    system.map(|message| &*message.content)
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
        id: &'a str,
        name: &'a str,
        input: CallInput<'a>,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[cfg_attr(test, serde(skip_serializing_if = "str::is_empty"))]
        content: &'a str,
    },
    /// A block as the model sent it, but for a tool's name that the API refuses.
    #[cfg_attr(test, serde(untagged))]
    Kept(Cow<'a, Value>),
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
            Self::Kept(block) => return body.value(&**block),
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

/// The turns of a conversation that is in the form of [`history_rules`].
pub(super) fn turns<'a>(
    conversation: &'a Conversation,
    to: FieldOrigin<'_>,
) -> Vec<MessageTurn<'a>> {
    let mut turns: Vec<MessageTurn<'_>> = Vec::new();
    for message in conversation.iter() {
        let (role, blocks) = match message.role {
            MessageRole::System => continue,
            MessageRole::User => (TurnRole::User, text(&message.content).into_iter().collect()),
            MessageRole::Tool => (TurnRole::User, vec![result(message)]),
            MessageRole::Assistant => {
                let blocks = match blocks_to_return(message, to) {
                    Some(blocks) => kept_blocks(blocks).collect(),
                    None => reply_blocks(message),
                };
                (TurnRole::Assistant, blocks)
            }
        };
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => turns.push(MessageTurn { role, content: blocks }),
        }
    }
    turns
}

/// The blocks of a message as this model sent them, in the format of this API.
fn blocks_to_return<'a>(message: &'a ChatMessage, to: FieldOrigin<'_>) -> Option<&'a Vec<Value>> {
    let blocks = content_to_return(message, to)?;
    let is_ours = |block: &Value| block.get("type").is_some_and(Value::is_string);
    (blocks.iter().all(is_ours) && !blocks.iter().all(is_silent)).then_some(blocks)
}

/// Whether a block is a blank text: the API rejects them, even its own.
fn is_silent(block: &Value) -> bool {
    block["type"] == "text" && block.get("text").and_then(Value::as_str).is_none_or(is_blank)
}

/// The blocks as the model sent them.
fn kept_blocks(blocks: &[Value]) -> impl Iterator<Item = TurnBlock<'_>> {
    blocks.iter().filter(|block| !is_silent(block)).map(|block| {
        let made_up = block.get("name").and_then(Value::as_str).map(plain_name);
        TurnBlock::Kept(match made_up {
            Some(Cow::Owned(name)) if block["type"] == "tool_use" => {
                let mut block = block.clone();
                block["name"] = Value::from(name);
                Cow::Owned(block)
            }
            _ => Cow::Borrowed(block),
        })
    })
}

/// The text and the tool calls of a reply.
fn reply_blocks(message: &ChatMessage) -> Vec<TurnBlock<'_>> {
    // The API rejects a final turn of the model that ends in white space.
    let said = text(message.content.trim_end());
    said.into_iter().chain(message.tool_calls.iter().map(call)).collect()
}

/// The API rejects texts of white space only.
fn text(text: &str) -> Option<TurnBlock<'_>> {
    (!is_blank(text)).then_some(TurnBlock::Text { text })
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn call(call: &ToolCall) -> TurnBlock<'_> {
    TurnBlock::ToolUse { id: &call.id, name: &call.name, input: CallInput::of(&call.arguments) }
}

fn result(message: &ChatMessage) -> TurnBlock<'_> {
    TurnBlock::ToolResult {
        tool_use_id: message.tool_call_id.as_deref().unwrap_or_default(),
        content: &message.content,
    }
}
