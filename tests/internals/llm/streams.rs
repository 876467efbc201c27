//! Replies that come as events over real sockets, as both APIs send them.

use crate::log::event::{FailureClass, Usage};
use crate::model::anthropic::TEXT_CAP;
use crate::model::openai::EVENT_CAP;
use crate::support::api::*;
use crate::support::messages::told;
use crate::support::wire::*;
use serde_json::{Value, json};

#[tokio::test]
async fn pieces_come_as_they_are_sent() {
    for (api, options, usage) in [
        (Api::Chat, json!({ "include_usage": true }), Usage::new(7, 2)),
        (Api::Messages, Value::Null, Usage::new(9, 5)),
    ] {
        let server = Server::start().await;
        let model = api.model(&server, true);
        let (heard, mut pieces) = Heard::new();
        let request = ask(true);
        let (reply, asking) = both(model.chat(&request, &heard), async {
            let mut connection = server.accept().await;
            let asking = connection.request().await;
            connection.send(CHUNKED_HEAD).await;
            connection.send(chunk(": keep-alive\n\n")).await;
            connection.send(chunk(&api.begin())).await;
            // Each piece is heard before the next one is sent.
            for text in ["{\"stance\":", " \"Gr", "ün", " 👍\"", "}"] {
                connection.send(chunk(&api.piece(text))).await;
                assert_eq!(pieces.recv().await.as_deref(), Some(text));
            }
            connection.send(chunk(&api.end())).await;
            connection.send("0\r\n\r\n").await;
            asking
        })
        .await;
        assert_eq!(
            (&asking.body["stream"], &asking.body["stream_options"]),
            (&json!(true), &options)
        );
        let reply = reply.expect("a reply");
        assert_eq!(
            (&*reply.text, reply.finish.as_deref()),
            ("{\"stance\": \"Grün 👍\"}", api.finish())
        );
        assert_eq!((reply.usage, reply.model.as_deref()), (Some(usage), Some("m-1")));
        assert!(reply.first_token_ms.is_some());
        assert_eq!(reply.blocks, None);
    }
}

#[tokio::test]
async fn reads_unstreamed_reply() {
    let json_type = "content-type: application/json";
    let stream_type = "content-type: text/event-stream";
    for api in APIS {
        let stream = api.saying("hello") + &api.end();
        // A proxy may name the type of the request, for any content, or none.
        for (headers, body, is_streamed) in [
            (&[json_type][..], api.hello(), false),
            (&[], api.hello(), false),
            (&[stream_type], api.hello(), false),
            (&["content-type: text/plain"], &stream, true),
            (&[json_type], &stream, true),
        ] {
            let server = Server::start().await;
            let bytes = answer("200 OK", headers, body);
            let reply = server.one(&*api.model(&server, true), &bytes).await.expect(body);
            assert_eq!(&*reply.text, "hello", "{api:?} {headers:?}");
            assert_eq!(reply.first_token_ms.is_some(), is_streamed, "{api:?} {headers:?}");
        }
        // and one that streams unasked
        let server = Server::start().await;
        let unasked = format!("{STREAM_HEAD}{stream}");
        let reply = server.one(&*api.model(&server, false), unasked.as_bytes()).await;
        assert_eq!(&*reply.expect("a reply").text, "hello", "{api:?}");
    }
}

