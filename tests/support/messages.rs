//! The Messages API as a raw server speaks it.
//!
//! The shapes are those of github.com/anthropics/anthropic-sdk-python at commit 009b0353
//! (2026-08-08): the types in `src/anthropic/types`, and the recorded streams in
//! `tests/lib/streaming/fixtures`, shortened where a test says so. Errors are those of
//! platform.claude.com/docs/en/api/errors, of which a copy was read on 2026-11-22.

use std::sync::Arc;

use roundtable::log::event::{AttemptFailed, ChatMessage, Reply};
use roundtable::model::anthropic::Anthropic;
use roundtable::model::{ChatModel, ChatRequest, Conversation};
use roundtable::net::{Http, ProxyMode};
use roundtable::scenario::spec::Tuning;
use roundtable::scenario::spec::tool::ToolCall;
use serde_json::{Value, json};

use super::wire::*;

/// A whole message that says `hello`.
pub const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-20250514",
"content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,
"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3,"service_tier":"standard"}}"#;

/// `basic_response.txt`, shortened.
pub const BASIC: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude-sonnet-4-20250514\",\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":11,\"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":7,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Grün\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" 👍 \\\"so\\\"\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":6}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// The text that [`BASIC`] says.
pub const SAID: &str = "Grün 👍 \"so\"";

/// The model behind this server.
pub fn anthropic(server: &Server, stream: bool) -> Anthropic {
    tuned(server, Tuning::default(), stream)
}

pub fn tuned(server: &Server, tuning: Tuning, stream: bool) -> Anthropic {
    Anthropic::new(Http::new(ProxyMode::Direct), server.messages_endpoint(), tuning, stream)
}

/// An event of a stream, named as its data is.
pub fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

pub fn message_start() -> String {
    event(&json!({ "type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m-1",
        "stop_reason": null, "usage": { "input_tokens": 9, "output_tokens": 1 },
    } }))
}

pub fn block_start(index: u32, block: &Value) -> String {
    event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

pub fn block_delta(index: u32, delta: &Value) -> String {
    event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

pub fn block_stop(index: u32) -> String {
    event(&json!({ "type": "content_block_stop", "index": index }))
}

pub fn text_delta(text: &str) -> String {
    block_delta(0, &json!({ "type": "text_delta", "text": text }))
}

pub fn ending(reason: &str) -> String {
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    event(&json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 5 } }))
        + &event(&json!({ "type": "message_stop" }))
}

/// A stream that says this text.
pub fn saying(text: &str) -> String {
    let block = json!({ "type": "text", "text": "" });
    message_start() + &block_start(0, &block) + &text_delta(text) + &block_stop(0)
}

/// A stream of these blocks, the input of each call in one piece.
pub fn streamed_blocks(content: &Value, reason: &str) -> Vec<String> {
    let blocks = content.as_array().into_iter().flatten().zip(0..);
    let parts = blocks.flat_map(|(block, index)| {
        let mut start = block.clone();
        let input = start.get_mut("input").map(|input| std::mem::replace(input, json!({})));
        let delta = |input: Value| {
            let json = input.to_string();
            block_delta(index, &json!({ "type": "input_json_delta", "partial_json": json }))
        };
        [Some(block_start(index, &start)), input.map(delta), Some(block_stop(index))]
    });
    let begin = std::iter::once(message_start());
    begin.chain(parts.flatten()).chain([ending(reason)]).collect()
}

pub fn call_of(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

/// Calls as tests write them: `id name arguments`.
pub fn told(reply: &Reply) -> Vec<String> {
    let calls = reply.tool_calls.iter();
    calls.map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect()
}

pub fn asking(messages: &[ChatMessage]) -> ChatRequest {
    ChatRequest { messages: Conversation::from(Arc::from(messages)), ..ask(false) }
}

/// The answer to one request, on a connection that then closes.
pub async fn answered(
    server: &Server,
    model: &dyn ChatModel,
    request: &ChatRequest,
    bytes: impl AsRef<[u8]>,
) -> (Result<Reply, AttemptFailed>, Asking) {
    let (reply, asking) = both(model.chat(request, &Deaf), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(bytes).await;
        asking
    })
    .await;
    let reply = reply.map_err(|failed| {
        check_text(&failed);
        *failed
    });
    (reply, asking)
}

/// An answer of JSON after which the connection closes.
pub fn closing(status: &str, body: &str) -> Vec<u8> {
    answer(status, &["content-type: application/json", "connection: close"], body)
}

/// The API's form of an error.
pub fn error(kind: &str, message: &str) -> String {
    json!({
        "type": "error",
        "error": { "type": kind, "message": message },
        "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    })
    .to_string()
}
