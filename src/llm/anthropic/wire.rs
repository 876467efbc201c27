//! The bodies of the Messages API: writes requests, parses answers.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::conversation::{HISTORY, instructions, turns};
use super::parameters::MessageParameters;
use crate::event::kind::{ReplyEnd, Usage};
use crate::llm::ChatRequest;
use crate::llm::client::Client;
use crate::llm::client::json::{JsonText, RequestBody};
use crate::llm::client::reply_end::end_of_message;
use crate::llm::history::normalized;

/// Marks the end of a prefix that the next request repeats: the provider caches everything up to
/// here.
const CACHED: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The body of a request.
///
/// # Errors
/// Our own requests cause none; the signature is serde_json's.
pub(super) fn body(
    model: &str,
    request: &ChatRequest,
    parameters: &MessageParameters<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let texts: usize = request.messages.iter().map(|message| message.content.len() + 60).sum();
    let schema = request.form.contract().map_or(0, |contract| contract.schema().get().len() + 80);
    let room = texts + texts / 4 + schema + model.len() + 200;
    let mut body = RequestBody::with_room_for(room);
    body.raw(r#"{"model":"#);
    body.text(model);
    let history = normalized(&request.messages, &HISTORY);
    let mut system = instructions(&history).peekable();
    let mut begin = r#","system":["#;
    while let Some(text) = system.next() {
        body.raw(std::mem::replace(&mut begin, ","));
        body.raw(r#"{"type":"text","text":"#);
        body.text(text);
        // The last one marks the cached prefix.
        body.raw(if system.peek().is_none() { CACHED } else { "" });
        body.raw(if system.peek().is_none() { "}]" } else { "}" });
    }
    body.raw(r#","messages":["#);
    for (nth, turn) in turns(&history).iter().enumerate() {
        body.raw(if nth == 0 { "" } else { "," });
        turn.write(&mut body)?;
    }
    body.raw("]");
    let tools = &*request.tools;
    for (nth, tool) in tools.iter().enumerate() {
        let last = nth + 1 == tools.len();
        body.raw(if nth == 0 { r#","tools":[{"name":"# } else { r#",{"name":"# });
        body.text(&tool.name);
        if !tool.description.is_empty() {
            body.raw(r#","description":"#);
            body.text(&tool.description);
        }
        body.raw(r#","input_schema":"#);
        body.value(&*tool.parameters)?;
        body.raw(if last { CACHED } else { "" });
        body.raw(if last { "}]" } else { "}" });
    }
    body.close_object_with(parameters)?;
    Ok(body.bytes())
}

/// An answer that is not streamed, with blocks of any type or of one.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "B: Deserialize<'de>"))]
pub(super) struct MessageBody<'a, B = Map<String, Value>> {
    #[serde(default)]
    pub(super) content: Option<Vec<B>>,
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

/// Details of a refusal.
#[derive(Debug, Deserialize)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow, default)]
    explanation: Option<JsonText<'a>>,
}

/// How the message ended; and the finish reason: the API's word, or the text of the model's
/// refusal.
pub(super) fn finish(
    client: &Client,
    reason: Option<JsonText<'_>>,
    details: Option<StopDetails<'_>>,
) -> (ReplyEnd, Option<Arc<str>>) {
    let explanation = details.and_then(|details| details.explanation);
    let reason = JsonText::as_optional_str(&reason);
    (end_of_message(reason), client.finish(reason, JsonText::as_optional_str(&explanation)))
}

/// The type of a stream event; some servers give it only as the event's name.
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

/// The next part of a block. Its type decides which field is set.
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

/// The end of a message.
#[derive(Debug, Deserialize)]
pub(super) struct MessageEnding<'a> {
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<JsonText<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_details: Option<StopDetails<'a>>,
}

/// Token counts. A stream reports them at its start, and the totals at its end.
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
    /// These counts, updated with later ones.
    pub(super) fn updated_with(self, later: Self) -> Self {
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

    /// The usage for events; `None` without any count. The API's `input_tokens` exclude those read
    /// from or written to the cache.
    pub(super) fn usage(self) -> Option<Usage> {
        // The conversion saturates: a negative count becomes 0.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;
    use serde_json::json;

    use super::super::conversation::MessageTurn;
    use super::*;
    use crate::llm::client::arbitrary::request;

    /// The same body as a tree, which serde serializes.
    #[derive(Serialize)]
    struct MessageTree<'a> {
        model: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        system: Vec<Value>,
        messages: Vec<MessageTurn<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools: Vec<Value>,
        #[serde(flatten)]
        parameters: &'a MessageParameters<'a>,
    }

    fn tree(model: &str, request: &ChatRequest, parameters: &MessageParameters<'_>) -> String {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let history = normalized(&request.messages, &HISTORY);
        let mut system: Vec<Value> = instructions(&history).map(text).collect();
        let tools = request.tools.iter().map(|tool| {
            let mut offered = json!({ "name": *tool.name });
            if !tool.description.is_empty() {
                offered["description"] = json!(*tool.description);
            }
            offered["input_schema"] = (*tool.parameters).clone();
            offered
        });
        let mut tools: Vec<Value> = tools.collect();
        for last in [system.last_mut(), tools.last_mut()].into_iter().flatten() {
            last["cache_control"] = json!({ "type": "ephemeral" });
        }
        let messages = turns(&history);
        let tree = MessageTree { model, system, messages, tools, parameters };
        serde_json::to_string(&tree).expect("JSON")
    }

    proptest! {
        #[test]
        fn a_body_is_what_serde_json_writes_of_its_tree(
            (request, tuning) in request(),
            model in "[a-z\"\\\\]{0,9}",
            stream in any::<bool>(),
        ) {
            let parameters =
                MessageParameters::of(&tuning, &request.form, stream, Default::default());
            let body = body(&model, &request, &parameters).expect("JSON");
            let expected = tree(&model, &request, &parameters);
            prop_assert_eq!(String::from_utf8(body).expect("UTF-8"), expected);
        }
    }
}
