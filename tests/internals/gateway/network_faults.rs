//! The faults that name the network, by the number of the list: a tool over real sockets behind the
//! gateway. Whether it is asked again, whether it counts as the tool's failure, and that nothing is
//! in flight afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::gateway::breaker::BreakerView;
use crate::gateway::{Attempt, Callee};
use crate::log::event::{AttemptFailed, EventKind, FailureClass, Reply};
use crate::model::ChatModel;
use crate::model::openai::OpenAi;
use crate::net::{Http, Reach};
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::tools::http::{HttpMethod, HttpSpec};
use crate::support::gateway_call::{Behind, Scope, call, guard, policy};
use crate::support::server::ClosedPort;
use crate::support::wire;
use crate::support::wire::{Connection, Server, answer};
use crate::tool::http::HttpTool;
use futures::FutureExt;
use futures::future::BoxFuture;

fn tool(url: &str) -> HttpTool {
    reaching(url, Reach::Anywhere)
}

fn reaching(url: &str, reach: Reach) -> HttpTool {
    let spec = HttpSpec {
        method: HttpMethod::Get,
        url: url.to_owned(),
        headers: [].into(),
        send_args: false,
        pointer: String::new(),
        max_bytes: 1 << 10,
        allow_private: reach == Reach::Anywhere,
    };
    HttpTool::new(Arc::new(spec), Http::direct(reach), &|_| None).expect("a tool")
}

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    /// How its last attempt failed; `None`: answered.
    failed: Option<FailureClass>,
    attempts: u32,
    /// What the breaker counts.
    failures: u32,
}

/// Two attempts without a wait between, each of so many milliseconds at most.
async fn asked(url: &str, limit_ms: u64) -> (Came, Scope) {
    asked_of(&tool(url), limit_ms).await
}

/// The same of this tool.
async fn asked_of(tool: &HttpTool, limit_ms: u64) -> (Came, Scope) {
    let scope = Scope::new();
    let timeout = Some(Duration::from_millis(limit_ms));
    let guard = guard(CallPolicy { timeout, backoff: [].into(), ..policy() }, &scope);
    let result = call(&scope, &guard, &Behind(tool)).await;
    let (failed, attempts) = match result {
        Ok(answered) => (None, answered.attempts),
        Err(failed) => (Some(failed.last.expect("an attempt").class), failed.attempts),
    };
    let BreakerView::Closed { failures, .. } = guard.snapshot().breaker else { panic!("closed") };
    assert_eq!(guard.snapshot().fill.in_flight, 0);
    assert_eq!(scope.out.load(Ordering::SeqCst), 0);
    (Came { failed, attempts, failures }, scope)
}

/// A call of a server that does this with each connection, by its number.
async fn served(limit_ms: u64, with: impl AsyncFn(Connection, u32)) -> (Came, Scope, u32) {
    let server = Server::start().await;
    let url = format!("http://{}/v1", server.host());
    let connections = AtomicU32::new(0);
    let serve = async {
        loop {
            let connection = server.accept().await;
            let number = connections.fetch_add(1, Ordering::SeqCst) + 1;
            with(connection, number).await;
        }
    };
    tokio::select! {
        biased;
        () = serve => unreachable!("it serves for ever"),
        (came, scope) = asked(&url, limit_ms) => (came, scope, connections.load(Ordering::SeqCst)),
    }
}

async fn says(mut connection: Connection, bytes: impl AsRef<[u8]>) {
    connection.request().await;
    connection.send(bytes).await;
}

const LONG: u64 = 30_000;
const GOOD: &str = "{\"good\":true}";

#[tokio::test]
async fn fault_01_429_retries_without_failure() {
    let (came, ..) = served(LONG, async |connection, number| match number {
        1 => says(connection, answer("429 Too Many Requests", &["retry-after: 0"], "{}")).await,
        _ => says(connection, answer("200 OK", &[], GOOD)).await,
    })
    .await;
    assert_eq!(came, Came { failed: None, attempts: 2, failures: 0 });
}

#[tokio::test]
async fn fault_02_skips_long_retry_after() {
    for wait in ["3600", "99999999999999999999999999"] {
        let scope = Scope::with(Duration::from_secs(60));
        let guard = guard(policy(), &scope);
        let server = Server::start().await;
        let tool = tool(&format!("http://{}/v1", server.host()));
        let limited = async {
            let header = format!("retry-after: {wait}");
            let bytes = answer("429 Too Many Requests", &[&header], "{}");
            says(server.accept().await, bytes).await;
        };
        let behind = Behind(&tool);
        let (failed, ()) = wire::both(call(&scope, &guard, &behind), limited).await;
        assert_eq!(failed.expect_err("limited").attempts, 1, "{wait}");
        let again = call(&scope, &guard, &Behind(&tool)).await.expect_err("gated");
        assert_eq!(again.reason.to_string(), "circuit_open:vendor", "{wait}");
    }
}

