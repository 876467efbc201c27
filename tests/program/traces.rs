//! The spans that are sent: a receiver with the official messages gets them from the real binary.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::support::binary::{Home, Running, end};
use crate::support::runners::{RunnerTeam, runner_at};
use crate::support::senders::{SENDER, python_of};

/// A scenario of each pattern, with what happens in it.
const SCENARIOS: [&str; 11] = [
    "checkout-launch",
    "checkout-denied",
    "dev-team",
    "front-desk",
    "payments-incident",
    "refund-desk",
    "own-notes",
    "three-coders",
    "morning-report",
    "web-status",
    "support-swarm",
];

/// A receiver; `None`: the tests have none.
struct TestReceiver {
    child: Child,
    /// What it prints: it is read at once, because a pipe that is full would hold the receiver.
    lines: Option<JoinHandle<String>>,
    address: String,
}

impl TestReceiver {
    fn start() -> Option<Self> {
        let python = python_of("otel")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/senders/otlp_receiver.py");
        let mut command = Command::new(python);
        let mut child = command
            .arg(script)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut port = String::new();
        out.read_line(&mut port).expect("a line");
        let lines = thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).expect("UTF-8");
            text
        });
        Some(Self {
            child,
            lines: Some(lines),
            address: format!("http://127.0.0.1:{}", port.trim()),
        })
    }

    fn option(&self, path: &str) -> String {
        format!("--otlp={}{path}", self.address)
    }

    /// The spans that it got at this path, without the path.
    fn spans(mut self) -> BTreeMap<String, Vec<Value>> {
        self.child.kill().expect("killed");
        let text = self.lines.take().expect("once").join().expect("lines");
        let mut spans: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in text.lines() {
            let mut span: Value = serde_json::from_str(line).expect("JSON");
            let to = span.as_object_mut().expect("a span").remove("to").expect("a path");
            spans.entry(to.as_str().expect("a text").to_owned()).or_default().push(span);
        }
        spans
    }
}

impl Drop for TestReceiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text<'s>(span: &'s Value, name: &str) -> &'s str {
    span[name].as_str().expect("a text")
}

/// The spans in a fixed order, each once.
fn sorted(spans: &[Value]) -> Vec<&Value> {
    let by_id: BTreeMap<&str, &Value> = spans.iter().map(|it| (text(it, "span"), it)).collect();
    by_id.into_values().collect()
}

/// Checks that spans are one whole tree of one trace; returns its root.
fn root_of<'s>(spans: &'s [Value], about: &str) -> &'s Value {
    let traces: BTreeSet<&str> = spans.iter().map(|it| text(it, "trace")).collect();
    assert_eq!(traces.len(), 1, "{about}");
    let ids: BTreeSet<&str> = spans.iter().map(|it| text(it, "span")).collect();
    let (roots, inner): (Vec<&Value>, Vec<&Value>) =
        sorted(spans).into_iter().partition(|it| text(it, "parent").is_empty());
    assert_eq!(roots.len(), 1, "{about}");
    for span in inner {
        assert!(ids.contains(text(span, "parent")), "{about}: {span}");
        assert!(span["from"].as_u64() <= span["until"].as_u64(), "{about}: {span}");
    }
    roots[0]
}

fn kind(span: &Value) -> &str {
    span["attributes"]["openinference.span.kind"].as_str().expect("a kind")
}

