//! Why a run was stopped: each way in which a tool, a server, an agent or a model fails has one sentence, and every
//! output has that sentence. The real binary, and servers of this machine.
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::binary::{Ended, Home, end, flat};

/// What a server of the tests does with a connection.
#[derive(Clone)]
enum Does {
    Answers(&'static str, String),
    /// It never answers.
    Waits,
}

/// A server that does the same with each connection. It ends with the process of the tests.
fn server(does: Does) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let does = does.clone();
            thread::spawn(move || serve(stream, &does));
        }
    });
    format!("http://{address}")
}

fn serve(mut stream: TcpStream, does: &Does) {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
    let mut request = [0; 65_536];
    let _ = stream.read(&mut request);
    match does {
        Does::Answers(status, body) => {
            let length = body.len();
            let head = "content-type: application/json\r\nconnection: close";
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}"
            );
        }
        Does::Waits => {
            let _ = stream.set_read_timeout(None);
            while stream.read(&mut request).is_ok_and(|read| read > 0) {}
        }
    }
}

fn answers(status: &'static str, body: &str) -> String {
    server(Does::Answers(status, body.to_owned()))
}

/// An address at which nobody listens.
fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// An orchestrator whose only task is critical; `worker`: the table of its worker.
fn worker(worker: &str) -> String {
    format!(
        r#"
title = "T"
pattern = "orchestrator"
goal = "G"
[budget]
max_retries_per_task = 0
task_timeout_seconds = 1.0
[orchestrator]
plan_prompt = "Plan."
finalize_prompt = "Report."
[orchestrator.sections]
stock = "stock"
[orchestrator.level]
name = "health"
otherwise = "green"
[workers.stock]
description = "S"
{worker}
[[script]]
step = "plan"
reply = {{ kind = "plan", tasks = [{{ id = "t1", worker = "stock", args = {{}}, critical = true }}] }}
"#
    )
}

/// A team of one agent that has the tools of an MCP server, which is this program.
fn server_tools(program: &str, args: &str) -> String {
    format!(
        r#"
title = "T"
pattern = "team"
goal = "G"
[team]
root = "desk"
[agents.desk]
description = "D"
tools = ["srv.*"]
members = ["clerk"]
[agents.clerk]
description = "C"
[mcp.srv]
command = {{ program = "{program}", args = {args} }}
start_timeout_s = 1
[tools.srv]
retries = {{ max_attempts = 1, backoff_ms = [0] }}
[[script]]
agent = "desk"
text = "Done."
"#
    )
}

/// A swarm whose only agent is of another program.
fn other_agent(table: &str) -> String {
    format!(
        r#"
title = "T"
pattern = "swarm"
goal = "G"
[swarm]
root = "desk"
[agents.desk]
description = "D"
members = ["coder"]
entry = "coder"
[agents.coder]
description = "C"
{table}
[tools.coder]
retries = {{ max_attempts = 1, backoff_ms = [0] }}
[[script]]
agent = "coder"
text = "Scripted."
"#
    )
}

/// A team whose agent calls a model.
const MODEL: &str = r#"
title = "T"
pattern = "team"
goal = "G"
[team]
root = "desk"
[agents.desk]
description = "D"
members = ["clerk"]
[agents.clerk]
description = "C"
[tools.llm]
timeout_s = 1
retries = { max_attempts = 1, backoff_ms = [0] }
[[script]]
agent = "desk"
text = "Done."
"#;

