//! Requests as tools, over real sockets: their contents, the report of each failure, and the hosts that
//! they may not reach.

use std::sync::Arc;

use crate::gateway::{Tool, ToolRequest};
use crate::log::event::{AttemptFailed, FailureClass};
use crate::net::{Http, Reach};
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::http::{HttpMethod, HttpSpec};
use crate::tool::http::HttpTool;
use serde_json::{Map, Value, json};

use crate::support::server::ClosedPort;
use crate::support::wire::{Server, answer, both, json as json_answer};

use super::TOKEN;

fn environment(name: &str) -> Option<String> {
    match name {
        "SHOP_TOKEN" => Some(format!("Bearer {TOKEN}")),
        "BROKEN" => Some("two\nlines".to_owned()),
        _ => None,
    }
}

fn spec(url: String) -> HttpSpec {
    let token = Setting::Env("SHOP_TOKEN".to_owned());
    HttpSpec {
        method: HttpMethod::Get,
        url,
        headers: [("authorization".to_owned(), token)].into(),
        send_args: false,
        pointer: String::new(),
        max_bytes: 1 << 10,
        allow_private: true,
    }
}

fn tool(spec: HttpSpec) -> HttpTool {
    let reach = if spec.allow_private { Reach::Anywhere } else { Reach::Internet };
    HttpTool::new(Arc::new(spec), Http::direct(reach), &environment).expect("a tool")
}

fn at(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.host())
}

async fn ask(tool: &HttpTool, args: Value) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let Value::Object(args) = args else { panic!("arguments are a table") };
    tool.ask(ToolRequest::bare(&args)).await
}

/// A failure whose text keeps to what every text keeps to.
fn failed(result: Result<Arc<Value>, Box<AttemptFailed>>) -> AttemptFailed {
    let failed = *result.expect_err("a failure");
    assert!(!failed.text.contains("hunter2"), "{}", failed.text);
    assert!(failed.text.chars().count() <= 300 && !failed.text.chars().any(char::is_control));
    failed
}

/// One call that is answered with these bytes on a connection that then closes.
async fn one(
    tool: &HttpTool,
    server: &Server,
    bytes: &[u8],
) -> Result<Arc<Value>, Box<AttemptFailed>> {
    let (asked, ()) = both(ask(tool, json!({})), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(bytes).await;
    })
    .await;
    asked
}

#[tokio::test]
async fn arguments_fill_address_and_pointer_selects() {
    let server = Server::start().await;
    let url = at(&server, "/v1/{sku}?region={region}");
    let tool = tool(HttpSpec { pointer: "/data/0".to_owned(), ..spec(url) });
    let args = json!({ "sku": "a/b", "region": "E U", "more": [1] });
    let (asked, asking) = both(ask(&tool, args), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(json_answer("200 OK", r#"{"data":[{"n":1}]}"#)).await;
        asking
    })
    .await;
    assert_eq!(*asked.expect("an answer"), json!({ "n": 1 }));
    assert!(asking.head.starts_with("GET /v1/a%2Fb?region=E%20U HTTP/1.1\r\n"), "{}", asking.head);
    assert!(asking.head.contains(&format!("authorization: Bearer {TOKEN}\r\n")));
    assert_eq!(asking.body, Value::Null);
}

#[tokio::test]
async fn sends_arguments_as_configured_body() {
    let server = Server::start().await;
    let method = HttpMethod::Post;
    let tool = tool(HttpSpec { method, send_args: true, ..spec(at(&server, "/v1")) });
    let args = json!({ "region": "EU", "n": 1.5 });
    let (asked, asking) = both(ask(&tool, args.clone()), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(json_answer("201 Created", "{}")).await;
        asking
    })
    .await;
    assert_eq!(*asked.expect("an answer"), json!({}));
    assert!(asking.head.starts_with("POST /v1 HTTP/1.1\r\n"));
    assert!(asking.head.contains("content-type: application/json\r\n"));
    assert_eq!(asking.body, args);
}

