//! Replies of people and of faults, in the form of the vendor's API.

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response};
use serde_json::{Value, json};

use super::formats::Api;
use super::{ResponseBody, whole};
use crate::pattern::observed::MadeReply;

/// A request that gets such a reply.
pub(super) struct Asked<'r> {
    pub(super) api: Api,
    pub(super) model: &'r str,
    /// The form of the stream, if one is requested.
    pub(super) stream: Option<StreamForm>,
}

/// The form of a streamed response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamForm {
    /// Server-sent events; else a list, or lines.
    pub(super) is_events: bool,
    /// A last event has the tokens, in chat completions.
    pub(super) has_usage: bool,
}

/// The response with this reply; `None`: the API has no replies.
pub(super) fn response(asked: &Asked<'_>, made: &MadeReply) -> Option<Response<ResponseBody>> {
    let Asked { api, model, stream } = *asked;
    let is_stream = stream.is_some();
    let events = match api {
        Api::ChatCompletions => chat(model, made, stream),
        Api::Completions => completion(model, made),
        Api::Responses => responses(model, made, is_stream),
        Api::Messages => messages(model, made, is_stream),
        Api::Contents => contents(model, made),
        Api::OllamaChat | Api::OllamaGenerate => ollama(api, model, made, is_stream),
        Api::CohereChat => cohere(made, is_stream),
        Api::Embeddings => return None,
    };
    let is_lines = matches!(api, Api::OllamaChat | Api::OllamaGenerate);
    let (kind, body) = match is_stream {
        true if is_lines => {
            ("application/x-ndjson", events.iter().map(|event| format!("{event}\n")).collect())
        }
        true if stream.is_some_and(|it| it.is_events) => {
            ("text/event-stream", as_events(api, &events))
        }
        true => ("application/json", Value::from(events).to_string()),
        false => ("application/json", events.first().map(Value::to_string).unwrap_or_default()),
    };
    let mut response = Response::new(whole(Bytes::from(body)));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    *response.headers_mut() = headers;
    Some(response)
}

fn as_events(api: Api, events: &[Value]) -> String {
    let mut text: String = events
        .iter()
        .map(|event| match event.get("type").and_then(Value::as_str) {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    if matches!(api, Api::ChatCompletions | Api::Completions) {
        text.push_str("data: [DONE]\n\n");
    }
    text
}

const ID: &str = "roundtable";

fn chat(model: &str, made: &MadeReply, stream: Option<StreamForm>) -> Vec<Value> {
    let field = if made.is_refusal { "refusal" } else { "content" };
    let usage = json!({ "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 });
    let about = |kind: &str, choices: Value| json!({ "id": ID, "object": kind, "created": 0, "model": model, "choices": choices });
    let Some(stream) = stream else {
        let mut message = json!({ "role": "assistant", "content": null, "refusal": null });
        message[field] = made.text.as_ref().into();
        let choice = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
        let mut whole = about("chat.completion", choice);
        whole["usage"] = usage;
        return vec![whole];
    };
    let mut first = json!({ "role": "assistant" });
    first[field] = made.text.as_ref().into();
    let chunk = |delta: Value, end: Value| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": end }]);
        about("chat.completion.chunk", choices)
    };
    let mut last = about("chat.completion.chunk", json!([]));
    last["usage"] = usage;
    let mut chunks = vec![chunk(first, Value::Null), chunk(json!({}), "stop".into())];
    chunks.extend(Some(last).filter(|_| stream.has_usage));
    chunks
}

fn completion(model: &str, made: &MadeReply) -> Vec<Value> {
    let choices = json!([{ "index": 0, "text": made.text, "finish_reason": "stop" }]);
    let about = json!({ "id": ID, "object": "text_completion", "created": 0, "model": model });
    vec![with(about, json!({ "choices": choices }))]
}

fn responses(model: &str, made: &MadeReply, is_stream: bool) -> Vec<Value> {
    let part = match made.is_refusal {
        true => json!({ "type": "refusal", "refusal": made.text }),
        false => json!({ "type": "output_text", "text": made.text, "annotations": [] }),
    };
    let item = json!({
        "type": "message", "id": "msg_roundtable", "role": "assistant", "status": "completed", "content": [part],
    });
    let usage = json!({
        "input_tokens": 0, "output_tokens": 0, "total_tokens": 0,
        "input_tokens_details": { "cached_tokens": 0 }, "output_tokens_details": { "reasoning_tokens": 0 },
    });
    let about = |status: &str, output: Value| {
        json!({
            "id": "resp_roundtable", "object": "response", "created_at": 0, "model": model, "status": status,
            "output": output, "tools": [], "tool_choice": "auto", "parallel_tool_calls": true,
        })
    };
    let completed = with(about("completed", json!([item])), json!({ "usage": usage }));
    if !is_stream {
        return vec![completed];
    }
    let begun = with(item.clone(), json!({ "content": [], "status": "in_progress" }));
    let place = json!({ "item_id": "msg_roundtable", "output_index": 0, "content_index": 0 });
    let kind = if made.is_refusal { "refusal" } else { "output_text" };
    let text = if made.is_refusal { "refusal" } else { "text" };
    let named = |name: &str, more: Value| with(json!({ "type": name }), more);
    let empty = match made.is_refusal {
        true => json!({ "type": "refusal", "refusal": "" }),
        false => json!({ "type": "output_text", "text": "", "annotations": [] }),
    };
    let events = [
        named("response.created", json!({ "response": about("in_progress", json!([])) })),
        named("response.output_item.added", json!({ "output_index": 0, "item": begun })),
        named("response.content_part.added", with(place.clone(), json!({ "part": empty }))),
        named(
            &format!("response.{kind}.delta"),
            with(place.clone(), json!({ "delta": made.text })),
        ),
        named(&format!("response.{kind}.done"), with(place.clone(), json!({ text: made.text }))),
        named("response.content_part.done", with(place, json!({ "part": part }))),
        named("response.output_item.done", json!({ "output_index": 0, "item": item })),
        named("response.completed", json!({ "response": completed })),
    ];
    let numbered = events.into_iter().enumerate();
    numbered.map(|(nth, event)| with(event, json!({ "sequence_number": nth }))).collect()
}

fn messages(model: &str, made: &MadeReply, is_stream: bool) -> Vec<Value> {
    let end = if made.is_refusal { "refusal" } else { "end_turn" };
    let block = json!({ "type": "text", "text": made.text });
    let content = if made.text.is_empty() { json!([]) } else { json!([block]) };
    let whole = json!({
        "id": "msg_roundtable", "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": end, "stop_sequence": null, "usage": { "input_tokens": 0, "output_tokens": 0 },
    });
    if !is_stream {
        return vec![whole];
    }
    let begun = with(whole, json!({ "content": [], "stop_reason": null }));
    let start = json!({ "type": "text", "text": "" });
    let delta = json!({ "type": "text_delta", "text": made.text });
    let mut events = vec![json!({ "type": "message_start", "message": begun })];
    if !made.text.is_empty() {
        events.extend([
            json!({ "type": "content_block_start", "index": 0, "content_block": start }),
            json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
            json!({ "type": "content_block_stop", "index": 0 }),
        ]);
    }
    let delta = json!({ "stop_reason": end, "stop_sequence": null });
    events.extend([
        json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 0 } }),
        json!({ "type": "message_stop" }),
    ]);
    events
}

