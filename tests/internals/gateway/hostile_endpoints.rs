//! Endpoints that misbehave, each kind with fixed seeds: whatever one sends, a call ends within its
//! limit, with an answer or a class of failure, never a panic; nothing is in flight afterwards, and no
//! text holds the key.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::base::seeded_random::random_u64;
use crate::gateway::{Attempt, Callee};
use crate::log::event::{AttemptFailed, EventKind, FailureClass, Reply};
use crate::model::ChatModel;
use crate::model::openai::OpenAi;
use crate::net::{Http, ProxyMode, Reach};
use crate::scenario::spec::Tuning;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::http::{HttpMethod, HttpSpec};
use crate::support::gateway_call::{Behind, Scope, call, guard, policy};
use crate::support::wire;
use crate::support::wire::{
    CHUNKED_HEAD, ClosedPort, Connection, ENDING, HELLO, KEY, STREAM_HEAD, Server, answer,
    endpoint_at, json, piece,
};
use crate::tool::http::HttpTool;
use futures::FutureExt;
use futures::future::BoxFuture;

/// The model behind the gateway.
struct Model<'a>(&'a OpenAi);

impl Callee for Model<'_> {
    fn attempt<'a>(&'a self, _: Attempt<'a>) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        async move { self.0.chat(&wire::ask(true), &wire::Deaf).await }.boxed()
    }
}

/// What became of a call: an answer, or a class of failure.
type Came = Result<Reply, FailureClass>;

/// One call of a server that does this with each connection. Everything that must hold of any call is
/// asserted here.
async fn came(what: &str, stream: bool, limit_ms: u64, serve: impl AsyncFn(Connection)) -> Came {
    let server = Server::start().await;
    let model = if stream { server.streaming() } else { server.model() };
    let serving = async {
        loop {
            serve(server.accept().await).await;
        }
    };
    let calling = called(what, &model, limit_ms);
    let within = async {
        tokio::select! {
            biased;
            () = serving => unreachable!("it serves for ever"),
            came = calling => came,
        }
    };
    // Far past every limit: it detects a hang.
    tokio::time::timeout(Duration::from_secs(60), within).await.expect(what)
}

async fn called(what: &str, model: &OpenAi, limit_ms: u64) -> Came {
    let reply = made(what, &Model(model), limit_ms, wire::check_text).await?;
    assert!(!reply.text.contains(KEY), "{what}: the key is kept");
    Ok(reply)
}

/// One call of this through the gateway, the texts of its failures checked.
async fn made(
    what: &str,
    callee: &dyn Callee,
    limit_ms: u64,
    check: impl Fn(&AttemptFailed),
) -> Came {
    let scope = Scope::new();
    let timeout = Some(Duration::from_millis(limit_ms));
    let once = CallPolicy { timeout, max_attempts: 1, ..policy() };
    let guard = guard(once, &scope);
    let ended = call(&scope, &guard, callee).await;
    assert_eq!(guard.snapshot().fill.in_flight, 0, "{what}: a permit is held");
    assert_eq!(scope.out.load(Ordering::SeqCst), 0, "{what}: something is in flight");
    for fact in scope.facts().await {
        let line = fact.to_line().expect("a line");
        assert!(!line.contains(KEY), "{what}: the key is told: {line}");
        if let EventKind::AttemptFailed(failed) = &fact.kind
            && failed.class != FailureClass::Timeout
        {
            check(failed);
        }
    }
    match ended {
        Ok(answered) => Ok(Arc::unwrap_or_clone(answered.reply)),
        Err(failed) => {
            let class = failed.last.expect("an attempt was made").class;
            assert_ne!(class, FailureClass::Panic, "{what}");
            Err(class)
        }
    }
}

/// A number below `below`, by the seed.
fn pick(seed: u32, what: &str, below: usize) -> usize {
    (random_u64(20, "hostile", seed, what) % below as u64) as usize
}

/// Bytes by the seed.
fn noise(seed: u32, length: usize) -> Vec<u8> {
    let word = |at: usize| random_u64(21, "noise", seed, &at.to_string()).to_le_bytes();
    (0..length.div_ceil(8)).flat_map(word).take(length).collect()
}

const LONG: u64 = 30_000;
const SHORT: u64 = 150;

