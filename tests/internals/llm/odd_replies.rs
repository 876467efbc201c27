//! Replies that are whole and odd: unused fields have any value, and the reply is the same.

use crate::log::event::{AttemptFailed, FailureClass, Reply, Usage};
use crate::model::ChatModel;
use crate::scenario::spec::script::ReplyEnd;
use crate::support::api::Api;
use crate::support::messages;
use crate::support::messages::{anthropic, closing, told};
use crate::support::wire::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write;

/// The reply to these bytes of a server that then closes.
async fn reply_to(
    model: &dyn ChatModel,
    server: &Server,
    bytes: &[u8],
) -> Result<Reply, AttemptFailed> {
    server.one(model, bytes).await.map_err(|failed| {
        check_text(&failed);
        *failed
    })
}

/// The reply of a chat completions server that streams these events.
async fn chat_stream(stream: &str) -> Result<Reply, AttemptFailed> {
    let server = Server::start().await;
    let bytes = format!("{STREAM_HEAD}{stream}");
    reply_to(&server.streaming(), &server, bytes.as_bytes()).await
}

/// The reply of a chat completions server that answers with this body.
async fn chat_body(body: &str) -> Result<Reply, AttemptFailed> {
    let server = Server::start().await;
    reply_to(&server.model(), &server, &closing("200 OK", body)).await
}

async fn messages_stream(stream: &str) -> Result<Reply, AttemptFailed> {
    let server = Server::start().await;
    let bytes = format!("{STREAM_HEAD}{stream}");
    reply_to(&anthropic(&server, true), &server, bytes.as_bytes()).await
}

async fn messages_body(body: &str) -> Result<Reply, AttemptFailed> {
    let server = Server::start().await;
    reply_to(&anthropic(&server, false), &server, &closing("200 OK", body)).await
}

fn delta(delta: &str, finish: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n")
}

const DONE: &str = "data: [DONE]\n\n";

#[tokio::test]
async fn empty_finish_reason_ends_nothing() {
    for reason in ["\"\"", "\" \"", "null", "false", "\"null\""] {
        let cut = delta(r#"{"content":"Sev"}"#, reason);
        let failed = chat_stream(&cut).await.expect_err(reason);
        assert_eq!(failed.class, FailureClass::Reset, "{reason}");
        assert_eq!(failed.partial.as_deref(), Some("Sev"), "{reason}");
        // With the rest it is a whole reply.
        let whole = cut + &delta(r#"{"content":"en."}"#, "\"stop\"");
        let reply = chat_stream(&whole).await.expect(reason);
        assert_eq!((&*reply.text, reply.finish.as_deref()), ("Seven.", Some("stop")), "{reason}");
        // So it is with an end in order and without a reason.
        let done = delta(r#"{"content":"Seven."}"#, reason) + DONE;
        assert_eq!(&*chat_stream(&done).await.expect(reason).text, "Seven.");
        let message = |reason: &str, end: &str| {
            format!(
                "data: {{\"type\":\"message_start\",\"message\":{{}}}}\n\ndata: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"Sev\"}}}}\n\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":{reason}}}}}\n\n{end}"
            )
        };
        let failed = messages_stream(&message(reason, "")).await.expect_err(reason);
        assert_eq!(failed.class, FailureClass::Reset, "{reason}");
        let stop = "data: {\"type\":\"message_stop\"}\n\n";
        assert_eq!(&*messages_stream(&message(reason, stop)).await.expect(reason).text, "Sev");
        let ended = message("\"end_turn\"", "");
        assert_eq!(&*messages_stream(&ended).await.expect(reason).text, "Sev");
    }
}

