//! The chat model over real sockets: replies that come as server-sent events.

use crate::log::event::kind::{AttemptFailed, FailureClass, Reply, Usage};
use crate::model::ChatModel;
use crate::model::openai::{EVENT_CAP, TEXT_CAP};
use crate::support::wire::*;
use serde_json::json;

#[tokio::test]
async fn pieces_come_as_they_are_sent() {
    let server = Server::start().await;
    let model = server.streaming();
    let (heard, mut pieces) = Heard::new();
    let request = ask(true);
    let (reply, asking) = both(model.chat(&request, &heard), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(CHUNKED_HEAD).await;
        connection.send(chunk(": keep-alive\n\n")).await;
        connection
            .send(chunk("data: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"))
            .await;
        // Each piece is heard before the next one is sent.
        for text in ["{\"stance\":", " \"grün\"", "}"] {
            connection.send(chunk(&piece(text))).await;
            assert_eq!(pieces.recv().await.as_deref(), Some(text));
        }
        connection.send(chunk(ENDING)).await;
        connection.send("0\r\n\r\n").await;
        asking
    })
    .await;
    assert_eq!(asking.body["stream"], json!(true));
    assert_eq!(asking.body["stream_options"], json!({ "include_usage": true }));
    let reply = reply.expect("a reply");
    assert_eq!(&*reply.text, "{\"stance\": \"grün\"}");
    assert_eq!(reply.usage, Some(Usage::new(7, 2)));
    assert_eq!(reply.model.as_deref(), Some("m-1"));
    assert_eq!(reply.finish.as_deref(), Some("stop"));
    assert!(reply.first_token_ms.is_some());
}

/// A call of the streaming model that is answered with these bytes, after which the server closes.
async fn streamed(bytes: impl AsRef<[u8]>) -> Result<Reply, AttemptFailed> {
    let server = Server::start().await;
    server.one(&server.streaming(), bytes.as_ref()).await.map_err(|failed| {
        check_text(&failed);
        *failed
    })
}

#[tokio::test]
async fn streams_that_are_odd_and_whole() {
    for (stream, text, finish) in [
        // without usage, without a reason, other line ends, without a blank after the colon
        (
            "data:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\ndata:[DONE]\r\n\r\n",
            "a",
            None,
        ),
        // the last event without its empty line, and without even a line end
        (&format!("{}data: [DONE]\n", piece("a")), "a", None),
        (&format!("{}data: [DONE]", piece("a")), "a", None),
        // no [DONE], but a reason
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n",
            "a",
            Some("stop"),
        ),
        // nothing at all was said
        (ENDING, "", Some("stop")),
        // what comes after the end is not read
        (&format!("{}data: [DONE]\n\n{}", piece("a"), piece("b")), "a", None),
        // message beside delta, nulls
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"message\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null,\"error\":null}\n\ndata: [DONE]\n\n",
            "a",
            None,
        ),
        (
            "data: {\"choices\":[{\"delta\":{\"refusal\":\"I will \"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"refusal\":\"not.\"}}]}\n\ndata: [DONE]\n\n",
            "",
            Some("refusal: I will not."),
        ),
    ] {
        let reply = streamed(format!("{STREAM_HEAD}{stream}")).await.expect(stream);
        assert_eq!((&*reply.text, reply.finish.as_deref()), (text, finish), "{stream}");
    }
}

#[tokio::test]
async fn reads_unstreamed_reply() {
    let reply = streamed(json("200 OK", HELLO)).await.expect("a reply");
    assert_eq!((&*reply.text, reply.first_token_ms), ("hello", None));
    // nor need either say what it sends
    let reply = streamed(answer("200 OK", &[], HELLO)).await.expect("a reply");
    assert_eq!(&*reply.text, "hello");
    let stream = piece("hello") + ENDING;
    let plain = answer("200 OK", &["content-type: text/plain"], &stream);
    assert_eq!(&*streamed(plain).await.expect("a reply").text, "hello");
    // A proxy may name the type of the request, for any content.
    let wrong = answer("200 OK", &["content-type: application/json"], &stream);
    assert_eq!(&*streamed(wrong).await.expect("a reply").text, "hello");
    let wrong = answer("200 OK", &["content-type: text/event-stream"], HELLO);
    assert_eq!(&*streamed(wrong).await.expect("a reply").text, "hello");
    // and one that streams unasked
    let server = Server::start().await;
    let unasked = format!("{STREAM_HEAD}{stream}");
    let reply = server.one(&server.model(), unasked.as_bytes()).await.expect("a reply");
    assert_eq!(&*reply.text, "hello");
}