/// `retry-after-ms` goes before `Retry-After`, and `x-should-retry` before what its status says.
#[tokio::test]
async fn obeys_retry_headers() {
    let good = || answer("200 OK", &[], GOOD);
    let (came, scope, _) = served(LONG, async |connection, number| match number {
        1 => {
            let headers = ["retry-after: 7200", "retry-after-ms: 20"];
            says(connection, answer("429 Too Many Requests", &headers, "{}")).await;
        }
        _ => says(connection, good()).await,
    })
    .await;
    assert_eq!(came, Came { failed: None, attempts: 2, failures: 0 });
    assert_eq!(scope.waits().await, [20]);
    for (status, header, attempts) in [
        ("408 Request Timeout", "x: y", 2),
        ("409 Conflict", "x: y", 2),
        ("400 Bad Request", "x-should-retry: true", 2),
        ("503 Service Unavailable", "x-should-retry: false", 1),
        ("404 Not Found", "x-should-retry: perhaps", 1),
    ] {
        let (came, ..) = served(LONG, async |connection, number| match number {
            1 => says(connection, answer(status, &[header], "{}")).await,
            _ => says(connection, good()).await,
        })
        .await;
        assert_eq!(came.attempts, attempts, "{status}, {header}");
        assert_eq!(came.failed.is_none(), attempts == 2, "{status}, {header}");
    }
}

#[tokio::test]
async fn fault_03_500_retries_and_counts() {
    let (came, ..) = served(LONG, async |connection, _| {
        says(connection, answer("500 Internal Server Error", &[], "{}")).await;
    })
    .await;
    assert_eq!(came, Came { failed: Some(FailureClass::Status), attempts: 2, failures: 2 });
}

#[tokio::test]
async fn fault_05_bad_request_is_final() {
    for (status, class) in [
        ("400 Bad Request", FailureClass::Status),
        ("401 Unauthorized", FailureClass::Auth),
        ("404 Not Found", FailureClass::Status),
    ] {
        let (came, ..) = served(LONG, async |connection, _| {
            says(connection, answer(status, &[], "{}")).await;
        })
        .await;
        assert_eq!(came, Came { failed: Some(class), attempts: 1, failures: 0 }, "{status}");
    }
}

#[tokio::test]
async fn fault_06_refused_connection_retries() {
    let port = ClosedPort::new();
    let (came, _) = asked(&format!("http://{}/v1", port.host()), LONG).await;
    assert_eq!(came, Came { failed: Some(FailureClass::Connect), attempts: 2, failures: 2 });
}

#[tokio::test]
async fn fault_07_unresolved_name_retries() {
    let (came, _) = asked("http://no-such-host.invalid/v1", LONG).await;
    assert_eq!(came, Came { failed: Some(FailureClass::Resolve), attempts: 2, failures: 2 });
}

#[tokio::test]
async fn fault_08_bad_certificate_is_final() {
    let acceptor = wire::unsigned();
    let server = Server::start().await;
    let url = format!("https://{}/v1?token=hunter2", server.host());
    let refused = async {
        let _ = acceptor.accept(server.accept().await.into_stream()).await;
    };
    let ((came, scope), ()) = wire::both(asked(&url, LONG), refused).await;
    assert_eq!(came, Came { failed: Some(FailureClass::Tls), attempts: 1, failures: 1 });
    for fact in scope.facts().await {
        let line = fact.to_line().expect("a line");
        assert!(!line.contains("hunter2"), "no secret in the text: {line}");
    }
}

#[tokio::test]
async fn fault_09_reset_discards_partial_body() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":";
    let (came, scope, _) = served(LONG, async |mut connection, _| {
        connection.request().await;
        connection.send(half).await;
        connection.reset();
    })
    .await;
    assert_eq!(came, Came { failed: Some(FailureClass::Reset), attempts: 2, failures: 2 });
    let facts = scope.facts().await;
    let lines: Vec<_> = facts.iter().map(|fact| fact.to_line().expect("a line")).collect();
    assert!(lines.iter().all(|line| !line.contains("half")), "the part is thrown away");
}