/// A question whose tools are these tables.
fn research(tools: &str) -> String {
    format!(
        r#"
title = "T"
pattern = "research"
goal = "G"
[research]
question = "Why?"
allowed_domains_policy = ["example.com"]
allowed_domains_execution = ["example.com"]
plan = "model"
notes = "model"
answer = "rule"
[tools.search_sources]
retries = {{ max_attempts = 1, backoff_ms = [0] }}
[tools.read_source]
retries = {{ max_attempts = 1, backoff_ms = [0] }}
{tools}
[[script]]
step = "plan"
reply = {{ steps = [
  {{ id = "r1", action = "search_sources", args = {{ query = "why" }} }},
  {{ id = "r2", action = "dedupe_urls", args = {{}} }},
  {{ id = "r3", action = "read_extract_notes", args = {{}} }},
  {{ id = "r4", action = "verify_notes", args = {{}} }},
  {{ id = "r5", action = "synthesize_answer", args = {{}} }},
] }}
[[script]]
step = "notes"
reply = {{ notes = [] }}
"#
    )
}

/// A server whose handshake says nothing.
const BAD_HANDSHAKE: &str = "import json, sys
for line in sys.stdin:
    print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(line).get('id'), 'result': 7}), flush=True)";

/// A run of load on one tool that always fails; its breaker stays open.
const BREAKER: &str = r#"
title = "T"
pattern = "resilience"
goal = "G"
[budget]
max_seconds = 20
[resilience]
agents = 1
turns = 9
steps = ["vendor"]
pool = 1
[tools.vendor]
retries = { max_attempts = 1, backoff_ms = [0] }
breaker = { fail_threshold = 1, open_for_s = 600 }
[[tools.vendor.fixture.rows]]
result = { ok = true }
fault = { status = 503, text = "the vendor is down", times = 20 }
"#;

struct Way {
    name: &'static str,
    scenario: String,
    /// The address of the model.
    model: Option<String>,
    stop_reason: &'static str,
    /// What the sentence says.
    says: &'static str,
}

fn way(name: &'static str, scenario: String, stop_reason: &'static str, says: &'static str) -> Way {
    Way { name, scenario, model: None, stop_reason, says }
}

