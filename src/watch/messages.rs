//! The messages of a model call, in the forms of the usual frameworks and conventions: one reader for OpenAI's Chat
//! completions and Responses, Anthropic's Messages, Google's contents, LangChain's objects, the parts of OpenTelemetry's
//! conventions and those of the AI SDK.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::texts;
use crate::log::event::{ChatMessage, MessageRole};
use crate::pattern::observed::ReportedCall;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

type Fields = Map<String, Value>;

/// Maximum depth of values that are read.
const MAX_DEPTH: u8 = 12;

/// Where the instructions of a request are.
const INSTRUCTIONS: [&str; 6] = [
    "/system",
    "/system_instruction",
    "/systemInstruction",
    "/config/system_instruction",
    "/config/systemInstruction",
    "/instructions",
];

/// Where the messages of a request or a response are.
const INSIDE: [&str; 9] = [
    "messages",
    "prompts",
    "contents",
    "input",
    "generations",
    "choices",
    "candidates",
    "output",
    "response",
];

/// The messages of a prompt or a reply. `role`: for messages without a role.
pub(super) fn messages(value: &Value, role: MessageRole) -> Vec<ChatMessage> {
    let mut reader = Reader { messages: Vec::new(), is_strict: false };
    reader.read(value, role, 0);
    reader.messages
}

/// The messages of any value, such as the state of a graph. Only objects with a role are messages: the arguments of a
/// tool may have a field `content`, too.
pub(super) fn said(value: &Value) -> Vec<ChatMessage> {
    let mut reader = Reader { messages: Vec::new(), is_strict: true };
    reader.read(value, MessageRole::Assistant, 0);
    reader.messages
}

/// The text of a message; if it has none, its tool calls.
pub(super) fn text_of(message: &ChatMessage) -> String {
    if !message.content.is_empty() {
        return message.content.to_string();
    }
    let calls = message.tool_calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
    calls.collect::<Vec<_>>().join("\n")
}

/// The reply in a value: its last message of the model.
pub(super) fn reply(value: &Value) -> Option<ChatMessage> {
    let mut messages = messages(value, MessageRole::Assistant);
    messages.retain(|it| it.role == MessageRole::Assistant);
    let mut last = messages.pop()?;
    // The Responses API has separate items for the text and for each call.
    if let Some(before) =
        messages.pop().filter(|it| it.tool_calls.is_empty() && last.content.is_empty())
    {
        last.content = before.content;
    }
    Some(last)
}

/// The tools that are offered to a model.
pub(super) fn tools(value: &Value) -> Vec<ToolOffer> {
    let mut tools = Vec::new();
    add_tools(value, &mut tools, 0);
    tools
}

/// The last message of the prompt and the reply, as texts: the input and the output of the span.
pub(super) fn texts_of(call: Option<&ReportedCall>) -> [Option<Arc<str>>; 2] {
    let text = |message: &ChatMessage| texts::text(&text_of(message));
    let given = call.and_then(|call| call.messages.last()).map(text);
    [given, call.and_then(|call| call.reply.as_ref()).map(text)]
}

/// The call of a request and its response, in the format of a provider.
pub(super) fn call_of(request: Option<&Value>, response: Option<&Value>) -> ReportedCall {
    let offered = request.and_then(|it| it.get("tools").or_else(|| it.get("config")?.get("tools")));
    ReportedCall {
        messages: request.map(|it| messages(it, MessageRole::User)).unwrap_or_default(),
        tools: offered.map(tools).unwrap_or_default(),
        reply: response.and_then(reply),
        finish: None,
    }
}

