//! Coding agents over ACP in each pattern that has agents. The agent is made with the official Python SDK.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use crate::support::binary::{Ended, Home, Running};
use crate::support::runners::RunnerTeam;

/// The interpreter with the official SDK; `None`: the tests have none.
fn sdk_python() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("ROUNDTABLE_ACP") else {
        println!("SKIPPED: ROUNDTABLE_ACP does not say where the SDK is");
        return None;
    };
    let python = PathBuf::from(folder).join("py/bin/python");
    assert!(python.exists(), "there is no {}", python.display());
    Some(python)
}

/// `[agents.NAME]` with the program of the tests. `more`: further keys of `acp`.
fn coder(name: &str, more: &str) -> Option<String> {
    let python = sdk_python()?.display().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/senders/acp_coder.py");
    Some(format!(
        "[agents.{name}]\ndescription = \"Writes code\"\n[agents.{name}.acp]\n\
         command = {{ program = {python:?}, args = [{script:?}, \"--load\"] }}\n{more}\n"
    ))
}

fn swarm(goal: &str, members: &str, more: &str) -> String {
    format!(
        "title = \"T\"\npattern = \"swarm\"\ngoal = \"{goal}\"\n[budget]\nmax_seconds = 120\n\
         [swarm]\nroot = \"desk\"\n[agents.desk]\ndescription = \"D\"\nmembers = [{members}]\n\
         entry = \"coder\"\n[[script]]\nagent = \"coder\"\ntext = \"Scripted.\"\n{more}\n"
    )
}

fn run_live(home: &Home, text: &str, args: &[&str]) -> Ended {
    home.write("mine.toml", text);
    let all = [&["run", "mine.toml", "--live", "--trust"], args].concat();
    home.run(&all)
}

fn outcome(home: &Home, text: &str, args: &[&str]) -> Value {
    let ended = run_live(home, text, &[args, &["--format", "json"]].concat());
    assert!(ended.out.starts_with('{'), "{ended:?}");
    ended.json()
}

/// The address of a model that always says the same. It ends with the test's process.
pub fn fixed_model(reply: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let message = json!({ "role": "assistant", "content": reply });
    let choices = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    let body = json!({ "object": "chat.completion", "choices": choices, "usage": usage });
    let body = body.to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let lower = line.to_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                line.clear();
            }
            let mut request = vec![0; length];
            reader.read_exact(&mut request).expect("a body");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            let whole = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let _ = reader.into_inner().write_all(whole.as_bytes());
        }
    });
    format!("http://{address}/v1")
}

/// A router whose only route is this agent, and whose classifier is a model at an address.
pub fn router(agent: &str, table: &str) -> String {
    let model =
        fixed_model(&format!("{{\"route\": \"{agent}\", \"confidence\": 0.9, \"reason\": \"r\"}}"));
    format!(
        "title = \"T\"\npattern = \"router\"\ngoal = \"G\"\n[budget]\nmax_seconds = 120\n\
         [model]\nname = \"local\"\nbase_url = \"{model}\"\nstream = false\n[router]\n\
         fallback = \"{agent}\"\nprompt = \"P\"\n[router.routes.{agent}]\n{table}"
    )
}

const TABLE: &str = r#"
title = "T"
pattern = "collaboration"
goal = "Decide."
[budget]
max_rounds = 2
max_seconds = 120
[collaboration]
sequence = ["author", "reviewer"]
finalize_prompt = "Write the brief."
finalize_agent = "coder"
[[collaboration.decide]]
when = "round == 2"
decision = "go"
[roles.author]
prompt = "You wrote it."
agent = "coder"
[roles.reviewer]
prompt = "You are cautious."
agent = "coder"
[[script]]
text = "{}"
"#;

