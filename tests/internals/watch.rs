//! Requests that real frameworks have sent, replayed to the receiver over a real socket: what the run says of
//! the program. And senders that mean no good.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::engine::{Engine, EngineSettings, Launch, RunHandle};
use crate::log::event::{Event, EventKind, Seq, SpanId, World};
use crate::log::facts::observed::{ObservedFact, SpanAbout, SpanEnd, SpanRole, TextStream};
use crate::log::world::agents::{HopRow, LineKind, TranscriptLine};
use crate::log::world::observed::{CallTotals, Observed, ObservedSpan};
use crate::net::{Http, ProxyMode};
use crate::pattern::observed::PriceOf;
use crate::scenario::patterns::observed::{GuardLimits, ObservedProgram};
use crate::scenario::spec::Price;
use crate::watch::child::{OutputSink, RunningProgram, WatchedProgram};
use crate::watch::hub::{Hub, HubInput, HubReport};
use crate::watch::proxy::ModelProxy;
use crate::watch::proxy::variables::Upstreams;
use crate::watch::{Protocol, ReceiverAddress, SpanMessage, TraceMessage, serve};

const PATIENCE: Duration = Duration::from_secs(30);

/// One model has a price.
fn prices() -> PriceOf {
    Arc::new(|model| {
        (model == "priced-1")
            .then(|| Price { cached: Some(500_000.0), ..Price::new(1_000_000.0, 2_000_000.0) })
    })
}

/// The runs of a hub, in the order of their starts.
type Runs = Arc<Mutex<Vec<RunHandle>>>;

fn hub(command: &[&str]) -> (Hub, Runs) {
    hub_of(command, None)
}

fn hub_of(command: &[&str], guard: Option<GuardLimits>) -> (Hub, Runs) {
    let (engine, runs) = (Engine::new(EngineSettings::default()), Runs::default());
    let started = Arc::clone(&runs);
    let start = move |scenario| {
        let run = engine.start(Launch::scripted(Arc::new(scenario), true));
        started.lock().expect("the runs").push(run.clone());
        Some(run)
    };
    let command = command.iter().map(|part| (*part).to_owned()).collect();
    let program = ObservedProgram { name: "desk".to_owned(), command, guard };
    (Hub::new(program, prices(), None, Box::new(start)), runs)
}

fn events_of(run: &RunHandle) -> Vec<Arc<Event>> {
    let (mut events, mut reader) = (Vec::new(), run.bus().reader(Seq(0)));
    while reader.take(&mut events, 1_000) > 0 {}
    events
}

/// A receiver, and the runs of what it receives.
pub(super) struct Watched {
    address: ReceiverAddress,
    /// Where it is reached.
    reached: SocketAddr,
    pub(super) sender: mpsc::Sender<HubInput>,
    hub: JoinHandle<HubReport>,
    runs: Runs,
    server: JoinHandle<()>,
}

