//! The Messages API over real sockets: replies that come as events.

use crate::log::event::kind::{FailureClass, Usage};
use crate::model::ChatModel;
use crate::model::anthropic::{EVENT_CAP, TEXT_CAP};
use crate::support::messages::*;
use crate::support::wire::*;
use serde_json::json;

#[tokio::test]
async fn pieces_come_as_they_are_sent() {
    let server = Server::start().await;
    let model = anthropic(&server, true);
    let (heard, mut pieces) = Heard::new();
    let request = ask(false);
    let (reply, asking) = both(model.chat(&request, &heard), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(CHUNKED_HEAD).await;
        connection
            .send(chunk(
                &(message_start() + &block_start(0, &json!({ "type": "text", "text": "" }))),
            ))
            .await;
        // Each piece is heard before the next one is sent.
        for text in ["Gr", "ün", " 👍"] {
            connection.send(chunk(&text_delta(text))).await;
            assert_eq!(pieces.recv().await.as_deref(), Some(text));
        }
        connection.send(chunk(&(block_stop(0) + &ending("end_turn")))).await;
        connection.send("0\r\n\r\n").await;
        asking
    })
    .await;
    assert_eq!(asking.body["stream"], json!(true));
    assert_eq!(asking.body.get("stream_options"), None);
    let reply = reply.expect("a reply");
    assert_eq!((&*reply.text, reply.finish.as_deref()), ("Grün 👍", Some("end_turn")));
    assert_eq!(reply.usage, Some(Usage::new(9, 5)));
    assert_eq!(reply.model.as_deref(), Some("m-1"));
    assert!(reply.first_token_ms.is_some());
    assert_eq!(reply.blocks, None);
}

#[tokio::test]
async fn split_text_reads_same() {
    let mut kept = Kept::new().await;
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
    let mut kept = Kept::new().await;
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
        let reply = streamed(&stream).await.expect(&stream);
        assert_eq!((&*reply.text, reply.finish.as_deref()), (text, finish), "{stream}");
    }
    // A server that does not stream is understood.
    let server = Server::start().await;
    let model = anthropic(&server, true);
    let (reply, _) = answered(&server, &model, &ask(false), closing("200 OK", MESSAGE)).await;
    assert_eq!(&*reply.expect("a reply").text, "hello");
}

#[tokio::test]
async fn lone_surrogates_become_replacement_characters() {
    let half = |text: &str| {
        let delta = format!(r#"{{"type":"text_delta","text":"{text}"}}"#);
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{delta}}}\n\n"
        )
    };
    for (halves, text) in [
        (&[r" \ud83d", r"\udc4d b"][..], "Grün \u{fffd}\u{fffd} b"),
        (&[r"\ud83d", "b"], "Grün\u{fffd}b"),
        (&[r"\ud83d"], "Grün\u{fffd}"),
    ] {
        let halves: String = halves.iter().map(|text| half(text)).collect();
        let reply = streamed(saying("Grün") + &halves + &ending("end_turn")).await.expect(text);
        assert_eq!((&*reply.text, reply.finish.as_deref()), (text, Some("end_turn")));
    }
    let whole = r#"{"type":"message","content":[{"type":"text","text":"a \ud83d"}],"stop_reason":"end_turn"}"#;
    let server = Server::start().await;
    let model = anthropic(&server, false);
    let (reply, _) = answered(&server, &model, &ask(false), closing("200 OK", whole)).await;
    assert_eq!(&*reply.expect("a reply").text, "a \u{fffd}");
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
        let failed = streamed(saying("Grün") + &failing).await.expect_err(kind);
        assert_eq!((failed.class, failed.status), (class, status), "{kind}");
        assert_eq!(failed.partial.as_deref(), Some("Grün"), "{kind}");
        assert!(failed.text.contains("in event 5 of the stream"), "{}", failed.text);
        assert!(failed.text.contains(": Overloaded."), "{}", failed.text);
        // as the first event, and as one that is not followed by an empty line
        let failed = streamed(failing.trim_end()).await.expect_err(kind);
        assert_eq!((failed.class, failed.status, failed.partial), (class, status, None), "{kind}");
    }
    for (event, words) in [
        (
            "event: error\ndata: overloaded\n\n",
            "sent an error in event 5 of the stream: overloaded",
        ),
        (
            "data: {\"error\":{\"message\":\"oh\"}}\n\n",
            "sent an error in event 5 of the stream: oh",
        ),
        ("data: <html>\n\n", "(expected value at line 1 column 1): <html>"),
        (
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":\"a\"}\n\n",
            "sent an invalid message in event 5 of the stream (`delta`: invalid type",
        ),
    ] {
        let failed = streamed(saying("Grün") + event).await.expect_err(event);
        assert_eq!(failed.class, FailureClass::BadResponse, "{event}");
        assert_eq!(failed.partial.as_deref(), Some("Grün"), "{event}");
        assert!(failed.text.contains(words), "{}", failed.text);
    }
    // an end without a message
    for stream in ["event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"] {
        let failed = streamed(stream).await.expect_err(stream);
        assert_eq!(failed.class, FailureClass::BadResponse);
        assert!(failed.text.contains("without a message"), "{}", failed.text);
    }
}

