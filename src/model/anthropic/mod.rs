//! Chat models behind an endpoint with Anthropic's Messages API, streamed or not: writes its
//! requests. Instructions are separate; turns of user and model alternate, each a list of blocks.
//! Bounds on numbers, texts and lists are removed from a contract's schema, because the API rejects
//! them; policy still judges every reply.

mod reply;

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use self::reply::MessageContent;
use super::adaptation::{OptionalParts, Parameter, ParameterSet};
use super::client::fields::{BadAnswer, read_whole};
use super::client::kept_fields::{FieldOrigin, content_to_return};
use super::client::stream::StreamedContent;
use super::client::{ApiRequest, ApiWords, Client, ModelApi};
use super::history::{HistoryRules, has_plain_characters, normalized, plain_name};
use super::{ChatRequest, Conversation, Failure, ReplyForm};
use crate::log::event::{ChatMessage, MessageRole, Reply};
use crate::net::NetError;
use crate::scenario::spec::tool::ToolCall;
use crate::scenario::spec::{JsonMode, Tuning};

#[cfg(test)]
pub use self::reply::BLOCKS_CAP;
pub use super::client::Adapter;
#[cfg(test)]
pub use super::client::{EVENT_CAP, ProbeResult, TEXT_CAP};

/// A chat model at an endpoint with the Messages API.
pub type Anthropic = Adapter<Messages>;

/// Anthropic's Messages API.
#[derive(Debug)]
pub enum Messages {}

impl ModelApi for Messages {
    const WORDS: ApiWords = ApiWords { reply: "message", marks: &["\"content", "\"message_"] };
    const PATH: &'static [&'static str] = &["messages"];
    const LOOKS_UP_BY_NAME: bool = true;

    type Content = MessageContent;

    fn request(
        client: &Client,
        request: &ChatRequest,
        stream: bool,
    ) -> Result<ApiRequest, serde_json::Error> {
        let refused = client.refused.refused_now();
        let parameters = MessageParameters::of(&client.tuning, &request.form, stream, refused);
        let body = self::body(client.field_origin(), request, &parameters)?;
        Ok(ApiRequest { body, sent: parameters.sent.into() })
    }

    fn reply(
        client: &Client,
        request: &ChatRequest,
        _: &OptionalParts,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>> {
        let content = read_whole(body, |answer| {
            if answer.raw("content").is_none_or(|content| content.get() == "null") {
                return Err(BadAnswer::Unreadable("it has no `content`".to_owned()));
            }
            let mut content = MessageContent::default();
            content.add_message(answer, client)?;
            Ok(content)
        });
        let nothing = OptionalParts::default();
        let content = content.map_err(|bad| client.bad_answer(bad, &nothing, status, body))?;
        if let Some(cap) = content.blocks.beyond() {
            return Err(client.incomplete_answer(&NetError::TooLarge { cap }, None));
        }
        content.done(client, request).map_err(|why| client.bad_tool_calls(why, None))
    }
}

/// The body of a request.
#[derive(Serialize)]
struct MessagesBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<MessageTurn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(flatten)]
    parameters: &'a MessageParameters<'a>,
}

/// The body of a request.
pub(crate) fn body(
    to: FieldOrigin<'_>,
    request: &ChatRequest,
    parameters: &MessageParameters<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let history = normalized(&request.messages, &history_rules(to));
    let mut system: Vec<Value> = instructions(&history).map(text).collect();
    let tools = request.tools.iter().map(|tool| {
        let mut offered = json!({ "name": *tool.name });
        if !tool.description.is_empty() {
            offered["description"] = json!(*tool.description);
        }
        offered["input_schema"] = tool.strict_parameters();
        offered
    });
    let mut tools: Vec<Value> = tools.collect();
    // The next request repeats both: the provider caches everything up to the marks.
    for last in [system.last_mut(), tools.last_mut()].into_iter().flatten() {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
    let messages = turns(&history, to);
    serde_json::to_vec(&MessagesBody { model: to.model, system, messages, tools, parameters })
}

/// The default token limit of a reply: the API requires one.
pub const DEFAULT_MAX_TOKENS: u32 = crate::scenario::spec::REPLY_TOKENS;

/// The parameters of one request.
#[derive(Debug)]
pub(crate) struct MessageParameters<'a> {
    tuning: &'a Tuning,
    temperature: Option<f64>,
    output: OutputConfig<'a>,
    stream: bool,
    refused: ParameterSet,
    /// The optional parameters among them, which a retry can omit.
    pub(crate) sent: ParameterSet,
}

/// The requested effort and format of the reply.
#[derive(Debug, Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
}

#[derive(Debug, Serialize)]
struct OutputFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: &'a RawValue,
}

