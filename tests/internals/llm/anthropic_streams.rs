//! The Messages API over real sockets: what only its events have.

use crate::log::event::{FailureClass, Usage};
use crate::model::anthropic::{EVENT_CAP, TEXT_CAP};
use crate::support::api::*;
use crate::support::messages::*;
use serde_json::json;

#[tokio::test]
async fn split_text_reads_same() {
    let mut kept = Kept::new(Api::Messages).await;
    let unsplit = kept.reply(BASIC.as_bytes(), None).await;
    assert_eq!((&*unsplit.text, unsplit.finish.as_deref()), (SAID, Some("end_turn")));
    let usage = Usage { cached_tokens: 7, cache_write_tokens: 5, ..Usage::new(23, 6) };
    assert_eq!(unsplit.usage, Some(usage));
    for cut in 1..BASIC.len() {
        let mut split = kept.reply(BASIC.as_bytes(), Some(cut)).await;
        split.first_token_ms = unsplit.first_token_ms;
        assert_eq!(split, unsplit, "cut at {cut}");
    }
}

/// `tool_use_response.txt`, with a second call beside the first, their pieces in turns.
fn calling() -> String {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "get_weather", "caller": { "type": "direct" }, "input": {} });
    let json = |index: u32, piece: &str| {
        block_delta(index, &json!({ "type": "input_json_delta", "partial_json": piece }))
    };
    [
        saying("I'll check the weather. "),
        block_start(1, &call("toolu_01NRLabs")),
        json(1, ""),
        json(1, "{\"locati"),
        block_start(2, &call("toolu_02é👍")),
        json(2, "{\"location\": \"Gr"),
        json(1, "on\": \"P"),
        json(2, "ün 👍 \\\""),
        json(1, "aris\"}"),
        block_stop(1),
        json(2, "\"}"),
        block_stop(2),
        block_start(3, &call("toolu_03")),
        block_stop(3),
        ending("tool_use"),
    ]
    .concat()
}

#[tokio::test]
async fn split_calls_read_same() {
    let stream = calling().into_bytes();
    let mut kept = Kept::new(Api::Messages).await;
    let unsplit = kept.reply(&stream, None).await;
    assert_eq!(
        told(&unsplit),
        [
            r#"toolu_01NRLabs get_weather {"location": "Paris"}"#,
            r#"toolu_02é👍 get_weather {"location": "Grün 👍 \""}"#,
            "toolu_03 get_weather {}",
        ]
    );
    assert_eq!(&*unsplit.text, "I'll check the weather. ");
    assert_eq!((unsplit.finish.as_deref(), &unsplit.blocks), (Some("tool_use"), &None));
    for cut in 1..stream.len() {
        let split = kept.reply(&stream, Some(cut)).await;
        assert_eq!((&split.tool_calls, &split.text), (&unsplit.tool_calls, &unsplit.text), "{cut}");
    }
}

#[tokio::test]
async fn streams_that_are_odd_and_whole() {
    // `refusal_response.txt`, shortened
    let refusal = event(&json!({
        "type": "message_delta",
        "delta": { "stop_reason": "refusal", "stop_sequence": null, "stop_details": {
            "type": "refusal", "category": "cyber",
            "explanation": "This request was refused due to policy.",
        } },
        "usage": { "output_tokens": 0 },
    }));
    let stop = event(&json!({ "type": "message_stop" }));
    let unnamed = (saying("a") + &ending("end_turn")).lines().fold(String::new(), |all, line| {
        if line.starts_with("event:") { all } else { all + line + "\r\n" }
    });
    for (stream, text, finish) in [
        (message_start() + &refusal + &stop, "", Some("refusal: This request was refused due to policy.")),
        (saying("a") + &ending("max_tokens"), "a", Some("max_tokens")),
        (saying("a") + &ending("stop_sequence"), "a", Some("stop_sequence")),
        // without names of events, with names alone, with a [DONE], without the last empty line
        (unnamed, "a", Some("end_turn")),
        (
            "event: message_start\ndata: {\"message\":{}}\n\nevent: content_block_delta\ndata: {\"delta\":{\"text\":\"a\"}}\n\nevent: message_stop\ndata: {}\n\n".to_owned(),
            "a",
            None,
        ),
        (saying("a") + "data: [DONE]\n\n", "a", None),
        (saying("a") + "data: {\"type\":\"message_stop\"}", "a", None),
        // no end, but a reason
        (saying("a") + ending("end_turn").trim_end_matches(&*stop), "a", Some("end_turn")),
        // events, deltas and blocks that are new
        (
            message_start()
                + "event: new\ndata: {\"type\":\"new\",\"delta\":7,\"index\":\"x\"}\n\n"
                + &block_start(0, &json!({ "type": "new_block", "text": "no" }))
                + &block_delta(0, &json!({ "type": "new_delta", "what": 1 }))
                + &block_start(1, &json!({ "type": "text", "text": "a" }))
                + &block_delta(1, &json!({ "type": "citations_delta", "citation": {} }))
                + &ending("end_turn"),
            "a",
            Some("end_turn"),
        ),
        // nothing at all was said, and what comes after the end is not read
        (message_start() + &ending("end_turn") + &saying("b"), "", Some("end_turn")),
    ] {
        let reply = Api::Messages.streamed(&stream).await.expect(&stream);
        assert_eq!((&*reply.text, reply.finish.as_deref()), (text, finish), "{stream}");
    }
}