#[tokio::test]
async fn bad_argument_sends_no_request() {
    let tool = tool(spec("http://127.0.0.1:1/v1/{sku}".to_owned()));
    for (args, says) in [
        (json!({ "sku": { "a": 1 } }), "the argument sku is not a string, number or bool"),
        (json!({}), "the url needs the argument sku"),
        (json!({ "sku": ".." }), "the argument sku would change the url's path"),
    ] {
        let failure = failed(ask(&tool, args).await);
        assert_eq!(failure.class, FailureClass::Denied, "the tool cannot help it");
        assert_eq!(failure.text, format!("{says}. Correct the arguments of the call."));
    }
}

#[tokio::test]
async fn error_status_has_class_and_advice() {
    use FailureClass::{Auth, RateLimited, Status};
    let server = Server::start().await;
    let tool = tool(spec(at(&server, "/v1")));
    let host = server.host();
    let echo = format!("no {TOKEN} here");
    for (status, body, class, says) in [
        ("429 Slow", "", RateLimited, "returned HTTP 429. Wait, or call it less often."),
        ("503 Down", "<html>", Status, "returned HTTP 503: an HTML page. Try again later."),
        (
            "401 No",
            &*echo,
            Auth,
            "returned HTTP 401: no *** here. Check the header with the credentials.",
        ),
        (
            "404 None",
            "gone\u{1b}[2J",
            Status,
            "returned HTTP 404: gone␛[2J. Check the tool's url and its arguments.",
        ),
    ] {
        let failure = failed(one(&tool, &server, &answer(status, &[], body)).await);
        assert_eq!((failure.class, &failure.text), (class, &format!("{host} {says}")));
        assert_eq!(failure.status, status.get(..3).and_then(|code| code.parse().ok()));
    }
}

#[tokio::test]
async fn parses_retry_after_seconds_and_date() {
    let server = Server::start().await;
    let tool = tool(spec(at(&server, "/v1")));
    let date = "date: Wed, 21 Oct 2015 12:00:00 GMT";
    for (header, ms) in [
        ("retry-after: 2", Some(2_000)),
        ("retry-after: Wed, 21 Oct 2015 12:00:30 GMT", Some(30_000)),
        ("retry-after: soon", None),
    ] {
        let bytes = answer("503 Down", &[date, header], "");
        assert_eq!(failed(one(&tool, &server, &bytes).await).retry_after_ms, ms, "{header}");
    }
}

#[tokio::test]
async fn reports_redirect_without_following() {
    let server = Server::start().await;
    let tool = tool(spec(at(&server, "/v1")));
    let to = format!("location: http://me:{TOKEN}@other.example/x?key=1");
    let failure = failed(one(&tool, &server, &answer("302 Found", &[&to], "")).await);
    assert_eq!((failure.class, failure.status), (FailureClass::Status, Some(302)));
    assert!(failure.text.contains(": http://***@other.example/x?***. Redirects are not followed"));
}

#[tokio::test]
async fn invalid_json_error_names_position() {
    let server = Server::start().await;
    let pointer = "/data".to_owned();
    let tool = tool(HttpSpec { pointer, ..spec(at(&server, "/v1")) });
    let host = server.host();
    for (body, says) in [
        ("{\"a\": }", "is not JSON: expected value at line 1 column 7: {\"a\": }"),
        ("", "is empty, JSON was expected"),
        ("{}", "has nothing at /data. Check the tool's pointer."),
    ] {
        let failure = failed(one(&tool, &server, &json_answer("200 OK", body)).await);
        assert_eq!(failure.class, FailureClass::BadResponse);
        assert_eq!(failure.text, format!("the reply of {host} {says}"));
    }
}

#[tokio::test]
async fn refuses_used_integer_beyond_64_bits() {
    let server = Server::start().await;
    let body = r#"{"data":[{"n":18446744073709551615},{"n":18446744073709551616}]}"#;
    let pointed =
        |pointer: &str| tool(HttpSpec { pointer: pointer.to_owned(), ..spec(at(&server, "/v1")) });
    let kept = one(&pointed("/data/0"), &server, &json_answer("200 OK", body)).await;
    assert_eq!(*kept.expect("an answer"), json!({ "n": u64::MAX }));
    let failure = failed(one(&pointed(""), &server, &json_answer("200 OK", body)).await);
    assert_eq!(failure.class, FailureClass::BadResponse);
    let says = "holds 18446744073709551616, a whole number beyond 64 bits, which would lose digits: \
                send it as a string";
    assert!(failure.text.ends_with(says), "{}", failure.text);
}