/// A key that is sent back encoded is found too, in whole and in pieces.
#[tokio::test]
async fn redacts_encoded_keys() {
    let percent = KEY.replace('-', "%2D");
    let spelled = [("c2stdGVzdC00ZjlhOGM3YjZkNWU=", "***="), (&percent, "***")];
    for (text, kept) in spelled {
        let (said, kept) = (format!("it is {text} and"), format!("it is {kept} and"));
        let server = Server::start().await;
        let body = json!({ "choices": [{ "message": { "content": said } }] });
        let whole = answer("200 OK", &["connection: close"], &body.to_string());
        let reply = server.one(&server.model(), &whole).await.expect(text);
        assert_eq!(&*reply.text, kept, "whole");

        let body = json!({ "error": { "message": said } });
        let refused = answer("400 Bad Request", &["connection: close"], &body.to_string());
        let failed = server.one(&server.model(), &refused).await.expect_err(text);
        assert!(failed.text.contains("it is ") && failed.text.contains("***"), "{}", failed.text);
        assert!(!failed.text.contains(&text[4..16]), "{}", failed.text);

        let pieces: String = said.chars().map(|letter| piece(&letter.to_string())).collect();
        let (heard, mut pieces_heard) = Heard::new();
        let (model, request) = (server.streaming(), ask(true));
        let (reply, ()) = both(model.chat(&request, &heard), async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(format!("{STREAM_HEAD}{pieces}{ENDING}")).await;
        })
        .await;
        assert_eq!(&*reply.expect(text).text, kept, "streamed");
        drop(heard);
        let mut all = String::new();
        while let Some(piece) = pieces_heard.recv().await {
            all.push_str(&piece);
        }
        assert!(all.starts_with("it is ") && all.ends_with(" and"), "{all}");
        assert!(all.contains("***") && !all.contains(&text[4..12]), "{all}");
        // Cut off in the middle, the part is kept without it.
        let half: String =
            said[..6 + text.len() / 2].chars().map(|c| piece(&c.to_string())).collect();
        let cut = server.one(&model, format!("{STREAM_HEAD}{half}").as_bytes()).await;
        let partial = cut.expect_err("cut off").partial.expect("a part");
        assert!(partial.ends_with("***") && partial.len() < 14, "{partial}");
    }
}

/// A reply without a choice is no chat completion, however it comes.
#[tokio::test]
async fn reply_without_choice_fails() {
    let counted =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":0}}\n\n";
    for stream in [
        "data: {\"choices\":[]}\n\ndata: [DONE]\n\n".to_owned(),
        format!("{counted}data: [DONE]\n\n"),
        format!("{counted}data: [DONE]"),
        "data: [DONE]\n\n".to_owned(),
    ] {
        let failed = streamed(format!("{STREAM_HEAD}{stream}")).await.expect_err(&stream);
        assert_eq!((failed.class, failed.partial), (FailureClass::BadResponse, None), "{stream}");
        assert!(failed.text.contains("ended the stream without a choice"), "{}", failed.text);
    }
    let server = Server::start().await;
    let whole = json("200 OK", "{\"choices\":[]}");
    let failed = server.one(&server.model(), &whole).await.expect_err("no choice");
    assert_eq!(failed.class, FailureClass::BadResponse);
}