fn add_tools(value: &Value, to: &mut Vec<ToolOffer>, depth: u8) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_tools(item, to, depth + 1)),
        Value::String(text) => {
            texts::json(text).iter().for_each(|value| add_tools(value, to, depth + 1));
        }
        Value::Object(fields) => {
            let inner = ["function", "tool", "json_schema", "kwargs"]
                .iter()
                .chain(&["functionDeclarations", "function_declarations"])
                .find_map(|name| fields.get(*name).filter(|it| !it.is_boolean() && !it.is_null()));
            let Some(name) = fields.get("name").and_then(Value::as_str) else {
                return inner.iter().for_each(|inner| add_tools(inner, to, depth + 1));
            };
            let description = fields.get("description").and_then(Value::as_str).unwrap_or_default();
            let schema = ["parameters", "input_schema", "inputSchema", "parametersJsonSchema"]
                .iter()
                .find_map(|name| fields.get(*name));
            let parsed = schema.and_then(|it| it.as_str().and_then(texts::json));
            let schema = parsed.as_ref().or(schema).filter(|it| it.is_object());
            to.push(ToolOffer {
                description: texts::text(description),
                parameters: schema.map_or_else(
                    || ToolOffer::bare(name).parameters,
                    |schema| {
                        texts::json(&texts::text(&schema.to_string()))
                            .map_or_else(|| ToolOffer::bare(name).parameters, Arc::new)
                    },
                ),
                name: texts::name(name),
            });
        }
        _ => {}
    }
}

/// The parts of the content of a message.
#[derive(Default)]
struct Parts {
    texts: Vec<String>,
    calls: Vec<ToolCall>,
}

struct Reader {
    messages: Vec<ChatMessage>,
    /// Whether only objects with a role are messages.
    is_strict: bool,
}

impl Reader {
    fn read(&mut self, value: &Value, role: MessageRole, depth: u8) {
        match value {
            Value::String(text) if !text.is_empty() && !self.is_strict => {
                self.messages.push(ChatMessage::new(role, texts::text(text)));
            }
            Value::Array(items) if depth < MAX_DEPTH => {
                items.iter().for_each(|item| self.read(item, role, depth + 1));
            }
            Value::Object(fields) if depth < MAX_DEPTH => {
                self.read_object(value, fields, role, depth + 1);
            }
            _ => {}
        }
    }

    fn read_object(&mut self, value: &Value, fields: &Fields, role: MessageRole, depth: u8) {
        let get = |name: &str| fields.get(name).filter(|it| !it.is_null());
        let kind = get("type").and_then(Value::as_str).unwrap_or_default();
        let of_class = get("id").and_then(|id| id.as_array()?.last()?.as_str());
        let own = role_of(get("role").and_then(Value::as_str).or(of_class).unwrap_or(kind));
        let role = own.unwrap_or(role);
        // LangChain wraps a message in `kwargs` or `data`, choices and generations in `message`.
        let wrapped = ["kwargs", "message", "data"].iter().find_map(|name| get(name));
        if let Some(inner) = wrapped.filter(|inner| inner.is_object()) {
            return self.read(inner, role, depth);
        }
        if is_call(fields, kind) {
            return self.add_call(call(value));
        }
        if let Some((id, result)) = result(fields, kind) {
            return self.add_result(id, result, role, depth);
        }
        if is_thought(kind) {
            return;
        }
        let is_body = own.is_none() && INSIDE.iter().any(|name| get(name).is_some());
        let has_text = ["content", "parts", "contents", "text", "tool_calls", "toolCalls"]
            .iter()
            .any(|name| get(name).is_some());
        if has_text && !is_body && (own.is_some() || !self.is_strict) {
            return self.add_message(fields, role, depth);
        }
        if !self.is_strict {
            let instructions = INSTRUCTIONS.iter().find_map(|path| value.pointer(path));
            instructions.iter().for_each(|it| self.read(it, MessageRole::System, depth));
        }
        INSIDE.iter().filter_map(|name| get(name)).for_each(|inner| self.read(inner, role, depth));
    }