#[tokio::test]
async fn answer_hides_secrets() {
    let server = Server::start().await;
    let tool = tool(spec(at(&server, "/v1")));
    let echo = format!(r#"{{"you":"Bearer {TOKEN}"}}"#);
    let answer = one(&tool, &server, &json_answer("200 OK", &echo)).await.expect("an answer");
    assert_eq!(*answer, json!({ "you": "***" }));
}

#[tokio::test]
async fn stops_reading_body_at_cap() {
    let server = Server::start().await;
    let tool = tool(spec(at(&server, "/v1")));
    let endless = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
    let (asked, taken) = both(ask(&tool, json!({})), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(endless).await;
        connection.send_without_end(&[b' '; 4096]).await
    })
    .await;
    assert_eq!(failed(asked).class, FailureClass::TooLarge);
    assert!(taken < 64 << 20, "it went on taking: {taken}");
}

#[tokio::test]
async fn connection_failures_have_class() {
    let server = Server::start().await;
    let tool_here = tool(spec(at(&server, "/v1")));
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\":";
    assert_eq!(failed(one(&tool_here, &server, half).await).class, FailureClass::Reset);
    assert_eq!(failed(one(&tool_here, &server, b"hello").await).class, FailureClass::BadResponse);
    let port = ClosedPort::new();
    let nobody = tool(spec(format!("http://{}/v1", port.host())));
    assert_eq!(failed(ask(&nobody, json!({})).await).class, FailureClass::Connect);
}

#[tokio::test]
async fn dropped_attempt_closes_connection() {
    let server = Server::start().await;
    let tool = tool(spec(at(&server, "/v1")));
    let args = Map::new();
    let mut asked = tool.ask(ToolRequest::bare(&args));
    let drip = async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{").await;
        connection
    };
    let connection = tokio::select! {
        ended = &mut asked => panic!("it ended by itself: {ended:?}"),
        connection = drip => connection,
    };
    // What the gateway does when the attempt's whole time is up, however slowly bytes still come.
    drop(asked);
    both(connection.closed(), async {}).await;
}

#[tokio::test]
async fn refuses_private_networks_by_default() {
    let server = Server::start().await;
    let (_, port) =
        server.host().rsplit_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a port");
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"] {
        let url = format!("http://{host}:{port}/v1");
        let closed = tool(HttpSpec { allow_private: false, ..spec(url) });
        let asked = tokio::select! {
            asked = ask(&closed, json!({})) => asked,
            _ = server.accept() => panic!("{host} was connected to"),
        };
        let failure = failed(asked);
        assert_eq!(failure.class, FailureClass::Denied, "{host}: {}", failure.text);
        assert!(
            failure.text.ends_with(
                "is not a public address. If you mean this host, set allow_private = true."
            ),
            "{}",
            failure.text
        );
    }
}

#[test]
fn reports_bad_settings_before_request() {
    let mut wrong = spec("https://{host}/v1".to_owned());
    for (name, setting) in [
        ("x-none", Setting::Env("NOT_SET".to_owned())),
        ("x y", Setting::Text("a".to_owned())),
        ("x-two", Setting::Env("BROKEN".to_owned())),
    ] {
        wrong.headers.insert(name.to_owned(), setting);
    }
    let told = |spec: &HttpSpec| -> Vec<String> {
        let spec = Arc::new(spec.clone());
        let told = HttpTool::new(spec, Http::direct(Reach::Internet), &environment);
        told.expect_err("it cannot be asked").iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        told(&wrong),
        [
            "an argument cannot name the host: write an address such as https://shop.example/v1/orders/{id}",
            "x-none comes from $NOT_SET, which is not set: set it and start again",
        ]
    );
    wrong.headers.remove("x-none");
    wrong.url = "https://a.example/".to_owned();
    assert_eq!(
        told(&wrong),
        [
            "the header x y cannot be sent: its name has characters that headers cannot have",
            "the header x-two cannot be sent: its value has characters that headers cannot have",
        ]
    );
}