#[tokio::test]
async fn cut_stream_keeps_partial_text() {
    let whole = format!("{}{}", piece("grü"), piece("n 👍 and more"));
    let second = piece("grü").len();
    let place = |text: &str| whole.find(text).expect("it is there");
    // in the middle of a token, of a character, of a field's name, and between events
    for at in [place("more") + 2, place("👍") + 2, second + 3, second] {
        let mut bytes = STREAM_HEAD.as_bytes().to_vec();
        bytes.extend_from_slice(&whole.as_bytes()[..at]);
        let failed = streamed(bytes).await.expect_err("a failure");
        assert_eq!(failed.class, FailureClass::Reset, "cut at {at}");
        assert_eq!(failed.partial.as_deref(), Some("grü"), "cut at {at}");
        assert!(failed.text.contains("after 3 characters"), "{}", failed.text);
    }
    // chunks that stop without their end: the connection broke
    let failed = streamed(format!("{CHUNKED_HEAD}{}", chunk(&piece("a")))).await;
    let failed = failed.expect_err("a failure");
    assert_eq!((failed.class, failed.partial.as_deref()), (FailureClass::Reset, Some("a")));
    // before anything was said
    let failed = streamed(STREAM_HEAD).await.expect_err("a failure");
    assert_eq!((failed.class, failed.partial), (FailureClass::Reset, None));
}

#[tokio::test]
async fn stream_reset_keeps_partial_text() {
    let server = Server::start().await;
    let model = server.streaming();
    let (heard, mut pieces) = Heard::new();
    let request = ask(true);
    let (failed, ()) = both(model.chat(&request, &heard), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(format!("{CHUNKED_HEAD}{}", chunk(&piece("half")))).await;
        assert_eq!(pieces.recv().await.as_deref(), Some("half"));
        connection.reset();
    })
    .await;
    let failed = failed.expect_err("a failure");
    check_text(&failed);
    assert_eq!((failed.class, failed.partial.as_deref()), (FailureClass::Reset, Some("half")));
    assert!(
        failed.text.contains("in the middle of the answer, after 4 characters"),
        "{}",
        failed.text
    );
}

#[tokio::test]
async fn bad_event_names_its_position() {
    for (event, words) in [
        (
            "data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
            "sent an error in event 2 of the stream: overloaded. Try",
        ),
        (
            "event: error\ndata: {\"message\":\"overloaded\"}\n\n",
            "in event 2 of the stream: overloaded. Try",
        ),
        ("event: error\ndata: overloaded\n\n", "in event 2 of the stream: overloaded. Try"),
        ("data: {\"error\":\"overloaded\"}", "in event 2 of the stream: overloaded. Try"),
        (
            "data: {\"choices\":[{\"delta\":\n\n",
            "in event 2 of the stream (EOF while parsing a value at line 1 column 21)",
        ),
        ("data: <html>\n\n", "(expected value at line 1 column 1): <html>"),
        ("data: \u{1b}[2J\n\n", "␛[2J"),
    ] {
        let stream = format!("{STREAM_HEAD}{}{event}", piece("grün"));
        let failed = streamed(stream).await.expect_err("a failure");
        assert_eq!(failed.class, FailureClass::BadResponse, "{event}");
        assert_eq!(failed.partial.as_deref(), Some("grün"), "{event}");
        assert!(failed.text.contains(words), "{}", failed.text);
    }
    let echo = format!("{STREAM_HEAD}data: {{\"error\":{{\"message\":\"bad key {KEY}\"}}}}\n\n");
    let failed = streamed(echo).await.expect_err("a failure");
    assert!(failed.text.contains("bad key ***"), "{}", failed.text);
    let mut bytes = STREAM_HEAD.as_bytes().to_vec();
    bytes.extend_from_slice(b"data: \xff\n\n");
    let failed = streamed(bytes).await.expect_err("a failure");
    assert_eq!(failed.class, FailureClass::BadResponse, "{}", failed.text);
    assert!(failed.text.contains("is not UTF-8"), "{}", failed.text);
}

#[tokio::test]
async fn caps_endless_event() {
    for part in ["x".repeat(1 << 16), "data: x\n".repeat(1 << 13)] {
        let server = Server::start().await;
        let model = server.streaming();
        let (failed, sent) = both(call(&model), async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(format!("{STREAM_HEAD}{}data: ", piece("ok"))).await;
            connection.send_without_end(part.as_bytes()).await
        })
        .await;
        let failed = failed.expect_err("a failure");
        check_text(&failed);
        assert_eq!((failed.class, failed.partial.as_deref()), (FailureClass::TooLarge, Some("ok")));
        assert!(failed.text.contains("its cap of 1 MiB"), "{}", failed.text);
        assert!(sent >= EVENT_CAP / 8, "{sent}");
    }
}

