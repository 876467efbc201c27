//! `roundtable acp`, as its clients see it: lines over pipes, the official SDK, and a checker of agents.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mcp::WORKER;
use crate::support::acp::{AcpClient, text};
use crate::support::binary::{Home, end};
use crate::support::line_client::sdk_python;
use crate::support::people::DESK;

/// A swarm whose replies differ by message.
const CHAT: &str = r#"
title   = "Chat"
pattern = "swarm"
goal    = "Hello?"
[swarm]
root = "desk"
[agents.desk]
description = "desk"
members     = ["clerk", "other"]
entry       = "clerk"
[agents.clerk]
description = "Answers"
[agents.other]
description = "Does not"
[[script]]
agent   = "clerk"
message = 1
text    = "The first answer."
[[script]]
agent   = "clerk"
text    = "A later answer."
"#;

fn with(scenario: &str) -> Home {
    let home = Home::new();
    home.write("scenario.toml", scenario);
    home
}

fn start(home: &Home) -> AcpClient {
    AcpClient::start(home, &["scenario.toml", "--instant"])
}

fn runs(home: &Home) -> Vec<Value> {
    home.run(&["runs", "--json"]).json().as_array().expect("rows").clone()
}

/// The events of the last run of this kind.
fn events(home: &Home, kind: &str) -> Vec<Value> {
    let lines = home.run(&["export", "last"]).lines();
    lines.into_iter().filter(|event| event["kind"] == kind).collect()
}

#[test]
fn answer_comes_with_its_run() {
    let home = Home::new();
    for (scenario, prompt, answer, how) in [
        ("support-swarm", "", "the second charge", "answered: by"),
        ("checkout-launch", "Decide.", "Decision: GO", "go: 3 go, round 3"),
        ("morning-report", "Report {{this}}.", "Health: YELLOW", "3/3 tasks"),
        ("fabricated-quote", "Who \"said\" it?", "Who \"said\" it?", "verification_failed"),
    ] {
        let mut client = AcpClient::start(&home, &[scenario, "--instant"]);
        let session = client.open();
        assert_eq!(client.prompt(&session, prompt), "end_turn", "{scenario}");
        let said = client.said();
        assert!(said.contains(answer) && said.contains(how), "{scenario}: {said}");
        let run = runs(&home)[0]["id"].as_str().expect("an id").to_owned();
        assert!(said.ends_with(&format!("`roundtable show {run}`\n")), "{scenario}: {said}");
        assert!(client.updates.iter().all(|params| params["sessionId"] == *session));
    }
}

#[test]
fn calls_open_and_end() {
    let home = Home::new();
    let mut client = AcpClient::start(&home, &["fabricated-quote", "--instant"]);
    let session = client.open();
    client.prompt(&session, "");
    let calls = client.of_kind("tool_call");
    let kinds: Vec<&Value> = calls.iter().map(|call| &call["kind"]).collect();
    assert_eq!(kinds, ["search", "read", "read"]);
    assert!(calls[0]["title"].as_str().is_some_and(|it| it.contains("calls search_sources with")));
    for call in &calls {
        let updates = client.of_kind("tool_call_update");
        let of_call = updates.iter().filter(|it| it["toolCallId"] == call["toolCallId"]);
        let states: Vec<&Value> = of_call.map(|update| &update["status"]).collect();
        assert_eq!(
            (&call["status"], &states[..]),
            (&json!("pending"), &[&json!("in_progress"), &json!("completed")][..])
        );
    }
    let plan = client.of_kind("plan").pop().expect("a plan");
    let steps = plan["entries"].as_array().expect("steps");
    let names: Vec<&Value> = steps.iter().map(|step| &step["content"]).collect();
    assert_eq!(names, ["plan", "search", "dedupe", "read", "verify", "synthesize"]);
}

