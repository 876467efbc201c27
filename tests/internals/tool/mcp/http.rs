//! Servers at an address: a fake one that says what a test tells it to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{environment, fail, list, text};
use crate::log::event::FailureClass;
use crate::net::{Http, Reach};
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport, McpUrl, McpVersion};
use crate::support::server::{
    Asking, ClosedPort, STREAM_HEAD, Server, answer, json as json_answer,
};
use crate::tool::NotReady;
use crate::tool::mcp::McpServer;

fn headers() -> BTreeMap<String, Setting> {
    BTreeMap::from([("authorization".to_owned(), Setting::Env("SHOP_TOKEN".to_owned()))])
}

fn server_at(
    url: &str,
    headers: BTreeMap<String, Setting>,
    reach: Reach,
) -> Result<Arc<McpServer>, Vec<NotReady>> {
    server_with(url, headers, reach, None)
}

fn server_with(
    url: &str,
    headers: BTreeMap<String, Setting>,
    reach: Reach,
    protocol_version: Option<McpVersion>,
) -> Result<Arc<McpServer>, Vec<NotReady>> {
    let spec = McpServerSpec {
        optional: false,
        name: "shop".to_owned(),
        transport: McpTransport::Url(McpUrl {
            url: url.to_owned(),
            headers,
            allow_private: reach == Reach::Anywhere,
        }),
        start_timeout: Duration::from_secs(30),
        protocol_version,
        max_bytes: 100_000,
        allow: Vec::new(),
    };
    McpServer::new(Arc::new(spec), Http::direct(reach), &environment)
}

/// A server whose requests are answered by a function. What it was asked is kept.
struct FakeHttp {
    url: String,
    server: Arc<McpServer>,
    asked: Arc<Mutex<Vec<Asking>>>,
    _task: tokio::task::JoinSet<()>,
}

impl FakeHttp {
    async fn start(answers: impl Fn(&Asking) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = Server::start().await;
        let url = format!("http://{}/mcp", listener.host());
        let server = server_at(&url, headers(), Reach::Anywhere);
        let (asked, answers) = (Arc::<Mutex<Vec<Asking>>>::default(), Arc::new(answers));
        let kept = Arc::clone(&asked);
        let mut task = tokio::task::JoinSet::new();
        task.spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let mut connection = listener.accept().await;
                let (answers, kept) = (Arc::clone(&answers), Arc::clone(&kept));
                connections.spawn(async move {
                    while let Some(asking) = connection.request_before_end().await {
                        let bytes = answers(&asking);
                        kept.lock().expect("no panic").push(asking);
                        let closes = bytes.starts_with(STREAM_HEAD.as_bytes());
                        if !connection.takes(&bytes).await || closes {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, server: server.expect("all set"), asked, _task: task }
    }

    /// One of the newer protocol era, whose calls are answered by a function.
    async fn modern(calls: impl Fn(&Asking) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start(move |asking| match asking.body["method"].as_str() {
            Some("server/discover") => result(
                asking,
                json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private"
                }),
            ),
            _ => calls(asking),
        })
        .await
    }
}

fn message(asking: &Asking, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": asking.body["id"], "result": result }).to_string()
}

fn result(asking: &Asking, result: Value) -> Vec<u8> {
    json_answer("200 OK", &message(asking, result))
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn header<'a>(asking: &'a Asking, name: &str) -> Option<&'a str> {
    asking.head.lines().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}