#[tokio::test]
async fn finish_reason_requires_proper_end() {
    let ended = delta(r#"{"content":"Seven."}"#, "\"stop\"");
    let server = Server::start().await;
    // The chunks stop without their end.
    let broken = format!("{CHUNKED_HEAD}{}", chunk(&ended));
    let failed = reply_to(&server.streaming(), &server, broken.as_bytes()).await;
    assert_eq!(failed.expect_err("broken").class, FailureClass::Reset);
    let whole = format!("{CHUNKED_HEAD}{}0\r\n\r\n", chunk(&ended));
    let reply = reply_to(&server.streaming(), &server, whole.as_bytes()).await;
    assert_eq!(&*reply.expect("whole").text, "Seven.");
}

#[tokio::test]
async fn empty_end_is_no_reply() {
    for stream in [delta("{}", "null") + DONE, delta(r#"{"role":"assistant"}"#, "\"\"") + DONE] {
        let failed = chat_stream(&stream).await.expect_err(&stream);
        assert_eq!(failed.class, FailureClass::BadResponse);
        assert!(failed.text.contains("without text, a call or a finish reason"), "{}", failed.text);
        assert!(!failed.text.contains("base URL"), "{}", failed.text);
    }
    let call = delta(r#"{"tool_calls":[{"id":"a","function":{"name":"stock"}}]}"#, "null") + DONE;
    assert_eq!(told(&chat_stream(&call).await.expect("a call")), ["a stock "]);
}

#[tokio::test]
async fn skips_keepalive_events() {
    for alive in [
        "data:\n\n",
        "data: \n\n",
        "data: null\n\n",
        "data: {}\n\n",
        "data: []\n\n",
        "event: keepalive\ndata: {}\n\n",
        "data: {\"type\": \"ping\"}\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "event: ping\ndata: now\n\n",
        "data: {\"choices\":null,\"usage\":null}\n\n",
        "data: {\"id\":\"\",\"object\":\"\",\"model\":\"\",\"prompt_filter_results\":[]}\n\n",
    ] {
        let pieces =
            [delta(r#"{"content":"Sev"}"#, "null"), delta(r#"{"content":"en."}"#, "\"stop\"")];
        let stream = format!("{alive}{}{alive}{}{alive}{DONE}", pieces[0], pieces[1]);
        let reply = chat_stream(&stream).await.expect(alive);
        assert_eq!((&*reply.text, reply.model.as_deref()), ("Seven.", None), "{alive}");
        let block = "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Seven.\"}}\n\n";
        let stream = format!("{alive}{block}{alive}data: {{\"type\":\"message_stop\"}}\n\n{alive}");
        assert_eq!(&*messages_stream(&stream).await.expect(alive).text, "Seven.", "{alive}");
    }
}

#[tokio::test]
async fn reads_text_from_parts() {
    let thinking = r#"{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}"#;
    let parts = |text: &str| format!(r#"[{thinking},{{"type":"text","text":"{text}"}},null]"#);
    let stream = [
        delta(&format!(r#"{{"content":[{thinking}]}}"#), "null"),
        delta(&format!(r#"{{"content":{}}}"#, parts("Sev")), "null"),
        delta(r#"{"content":["e","n"]}"#, "null"),
        delta(r#"{"content":"."}"#, "\"stop\""),
    ];
    let reply = chat_stream(&stream.concat()).await.expect("a reply");
    assert_eq!((&*reply.text, reply.ignored), ("Seven.", None));
    let body = |content: &str| {
        format!(r#"{{"choices":[{{"message":{{"content":{content}}},"finish_reason":"stop"}}]}}"#)
    };
    let reply = chat_body(&body(&parts("Seven."))).await.expect("a reply");
    assert_eq!(&*reply.text, "Seven.");
    let image = r#"[{"type":"image_url","image_url":{}},{"type":"text","text":"Seven."}]"#;
    let reply = chat_body(&body(image)).await.expect("a reply");
    assert_eq!((&*reply.text, reply.ignored.as_deref()), ("Seven.", Some("content")));
    let refusal = r#"[{"type":"refusal","refusal":"I will not."}]"#;
    let reply = chat_body(&body(refusal)).await.expect("a reply");
    assert_eq!((&*reply.text, reply.finish.as_deref()), ("", Some("refusal: I will not.")));
    // What would change the meaning is not read.
    for content in ["5", "true", r#"{"text":"Seven."}"#, "[5]", r#"[{"type":"text","text":5}]"#] {
        let failed = chat_body(&body(content)).await.expect_err(content);
        assert_eq!(failed.class, FailureClass::BadResponse, "{content}");
        assert!(
            failed.text.contains("(`content`: invalid type")
                || failed.text.contains("(`text`: invalid type"),
            "{}",
            failed.text
        );
        assert!(!failed.text.contains("base URL"), "{}", failed.text);
    }
    let reply = messages_body(r#"{"content":"Seven.","stop_reason":"end_turn"}"#).await;
    assert_eq!(&*reply.expect("a reply").text, "Seven.");
}

#[tokio::test]
async fn keeps_calls_with_odd_arguments() {
    for (arguments, kept) in [
        ("[]", "{}"),
        (r#""[]""#, "{}"),
        ("null", ""),
        (r#""""#, ""),
        ("{}", "{}"),
        (r#"{ "a" : "b c" }"#, r#"{"a":"b c"}"#),
        // Parsing would change the number.
        (r#"{"n": 123456789012345678901234567890}"#, r#"{"n":123456789012345678901234567890}"#),
        (r#""null""#, "null"),
        ("5", "5"),
        ("true", "true"),
        ("1e400", "1e400"),
        (r#"[{"item": "x"}]"#, r#"[{"item":"x"}]"#),
    ] {
        let call = format!(
            r#"{{"tool_calls":[null,{{"index":"0","id":7,"function":{{"name":"stock","arguments":{arguments}}}}}]}}"#
        );
        let whole = format!(r#"{{"choices":[{{"message":{call},"finish_reason":"tool_calls"}}]}}"#);
        let (streamed, whole) =
            (chat_stream(&delta(&call, "\"tool_calls\"")).await, chat_body(&whole).await);
        for reply in [streamed, whole] {
            let reply = reply.expect(arguments);
            assert_eq!(told(&reply), [format!("7 stock {kept}")], "{arguments}");
        }
        // The other API has the input as an object; none is an empty one.
        let kept = if kept.is_empty() { "{}" } else { kept };
        let block = format!(r#"{{"type":"tool_use","id":7,"name":"stock","input":{arguments}}}"#);
        let body = format!(r#"{{"content":[null,{block}],"stop_reason":"tool_use"}}"#);
        let reply = messages_body(&body).await.expect(arguments);
        let [call] = &reply.tool_calls[..] else { panic!("one call: {reply:?}") };
        assert_eq!((&*call.id, &*call.name), ("7", "stock"));
        assert!(*call.arguments == *kept || kept.contains("90"), "{arguments}: {}", call.arguments);
    }
}

#[tokio::test]
async fn reads_whole_message_once() {
    let message = |text: &str, finish: &str| {
        format!(
            "data: {{\"choices\":[{{\"message\":{{\"content\":\"{text}\"}},\"delta\":{{}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    for stream in [
        message("Seven.", "\"stop\""),
        // Each has the text so far, and the last one is repeated.
        message("Sev", "null") + &message("Seven.", "null") + &message("Seven.", "\"stop\""),
        // Beside deltas it is only a repetition.
        delta(r#"{"content":"Seven."}"#, "null") + &message("Seven.", "\"stop\""),
    ] {
        let reply = chat_stream(&stream).await.expect(&stream);
        assert_eq!(&*reply.text, "Seven.", "{stream}");
    }
    // Pieces in its place cannot be told from a repetition.
    let pieces = message("Sev", "null") + &message("en.", "\"stop\"");
    let failed = chat_stream(&pieces).await.expect_err("pieces");
    assert!(failed.text.contains("does not begin with the text before it"), "{}", failed.text);
    let mixed = message("Sev", "null") + &delta(r#"{"content":"en."}"#, "\"stop\"");
    let failed = chat_stream(&mixed).await.expect_err("mixed");
    assert!(failed.text.contains("a `delta` after a whole `message`"), "{}", failed.text);
    let whole = "data: {\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"Seven.\"}],\"stop_reason\":\"end_turn\"}\n\n";
    assert_eq!(&*messages_stream(whole).await.expect("whole").text, "Seven.");
}

#[tokio::test]
async fn ignores_empty_error() {
    for error in ["{}", "\"\"", "false", "null", "[]", r#"{"code":null,"message":"","type":0}"#] {
        let within = format!(
            r#"{{"error":{error},"choices":[{{"error":{error},"delta":{{"content":"Seven."}},"message":{{"content":"Seven."}},"finish_reason":"stop"}}]}}"#
        );
        for reply in [chat_stream(&format!("data: {within}\n\n")).await, chat_body(&within).await] {
            assert_eq!(&*reply.expect(error).text, "Seven.", "{error}");
        }
        let body = format!(
            r#"{{"error":{error},"content":[{{"type":"text","text":"Seven."}}],"stop_reason":"end_turn"}}"#
        );
        assert_eq!(&*messages_body(&body).await.expect(error).text, "Seven.", "{error}");
    }
    // One that says something is one, also in a list as Gemini sends it.
    let listed = r#"[{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}]"#;
    for failed in [
        chat_stream(&format!("data: {listed}\n\n")).await,
        chat_body(listed).await,
        messages_body(listed).await,
        messages_stream(&format!("data: {listed}\n\n")).await,
    ] {
        let failed = failed.expect_err("an error");
        assert_eq!((failed.class, failed.status), (FailureClass::Status, Some(503)));
        assert!(failed.text.contains("overloaded"), "{}", failed.text);
    }
    let said = chat_stream("data: {\"detail\":\"no such route\"}\n\n").await.expect_err("an error");
    assert!(
        said.text.contains("sent an error in event 1 of the stream: no such route"),
        "{}",
        said.text
    );
}

#[tokio::test]
async fn foreign_stream_names_event() {
    let foreign = "data: {\"type\":\"response.created\",\"id\":\"r1\"}\n\n";
    for failed in [
        chat_stream(foreign).await,
        chat_stream(&format!("{foreign}{DONE}")).await,
        messages_stream(foreign).await,
    ] {
        let failed = failed.expect_err("another API");
        assert_eq!(failed.class, FailureClass::BadResponse, "{}", failed.text);
        assert!(failed.text.contains("response.created"), "{}", failed.text);
        assert!(failed.text.contains("Check the base URL"), "{}", failed.text);
    }
    // Among events of the API it is left out, and named.
    let among = delta(r#"{"content":"Seven."}"#, "null") + foreign + &delta("{}", "\"stop\"");
    let reply = chat_stream(&among).await.expect("a reply");
    assert_eq!((&*reply.text, reply.ignored.as_deref()), ("Seven.", Some("event")));
}

#[tokio::test]
async fn body_skips_byte_order_mark() {
    let reply = chat_body(&format!("\u{feff}{HELLO}")).await.expect("a reply");
    assert_eq!(&*reply.text, "hello");
    // Without a content type the first character tells what it is.
    let server = Server::start().await;
    let bare = answer("200 OK", &["connection: close"], &format!("\u{feff}{HELLO}"));
    let reply = reply_to(&server.streaming(), &server, &bare).await.expect("a reply");
    assert_eq!(&*reply.text, "hello");
    // In the model's own text it stays.
    let said = format!("data: \u{feff}{}", &delta("{\"content\":\"\u{feff}a\"}", "\"stop\"")[6..]);
    assert_eq!(&*chat_stream(&said).await.expect("a reply").text, "\u{feff}a");
}

#[tokio::test]
async fn counts_reasoning_tokens_everywhere() {
    // What is counted: prompt, reply, and how much of the reply was reasoning.
    let counts = |usage: Option<Usage>| {
        usage.map_or("none".to_owned(), |it| {
            format!("{} {} {}", it.prompt_tokens, it.completion_tokens, it.reasoning_tokens)
        })
    };
    // The usage, what is counted, what is ignored.
    let cases = [
        // Of a total alone, all but the reply is the prompt.
        (r#"{"total_tokens":500}"#, "500 0 0", ""),
        (
            r#"{"prompt_tokens":-1,"completion_tokens":5,"total_tokens":500}"#,
            "495 5 0",
            "prompt_tokens",
        ),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#, "10 5 0", ""),
        // OpenAI counts them within the reply.
        (
            r#"{"prompt_tokens":10,"completion_tokens":500,"total_tokens":510,"completion_tokens_details":{"reasoning_tokens":450}}"#,
            "10 500 450",
            "",
        ),
        // xAI counts them beside the reply, Gemini in the total alone.
        (
            r#"{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}"#,
            "32 103 94",
            "",
        ),
        (r#"{"prompt_tokens":11,"completion_tokens":6,"total_tokens":1024}"#, "11 1013 1007", ""),
        // Without a total, more than the reply cannot be a part of it.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":50}}"#,
            "10 55 50",
            "",
        ),
        (r#"{"prompt_tokens":10,"total_tokens":15}"#, "10 5 0", ""),
        (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":3}"#, "10 5 0", ""),
        (r#"{"prompt_tokens":"12","completion_tokens":3.0}"#, "12 3 0", ""),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":0,"completion_tokens_details":"none"}"#,
            "10 5 0",
            "prompt_tokens_details, completion_tokens_details",
        ),
        // Counts that cannot be are none; 0 is estimated later.
        (r#"{"prompt_tokens":10,"completion_tokens":-1}"#, "10 0 0", "completion_tokens"),
        (r#"{"prompt_tokens":10,"completion_tokens":2.5}"#, "10 0 0", "completion_tokens"),
        (r#"{"prompt_tokens":1e400,"completion_tokens":5}"#, "0 5 0", "prompt_tokens"),
        (r#"{"prompt_tokens":10,"completion_tokens":1000000001}"#, "10 0 0", "completion_tokens"),
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":1e12}"#,
            "10 5 0",
            "total_tokens",
        ),
        (r#"{"prompt_tokens":[],"completion_tokens":null}"#, "none", ""),
        (r#""""#, "none", ""),
        ("0", "none", "usage"),
        (r#""a lot""#, "none", "usage"),
    ];
    for (usage, counted, ignored) in cases {
        let whole = format!(
            r#"{{"choices":[{{"message":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        let stream = format!(
            "{}data: {{\"choices\":[],\"usage\":{usage}}}\n\n",
            delta(r#"{"content":"a"}"#, "\"stop\"")
        );
        for reply in [chat_body(&whole).await, chat_stream(&stream).await] {
            let reply = reply.expect(usage);
            assert_eq!(counts(reply.usage), counted, "{usage}");
            assert_eq!(reply.ignored.as_deref().unwrap_or_default(), ignored, "{usage}");
        }
        // The other API has other names for the same.
        let names = [
            ("\"prompt_tokens\"", "\"input_tokens\""),
            ("\"completion_tokens\"", "\"output_tokens\""),
            ("completion_tokens_details", "output_tokens_details"),
            ("reasoning_tokens", "thinking_tokens"),
        ];
        let usage =
            names.iter().fold(usage.to_owned(), |usage, (from, to)| usage.replace(from, to));
        let body = format!(r#"{{"content":"a","stop_reason":"end_turn","usage":{usage}}}"#);
        let reply = messages_body(&body).await.expect(&usage);
        assert_eq!(counts(reply.usage), counted, "{usage}");
    }
}

/// A proxy that ends its stream with a prompt of 0 tokens does not take the count back.
#[tokio::test]
async fn ignores_later_zero_prompt() {
    let delta = json!({
        "type": "message_delta", "delta": { "stop_reason": "end_turn" },
        "usage": { "input_tokens": 0, "output_tokens": 5 },
    });
    let stop = json!({ "type": "message_stop" });
    let stream = messages::saying("hello") + &messages::event(&delta) + &messages::event(&stop);
    let usage = Api::Messages.streamed(stream).await.expect("a reply").usage.expect("counts");
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (9, 5));
}

/// A provider's filter may leave the whole message out.
#[tokio::test]
async fn a_filtered_reply_needs_no_message() {
    let body = r#"{"choices":[{"index":0,"finish_reason":"content_filter"}]}"#;
    let reply = chat_body(body).await.expect("a reply");
    assert_eq!((reply.end, &*reply.text), (ReplyEnd::Filtered, ""));
    let body = r#"{"choices":[{"index":0}]}"#;
    assert!(chat_body(body).await.is_err(), "neither a message nor an end");
}

#[tokio::test]
async fn a_refusal_keeps_its_spaces() {
    let part = |text: &str| {
        let delta = json!({ "refusal": text });
        format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }))
    };
    let stream = part("I can") + &part(" ") + &part("not.") + &delta("{}", "\"stop\"");
    let reply = chat_stream(&stream).await.expect("a reply");
    assert_eq!(reply.finish.as_deref(), Some("refusal: I can not."));
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

#[tokio::test]
async fn reads_unrequested_compression() {
    let stream = delta(r#"{"content":"hello"}"#, "\"stop\"") + DONE;
    for (kind, body) in [("text/event-stream", &*stream), ("application/json", HELLO)] {
        let head = |encoding: &str| {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n"
            )
        };
        let server = Server::start().await;
        let model = server.streaming();
        let packed = [head("gzip").into_bytes(), gzip(body)].concat();
        let reply = reply_to(&model, &server, &packed).await.expect(kind);
        assert_eq!(&*reply.text, "hello", "{kind}");
        // An unsupported encoding is reported, and is not tried again.
        let other = [head("compress").as_bytes(), b"\x0b\x02\x80"].concat();
        let failed = reply_to(&model, &server, &other).await.expect_err(kind);
        assert_eq!(failed.class, FailureClass::BadResponse, "{}", failed.text);
        assert!(
            failed.text.contains("compress is not supported, only gzip, deflate, br and zstd"),
            "{}",
            failed.text
        );
    }
    // A refusal too.
    let server = Server::start().await;
    let refusal = r#"{"error":{"message":"no such thing"}}"#;
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
    let packed = [head.as_bytes(), &gzip(refusal)].concat();
    let failed = reply_to(&server.model(), &server, &packed).await.expect_err("a refusal");
    assert!(failed.text.contains("no such thing"), "{}", failed.text);
}

#[tokio::test]
async fn advice_names_what_would_help() {
    let refused = |message: &str, code: &str| {
        json!({ "error": { "message": message, "code": code, "type": "invalid_request_error" } })
            .to_string()
    };
    for (message, code, advice) in [
        (
            "This model's maximum context length is 8192 tokens.",
            "context_length_exceeded",
            "Shorten the prompt",
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", "", "Shorten the prompt"),
        ("The input token count (1200000) exceeds the maximum", "", "Shorten the prompt"),
        (
            "The response was filtered due to Azure's content management policy.",
            "content_filter",
            "filter refused the prompt",
        ),
        ("Unknown field: what", "", "Check the model's name"),
    ] {
        let body = refused(message, code);
        let server = Server::start().await;
        let failed = reply_to(&server.model(), &server, &closing("400 Bad Request", &body)).await;
        let failed = failed.expect_err(message);
        assert!(failed.text.contains(advice), "{}", failed.text);
        // The same error in an answer that reports success.
        let failed = chat_body(&body).await.expect_err(message);
        assert!(failed.text.contains(advice), "{}", failed.text);
    }
    let wrong = r#"{"error":"Unexpected endpoint or method. (POST /chat/completions). Returning 200 anyway"}"#;
    for failed in [chat_body(wrong).await, chat_stream(&format!("data: {wrong}\n\n")).await] {
        let failed = failed.expect_err("a wrong path");
        assert!(
            failed.text.ends_with("Check the base URL (from the shell); most end in /v1."),
            "{}",
            failed.text
        );
    }
    let server = Server::start().await;
    let failed = reply_to(&server.model(), &server, &closing("405 Method Not Allowed", "{}")).await;
    let failed = failed.expect_err("a wrong path");
    assert!(failed.text.contains("Check the base URL (from the shell)"), "{}", failed.text);
}

/// A JSON document in which objects can have fields that serde_json does not write.
#[derive(Clone, Debug)]
enum Document {
    Object(Vec<(String, Document)>),
    List(Vec<Document>),
    Other(String),
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        match value {
            Value::Object(fields) => Self::Object(
                fields.iter().map(|(name, value)| (name.clone(), value.into())).collect(),
            ),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Values of any type, some of which serde_json cannot hold.
const ANY: [&str; 16] = [
    "null",
    "false",
    "true",
    "0",
    "-1",
    "2.5",
    "1e400",
    "\"\"",
    "\"x\"",
    "\"\\ud83d\"",
    "[]",
    "{}",
    "[null]",
    "[1,[2]]",
    "{\"a\":{\"b\":1}}",
    "123456789012345678901234567890",
];
/// Values that say nothing.
const NOTHING: [&str; 5] = ["null", "false", "\"\"", "[]", "{}"];
/// Fields that no reply needs.
const NEEDLESS: [&str; 12] = [
    "x",
    "id",
    "object",
    "created",
    "model",
    "usage",
    "logprobs",
    "service_tier",
    "annotations",
    "stop_details",
    "system_fingerprint",
    "index2",
];
/// Fields that a reply needs, or that report an error.
const NEEDED: [&str; 9] = [
    "content",
    "tool_calls",
    "refusal",
    "error",
    "text",
    "partial_json",
    "finish_reason",
    "delta",
    "message",
];

/// Random choices.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn next(&mut self, of: usize) -> usize {
        self.0.next().map_or(0, |byte| usize::from(*byte) % of)
    }
}

impl Document {
    /// Adds fields that change nothing.
    fn make_odd(&mut self, choices: &mut Choices<'_>) {
        match self {
            Self::Object(fields) => {
                fields.iter_mut().for_each(|(_, value)| value.make_odd(choices));
                for _ in 0..choices.next(3) {
                    let own =
                        fields.get(choices.next(fields.len() + 1)).map(|(name, _)| name.clone());
                    let (name, value) = match (own, choices.next(3)) {
                        // The last value of a name counts.
                        (Some(own), 0) => (own, ANY[choices.next(ANY.len())]),
                        (_, 1) => {
                            let name = NEEDED[choices.next(NEEDED.len())];
                            (name.to_owned(), NOTHING[choices.next(NOTHING.len())])
                        }
                        _ => {
                            let name = NEEDLESS[choices.next(NEEDLESS.len())];
                            (name.to_owned(), ANY[choices.next(ANY.len())])
                        }
                    };
                    fields.insert(0, (name, Self::Other(value.to_owned())));
                }
            }
            Self::List(items) => {
                items.iter_mut().for_each(|item| item.make_odd(choices));
                if choices.next(3) == 0 {
                    items.insert(0, Self::Other("null".to_owned()));
                }
            }
            Self::Other(_) => {}
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Object(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| format!("\"{name}\": {}", value.json()));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            Self::List(items) => {
                format!("[{}]", items.iter().map(Self::json).collect::<Vec<_>>().join(","))
            }
            Self::Other(json) => json.clone(),
        }
    }
}

fn odd(value: &Value, choices: &mut Choices<'_>) -> String {
    let mut document = Document::from(value);
    document.make_odd(choices);
    let mark = if choices.next(4) == 0 { "\u{feff}" } else { "" };
    format!("{mark}{}", document.json())
}

/// A reply as a server could send it in either API.
#[derive(Clone, Debug)]
struct Said {
    pieces: Vec<String>,
    calls: Vec<(String, String)>,
}

impl Said {
    fn text(&self) -> String {
        self.pieces.concat()
    }

    fn finish(&self, with_calls: &'static str, without: &'static str) -> &'static str {
        if self.calls.is_empty() { without } else { with_calls }
    }

    fn chat_calls(&self) -> Vec<Value> {
        let calls = self.calls.iter().enumerate().map(|(nth, (name, arguments))| {
            let function = json!({ "name": name, "arguments": arguments });
            json!({ "index": nth, "id": format!("c{nth}"), "type": "function", "function": function })
        });
        calls.collect()
    }

    fn chat_body(&self) -> Value {
        let mut message = json!({ "role": "assistant", "content": self.text() });
        if !self.calls.is_empty() {
            message["tool_calls"] = self.chat_calls().into();
        }
        let finish = self.finish("tool_calls", "stop");
        json!({ "choices": [{ "index": 0, "message": message, "finish_reason": finish }] })
    }

    fn chat_events(&self) -> Vec<Value> {
        let event = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
        let mut events: Vec<Value> =
            self.pieces.iter().map(|piece| event(json!({ "content": piece }))).collect();
        events.extend(
            self.chat_calls().into_iter().map(|call| event(json!({ "tool_calls": [call] }))),
        );
        let finish = self.finish("tool_calls", "stop");
        events.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }));
        events
    }

    fn blocks(&self) -> Vec<Value> {
        let mut blocks = vec![json!({ "type": "text", "text": self.text() })];
        blocks.extend(self.calls.iter().enumerate().map(|(nth, (name, arguments))| {
            let input: Value = serde_json::from_str(arguments).expect("an object");
            json!({ "type": "tool_use", "id": format!("c{nth}"), "name": name, "input": input })
        }));
        blocks
    }

    fn message_events(&self) -> Vec<Value> {
        let mut events = vec![json!({ "type": "message_start", "message": { "content": [] } })];
        let start = |index: usize, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
        let part = |index: usize, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.push(start(0, json!({ "type": "text", "text": "" })));
        let text = |piece: &String| part(0, json!({ "type": "text_delta", "text": piece }));
        events.extend(self.pieces.iter().map(text));
        for (nth, (name, arguments)) in self.calls.iter().enumerate() {
            let id = format!("c{nth}");
            events.push(start(nth + 1, json!({ "type": "tool_use", "id": id, "name": name })));
            events.push(part(nth + 1, json!({ "partial_json": arguments })));
        }
        let reason = self.finish("tool_use", "end_turn");
        events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason } }));
        events.push(json!({ "type": "message_stop" }));
        events
    }

    fn told(&self) -> Vec<String> {
        let calls = self.calls.iter().enumerate();
        calls.map(|(nth, (name, arguments))| format!("c{nth} {name} {arguments}")).collect()
    }
}

fn said() -> impl Strategy<Value = Said> {
    let pieces = prop::collection::vec("[a-z ü👍\"\\\\{}]{1,6}", 0..4);
    let arguments = prop::sample::select(vec!["{}", "{\"a\":\"b\"}", "{\"a\":[1,null]}"]);
    let calls = prop::collection::vec(("[a-z_]{1,8}", arguments.prop_map(str::to_owned)), 0..3);
    (pieces, calls).prop_map(|(pieces, calls)| Said { pieces, calls })
}

/// A stream of these events, with odd fields in them and odd events between them.
fn odd_stream(events: &[Value], choices: &mut Choices<'_>) -> String {
    const BETWEEN: [&str; 7] = [
        "",
        ": alive\n\n",
        "data:\n\n",
        "data: null\n\n",
        "data: {}\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "event: x\ndata: {\"type\":\"x\",\"delta\":7,\"index\":\"y\"}\n\n",
    ];
    let mut stream = String::new();
    for event in events {
        stream.push_str(BETWEEN[choices.next(BETWEEN.len())]);
        stream.push_str(&format!("data: {}\n\n", odd(event, choices)));
    }
    stream
}

fn same(reply: &Reply, said: &Said, finish: &str, sent: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(&*reply.text, said.text(), "{}", sent);
    prop_assert_eq!(told(reply), said.told(), "{}", sent);
    prop_assert_eq!(reply.finish.as_deref(), Some(finish), "{}", sent);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn odd_fields_change_no_reply(
        said in said(),
        choices in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut choices = Choices(choices.iter());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let finish = said.finish("tool_calls", "stop");
            let body = odd(&said.chat_body(), &mut choices);
            let reply = chat_body(&body).await;
            let reply = reply.map_err(|failed| TestCaseError::fail(format!("{}: {body}", failed.text)))?;
            same(&reply, &said, finish, &body)?;

            let stream = odd_stream(&said.chat_events(), &mut choices) + DONE;
            let reply = chat_stream(&stream).await;
            let reply = reply.map_err(|failed| TestCaseError::fail(format!("{}: {stream}", failed.text)))?;
            same(&reply, &said, finish, &stream)?;

            let finish = said.finish("tool_use", "end_turn");
            let body = odd(&json!({ "content": said.blocks(), "stop_reason": finish }), &mut choices);
            let reply = messages_body(&body).await;
            let reply = reply.map_err(|failed| TestCaseError::fail(format!("{}: {body}", failed.text)))?;
            prop_assert_eq!(&*reply.text, said.text(), "{}", body);
            prop_assert_eq!(reply.tool_calls.len(), said.calls.len(), "{}", body);
            prop_assert_eq!(reply.finish.as_deref(), Some(finish), "{}", body);

            let stream = odd_stream(&said.message_events(), &mut choices);
            let reply = messages_stream(&stream).await;
            let reply = reply.map_err(|failed| TestCaseError::fail(format!("{}: {stream}", failed.text)))?;
            same(&reply, &said, finish, &stream)?;
            Ok(())
        })?;
    }
}