#[test]
fn prompts_are_one_conversation() {
    let home = with(CHAT);
    let mut client = start(&home);
    let (session, other) = (client.open(), client.open());
    client.prompt(&session, "Who are you?");
    assert!(client.said().contains("The first answer."), "{}", client.said());
    client.prompt(&other, "Nobody.");
    client.prompt(&session, "Are you {{sure}}?");
    assert!(client.said().contains("A later answer."), "{}", client.said());
    let head = &events(&home, "run.started")[0]["plan"]["session"];
    assert_eq!((&head["message"], &head["text"]), (&json!(2), &json!("Are you {{sure}}?")));
    assert_eq!(head["previous_run"], runs(&home)[2]["id"]);
    assert!(head["history"].to_string().contains("Who are you?"), "{head}");
    assert!(!head["history"].to_string().contains("Nobody."), "{head}");
}

#[test]
fn user_approves_and_answers() {
    let home = with(DESK);
    let mut client = start(&home);
    let session = client.open();
    let prompt = client.begin(&session, "I was charged twice.");
    let asked = client.permission();
    let (call, options) = (&asked["params"]["toolCall"], &asked["params"]["options"]);
    assert_eq!(call["rawInput"], json!({ "charge": "ch_2", "amount_usd": 149.9 }));
    assert_eq!(call["title"], "billing asks operator to approve refund");
    let text = call["content"][0]["content"]["text"].as_str().expect("a text");
    assert!(text.contains("cannot be undone") && text.contains("It was charged twice."), "{text}");
    // What cannot be undone is never approved for all calls.
    let kinds: Vec<&Value> =
        options.as_array().expect("options").iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "reject_once"]);
    let shown = client.of_kind("tool_call");
    assert!(shown.iter().any(|shown| shown["toolCallId"] == call["toolCallId"]), "{shown:?}");
    client.select(&asked, "approve");
    assert_eq!(client.reply(prompt)["result"]["stopReason"], "end_turn");
    let said = client.said();
    assert!(
        said.contains("q2 for manager") && said.contains("The next prompt answers q2"),
        "{said}"
    );
    assert_eq!(client.prompt(&session, ""), "end_turn");
    assert!(client.said().contains("q2: the prompt is empty"), "{}", client.said());
    assert_eq!(client.prompt(&session, "We are."), "end_turn");
    assert!(client.said().contains("We are.\n\nanswered: by lead"), "{}", client.said());
    let answered = events(&home, "question.answered");
    let how: Vec<&Value> = answered.iter().map(|it| &it["answer"]).collect();
    assert_eq!(how, ["approve", "text"]);
    let by = answered[0]["name"].as_str().expect("a name");
    assert!(by.ends_with("(ACP client lines)"), "{by}");
}

#[test]
fn remembered_approval_is_asked_once() {
    let again = r#"
[[script]]
agent = "billing"
round = 2
calls = [{ tool = "refund", args = { charge = "ch_3", amount_usd = 5 } }]

[[script]]
agent = "billing"
text  = "Who"#;
    let scenario = DESK
        .replace("irreversible", "write")
        .replace("\n[[script]]\nagent = \"billing\"\ntext  = \"Who", again);
    let home = with(&scenario);
    for (option, asks) in [("approve", 2), ("remember", 1), ("deny", 2)] {
        let mut client = start(&home);
        let session = client.open();
        let prompt = client.begin(&session, "");
        for _ in 0..asks {
            let asked = client.permission();
            assert_eq!(asked["params"]["options"][1]["kind"], "allow_always", "{asked}");
            client.select(&asked, option);
        }
        assert_eq!(client.reply(prompt)["result"]["stopReason"], "end_turn", "{option}");
        client.end();
    }
}