#[test]
fn each_pattern_follows_conventions() {
    let Some(receiver) = TestReceiver::start() else { return };
    let home = Home::new();
    let mut expected = BTreeMap::new();
    for scenario in SCENARIOS {
        let path = format!("/ok-{scenario}");
        let option = receiver.option(&path);
        let args = ["run", scenario, "--instant", "--no-store", "--format", "jsonl", &option];
        let ran = home.run(&args);
        assert!(!ran.err.contains("not sent"), "{scenario}: {ran:?}");
        let events = ran.lines();
        let calls = |of: &dyn Fn(&Value) -> bool| {
            events.iter().filter(|it| it["kind"] == "call.started" && of(it)).count()
        };
        let models = calls(&|it| it["tool"] == "llm");
        expected.insert(path, (models, calls(&|_| true)));
    }
    let got = receiver.spans();
    for (path, (models, calls)) in expected {
        let spans = &got[&path];
        // A session has a trace for each of its runs.
        let mut runs: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for span in spans {
            runs.entry(text(span, "trace")).or_default().push(span.clone());
        }
        for run in runs.values() {
            let root = root_of(run, &path);
            assert_eq!(kind(root), "CHAIN", "{root}");
            assert!(root["attributes"]["roundtable.run"].is_string(), "{root}");
        }
        for span in spans {
            assert_eq!(span["unknown"], json!([]), "{path}: {span}");
            let has = |name: &str| !span["attributes"][name].is_null();
            match kind(span) {
                "LLM" => assert!(has("gen_ai.request.model") && has("gen_ai.provider.name")),
                "TOOL" => assert!(has("gen_ai.tool.name") || span["name"] == "execute_tool"),
                "AGENT" => assert!(has("gen_ai.agent.name"), "{span}"),
                _ => {}
            }
        }
        let of_models = spans.iter().filter(|it| kind(it) == "LLM").count();
        assert_eq!(of_models, models, "{path}");
        let of_calls =
            spans.iter().filter(|it| !it["attributes"]["gen_ai.operation.name"].is_null()).count();
        assert_eq!(of_calls - runs.len(), calls, "{path}");
    }
    let handed = got["/ok-front-desk"].iter();
    let handed = handed.filter(|it| !it["attributes"]["graph.node.parent_id"].is_null());
    assert!(handed.count() > 0, "handoffs have their agents");
}

/// The spans of runs of this scenario with their texts, in the order of their starts.
fn spans_with_texts(scenario: &str) -> Option<Vec<Value>> {
    let receiver = TestReceiver::start()?;
    let option = receiver.option("/ok");
    let home = Home::new();
    let args = ["run", scenario, "--instant", "--no-store", "--format", "json", &option];
    let ran = home.run(&[&args[..], &["--otlp-content"]].concat());
    assert!(!ran.err.contains("not sent"), "{ran:?}");
    let mut spans = receiver.spans().remove("/ok").expect("spans");
    spans.sort_by_key(|span| span["from"].as_u64());
    assert!(spans.iter().all(|span| span["unknown"] == json!([])), "{spans:?}");
    Some(spans)
}

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {spans:?}"))
}

fn events(span: &Value) -> Vec<&str> {
    span["events"].as_array().expect("events").iter().map(|event| text(event, "name")).collect()
}

/// Viewers show the conversations of a round, and who speaks in them.
#[test]
fn seats_are_conversations() {
    let Some(spans) = spans_with_texts("checkout-launch") else { return };
    let first = named(&spans, "round 1");
    assert!(first["attributes"]["roundtable.result"].is_null(), "{first}");
    assert_eq!(named(&spans, "round 3")["attributes"]["roundtable.result"], "go");
    let seats = spans.iter().filter(|span| span["parent"] == first["span"]);
    let names: BTreeSet<&str> = seats.map(|span| text(span, "name")).collect();
    let seats = ["demand_analyst", "finance_analyst", "risk_analyst"];
    assert!(
        seats.iter().all(|seat| names.contains(&*format!("chat scripted {seat}"))),
        "{names:?}"
    );
    named(&spans, "chat scripted finalize");
    for span in spans.iter().filter(|span| kind(span) == "LLM") {
        let about = &span["attributes"];
        assert_eq!(about["input.value"], about["gen_ai.input.messages"], "{span}");
        assert_eq!(about["input.mime_type"], "application/json", "{span}");
        let read = |name: &str| -> Value {
            serde_json::from_str(about[name].as_str().expect("a text")).expect("JSON")
        };
        let (prompt, reply) = (read("gen_ai.input.messages"), read("gen_ai.output.messages"));
        assert_eq!((&prompt[0]["role"], &prompt[1]["role"]), (&json!("system"), &json!("user")));
        assert_eq!(reply[0]["finish_reason"], "stop", "{span}");
    }
}

