//! Answers that are not streamed, over real sockets, as both APIs give them.

use crate::log::event::{FailureClass, ModelLabel, Usage};
use crate::support::api::*;
use crate::support::messages::{answered, closing};
use crate::support::wire::*;
use serde_json::json;

#[tokio::test]
async fn a_plain_answer() {
    let goal = "{\"goal\":\"grün \\\"x\\\"\"}";
    let chat = json!({
        "model": "gpt-4.1-mini",
        "messages": [
            { "role": "system", "content": "You judge." },
            { "role": "user", "content": goal },
        ],
        "response_format": { "type": "json_object" },
    });
    let messages = json!({
        "model": "claude-haiku-4-5",
        "system": [{ "type": "text", "text": "You judge.", "cache_control": { "type": "ephemeral" } }],
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": goal }] }],
        "max_tokens": 4096,
    });
    for (api, path, key, body, answered_by) in [
        (Api::Chat, "/v1/chat/completions", "authorization: bearer", chat, "gpt-4.1-mini-2025"),
        (Api::Messages, "/v1/messages", "x-api-key:", messages, "claude-sonnet-4-20250514"),
    ] {
        let server = Server::start().await;
        let model = api.model(&server, false);
        let bytes = closing("200 OK", api.hello());
        let (reply, asking) = answered(&server, &*model, &ask(true), bytes).await;
        assert!(asking.head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{}", asking.head);
        let head = asking.head.to_ascii_lowercase();
        assert!(head.contains(&format!("{key} {KEY}\r\n")), "{head}");
        assert!(head.contains("content-type: application/json\r\n"));
        assert!(!head.contains("accept-encoding"), "nothing is decompressed");
        assert_eq!(asking.body, body);
        let reply = reply.expect("a reply");
        assert_eq!((&*reply.text, reply.finish.as_deref()), ("hello", api.finish()));
        assert_eq!(reply.usage, Some(Usage::new(12, 3)));
        assert_eq!(reply.model.as_deref(), Some(answered_by));
        assert_eq!((reply.first_token_ms, reply.blocks), (None, None));
        let name = body["model"].as_str().expect("a name").into();
        assert_eq!(model.label(), ModelLabel::Live { name, host: server.host() });
    }
}

#[tokio::test]
async fn status_sets_failure_class() {
    let status = FailureClass::Status;
    for (api, key, model, expected) in [
        (Api::Chat, "OPENAI_API_KEY", "gpt-4.1-mini", "chat completion"),
        (Api::Messages, "ANTHROPIC_API_KEY", "claude-haiku-4-5", "message"),
    ] {
        let check_key = format!("Check {key} (from the shell)");
        let check_model = format!("Check the model {model} (from the default) and the base URL");
        for (line, code, kind, class, words) in [
            (
                "400 Bad Request",
                400,
                "invalid_request_error",
                status,
                "refused the request (HTTP 400): so it is␛[2J. Check",
            ),
            ("401 Unauthorized", 401, "authentication_error", FailureClass::Auth, &*check_key),
            (
                "402 Payment Required",
                402,
                "billing_error",
                status,
                "reports a billing problem (HTTP 402)",
            ),
            (
                "403 Forbidden",
                403,
                "permission_error",
                FailureClass::Auth,
                "denied access to this key",
            ),
            ("404 Not Found", 404, "not_found_error", status, &check_model),
            (
                "413 Too Large",
                413,
                "request_too_large",
                status,
                "rejected the request as too large (HTTP 413)",
            ),
            (
                "500 Oh",
                500,
                "api_error",
                status,
                "failed (HTTP 500): so it is␛[2J. Try again later.",
            ),
            ("503 Service Unavailable", 503, "api_error", status, "Try again later."),
            ("504 Late", 504, "timeout_error", status, "Try again later."),
            (
                "529 Overloaded",
                529,
                "overloaded_error",
                status,
                "is overloaded (HTTP 529): so it is␛[2J. Try again later.",
            ),
        ] {
            let error = api.error(kind, "so it is\u{1b}[2J");
            let failed = api.failure(closing(line, &error)).await;
            assert_eq!((failed.class, failed.status), (class, Some(code)), "{api:?} {line}");
            assert!(failed.text.contains(words), "{}", failed.text);
            assert_eq!(failed.adapted, None);

            // The same within an answer that reports success; the kind names no 503.
            let code = if code == 503 { 500 } else { code };
            let failed = api.failure(closing("200 OK", &error)).await;
            assert_eq!((failed.class, failed.status), (class, Some(code)), "{api:?} {line}");
            let place = format!("(error {code} instead of a {expected}): so it is");
            assert!(failed.text.contains(&place), "{}", failed.text);
        }
        let unknown = api.failure(closing("200 OK", &api.error("new_error", "oh"))).await;
        assert_eq!((unknown.class, unknown.status), (FailureClass::BadResponse, None));
    }
    assert!(status.is_failure_of_tool(Some(529)), "transient as any 5xx");
}

#[tokio::test]
async fn a_refused_key_is_not_repeated() {
    let said = format!("Incorrect API key provided: {KEY}. Authorization: Bearer {KEY}");
    for (api, variable) in [(Api::Chat, "OPENAI_API_KEY"), (Api::Messages, "ANTHROPIC_API_KEY")] {
        let echo = api.error("authentication_error", &said);
        for (status, code) in [("401 Unauthorized", 401), ("403 Forbidden", 403)] {
            let failed = api.failure(closing(status, &echo)).await;
            assert_eq!((failed.class, failed.status), (FailureClass::Auth, Some(code)));
            assert!(failed.text.contains("Incorrect API key provided: ***"), "{}", failed.text);
            assert!(
                failed.text.contains(&format!("{variable} (from the shell)")),
                "{}",
                failed.text
            );
        }
        // in a page, and in the middle of so much text that it is cut there
        for filler in (0..64).map(|length| "x ".repeat(length)) {
            for body in [format!("<title>{filler}{KEY}</title>"), format!("{filler}{KEY}")] {
                let failed = api.failure(answer("401 Unauthorized", &[], &body)).await;
                assert!(!failed.text.contains(&KEY[..6]), "{}", failed.text);
            }
        }
    }
}

#[tokio::test]
async fn reads_every_retry_after_form() {
    let date = "date: Wed, 21 Oct 2015 12:00:00 GMT";
    for (headers, wait) in [
        (&["retry-after: 2"][..], Some(2_000)),
        (&["retry-after: 1.5"], Some(1_500)),
        (&["retry-after: 0"], Some(0)),
        (&["retry-after-ms: 250", "retry-after: 2"], Some(250)),
        (&["retry-after: Wed, 21 Oct 2015 12:00:30 GMT", date], Some(30_000)),
        (&["retry-after: Wed, 21 Oct 2015 13:00:00 GMT", date], Some(3_600_000)),
        (&["retry-after: Wed, 21 Oct 2015 11:00:00 GMT", date], None),
        (&["retry-after: Wed, 21 Oct 2015 13:00:00 GMT"], None),
        (&["retry-after: in a while", date], None),
        (&["retry-after: soon"], None),
        (&[], None),
    ] {
        for (api, should_retry) in APIS.into_iter().flat_map(|api| [(api, None), (api, Some(true))])
        {
            let mut all = vec!["connection: close"];
            all.extend(should_retry.map(|_| "x-should-retry: true"));
            all.extend(headers);
            let body = api.error("rate_limit_error", "Number of requests has exceeded your limit");
            let failed = api.failure(answer("429 Too Many Requests", &all, &body)).await;
            assert_eq!((failed.class, failed.status), (FailureClass::RateLimited, Some(429)));
            assert_eq!(failed.retry_after_ms, wait, "{api:?} {headers:?}");
            assert_eq!(failed.should_retry, should_retry, "{api:?} {headers:?}");
        }
    }
    for status in ["503 Busy", "529 Overloaded"] {
        for api in APIS {
            let failed = api.failure(answer(status, &["retry-after: 7"], "")).await;
            assert_eq!(failed.retry_after_ms, Some(7_000), "not only with 429");
        }
    }
}

#[tokio::test]
async fn half_character_becomes_replacement() {
    for (content, text) in [
        (r"a \ud83d", "a \u{fffd}"),
        (r"\udc4d \ud83d\udc4d", "\u{fffd} 👍"),
        (r"a \ud83d\n", "a \u{fffd}\n"),
    ] {
        for api in APIS {
            let body = api.hello().replace("hello", content);
            assert_eq!(&*api.whole(&body).await.expect(content).text, text, "{api:?} {content}");
        }
    }
}
