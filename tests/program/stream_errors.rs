//! Errors within streams, with the real binary: what may pass is retried as its HTTP status would be, and
//! the text that had come stays with the attempt that failed.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::support::scene::{Scene, agreeing};
use crate::support::server::*;

/// A server whose first answer to each conversation is a piece of text and then this error.
async fn failing_first(error: &'static str) -> Scene {
    let asked = Mutex::new(BTreeSet::new());
    Scene::with(move |asking: &Asking| {
        let conversation = asking.body["messages"].to_string();
        match asked.lock().expect("a lock").insert(conversation) {
            true => format!("{STREAM_HEAD}{}data: {error}\n\n", piece("Half")).into_bytes(),
            false => agreeing(asking),
        }
    })
    .await
}

const RUN: [&str; 7] = [
    "run",
    "checkout-unanimous",
    "--live",
    "--set",
    "tools.llm.retries.backoff_ms=[0]",
    "--format",
    "jsonl",
];

#[tokio::test]
async fn retries_transient_error_to_completion() {
    for (error, class, status) in [
        (r#"{"error":{"code":500,"message":"m","type":"server_error"}}"#, "status", 500),
        (
            r#"{"error":{"code":502,"message":"m"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
            "status",
            502,
        ),
        (r#"{"error":{"code":"429","message":"m"}}"#, "rate_limited", 429),
        (r#"{"error":{"type":"overloaded_error","message":"m"}}"#, "status", 529),
    ] {
        let scene = failing_first(error).await;
        let ended = scene.run(&RUN).await;
        assert_eq!(ended.code, Some(0), "{error}: {ended:?}");
        let lines = ended.lines();
        let failed: Vec<_> = lines.iter().filter(|line| line["kind"] == "attempt.failed").collect();
        assert_eq!(failed.len(), 4, "three seats and the brief: {error}");
        for attempt in failed {
            assert_eq!(attempt["class"], class, "{attempt}");
            assert_eq!(attempt["status"], status, "{attempt}");
            assert_eq!(attempt["partial"], "Half", "{attempt}");
        }
    }
}

#[tokio::test]
async fn permanent_error_ends_with_status_reason() {
    for (error, reason) in [
        (r#"{"error":{"code":401,"message":"m"}}"#, "llm_error:auth"),
        (r#"{"error":{"code":404,"message":"m"}}"#, "llm_error:http_404"),
        (r#"{"error":{"message":"what nobody knows"}}"#, "llm_error:bad_response"),
    ] {
        let scene = failing_first(error).await;
        let ended = scene.run(&RUN).await;
        assert_eq!(ended.code, Some(6), "{error}: {ended:?}");
        let outcome = ended.lines().pop().expect("an outcome");
        assert_eq!(outcome["stop_reason"], reason, "{outcome}");
    }
}