impl Watched {
    pub(super) async fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST).await
    }

    /// A receiver that takes itself to be at this address. It is on this machine all the same.
    async fn start_at(ip: Ipv4Addr) -> Self {
        Self::start_as(ip, hub(&["desk"]), |_| None).await
    }

    /// One whose model proxy sends requests for OpenAI to this address.
    async fn guarded(upstream: &str) -> Self {
        let get = |name: &str| (name == "OPENAI_BASE_URL").then(|| upstream.into());
        let (upstreams, _) = Upstreams::of(&get).expect("an address");
        let http = Http::forwarding(ProxyMode::Direct);
        let hub = hub_of(&["desk"], Some(GuardLimits::default()));
        let proxy = |sender| Some(ModelProxy::new(upstreams, http, sender));
        Self::start_as(Ipv4Addr::LOCALHOST, hub, proxy).await
    }

    async fn start_as(
        ip: Ipv4Addr,
        (mut hub, runs): (Hub, Runs),
        proxy: impl FnOnce(mpsc::Sender<HubInput>) -> Option<ModelProxy>,
    ) -> Self {
        hub.wait_for_trace().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let reached = listener.local_addr().expect("an address");
        let addr = SocketAddr::from((ip, reached.port()));
        let address = ReceiverAddress { addr, token: "secret".to_owned() };
        let (sender, inputs) = mpsc::channel(64);
        let proxy = proxy(sender.clone());
        let server = tokio::spawn(serve(listener, address.clone(), sender.clone(), proxy));
        Self { address, reached, sender, hub: tokio::spawn(hub.run(inputs)), runs, server }
    }

    /// Sends bytes and returns the whole answer.
    pub(super) async fn raw(&self, parts: &[&[u8]]) -> String {
        let mut stream = TcpStream::connect(self.reached).await.expect("connected");
        for part in parts {
            let sent = async {
                stream.write_all(part).await?;
                stream.flush().await
            };
            // It may be closed before all is sent.
            if sent.await.is_err() {
                break;
            }
        }
        let mut answer = Vec::new();
        let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        drop(read.expect("in time"));
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(super) fn head(&self, method: &str, path: &str, more: &str, length: usize) -> String {
        format!(
            "{method} /secret{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{more}\
             Content-Length: {length}\r\n\r\n",
            self.address.addr
        )
    }

    pub(super) async fn post(&self, path: &str, content_type: &str, body: &[u8]) -> String {
        let more = format!("Content-Type: {content_type}\r\n");
        let head = self.head("POST", path, &more, body.len());
        let answer = self.raw(&[head.as_bytes(), body]).await;
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// The runs, once the program has ended with this exit code.
    pub(super) async fn end(self, code: i32) -> (HubReport, Vec<(World, Vec<Arc<Event>>)>) {
        self.sender.send(HubInput::Ended(code)).await.expect("received");
        let report = timeout(PATIENCE, self.hub).await.expect("in time").expect("ended");
        self.server.abort();
        let events = |run: &RunHandle| {
            let events = events_of(run);
            (World::from_events(events.iter().map(|event| &**event)), events)
        };
        let runs = self.runs.lock().expect("the runs").iter().map(events).collect();
        (report, runs)
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/watch").join(name)
}

/// Replays the requests of a program.
async fn replay(name: &str, code: i32) -> Vec<(World, Vec<Arc<Event>>)> {
    let watched = Watched::start().await;
    let index = std::fs::read_to_string(folder(name).join("index.json")).expect("an index");
    let index: Vec<Value> = serde_json::from_str(&index).expect("JSON");
    for request in index {
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        let body = std::fs::read(folder(name).join(text("file"))).expect("a body");
        let encoding = match request["content_encoding"].as_str() {
            Some(encoding) => format!("Content-Encoding: {encoding}\r\n"),
            None => String::new(),
        };
        let more = format!("Content-Type: {}\r\n{encoding}", text("content_type"));
        let head = watched.head(&text("method"), &text("path"), &more, body.len());
        let answer = watched.raw(&[head.as_bytes(), &body]).await;
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        assert!(status.starts_with('2'), "{name}: {request}: {answer}");
    }
    watched.end(code).await.1
}

fn spans(observed: &Observed) -> Vec<&ObservedSpan> {
    observed.spans.iter().collect()
}

/// The names of a span and of those around it, the innermost first.
fn path(world: &World, name: &str) -> Vec<String> {
    let observed = world.observed().expect("observed");
    let span = spans(observed).into_iter().find(|span| *span.about.name == *name);
    let mut at = span.unwrap_or_else(|| panic!("no span {name}")).id;
    let mut names = Vec::new();
    while at != SpanId::RUN {
        names.push(observed.span(at).expect("a span").about.name.to_string());
        at = world.spans.get(at).expect("a span").parent;
    }
    names
}

pub(super) fn outcome(world: &World) -> Value {
    serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON")
}

/// The spans of this role, and how each ended.
fn of_role(world: &World, role: SpanRole) -> Vec<(String, Option<SpanEnd>)> {
    let spans = spans(world.observed().expect("observed")).into_iter();
    let spans = spans.filter(|span| span.about.role == role);
    spans.map(|span| (span.about.name.to_string(), span.end)).collect()
}

/// The lines of the transcript: who, and what.
fn transcript(world: &World) -> Vec<String> {
    let lines = world.agents().expect("agents").lines.iter();
    let text = |line: &TranscriptLine| {
        let who = line.author.as_ref().map_or("", |author| author.as_str());
        match &line.what {
            LineKind::Said(text) => format!("{who}: {text}"),
            LineKind::Called(call) => format!("{who} calls {}({})", call.name, call.arguments),
            LineKind::Result { of, text, end } => format!("{of} {end:?}: {text}"),
            LineKind::HandedOver { to, .. } => format!("{who} hands over to {to}"),
            other => format!("{other:?}"),
        }
    };
    lines.map(text).collect()
}

fn says(world: &World, text: &str) -> bool {
    transcript(world).iter().any(|line| line.contains(text))
}

fn hops(world: &World) -> Vec<String> {
    let hops = world.agents().expect("agents").hops.iter();
    let from = |hop: &HopRow| hop.from.as_ref().map_or("you".to_owned(), ToString::to_string);
    hops.map(|hop| format!("{} > {}", from(hop), hop.to)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn langgraph_tells_nodes_and_tools() {
    let [(world, events)] = &replay("langgraph", 0).await[..] else { panic!("one run") };
    assert_eq!(
        path(world, "search_orders"),
        ["search_orders", "fetch", "research", "research", "support_desk"]
    );
    let failed = |(_, end): &&(String, Option<SpanEnd>)| *end == Some(SpanEnd::Failed);
    let steps = of_role(world, SpanRole::Step);
    assert_eq!(steps.iter().filter(failed).count(), 1, "{steps:?}");
    assert!(
        says(world, "live_price: ConnectionError: price service is down"),
        "{:?}",
        transcript(world)
    );
    assert!(says(world, "fetch calls search_orders({\"customer\":\"Ada\"})"));
    assert!(says(world, "answer: Order #1002 is cancelled. You get 40 EUR back."));
    let outcome = outcome(world);
    assert_eq!(
        outcome["path"],
        json!(["intake", "research", "research", "price", "approve", "answer"])
    );
    assert_eq!((&outcome["usage"]["prompt_tokens"], &outcome["spans"]), (&json!(120), &json!(20)));
    assert_eq!(outcome["model_calls"][0]["name"], "desk-model-1");
    // Each start came before its end.
    let place = |wanted: &str, opens: bool| {
        events.iter().position(|event| match ObservedFact::of(&event.kind) {
            Some(ObservedFact::Opened { about, .. }) => opens && *about.name == *wanted,
            Some(ObservedFact::Closed { about, .. }) => !opens && *about.name == *wanted,
            _ => false,
        })
    };
    assert!(place("search_orders", true) < place("read_policy", false));
}

#[tokio::test(flavor = "multi_thread")]
async fn langgraph_fails_and_is_interrupted() {
    let [(world, _)] = &replay("langgraph-fail", 1).await[..] else { panic!("one run") };
    assert_eq!(outcome(world)["stop_reason"], "span_failed");
    let failed = of_role(world, SpanRole::Node).into_iter().find(|(name, _)| name == "answer");
    assert_eq!(failed.expect("a node").1, Some(SpanEnd::Failed));
    let [(world, _)] = &replay("langgraph-interrupt", 0).await[..] else { panic!("one run") };
    assert_eq!(outcome(world)["stop_reason"], "waits_for_input");
    assert!(says(world, "interrupt: "), "{:?}", transcript(world));
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_agents_hand_over() {
    // Two traces, the second one refused by a guardrail.
    let [(first, _), (second, _)] = &replay("openai-agents", 0).await[..] else {
        panic!("two runs")
    };
    assert_eq!(hops(first), ["you > triage", "triage > billing"]);
    for text in [
        "triage hands over to billing",
        "triage: transfer_to_billing({})",
        "find_invoice Answered: invoice 2041: 40 EUR, paid twice",
        "billing: Invoice 2041 was paid twice. You get 40 EUR back.",
    ] {
        assert!(says(first, text), "{text}: {:?}", transcript(first));
    }
    let outcome_of = outcome(first);
    assert_eq!(outcome_of["usage"]["prompt_tokens"], 270);
    assert_eq!(outcome_of["answer"], "Invoice 2041 was paid twice. You get 40 EUR back.");
    assert_eq!(of_role(second, SpanRole::Guardrail).len(), 1);
    assert!(says(second, "Guardrail tripwire triggered"), "{:?}", transcript(second));
}

#[tokio::test(flavor = "multi_thread")]
async fn opentelemetry_tells_by_conventions() {
    let [(world, _)] = &replay("otel", 0).await[..] else { panic!("one run") };
    assert_eq!(path(world, "read_sensor"), ["read_sensor", "chat fake-weather-1", "forecaster"]);
    let tools = &outcome(world)["tool_calls"];
    let tools: Vec<_> = tools.as_array().expect("tools").iter().map(|it| &it["name"]).collect();
    assert_eq!(tools, ["read_old_sensor", "read_sensor"], "none is counted under two names");
    for name in ["pydantic-ai", "pydantic-ai-tap"] {
        let [(world, _)] = &replay(name, 0).await[..] else { panic!("one run") };
        assert_eq!(hops(world), ["you > planner", "planner > researcher"], "{name}");
        let outcome = outcome(world);
        assert_eq!(outcome["answer"], "Plan: write one page on the landing.", "{name}");
        assert_eq!(outcome["usage"]["prompt_tokens"], 232, "{name}");
        let tools: Vec<String> =
            of_role(world, SpanRole::Tool).into_iter().map(|(name, _)| name).collect();
        assert_eq!(tools, ["ask_researcher", "read_archive"], "{name}");
    }
    let [(world, _)] = &replay("crewai", 0).await[..] else { panic!("one run") };
    assert_eq!(outcome(world)["agents"][0]["agent"], "Researcher");
    assert!(says(world, "In 1969 people landed on the moon."), "{:?}", transcript(world));
}

pub(super) fn otlp(spans: &Value) -> Vec<u8> {
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] }).to_string().into_bytes()
}

fn span(id: &str, parent: &str, name: &str, from: &str, until: &str) -> Value {
    json!({
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": id, "parentSpanId": parent,
        "name": name, "startTimeUnixNano": from, "endTimeUnixNano": until,
    })
}

/// Children come before their parents, encircle each other, or never end.
#[tokio::test(flavor = "multi_thread")]
async fn odd_trees_are_bounded() {
    let watched = Watched::start().await;
    let (past, future) = ("1000000000", "3155760000000000000");
    for spans in [
        json!([span("0000000000000003", "0000000000000002", "child", past, future)]),
        json!([span("0000000000000002", "0000000000000001", "parent", future, past)]),
        json!([span("0000000000000001", "", "root", "0", "0")]),
        json!([
            span("00000000000000a1", "00000000000000a2", "a", "0", "0"),
            span("00000000000000a2", "00000000000000a3", "b", "0", "0"),
            span("00000000000000a3", "00000000000000a1", "c", "0", "0"),
            span("00000000000000a4", "00000000000000a4", "own parent", "0", "0"),
            span("00000000000000a5", "00000000000000ff", "orphan", "0", "0"),
        ]),
    ] {
        let status = watched.post("/v1/traces", "application/json", &otlp(&spans)).await;
        assert_eq!(status, "HTTP/1.1 200 OK");
    }
    let runs = watched.end(0).await.1;
    let [(world, _)] = &runs[..] else { panic!("one run") };
    assert_eq!(path(world, "child"), ["child", "parent", "root"]);
    let observed = world.observed().expect("observed");
    // The parent that was never reported.
    assert_eq!((observed.spans.len(), observed.lost), (9, 1));
    let seen: usize = {
        let mut next: Vec<SpanId> = world.spans.children(SpanId::RUN).map(|span| span.id).collect();
        let mut seen = 0;
        while let Some(id) = next.pop() {
            seen += 1;
            assert!(seen < 100, "a cycle");
            next.extend(world.spans.children(id).map(|span| span.id));
        }
        seen
    };
    assert_eq!(seen, 9);
    // No span is drawn in 1970 or 2070.
    for span in spans(observed) {
        let (from, until) = observed.times(span, world);
        assert!(from.duration() < PATIENCE && until.is_some_and(|it| it.duration() < PATIENCE));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_are_refused() {
    let watched = Watched::start().await;
    let host = watched.address.addr.to_string();
    let ask = |path: &str, headers: &str| {
        format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n\r\n")
    };
    for (request, status) in [
        (ask("/secret/info", &format!("Host: {host}")), "200"),
        (ask("/secret/info", "Host: evil.example"), "403"),
        (ask("/secret/info", &format!("Host: {host}\r\nOrigin: http://evil.example")), "403"),
        (ask("/wrong/info", &format!("Host: {host}")), "403"),
        (ask("/info", &format!("Host: {host}")), "403"),
        (ask("/secret/unknown", &format!("Host: {host}")), "404"),
        (ask("/secretinfo", &format!("Host: {host}")), "403"),
    ] {
        let answer = watched.raw(&[request.as_bytes()]).await;
        assert_eq!(answer.split(' ').nth(1), Some(status), "{request}: {answer}");
    }
    let bomb = {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![0; 1 << 20];
        for _ in 0..100 {
            std::io::Write::write_all(&mut gzip, &zeros).expect("compressed");
        }
        gzip.finish().expect("compressed")
    };
    let large = vec![b'x'; 21 << 20];
    for (headers, body, status) in [
        ("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", &bomb[..], "413"),
        ("Content-Type: application/json\r\n", &large[..], "413"),
        ("Content-Type: application/json\r\nContent-Encoding: compress\r\n", b"x", "415"),
        ("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", b"not gzip", "400"),
        ("Content-Type: application/json\r\n", b"{broken", "400"),
        ("Content-Type: application/x-protobuf\r\n", &[0xff; 64], "400"),
    ] {
        let head = watched.head("POST", "/v1/traces", headers, body.len());
        let answer = watched.raw(&[head.as_bytes(), body]).await;
        // A body that is too large is not read to its end: the answer may be lost.
        let is_lost = body.len() > 20 << 20 && answer.is_empty();
        assert!(is_lost || answer.split(' ').nth(1) == Some(status), "{headers}: {answer}");
    }
    let cut = [
        watched.head(
            "POST",
            "/runs/multipart",
            "Content-Type: multipart/form-data; boundary=x\r\n",
            9,
        ),
        watched.head("POST", "/tap", "", 4),
    ];
    for head in &cut {
        watched.raw(&[head.as_bytes(), b"--x\r\ngarb"]).await;
    }
    watched.raw(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]).await;
    watched.raw(&[&[0x16, 0x03, 0x01, 0x00, 0xff], &[0xab; 300]]).await;
    let mut chunked = Vec::new();
    for byte in otlp(&json!([span("0000000000000001", "", "whole", "0", "0")])) {
        chunked.extend(format!("1\r\n{}\r\n", byte as char).into_bytes());
    }
    chunked.extend(b"0\r\n\r\n");
    let head = format!(
        "POST /secret/v1/traces HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let answer = watched.raw(&[head.as_bytes(), &chunked]).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let runs = watched.end(0).await.1;
    let [(world, events)] = &runs[..] else { panic!("one run") };
    assert_eq!(world.observed().expect("observed").spans.len(), 1);
    let warnings: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Warning { text } => Some(&**text),
            _ => None,
        })
        .collect();
    for part in [
        "/unknown",
        "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
        "a request was not read: more than",
    ] {
        assert!(warnings.iter().any(|text| text.contains(part)), "{part}: {warnings:?}");
    }
}

/// At an address that other machines reach the token is in a header, and the name of the host is theirs.
#[tokio::test(flavor = "multi_thread")]
async fn other_machines_need_the_token() {
    let watched = Watched::start_at(Ipv4Addr::new(192, 0, 2, 1)).await;
    let ask = |path: &str, headers: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: desk.internal:4318\r\nConnection: close\r\n{headers}\r\n"
        )
    };
    for (path, headers, status) in [
        ("/info", "x-api-key: secret\r\n", "200"),
        ("/info", "", "403"),
        ("/info", "x-api-key: secre\r\n", "403"),
        ("/secret/info", "", "403"),
        ("/info", "x-api-key: secret\r\nOrigin: http://evil.example\r\n", "403"),
    ] {
        let answer = watched.raw(&[ask(path, headers).as_bytes()]).await;
        assert_eq!(answer.split(' ').nth(1), Some(status), "{path} {headers}: {answer}");
    }
}