impl<'a> MessageParameters<'a> {
    /// The parameters for a reply of this form, without those in `refused`.
    pub(crate) fn of(
        tuning: &'a Tuning,
        form: &'a ReplyForm,
        stream: bool,
        refused: ParameterSet,
    ) -> Self {
        let temperature = tuning.temperature.filter(|_| !refused.has(Parameter::Temperature));
        let effort = tuning.reasoning_effort.as_deref();
        let effort = effort.filter(|_| !refused.has(Parameter::ReasoningEffort));
        let by_schema = match tuning.json {
            None => !refused.has(Parameter::OutputConfig),
            Some(rung) => rung == JsonMode::JsonSchema,
        };
        // The API enforces every schema strictly, so a schema that is not strict cannot be sent.
        let contract = form.contract().filter(|contract| by_schema && contract.strict);
        let format = contract.map(|contract| OutputFormat {
            kind: "json_schema",
            schema: contract.schema_without_bounds(without_bounds),
        });
        let mut sent = ParameterSet::default();
        let warm = tuning.has_extra("temperature") && !refused.has(Parameter::Temperature);
        sent.insert_if(temperature.is_some() || warm, Parameter::Temperature);
        // A value that the user has fixed is sent even if the endpoint refused it.
        if !tuning.has_extra("output_config") {
            sent.insert_if(effort.is_some(), Parameter::ReasoningEffort);
            sent.insert_if(format.is_some() && tuning.json.is_none(), Parameter::OutputConfig);
        }
        Self { tuning, temperature, output: OutputConfig { effort, format }, stream, refused, sent }
    }
}

impl Serialize for MessageParameters<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let tuning = self.tuning;
        let mut map = to.serialize_map(None)?;
        if !tuning.has_extra("max_tokens") {
            let limit = tuning.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
            map.serialize_entry("max_tokens", &limit)?;
        }
        if let (Some(temperature), false) = (self.temperature, tuning.has_extra("temperature")) {
            map.serialize_entry("temperature", &temperature)?;
        }
        let output = &self.output;
        let has_output = output.effort.is_some() || output.format.is_some();
        if has_output && !tuning.has_extra("output_config") {
            map.serialize_entry("output_config", output)?;
        }
        if self.stream {
            map.serialize_entry("stream", &true)?;
        }
        for (key, value) in tuning.extra() {
            if key != "temperature" || !self.refused.has(Parameter::Temperature) {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// The keywords that the API rejects.
const REFUSED: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Fields of a schema that map names to schemas.
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];

/// The schema without bounds; `None` if it has none and can be sent as it is.
pub(super) fn without_bounds(schema: &RawValue) -> Option<Box<RawValue>> {
    let read: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    if has_no_bounds(&read) {
        return None;
    }
    to_raw_value(&unbounded(&read)).ok()
}

fn has_no_bounds(schema: &Value) -> bool {
    match schema {
        Value::Array(schemas) => schemas.iter().all(has_no_bounds),
        Value::Object(fields) => fields.iter().all(|(name, value)| match value {
            Value::Object(named) if NAMED.contains(&&**name) => named.values().all(has_no_bounds),
            _ => is_schema_value(name) || (!REFUSED.contains(&&**name) && has_no_bounds(value)),
        }),
        _ => true,
    }
}

fn unbounded(schema: &Value) -> Value {
    match schema {
        Value::Array(schemas) => schemas.iter().map(unbounded).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !REFUSED.contains(&&***name));
            let kept = kept.map(|(name, value)| {
                let value = match value {
                    Value::Object(named) if NAMED.contains(&&**name) => {
                        let each = named.iter();
                        let each = each.map(|(name, one)| (name.clone(), unbounded(one)));
                        Value::Object(each.collect::<Map<_, _>>())
                    }
                    _ if is_schema_value(name) => value.clone(),
                    _ => unbounded(value),
                };
                (name.clone(), value)
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

/// Whether the value of this field is data, not a schema.
fn is_schema_value(name: &str) -> bool {
    matches!(name, "enum" | "const" | "default" | "examples")
}

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
fn instructions(conversation: &Conversation) -> impl Iterator<Item = &str> {
    let system = conversation.iter().filter(|message| message.role == MessageRole::System);
    system.map(|message| &*message.content)
}

/// The role of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum TurnRole {
    User,
    Assistant,
}

/// One turn.
#[derive(Debug, Serialize)]
pub(crate) struct MessageTurn<'a> {
    role: TurnRole,
    content: Vec<TurnBlock<'a>>,
}

/// One block of a turn.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
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
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
    },
    /// A block as the model sent it, but for a tool's name that the API refuses.
    #[serde(untagged)]
    Kept(Cow<'a, Value>),
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
pub(crate) fn turns<'a>(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_bounds_and_keeps_namesake_fields() {
        let plain = json!({ "type": "object", "properties": { "minimum": { "type": "string" } } });
        let plain = to_raw_value(&plain).expect("JSON");
        assert!(without_bounds(&plain).is_none());
        let bounded = json!({
            "type": "object",
            "properties": {
                "maximum": { "type": "integer", "minimum": 0, "maximum": 10 },
                "list": { "type": "array", "maxItems": 3, "items": { "type": "string", "maxLength": 9 } },
            },
            "anyOf": [{ "const": { "minimum": 1 } }],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "maximum": { "type": "integer" },
                "list": { "type": "array", "items": { "type": "string" } },
            },
            "anyOf": [{ "const": { "minimum": 1 } }],
        });
        let sent = without_bounds(&to_raw_value(&bounded).expect("JSON")).expect("another one");
        assert_eq!(serde_json::from_str::<Value>(sent.get()).expect("JSON"), expected);
    }
}
