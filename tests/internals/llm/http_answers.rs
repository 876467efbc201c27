//! The chat model over real sockets: answers that are not streamed, good and bad.

use crate::log::event::{FailureClass, Usage};
use crate::model::ChatModel;
use crate::model::openai::{ANSWER_CAP, ProbeResult};
use crate::support::api::*;
use crate::support::wire::*;

#[tokio::test]
async fn plain_text_requests_no_json() {
    let server = Server::start().await;
    let model = server.model();
    let request = ask(false);
    let (_, asking) = both(model.chat(&request, &Deaf), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(json("200 OK", HELLO)).await;
        asking
    })
    .await;
    assert_eq!(asking.body.get("response_format"), None);
    assert_eq!(asking.body.get("stream"), None);
}

#[tokio::test]
async fn answers_that_say_less() {
    for (body, text, finish, usage) in [
        (r#"{"choices":[{"message":{"content":null}}]}"#, "", None, None),
        (r#"{"choices":[{"message":{}}],"usage":null}"#, "", None, None),
        (
            r#"{"choices":[{"message":{"content":null,"refusal":"I will not."},"finish_reason":"stop"}]}"#,
            "",
            Some("refusal: I will not."),
            None,
        ),
        (
            r#"{"error":null,"usage":{"prompt_tokens":3.0},"choices":[{"message":{"content":"\u00e9\ud83d\ude00"},"finish_reason":"length"},{"message":{"content":"b"}}]}"#,
            "é😀",
            Some("length"),
            Some(Usage::new(3, 0)),
        ),
    ] {
        let server = Server::start().await;
        let reply = server.one(&server.model(), &json("200 OK", body)).await.expect(body);
        assert_eq!(&*reply.text, text);
        assert_eq!(reply.finish.as_deref(), finish);
        assert_eq!(reply.usage, usage);
    }
}

#[tokio::test]
async fn refusal_text_comes_from_body() {
    for (body, words) in [
        (r#"{"error":"model not loaded"}"#, "(HTTP 500): model not loaded. Try"),
        (r#"{"detail":"no such route"}"#, "(HTTP 500): no such route. Try"),
        (r#"{"message":"busy"}"#, "(HTTP 500): busy. Try"),
        (r#"{"what":1}"#, "(HTTP 500). Try"),
        ("upstream gone\r\n", "(HTTP 500): upstream gone. Try"),
        ("<html><Title>Bad\ngateway</title>", "(HTTP 500): an HTML page (Bad␊gateway). Try"),
        ("", "(HTTP 500). Try"),
    ] {
        let failed = Api::Chat.failure(&answer("500 Oh", &[], body)).await;
        assert!(failed.text.contains(words), "{}", failed.text);
    }
}

#[tokio::test]
async fn used_up_quota_is_not_retried() {
    let quota = r#"{"error":{"message":"You exceeded it","code":"insufficient_quota"}}"#;
    let failed = Api::Chat.failure(&json("429 Too Many Requests", quota)).await;
    assert!(failed.text.ends_with("Check the plan and its billing."), "{}", failed.text);
    assert_eq!(failed.should_retry, Some(false), "it is not there again in a second");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let server = Server::start().await;
    let elsewhere = Server::start().await;
    let to = format!("location: http://me:{KEY}@{}/v1?token=1", elsewhere.host());
    let failed = server.one(&server.model(), &answer("307 Temporary Redirect", &[&to], "")).await;
    let failed = failed.expect_err("a failure");
    check_text(&failed);
    assert_eq!((failed.class, failed.status), (FailureClass::Status, Some(307)));
    let shown = format!("redirects (HTTP 307): http://***@{}/v1?***.", elsewhere.host());
    assert!(failed.text.contains(&shown), "{}", failed.text);
    // This is the first request at this server: the earlier call made none.
    let next = elsewhere.model();
    let (_, ()) = both(call(&next), async {
        let mut connection = elsewhere.accept().await;
        connection.request().await;
        connection.send(json("200 OK", HELLO)).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_no_chat_completion() {
    for (head, body, words) in [
        (
            "text/html",
            "<!doctype html><title>Log in</title>",
            "an HTML page (Log in) instead of JSON",
        ),
        ("application/json", "<p>hi", "an HTML page instead of JSON"),
        ("application/json", "", "an empty body"),
        ("application/json", "[1, 2]", "not with a chat completion"),
        ("application/json", r#"{"result":"ok"}"#, "(it has no `choices`): {\"result\":\"ok\"}"),
        ("application/json", r#"{"choices":[]}"#, "it has no `choices`"),
        ("application/json", r#"{"choices":[{"text":"a"}]}"#, "its first choice has no `message`"),
        (
            "application/json",
            r#"{"choices":[{"message":{"content":5}}]}"#,
            "(`content`: invalid type: integer `5`, expected a string)",
        ),
        (
            "application/json",
            r#"{"choices":[{"message":"#,
            "EOF while parsing a value at line 1 column 23",
        ),
        (
            "application/json",
            r#"{"error":{"message":"no capacity"}}"#,
            "sent an error instead of a chat completion: no capacity",
        ),
    ] {
        let failed =
            Api::Chat.failure(&answer("200 OK", &[&format!("content-type: {head}")], body)).await;
        assert_eq!((failed.class, failed.status), (FailureClass::BadResponse, None), "{body}");
        assert!(failed.text.contains(words), "{}", failed.text);
    }
    let failed =
        Api::Chat.failure(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\":\"\xff\"}").await;
    assert_eq!(failed.class, FailureClass::BadResponse, "{}", failed.text);
    let failed = Api::Chat.failure(b"SSH-2.0-OpenSSH_9.7\r\n").await;
    assert_eq!(failed.class, FailureClass::BadResponse, "{}", failed.text);
    assert!(failed.text.contains("is not HTTP"), "{}", failed.text);
    let chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a chunk\r\n";
    let failed = Api::Chat.failure(chunks).await;
    assert_eq!(failed.class, FailureClass::BadResponse, "{}", failed.text);
}

/// Each provider's key has a variable of its own, and a refusal names that one.
#[tokio::test]
async fn refused_key_names_its_variable() {
    for (key, address) in [
        ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ("GEMINI_API_KEY", "GEMINI_BASE_URL"),
        ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
        ("OLLAMA_API_KEY", "OLLAMA_HOST"),
    ] {
        let server = Server::start().await;
        let model = server.model_of(key, address);
        let failed = server.one(&*model, &json("401 Unauthorized", "{}")).await.expect_err(key);
        check_text(&failed);
        let advice = format!("Check {key} (from the shell) and its permissions.");
        assert!(failed.text.ends_with(&advice), "{}", failed.text);
    }
}

/// An error in a body of status 200 is of the class of the status that it names.
#[tokio::test]
async fn body_error_keeps_status_class() {
    for (body, class, status, words) in [
        (
            r#"{"error":{"code":503,"message":"no capacity"}}"#,
            FailureClass::Status,
            503,
            "failed (error 503 instead of a chat completion): no capacity. Try again later.",
        ),
        (
            r#"{"choices":[{"error":{"code":"429","message":"slow down"},"finish_reason":"error","message":{"content":""}}]}"#,
            FailureClass::RateLimited,
            429,
            "limits the rate of calls (error 429 instead of a chat completion): slow down",
        ),
        (
            r#"{"object":"error","message":"m","type":"NotFoundError","code":404}"#,
            FailureClass::Status,
            404,
            "has no such address or model (error 404",
        ),
        (
            r#"{"error":{"code":403,"message":"m"}}"#,
            FailureClass::Auth,
            403,
            "Check OPENAI_API_KEY (from the shell)",
        ),
    ] {
        let failed = Api::Chat.failure(&json("200 OK", body)).await;
        assert_eq!((failed.class, failed.status), (class, Some(status)), "{body}");
        assert!(failed.text.contains(words), "{}", failed.text);
    }
}

#[tokio::test]
async fn caps_endless_body() {
    for head in ["transfer-encoding: chunked", "connection: close"] {
        let server = Server::start().await;
        let model = server.model();
        let part =
            if head.ends_with("close") { " ".repeat(1 << 16) } else { chunk(&" ".repeat(1 << 16)) };
        let (failed, sent) = both(call(&model), async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n")).await;
            connection.send_without_end(part.as_bytes()).await
        })
        .await;
        let failed = failed.expect_err("a failure");
        check_text(&failed);
        assert_eq!(failed.class, FailureClass::TooLarge);
        assert!(failed.text.contains("its cap of 8 MiB"), "{}", failed.text);
        assert!(sent >= ANSWER_CAP, "{sent}");
    }
    // one that announces too much is not read at all
    let announced = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", ANSWER_CAP + 1);
    assert_eq!(Api::Chat.failure(announced.as_bytes()).await.class, FailureClass::TooLarge);
    // and a refusal's endless page is still a refusal
    let server = Server::start().await;
    let model = server.model();
    let (failed, _) = both(call(&model), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send("HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
        connection.send_without_end("oh no ".repeat(1000).as_bytes()).await
    })
    .await;
    assert_eq!(failed.expect_err("a failure").status, Some(502));
}

#[tokio::test]
async fn a_probe_tells_what_is_there() {
    let listed = |names: &str| json("200 OK", &format!(r#"{{"object":"list","data":[{names}]}}"#));
    let no_list =
        |status, said: Option<&str>| ProbeResult::NoList { status, said: said.map(str::to_owned) };
    let lists = |models, has_model, names: &[&str]| ProbeResult::Lists {
        models,
        has_model,
        names: names.iter().map(|&name| name.to_owned()).collect(),
    };
    // Foreign text: what cannot be shown as it is, is too long, or has the key in it is no name to choose.
    let (long, longer) = ("m".repeat(200), "m".repeat(201));
    let keyed = format!("of-{KEY}");
    let odd = [&*long, &longer, "a\\u001b[31m", "ad\\u202emin", "", " b ", &keyed, "B", "b"];
    let odd: Vec<String> = odd.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect();
    let many: Vec<String> = (0..2_100).map(|nth| format!(r#"{{"id":"m-{nth:04}"}}"#)).collect();
    let first: Vec<String> = (0..2_000).map(|nth| format!("m-{nth:04}")).collect();
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    for (bytes, reach) in [
        (
            listed(r#"{"id":"z"},{"id":"gpt-4.1-mini","object":"model"},{"id":"a"}"#),
            lists(3, true, &["a", "gpt-4.1-mini", "z"]),
        ),
        (listed(r#"{"id":"a"}"#), lists(1, false, &["a"])),
        (listed(&odd.join(",")), lists(9, false, &["B", "b", &long])),
        (listed(&many.join(",")), lists(2_100, false, &first)),
        // Without the envelope, and behind a byte order mark.
        (
            json("200 OK", r#"[{"id":"a","object":"model"},null,{"id":7}]"#),
            lists(2, false, &["7", "a"]),
        ),
        (json("200 OK", "\u{feff}{\"data\":[{\"id\":\"a\"}]}"), lists(1, false, &["a"])),
        (json("200 OK", r#"{"data":[]}"#), lists(0, false, &[])),
        (
            json("200 OK", r#"{"error":"Unexpected endpoint"}"#),
            no_list(200, Some("Unexpected endpoint")),
        ),
        (json("200 OK", r#"[{"error":{"message":"no"}}]"#), no_list(200, Some("no"))),
        (json("404 Not Found", "{}"), no_list(404, None)),
        (json("400 Bad Request", r#"{"error":{"message":"No db."}}"#), no_list(400, Some("No db"))),
        (json("400 Bad Request", &format!("bad\u{1b} {KEY}")), no_list(400, Some("bad␛ ***"))),
        (answer("400 Bad Request", &[], ""), no_list(400, None)),
        (json("200 OK", r#"{"ok":true}"#), no_list(200, None)),
    ] {
        let server = Server::start().await;
        let model = server.model();
        let (found, asking) = both(model.probe(std::time::Duration::from_secs(30)), async {
            let mut connection = server.accept().await;
            let asking = connection.request().await;
            connection.send(bytes).await;
            asking
        })
        .await;
        assert!(asking.head.starts_with("GET /v1/models HTTP/1.1\r\n"), "{}", asking.head);
        assert_eq!(found, Ok(reach));
    }
    for (bytes, class) in [
        (json("401 Unauthorized", KEY), FailureClass::Auth),
        (answer("200 OK", &[], "<html>"), FailureClass::BadResponse),
    ] {
        let server = Server::start().await;
        let model = server.model();
        let (found, ()) = both(model.probe(std::time::Duration::from_secs(30)), async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(bytes).await;
        })
        .await;
        let failed = found.expect_err("a failure");
        check_text(&failed);
        assert_eq!(failed.class, class);
        assert!(!failed.text.contains("chat completion"), "{}", failed.text);
    }
    // accepts and never answers
    let server = Server::start().await;
    let model = server.model();
    let (found, ()) = both(model.probe(std::time::Duration::from_millis(50)), async {
        server.accept().await.closed().await;
    })
    .await;
    assert_eq!(found.expect_err("a failure").class, FailureClass::Timeout);
}