/// Connections that do not show the token make room for those that do.
#[tokio::test(flavor = "multi_thread")]
async fn slow_connections_block_no_sender() {
    let watched = Watched::start().await;
    let connect = || TcpStream::connect(watched.reached);
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = connect().await.expect("connected");
        stream.write_all(b"POST /secret/v1/traces HTTP/1.1\r\n").await.expect("sent");
        slow.push(stream);
    }
    let posted = watched.post("/v1/traces", "application/json", b"{}");
    let posted = timeout(Duration::from_secs(8), posted).await.expect("not after their timeout");
    assert!(posted.contains("200"), "{posted}");
    // Those that have shown it keep their places, and one too many is refused.
    let head = format!("GET /secret/info HTTP/1.1\r\nHost: {}\r\n\r\n", watched.address.addr);
    let mut open = Vec::new();
    for number in 0..129 {
        let mut stream = connect().await.expect("connected");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut answer = [0; 12];
        timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("in time").expect("read");
        let status = if number < 128 { "HTTP/1.1 200" } else { "HTTP/1.1 503" };
        assert_eq!(String::from_utf8_lossy(&answer), status, "{number}");
        open.push(stream);
    }
    drop(slow);
}

/// Where spans come at their end alone, inner ones before outer ones, who called whom is known at the end.
#[tokio::test(flavor = "multi_thread")]
async fn ends_alone_keep_callers() {
    let now = crate::base::time::now_ms();
    let at = |later: u64| format!("{}000000", now + later);
    let agent = |id: &str, parent: &str, name: &str, from: u64| {
        let mut span = span(id, parent, name, &at(from), &at(9));
        let role = json!({ "key": "openinference.span.kind", "value": { "stringValue": "AGENT" } });
        span["attributes"] = json!([role]);
        span
    };
    let watched = Watched::start().await;
    for spans in [
        json!([agent("0000000000000003", "0000000000000002", "writer", 5)]),
        json!([agent("0000000000000004", "0000000000000002", "researcher", 3)]),
        json!([span("0000000000000002", "0000000000000001", "step", &at(2), &at(9))]),
        json!([agent("0000000000000001", "", "planner", 1)]),
    ] {
        watched.post("/v1/traces", "application/json", &otlp(&spans)).await;
    }
    let (_, runs) = watched.end(0).await;
    let expected = ["you > planner", "planner > researcher", "planner > writer"];
    assert_eq!(hops(&runs[0].0), expected);
    assert_eq!(outcome(&runs[0].0)["path"], json!(["planner"]));
    let answered_by = |runs: &[(World, Vec<Arc<Event>>)]| {
        runs[0].0.agents().expect("agents").answered_by.as_ref().map(ToString::to_string)
    };
    assert_eq!(answered_by(&runs).as_deref(), Some("planner"));

    // The outermost span is no agent.
    let watched = Watched::start().await;
    for spans in [
        json!([agent("0000000000000003", "0000000000000002", "researcher", 3)]),
        json!([agent("0000000000000002", "0000000000000001", "planner", 2)]),
        json!([span("0000000000000001", "", "desk", &at(1), &at(9))]),
    ] {
        watched.post("/v1/traces", "application/json", &otlp(&spans)).await;
    }
    let (_, runs) = watched.end(0).await;
    assert_eq!(hops(&runs[0].0), ["you > planner", "planner > researcher"]);
    assert_eq!(answered_by(&runs).as_deref(), Some("planner"));
}