#[test]
fn choices_are_options() {
    let asks = r#"calls = [{ tool = "ask_manager", args = { question = "How?", choices = ["card", "cash"] } }]"#;
    let scenario = DESK.replace(r#"tools       = ["refund"]"#, r#"people = ["manager"]"#).replace(
        r#"calls = [{ tool = "refund", args = { charge = "ch_2", amount_usd = 149.9 } }]"#,
        asks,
    );
    let home = with(&scenario);
    let mut client = start(&home);
    let session = client.open();
    client.begin(&session, "");
    let asked = client.permission();
    let names = asked["params"]["options"].as_array().expect("options").iter();
    assert_eq!(names.map(|it| &it["name"]).collect::<Vec<_>>(), ["card", "cash"]);
    client.select(&asked, "choice-2");
    client.next();
    let answered = &events(&home, "question.answered")[0];
    assert_eq!((&answered["answer"], &answered["choice"]), (&json!("choose"), &json!("cash")));
    let call = &asked["params"]["toolCall"]["toolCallId"];
    let updates = client.of_kind("tool_call_update");
    let ended = updates.iter().find(|update| update["toolCallId"] == *call).expect("ended");
    assert_eq!(ended["status"], "completed");
}

/// Nothing but an offered option is an answer; then the next prompt is.
#[test]
fn other_responses_approve_nothing() {
    let selected = |id: Value| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    for (response, prompt, answer) in [
        (json!({ "result": selected(json!("yes")) }), "deny", json!("deny")),
        (json!({ "result": selected(json!(0)) }), "approve", json!("approve")),
        (
            json!({ "result": selected(json!("remember")) }),
            "{\"approve\": false, \"text\": \"No.\"}",
            json!("deny"),
        ),
        (json!({ "result": { "outcome": { "outcome": "cancelled" } } }), "deny", json!("deny")),
        (json!({ "result": { "outcome": { "optionId": "approve" } } }), "deny", json!("deny")),
        (json!({ "result": null }), "deny", json!("deny")),
        (json!({ "error": { "code": -32603, "message": "no" } }), "deny", json!("deny")),
    ] {
        let home = with(DESK);
        let mut client = start(&home);
        let session = client.open();
        let turn = client.begin(&session, "");
        let asked = client.permission();
        let mut message = response.clone();
        (message["jsonrpc"], message["id"]) = (json!("2.0"), asked["id"].clone());
        client.write(&message.to_string());
        assert_eq!(client.reply(turn)["result"]["stopReason"], "end_turn", "{response}");
        assert!(client.said().contains("The next prompt answers q1"), "{}", client.said());
        assert_eq!(events(&home, "question.answered"), [] as [Value; 0], "{response}");
        client.prompt(&session, "yes, go on");
        assert!(client.said().contains("q1: approve it or deny it"), "{}", client.said());
        client.prompt(&session, prompt);
        assert_eq!(events(&home, "question.answered")[0]["answer"], answer, "{response}");
    }
}

#[test]
fn cancel_ends_the_run() {
    for is_waiting in [false, true] {
        let home = with(DESK);
        let mut client = start(&home);
        let session = client.open();
        let turn = client.begin(&session, "");
        let asked = client.permission();
        if is_waiting {
            client.select(&asked, "approve");
            client.reply(turn);
        }
        client.notify("session/cancel", json!({ "sessionId": session }));
        if !is_waiting {
            client.respond(&asked, json!({ "outcome": { "outcome": "cancelled" } }));
            assert_eq!(client.reply(turn)["result"]["stopReason"], "cancelled");
        }
        assert_eq!(client.end().0.code(), Some(0));
        assert_eq!(runs(&home)[0]["stop_reason"], "cancelled", "{is_waiting}");
    }
}

#[test]
fn cancelled_conversation_continues() {
    let home = with(DESK);
    let mut client = start(&home);
    let session = client.open();
    let turn = client.begin(&session, "One.");
    client.permission();
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.reply(turn)["result"]["stopReason"], "cancelled");
    client.begin(&session, "Two.");
    client.permission();
    let head = &events(&home, "run.started")[0];
    assert_eq!(head["plan"]["session"]["text"], "Two.", "{head}");
    client.request("session/close", json!({ "sessionId": session }));
}

#[test]
fn end_of_input_cancels_runs() {
    for signal in [None, Some("TERM"), Some("INT")] {
        let home = with(DESK);
        let mut client = start(&home);
        let session = client.open();
        client.begin(&session, "");
        client.permission();
        let (status, _, err) = match signal {
            None => client.end(),
            Some(signal) => {
                client.server().signal(signal);
                client.wait()
            }
        };
        assert_eq!((status.code(), &*err), (Some(0), ""), "{signal:?}");
        assert_eq!(runs(&home)[0]["stop_reason"], "cancelled", "{signal:?}");
    }
}