#[tokio::test]
async fn broken_stream_keeps_partial_text() {
    let whole = saying("Grün") + &text_delta(" and more");
    let first = saying("Grün").len();
    for at in [first, first + 3, first + 60, whole.len() - 1] {
        let failed = streamed(&whole[..at]).await.expect_err("a failure");
        assert_eq!(failed.class, FailureClass::Reset, "cut at {at}");
        assert_eq!(failed.partial.as_deref().map(|text| &text[..5]), Some("Grün"), "cut at {at}");
    }
    // before anything was said, and within a call
    let failed = streamed(message_start()).await.expect_err("a failure");
    assert_eq!((failed.class, failed.partial), (FailureClass::Reset, None));
    let call = block_start(1, &json!({ "type": "tool_use", "id": "t", "name": "a", "input": {} }));
    let failed = streamed(saying("so") + &call).await.expect_err("a failure");
    assert_eq!((failed.class, failed.partial.as_deref()), (FailureClass::Reset, Some("so")));

    // a reset in the middle
    let server = Server::start().await;
    let model = anthropic(&server, true);
    let (heard, mut pieces) = Heard::new();
    let request = ask(false);
    let (failed, ()) = both(model.chat(&request, &heard), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(format!("{CHUNKED_HEAD}{}", chunk(&saying("half")))).await;
        assert_eq!(pieces.recv().await.as_deref(), Some("half"));
        connection.reset();
    })
    .await;
    let failed = failed.expect_err("a failure");
    check_text(&failed);
    assert_eq!((failed.class, failed.partial.as_deref()), (FailureClass::Reset, Some("half")));
}

#[tokio::test]
async fn caps_endless_stream() {
    let long = "x".repeat(1 << 12);
    let thinking = block_delta(1, &json!({ "type": "thinking_delta", "thinking": long }));
    let json = block_delta(1, &json!({ "type": "input_json_delta", "partial_json": long }));
    let call = block_start(1, &json!({ "type": "tool_use", "id": "t", "name": "a", "input": {} }));
    let empty = block_start(1, &json!({ "type": "new" }));
    for (before, part, words) in [
        (String::new(), text_delta(&long), "its cap of 256 KiB"),
        (call, json, "its cap of 256 KiB"),
        (String::new(), thinking, "its cap of 1 MiB"),
        (String::new(), empty, "its cap of 1 MiB"),
        ("data: ".to_owned(), long.clone(), "its cap of 1 MiB"),
    ] {
        let server = Server::start().await;
        let model = anthropic(&server, true);
        let (failed, sent) = both(call_once(&model), async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(format!("{STREAM_HEAD}{}{before}", saying("so"))).await;
            connection.send_without_end(part.as_bytes()).await
        })
        .await;
        let failed = failed.expect_err("a failure");
        check_text(&failed);
        assert_eq!(failed.class, FailureClass::TooLarge, "{}", failed.text);
        assert!(failed.text.contains(words), "{}", failed.text);
        assert!(failed.partial.is_some_and(|partial| partial.starts_with("so")));
        assert!(sent >= TEXT_CAP / 2 && EVENT_CAP == 1 << 20);
    }
}

async fn call_once(
    model: &dyn ChatModel,
) -> Result<crate::log::event::kind::Reply, Box<crate::log::event::kind::AttemptFailed>> {
    call(model).await
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
        let failed = streamed(saying("so") + &calls + &ending("tool_use")).await.expect_err(words);
        assert_eq!(
            (failed.class, failed.partial.as_deref()),
            (FailureClass::BadResponse, Some("so"))
        );
        assert!(failed.text.contains(words), "{}", failed.text);
    }
}

#[tokio::test]
async fn redacts_echoed_key() {
    let (start, end) = KEY.split_at(7);
    let json =
        |piece: &str| block_delta(1, &json!({ "type": "input_json_delta", "partial_json": piece }));
    let stream = [
        saying(&format!("it is {start}")),
        text_delta(&format!("{end}, so")),
        block_start(1, &json!({ "type": "tool_use", "id": KEY, "name": KEY, "input": {} })),
        json(&format!("{{\"k\":\"{start}")),
        json(&format!("{end}\"}}")),
        ending("tool_use"),
    ]
    .concat();
    let server = Server::start().await;
    let model = anthropic(&server, true);
    let (heard, mut pieces) = Heard::new();
    let request = ask(false);
    let (reply, ()) = both(model.chat(&request, &heard), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(format!("{STREAM_HEAD}{stream}")).await;
    })
    .await;
    let reply = reply.expect("a reply");
    assert_eq!(&*reply.text, "it is ***, so");
    assert_eq!(told(&reply), [r#"*** *** {"k":"***"}"#]);
    drop(heard);
    let mut all = String::new();
    while let Some(piece) = pieces.recv().await {
        all.push_str(&piece);
    }
    assert_eq!(all, "it is ***, so");

    let echo = error("api_error", &format!("bad key {KEY}"));
    let failed = streamed(format!("{}event: error\ndata: {echo}\n\n", saying(start))).await;
    let failed = failed.expect_err("a failure");
    assert!(failed.text.contains("bad key ***"), "{}", failed.text);
    assert_eq!(failed.partial.as_deref(), Some("***"));
}