/// Each handoff has its own message, also where several are known at once.
#[tokio::test(flavor = "multi_thread")]
async fn held_handoffs_keep_their_messages() {
    let now = crate::base::time::now_ms();
    let at = |later: u64| format!("{}000000", now + later);
    let of = |id: u8, parent: &str, name: &str, from: u64, kind: &str, input: &str| {
        let mut span = span(&format!("{id:016x}"), parent, name, &at(from), &at(from + 1));
        let attribute =
            |key: &str, text: &str| json!({ "key": key, "value": { "stringValue": text } });
        let kind = attribute("openinference.span.kind", kind);
        span["attributes"] = json!([kind, attribute("input.value", input)]);
        span
    };
    let (root, triage, billing) = ("0000000000000001", "0000000000000002", "0000000000000003");
    let watched = Watched::start().await;
    for span in [
        of(5, triage, "handoff to billing", 2, "TOOL", "about money"),
        of(2, root, "triage", 1, "AGENT", ""),
        of(6, billing, "handoff to refunds", 4, "TOOL", "pay it back"),
        of(3, root, "billing", 3, "AGENT", ""),
        of(4, root, "refunds", 5, "AGENT", ""),
        of(1, "", "desk", 0, "CHAIN", ""),
    ] {
        watched.post("/v1/traces", "application/json", &otlp(&json!([span]))).await;
    }
    let (_, runs) = watched.end(0).await;
    let agents = runs[0].0.agents().expect("agents");
    let message = |hop: &HopRow| (hop.to.to_string(), hop.message.as_deref().map(str::to_owned));
    let messages: Vec<_> = agents.hops.iter().map(message).collect();
    let expected =
        [("triage", None), ("billing", Some("about money")), ("refunds", Some("pay it back"))];
    let expected = expected.map(|(to, text)| (to.to_owned(), text.map(str::to_owned)));
    assert_eq!(messages, expected);
}