#[test]
fn wrong_requests_get_errors() {
    let home = with(CHAT);
    let mut client = start(&home);
    let session = client.open();
    let prompt = |session: &str, prompt: Value| json!({ "sessionId": session, "prompt": prompt });
    let image = json!([{ "type": "image", "data": "", "mimeType": "image/png" }]);
    for (method, params, code, why) in [
        ("session/load", json!({}), -32601, "session/load is not offered"),
        ("\u{1b}[2J", json!({}), -32601, "is not offered"),
        ("initialize", json!({}), -32602, "missing field `protocolVersion`"),
        ("initialize", json!({ "protocolVersion": "1" }), -32602, "invalid type"),
        ("initialize", Value::Null, -32602, "invalid type: null"),
        ("session/new", json!({}), -32602, "missing field `cwd`"),
        ("session/new", json!({ "cwd": "here" }), -32602, "cwd is not an absolute path"),
        ("session/new", json!({ "cwd": "/", "mcpServers": {} }), -32602, "invalid type"),
        ("session/close", json!({ "sessionId": "s9" }), -32602, "there is no session s9"),
        ("session/prompt", prompt("s9", text("x")), -32602, "there is no session s9"),
        ("session/prompt", prompt(&session, json!("x")), -32602, "invalid type"),
        ("session/prompt", json!({ "sessionId": session }), -32602, "missing field `prompt`"),
        ("session/prompt", prompt(&session, image), -32602, "unknown variant `image`"),
        ("session/prompt", prompt(&session, text(&"x".repeat(300_000))), -32602, "300000 bytes"),
    ] {
        let reply = client.request(method, params.clone());
        assert_eq!(reply["error"]["code"], code, "{method} {params}: {reply}");
        let message = reply["error"]["message"].as_str().expect("a text");
        assert!(message.contains(why), "{method}: {message}");
        assert!(!message.contains('\u{1b}'), "{message}");
    }
    client.notify("session/cancel", json!({ "sessionId": "s9" }));
    client.notify("session/cancel", Value::Null);
    let authenticated = client.request("authenticate", json!({ "methodId": "any" }));
    assert_eq!(authenticated["result"], json!({}));
    assert_eq!(client.prompt(&session, "Hello."), "end_turn");
}

#[test]
fn prompts_have_files() {
    let home = with(CHAT);
    let mut client = start(&home);
    let session = client.open();
    let parts = json!([
        { "type": "text", "text": "What is" },
        { "type": "resource_link", "uri": "file:///a.txt", "name": "a.txt" },
        { "type": "resource", "resource": { "uri": "file:///b.txt", "text": "B", "mimeType": "text/plain" } },
        { "type": "resource", "resource": { "uri": "file:///c.bin", "blob": "AAAA" } },
    ]);
    client.request("session/prompt", json!({ "sessionId": session, "prompt": parts }));
    let text = events(&home, "run.started")[0]["plan"]["session"]["text"].clone();
    assert_eq!(
        text,
        "What is\nfile:///a.txt\n\nfile:///b.txt:\nB\n\n\nfile:///c.bin:\n(not a text)"
    );
}

#[test]
fn one_prompt_at_a_time() {
    let home = with(DESK);
    let mut client = start(&home);
    let session = client.open();
    client.begin(&session, "");
    client.permission();
    let second = client.begin(&session, "More.");
    let refused = client.reply(second);
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    for _ in 1..8 {
        let session = client.open();
        client.begin(&session, "");
        client.permission();
    }
    let ninth = client.open();
    let ninth = client.request("session/prompt", json!({ "sessionId": ninth, "prompt": text("") }));
    let why = ninth["error"]["message"].as_str().expect("a text");
    assert!(why.contains("8 runs are played already"), "{why}");
}