#[tokio::test]
async fn json_and_events_are_read() {
    let fake = FakeHttp::modern(|asking| match asking.body["params"]["name"].as_str() {
        Some("json") => result(asking, said("as JSON hunter2hunter2")),
        _ => {
            let event = message(asking, said("as an event"));
            // The last event lacks its empty line.
            format!("{STREAM_HEAD}: a comment\n\nevent: message\ndata: {event}\n").into_bytes()
        }
    })
    .await;
    assert_eq!(text(&fake.server, "json", json!({})).await, "as JSON ***");
    assert_eq!(text(&fake.server, "event", json!({})).await, "as an event");
    let asked = fake.asked.lock().expect("no panic");
    for asking in asked.iter() {
        assert!(asking.head.starts_with("POST /mcp "), "{}", asking.head);
        assert_eq!(header(asking, "authorization"), Some("hunter2hunter2"));
        assert_eq!(header(asking, "mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(header(asking, "accept"), Some("application/json, text/event-stream"));
    }
    assert_eq!(header(&asked[1], "mcp-name"), Some("json"));
}

#[tokio::test]
async fn refused_start_says_what_to_do() {
    use FailureClass::{Auth, RateLimited, Status};
    let page = |status| answer(status, &["content-type: text/html"], "<html>hunter2hunter2</html>");
    for (answer, class, says) in [
        (
            json_answer("401 Unauthorized", "no hunter2hunter2"),
            Auth,
            "HTTP 401: no ***. Check authorization in headers of [mcp.shop].",
        ),
        (
            page("403 Forbidden"),
            Auth,
            "HTTP 403: an HTML page. Check authorization in headers of [mcp.shop].",
        ),
        (
            page("404 Not Found"),
            Status,
            "HTTP 404: an HTML page. Check the server's url: is it the one of its MCP endpoint?",
        ),
        (
            json_answer("429 Too Many Requests", ""),
            RateLimited,
            "HTTP 429. Wait, or call it less often.",
        ),
        (
            json_answer("503 Service Unavailable", "busy"),
            Status,
            "HTTP 503: busy. Try again later.",
        ),
        (
            answer("302 Found", &["location: https://a.example/x?key=1"], ""),
            Status,
            "HTTP 302: https://a.example/x?***. Redirects are not followed: set url to where it \
             leads.",
        ),
    ] {
        let fake = FakeHttp::start(move |_| answer.clone()).await;
        let (got, text) = fail(&fake.server, "echo", json!({})).await;
        assert_eq!(text, format!("the MCP server shop returned {says}"));
        assert_eq!(got, class, "{text}");
    }
}

#[tokio::test]
async fn missing_header_is_named() {
    let listener = Server::start().await;
    let url = format!("http://{}/mcp", listener.host());
    let server = server_at(&url, BTreeMap::new(), Reach::Anywhere).expect("all set");
    let refuses = async {
        let mut connection = listener.accept().await;
        connection.request().await;
        let page = "https://a.example/.well-known/oauth-protected-resource";
        let challenge = format!(
            "www-authenticate: Bearer error=\"invalid_token\", resource_metadata=\"{page}\""
        );
        connection.send(answer("401 Unauthorized", &[&challenge], "")).await;
        connection
    };
    let ((_, text), _connection) = tokio::join!(fail(&server, "echo", json!({})), refuses);
    assert_eq!(
        text,
        "the MCP server shop returned HTTP 401. roundtable does not log in (OAuth): get a token and \
         set it in [mcp.shop], such as headers = { Authorization = { env = \"TOKEN\" } }. Its page \
         about access: https://a.example/.well-known/oauth-protected-resource"
    );
}

#[tokio::test]
async fn network_errors_have_their_class() {
    let closed = ClosedPort::new();
    let url = format!("http://{}/mcp", closed.host());
    let server = server_at(&url, headers(), Reach::Anywhere).expect("all set");
    let (class, text) = fail(&server, "echo", json!({})).await;
    assert_eq!(class, FailureClass::Connect);
    assert!(text.ends_with("Is the server running? Check its url."), "{text}");
    let server = server_at(&url, headers(), Reach::Internet).expect("all set");
    let (class, text) = fail(&server, "echo", json!({})).await;
    assert_eq!(class, FailureClass::Denied);
    assert!(text.ends_with("If you mean this host, set allow_private = true."), "{text}");
}

#[tokio::test]
async fn bad_answers_fail_their_call() {
    use FailureClass::{BadResponse, Rejected, Reset, TooLarge};
    let large = || "x".repeat(200_000);
    type Answers = fn(&Asking) -> Vec<u8>;
    let cases: [(Answers, FailureClass, &str); 10] = [
        (|asking| result(asking, said(&"x".repeat(200_000))), TooLarge, "max_bytes"),
        (
            |asking| {
                let event = message(asking, said(&"x".repeat(200_000)));
                format!("{STREAM_HEAD}data: {event}\n\n").into_bytes()
            },
            TooLarge,
            "max_bytes",
        ),
        (
            |_| format!("{STREAM_HEAD}data: {}\n\n", "x".repeat(200_000)).into_bytes(),
            TooLarge,
            "max_bytes",
        ),
        (|_| [STREAM_HEAD.as_bytes(), b"data: \xff\n\n"].concat(), BadResponse, "is not UTF-8"),
        (
            |_| format!("{STREAM_HEAD}data: no message\n\n").into_bytes(),
            BadResponse,
            "sent an event that is no MCP message: no message",
        ),
        (
            |_| format!("{STREAM_HEAD}data: {{\"jsonrpc\": \"2.0\", \"id\": 7}}\n\n").into_bytes(),
            BadResponse,
            "sent an event that is no MCP message",
        ),
        (
            |_| format!("{STREAM_HEAD}event: ping\ndata: {{}}\n\n").into_bytes(),
            Reset,
            "closed the connection before its answer was complete",
        ),
        (
            |_| json_answer("200 OK", "{\"oops\": \"\x1b hunter2hunter2\"}"),
            BadResponse,
            "answers with JSON that is no MCP message",
        ),
        (
            |_| answer("200 OK", &["content-type: text/html"], "<p>"),
            BadResponse,
            "answers with text/html, not with JSON",
        ),
        (
            |asking| {
                let id = &asking.body["id"];
                let error = json!({ "code": -32602, "message": "no such order" });
                let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                json_answer("400 Bad Request", &body.to_string())
            },
            Rejected,
            "returned error -32602: no such order",
        ),
    ];
    assert!(large().len() > 100_000);
    for (answers, class, says) in cases {
        let fake = FakeHttp::modern(answers).await;
        let (got, text) = fail(&fake.server, "echo", json!({})).await;
        assert!(text.contains(says), "{says}: {text}");
        assert_eq!(got, class, "{text}");
    }
}

#[tokio::test]
async fn flood_of_requests_ends_connection() {
    let fake = FakeHttp::modern(|asking| match asking.body["method"].as_str() {
        Some("tools/call") => {
            let pings: String = (0..1_000)
                .map(|n| {
                    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"ping\"}}\n\n")
                })
                .collect();
            format!("{STREAM_HEAD}{pings}").into_bytes()
        }
        _ => answer("503 Busy", &[], ""),
    })
    .await;
    let (class, text) = fail(&fake.server, "echo", json!({})).await;
    assert_eq!(class, FailureClass::Tool);
    assert!(text.contains("requests and reads no answers"), "{text}");
}

/// A server with `initialize`, which answers `server/discover` and calls in ways of their own.
async fn legacy(
    discovery: impl Fn(&Asking) -> Vec<u8> + Send + Sync + 'static,
    calls: impl Fn(&Asking) -> Vec<u8> + Send + Sync + 'static,
) -> FakeHttp {
    let opened = std::sync::atomic::AtomicU32::new(0);
    FakeHttp::start(move |asking| match asking.body["method"].as_str() {
        Some("server/discover") => discovery(asking),
        Some("initialize") => {
            let number = opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let body = message(
                asking,
                json!({ "protocolVersion": "2025-06-18", "capabilities": [], "serverInfo": {} }),
            );
            let session = format!("mcp-session-id: s{number}");
            answer("200 OK", &["content-type: application/json", &session], &body)
        }
        Some("tools/call") => calls(asking),
        Some(_) => answer("202 Accepted", &[], ""),
        None => answer("405 Method Not Allowed", &[], ""),
    })
    .await
}

fn error(asking: &Asking, code: i32) -> String {
    let error = json!({ "code": code, "message": "Session or method unknown" });
    json!({ "jsonrpc": "2.0", "id": asking.body["id"], "error": error }).to_string()
}

#[tokio::test]
async fn refused_discovery_is_an_older_server() {
    type Answers = fn(&Asking) -> Vec<u8>;
    let ways: [(&str, Answers); 15] = [
        ("400", |_| answer("400 Bad Request", &[], "no session")),
        ("404", |_| answer("404 Not Found", &[], "")),
        ("405", |_| answer("405 Method Not Allowed", &[], "")),
        ("429", |_| answer("429 Too Many Requests", &[], "")),
        ("500", |_| answer("500 Internal Server Error", &[], "oops")),
        ("500 with an error", |it| json_answer("500 Oops", &error(it, -32603))),
        ("501", |_| answer("501 Not Implemented", &[], "")),
        ("202", |_| answer("202 Accepted", &[], "")),
        ("a text", |_| answer("200 OK", &["content-type: text/plain"], "what?")),
        ("a page", |_| answer("200 OK", &["content-type: text/html"], "<html>")),
        ("{}", |_| json_answer("200 OK", "{}")),
        ("an empty result", |it| result(it, json!({}))),
        ("a header error", |it| json_answer("200 OK", &error(it, -32020))),
        ("an ended stream", |_| format!("{STREAM_HEAD}event: ping\ndata: 12:00\n\n").into_bytes()),
        ("a text in a stream", |_| format!("{STREAM_HEAD}data: what?\n\n").into_bytes()),
    ];
    for (way, discovery) in ways {
        let fake = legacy(discovery, |asking| result(asking, said("older"))).await;
        assert_eq!(text(&fake.server, "echo", json!({})).await, "older", "{way}");
    }
    let listed = |it: &Asking| {
        result(it, json!({ "supportedVersions": ["2026-07-28"], "capabilities": [] }))
    };
    let fake = legacy(listed, |asking| result(asking, said("newer"))).await;
    assert_eq!(text(&fake.server, "echo", json!({})).await, "newer");
    let asked = fake.asked.lock().expect("no panic");
    assert!(asked.iter().all(|it| it.body["method"] != "initialize"));
}

#[tokio::test]
async fn lost_session_is_opened_again() {
    type Answers = fn(&Asking) -> Vec<u8>;
    let ways: [(&str, Answers); 6] = [
        ("404", |_| answer("404 Not Found", &[], "")),
        ("400 -32000", |it| json_answer("400 Bad Request", &error(it, -32000))),
        ("400 -32001", |it| json_answer("400 Bad Request", &error(it, -32001))),
        ("400 -32600", |it| json_answer("400 Bad Request", &error(it, -32600))),
        ("400", |_| answer("400 Bad Request", &[], "Bad Request: No valid session ID provided")),
        ("401", |_| answer("401 Unauthorized", &[], "Unauthorized: Session not found")),
    ];
    for (way, lost) in ways {
        let unknown = |_: &Asking| answer("404 Not Found", &[], "");
        let calls = move |asking: &Asking| match header(asking, "mcp-session-id") {
            Some("s0") => lost(asking),
            _ => result(asking, said("renewed")),
        };
        let fake = legacy(unknown, calls).await;
        let (class, failed) = fail(&fake.server, "echo", json!({})).await;
        assert!(failed.contains("does not know the session any more"), "{way}: {failed}");
        assert_eq!(class, FailureClass::Reset, "{way}");
        assert_eq!(text(&fake.server, "echo", json!({})).await, "renewed", "{way}");
    }
    // Other refusals are no lost session.
    let invalid = |it: &Asking| {
        json_answer("400 Bad Request", &error(it, -32602).replace("Session", "Argument"))
    };
    let fake = legacy(|_| answer("404 Not Found", &[], ""), invalid).await;
    assert_eq!(fail(&fake.server, "echo", json!({})).await.0, FailureClass::Rejected);
}

#[tokio::test]
async fn events_of_other_names_are_skipped() {
    for noise in ["event: ping\ndata: {}\n\n", "event: ping\ndata: 12:00\n\n", ": ping\n\n"] {
        let fake = FakeHttp::start(move |asking| {
            let answer = match asking.body["method"].as_str() {
                Some("server/discover") => json!({ "supportedVersions": ["2026-07-28"] }),
                Some("tools/list") => json!({ "tools": [{ "name": "echo" }] }),
                _ => said("after the noise"),
            };
            let event = message(asking, answer);
            format!("{STREAM_HEAD}{noise}event: message\ndata: {event}\n\n").into_bytes()
        })
        .await;
        assert_eq!(list(&fake.server).await.expect("tools").len(), 1, "{noise}");
        assert_eq!(text(&fake.server, "echo", json!({})).await, "after the noise");
    }
}

#[tokio::test]
async fn named_version_is_not_asked_for() {
    for (version, method, header_value) in [
        (McpVersion::V20250618, "initialize", Some("2025-06-18")),
        (McpVersion::V20260728, "server/discover", Some("2026-07-28")),
    ] {
        let listed = |it: &Asking| result(it, json!({ "supportedVersions": ["2026-07-28"] }));
        let fake = legacy(listed, |asking| result(asking, said("done"))).await;
        let url = fake.url.clone();
        let server = server_with(&url, headers(), Reach::Anywhere, Some(version)).expect("all set");
        assert_eq!(text(&server, "echo", json!({})).await, "done");
        let asked = fake.asked.lock().expect("no panic");
        assert_eq!(asked[0].body["method"], method);
        if method == "initialize" {
            assert_eq!(asked[0].body["params"]["protocolVersion"], "2025-06-18");
        }
        let called = asked.iter().find(|it| it.body["method"] == "tools/call").expect("a call");
        assert_eq!(header(called, "mcp-protocol-version"), header_value);
    }
}

#[tokio::test]
async fn legacy_session_is_opened_and_deleted() {
    let fake = FakeHttp::start(|asking| {
        let session = "mcp-session-id: s1";
        match asking.body["method"].as_str() {
            Some("server/discover") => answer("400 Bad Request", &[], "no session"),
            Some("initialize") => {
                let body = message(
                    asking,
                    json!({
                        "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                        "serverInfo": { "name": "fake", "version": "1" }
                    }),
                );
                answer("200 OK", &["content-type: application/json", session], &body)
            }
            Some("tools/call") => match asking.body["params"]["name"].as_str() {
                Some("lost") => answer("404 Not Found", &[], ""),
                Some("lost_too") => {
                    let error = json!({ "code": -32000, "message": "no valid session" });
                    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
                    json_answer("400 Bad Request", &body.to_string())
                }
                _ => result(asking, said("from a session")),
            },
            Some(_) => answer("202 Accepted", &[], ""),
            // GET and DELETE
            None => answer("405 Method Not Allowed", &[], ""),
        }
    })
    .await;
    assert_eq!(text(&fake.server, "echo", json!({})).await, "from a session");
    for tool in ["lost", "lost_too"] {
        let says = "the MCP server shop does not know the session any more. The next attempt opens \
                    a new one.";
        assert_eq!(
            fail(&fake.server, tool, json!({})).await,
            (FailureClass::Reset, says.to_owned())
        );
        // The server is known to be of the older era.
        assert_eq!(text(&fake.server, "echo", json!({})).await, "from a session");
    }
    fake.server.end();
    super::in_time(async {
        let deleted = || {
            let asked = fake.asked.lock().expect("no panic");
            asked.iter().filter(|it| it.head.starts_with("DELETE")).count()
        };
        while deleted() < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let asked = fake.asked.lock().expect("no panic");
    let methods: Vec<&str> = asked.iter().filter_map(|it| it.body["method"].as_str()).collect();
    let opening = ["server/discover", "initialize", "notifications/initialized", "tools/call"];
    assert_eq!(methods[..4], opening);
    assert_eq!(methods.iter().filter(|it| **it == "server/discover").count(), 1);
    for asking in asked.iter().filter(|it| it.body["method"] == "tools/call") {
        assert_eq!(header(asking, "mcp-session-id"), Some("s1"));
        assert_eq!(header(asking, "mcp-protocol-version"), Some("2025-06-18"));
    }
}

#[tokio::test]
async fn new_connection_knows_headers_of_tools() {
    let fake = FakeHttp::modern(|asking| match asking.body["method"].as_str() {
        Some("tools/list") => {
            let region = json!({ "type": "string", "x-mcp-header": "Region" });
            let schema = json!({ "type": "object", "properties": { "region": region } });
            let tools = json!([{ "name": "stock", "inputSchema": schema }]);
            result(
                asking,
                json!({
                    "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"
                }),
            )
        }
        _ if asking.body["params"]["name"] == "large" => {
            format!("{STREAM_HEAD}data: {}\n\n", "x".repeat(200_000)).into_bytes()
        }
        _ => result(asking, said(header(asking, "mcp-param-region").unwrap_or("none"))),
    })
    .await;
    let region = json!({ "region": "EU" });
    assert_eq!(text(&fake.server, "stock", region.clone()).await, "none", "it is not known yet");
    list(&fake.server).await.expect("tools");
    assert_eq!(text(&fake.server, "stock", region.clone()).await, "EU");
    fail(&fake.server, "large", json!({})).await;
    assert_eq!(text(&fake.server, "stock", region).await, "EU", "after a new connection");
}

#[tokio::test]
async fn dropped_start_closes_its_connection() {
    let listener = Server::start().await;
    let url = format!("http://{}/mcp", listener.host());
    let server = server_at(&url, headers(), Reach::Anywhere).expect("all set");
    let args = super::fields(json!({}));
    let connection = super::in_time(async {
        tokio::select! {
            ended = server.call("echo", &args, &super::NoHost) => panic!("it ended: {ended:?}"),
            connection = async {
                let mut connection = listener.accept().await;
                connection.request().await;
                connection
            } => connection,
        }
    })
    .await;
    super::in_time(connection.closed()).await;
}

#[test]
fn bad_address_is_reported_before_start() {
    let bad_value = BTreeMap::from([("a b".to_owned(), Setting::Text("c".to_owned()))]);
    for (url, headers, says) in [
        (
            "ftp://a.example/",
            BTreeMap::new(),
            "the url of the MCP server shop is neither http:// nor https://: write one such as \
             https://tools.example/mcp",
        ),
        (
            "https://me:secret@a.example/",
            BTreeMap::new(),
            "the url of the MCP server shop has a user name or password, which belong into a \
             header: write one such as https://tools.example/mcp",
        ),
        (
            "https://a.example/",
            bad_value,
            "the header a b cannot be sent: its name has characters that headers cannot have",
        ),
    ] {
        let told = server_at(url, headers, Reach::Internet).err().expect("it is wrong");
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert_eq!(told, [says]);
    }
}