#[tokio::test]
async fn fault_10_timeout_ends_slow_drip() {
    let (came, ..) = served(150, async |mut connection, _| {
        connection.request().await;
        connection.send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
        // A byte now and then: a limit between two bytes would never be reached.
        let mut drip = tokio::time::interval(Duration::from_millis(10));
        while connection.takes(b" ").await {
            drip.tick().await;
        }
    })
    .await;
    assert_eq!(came, Came { failed: Some(FailureClass::Timeout), attempts: 2, failures: 2 });
}

#[tokio::test]
async fn fault_11_timeout_retries_and_counts() {
    let held = tokio::sync::Mutex::new(Vec::new());
    let (came, scope, connections) = served(100, async |mut connection, _| {
        connection.request().await;
        held.lock().await.push(connection);
    })
    .await;
    assert_eq!(came, Came { failed: Some(FailureClass::Timeout), attempts: 2, failures: 2 });
    assert_eq!(connections, 2);
    let facts = scope.facts().await;
    let limits = facts.iter().filter_map(|fact| match fact.kind {
        EventKind::AttemptStarted { timeout_ms, .. } => Some(timeout_ms),
        _ => None,
    });
    assert_eq!(limits.collect::<Vec<_>>(), [100, 100]);
}

#[tokio::test]
async fn fault_12_invalid_json_is_final() {
    let (came, scope, _) = served(LONG, async |connection, _| {
        says(connection, answer("200 OK", &[], "{\"a\": nope}")).await;
    })
    .await;
    assert_eq!(came, Came { failed: Some(FailureClass::BadResponse), attempts: 1, failures: 1 });
    let facts = scope.facts().await;
    let text = facts.iter().find_map(|fact| match &fact.kind {
        EventKind::AttemptFailed(failed) => Some(failed.text.clone()),
        _ => None,
    });
    let text = text.expect("a failure");
    assert!(text.contains("column") || text.contains("byte") || text.contains("line"), "{text}");
}

/// A model behind the gateway.
struct Model<'a>(&'a OpenAi);

impl Callee for Model<'_> {
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        let _ = attempt;
        async move { self.0.chat(&wire::ask(false), &wire::Deaf).await }.boxed()
    }
}

/// What the scenario or the caller got wrong is not told to the breaker as the tool's failure.
#[tokio::test]
async fn denied_calls_count_no_failure() {
    let denied = Came { failed: Some(FailureClass::Denied), attempts: 1, failures: 0 };
    let closed = reaching("http://127.0.0.1:1/v1", Reach::Internet);
    assert_eq!(asked_of(&closed, LONG).await.0, denied);
    assert_eq!(asked("http://127.0.0.1:1/v1/{sku}", LONG).await.0, denied);
}

#[tokio::test]
async fn fault_13_attempt_keeps_partial_stream() {
    let scope = Scope::new();
    let guard = guard(CallPolicy { backoff: [].into(), ..policy() }, &scope);
    let server = Server::start().await;
    let model = server.streaming();
    let serve = async {
        let cut = format!("{}{}", wire::STREAM_HEAD, wire::piece("half of it"));
        says(server.accept().await, cut).await;
        let whole = format!("{}{}{}", wire::STREAM_HEAD, wire::piece("all of it"), wire::ENDING);
        says(server.accept().await, whole).await;
    };
    let model = Model(&model);
    let (answered, ()) = wire::both(call(&scope, &guard, &model), serve).await;
    let answered = answered.expect("the second attempt");
    assert_eq!((&*answered.reply.text, answered.attempts), ("all of it", 2));
    let failed = scope.facts().await.into_iter().find_map(|fact| match &fact.kind {
        EventKind::AttemptFailed(failed) => Some(failed.clone()),
        _ => None,
    });
    let failed = failed.expect("the first attempt");
    assert_eq!(failed.partial.as_deref(), Some("half of it"));
    assert!(failed.class.is_failure_of_tool(failed.status), "it counts");
    assert_eq!(guard.snapshot().fill.in_flight, 0);
}

#[tokio::test]
async fn fault_14_cap_ends_endless_body() {
    let (came, ..) = served(LONG, async |mut connection, _| {
        connection.request().await;
        connection.send("HTTP/1.1 200 OK\r\n\r\n").await;
        connection.send_without_end(&[b' '; 4096]).await;
    })
    .await;
    assert_eq!(came, Came { failed: Some(FailureClass::TooLarge), attempts: 1, failures: 1 });
}