/// What an endpoint says in one piece before it closes.
fn said_at_once(seed: u32) -> Vec<(&'static str, Vec<u8>)> {
    let cut = |whole: &[u8], name: &str| whole[..pick(seed, name, whole.len())].to_vec();
    let deep = |open: &str, times: usize| open.repeat(times);
    let whole = json("200 OK", HELLO);
    let length = |length: &str| {
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{HELLO}")
            .into_bytes()
    };
    let status =
        ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"][pick(seed, "status", 4)];
    let to = [
        "http://169.254.169.254/latest".to_owned(),
        format!("https://elsewhere.example/?key={KEY}"),
        "//\u{fffd}".to_owned(),
        "/".repeat(5_000),
    ];
    let mut bad_text = whole.clone();
    let at = bad_text.len() - 1 - pick(seed, "text", HELLO.len() - 1);
    bad_text[at] = 0xff;
    let shapes = [
        "null",
        "[]",
        "{}",
        "7",
        "\"hello\"",
        "{\"choices\":null}",
        "{\"choices\":{}}",
        "{\"choices\":[]}",
        "{\"choices\":[null]}",
        "{\"choices\":[{}]}",
        "{\"choices\":[{\"message\":null}]}",
        "{\"choices\":[{\"message\":{\"content\":7}}]}",
        "{\"choices\":[{\"message\":{\"content\":\"x\",\"tool_calls\":7}}]}",
        "{\"choices\":[{\"message\":{\"tool_calls\":[{\"function\":{}}]}}]}",
        "{\"choices\":[{\"message\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":1e999}}",
        "{\"choices\":[{\"message\":{\"content\":\"\\ud800\"}}]}",
        "{\"error\":null}",
        "{\"error\":{\"message\":null}}",
        "{\"error\":{}}",
        "{\"error\":[[1]]}",
    ];
    let shape = shapes[pick(seed, "shape", shapes.len())];
    let echo =
        format!("{{\"error\":{{\"message\":\"Authorization: Bearer {KEY}, \\u001b[2J{KEY}\"}}}}");
    let codes =
        ["400", "401", "403", "404", "408", "409", "418", "429", "500", "503", "599", "999"];
    let code = codes[pick(seed, "code", codes.len())];
    vec![
        ("nothing", Vec::new()),
        ("a head that is cut", cut(&whole[..60], "head")),
        ("a body that is cut", [&whole[..100], &cut(&whole[100..], "body")].concat()),
        ("a length that is too long", length("5000")),
        ("a length that is too short", length("17")),
        ("a length that is none", length("-1")),
        ("a length past every number", length("99999999999999999999999")),
        ("two lengths", length("5\r\ncontent-length: 7")),
        ("a length beside chunks", length("5\r\ntransfer-encoding: chunked")),
        ("chunks that are none", format!("{CHUNKED_HEAD}zz\r\nhello\r\n").into_bytes()),
        ("a chunk past every number", format!("{CHUNKED_HEAD}ffffffffffffffffff\r\nx").into_bytes()),
        ("two answers", [&whole[..], &whole[..]].concat()),
        ("an empty body", answer("200 OK", &[], "")),
        ("no content", b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
        ("not modified", b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()),
        ("an upgrade", b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".to_vec()),
        ("a picture", answer("200 OK", &["content-type: image/png"], "\u{89}PNG\r\n\u{1a}\n\0\0")),
        ("a page", answer("200 OK", &["content-type: text/html"], "<html><title>Log in\u{202e}</title>")),
        ("a page of trouble", answer("502 Bad Gateway", &[], "<html><title>\u{1b}]0;x\u{7}nginx")),
        ("JSON that is cut", json("200 OK", &HELLO[..pick(seed, "json", HELLO.len())])),
        ("JSON that goes deep", json("200 OK", &deep("[", 100_000))),
        ("choices that go deep", json("200 OK", &deep("{\"choices\":[", 20_000))),
        ("an odd shape", json("200 OK", shape)),
        ("an odd shape, streamed", format!("{STREAM_HEAD}data: {shape}\n\n").into_bytes()),
        ("text that is no UTF-8", bad_text),
        ("a compressed body", answer("200 OK", &["content-encoding: gzip"], "\u{1f}\u{8b}\u{8}")),
        ("an error with success", json("200 OK", "{\"error\":{\"message\":\"overloaded\"}}")),
        ("the key, with success", json("200 OK", &echo)),
        ("the key, streamed", format!("{STREAM_HEAD}data: {echo}\n\n").into_bytes()),
        ("the key, refused", json(&format!("{code} Odd"), &echo)),
        ("a redirect", answer(status, &[&format!("location: {}", to[pick(seed, "to", 4)])], "")),
        ("no status", b"HTTP/1.1\r\n\r\n".to_vec()),
        ("a status that is none", b"HTTP/1.1 99999 Odd\r\n\r\n".to_vec()),
        ("another version", b"HTTP/9.9 200 OK\r\n\r\n".to_vec()),
        ("another protocol", b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
        ("an old server", b"ICY 200 OK\r\n\r\n".to_vec()),
        ("noise", noise(seed, 1 + pick(seed, "noise", 3_000))),
        ("noise in the body", [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), noise(seed, 900)].concat()),
        ("noise in a stream", [STREAM_HEAD.as_bytes().to_vec(), noise(seed, 900)].concat()),
        ("a header without end", [&b"HTTP/1.1 200 OK\r\nx: "[..], &[b'y'; 600_000]].concat()),
        ("many headers", format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(5_000)).into_bytes()),
        ("lines that are none", format!("{STREAM_HEAD}:\n\n{}", "junk: \n\u{1}\n\n".repeat(500)).into_bytes()),
        ("a stream without choices", format!("{STREAM_HEAD}data: {{\"choices\":[]}}\n\ndata: [DONE]\n\n").into_bytes()),
        ("a stream of nothing", STREAM_HEAD.as_bytes().to_vec()),
        ("an event as long as a cap", format!("{STREAM_HEAD}data: {}\n\n", "x".repeat(2 << 20)).into_bytes()),
        ("tool calls without end", format!("{STREAM_HEAD}{}", "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"x\"}},{\"index\":1}]}}]}\n\n".repeat(300)).into_bytes()),
        ("a wait past every number", answer("429 Too Many", &["retry-after: 99999999999999999999999"], "{}")),
        ("a wait that is none", answer("429 Too Many", &["retry-after: \u{fffd}"], "{}")),
    ]
}

