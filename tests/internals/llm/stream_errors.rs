//! Errors within streams: errors of the class of their status, events that cannot be read.

use crate::log::event::FailureClass;
use crate::support::api::*;
use crate::support::wire::*;

/// llama.cpp, OpenRouter and others answer 200, begin to stream and then report an error: it is of the
/// class of the status that it names, and the text that had come stays.
#[tokio::test]
async fn stream_error_keeps_status_class() {
    use FailureClass::{Auth, RateLimited, Status};
    let llama =
        r#"{"error":{"code":500,"message":"Compute error.","type":"server_error"}}"#.to_owned();
    let router = |code: u16| {
        format!(
            r#"{{"id":"gen-1","object":"chat.completion.chunk","created":1,"model":"m","error":{{"code":{code},"message":"Provider returned error"}},"choices":[{{"index":0,"delta":{{"content":""}},"finish_reason":"error"}}]}}"#
        )
    };
    let within = r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"m"}}]}"#;
    for (data, class, status, words) in [
        (
            llama,
            Status,
            500,
            "failed (error 500 in event 2 of the stream): Compute error. Try again later.",
        ),
        (router(502), Status, 502, "Provider returned error. Try again later."),
        (router(429), RateLimited, 429, "limits the rate of calls (error 429"),
        (router(402), Status, 402, "reports a billing problem (error 402"),
        (within.to_owned(), Status, 502, "(error 502 in event 2 of the stream): m."),
        (r#"{"error":{"code":"429","message":"m"}}"#.to_owned(), RateLimited, 429, "(error 429"),
        (
            r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#
                .to_owned(),
            RateLimited,
            429,
            "says that this key's quota is used up",
        ),
        (
            r#"{"error":{"message":"m","type":"server_error","code":null}}"#.to_owned(),
            Status,
            500,
            "(error 500",
        ),
        (
            r#"{"error":{"message":"m","type":"overloaded_error"}}"#.to_owned(),
            Status,
            529,
            "is overloaded",
        ),
        (
            r#"{"error":{"status":401,"message":"m"}}"#.to_owned(),
            Auth,
            401,
            "rejected the key (error 401 in event 2 of the stream): m. Check OPENAI_API_KEY (from the shell)",
        ),
        (
            r#"{"object":"error","message":"m","type":"InternalServerError","code":500}"#
                .to_owned(),
            Status,
            500,
            "(error 500 in event 2 of the stream): m.",
        ),
    ] {
        let stream = format!("{}data: {data}\n\ndata: [DONE]\n\n", piece("grün"));
        let failed = Api::Chat.streamed(stream).await.expect_err(&data);
        let found = (failed.class, failed.status.unwrap_or_default());
        assert_eq!(found, (class, status), "{data}: {}", failed.text);
        assert_eq!(failed.partial.as_deref(), Some("grün"), "{data}");
        assert!(failed.text.contains(words), "{}", failed.text);
        // A quota that is used up is not there again in a second.
        let none = words.contains("quota").then_some(false);
        assert_eq!(failed.should_retry, none, "{data}");
    }
}

/// A refusal of a parameter counts as one only where nothing of the reply had come.
#[tokio::test]
async fn omits_parameter_refused_in_stream() {
    let refusal =
        "data: {\"error\":{\"code\":400,\"message\":\"stream_options is not supported\"}}\n\n";
    for (before, adapted) in [(String::new(), true), (piece("grün"), false)] {
        let server = Server::start().await;
        let model = server.streaming();
        let stream = format!("{STREAM_HEAD}{before}{refusal}");
        let failed = server.one(&model, stream.as_bytes()).await.expect_err("a refusal");
        check_text(&failed);
        assert_eq!(failed.status, Some(400), "{}", failed.text);
        let named = adapted.then(|| vec!["stream_options".to_owned()]);
        assert_eq!(failed.adapted, named, "{}", failed.text);
        let (_, asking) = both(call(&model), async {
            let mut connection = server.accept().await;
            let asking = connection.request().await;
            connection.send(format!("{STREAM_HEAD}{}{ENDING}", piece("a"))).await;
            asking
        })
        .await;
        assert_eq!(asking.body.get("stream_options").is_none(), adapted, "{}", asking.body);
    }
}

/// The address is the right one where good events came from it.
#[tokio::test]
async fn later_bad_event_blames_no_address() {
    for event in ["data: {\"what\":\n\n", "data: <html>\n\n", "data: [5]\n\n"] {
        let first = Api::Chat.streamed(event).await.expect_err(event);
        assert!(first.text.contains("Check the base URL (from the shell)"), "{}", first.text);
        let later = Api::Chat.streamed(piece("grün") + event);
        let later = later.await.expect_err(event);
        assert!(!later.text.contains("base URL"), "{}", later.text);
        assert!(later.text.ends_with("Try again, or use another model."), "{}", later.text);
    }
    // One that is plainly of the API is not either, though it is the first.
    for event in [
        "data: {\"choices\":[{\"delta\":\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":5}}]}\n\n",
    ] {
        let failed = Api::Chat.streamed(event).await.expect_err(event);
        assert!(failed.text.ends_with("Try again, or use another model."), "{}", failed.text);
    }
}