fn ways() -> Vec<Way> {
    let http = |url: String, more: &str| {
        worker(&format!("[workers.stock.http]\nurl = \"{url}/x\"\nallow_private = true\n{more}"))
    };
    let command = |script: &str| {
        let script = Value::from(script);
        worker(&format!("[workers.stock.command]\nprogram = \"sh\"\nargs = [\"-c\", {script}]"))
    };
    let task = "critical_task_failed";
    let model = |name, url: String, stop_reason, says| Way {
        model: Some(format!("{url}/v1")),
        ..way(name, MODEL.to_owned(), stop_reason, says)
    };
    let script = |script: &str| format!("[\"-c\", {}]", Value::from(script));
    let acp = |program: &str, args: &str| {
        other_agent(&format!(
            "[agents.coder.acp]\ncommand = {{ program = \"{program}\", args = {args} }}"
        ))
    };
    let ag_ui = |url: String| {
        other_agent(&format!("[agents.coder.ag_ui]\nurl = \"{url}/agent\"\nallow_private = true"))
    };
    let error = "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n\
                 data: {\"type\":\"RUN_ERROR\",\"message\":\"no desk is free\"}\n\n";
    let at = |tool: &str, url: String| {
        format!("[tools.{tool}.http]\nurl = \"{url}/find\"\nallow_private = true\n")
    };
    let search = |table: &str| {
        let page = "[[tools.read_source.fixture.rows]]\nresult = { status = \"ok\", data = {} }\n";
        research(&format!("{page}{table}"))
    };
    let read = |table: &str| {
        let result =
            "{ url = \"https://example.com/a\", title = \"A\", snippet = \"a\", score = 0.9 }";
        let found = format!("{{ status = \"ok\", data = {{ results = [{result}] }} }}");
        research(&format!("[[tools.search_sources.fixture.rows]]\nresult = {found}\n{table}"))
    };
    vec![
        way(
            "search HTTP 500",
            search(&at("search_sources", answers("500 Oh", "{\"error\":\"no index\"}"))),
            "tool_error:search_sources:status",
            "no index",
        ),
        way(
            "search refused",
            search(&at("search_sources", closed())),
            "tool_error:search_sources:connect",
            "no connection to 127.0.0.1",
        ),
        way(
            "search with a bad result",
            search("[[tools.search_sources.fixture.rows]]\nresult = { right = 1 }"),
            "tool_invalid_output:search_sources",
            "not with a list of results",
        ),
        way(
            "pages refused",
            read(&at("read_source", closed())),
            "no_reliable_sources",
            "no connection to 127.0.0.1",
        ),
        way("HTTP 500", http(answers("500 Oh", "{\"error\":\"disk full\"}"), ""), task, "HTTP 500"),
        way("HTTP timeout", http(server(Does::Waits), ""), task, "the timeout of one attempt"),
        way("HTTP refused", http(closed(), ""), task, "no connection to 127.0.0.1"),
        way("HTTP bad JSON", http(answers("200 OK", "{\"a\":"), ""), task, "JSON"),
        way(
            "HTTP too large",
            http(
                answers("200 OK", &format!("{{\"a\":\"{}\"}}", "x".repeat(5_000))),
                "max_bytes = 1000",
            ),
            task,
            "1000 bytes",
        ),
        way("command exit", command("echo no stock >&2; exit 3"), task, "no stock"),
        way("command timeout", command("sleep 60"), task, "the timeout of one attempt"),
        way("command bad JSON", command("echo hello"), task, "JSON"),
        way(
            "command missing",
            worker("[workers.stock.command]\nprogram = \"/no/such/program\""),
            task,
            "/no/such/program",
        ),
        way(
            "worker with a bad result",
            worker(
                "[workers.stock.contract]\nleft = \"number\"\n[[workers.stock.fixture.rows]]\nresult = { right = 1 }",
            ),
            task,
            "left",
        ),
        way(
            "MCP crash at start",
            server_tools("sh", &script("echo 'WEATHER_KEY is not set' >&2; exit 1")),
            "tool_error:srv:tool",
            "WEATHER_KEY is not set",
        ),
        way(
            "MCP bad handshake",
            server_tools("python3", &script(BAD_HANDSHAKE)),
            "tool_error:srv:",
            "answered the handshake without a protocol version",
        ),
        way(
            "MCP program missing",
            server_tools("/no/such/server", "[]"),
            "tool_error:srv:tool",
            "/no/such/server",
        ),
        way(
            "MCP start timeout",
            server_tools("sh", &script("sleep 60")),
            "tool_error:srv:timeout",
            "1.0 s",
        ),
        way(
            "ACP crash",
            acp("sh", &script("echo 'no licence' >&2; exit 4")),
            "tool_error:coder.acp:",
            "no licence",
        ),
        way(
            "AG-UI refused",
            ag_ui(closed()),
            "tool_error:coder.ag_ui:connect",
            "no connection to 127.0.0.1",
        ),
        way(
            "AG-UI error",
            ag_ui(answers("200 OK\r\ncontent-type: text/event-stream", error)),
            "tool_error:coder.ag_ui:",
            "no desk is free",
        ),
        model(
            "model 401",
            answers("401 Unauthorized", "{\"error\":{\"message\":\"who?\"}}"),
            "llm_error:auth",
            "who?",
        ),
        model(
            "model 429",
            answers("429 Many", "{\"error\":{\"message\":\"slow down\"}}"),
            "llm_error:rate_limited",
            "slow down",
        ),
        model(
            "model 500",
            answers("500 Oh", "{\"error\":{\"message\":\"oh no\"}}"),
            "llm_error:http_500",
            "oh no",
        ),
        model(
            "model bad JSON",
            answers("200 OK", "{\"choices\":"),
            "llm_error:bad_response",
            "127.0.0.1",
        ),
        model("model timeout", server(Does::Waits), "llm_timeout", "the timeout of one attempt"),
        way(
            "breaker open",
            BREAKER.to_owned(),
            "circuit_open:vendor",
            "Opened by: the vendor is down",
        ),
    ]
}