#[tokio::test]
async fn hostile_replies_end_calls_without_secrets() {
    let mut failures = 0;
    for seed in 0..4 {
        for (what, bytes) in said_at_once(seed) {
            for stream in [false, true] {
                let what = format!("{what}, seed {seed}, streamed {stream}");
                let came = came(&what, stream, LONG, async |mut connection| {
                    if connection.next_request().await {
                        let _ = connection.takes(&bytes).await;
                    }
                })
                .await;
                failures += u32::from(came.is_err());
            }
        }
    }
    assert!(failures > 300, "most of it is no answer: {failures}");
}

/// A tool over HTTP whose header is a secret of the environment.
fn tool(server: &Server) -> HttpTool {
    let header = ("X-Key".to_owned(), Setting::Env("THE_KEY".to_owned()));
    let spec = HttpSpec {
        method: HttpMethod::Get,
        url: format!("http://{}/v1", server.host()),
        headers: [header].into(),
        send_args: false,
        pointer: String::new(),
        max_bytes: 1 << 20,
        allow_private: true,
    };
    let env = |name: &str| (name == "THE_KEY").then(|| KEY.to_owned());
    HttpTool::new(Arc::new(spec), Http::direct(Reach::Anywhere), &env).expect("a tool")
}

/// What holds of the text of any failure.
fn is_plain(failed: &AttemptFailed) {
    let text = &failed.text;
    assert!(!text.is_empty() && text.chars().count() <= 400, "{text}");
    assert!(!text.chars().any(char::is_control), "a control character is left: {text:?}");
}

#[tokio::test]
async fn hostile_replies_end_tool_calls() {
    let mut failures = 0;
    for (what, bytes) in said_at_once(7) {
        let server = Server::start().await;
        let tool = tool(&server);
        let behind = Behind(&tool);
        let serve = async {
            let mut connection = server.accept().await;
            if connection.next_request().await {
                let _ = connection.takes(&bytes).await;
            }
        };
        let (came, ()) = wire::both(made(what, &behind, LONG, is_plain), serve).await;
        failures += u32::from(came.is_err());
    }
    assert!(failures > 25, "most of it is no JSON: {failures}");
}