#[test]
fn programs_start_only_with_permission() {
    let home = with(WORKER);
    let mut client = start(&home);
    let session = client.open();
    let params = json!({ "sessionId": session, "prompt": text("") });
    let refused = client.request("session/prompt", params);
    let why = refused["error"]["message"].as_str().expect("a text");
    assert!(why.contains("run echo"), "{why}");
    assert!(why.contains("roundtable run scenario.toml --trust"), "{why}");
    assert_eq!(home.run(&["run", "scenario.toml", "--trust"]).code, Some(0));
    assert_eq!(client.prompt(&session, ""), "end_turn");
    let calls = client.of_kind("tool_call");
    assert_eq!(calls[0]["kind"], "execute", "{calls:?}");
}

#[test]
fn wrong_command_lines_are_refused() {
    let home = Home::new();
    for (args, wrong) in [
        (&["acp"][..], "no scenario"),
        (&["acp", "-"], "standard input has the messages"),
        (&["acp", "no-such"], "no-such"),
        (&["acp", "support-swarm", "--people", "ask"], "standard input has the messages"),
        (&["acp", "support-swarm", "--flag", "nope=on"], "no such flag"),
        (&["acp", "support-swarm", "--set", "nope=1"], "nope"),
    ] {
        let ended = home.run(args);
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.err.contains(wrong), "{args:?}: {ended:?}");
    }
}

#[test]
fn scripts_answer_if_asked_to() {
    let home = Home::new();
    for (people, asks) in [("script", false), ("nobody", false), ("wait", true)] {
        let mut client = AcpClient::start(&home, &["refund-desk", "--instant", "--people", people]);
        let session = client.open();
        client.begin(&session, "");
        assert_eq!(client.next()["method"] == "session/request_permission", asks, "{people}");
    }
}

#[test]
fn garbage_does_not_end_it() {
    let home = with(CHAT);
    let mut client = start(&home);
    for line in [
        "",
        "garbage",
        "{",
        "[1]",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"x\"}}",
        "\u{1b}[2J\u{feff}",
    ] {
        client.write(line);
    }
    let session = client.open();
    assert_eq!(client.prompt(&session, "Hello."), "end_turn");
    let (status, out, err) = client.end();
    assert_eq!((status.code(), &*out, &*err), (Some(0), "", ""));
}

#[test]
fn huge_line_ends_the_connection() {
    let home = with(CHAT);
    let mut client = start(&home);
    client.write(&"x".repeat(5 << 20));
    let (status, _, err) = client.wait();
    assert_eq!(status.code(), Some(1), "{err}");
    assert!(err.contains("a message of the client has more than 4 MB"), "{err}");
}

#[test]
fn texts_of_models_are_harmless() {
    let long = "y".repeat(100_000);
    let evil = format!("\\u001b[2J\\u202eEvil {long}");
    let home = with(&CHAT.replace("The first answer.", &evil));
    let mut client = start(&home);
    let session = client.open();
    let turn = client.begin(&session, "");
    let mut whole = String::new();
    loop {
        let line = client.line();
        // Some clients read lines of at most 64 KiB.
        assert!(line.len() < 60_000, "{} bytes", line.len());
        assert!(!line.contains(['\u{202e}', '\u{1b}']), "{line}");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        if message["id"] == turn {
            break;
        }
        let update = &message["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            whole += update["content"]["text"].as_str().expect("a text");
        }
    }
    assert!(whole.contains(&long), "the answer is whole");
}

/// The example of the page is the script of this test.
#[test]
fn documented_conversation_is_real() {
    let page = include_str!("../../docs/acp-agent.md");
    let shown = page.split_once("```text\n").and_then(|(_, rest)| rest.split_once("```"));
    let home = Home::new();
    let mut client = crate::support::line_client::LineClient::start(
        &home,
        &["acp", "support-swarm", "--instant"],
    );
    for line in shown.expect("a conversation").0.lines() {
        if let Some(sent) = line.strip_prefix("→ ") {
            client.write(sent);
            continue;
        }
        let expected: Value =
            serde_json::from_str(line.strip_prefix("← ").expect("an arrow")).expect("JSON");
        // The page shows some of the updates, without what differs from run to run.
        while !has(&client.read().expect(line), &expected) {}
    }
}