#[test]
fn every_pattern_asks_agents() {
    let Some(coder) = coder("coder", "") else { return };
    let home = Home::new();
    let team = "title = \"T\"\npattern = \"team\"\ngoal = \"G\"\n[team]\nroot = \"coder\"\n\
        [agents.helper]\ndescription = \"H\"\nacp = HELPER\n";
    let acp = coder.split("command = ").nth(1).expect("a command").lines().next().expect("a line");
    let team = format!(
        "{}{}",
        team.replace("HELPER", &format!("{{ command = {acp} }}")),
        coder.replace("description", "members = [\"helper\"]\ndescription")
    );
    let router = router("coder", &coder);
    let swarm = swarm("Go.", "\"coder\"", &coder);
    for text in [&swarm, &team, &router] {
        let outcome = outcome(&home, text, &[]);
        assert_eq!(outcome["answer"], "Done with prompt 1.", "{outcome:#}");
        let tools = outcome["tools"].as_array().expect("tools").iter();
        let calls: Vec<_> = tools.map(|it| (it["tool"].as_str(), it["calls"].as_u64())).collect();
        assert!(calls.contains(&(Some("coder.acp"), Some(1))), "{calls:?}");
    }
    let table = outcome(&home, &format!("{TABLE}{coder}"), &[]);
    assert_eq!(table["final_decision"], "go", "{table:#}");
    let history = table["history"].as_array().expect("rounds");
    let said = |round: usize, seat: usize| &history[round]["contributions"][seat];
    // A seat has a session of its own, which lasts for the run.
    assert_eq!(said(0, 0)["summary"], "Prompt 1 of my session.");
    assert_eq!(said(1, 1)["summary"], "Prompt 2 of my session.");
    assert_eq!((&said(0, 0)["stance"], &said(0, 1)["stance"]), (&json!("go"), &json!("caution")));
}

#[test]
fn scripted_runs_start_no_agent() {
    let text = swarm(
        "G",
        "\"coder\"",
        "[agents.coder]\ndescription = \"C\"\n[agents.coder.acp]\n\
        command = { program = \"/nonexistent/agent\", env = { KEY = { env = \"NO_SUCH_KEY\" } } }",
    );
    let home = Home::new();
    home.write("mine.toml", &text);
    let ended = home.run(&["run", "mine.toml", "--format", "json"]);
    assert_eq!(ended.json()["answer"], "Scripted.", "{ended:?}");
    let ended = run_live(&home, &text, &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("KEY comes from $NO_SUCH_KEY, which is not set"), "{ended:?}");
}

#[test]
fn dead_agent_says_why() {
    let text = swarm(
        "G",
        "\"coder\"",
        "[agents.coder]\ndescription = \"C\"\n[agents.coder.acp]\n\
        command = { program = \"sh\", args = [\"-c\", \"echo no login found >&2; exit 3\"] }\n\
        [tools.coder.breaker]\nfail_threshold = 1",
    );
    let events = run_live(&Home::new(), &text, &["--format", "jsonl"]).lines();
    let outcome = events.last().expect("an outcome");
    assert_eq!(outcome["stop_reason"], "tool_error:coder.acp:tool", "{outcome:#}");
    let said = outcome["error"].as_str().expect("an error");
    assert!(said.contains("ended with exit code 3: no login found"), "{said}");
    let mut changes = events.iter().filter(|it| it["kind"] == "breaker.changed");
    let opened = changes.next().expect("its breaker opens");
    assert_eq!((&opened["tool"], &opened["to"]), (&json!("coder.acp"), &json!("open")));
}

#[test]
fn agents_hand_over_by_text() {
    let (Some(coder), Some(other)) = (coder("coder", ""), coder("other", "")) else { return };
    let text = swarm("do:handoff=other", "\"coder\", \"other\"", &format!("{coder}{other}"));
    let outcome = outcome(&Home::new(), &text, &[]);
    assert_eq!(outcome["final_agent"], "other", "{outcome:#}");
    assert_eq!(outcome["handoffs"][0]["message"], "Please decide.", "{outcome:#}");
}