#[tokio::test]
async fn cut_stream_fails_or_completes() {
    let stream = format!("{}{}{ENDING}", piece("gr\u{fc}n \u{1f44d}"), piece(" and more"));
    let enough = stream.find("finish_reason\":\"stop\"}]}").expect("it ends") + 24;
    for at in 0..=stream.len() {
        let bytes = [STREAM_HEAD.as_bytes(), &stream.as_bytes()[..at]].concat();
        let came = came(&format!("cut at {at}"), true, LONG, async |mut connection| {
            connection.request().await;
            connection.send(&bytes).await;
        })
        .await;
        match came {
            Ok(reply) => {
                assert!(at >= enough, "cut at {at}, and taken");
                assert_eq!(&*reply.text, "gr\u{fc}n \u{1f44d} and more", "cut at {at}");
            }
            Err(class) => {
                assert!(at < enough, "cut at {at}: {class:?}");
                assert_eq!(class, FailureClass::Reset, "cut at {at}");
            }
        }
    }
}

#[tokio::test]
async fn reset_anywhere_fails_call() {
    let whole = json("200 OK", HELLO);
    let stream = format!("{CHUNKED_HEAD}{}", wire::chunk(&piece("half"))).into_bytes();
    for seed in 0..12 {
        for (stream, bytes) in [(false, &whole), (true, &stream)] {
            let bytes = &bytes[..pick(seed, "reset", bytes.len())];
            let what = format!("reset after {} bytes", bytes.len());
            let came = came(&what, stream, LONG, async |mut connection| {
                if connection.next_request().await {
                    let _ = connection.takes(bytes).await;
                    connection.reset();
                }
            })
            .await;
            // The bytes before a reset may be lost with it.
            assert!(
                matches!(came, Err(FailureClass::Reset | FailureClass::BadResponse)),
                "{what}: {came:?}"
            );
        }
    }
}

/// Endpoints that never end on their own.
#[tokio::test]
async fn timeout_ends_endless_reply() {
    let held = tokio::sync::Mutex::new(Vec::new());
    for stream in [false, true] {
        let silent = came("it never answers", stream, SHORT, async |mut connection| {
            connection.request().await;
            held.lock().await.push(connection);
        });
        assert_eq!(silent.await, Err(FailureClass::Timeout));
        let deaf = came("it reads nothing", stream, SHORT, async |connection| {
            held.lock().await.push(connection);
        });
        assert_eq!(deaf.await, Err(FailureClass::Timeout));
        let body = "HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n{\"choices\":";
        for (what, head, drop) in [
            ("it drips its head", "HTTP/1.1 200 OK\r\nx: ", "y"),
            ("it drips its body", body, " "),
            ("it drips comments", STREAM_HEAD, ":\n"),
            ("it drips a reply", STREAM_HEAD, &piece("x")),
            ("it says to go on", "", "HTTP/1.1 100 Continue\r\n\r\n"),
            ("it hints early", "", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"),
        ] {
            let dripping = came(what, stream, SHORT, async |mut connection| {
                connection.request().await;
                let mut drip = tokio::time::interval(Duration::from_millis(5));
                let mut takes = connection.takes(head.as_bytes()).await;
                while takes {
                    drip.tick().await;
                    takes = connection.takes(drop.as_bytes()).await;
                }
            });
            assert_eq!(dripping.await, Err(FailureClass::Timeout), "{what}");
        }
    }
}

/// What an endpoint sends as fast as it can, without an end.
#[tokio::test]
async fn cap_ends_flood() {
    let comment = format!(": {}\n", "x".repeat(1 << 16));
    let said = piece(&"x".repeat(1 << 12));
    let header = format!("x: {}\r\n", "y".repeat(1 << 10));
    let no_length = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
    for (what, stream, head, flood, class) in [
        ("a body", false, no_length, " ".repeat(1 << 12), FailureClass::TooLarge),
        ("comments", true, STREAM_HEAD, comment, FailureClass::TooLarge),
        ("a line", true, STREAM_HEAD, "x".repeat(1 << 12), FailureClass::TooLarge),
        ("a reply", true, STREAM_HEAD, said, FailureClass::TooLarge),
        ("headers", true, "HTTP/1.1 200 OK\r\n", header, FailureClass::BadResponse),
    ] {
        let came = came(what, stream, LONG, async |mut connection| {
            connection.request().await;
            connection.send(head).await;
            connection.send_without_end(flood.as_bytes()).await;
        })
        .await;
        assert_eq!(came, Err(class), "{what}");
    }
}

#[tokio::test]
async fn closed_port_fails_to_connect() {
    let port = ClosedPort::new();
    let endpoint = endpoint_at(&format!("http://{}/v1", port.host()));
    let model = OpenAi::new(Http::new(ProxyMode::Direct), endpoint, Tuning::default(), true);
    assert_eq!(called("closed", &model, LONG).await, Err(FailureClass::Connect));
}