#[tokio::test]
async fn error_type_sets_failure_class() {
    for (kind, class, status) in [
        ("overloaded_error", FailureClass::Status, Some(529)),
        ("api_error", FailureClass::Status, Some(500)),
        ("rate_limit_error", FailureClass::RateLimited, Some(429)),
        ("authentication_error", FailureClass::Auth, Some(401)),
        ("what_is_new", FailureClass::BadResponse, None),
    ] {
        let failing = format!("event: error\ndata: {}\n\n", error(kind, "Overloaded"));
        let failed = Api::Messages.streamed(saying("Grün") + &failing).await.expect_err(kind);
        assert_eq!((failed.class, failed.status), (class, status), "{kind}");
        assert_eq!(failed.partial.as_deref(), Some("Grün"), "{kind}");
        assert!(failed.text.contains("in event 5 of the stream"), "{}", failed.text);
        assert!(failed.text.contains(": Overloaded."), "{}", failed.text);
        // as the first event, and as one that is not followed by an empty line
        let failed = Api::Messages.streamed(failing.trim_end()).await.expect_err(kind);
        assert_eq!((failed.class, failed.status, failed.partial), (class, status, None), "{kind}");
    }
    let event = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":\"a\"}\n\n";
    let failed = Api::Messages.streamed(saying("Grün") + event).await.expect_err(event);
    assert_eq!(failed.class, FailureClass::BadResponse);
    assert_eq!(failed.partial.as_deref(), Some("Grün"));
    let words = "sent an invalid message in event 5 of the stream (`delta`: invalid type";
    assert!(failed.text.contains(words), "{}", failed.text);
    // an end without a message
    for stream in ["event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"] {
        let failed = Api::Messages.streamed(stream).await.expect_err(stream);
        assert_eq!(failed.class, FailureClass::BadResponse);
        assert!(failed.text.contains("without a message"), "{}", failed.text);
    }
}

#[tokio::test]
async fn caps_endless_blocks() {
    let long = "x".repeat(1 << 12);
    let thinking = block_delta(1, &json!({ "type": "thinking_delta", "thinking": long }));
    let empty = block_start(1, &json!({ "type": "new" }));
    for part in [thinking, empty] {
        let (failed, sent) = Api::Messages.endless(&saying("so"), &part).await;
        assert_eq!(failed.class, FailureClass::TooLarge, "{}", failed.text);
        assert!(failed.text.contains("its cap of 1 MiB"), "{}", failed.text);
        assert!(failed.partial.is_some_and(|partial| partial.starts_with("so")));
        assert!(sent >= TEXT_CAP / 2 && EVENT_CAP == 1 << 20);
    }
}

#[tokio::test]
async fn calls_that_cannot_be_taken() {
    let call = |at: u32, name: &str| {
        block_start(
            at,
            &json!({ "type": "tool_use", "id": format!("t{at}"), "name": name, "input": {} }),
        )
    };
    let many = (1..66).map(|at| call(at, "a")).collect::<String>();
    let unannounced = block_delta(3, &json!({ "type": "input_json_delta", "partial_json": "{}" }));
    for (calls, words) in [
        (call(1, ""), "sent a tool call without a tool name. Try"),
        (unannounced, "without a tool name. Try"),
        (call(1, &"n".repeat(257)), "with a name of more than 256 bytes. Try"),
        (many, "sent more than 64 tool calls in one reply. Try"),
    ] {
        let failed = Api::Messages
            .streamed(saying("so") + &calls + &ending("tool_use"))
            .await
            .expect_err(words);
        assert_eq!(
            (failed.class, failed.partial.as_deref()),
            (FailureClass::BadResponse, Some("so"))
        );
        assert!(failed.text.contains(words), "{}", failed.text);
    }
}
