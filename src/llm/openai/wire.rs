//! The bodies of the chat completions API: what is sent, and what is read of what comes.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::parameters::ChatParameters;
use crate::event::kind::{ChatMessage, Speaker, Usage};
use crate::llm::client::json::{JsonText, RequestBody};
use crate::llm::{ChatRequest, Conversation};
use crate::scenario::tool::{ToolCall, ToolOffer};

#[derive(Serialize)]
struct Ask<'a> {
    model: &'a str,
    #[serde(serialize_with = "messages")]
    messages: &'a Conversation,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "tools")]
    tools: &'a [ToolOffer],
    #[serde(flatten)]
    parameters: &'a ChatParameters<'a>,
}

fn messages<S: Serializer>(conversation: &&Conversation, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(conversation.iter().map(Said::of))
}

/// A message as it is sent; the log has a form of its own.
#[derive(Serialize)]
struct Said<'a> {
    role: Speaker,
    /// `null` beside calls where nothing is said.
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "calls")]
    tool_calls: &'a [ToolCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Said<'a> {
    fn of(message: &'a ChatMessage) -> Self {
        let silent = message.content.is_empty() && !message.tool_calls.is_empty();
        Self {
            role: message.role,
            content: (!silent).then_some(&*message.content),
            tool_calls: &message.tool_calls,
            tool_call_id: message.tool_call_id.as_deref(),
        }
    }
}

/// `{"type": "function", "function": …}`, as tools and calls of them are written.
#[derive(Serialize)]
struct Function<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: T,
}

#[derive(Serialize)]
struct CallOut<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

fn calls<S: Serializer>(calls: &&[ToolCall], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(calls.iter().map(|call| Function {
        id: Some(&*call.id),
        kind: "function",
        function: CallOut { name: &call.name, arguments: sendable(&call.arguments) },
    }))
}

fn tools<S: Serializer>(offered: &&[ToolOffer], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(offered.iter().map(|tool| Function {
        id: None,
        kind: "function",
        function: tool,
    }))
}

/// Arguments of an earlier call. llama.cpp, vLLM and Ollama refuse a whole conversation in which
/// some are no JSON object, so what a model got wrong goes back to it within one.
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

/// The body of a request, straight from what is asked.
///
/// # Errors
/// None that a request of ours can cause; serde_json's signature has one.
pub(super) fn body(
    model: &str,
    request: &ChatRequest,
    parameters: &ChatParameters<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let texts: usize = request.messages.iter().map(|message| message.content.len() + 40).sum();
    // Text that is JSON itself grows by a backslash for each quote.
    let mut body = RequestBody::with_room_for(texts + texts / 4 + model.len() + 160);
    let ask = Ask { model, messages: &request.messages, tools: &request.tools, parameters };
    serde_json::to_writer(&mut body, &ask)?;
    Ok(body.bytes())
}

/// A whole answer, or one event of a stream.
#[derive(Debug, Deserialize)]
pub(super) struct Completion<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub(super) usage: Option<Counted>,
    #[serde(borrow, default)]
    pub(super) model: Option<JsonText<'a>>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// One of the answers; we ask for one. A whole answer has a `message`, an event of a stream a
/// `delta`, and some servers put both into their events.
#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<JsonText<'a>>,
    /// OpenRouter puts the error of whom it asked here.
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// What the model says, whole or the next piece of it.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<Called<'a>>>,
}

/// A tool that the model calls, whole or a piece of it. Servers leave out any of this.
#[derive(Debug, Deserialize)]
pub(super) struct Called<'a> {
    #[serde(default)]
    index: Option<f64>,
    #[serde(borrow, default)]
    id: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    function: Option<CalledFunction<'a>>,
}

#[derive(Debug, Deserialize)]
struct CalledFunction<'a> {
    #[serde(borrow, default)]
    name: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Arguments<'a>>,
}

impl Called<'_> {
    /// Which of the reply's calls, where it is said.
    pub(super) fn index(&self) -> Option<i64> {
        self.index.map(|index| index as i64)
    }

    /// The id, where there is one.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_ref().map(|id| &*id.0).filter(|id| !id.is_empty())
    }

    /// The tool's name or a piece of it; empty where nothing is said of it.
    pub(super) fn name(&self) -> &str {
        let name = self.function.as_ref().and_then(|function| function.name.as_ref());
        name.map_or("", |name| &*name.0)
    }

    /// The arguments or a piece of them.
    pub(super) fn arguments(&self) -> &str {
        let arguments = self.function.as_ref().and_then(|function| function.arguments.as_ref());
        arguments.map_or("", |arguments| &*arguments.0)
    }
}

/// Arguments: JSON within a string, or, as some servers have it, the object itself.
#[derive(Debug)]
struct Arguments<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ArgumentsIn).map(Arguments)
    }
}

struct ArgumentsIn;

impl<'de> Visitor<'de> for ArgumentsIn {
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

/// Tokens; some servers count them in floats.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Counted {
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

impl Counted {
    /// As a fact has them; `None` where nothing was counted.
    pub(super) fn usage(self) -> Option<Usage> {
        // The conversion saturates: a negative count is none.
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
