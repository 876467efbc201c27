//! The bodies of the Messages API: what is sent, and what is read of what comes.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::conversation::{MessageTurn, instructions, turns};
use super::parameters::MessageParameters;
use crate::event::kind::Usage;
use crate::llm::ChatRequest;
use crate::llm::client::Client;
use crate::llm::client::json::{JsonText, RequestBody};
use crate::scenario::tool::ToolOffer;

#[derive(Serialize)]
struct MessageRequest<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Instruction<'a>>,
    messages: Vec<MessageTurn<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "tools")]
    tools: &'a [ToolOffer],
    #[serde(flatten)]
    parameters: &'a MessageParameters<'a>,
}

/// What is the same in the next request is read from the provider's cache.
#[derive(Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

impl CacheControl {
    /// At the last of a list: all up to there is kept.
    fn at(last: bool) -> Option<Self> {
        last.then_some(Self { kind: "ephemeral" })
    }
}

#[derive(Serialize)]
struct Instruction<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct OfferedTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

fn tools<S: Serializer>(offered: &&[ToolOffer], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(offered.iter().enumerate().map(|(at, tool)| OfferedTool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.parameters,
        cache_control: CacheControl::at(at + 1 == offered.len()),
    }))
}

/// The body of a request.
///
/// # Errors
/// None that a request of ours can cause; serde_json's signature has one.
pub(super) fn body(
    model: &str,
    request: &ChatRequest,
    parameters: &MessageParameters<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let texts: usize = request.messages.iter().map(|message| message.content.len() + 60).sum();
    let mut body = RequestBody::with_room_for(texts + texts / 4 + model.len() + 200);
    let mut system: Vec<Instruction<'_>> = instructions(&request.messages)
        .map(|text| Instruction { kind: "text", text, cache_control: None })
        .collect();
    if let Some(last) = system.last_mut() {
        last.cache_control = CacheControl::at(true);
    }
    let (messages, tools) = (turns(&request.messages), &*request.tools);
    serde_json::to_writer(
        &mut body,
        &MessageRequest { model, system, messages, tools, parameters },
    )?;
    Ok(body.bytes())
}

/// A whole answer.
#[derive(Debug, Deserialize)]
pub(super) struct MessageBody<'a> {
    #[serde(default)]
    pub(super) content: Option<Vec<Map<String, Value>>>,
    #[serde(borrow, default)]
    pub(super) model: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_details: Option<StopDetails<'a>>,
    #[serde(default)]
    pub(super) usage: Option<MessageUsage>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// More about a refusal.
#[derive(Debug, Deserialize)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow, default)]
    explanation: Option<JsonText<'a>>,
}

/// Why a reply ended: the API's word, and the words in which the model refused.
pub(super) fn finish(
    client: &Client,
    reason: Option<JsonText<'_>>,
    details: Option<StopDetails<'_>>,
) -> Option<Arc<str>> {
    let explanation = details.and_then(|details| details.explanation);
    client.finish(JsonText::of(&reason), JsonText::of(&explanation))
}

/// What an event of a stream is; some servers leave it to the event's name.
#[derive(Debug, Deserialize)]
pub(super) struct StreamEventKind<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<JsonText<'a>>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// `message_start`.
#[derive(Debug, Deserialize)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow)]
    pub(super) message: MessageBody<'a>,
}

/// `content_block_start`.
#[derive(Debug, Deserialize)]
pub(super) struct BlockStart {
    #[serde(default)]
    pub(super) index: u64,
    pub(super) content_block: Map<String, Value>,
}

/// `content_block_delta`.
#[derive(Debug, Deserialize)]
pub(super) struct BlockDelta<'a> {
    #[serde(default)]
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: Delta<'a>,
}

/// More of a block. Which field there is follows from the type.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<JsonText<'a>>,
}

/// `message_delta`.
#[derive(Debug, Deserialize)]
pub(super) struct MessageDelta<'a> {
    #[serde(borrow, default)]
    pub(super) delta: Option<MessageEnding<'a>>,
    #[serde(default)]
    pub(super) usage: Option<MessageUsage>,
}

/// How a message ends.
#[derive(Debug, Deserialize)]
pub(super) struct MessageEnding<'a> {
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_details: Option<StopDetails<'a>>,
}

/// Tokens. A stream counts them at its start and once more, in sum, at its end.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct MessageUsage {
    #[serde(default)]
    input_tokens: Option<f64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<f64>,
    #[serde(default)]
    cache_read_input_tokens: Option<f64>,
    #[serde(default)]
    output_tokens: Option<f64>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Option<f64>,
}

impl MessageUsage {
    /// With what is counted anew.
    pub(super) fn then(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            output_tokens_details: later.output_tokens_details.or(self.output_tokens_details),
        }
    }

    /// As a fact has them; `None` where nothing was counted. The API's `input_tokens` are those that
    /// the cache had no part in.
    pub(super) fn usage(self) -> Option<Usage> {
        // The conversion saturates: a negative count is none.
        let tokens = |count: Option<f64>| count.unwrap_or(0.0) as u64;
        let written = tokens(self.cache_creation_input_tokens);
        let cached = tokens(self.cache_read_input_tokens);
        let thinking = self.output_tokens_details.and_then(|details| details.thinking_tokens);
        (self.input_tokens.is_some() || self.output_tokens.is_some()).then(|| Usage {
            cached_tokens: cached,
            cache_write_tokens: written,
            reasoning_tokens: tokens(thinking),
            ..Usage::new(
                tokens(self.input_tokens).saturating_add(written).saturating_add(cached),
                tokens(self.output_tokens),
            )
        })
    }
}
