//! `roundtable run` of teams and swarms, the real binary: sessions of several messages, and the output
//! about agents that consult each other and hand over.

use std::io::Write;
use std::process::Stdio;

use crate::support::binary::{Ended, Home, Running};
use serde_json::{Value, json};

const SWARM: &str = r#"title = "The desk"
pattern = "swarm"
goal = "My invoice is wrong."
[swarm]
root = "desk"
follow_ups = ["And the one of May?", "Thank you."]
[agents.desk]
description = "Answers customers"
members = ["front", "billing"]
entry = "front"
cross_request_transfer = true
max_handoffs = 1
max_rejections = 1
[agents.front]
description = "Greets"
[agents.billing]
description = "Knows invoices"
[[script]]
agent = "front"
message = 1
text = "I pass you on."
calls = [{ tool = "transfer_to_agent", args = { agent_name = "billing", message = "The invoice is wrong." } }]
[[script]]
agent = "billing"
message = 1
text = "The invoice of April was wrong; it is mended."
[[script]]
agent = "billing"
message = 2
turn = 1
round = 1
text = "One moment."
calls = [{ tool = "transfer_to_agent", args = { agent_name = "front" } }, { tool = "transfer_to_agent", args = { agent_name = "nobody" } }]
[[script]]
agent = "front"
message = 2
text = "Back again."
calls = [{ tool = "transfer_to_agent", args = { agent_name = "billing" } }]
[[script]]
agent = "billing"
message = 3
text = "You are welcome."
"#;

const TEAM: &str = r#"title = "A product"
pattern = "team"
goal = "Build it."
[team]
root = "pm"
[agents.pm]
description = "Manages"
members = ["devs", "writer"]
[agents.pm.member_tools]
stream_inner = true
inner_text = "INNER"
[agents.devs]
description = "Build"
members = ["coder"]
[agents.coder]
description = "Codes"
[agents.writer]
description = "Writes"
[[script]]
agent = "pm"
round = 1
calls = [{ tool = "devs", args = { request = "Build." } }, { tool = "lawyer", args = { request = "May we?" } }]
[[script]]
agent = "pm"
text = "It is built."
[[script]]
agent = "devs"
round = 1
text = "I ask the coder."
calls = [{ tool = "coder", args = { request = "Code." } }]
[[script]]
agent = "devs"
text = "Built."
[[script]]
agent = "coder"
text = "let it = \u001b[2Jbe"
"#;

fn run(home: &Home, args: &[&str]) -> Ended {
    let mut all = vec!["run", "desk.toml", "--instant"];
    all.extend(args);
    home.run(&all)
}

fn desk() -> Home {
    let home = Home::new();
    home.write("desk.toml", SWARM);
    home
}

fn reasons(session: &Value) -> Vec<&str> {
    let runs = session["session"].as_array().expect("outcomes").iter();
    runs.map(|run| run["stop_reason"].as_str().expect("a reason")).collect()
}

/// The intended fault of the desk's script.
const ODD: &str = "roundtable: desk.toml:33:84: warning: script[2].calls[1].args: there is no agent \
                   \"nobody\" to hand over to (one of desk, front, billing)";

#[test]
fn one_message_is_one_outcome() {
    for args in [&["--message", "My invoice is wrong."][..], &["--set", "swarm.follow_ups=[]"]] {
        let ended = run(&desk(), args);
        assert_eq!((ended.code, &*ended.err), (Some(0), &*format!("{ODD}\n")), "{ended:?}");
        let outcome = ended.json();
        assert_eq!(outcome["answer"], "The invoice of April was wrong; it is mended.");
        assert_eq!(outcome["history"][0]["message"], "My invoice is wrong.");
        assert_eq!((&outcome["owner"], &outcome["message"]), (&json!("billing"), &json!(1)));
    }
}