    fn add_message(&mut self, fields: &Fields, role: MessageRole, depth: u8) {
        let get = |name: &str| fields.get(name).filter(|it| !it.is_null());
        let mut parts = Parts::default();
        let content = ["content", "parts", "contents", "text"]
            .iter()
            .filter_map(|name| get(name))
            .find(|it| !it.as_array().is_some_and(Vec::is_empty) && it.as_str() != Some(""));
        let id = ["tool_call_id", "toolCallId"].iter().find_map(|name| get(name)?.as_str());
        if let Some(content) = content {
            self.add_parts(content, role, &mut parts, depth + 1);
        }
        let listed = get("tool_calls").or_else(|| get("additional_kwargs")?.get("tool_calls"));
        let listed = listed.or_else(|| get("toolCalls"));
        let parsed = listed.and_then(|it| texts::json(it.as_str()?));
        for listed in parsed.as_ref().or(listed).and_then(Value::as_array).into_iter().flatten() {
            let call = call(listed);
            // With Anthropic's models, LangChain has the calls in the content, too.
            if call.id.is_empty() || parts.calls.iter().all(|known| known.id != call.id) {
                parts.calls.push(call);
            }
        }
        if parts.texts.is_empty() && parts.calls.is_empty() && content.is_some() {
            // It has only results of tools, which were added as messages, or only thoughts.
            return;
        }
        self.messages.push(ChatMessage {
            tool_call_id: id.filter(|_| role == MessageRole::Tool).map(texts::name),
            tool_calls: parts.calls.into(),
            ..ChatMessage::new(role, texts::text(&parts.texts.join("\n")))
        });
    }

    /// Adds the texts and the tool calls of a content. Results of tools become messages of their own.
    fn add_parts(&mut self, content: &Value, role: MessageRole, to: &mut Parts, depth: u8) {
        match content {
            Value::String(text) => match parts_in(text).filter(|_| depth < MAX_DEPTH) {
                Some(parts) => self.add_parts(&parts, role, to, depth + 1),
                None if text.is_empty() => {}
                None => to.texts.push(text.clone()),
            },
            Value::Array(parts) if depth < MAX_DEPTH => {
                parts.iter().for_each(|part| self.add_parts(part, role, to, depth + 1));
            }
            Value::Object(fields) if depth < MAX_DEPTH => {
                self.add_part(content, fields, role, to, depth);
            }
            _ => {}
        }
    }

    fn add_part(
        &mut self,
        part: &Value,
        fields: &Fields,
        role: MessageRole,
        to: &mut Parts,
        depth: u8,
    ) {
        let first = |names: &[&str]| {
            names.iter().find_map(|name| fields.get(*name)).filter(|it| !it.is_null())
        };
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        if is_thought(kind) {
            return;
        }
        if is_call(fields, kind) {
            to.calls.push(call(part));
        } else if let Some((id, value)) = result(fields, kind) {
            self.add_result(id, value, role, depth);
        } else if let Some(inner) = first(&["text", "content", "parts", "message_content", "value"])
        {
            self.add_parts(inner, role, to, depth + 1);
        } else if let Some(inner) =
            first(&["functionCall", "function_call", "tool_call", "toolUse"])
        {
            to.calls.push(call(inner));
        } else if !kind.is_empty() {
            to.texts.push(format!("[{kind}]"));
        } else if let Some(name) = fields.keys().find(|name| *name != "thoughtSignature") {
            to.texts.push(format!("[{name}]"));
        }
    }

    /// Adds a tool call that is not inside a message (Responses API) to the previous message of the model.
    fn add_call(&mut self, call: ToolCall) {
        match self.messages.last_mut().filter(|it| it.role == MessageRole::Assistant) {
            Some(last) => {
                last.tool_calls = last.tool_calls.iter().cloned().chain([call]).collect();
            }
            None => self.messages.push(ChatMessage::assistant("", [call].into())),
        }
    }

    fn add_result(&mut self, id: Option<&str>, value: &Value, role: MessageRole, depth: u8) {
        let mut parts = Parts::default();
        match value {
            Value::Array(_) | Value::String(_) => {
                self.add_parts(value, role, &mut parts, depth + 1)
            }
            other => parts.texts.push(other.to_string()),
        }
        self.messages.push(ChatMessage {
            tool_call_id: id.map(texts::name),
            ..ChatMessage::new(MessageRole::Tool, texts::text(&parts.texts.join("\n")))
        });
    }
}