#[test]
fn permission_is_a_question() {
    let Some(coder) = coder("coder", "") else { return };
    let home = Home::new();
    let text = swarm("do:edit", "\"coder\"", &coder);
    let denied = outcome(&home, &text, &["--people", "nobody"]);
    assert_eq!(denied["answer"], "permission: no. Done with prompt 1.", "{denied:#}");
    home.write("mine.toml", &text);
    let args = ["run", "mine.toml", "--live", "--trust", "--people", "ask", "--format", "jsonl"];
    let mut run = Running::start(home.command(&args).stdin(Stdio::piped()));
    let asked = run.until("question.asked");
    assert_eq!((&asked["about"], &asked["by"]), (&json!("permission"), &json!("coder")), "{asked}");
    let text = asked["text"].as_str().expect("a text");
    let diff = "\n- fn retry() {}\n+ fn retry() { wait() }";
    assert!(text.starts_with("Edit retry.rs (edit)\n") && text.contains(diff), "{text}");
    assert_eq!(asked["choices"], json!(["Allow", "Always allow", "Reject"]));
    let mut stdin = run.stdin();
    stdin.write_all(b"{\"id\":\"q1\",\"choice\":\"Always allow\"}\n").expect("written");
    let answer = run.until("answer.composed");
    assert_eq!(answer["text"], "permission: always. Done with prompt 1.", "{answer}");
}

#[test]
fn steps_plan_and_cost_are_shown() {
    let Some(coder) = coder("coder", "mode = \"plan\"\ncost = \"reported\"\nallow = [\"edit\"]")
    else {
        return;
    };
    let home = Home::new();
    let goal = "do:plan do:read do:edit do:cost do:mode";
    let limited =
        swarm(goal, "\"coder\"", &coder).replace("[budget]", "[budget]\nmax_cost_usd = 1");
    let ended = run_live(&home, &limited, &["--format", "jsonl"]);
    let lines = ended.lines();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let steps: Vec<_> =
        of("agent.step").iter().map(|it| (it["title"].clone(), it["state"].clone())).collect();
    assert_eq!(
        steps,
        [(json!("Read retry.rs"), json!("started")), (json!("Read retry.rs"), json!("done"))]
    );
    let progress = of("attempt.progressed");
    assert_eq!(
        (&progress[0]["text"], &progress[0]["total"]),
        (&json!("Write the fix"), &json!(3.0))
    );
    let reply = of("attempt.answered")[0];
    // What it said before its last step is no part of its answer.
    assert_eq!(reply["text"], "permission: yes. mode: plan. Done with prompt 1.");
    assert_eq!((&reply["cost_usd"], &reply["usage"]["prompt_tokens"]), (&json!(0.01), &json!(100)));
    // A turn without a cost stops a run whose cost is limited.
    let silent = limited.replace("do:cost ", "");
    let outcome = outcome(&home, &silent, &[]);
    assert_eq!(outcome["stop_reason"], "max_cost_budget", "{outcome:#}");
    let unknown = limited.replace("cost = \"reported\"", "");
    let ended = run_live(&home, &unknown, &[]);
    assert!(
        ended.code == Some(2) && ended.err.contains("the cost of `coder` is not known"),
        "{ended:?}"
    );
}

#[test]
fn capabilities_are_offered_only_if_said() {
    let home = Home::new();
    let work = home.path().join("work");
    std::fs::create_dir(&work).expect("a folder");
    let cwd = format!("cwd = {:?}", work.display().to_string());
    let allow = "allow = [\"edit\", \"execute\"]";
    let with = format!("{cwd}\nfiles = \"write\"\nterminal = true\n{allow}");
    for (more, expected) in [
        (with.as_str(), "file says two. terminal says hi and 3. Done with prompt 1."),
        (cwd.as_str(), "this client does not offer that"),
    ] {
        let Some(coder) = coder("coder", more) else { return };
        let outcome = outcome(&home, &swarm("do:files do:terminal", "\"coder\"", &coder), &[]);
        let answer = outcome["answer"].as_str().expect("an answer");
        assert!(answer.contains(expected), "{answer}");
    }
    assert_eq!(std::fs::read_to_string(work.join("notes.txt")).expect("written"), "one\ntwo\n");
}