#[test]
fn session_continues_after_stopped_run() {
    let ended = run(&desk(), &[]);
    // billing owns the first reply, so it begins the second: its handoffs are too many.
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let session = ended.json();
    assert!(ended.out.starts_with("{\n  \"status\": \"stopped\""), "{}", ended.out);
    assert_eq!(reasons(&session), ["success", "max_handoffs", "success"]);
    assert_eq!(session["stop_reason"], "max_handoffs");
    assert_eq!((&session["messages"], &session["answered"]), (&json!(3), &json!(2)));
    let runs = session["session"].as_array().expect("outcomes");
    let said: Vec<&Value> = runs.iter().map(|run| &run["history"][0]["message"]).collect();
    assert_eq!(said, ["My invoice is wrong.", "And the one of May?", "Thank you."]);
    assert_eq!(runs[1]["trace"][0]["agent"], "billing");
    assert_eq!((&runs[1]["message"], &runs[1]["after"]), (&json!(2), &runs[0]["run_id"]));
    assert_eq!(runs[2]["after"], runs[1]["run_id"]);
    let sum: u64 = runs.iter().filter_map(|run| run["usage"]["calls"].as_u64()).sum();
    assert_eq!(session["usage"]["calls"], sum);
    assert_eq!(session["degraded"], false);
    let told: Vec<&str> = ended.err.lines().collect();
    assert_eq!(
        told,
        [
            "roundtable: message 1 of 3, front starts: My invoice is wrong.",
            ODD,
            "roundtable: message 2 of 3, billing starts: And the one of May?",
            "roundtable: message 3 of 3, billing starts: Thank you.",
        ]
    );
}

#[test]
fn command_line_replaces_scenario_messages() {
    let ended = run(&desk(), &["--message", "Hello\u{1b}[2J", "--message", "", "--format", "json"]);
    assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("--message: the text is empty"), "{}", ended.err);

    let args = [
        "--message",
        "Hello\u{1b}[2J",
        "--message",
        "and bye",
        "--set",
        "agents.desk.max_handoffs=9",
    ];
    let ended = run(&desk(), &args);
    let session = ended.json();
    assert_eq!(session["messages"], 2);
    assert_eq!(session["session"][0]["history"][0]["message"], "Hello\u{1b}[2J");
    assert_eq!(session["session"][1]["history"][0]["message"], "and bye");
    assert!(ended.err.contains("message 1 of 2, front starts: Hello␛[2J\n"), "{}", ended.err);
    // It is a headless run, as with --format: no terminal is asked for.
    assert!(!ended.err.contains("terminal"), "{}", ended.err);
}

#[test]
fn pattern_without_messages_refuses_them() {
    for (name, pattern) in
        [("checkout-launch", "collaboration"), ("morning-report", "orchestrator")]
    {
        let ended = Home::new().run(&["run", name, "--instant", "--message", "Go."]);
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
        let says =
            format!("--message: the pattern {pattern} takes no messages\n  help: team and swarm");
        assert!(ended.err.contains(&says), "{}", ended.err);
    }
}

#[test]
fn jsonl_has_logs_then_session() {
    let ended = run(&desk(), &["--format", "jsonl"]);
    let mut lines = ended.lines();
    let session = lines.pop().expect("a session");
    assert_eq!(reasons(&session).len(), 3);
    assert_eq!((&session["v"], &session["kind"]), (&json!(2), &json!("session")));
    let mut logs: Vec<Vec<Value>> = Vec::new();
    for line in lines {
        if line["kind"] == "run.started" {
            logs.push(Vec::new());
        }
        logs.last_mut().expect("a log begins with its head").push(line);
    }
    assert_eq!(logs.len(), 3);
    for (log, run) in logs.iter().zip(session["session"].as_array().expect("outcomes")) {
        for (place, event) in log.iter().enumerate() {
            assert_eq!(event["seq"], place as u64);
            assert_eq!(event["run"], run["run_id"], "each line says of which run it is");
        }
        let closed = log.last().expect("an end");
        assert_eq!((&closed["kind"], &closed["in_flight"]), (&json!("run.closed"), &json!(0)));
    }
}

const MUTE: &str = r#"title = "Mute"
pattern = "team"
goal = "Go."
[team]
root = "lead"
[agents.lead]
description = "Leads"
members = ["one", "desk"]
tools = ["look"]
[agents.one]
description = "Has nothing to say"
[agents.desk]
description = "A swarm"
members = ["front"]
entry = "front"
[agents.front]
description = "Nor has this one"
[tools.look]
description = "Looks"
fixture = { rows = [{ result = { found = 1 } }] }
[[script]]
agent = "lead"
message = 1
round = 1
calls = [{ tool = "one", args = { request = "Say." } }, { tool = "desk", args = { request = "Say." } }, { tool = "look" }]
[[script]]
agent = "lead"
message = 1
text = "Done."
"#;