/// A start is shown when it comes, also where its parent belongs to another program and never comes.
#[tokio::test(flavor = "multi_thread")]
async fn starts_need_no_parent() {
    let watched = Watched::start().await;
    let start = json!({ "framework": "crewai", "event": "start", "trace": "t1", "id": "triage",
        "parent": "elsewhere", "name": "triage", "role": "agent" });
    watched.post("/tap", "application/x-ndjson", start.to_string().as_bytes()).await;
    let (_, runs) = watched.end(0).await;
    let events = &runs[0].1;
    let lost = events.iter().position(|event| {
        matches!(ObservedFact::of(&event.kind), Some(ObservedFact::Closed { .. }))
    });
    let before = &events[..lost.expect("an end")];
    let world = World::from_events(before.iter().map(|event| &**event));
    assert_eq!(hops(&world), ["you > triage"]);
}

/// The view of tools counts the calls of a program: under the last name of a tool, and all models as one.
#[tokio::test(flavor = "multi_thread")]
async fn tools_count_observed_calls() {
    let watched = Watched::start().await;
    let line = |event: &str, id: &str, name: &str, role: &str, error: Option<&str>| {
        json!({ "framework": "crewai", "event": event, "trace": "t1", "id": id, "name": name,
            "role": role, "error": error })
        .to_string()
    };
    let lines = [
        line("start", "1", "wrapper", "tool", None),
        line("start", "2", "refund", "tool", None),
        line("start", "3", "gpt-x", "model", None),
        line("end", "1", "refund", "tool", None),
        line("end", "2", "refund", "tool", Some("ValueError: too much\nTraceback")),
        line("end", "3", "gpt-x", "model", None),
        line("start", "4", "gpt-y", "model", None),
    ];
    watched.post("/tap", "application/x-ndjson", lines.join("\n").as_bytes()).await;
    let (_, runs) = watched.end(0).await;
    let row = |name: &str| runs[0].0.tools.get(name).expect("a row");
    let counts = |name: &str| {
        let tally = &row(name).tally;
        [tally.calls, tally.answered, tally.failed, tally.cancelled]
    };
    assert_eq!(counts("refund"), [2, 1, 1, 0]);
    assert_eq!(counts("wrapper"), [0; 4]);
    assert_eq!(counts("llm"), [2, 1, 0, 1]);
    assert_eq!(row("refund").last_failure.as_deref(), Some("ValueError: too much"));
    assert!(runs[0].0.tools.rows().iter().all(|row| row.in_flight == 0));
    // Its limits are not known: the outcome has the calls alone.
    let outcome = outcome(&runs[0].0);
    assert_eq!((outcome.get("tools"), &outcome["tool_calls"][0]["calls"]), (None, &json!(2)));
}

