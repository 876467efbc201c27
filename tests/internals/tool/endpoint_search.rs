//! A search by an endpoint, over real sockets: what it asks, and what becomes of the answer.

use std::sync::Arc;

use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::{Http, Reach};
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::documents::{EndpointSpec, ResultFields};
use crate::scenario::tools::http::{HttpMethod, HttpSpec};
use crate::support::wire::{Server, both, json as answer};
use crate::tool::endpoint::EndpointSearch;
use serde_json::{Value, json};

/// A secret of the tests; it must turn up in no text and no answer.
const KEY: &str = "hunter2hunter2";

fn search(server: &Server) -> EndpointSearch {
    let http = HttpSpec {
        method: HttpMethod::Get,
        url: format!("http://{}/search?q={{query}}&n={{k}}&format=json", server.host()),
        headers: [("x-key".to_owned(), Setting::Env("KEY".to_owned()))].into(),
        send_args: false,
        pointer: String::new(),
        max_bytes: 1 << 10,
        allow_private: true,
    };
    let fields = ResultFields {
        url: "/url".to_owned(),
        title: "/title".to_owned(),
        snippet: "/content".to_owned(),
        score: "/score".to_owned(),
        published_at: "/publishedDate".to_owned(),
    };
    let spec = EndpointSpec { http, results: "/results".to_owned(), fields };
    let env = |name: &str| (name == "KEY").then(|| KEY.to_owned());
    EndpointSearch::new(&spec, Http::direct(Reach::Anywhere), &env).expect("a search")
}

/// One search that is answered so; and the head of the request.
async fn asked(bytes: Vec<u8>) -> (Result<Arc<Value>, Box<AttemptFailed>>, String) {
    let server = Server::start().await;
    let search = search(&server);
    let args = json!({ "query": "late payments & refunds", "k": 2 });
    let args = args.as_object().expect("a table");
    let request = ToolRequest::bare(args);
    both(search.ask(request), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(bytes).await;
        asking.head
    })
    .await
}

#[tokio::test]
async fn sends_query_and_limits_results() {
    let body = r#"{"results": [
        {"url": "https://a.example/1", "title": "One", "content": "a", "score": 1.0},
        {"url": "https://a.example/2", "title": "Two", "content": "hunter2hunter2", "score": 4.0},
        {"url": "https://a.example/3", "title": "Three", "content": "c", "score": 2.0}]}"#;
    let (found, head) = asked(answer("200 OK", body)).await;
    let asked_for = "GET /search?q=late%20payments%20%26%20refunds&n=2&format=json HTTP/1.1\r\n";
    assert!(head.starts_with(asked_for) && head.contains(KEY), "{head}");
    let results = json!([
        { "url": "https://a.example/2", "title": "Two", "snippet": "***", "score": 1.0 },
        { "url": "https://a.example/3", "title": "Three", "snippet": "c", "score": 0.5 },
    ]);
    assert_eq!(*found.expect("results"), json!({ "status": "ok", "data": { "results": results } }));
}

#[tokio::test]
async fn bad_answer_error_names_position() {
    for (status, body, class, says) in [
        ("200 OK", "{\"results\": 7}", FailureClass::BadResponse, "is not a list at /results"),
        ("200 OK", "<html>", FailureClass::BadResponse, "is not JSON"),
        ("503 Busy", "{}", FailureClass::Status, "HTTP 503"),
        ("403 No", "{\"error\": \"hunter2hunter2\"}", FailureClass::Auth, "HTTP 403"),
    ] {
        let failed = asked(answer(status, body)).await.0.expect_err("a failure");
        assert_eq!(failed.class, class, "{}", failed.text);
        assert!(failed.text.contains(says) && !failed.text.contains(KEY), "{}", failed.text);
    }
}