#[test]
fn reports_failed_member_once() {
    let home = Home::new();
    home.write("desk.toml", MUTE);
    let ended = run(&home, &["--format", "text"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = told(&ended);
    let failed: Vec<&str> =
        told.iter().filter(|line| line.contains("✗ failed")).map(|line| &**line).collect();
    // Who was at work in the swarm is another than the swarm itself.
    assert_eq!(
        failed,
        [
            "  ✗ failed       one  error: script_missing:one",
            "  ✗ failed       front  not scripted: front after 1 attempt: the script has no reply for front (message 1, \
             turn 1, round 1): add a matching [[script]] row",
            "  ✗ failed       desk  error: script_missing:front",
        ],
        "{}",
        ended.out
    );
}

#[test]
fn answer_notes_missing_member() {
    let home = Home::new();
    let skipping = MUTE.replacen(
        "members = [\"one\", \"desk\"]",
        "members = [\"one\", \"desk\"]\nmember_tools = { skip_summarization = true }",
        1,
    );
    let speaks = "[[script]]\nagent = \"front\"\ntext = \"The desk says so.\"\n";
    home.write("desk.toml", &format!("{skipping}{speaks}"));
    let ended = run(&home, &["--format", "text"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = told(&ended);
    let note = "  ! note         one  the answer lacks it: error: script_missing:one";
    assert!(told.iter().any(|line| line.trim_end() == note), "{}", ended.out);
    assert!(
        told.iter().any(|line| line.starts_with("✓ DONE") && line.contains("degraded")),
        "{}",
        ended.out
    );
    let ended = run(&home, &["--format", "json", "--fail-on", "degraded"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let missing = serde_json::json!([{ "of": "one", "text": "error: script_missing:one" }]);
    assert_eq!(ended.json()["missing"], missing);
    assert_eq!(ended.json()["answer"], "The desk says so.");
}

#[test]
fn lists_agents_apart_from_tools() {
    let home = Home::new();
    home.write("desk.toml", MUTE);
    let ended = run(&home, &["--format", "text"]);
    let rows = |head: &str| -> Vec<Vec<String>> {
        let table = ended.out.lines().skip_while(|line| !line.starts_with(head)).skip(1);
        let row = |line: &str| line.split_whitespace().take(3).map(str::to_owned).collect();
        table
            .take_while(|line| !line.is_empty() && !line.starts_with("p50, p95: "))
            .map(row)
            .collect()
    };
    let agents = [["lead", "1", "2"], ["one", "1", "1"], ["desk", "1", "0"], ["front", "1", "1"]];
    assert_eq!(rows("agent "), agents, "{}", ended.out);
    assert_eq!(rows("tool "), [["llm", "4", "4"], ["look", "1", "1"]], "{}", ended.out);
}

#[test]
fn failed_model_call_gives_stop_reason() {
    let home = Home::new();
    home.write("desk.toml", MUTE);
    let asked = ["--format", "json", "--message", "Go.", "--message", "And now?"];
    let ended = run(&home, &asked);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let session: Value = serde_json::from_str(&ended.out).expect("JSON");
    // The members of the first message failed too, but it was answered.
    assert_eq!(session["session"][0]["error"], Value::Null, "{session}");
    assert_eq!(session["session"][0].get("error"), None, "{session}");
    let stopped = &session["session"][1];
    assert_eq!(stopped["stop_reason"], "script_missing:lead", "{session}");
    let error = stopped["error"].as_str().expect("an error");
    assert!(error.contains("[[script]]"), "{error}");
    let said: Vec<&str> = ended.err.lines().filter(|line| line.contains(error)).collect();
    assert_eq!(said, [format!("roundtable: {error}")], "{}", ended.err);
}

/// The text without the times at which things happened, and without the names of runs.
fn told(ended: &Ended) -> Vec<String> {
    let line = |line: &str| {
        let text = line.split_once("  ").filter(|(at, _)| at.contains(':'));
        text.map_or(line, |(_, text)| text).trim_end().to_owned()
    };
    ended.out.lines().map(line).collect()
}

#[test]
fn text_shows_speakers_and_handoffs() {
    let ended = run(&desk(), &["--format", "text"]);
    let told = told(&ended);
    let expected = [
        "  › message      you  My invoice is wrong.",
        "  · says         front  I pass you on.",
        "  → handoff      front  to billing: The invoice is wrong.",
        "  · says         billing  The invoice of April was wrong; it is mended.",
        "✓ DONE  by billing  1 handoff, 4 calls",
        "The invoice of April was wrong; it is mended.",
        "  › message      you  And the one of May?",
        "  · says         billing  One moment.",
        "  ⊘ refused      billing  transfer_to_agent: error",
        "  → handoff      billing  to front",
        "  · says         front  Back again.",
        "  ⊘ refused      front  handoff to billing: max handoffs exceeded: 1",
        "session  2 of 3 messages answered",
    ];
    let mut from = 0;
    for line in expected {
        let found = told[from..].iter().position(|told| told.starts_with(line));
        from += found.unwrap_or_else(|| panic!("no {line:?} in\n{}", ended.out)) + 1;
    }
    assert!(!ended.out.contains("says         front  \n"), "calls alone say nothing");
    let ascii = run(&desk(), &["--format", "text", "--ascii"]);
    assert!(ascii.out.is_ascii(), "{}", ascii.out);
}

#[test]
fn text_respects_member_visibility() {
    let lines = |inner: &str| {
        let home = Home::new();
        let hidden = TEAM.replace("stream_inner = true", "stream_inner = false");
        let team = if inner == "hidden" { hidden } else { TEAM.to_owned() };
        let inner = if inner == "hidden" { "include" } else { inner };
        home.write("desk.toml", &team.replace("INNER", inner));
        let ended = run(&home, &["--format", "text"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines = told(&ended);
        let inner = lines.iter().filter(|line| line.len() > 17 && line.starts_with("  "));
        inner.cloned().collect::<Vec<_>>()
    };
    let asks = "  → calls        pm  devs: Build.";
    let lawyer = "  → calls        pm  lawyer: May we?";
    let built = "  ✓ answered     devs  Built.";
    let said = "  · says         pm  It is built.";
    let code = "  → calls          devs  coder: Code.";
    let all = lines("include");
    assert!(all[3].starts_with("  ⊘ refused      pm  lawyer: "), "{all:#?}");
    let refused = all[3].clone();
    let message = "  › message      you  Build it.";
    assert_eq!(lines("hidden"), [message, asks, lawyer, &refused, built, said]);
    let coded = "  ✓ answered       coder";
    assert_eq!(lines("exclude"), [message, asks, lawyer, &refused, code, coded, built, said]);
    assert_eq!(
        all,
        [
            message,
            asks,
            lawyer,
            &refused,
            "  · says           devs  I ask the coder.",
            code,
            "  ✓ answered       coder  let it = ␛[2Jbe",
            "  · says           devs  Built.",
            built,
            said,
        ]
    );
}

#[test]
fn every_run_pauses_at_same_boundaries() {
    let at = "ask:1:desk/billing.1";
    let ended = run(&desk(), &["--format", "jsonl", "--pause-at", &format!("{at}=1ms")]);
    let lines = ended.lines();
    let paused = lines.iter().filter(|line| line["kind"] == "paused");
    // billing begins the second run and the third, since it owns the last reply; in the first the
    // handoff to it is the place.
    assert_eq!(paused.map(|line| &line["boundaries"]).collect::<Vec<_>>(), [&json!([at]); 2]);
    for (at, says) in [
        ("ask:1:nobody", "no such agent: \"nobody\"; use billing, desk, front"),
        ("handoff:1:desk/nobody.1", "no such agent: \"nobody\"; use billing, desk, front"),
        ("ask:1", "is not a boundary: use round:2"),
        ("ask:1:desk", "never reached here; use ask:1:desk/front.1, handoff:1:AGENT"),
        ("ask:1:front", "never reached here"),
        ("handoff:1:front/billing", "never reached here"),
        ("round:1", "never reached here; use ask:1:desk/front.1"),
        ("ask:1:desk/front", "front has no turn number, the first is front.1"),
        ("ask:1:desk/front.0", "front.0 has no turn number, the first is front.1"),
        ("ask:1:desk/front.01", "front.01 has no turn number, the first is front.1"),
        ("ask:1:desk/front.x", "front.x has no turn number, the first is front.1"),
        ("ask:1:desk/desk.1", "desk is not a member of desk"),
        ("ask:1:desk/front.1/billing.1", "billing is not a member of front"),
        ("ask:18:desk/front.1", "max_tool_rounds of front is 16"),
        ("handoff:1:desk", "desk is not a member of desk"),
        ("handoff:1:desk/billing", "in desk it is handoff:1:billing"),
        ("handoff:2:billing", "max_handoffs of desk is 1"),
    ] {
        let ended = run(&desk(), &["--pause-at", at]);
        assert_eq!(ended.code, Some(2), "{at}: {ended:?}");
        assert!(ended.err.contains(says), "{at}: {}", ended.err);
    }
    for at in ["ask:9:desk/billing.2", "ask:17:desk/front.1", "handoff:1:billing"] {
        let ended = run(&desk(), &["--message", "Hello.", "--pause-at", &format!("{at}=1ms")]);
        assert_eq!(ended.code, Some(0), "{at}: {ended:?}");
    }
}

#[test]
fn boundary_path_follows_team_members() {
    let home = Home::new();
    home.write("desk.toml", &TEAM.replace("INNER", "include"));
    let there = "use ask:1:pm, ask:1:pm/devs.1";
    for (at, says) in [
        ("ask:1:pm/coder.1", "coder is not a member of pm"),
        ("ask:1:pm/devs.1/writer.1", "writer is not a member of devs"),
        ("ask:1:devs/coder.1", "a path begins with pm"),
        ("ask:1:pm.1/writer.1", "a path begins with pm"),
        ("handoff:1:writer", "pm is not a swarm, it has no handoffs"),
        ("handoff:1:pm/devs.1/coder", "devs is not a swarm, it has no handoffs"),
    ] {
        let ended = run(&home, &["--pause-at", at]);
        assert_eq!(ended.code, Some(2), "{at}: {ended:?}");
        assert!(ended.err.contains(&format!("{says}; {there}\n")), "{at}: {}", ended.err);
    }
    // A swarm within a team: its handoffs are called by its place.
    let (head, _) = TEAM.split_once("[[script]]").expect("a script");
    let swarm = "members = [\"coder\"]\nentry = \"coder\"\n";
    let within = head.replace("members = [\"coder\"]\n", swarm).replace("INNER", "include");
    home.write("desk.toml", &format!("{within}[[script]]\ntext = \"Done.\"\n"));
    for (at, says) in [
        ("handoff:1:coder", "pm is not a swarm, it has no handoffs"),
        ("handoff:1:pm/devs/coder", "devs has no turn number, the first is devs.1"),
        ("handoff:1:pm/devs.1/pm", "pm is not a member of devs"),
        ("ask:1:pm/devs.1", "never reached here; use ask:1:pm, handoff:1:pm/devs.1/AGENT"),
    ] {
        let ended = run(&home, &["--pause-at", at]);
        assert_eq!(ended.code, Some(2), "{at}: {ended:?}");
        assert!(ended.err.contains(says), "{at}: {}", ended.err);
    }
    // A model agent that is no member yet may join.
    for at in ["handoff:1:pm/devs.1/writer", "ask:1:pm/devs.1/coder.2"] {
        let ended = run(&home, &["--pause-at", &format!("{at}=1ms")]);
        assert_eq!(ended.code, Some(0), "{at}: {ended:?}");
    }
}

#[test]
fn closed_reader_ends_session() {
    let home = desk();
    let args =
        ["run", "desk.toml", "--instant", "--format", "jsonl", "--pause-at", "ask:1:desk/front.1"];
    let mut running = Running::start(home.command(&args).stdin(Stdio::piped()));
    let stdin = running.stdin();
    running.until("paused");
    running.close_out();
    drop(stdin);
    let (status, _, err) = running.end();
    assert_eq!(status.code(), Some(141), "{err}");
    assert!(!err.contains("message 2"), "{err}");
}

#[cfg(unix)]
#[test]
fn interrupt_writes_finished_answers() {
    let home = desk();
    let args =
        ["run", "desk.toml", "--instant", "--format", "jsonl", "--pause-at", "ask:1:desk/front.1"];
    let mut running = Running::start(home.command(&args).stdin(Stdio::piped()));
    let stdin = running.stdin();
    running.until("paused");
    running.signal("INT");
    let (status, out, err) = running.end();
    assert_eq!(status.code(), Some(130), "{err}");
    let last = out.lines().last().expect("a session");
    let session: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(reasons(&session), ["cancelled"]);
    assert_eq!((&session["messages"], &session["answered"]), (&json!(3), &json!(0)));
    assert!(err.contains("cancelled after message 1 of 3"), "{err}");
    drop(stdin);
}

#[cfg(unix)]
#[test]
fn exit_code_prefers_interrupt() {
    let home = desk();
    let at = "ask:1:desk/billing.1";
    let args = ["run", "desk.toml", "--instant", "--format", "jsonl", "--pause-at", at];
    let mut running = Running::start(home.command(&args).stdin(Stdio::piped()));
    let mut stdin = running.stdin();
    running.until("paused");
    stdin.write_all(b"\n").expect("a line");
    running.until("paused");
    running.signal("INT");
    let (status, out, err) = running.end();
    let last = out.lines().last().expect("a session");
    let session: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(reasons(&session), ["success", "max_handoffs", "cancelled"]);
    assert_eq!(status.code(), Some(130), "{err}");
    drop(stdin);
}
