//! Servers at an address: a fake one that says what a test tells it to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{environment, fail, list, text};
use crate::log::event::kind::FailureClass;
use crate::net::{Http, Reach};
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport, McpUrl};
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
    let spec = McpServerSpec {
        optional: false,
        name: "shop".to_owned(),
        transport: McpTransport::Url(McpUrl {
            url: url.to_owned(),
            headers,
            allow_private: reach == Reach::Anywhere,
        }),
        start_timeout: Duration::from_secs(30),
        max_bytes: 100_000,
        allow: Vec::new(),
    };
    McpServer::new(Arc::new(spec), Http::direct(reach), &environment)
}

/// A server whose requests are answered by a function. What it was asked is kept.
struct FakeHttp {
    server: Arc<McpServer>,
    asked: Arc<Mutex<Vec<Asking>>>,
    _task: tokio::task::JoinSet<()>,
}

impl FakeHttp {
    async fn start(answers: impl Fn(&Asking) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = Server::start().await;
        let server =
            server_at(&format!("http://{}/mcp", listener.host()), headers(), Reach::Anywhere);
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
        Self { server: server.expect("all set"), asked, _task: task }
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
    let page = |status| answer(status, &["content-type: text/html"], "<html>hunter2hunter2</html>");
    for (answer, class, says) in [
        (
            json_answer("401 Unauthorized", "no hunter2hunter2"),
            FailureClass::Auth,
            "HTTP 401: no ***. Check authorization in headers of [mcp.shop].",
        ),
        (
            page("403 Forbidden"),
            FailureClass::Auth,
            "HTTP 403: an HTML page. Check authorization in headers of [mcp.shop].",
        ),
        (
            page("404 Not Found"),
            FailureClass::Status,
            "HTTP 404: an HTML page. Check the server's url: is it the one of its MCP endpoint?",
        ),
        (
            json_answer("429 Too Many Requests", ""),
            FailureClass::RateLimited,
            "HTTP 429. Wait, or call it less often.",
        ),
        (
            json_answer("503 Service Unavailable", "busy"),
            FailureClass::Status,
            "HTTP 503: busy. Try again later.",
        ),
        (
            answer("302 Found", &["location: https://a.example/x?key=1"], ""),
            FailureClass::Status,
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
        connection.send(json_answer("401 Unauthorized", "")).await;
        connection
    };
    let ((_, text), _connection) = tokio::join!(fail(&server, "echo", json!({})), refuses);
    assert_eq!(
        text,
        "the MCP server shop returned HTTP 401. Set a header with credentials, such as \
         Authorization, in headers of [mcp.shop]."
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
    let large = || "x".repeat(200_000);
    type Answers = fn(&Asking) -> Vec<u8>;
    let cases: [(Answers, FailureClass, &str); 8] = [
        (|asking| result(asking, said(&"x".repeat(200_000))), FailureClass::TooLarge, "max_bytes"),
        (
            |asking| {
                let event = message(asking, said(&"x".repeat(200_000)));
                format!("{STREAM_HEAD}data: {event}\n\n").into_bytes()
            },
            FailureClass::TooLarge,
            "max_bytes",
        ),
        (
            |_| format!("{STREAM_HEAD}data: {}\n\n", "x".repeat(200_000)).into_bytes(),
            FailureClass::TooLarge,
            "max_bytes",
        ),
        (
            |_| [STREAM_HEAD.as_bytes(), b"data: \xff\n\n"].concat(),
            FailureClass::BadResponse,
            "is not UTF-8",
        ),
        (
            |_| format!("{STREAM_HEAD}data: no message\n\n").into_bytes(),
            FailureClass::Reset,
            "closed the connection before its answer was complete",
        ),
        (
            |_| json_answer("200 OK", "{\"oops\": \"\x1b hunter2hunter2\"}"),
            FailureClass::BadResponse,
            "answers with JSON that is no MCP message",
        ),
        (
            |_| answer("200 OK", &["content-type: text/html"], "<p>"),
            FailureClass::BadResponse,
            "answers with text/html, not with JSON",
        ),
        (
            |asking| {
                let id = &asking.body["id"];
                let error = json!({ "code": -32602, "message": "no such order" });
                let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                json_answer("400 Bad Request", &body.to_string())
            },
            FailureClass::Rejected,
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