/// Several runs that end at once interrupt their program once, so that it can end in its own way.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn interrupts_at_once_are_one() {
    let script = "trap 'echo interrupted' INT; trap 'exit 5' TERM; echo ready; \
                  while :; do sleep 0.02; done";
    // The shell could not handle a signal that it was started to ignore.
    crate::support::pipe::default_signals();
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let [has_tap, has_langsmith, is_apart] = [false, false, true];
    let on_terminal = [false; 2];
    let program = WatchedProgram { command, has_tap, has_langsmith, is_apart, on_terminal };
    let (sender, mut inputs) = mpsc::channel(64);
    let sinks: [OutputSink; 2] = [Box::new(|_| ()), Box::new(|_| ())];
    let (running, _stdin) =
        RunningProgram::start(&program, Vec::new(), sinks, &sender).expect("started");
    drop(sender);
    let signals = running.signals();
    let mut count = 0;
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while let Some(HubInput::Line(_, line)) =
        tokio::time::timeout_at(end, inputs.recv()).await.expect("the program ends")
    {
        match &*line {
            "ready" => signals.interrupt(),
            "interrupted" => {
                count += 1;
                signals.interrupt();
                signals.terminate();
            }
            // What the shell says of its children.
            _ => {}
        }
    }
    assert_eq!(count, 1);
    assert_eq!(running.wait().await, 5);
}

