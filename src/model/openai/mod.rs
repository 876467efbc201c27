//! Chat models behind an HTTP endpoint with OpenAI's chat completions API, streamed or not: writes
//! its requests. A call is one attempt: one request, no retry, no timeout. Dropping the future
//! cancels it, and the endpoint sees the connection close.

mod reply;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use self::reply::CompletionContent;
use super::adaptation::{OptionalParts, Parameter, ParameterSet};
use super::client::fields::{BadAnswer, read_whole};
use super::client::kept_fields::{FieldOrigin, FieldsToReturn, returned_names};
use super::client::stream::StreamedContent;
use super::client::{ApiRequest, ApiWords, Client, ModelApi};
use super::history::{HistoryRules, normalized};
use super::{ChatRequest, Failure, ReplyContract, ReplyForm};
use crate::log::event::{ChatMessage, Reply};
use crate::net::NetError;
use crate::scenario::spec::{JsonMode, Tuning};

#[cfg(test)]
pub use super::client::{ANSWER_CAP, EVENT_CAP};
pub use super::client::{Adapter, ProbeResult, TEXT_CAP};

/// A chat model at an endpoint with the chat completions API.
pub type OpenAi = Adapter<ChatCompletions>;

/// OpenAI's chat completions API.
#[derive(Debug)]
pub enum ChatCompletions {}

impl ModelApi for ChatCompletions {
    const WORDS: ApiWords = ApiWords { reply: "chat completion", marks: &["\"choices\""] };
    const PATH: &'static [&'static str] = &["chat", "completions"];
    const LOOKS_UP_BY_NAME: bool = false;

    type Content = CompletionContent;

    fn request(
        client: &Client,
        request: &ChatRequest,
        stream: bool,
    ) -> Result<ApiRequest, serde_json::Error> {
        let refused = client.refused.refused_now();
        let parameters = ChatParameters::of(&client.tuning, &request.form, stream, refused);
        let (to, refused_fields) = (client.field_origin(), client.refused.refused_fields());
        let body = self::body(to, &refused_fields, request, &parameters)?;
        let fields = returned_names(&request.messages, to, &refused_fields);
        Ok(ApiRequest { body, sent: OptionalParts { parameters: parameters.sent, fields } })
    }

    fn reply(
        client: &Client,
        request: &ChatRequest,
        sent: &OptionalParts,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Failure>> {
        let content = read_whole(body, |answer| {
            let mut content = CompletionContent::default();
            content.add(answer, &request.tools, client)?;
            let missing = |what: &str| Err(BadAnswer::Unreadable(what.to_owned()));
            match (content.has_choice, content.has_message) {
                (false, _) => missing("it has no `choices`"),
                // A filter may leave the message out.
                (true, false) if !content.has_begun() && !content.has_ended() => {
                    missing("its first choice has no `message`")
                }
                _ => Ok(content),
            }
        });
        let content = content.map_err(|bad| client.bad_answer(bad, sent, status, body))?;
        if let Some(cap) = content.exceeded_cap() {
            return Err(client.incomplete_answer(&NetError::TooLarge { cap }, None));
        }
        content.done(client, request).map_err(|why| client.bad_tool_calls(why, None))
    }
}

/// The history that servers with this API accept. The API limits ids to 40 characters, and chat
/// templates (Gemma, Mistral) want the roles to alternate.
fn history_rules(to: FieldOrigin<'_>) -> HistoryRules<'_> {
    HistoryRules {
        to,
        alternates: true,
        accepts_id: |id| (1..=40).contains(&id.len()),
        sends_as_it_came: |_, _| false,
    }
}

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
    Cow::Owned(json!({ "unreadable": arguments }).to_string())
}

/// The body of a request.
#[derive(Serialize)]
struct CompletionBody<'a> {
    model: &'a str,
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(flatten)]
    parameters: &'a ChatParameters<'a>,
}

/// The body of a request.
pub(crate) fn body(
    to: FieldOrigin<'_>,
    refused_fields: &BTreeSet<String>,
    request: &ChatRequest,
    parameters: &ChatParameters<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let history = normalized(&request.messages, &history_rules(to));
    let messages = history
        .iter()
        .map(|message| self::message(message, FieldsToReturn::of(message, to, refused_fields)));
    let tools = request.tools.iter().map(|tool| {
        let parameters = tool.strict_parameters();
        let function = json!({
            "name": tool.name, "description": tool.description, "parameters": parameters,
        });
        json!({ "type": "function", "function": function })
    });
    let (messages, tools) = (messages.collect(), tools.collect());
    serde_json::to_vec(&CompletionBody { model: to.model, messages, tools, parameters })
}

/// A message in the API's format, which differs from the log's, with the fields that go back to the
/// model.
fn message(message: &ChatMessage, kept: FieldsToReturn<'_>) -> Value {
    // A message with calls but without text has the content `null`.
    let has_text = !message.content.is_empty() || message.tool_calls.is_empty();
    let content = has_text.then_some(&*message.content);
    let mut sent = json!({ "role": message.role.word(), "content": content });
    let calls = message.tool_calls.iter().enumerate().map(|(nth, call)| {
        let arguments = sendable(&call.arguments);
        let mut function = json!({ "name": *call.name, "arguments": arguments });
        add_fields(&mut function, kept.of_function(nth));
        let mut call = json!({ "id": *call.id, "type": "function", "function": function });
        add_fields(&mut call, kept.of_call(nth));
        call
    });
    if !message.tool_calls.is_empty() {
        sent["tool_calls"] = calls.collect();
    }
    if let Some(id) = &message.tool_call_id {
        sent["tool_call_id"] = Value::from(&**id);
    }
    add_fields(&mut sent, kept.of_message());
    sent
}