fn contents(model: &str, made: &MadeReply) -> Vec<Value> {
    let mut candidate =
        json!({ "index": 0, "finishReason": if made.is_refusal { "SAFETY" } else { "STOP" } });
    if !made.is_refusal && !made.text.is_empty() {
        candidate["content"] = json!({ "role": "model", "parts": [{ "text": made.text }] });
    }
    let usage = json!({ "promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0 });
    vec![json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": model })]
}

fn ollama(api: Api, model: &str, made: &MadeReply, is_stream: bool) -> Vec<Value> {
    let line = |text: &str, is_done: bool| {
        let said = match api {
            Api::OllamaChat => json!({ "message": { "role": "assistant", "content": text } }),
            _ => json!({ "response": text }),
        };
        let about =
            json!({ "model": model, "created_at": "1970-01-01T00:00:00Z", "done": is_done });
        let end = json!({ "done_reason": "stop", "prompt_eval_count": 0, "eval_count": 0 });
        with(with(about, said), if is_done { end } else { json!({}) })
    };
    match is_stream {
        true => vec![line(&made.text, false), line("", true)],
        false => vec![line(&made.text, true)],
    }
}

fn cohere(made: &MadeReply, is_stream: bool) -> Vec<Value> {
    let usage = json!({ "tokens": { "input_tokens": 0, "output_tokens": 0 } });
    let text = json!({ "type": "text", "text": made.text });
    if !is_stream {
        let message = json!({ "role": "assistant", "content": [text] });
        let end = json!({ "finish_reason": "COMPLETE", "usage": usage });
        return vec![with(json!({ "id": ID, "message": message }), end)];
    }
    let delta = |content: Value| json!({ "message": { "content": content } });
    let empty = delta(json!({ "type": "text", "text": "" }));
    let message = json!({ "message": { "role": "assistant", "content": [] } });
    vec![
        json!({ "type": "message-start", "id": ID, "delta": message }),
        json!({ "type": "content-start", "index": 0, "delta": empty }),
        json!({ "type": "content-delta", "index": 0, "delta": delta(json!({ "text": made.text })) }),
        json!({ "type": "content-end", "index": 0 }),
        json!({ "type": "message-end", "delta": { "finish_reason": "COMPLETE", "usage": usage } }),
    ]
}

/// An object with the fields of another one.
fn with(mut object: Value, more: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (object.as_object_mut(), more) {
        fields.extend(more);
    }
    object
}