#[test]
fn consent_names_all_an_agent_gets() {
    let more = "cwd = \"work\"\nmcp = [\"files\"]\nallow = [\"read\", \"edit\"]\nfiles = \"read\"\nterminal = true";
    let Some(coder) = coder("coder", more) else { return };
    let coder = coder
        .replace("\"--load\"] }", "\"--load\"], env = { TOKEN = { env = \"CODER_TOKEN\" } } }");
    let server = "[mcp.files]\ncommand = { program = \"server-files\", args = [\"notes\"] }\n";
    let home = Home::new();
    home.write("mine.toml", &swarm("G", "\"coder\"", &format!("{coder}{server}")));
    let ended = home.run(&["run", "mine.toml", "--live"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in [
        "start the agent coder, with your home folder and its login: ",
        "pass $CODER_TOKEN to it as TOKEN",
        "/work\n",
        "let it do this without asking: read, edit",
        "let it read files of its folder",
        "let it run commands in its folder",
        "for it: start the MCP server files: server-files notes",
    ] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    // A scripted run starts none of it.
    let scripted = home.run(&["run", "mine.toml", "--format", "json"]);
    assert!(!scripted.err.contains("start the agent"), "{scripted:?}");
}

#[test]
fn agents_get_servers_of_the_file() {
    let Some(coder) = coder("coder", "mcp = [\"files\"]") else { return };
    let server = "[mcp.files]\ncommand = { program = \"sh\", args = [\"-c\", \"true\"] }\n";
    let outcome =
        outcome(&Home::new(), &swarm("do:servers", "\"coder\"", &format!("{coder}{server}")), &[]);
    assert_eq!(outcome["answer"], "servers: files. Done with prompt 1.", "{outcome:#}");
}

/// What only a coding agent uses is no tool of the run.
#[test]
fn servers_of_agents_are_no_tools() {
    let Some(coder) = coder("coder", "mcp = [\"files\"]") else { return };
    let server = "[mcp.files]\ncommand = { program = \"server-files\" }\n";
    let home = Home::new();
    let table = TABLE.replace("[[script]]\ntext = \"{}\"\n", "");
    home.write("mine.toml", &format!("{table}{coder}{server}"));
    let checked = home.run(&["validate", "mine.toml"]);
    assert!(!checked.out.contains("no tool is of the server"), "{checked:?}");
    let refused = home.run(&["run", "mine.toml", "--live"]).err;
    assert_eq!(refused.matches("start the MCP server files").count(), 1, "{refused}");
    // It needs no script for this.
    let tools = home.run(&["tools", "mine.toml"]);
    assert!(tools.err.contains("has no MCP server"), "{tools:?}");
}

#[test]
fn missing_program_is_said_first() {
    let text = swarm(
        "G",
        "\"coder\"",
        "[agents.coder]\ndescription = \"C\"\n[agents.coder.acp]\n\
        command = { program = \"no-such-agent\", env = { KEY = { env = \"NO_SUCH_KEY\" } } }",
    );
    let home = Home::new();
    let ended = run_live(&home, &text, &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in ["the agent coder: program no-such-agent not found", "KEY comes from $NO_SUCH_KEY"]
    {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    assert_eq!(home.run(&["runs", "--json"]).json(), json!([]), "no run was started");
    let found = home.run(&["doctor", "mine.toml"]);
    assert!(found.out.contains("no-such-agent") && found.out.contains("$NO_SUCH_KEY"), "{found:?}");
}

#[test]
fn permission_names_its_answers() {
    let Some(coder) = coder("coder", "") else { return };
    let home = Home::new();
    home.write("mine.toml", &swarm("do:edit", "\"coder\"", &coder));
    let args = ["run", "mine.toml", "--live", "--trust", "--people", "wait", "--format", "jsonl"];
    let mut run = Running::start(&mut home.command(&args));
    run.until("question.asked");
    let wrong = home.run(&["answer", "last", "q1", "--approve"]);
    assert!(
        wrong.err.contains("choose one of Allow, Always allow, Reject, or deny it"),
        "{wrong:?}"
    );
    let shown = home.run(&["answer", "last"]);
    assert!(shown.out.contains("q1 question: + fn retry() { wait() }"), "line by line: {shown:?}");
    let given = home.run(&["answer", "last", "q1", "--deny"]);
    assert_eq!(given.code, Some(0), "{given:?}");
    let answer = run.until("answer.composed");
    assert_eq!(answer["text"], "permission: no. Done with prompt 1.", "{answer}");
}

/// What was said before the boundary is free, and the turn after it is played by a new process.
#[test]
fn fork_takes_recorded_turns() {
    let (Some(coder), Some(other)) = (coder("coder", ""), coder("other", "")) else { return };
    let home = Home::new();
    let text = swarm("do:handoff=other", "\"coder\", \"other\"", &format!("{coder}{other}"));
    assert_eq!(outcome(&home, &text, &[])["final_agent"], "other");
    let places = home.run(&["fork", "last"]);
    let place = places.out.split_whitespace().find(|it| it.starts_with("handoff:"));
    let place = place.unwrap_or_else(|| panic!("no handoff: {places:?}"));
    let forked = home.run(&["fork", &format!("last@{place}"), "--format", "jsonl"]);
    let lines = forked.lines();
    let cut = lines.iter().position(|line| line["kind"] == "run.forked").expect("a fork");
    let turns = |lines: &[Value]| {
        lines
            .iter()
            .filter(|it| it["kind"] == "attempt.started" && it["timeout_ms"] == 300_000)
            .count()
    };
    // The other agent first hands over to itself, which is refused.
    assert_eq!((turns(&lines[..cut]), turns(&lines[cut..])), (1, 2), "{forked:?}");
    assert_eq!(lines.last().expect("an outcome")["final_agent"], "other");
}

/// A run that is killed in a turn: the turn is in doubt, and what was said before is not said again.
#[test]
fn resumed_run_repeats_no_turn() {
    let (Some(coder), Some(other)) = (coder("coder", ""), coder("other", "")) else { return };
    let home = Home::new();
    let text =
        swarm("do:handoff=other do:edit", "\"coder\", \"other\"", &format!("{coder}{other}"));
    home.write("mine.toml", &text);
    let args = ["run", "mine.toml", "--live", "--trust", "--people", "wait", "--format", "jsonl"];
    let mut run = Running::start(&mut home.command(&args));
    let asked = run.until("question.asked");
    assert_eq!(asked["by"], "coder", "{asked}");
    run.kill();
    let resumed = home.run(&["resume", "last", "--people", "nobody", "--format", "jsonl"]);
    let lines = resumed.lines();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert!(kinds.contains(&"call.in_doubt"), "{resumed:?}");
    let outcome = lines.last().expect("an outcome");
    assert_eq!(outcome["stop_reason"], "in_doubt:coder.acp", "{outcome}");
}

#[test]
fn replayed_run_needs_no_agent() {
    let Some(coder) = coder("coder", "") else { return };
    let home = Home::new();
    let text = swarm("do:read do:edit", "\"coder\"", &coder);
    let first = outcome(&home, &text, &["--people", "nobody"]);
    let replayed =
        home.run(&["run", "mine.toml", "--trust", "--replay", "last", "--format", "json"]);
    let replayed = replayed.json();
    assert_eq!(replayed["answer"], first["answer"], "{replayed:#}");
}

#[test]
fn runners_start_agents_if_allowed() {
    let Some(coder) = coder("coder", "cost = \"reported\"") else { return };
    let Some(team) = RunnerTeam::start() else { return };
    let text =
        swarm("do:cost", "\"coder\"", &coder).replace("[budget]", "[budget]\nmax_cost_usd = 1");
    team.home.write("mine.toml", &text);
    let live = |runner: &str| {
        let allow = runner.to_owned();
        move |command: &mut std::process::Command| {
            command.args(["--allow", &allow]);
        }
    };
    let mut refusing = team.runner_with("a", None, live("live"));
    let followed = team.follow(&["mine.toml", "--live", "--trust", "--format", "json"]);
    let why = refusing.until("does not play");
    assert!(why.contains("start programs") && why.contains("--allow"), "{why}");
    let _allowing = team.runner_with("b", None, live("live,command"));
    let (status, out, err) = followed.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(out.contains("Done with prompt 1."), "{out}");
}