/// A patch of LangSmith's tracer need not repeat what a run is: its role, its model and so its cost are known.
#[tokio::test(flavor = "multi_thread")]
async fn patch_needs_no_run_type() {
    let watched = Watched::start().await;
    let start = json!({ "id": "m1", "trace_id": "m1", "name": "chat", "run_type": "llm", "start_time": 1,
        "extra": { "metadata": { "ls_model_name": "priced-1" } } });
    let details = json!({ "cache_read": 2 });
    let usage = json!({ "input_tokens": 12, "output_tokens": 3, "input_token_details": details });
    let end = json!({ "id": "m1", "outputs": { "usage_metadata": usage }, "end_time": 2 });
    let batch = json!({ "post": [start], "patch": [end] }).to_string();
    watched.post("/runs/batch", "application/json", batch.as_bytes()).await;
    let (_, runs) = watched.end(0).await;
    let models = &outcome(&runs[0].0)["model_calls"];
    assert_eq!((&models[0]["tokens_in"], &models[0]["tokens_out"]), (&json!(12), &json!(3)));
    assert_eq!(runs[0].0.tally.usage.prompt_tokens, 12);
    assert_eq!(runs[0].0.cost_usd(), Some(17.0));
}

/// What one protocol has reported is not drawn twice, and what comes after the end is counted.
#[tokio::test(flavor = "multi_thread")]
async fn one_protocol_counts_per_framework() {
    let watched = Watched::start().await;
    let tap = |framework: &str, event: &str, id: &str| {
        json!({ "framework": framework, "event": event, "trace": "t1", "id": id, "name": id, "role": "agent" })
            .to_string()
    };
    let line = tap("openai-agents", "start", "triage");
    watched.post("/tap", "application/x-ndjson", line.as_bytes()).await;
    let spans = json!([span("0000000000000001", "", "Agent workflow", "0", "0")]);
    let scope = json!({ "name": "openinference.instrumentation.openai_agents" });
    let body = json!({ "resourceSpans": [{ "scopeSpans": [{ "scope": scope, "spans": spans }] }] });
    let body = body.to_string().into_bytes();
    watched.post("/v1/traces", "application/json", &body).await;
    let line = tap("openai-agents", "end", "triage") + "\nnot JSON\n";
    watched.post("/tap", "application/x-ndjson", line.as_bytes()).await;
    let (report, runs) = watched.end(0).await;
    assert_eq!(runs.len(), 1);
    assert_eq!(report.ignored.get(&("OTLP", "openai-agents")), Some(&1));
    assert_eq!(hops(&runs[0].0), ["you > triage"]);
}

fn closed(parent: &str, about: SpanAbout) -> SpanMessage {
    let (parent, notes) = (parent.into(), Vec::new());
    SpanMessage::Closed { parent, end: SpanEnd::Done, about, call: None, notes }
}