/// Whether a value has everything of another one; `…` ends a text that is longer.
fn has(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => {
            part.iter().all(|(key, part)| value.get(key).is_some_and(|value| has(value, part)))
        }
        (Value::String(value), Value::String(part)) => match part.strip_suffix('…') {
            Some(part) => value.starts_with(part),
            None => value == part,
        },
        (value, part) => value == part,
    }
}

/// The official SDK.
#[test]
fn official_sdk_is_a_client() {
    let Some(python) = sdk_python("ROUNDTABLE_ACP") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/senders/acp_client.py");
    let home = with(DESK);
    let mut command = Command::new(&python);
    command.arg(&script).arg(env!("CARGO_BIN_EXE_roundtable"));
    command.args(["scenario.toml", "I was charged twice.", "We are."]);
    command.current_dir(home.path()).env_clear().envs(home.env());
    let ended = end(&mut command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = ended.json();
    assert_eq!((&told["version"], &told["agent"]), (&json!(1), &json!("roundtable")));
    assert_eq!(told["ends"], json!(["end_turn", "end_turn"]));
    let asked = json!([[
        "billing asks operator to approve refund",
        { "charge": "ch_2", "amount_usd": 149.9 },
        ["allow_once", "reject_once"],
    ]]);
    assert_eq!(told["asked"], asked);
    let updates = told["updates"].as_array().expect("updates");
    for kind in ["tool_call", "tool_call_update", "agent_thought_chunk", "agent_message_chunk"] {
        assert!(updates.iter().any(|update| update["sessionUpdate"] == kind), "{kind}");
    }
    assert_eq!(runs(&home)[0]["stop_reason"], "success");
}

/// A checker of agents. It has names of its own for the parts of a prompt and of `initialize`, so those parts of
/// it are left out: the official SDK checks them.
#[test]
fn checker_of_agents_passes() {
    let Some(python) = sdk_python("ROUNDTABLE_ACP") else { return };
    let home = with(CHAT);
    let mut command = Command::new(python.with_file_name("acplint"));
    command.args(["--agent", env!("CARGO_BIN_EXE_roundtable")]);
    command.args(["--agent-args", "acp scenario.toml --instant", "--output", "json"]);
    command.args(["--categories", "authentication", "session_lifecycle", "cancel"]);
    command.arg("--cwd").arg(home.path());
    command.current_dir(home.path()).env_clear().envs(home.env());
    let ended = end(&mut command);
    let report = ended.json();
    let results = report["results"].as_array().expect("results");
    let wrong = |it: &&Value| it["status"] != "PASS" && it["status"] != "SKIP";
    assert!(results.len() >= 10 && !results.iter().any(|it| wrong(&it)), "{report}");
}

/// The values that the operator gave in the settings of the client ask once too.
#[test]
fn folders_need_permission() {
    let home = Home::new();
    home.write("notes/car.md", "# Car\n\nThe excess is 250 EUR for each claim.\n");
    let args = ["own-notes", "--instant", "--set", "inputs.folder=notes"];
    let mut client = AcpClient::start(&home, &args);
    let session = client.open();
    let params = json!({ "sessionId": session, "prompt": text("What is the excess?") });
    let refused = client.request("session/prompt", params);
    let why = refused["error"]["message"].as_str().expect("a text");
    assert!(why.contains("read the documents in /"), "{why}");
    assert!(why.contains("roundtable run own-notes --set inputs.folder=notes --trust"), "{why}");
    let question = "inputs.question=\"What is the excess of the car insurance?\"";
    let folder = "inputs.folder=notes";
    let allowed = ["run", "own-notes", "--instant", "--trust", "--set", folder, "--set", question];
    assert_eq!(home.run(&allowed).code, Some(0));
    assert_eq!(client.prompt(&session, "What is the excess?"), "end_turn");
}