fn add_fields<'a>(object: &mut Value, fields: impl Iterator<Item = (&'a str, &'a Value)>) {
    for (name, value) in fields {
        object[name] = value.clone();
    }
}

/// The names of the token limit: servers accept either, some both.
const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// The parameters of one request.
#[derive(Debug)]
pub(crate) struct ChatParameters<'a> {
    tuning: &'a Tuning,
    format: Option<ResponseFormat<'a>>,
    stream: bool,
    refused: ParameterSet,
    /// The optional parameters among them, which a retry can omit.
    pub(crate) sent: ParameterSet,
}

impl<'a> ChatParameters<'a> {
    /// The parameters for a reply of this form, without those in `refused`.
    pub(crate) fn of(
        tuning: &'a Tuning,
        form: &'a ReplyForm,
        stream: bool,
        refused: ParameterSet,
    ) -> Self {
        let format = ResponseFormat::of(form, tuning.json, refused);
        let extra = |key| tuning.has_extra(key);
        let mut sent = ParameterSet::default();
        sent.insert_if(
            tuning.temperature.is_some() || extra("temperature"),
            Parameter::Temperature,
        );
        let limited = tuning.max_tokens.is_some() || LIMITS.into_iter().any(extra);
        sent.insert_if(limited, Parameter::MaxTokens);
        let effort = tuning.reasoning_effort.is_some() || extra("reasoning_effort");
        sent.insert_if(effort, Parameter::ReasoningEffort);
        sent.insert_if(stream || extra("stream_options"), Parameter::StreamOptions);
        sent.insert_if(extra("parallel_tool_calls"), Parameter::ParallelToolCalls);
        // A format that the user has fixed is sent even if the endpoint refused it.
        if tuning.json.is_none() && !extra("response_format") {
            let by_schema = matches!(format, Some(ResponseFormat::Schema(_)));
            sent.insert_if(by_schema, Parameter::JsonSchema);
            sent.insert_if(format.is_some() && !by_schema, Parameter::JsonObject);
        }
        Self { tuning, format, stream, refused, sent: sent.without(refused) }
    }

    /// The name under which a key is sent; `None` if it is omitted.
    fn name_of(&self, key: &'a str) -> Option<&'a str> {
        let parameter = match key {
            "temperature" => Parameter::Temperature,
            "reasoning_effort" => Parameter::ReasoningEffort,
            "stream_options" => Parameter::StreamOptions,
            "parallel_tool_calls" => Parameter::ParallelToolCalls,
            "max_tokens" | "max_completion_tokens" => {
                let other = LIMITS.into_iter().find(|name| *name != key);
                return if self.refused.has(Parameter::MaxTokens) { other } else { Some(key) };
            }
            _ => return Some(key),
        };
        (!self.refused.has(parameter)).then_some(key)
    }
}

impl Serialize for ChatParameters<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let tuning = self.tuning;
        let mut map = to.serialize_map(None)?;
        macro_rules! own {
            ($key:expr, $value:expr) => {
                if let (Some(value), false) = ($value, tuning.has_extra($key)) {
                    if let Some(name) = self.name_of($key) {
                        map.serialize_entry(name, &value)?;
                    }
                }
            };
        }
        own!("temperature", tuning.temperature);
        let limited = LIMITS.into_iter().any(|name| tuning.has_extra(name));
        own!("max_tokens", tuning.max_tokens.filter(|_| !limited));
        own!("reasoning_effort", tuning.reasoning_effort.as_deref());
        own!("response_format", self.format.as_ref());
        own!("stream", self.stream.then_some(true));
        own!("stream_options", self.stream.then_some(StreamOptions { include_usage: true }));
        for (key, value) in tuning.extra() {
            if let Some(name) = self.name_of(key) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// How JSON is requested.
#[derive(Debug)]
enum ResponseFormat<'a> {
    Object,
    Schema(&'a ReplyContract),
}

impl<'a> ResponseFormat<'a> {
    /// The strictest format that the form has, the user allows, and the endpoint has not refused.
    fn of(form: &'a ReplyForm, fixed: Option<JsonMode>, refused: ParameterSet) -> Option<Self> {
        let takes = |parameter| fixed.is_some() || !refused.has(parameter);
        let highest = fixed.unwrap_or(JsonMode::JsonSchema);
        match form.contract() {
            Some(contract) if highest >= JsonMode::JsonSchema && takes(Parameter::JsonSchema) => {
                Some(Self::Schema(contract))
            }
            _ => {
                (form.is_json() && highest >= JsonMode::JsonObject && takes(Parameter::JsonObject))
                    .then_some(Self::Object)
            }
        }
    }
}

/// The format of a request for any object, written once.
static OBJECT: LazyLock<Box<RawValue>> =
    LazyLock::new(|| written(&json!({ "type": "json_object" })));

/// The format of a request for an object of this contract.
fn format_of(contract: &ReplyContract) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Format<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        json_schema: Schema<'a>,
    }
    #[derive(Serialize)]
    struct Schema<'a> {
        name: &'a str,
        strict: bool,
        schema: &'a RawValue,
    }
    let (name, strict, schema) = (contract.name, contract.strict, contract.schema());
    written(&Format { kind: "json_schema", json_schema: Schema { name, strict, schema } })
}

fn written(format: &impl Serialize) -> Box<RawValue> {
    to_raw_value(format).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl Serialize for ResponseFormat<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Object => OBJECT.serialize(to),
            Self::Schema(contract) => contract.chat_format(|| format_of(contract)).serialize(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::event::MessageRole;

    #[test]
    fn roles_match_names_in_log() {
        for role in
            [MessageRole::System, MessageRole::User, MessageRole::Assistant, MessageRole::Tool]
        {
            assert_eq!(json!(role), json!(role.word()));
        }
    }
}