/// A viewer takes a span with an exception for one that failed.
#[test]
fn only_failed_spans_have_exceptions() {
    let Some(spans) = spans_with_texts("checkout-launch") else { return };
    let retried = spans.iter().find(|it| it["attributes"]["roundtable.attempts"] == 2);
    let retried = retried.expect("a retry");
    assert_eq!(
        (&retried["failed"], events(retried)),
        (&json!(false), vec!["attempt_failed", "retry"])
    );
    let Some(spans) = spans_with_texts("morning-report-denied") else { return };
    let failed = named(&spans, "task 3 inventory_worker");
    assert_eq!(failed["attributes"]["error.type"], "worker_denied");
    assert_eq!(failed["status"], "worker_denied:inventory_worker");
    assert_eq!(events(failed), ["exception"]);
    let message = &failed["events"][0]["attributes"]["exception.message"];
    assert_eq!(message, "worker_denied:inventory_worker");
    for span in &spans {
        assert_eq!(span["failed"] == true, events(span).contains(&"exception"), "{span}");
    }
    let args = r#"{"report_date":"2026-02-26","region":"US"}"#;
    assert_eq!(failed["attributes"]["input.value"], args);
}

/// A round in which the run stops ends with it, and its seats keep their parent.
#[test]
fn stopped_round_has_its_span() {
    let Some(spans) = spans_with_texts("checkout-denied") else { return };
    let (run, round) = (root_of(&spans, "denied"), named(&spans, "round 1"));
    assert_eq!((&round["parent"], &round["until"]), (&run["span"], &run["until"]));
    assert_eq!(round["failed"], true);
    assert_eq!(round["attributes"]["error.type"], "agent_denied");
    assert_eq!(round["status"], "agent_denied:legal_analyst");
    assert!(round["attributes"]["roundtable.lost"].is_null(), "{round}");
}

#[test]
fn sources_say_why_they_are_denied() {
    let Some(spans) = spans_with_texts("payments-incident") else { return };
    let denied = named(&spans, "source #3");
    assert_eq!(denied["attributes"]["roundtable.denied"], true);
    assert_eq!(denied["attributes"]["error.type"], "source_denied_execution");
    assert_eq!(denied["status"], "switched off");
    let url = "https://regulator.example.org/guidance/customer-communications";
    assert_eq!(denied["attributes"]["input.value"], url);
}

/// What agents are given when they take over, what they say when they hand over, and the messages of a session.
#[test]
fn handoffs_and_messages_are_told() {
    let Some(spans) = spans_with_texts("support-swarm") else { return };
    let value = |name: &str, attribute: &str| {
        text(&named(&spans, name)["attributes"], attribute).to_owned()
    };
    let first = value("invoke_agent triage", "input.value");
    assert_eq!(first, "I was charged twice for order 8841. Please sort this out.");
    let said = value("invoke_agent triage", "output.value");
    assert!(said.contains("money is billing's") && said.contains("transfer_to_agent"), "{said}");
    let given = value("invoke_agent billing", "input.value");
    assert!(given.contains("triage adds: Order 8841 seems to be charged twice"), "{given}");
    let runs = spans.iter().filter(|span| text(span, "parent").is_empty());
    let asked: Vec<&str> = runs.map(|run| text(&run["attributes"], "input.value")).collect();
    assert_eq!(asked, [&*first, "Thank you. How long until the money is back?"]);
}

