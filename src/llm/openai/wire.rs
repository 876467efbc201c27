//! The bodies of the chat completions API: writes requests, parses answers.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::parameters::ChatParameters;
use crate::event::kind::{ChatMessage, Usage};
use crate::llm::ChatRequest;
use crate::llm::client::json::{JsonText, RequestBody};
use crate::llm::history::{HistoryRules, normalized};

/// The history that servers with this API accept. The API limits ids to 40 characters, and chat
/// templates (Gemma, Mistral) want the roles to alternate.
const HISTORY: HistoryRules = HistoryRules {
    alternates: true,
    accepts_id: |id| (1..=40).contains(&id.len()),
    sends_as_it_came: |_| false,
};

/// The arguments of an earlier call. llama.cpp, vLLM and Ollama reject a whole conversation if some
/// arguments are not a JSON object, so invalid ones are wrapped in an object.
fn sendable(arguments: &str) -> Cow<'_, str> {
    let begins = arguments.trim_start();
    if begins.is_empty() {
        return Cow::Borrowed("{}");
    }
    if begins.starts_with('{') && serde_json::from_str::<IgnoredAny>(begins).is_ok() {
        return Cow::Borrowed(arguments);
    }
    Cow::Owned(serde_json::json!({ "unreadable": arguments }).to_string())
}