#[tokio::test]
async fn caps_endless_stream() {
    let server = Server::start().await;
    let model = server.streaming();
    let part = format!(": {}\n", "x".repeat(1 << 16));
    let (failed, _) = both(call(&model), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(STREAM_HEAD).await;
        connection.send_without_end(part.as_bytes()).await
    })
    .await;
    let failed = failed.expect_err("a failure");
    assert_eq!(failed.class, FailureClass::TooLarge);
    assert!(failed.text.contains("its cap of 64 MiB"), "{}", failed.text);
}

#[tokio::test]
async fn caps_endless_text() {
    let server = Server::start().await;
    let model = server.streaming();
    let part = piece(&"x".repeat(1 << 12));
    let (failed, _) = both(call(&model), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(STREAM_HEAD).await;
        connection.send_without_end(part.as_bytes()).await
    })
    .await;
    let failed = failed.expect_err("a failure");
    assert_eq!(failed.class, FailureClass::TooLarge);
    assert!(failed.text.contains("its cap of 256 KiB"), "{}", failed.text);
    let kept = failed.partial.map_or(0, |partial| partial.len());
    assert!(kept > TEXT_CAP && kept <= TEXT_CAP + (1 << 12), "{kept}");
}

#[tokio::test]
async fn redacts_key_in_reply() {
    let (start, end) = KEY.split_at(7);
    let stream = format!(
        "{STREAM_HEAD}{}{}{}data: [DONE]\n\n",
        piece(&format!("it is {start}")),
        piece(&format!("{end}, and s")),
        piece("k it is"),
    );
    let server = Server::start().await;
    let model = server.streaming();
    let (heard, mut pieces) = Heard::new();
    let request = ask(true);
    let (reply, ()) = both(model.chat(&request, &heard), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(stream).await;
    })
    .await;
    assert_eq!(&*reply.expect("a reply").text, "it is ***, and sk it is");
    drop(heard);
    let mut all = String::new();
    while let Some(piece) = pieces.recv().await {
        all.push_str(&piece);
    }
    // The last letter may be the beginning of another: the fact that closes the attempt has it.
    assert_eq!(all, "it is ***, and sk it i");
}

/// Servers of one's own take any key, and people give them `x`: what a model says is no secret then.
#[tokio::test]
async fn short_key_redacts_nothing() {
    for (key, said, kept) in [
        ("x", "next box", "next box"),
        ("ollama", "ask ollama", "ask ollama"),
        ("1234567", "no 1234567", "no 1234567"),
        ("12345678", "no 12345678", "no ***"),
    ] {
        let server = Server::start().await;
        let body = serde_json::json!({ "choices": [{ "message": { "content": said } }] });
        let whole = answer("200 OK", &["connection: close"], &body.to_string());
        let reply = server.one(&server.keyed(key, false), &whole).await.expect(key);
        assert_eq!(&*reply.text, kept, "{key}, whole");

        // Byte by byte, so that the key is never in one piece.
        let pieces: String = said.chars().map(|letter| piece(&letter.to_string())).collect();
        let stream = format!("{STREAM_HEAD}{pieces}{ENDING}");
        let model = server.keyed(key, true);
        let (heard, mut pieces) = Heard::new();
        let request = ask(true);
        let (reply, ()) = both(model.chat(&request, &heard), async {
            let mut connection = server.accept().await;
            let asking = connection.request().await;
            assert!(asking.head.contains("authorization: Bearer"), "{}", asking.head);
            connection.send(stream).await;
        })
        .await;
        assert_eq!(&*reply.expect(key).text, kept, "{key}, streamed");
        drop(heard);
        let mut all = String::new();
        while let Some(piece) = pieces.recv().await {
            all.push_str(&piece);
        }
        assert_eq!(all, kept, "{key}, heard");
    }
}