#[tokio::test]
async fn cut_stream_keeps_partial_text() {
    for api in APIS {
        let first = api.saying("Grü");
        let whole = first.clone() + &api.piece("n 👍 and more");
        let place = |text: &str| whole.find(text).expect("it is there");
        // between events, in the middle of a field's name, of a character, of a token, and before
        // the last character of the JSON
        for at in
            [first.len(), first.len() + 3, place("👍") + 2, place("more") + 2, whole.len() - 3]
        {
            let failed = api.streamed(&whole.as_bytes()[..at]).await.expect_err("a failure");
            assert_eq!(failed.class, FailureClass::Reset, "{api:?}, cut at {at}");
            assert_eq!(failed.partial.as_deref(), Some("Grü"), "{api:?}, cut at {at}");
            assert!(failed.text.contains("after 3 characters"), "{}", failed.text);
        }
        // before the ends of the line and of the event, before anything was said, and within a call
        for (cut, partial) in [
            (&whole[..whole.len() - 2], Some("Grün 👍 and more")),
            (&whole[..whole.len() - 1], Some("Grün 👍 and more")),
            ("", None),
            (&api.begin(), None),
            (&(api.saying("so") + &api.call_start("x", "a") + &api.call_piece("{")), Some("so")),
        ] {
            let failed = api.streamed(cut).await.expect_err("a failure");
            assert_eq!(
                (failed.class, failed.partial.as_deref()),
                (FailureClass::Reset, partial),
                "{cut}"
            );
        }
        // chunks that stop without their end: the connection broke
        let server = Server::start().await;
        let broken = format!("{CHUNKED_HEAD}{}", chunk(&api.saying("a")));
        let failed = server.one(&*api.model(&server, true), broken.as_bytes()).await;
        let failed = failed.expect_err("a failure");
        assert_eq!((failed.class, failed.partial.as_deref()), (FailureClass::Reset, Some("a")));
    }
}

#[tokio::test]
async fn stream_reset_keeps_partial_text() {
    for api in APIS {
        let server = Server::start().await;
        let model = api.model(&server, true);
        let (heard, mut pieces) = Heard::new();
        let request = ask(true);
        let (failed, ()) = both(model.chat(&request, &heard), async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(format!("{CHUNKED_HEAD}{}", chunk(&api.saying("half")))).await;
            assert_eq!(pieces.recv().await.as_deref(), Some("half"));
            connection.reset();
        })
        .await;
        let failed = failed.expect_err("a failure");
        check_text(&failed);
        assert_eq!((failed.class, failed.partial.as_deref()), (FailureClass::Reset, Some("half")));
        let words = "in the middle of the answer, after 4 characters";
        assert!(failed.text.contains(words), "{}", failed.text);
    }
}

#[tokio::test]
async fn bad_event_names_its_position() {
    for api in APIS {
        let sent = format!("sent an error in event {} of the stream", api.next_event());
        let overloaded = format!("{sent}: overloaded. Try");
        let unread = format!(
            "in event {} of the stream (EOF while parsing a value at line 1 column 21)",
            api.next_event()
        );
        for (event, words) in [
            ("data: {\"error\":{\"message\":\"overloaded\"}}\n\n", &*overloaded),
            ("event: error\ndata: {\"message\":\"overloaded\"}\n\n", &overloaded),
            ("event: error\ndata: overloaded\n\n", &overloaded),
            ("data: {\"error\":\"overloaded\"}", &overloaded),
            ("data: {\"choices\":[{\"delta\":\n\n", &unread),
            ("data: <html>\n\n", "(expected value at line 1 column 1): <html>"),
            ("data: \u{1b}[2J\n\n", "␛[2J"),
        ] {
            let failed = api.streamed(api.saying("Grün") + event).await.expect_err(event);
            assert_eq!(failed.class, FailureClass::BadResponse, "{event}");
            assert_eq!(failed.partial.as_deref(), Some("Grün"), "{event}");
            assert!(failed.text.contains(words), "{}", failed.text);
        }
        let failed = api.streamed(b"data: \xff\n\n").await.expect_err("a failure");
        assert_eq!(failed.class, FailureClass::BadResponse, "{}", failed.text);
        assert!(failed.text.contains("is not UTF-8"), "{}", failed.text);
    }
}