/// The end of a span may arrive before its start, and a parent after its children: the run waits for what was
/// named.
#[tokio::test(start_paused = true)]
async fn run_waits_for_named_spans() {
    let (hub, runs) = hub(&[]);
    let (sender, inputs) = mpsc::channel(64);
    let hub = tokio::spawn(hub.run(inputs));
    let about =
        |id: &str, role| SpanAbout { id: id.into(), name: id.into(), role, ..SpanAbout::default() };
    let input = |what| {
        let message =
            TraceMessage { protocol: Protocol::Otlp, framework: "", trace: "t".into(), what };
        HubInput::Messages(None, vec![message])
    };
    let (tool, agent) = (SpanRole::Tool, SpanRole::Agent);
    for what in [
        closed("desk", about("refund", tool)),
        SpanMessage::Opened { parent: "desk".into(), about: about("refund", tool), call: None },
    ] {
        sender.send(input(what)).await.expect("received");
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    // A tool that its child names first is called once, and once only.
    for what in [
        closed("pay", about("inner", tool)),
        SpanMessage::Opened { parent: "desk".into(), about: about("pay", tool), call: None },
        closed("desk", about("pay", tool)),
        closed("", about("desk", agent)),
    ] {
        sender.send(input(what)).await.expect("received");
    }
    tokio::time::sleep(Duration::from_secs(11)).await;
    sender.send(input(closed("", about("late", tool)))).await.expect("received");
    drop(sender);
    let report = hub.await.expect("ended");
    let runs = runs.lock().expect("the runs").clone();
    assert_eq!((runs.len(), report.late), (1, 1));
    let events = events_of(&runs[0]);
    let world = World::from_events(events.iter().map(|event| &**event));
    let observed = world.observed().expect("observed");
    assert_eq!((observed.spans.len(), observed.lost), (4, 0));
    let calls = |row: &CallTotals| (row.name.to_string(), row.calls, row.open);
    let rows: Vec<_> = observed.tools.iter().map(calls).collect();
    assert_eq!(rows, [("refund".into(), 1, 0), ("inner".into(), 1, 0), ("pay".into(), 1, 0)]);
    let called = transcript(&world).iter().filter(|line| line.contains(" calls ")).count();
    assert_eq!(called, 3, "{:?}", transcript(&world));
    assert_eq!(path(&world, "inner"), ["inner", "pay", "desk"]);
}

/// What comes while no run is open goes to the next one; a warning that none gets is reported at the end.
#[tokio::test(start_paused = true)]
async fn unsent_lines_reach_next_run() {
    let (hub, runs) = hub(&[]);
    let (sender, inputs) = mpsc::channel(64);
    let hub = tokio::spawn(hub.run(inputs));
    let about = SpanAbout { id: "desk".into(), name: "desk".into(), ..SpanAbout::default() };
    let what = closed("", about);
    let message = TraceMessage { protocol: Protocol::Otlp, framework: "", trace: "t".into(), what };
    for input in [
        HubInput::Warning("first".into()),
        HubInput::Line(TextStream::Stdout, "a line".into()),
        HubInput::Messages(None, vec![message]),
    ] {
        sender.send(input).await.expect("received");
    }
    tokio::time::sleep(Duration::from_secs(11)).await;
    for input in
        [HubInput::Warning("last".into()), HubInput::Line(TextStream::Stdout, "a late line".into())]
    {
        sender.send(input).await.expect("received");
    }
    drop(sender);
    let report = hub.await.expect("ended");
    assert_eq!((&report.warnings[..], report.lost_lines), (&["last".to_owned()][..], 1));
    let events = events_of(&runs.lock().expect("the runs")[0]);
    let warned = |event: &Arc<Event>| matches!(&event.kind, EventKind::Warning { text } if &**text == "first");
    assert!(events.iter().any(warned), "{events:?}");
    let world = World::from_events(events.iter().map(|event| &**event));
    assert!(says(&world, "a line"), "{:?}", transcript(&world));
}

/// A client that keeps its connection finds it open after minutes.
#[tokio::test]
async fn guarded_connections_stay_open() {
    let watched = Watched::guarded("http://127.0.0.1:1/v1").await;
    let mut stream = TcpStream::connect(watched.reached).await.expect("connected");
    let request = format!(
        "GET /secret/OPENAI_BASE_URL/models HTTP/1.1\r\nHost: {}\r\n\r\n",
        watched.address.addr
    );
    for _ in 0..2 {
        stream.write_all(request.as_bytes()).await.expect("it is open");
        let mut answer = Vec::new();
        while !answer.ends_with(b"}}") {
            let read = timeout(PATIENCE, stream.read_buf(&mut answer)).await;
            assert_ne!(read.expect("in time").expect("read"), 0, "it is closed");
        }
        assert!(answer.starts_with(b"HTTP/1.1 502"), "{}", String::from_utf8_lossy(&answer));
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(600)).await;
        tokio::time::resume();
        tokio::task::yield_now().await;
    }
}
