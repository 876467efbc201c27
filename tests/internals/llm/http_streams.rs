//! The chat model over real sockets: what only the events of chat completions have.

use crate::log::event::FailureClass;
use crate::model::ChatModel;
use crate::support::api::*;
use crate::support::wire::*;
use serde_json::json;

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
        let reply = Api::Chat.streamed(stream).await.expect(stream);
        assert_eq!((&*reply.text, reply.finish.as_deref()), (text, finish), "{stream}");
    }
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
        let failed = Api::Chat.streamed(&stream).await.expect_err(&stream);
        assert_eq!((failed.class, failed.partial), (FailureClass::BadResponse, None), "{stream}");
        assert!(failed.text.contains("ended the stream without a choice"), "{}", failed.text);
    }
    let server = Server::start().await;
    let whole = json("200 OK", "{\"choices\":[]}");
    let failed = server.one(&server.model(), &whole).await.expect_err("no choice");
    assert_eq!(failed.class, FailureClass::BadResponse);
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