/// The text of an SVG or of a page, as far as it matters here.
fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// Words that a line of text may break between.
fn words(text: &str) -> String {
    flat(&unescaped(text)).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn run(home: &Home, way: &Way, args: &[&str]) -> Ended {
    let mut command = home.command(args);
    if let Some(model) = &way.model {
        command.env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", model);
    }
    end(&mut command)
}

#[test]
fn each_failure_is_said_everywhere() {
    let wrong: Vec<String> = ways().iter().flat_map(wrong_outputs).collect();
    assert!(wrong.is_empty(), "{} outputs:\n{}", wrong.len(), wrong.join("\n"));
}

/// The outputs of a run that do not say why it was stopped.
fn wrong_outputs(way: &Way) -> Vec<String> {
    let name = way.name;
    let home = Home::new();
    home.write("mine.toml", &way.scenario);
    let mut args = vec!["run", "mine.toml", "--trust", "--format", "json"];
    if ["ACP", "AG-UI", "model"].iter().any(|it| name.starts_with(it)) {
        args.push("--live");
    }
    let ran = run(&home, way, &args);
    if !ran.out.starts_with('{') {
        return vec![format!("{name}: no outcome: {ran:?}")];
    }
    let outcome = ran.json();
    let reason = outcome["stop_reason"].as_str().unwrap_or_default();
    let Some(error) = outcome["error"].as_str() else {
        return vec![format!("{name}: {reason} has no error")];
    };
    let mut wrong = Vec::new();
    if !reason.starts_with(way.stop_reason) || !error.contains(way.says) {
        wrong.push(format!("{name}: {reason}: {error}"));
    }
    let id = outcome["run_id"].as_str().expect("an id");
    let show = |format: &str| run(&home, way, &["show", id, "--format", format]).out;
    let again: Value = serde_json::from_str(&show("json")).expect("JSON");
    let rows = home.run(&["runs", "--json"]).json();
    // A row of the screen has room for the start.
    let start: String = error.chars().take(12).collect();
    for (output, text, says) in [
        ("show as JSON", again["error"].to_string(), error),
        ("show as text", show("text"), error),
        ("the list of runs", rows[0]["result"].to_string(), error),
        ("the page", run(&home, way, &["export", id, "--html"]).out, error),
        ("plain mode", plain(&home, id), error),
        ("the banner", run(&home, way, &["picture", id, "--text", "--size", "200x24"]).out, &start),
    ] {
        let text = words(&text.replace("\\\"", "\""));
        if !text.contains(&words(says)) {
            wrong.push(format!("{name}: {output} does not say {says}: {text}"));
        }
    }
    wrong
}

/// What plain mode says of a kept run.
fn plain(home: &Home, id: &str) -> String {
    let mut command = home.command(&["--plain"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let words = format!("open {id}\nwait\nstatus\nshow outcome\n");
    child.stdin.take().expect("a pipe").write_all(words.as_bytes()).expect("it reads");
    let ended = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

/// Nobody is asked about the tools of one server where another one that the run needs does not start.
#[test]
fn dead_server_stops_before_questions() {
    let home = Home::new();
    let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_fake.py");
    let text = server_tools("sh", "[\"-c\", \"exit 1\"]").replace(
        "[mcp.srv]",
        &format!(
            "[mcp.other]\ncommand = {{ program = \"python3\", args = [{fake:?}] }}\n[mcp.srv]"
        ),
    );
    home.write("mine.toml", &text.replace("[\"srv.*\"]", "[\"other.*\", \"srv.*\"]"));
    let ran = home.run(&["run", "mine.toml", "--trust", "--people", "wait", "--format", "jsonl"]);
    assert!(ran.out.contains("\"tool_error:srv:tool\""), "{ran:?}");
    assert!(!ran.out.contains("question.asked"), "{ran:?}");
}