/// The body of a request.
///
/// # Errors
/// Our own requests cause none; the signature is serde_json's.
pub(super) fn body(
    model: &str,
    request: &ChatRequest,
    parameters: &ChatParameters<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let texts: usize = request.messages.iter().map(|message| message.content.len() + 40).sum();
    let schema = request.form.contract().map_or(0, |contract| contract.schema().get().len() + 100);
    // Texts that are JSON grow by one backslash for each quote.
    let room = texts + texts / 4 + schema + model.len() + 160;
    let mut body = RequestBody::with_room_for(room);
    body.raw(r#"{"model":"#);
    body.text(model);
    body.raw(r#","messages":["#);
    let history = normalized(&request.messages, &HISTORY);
    for (nth, message) in history.iter().enumerate() {
        if nth > 0 {
            body.raw(",");
        }
        write_message(&mut body, message);
    }
    body.raw("]");
    for (nth, tool) in request.tools.iter().enumerate() {
        body.raw(if nth == 0 { r#","tools":["# } else { "," });
        body.raw(r#"{"type":"function","function":"#);
        body.value(tool)?;
        body.raw("}");
    }
    if !request.tools.is_empty() {
        body.raw("]");
    }
    body.close_object_with(parameters)?;
    Ok(body.bytes())
}

/// Writes a message in the API's format, which differs from the log's.
fn write_message(body: &mut RequestBody, message: &ChatMessage) {
    body.raw(r#"{"role":""#);
    body.raw(message.role.word());
    // A message with calls but without text has the content `null`.
    if message.content.is_empty() && !message.tool_calls.is_empty() {
        body.raw(r#"","content":null"#);
    } else {
        body.raw(r#"","content":"#);
        body.text(&message.content);
    }
    for (nth, call) in message.tool_calls.iter().enumerate() {
        body.raw(if nth == 0 { r#","tool_calls":["# } else { "," });
        body.raw(r#"{"id":"#);
        body.text(&call.id);
        body.raw(r#","type":"function","function":{"name":"#);
        body.text(&call.name);
        body.raw(r#","arguments":"#);
        body.text(&sendable(&call.arguments));
        body.raw("}}");
    }
    if !message.tool_calls.is_empty() {
        body.raw("]");
    }
    if let Some(id) = &message.tool_call_id {
        body.raw(r#","tool_call_id":"#);
        body.text(id);
    }
    body.raw("}");
}

/// An answer, or one event of a stream.
#[derive(Debug, Deserialize)]
pub(super) struct Completion<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<CompletionChoice<'a>>>,
    #[serde(default)]
    pub(super) usage: Option<CompletionUsage>,
    #[serde(borrow, default)]
    pub(super) model: Option<JsonText<'a>>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// One of the choices; we request one. An answer has a `message`, a stream event a `delta`, and
/// some servers send both in their events.
#[derive(Debug, Deserialize)]
pub(super) struct CompletionChoice<'a> {
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<JsonText<'a>>,
    /// The error of the upstream provider, as OpenRouter reports it.
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// The text of a reply, or the next part of it.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<ToolCallPart<'a>>>,
}

/// A tool call, or a part of it. Servers omit any of these fields.
#[derive(Debug, Deserialize)]
pub(super) struct ToolCallPart<'a> {
    #[serde(default)]
    index: Option<f64>,
    #[serde(borrow, default)]
    id: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    function: Option<FunctionPart<'a>>,
}

#[derive(Debug, Deserialize)]
struct FunctionPart<'a> {
    #[serde(borrow, default)]
    name: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    arguments: Option<CallArguments<'a>>,
}

impl ToolCallPart<'_> {
    /// The index of the call in the reply, if given.
    pub(super) fn index(&self) -> Option<i64> {
        self.index.map(|index| index as i64)
    }

    /// The id; `None` if it is missing or empty.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_ref().map(|id| &*id.0).filter(|id| !id.is_empty())
    }

    /// The tool's name or a part of it; empty if missing.
    pub(super) fn name(&self) -> &str {
        let name = self.function.as_ref().and_then(|function| function.name.as_ref());
        name.map_or("", |name| &*name.0)
    }

    /// The arguments or a part of them.
    pub(super) fn arguments(&self) -> &str {
        let arguments = self.function.as_ref().and_then(|function| function.arguments.as_ref());
        arguments.map_or("", |arguments| &*arguments.0)
    }
}

/// Arguments: JSON in a string or, from some servers, the object itself.
#[derive(Debug)]
struct CallArguments<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for CallArguments<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(CallArgumentsVisitor).map(CallArguments)
    }
}

struct CallArgumentsVisitor;

impl<'de> Visitor<'de> for CallArgumentsVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an object")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let object = Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Cow::Owned(object.to_string()))
    }
}

/// Token counts; some servers send them as floats.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct CompletionUsage {
    #[serde(default)]
    prompt_tokens: Option<f64>,
    #[serde(default)]
    completion_tokens: Option<f64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<f64>,
}

impl CompletionUsage {
    /// The usage for events; `None` without any count.
    pub(super) fn usage(self) -> Option<Usage> {
        // The conversion saturates: a negative count becomes 0.
        let tokens = |count: Option<f64>| count.unwrap_or(0.0) as u64;
        (self.prompt_tokens.is_some() || self.completion_tokens.is_some()).then(|| Usage {
            cached_tokens: tokens(self.prompt_tokens_details.and_then(|it| it.cached_tokens)),
            reasoning_tokens: tokens(
                self.completion_tokens_details.and_then(|it| it.reasoning_tokens),
            ),
            ..Usage::new(tokens(self.prompt_tokens), tokens(self.completion_tokens))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::event::kind::{MessageRole, ToolCall};
    use crate::llm::client::arbitrary::request;

    /// The same body, built as a tree and written by serde_json.
    fn tree(model: &str, request: &ChatRequest, parameters: &ChatParameters<'_>) -> String {
        let call = |call: &ToolCall| {
            let arguments = sendable(&call.arguments);
            let function = json!({ "name": *call.name, "arguments": arguments });
            json!({ "id": *call.id, "type": "function", "function": function })
        };
        let message = |message: &ChatMessage| {
            let silent = message.content.is_empty() && !message.tool_calls.is_empty();
            let content = if silent { Value::Null } else { Value::from(&*message.content) };
            let mut said = json!({ "role": message.role, "content": content });
            if !message.tool_calls.is_empty() {
                said["tool_calls"] = message.tool_calls.iter().map(call).collect();
            }
            if let Some(id) = &message.tool_call_id {
                said["tool_call_id"] = Value::from(&**id);
            }
            said
        };
        let history = normalized(&request.messages, &HISTORY);
        let messages: Vec<Value> = history.iter().map(message).collect();
        let mut body = json!({ "model": model, "messages": messages });
        if !request.tools.is_empty() {
            let tool = |tool| json!({ "type": "function", "function": tool });
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        let parameters = serde_json::to_value(parameters).expect("JSON");
        for (name, value) in parameters.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body.to_string()
    }

    #[test]
    fn roles_are_called_what_the_log_calls_them() {
        for role in
            [MessageRole::System, MessageRole::User, MessageRole::Assistant, MessageRole::Tool]
        {
            assert_eq!(json!(role), json!(role.word()));
        }
    }

    proptest! {
        #[test]
        fn a_body_is_what_serde_json_writes_of_its_tree(
            (request, tuning) in request(),
            model in "[a-z\"\\\\]{0,9}",
            stream in any::<bool>(),
        ) {
            let parameters =
                ChatParameters::of(&tuning, &request.form, stream, Default::default());
            let body = body(&model, &request, &parameters).expect("JSON");
            let expected = tree(&model, &request, &parameters);
            prop_assert_eq!(String::from_utf8(body).expect("UTF-8"), expected);
        }
    }
}