#[test]
fn questions_are_told_with_texts() {
    let Some(spans) = spans_with_texts("refund-desk") else { return };
    let events = spans.iter().flat_map(|span| span["events"].as_array().expect("events"));
    let told: Vec<(&str, &str, &str)> = events
        .filter(|event| event["name"] == "question" || event["name"] == "answer")
        .map(|event| {
            let about = |name: &str| event["attributes"][name].as_str().unwrap_or_default();
            (text(event, "name"), about("roundtable.person"), about("roundtable.text"))
        })
        .collect();
    let turn = "lead: The second charge of o-17 is refunded";
    assert_eq!((told[0].0, told[0].1), ("question", "operator"), "{told:?}");
    assert!(told[0].2.starts_with("refund {"), "{told:?}");
    assert_eq!(told[1], ("answer", "", ""), "an approval has no text");
    assert!(told[2].1 == "manager" && told[2].2.starts_with(turn), "{told:?}");
    assert!(told[3].2.starts_with("We are: our page"), "{told:?}");
}

/// What another program says of itself is sent on as it came, by the same names.
#[test]
fn watched_spans_keep_their_names() {
    let Some(receiver) = TestReceiver::start() else { return };
    let home = Home::new();
    home.write("desk.py", SENDER);
    let option = receiver.option("/ok");
    let args =
        ["watch", "--name", "refunds", &option, "--otlp-content", "--", "python3", "desk.py"];
    let ran = home.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let got = receiver.spans();
    let spans = &got["/ok"];
    root_of(spans, "watched");
    let (desk, refund) = (named(spans, "invoke_agent desk"), named(spans, "execute_tool refund"));
    assert_eq!(refund["parent"], desk["span"]);
    assert_eq!(desk["attributes"]["gen_ai.agent.name"], "desk");
    assert_eq!(desk["attributes"]["output.value"], "Refunded.");
    let about = &refund["attributes"];
    assert_eq!(about["gen_ai.tool.name"], "refund");
    assert_eq!(about["gen_ai.tool.call.arguments"], r#"{"charge": "ch_2"}"#);
    assert_eq!(about["gen_ai.tool.call.result"], "re_31");
    assert_eq!(refund["unknown"], json!([]));
}

#[test]
fn later_export_is_same_trace() {
    let Some(receiver) = TestReceiver::start() else { return };
    let home = Home::new();
    let options = ["/live", "/one", "/two"].map(|path| receiver.option(path));
    let ran = home.run(&["run", "payments-incident", "--instant", "--format", "json", &options[0]]);
    assert!(!ran.err.contains("not sent"), "{ran:?}");
    for option in &options[1..] {
        let sent = home.run(&["export", "last", option]);
        assert_eq!((sent.code, &*sent.out), (Some(0), ""), "{sent:?}");
        assert!(sent.err.contains(" spans sent"), "{sent:?}");
    }
    let got = receiver.spans();
    assert_eq!(sorted(&got["/live"]), sorted(&got["/one"]));
    assert_eq!(sorted(&got["/live"]), sorted(&got["/two"]));
    assert_eq!(got["/one"].len(), sorted(&got["/one"]).len(), "each span once");
    root_of(&got["/live"], "live");
}

/// A run whose process is killed and that is resumed is one trace.
#[test]
fn resumed_run_is_one_trace() {
    let Some(receiver) = TestReceiver::start() else { return };
    let home = Home::new();
    let (live, later) = (receiver.option("/live"), receiver.option("/later"));
    let args = ["run", "checkout-launch", "--format", "jsonl", &live];
    let mut running = Running::start(&mut home.command(&args));
    running.until("round.closed");
    running.kill();
    let resumed = home.run(&["resume", "last", "--format", "json", &live]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(home.run(&["export", "last", &later]).code, Some(0));
    let got = receiver.spans();
    assert_eq!(sorted(&got["/live"]), sorted(&got["/later"]));
    root_of(&got["/live"], "resumed");
}

/// A run that another runner takes over is one trace, though both have sent spans.
#[test]
fn taken_over_run_is_one_trace() {
    let Some(receiver) = TestReceiver::start() else { return };
    let Some(team) = RunnerTeam::start() else { return };
    let option = receiver.option("/runners");
    let start = |name: &str| {
        runner_at(&team.home, &team.server.url(), name, |command| {
            command.arg(&option);
        })
    };
    let first = start("a");
    let mut followed = team.follow(&["checkout-launch", "--format", "jsonl"]);
    followed.until("round.closed");
    drop(first);
    let mut second = start("b");
    followed.until("run.closed");
    second.until("has ended");
    second.process.signal("TERM");
    followed.end();
    loop {
        let told = second.process.complains();
        assert!(!told.contains("not sent"), "{told}");
        if told.is_empty() {
            break;
        }
    }
    let got = receiver.spans();
    let spans = &got["/runners"];
    root_of(spans, "runners");
    // A span that both have sent is the same.
    let mut known: BTreeMap<&str, &Value> = BTreeMap::new();
    for span in spans {
        assert_eq!(*known.entry(text(span, "span")).or_insert(span), span);
    }
}

const CANARY: &str = r#"
title = "T"
pattern = "swarm"
goal = "CANARY goal"
[swarm]
root = "front"
[agents.front]
description = "F"
members = ["desk"]
entry = "desk"
[agents.desk]
description = "D"
instruction = "CANARY instruction"
tools = ["lookup", "broken"]
[tools.lookup]
description = "Looks up"
args = { what = "CANARY" }
fixture = { rows = [{ result = { found = "CANARY result" } }] }
[tools.broken]
description = "Fails"
args = { what = "W" }
breaker = { fail_threshold = 1 }
command = { program = "sh", args = ["-c", "echo CANARY error >&2; exit 3"] }
[[script]]
agent = "desk"
round = 1
text = "CANARY text"
calls = [{ tool = "lookup", args = { what = "CANARY arg" } }, { tool = "broken", args = { what = "CANARY arg" } }]
[[script]]
agent = "desk"
round = 2
text = "CANARY text"
calls = [{ tool = "broken", args = { what = "CANARY arg" } }]
[[script]]
agent = "desk"
text = "CANARY answer"
"#;

#[test]
fn texts_stay_here_by_default() {
    let Some(receiver) = TestReceiver::start() else { return };
    let home = Home::new();
    home.write("canary.toml", CANARY);
    let (without, with) = (receiver.option("/without"), receiver.option("/with"));
    let args = ["run", "canary.toml", "--trust", "--instant", "--format", "json"];
    home.run(&[&args[..], &[&without]].concat());
    home.run(&[&args[..], &[&with, "--otlp-content"]].concat());
    let got = receiver.spans();
    for span in &got["/without"] {
        assert!(!span.to_string().contains("CANARY"), "{span}");
    }
    let events = got["/without"].iter().flat_map(|span| span["events"].as_array().expect("events"));
    let names: BTreeSet<&str> = events.map(|event| text(event, "name")).collect();
    assert_eq!(names, BTreeSet::from(["breaker", "exception", "refused"]));
    let texts = Value::from(got["/with"].clone()).to_string();
    for what in ["goal", "instruction", "text", "arg", "result", "error", "answer"] {
        assert!(texts.contains(&format!("CANARY {what}")), "{what}: {texts}");
    }
    for span in &got["/with"] {
        assert_eq!(span["unknown"], json!([]), "{span}");
    }
}

#[test]
fn nothing_is_sent_unasked() {
    // Another program may have the port.
    let Ok(listener) = TcpListener::bind("127.0.0.1:4318") else { return };
    listener.set_nonblocking(true).expect("a socket");
    let home = Home::new();
    let endpoint = "http://127.0.0.1:4318";
    let mut command = home.command(&["run", "checkout-launch", "--instant", "--format", "json"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    assert_eq!(end(&mut command).code, Some(0));
    assert!(listener.accept().is_err(), "nobody connects");
}

#[test]
fn what_is_lost_is_said() {
    let Some(receiver) = TestReceiver::start() else { return };
    let home = Home::new();
    let options = ["/refuse", "/partial", "/busy"].map(|path| receiver.option(path));
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("--otlp=http://{}", listener.local_addr().expect("bound"))
    };
    let lost = [(&options[0], "answered 400"), (&options[1], "no room"), (&closed, "127.0.0.1")];
    for (option, why) in lost {
        let ran = home.run(&["run", "checkout-launch", "--instant", "--format", "json", option]);
        assert_eq!(ran.code, Some(0), "{option}: {ran:?}");
        assert!(ran.err.contains("spans not sent: ") && ran.err.contains(why), "{ran:?}");
        assert!(ran.err.contains("`roundtable export RUN --otlp`"), "{ran:?}");
    }
    let refused = home.run(&["export", "last", &options[0]]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("answered 400"), "{refused:?}");
    let busy = home.run(&["export", "last", &options[2]]);
    assert_eq!(busy.code, Some(0), "{busy:?}");
    for (option, why) in
        [("--otlp=ftp://x", "neither http:// nor https://"), ("--otlp=nonsense", "invalid")]
    {
        let ran = home.run(&["run", "checkout-launch", "--instant", option]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(why), "{ran:?}");
    }
    assert!(receiver.spans().contains_key("/busy"));
}

/// The run is stored whole though the receiver does not answer.
#[test]
fn slow_receiver_delays_no_run() {
    let Some(receiver) = TestReceiver::start() else { return };
    let home = Home::new();
    let option = receiver.option("/slow");
    let ran = home.run(&["run", "checkout-launch", "--instant", "--format", "json", &option]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("did not take them in time"), "{ran:?}");
    assert!(ran.json()["elapsed_ms"].as_u64() < Some(1_000), "{ran:?}");
    assert_eq!(home.run(&["runs", "--json"]).json()[0]["status"], "ended");
}

/// An option that would do nothing is refused.
#[test]
fn idle_options_are_refused() {
    let home = Home::new();
    home.run(&["run", "checkout-launch", "--instant", "--format", "json"]);
    for args in [
        &["test", "checkout-launch", "--otlp"][..],
        &["run", "checkout-launch", "--times", "2", "--otlp"],
        &["run", "checkout-launch", "--on", "nats://127.0.0.1:9", "--otlp"],
        &["runs", "--otlp"],
        &["run", "checkout-launch", "--instant", "--otlp-content"],
        &["export", "last", "--otlp", "--html"],
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.err.contains("--otlp"), "{args:?}: {ran:?}");
    }
}

/// The configuration of a home sends every run, with its headers, and says what is missing.
#[test]
fn configured_receiver_gets_each_run() {
    let Some(receiver) = TestReceiver::start() else { return };
    let Some(other_receiver) = TestReceiver::start() else { return };
    let other = other_receiver.option("/other");
    let home = Home::new();
    let table = format!(
        "[telemetry]\notlp = \"{}/configured\"\nheaders = {{ authorization = {{ env = \"TRACES_TOKEN\" }} }}\n",
        receiver.address
    );
    home.write("config/roundtable/config.toml", &table);
    let args = ["run", "checkout-launch", "--instant", "--format", "json"];
    let ran = home.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("$TRACES_TOKEN, which is not set"), "{ran:?}");
    let ran = end(home.command(&args).env("TRACES_TOKEN", "Bearer t0ken"));
    assert!(ran.code == Some(0) && !ran.err.contains("not sent"), "{ran:?}");
    assert!(!ran.err.contains("t0ken"), "{ran:?}");
    // Texts that are for this receiver are not for another one, which gets no header and needs no variable.
    home.write("config/roundtable/config.toml", &format!("{table}content = true\n"));
    let token = ("TRACES_TOKEN", "Bearer t0ken");
    end(home.command(&args).env(token.0, token.1));
    home.run(&[&args[..], &[&other]].concat());
    let ran = home.run(&[&args[..], &["--otlp=http://127.0.0.1:9"]].concat());
    assert!(ran.err.contains("127.0.0.1:9") && !ran.err.contains("TRACES_TOKEN"), "{ran:?}");
    let got = receiver.spans();
    let (own, others) = (&got["/configured"], other_receiver.spans());
    let has_texts =
        |spans: &[Value]| spans.iter().any(|it| !it["attributes"]["input.value"].is_null());
    assert!(has_texts(own) && !has_texts(&others["/other"]));
}