#[tokio::test]
async fn caps_endless_stream() {
    let long = "x".repeat(1 << 12);
    let comment = format!(": {}\n", "x".repeat(1 << 16));
    for api in APIS {
        let begun = api.saying("so");
        let (event, call) = (begun.clone() + "data: ", begun.clone() + &api.call_start("x", "a"));
        for (before, part, words) in [
            (&event, &"x".repeat(1 << 16), "its cap of 1 MiB"),
            (&event, &"data: x\n".repeat(1 << 13), "its cap of 1 MiB"),
            (&call, &api.call_piece(&long), "its cap of 256 KiB"),
            (&begun, &comment, "its cap of 64 MiB"),
        ] {
            let (failed, sent) = api.endless(before, part).await;
            assert_eq!(failed.class, FailureClass::TooLarge, "{}", failed.text);
            assert_eq!(failed.partial.as_deref(), Some("so"), "{}", failed.text);
            assert!(failed.text.contains(words), "{}", failed.text);
            assert!(sent >= EVENT_CAP / 8, "{sent}");
        }
        let (failed, sent) = api.endless(&begun, &api.piece(&long)).await;
        assert_eq!(failed.class, FailureClass::TooLarge);
        assert!(sent >= TEXT_CAP / 2, "{sent}");
        assert!(failed.text.contains("its cap of 256 KiB"), "{}", failed.text);
        let kept = failed.partial.unwrap_or_default();
        assert!(kept.starts_with("so") && kept.len() > TEXT_CAP, "{}", kept.len());
        assert!(kept.len() <= TEXT_CAP + (1 << 12), "{}", kept.len());
    }
}

#[tokio::test]
async fn redacts_key_in_stream() {
    let (start, end) = KEY.split_at(7);
    for api in APIS {
        let text = api.saying(&format!("it is {start}"))
            + &api.piece(&format!("{end}, and s"))
            + &api.piece("k it is");
        let call = api.call_start(KEY, KEY)
            + &api.call_piece(&format!("{{\"k\":\"{start}"))
            + &api.call_piece(&format!("{end}\"}}"));
        let (reply, heard) = api.heard(&(text.clone() + &api.end())).await;
        assert_eq!(&*reply.text, "it is ***, and sk it is");
        // The last letter may be the beginning of another: the fact that closes the attempt has it.
        assert_eq!(heard, "it is ***, and sk it i", "{api:?}");
        let (reply, _) = api.heard(&(text + &call + &api.end())).await;
        assert_eq!(&*reply.text, "it is ***, and sk it is");
        assert_eq!(told(&reply), [r#"*** *** {"k":"***"}"#]);
        // What cannot be the beginning of a key is heard at once.
        let so = api.saying(&format!("it is {start}")) + &api.piece(&format!("{end}, so"));
        assert_eq!(api.heard(&(so + &api.end())).await.1, "it is ***, so");

        let echo = api.error("api_error", &format!("bad key {KEY}"));
        for (before, partial) in [(api.saying(start), Some("***")), (String::new(), None)] {
            let stream = format!("{before}event: error\ndata: {echo}\n\n");
            let failed = api.streamed(stream).await.expect_err("a failure");
            assert!(failed.text.contains("bad key ***"), "{}", failed.text);
            assert_eq!(failed.partial.as_deref(), partial, "{api:?}");
        }
    }
}

/// Servers that cut text at UTF-16 units send half a character in one event and half in the next.
#[tokio::test]
async fn lone_surrogates_become_replacement_characters() {
    for api in APIS {
        for (halves, text) in [
            (&[r" \ud83d", r"\udc4d b"][..], "Grün \u{fffd}\u{fffd} b"),
            (&[r"\ud83d", "b"], "Grün\u{fffd}b"),
            (&[r"\ud83d"], "Grün\u{fffd}"),
            (&[r"\udc4d a", r"\ud83dx"], "Grün\u{fffd} a\u{fffd}x"),
        ] {
            let halves = halves.iter().map(|half| api.literal_piece(&format!("\"{half}\"")));
            let stream = api.saying("Grün") + &halves.collect::<String>() + &api.end();
            let reply = api.streamed(&stream).await.expect(text);
            assert_eq!((&*reply.text, reply.finish.as_deref()), (text, api.finish()), "{stream}");
            let usage = match api {
                Api::Chat => Usage::new(7, 2),
                Api::Messages => Usage::new(9, 5),
            };
            assert_eq!(reply.usage, Some(usage), "{stream}");
        }
    }
}