fn role_of(word: &str) -> Option<MessageRole> {
    Some(match word.to_ascii_lowercase().trim_end_matches("chunk") {
        "system" | "developer" | "systemmessage" => MessageRole::System,
        "user" | "human" | "humanmessage" => MessageRole::User,
        "assistant" | "ai" | "model" | "aimessage" => MessageRole::Assistant,
        "tool" | "function" | "toolmessage" => MessageRole::Tool,
        _ => return None,
    })
}

/// The parts of a content that is a text with JSON. Each must have a known type, so that other JSON stays a text.
fn parts_in(text: &str) -> Option<Value> {
    let parts = texts::json(text).filter(|_| text.starts_with('['))?;
    let is_part = |part: &Value| {
        let kind = part.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| PARTS.contains(&kind))
            || ["text", "toolUse", "toolResult"].iter().any(|name| {
                part.as_object().is_some_and(|it| it.len() == 1 && it.contains_key(*name))
            })
    };
    let items = parts.as_array().filter(|items| !items.is_empty())?;
    items.iter().all(is_part).then_some(parts)
}

/// The known types of parts.
const PARTS: [&str; 12] = [
    "text",
    "input_text",
    "output_text",
    "image",
    "image_url",
    "input_image",
    "tool_use",
    "tool_result",
    "tool-call",
    "tool-result",
    "thinking",
    "reasoning",
];

/// Whether a part is the reasoning of a model, which is left out.
fn is_thought(kind: &str) -> bool {
    matches!(kind, "reasoning" | "thinking" | "redacted_thinking")
}

/// Whether an object is a tool call.
fn is_call(fields: &Fields, kind: &str) -> bool {
    matches!(kind, "function_call" | "tool_use" | "tool_call" | "tool-call" | "server_tool_use")
        || kind == "function"
            && fields.get("function").is_some_and(|it| it.get("arguments").is_some())
}

/// The result of a tool in an object, with the id of its call.
fn result<'v>(fields: &'v Fields, kind: &str) -> Option<(Option<&'v str>, &'v Value)> {
    let get =
        |names: &[&str]| names.iter().find_map(|name| fields.get(*name)).filter(|it| !it.is_null());
    let inner = get(&["functionResponse", "function_response", "toolResult"]);
    if let Some(inner) = inner {
        let first = |names: [&str; 3]| names.into_iter().find_map(|name| inner.get(name));
        let id = first(["id", "toolUseId", "name"]).and_then(Value::as_str);
        return Some((id, first(["response", "content", "result"]).unwrap_or(inner)));
    }
    let known = [
        "function_call_output",
        "tool_result",
        "tool_call_response",
        "tool-result",
        "custom_tool_call_output",
    ];
    if !known.contains(&kind) {
        return None;
    }
    let id = get(&["call_id", "tool_use_id", "toolCallId", "tool_call_id", "id"])
        .and_then(Value::as_str);
    let value = get(&["output", "response", "result", "content"]).unwrap_or(&Value::Null);
    // The AI SDK wraps it: `{"type": "text", "value": …}`.
    let wrapped = value.get("value").filter(|_| kind == "tool-result");
    Some((id, wrapped.unwrap_or(value)))
}

/// A tool call in any of the formats.
fn call(value: &Value) -> ToolCall {
    let value = value.get("tool_call").unwrap_or(value);
    let function = value.get("function").filter(|it| it.is_object()).unwrap_or(value);
    let text = |of: &Value, names: &[&str]| {
        names.iter().find_map(|name| of.get(*name)?.as_str()).map(texts::name).unwrap_or_default()
    };
    let arguments = ["arguments", "args", "input"].iter().find_map(|name| function.get(*name));
    let arguments = match arguments {
        Some(Value::String(text)) => texts::text(text),
        Some(Value::Null) | None => "{}".into(),
        Some(other) => texts::text(&other.to_string()),
    };
    ToolCall {
        id: text(value, &["call_id", "toolCallId", "toolUseId", "id"]),
        name: text(function, &["name", "toolName"]),
        arguments,
    }
}
