//! Runs whose tools are those of real MCP servers, in each pattern that has tools. The real binary.
#![cfg(unix)]

use std::path::PathBuf;

use serde_json::Value;

use crate::support::binary::{Home, end};
use crate::support::mcp::sdk_python;
use crate::support::runners::RunnerTeam;

/// The end of a scenario whose server is that of the shop.
fn shop(more: &str) -> Option<String> {
    let python = sdk_python()?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/senders/mcp_shop.py");
    Some(format!(
        "[mcp.shop]\ncommand = {{ program = {:?}, args = [{script:?}] }}\n{more}\n",
        python.display().to_string()
    ))
}

/// A folder of the servers from npm.
fn npm() -> Option<PathBuf> {
    sdk_python()?;
    let folder = std::env::var_os("ROUNDTABLE_MCP").map(PathBuf::from)?;
    Some(folder.join("npm/node_modules/.bin"))
}

/// Plays a scenario that is allowed, and returns its outcome.
fn outcome(home: &Home, text: &str) -> Value {
    home.write("mine.toml", text);
    let ended = home.run(&["run", "mine.toml", "--trust", "--format", "json"]);
    assert!(ended.code.is_some(), "{ended:?}");
    assert!(ended.out.starts_with('{'), "{ended:?}");
    ended.json()
}

const TEAM: &str = r#"
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
tools = ["shop.*"]
[[script]]
agent = "desk"
round = 1
calls = [{ tool = "clerk", args = { request = "Go." } }]
[[script]]
agent = "desk"
text = "{{results.0.text}}"
[[script]]
agent = "clerk"
round = 1
calls = [{ tool = "shop.order", args = { sku = "a", pieces = PIECES } }]
[[script]]
agent = "clerk"
text = "{{results.0.text}}"
"#;

const SWARM: &str = r#"
title = "T"
pattern = "swarm"
goal = "G"
[swarm]
root = "desk"
[agents.desk]
description = "D"
members = ["clerk", "other"]
entry = "clerk"
[agents.clerk]
description = "C"
tools = ["shop.order"]
[agents.other]
description = "O"
[[script]]
agent = "clerk"
round = 1
calls = [{ tool = "shop.order", args = { sku = "a", pieces = 2 } }]
[[script]]
agent = "clerk"
text = "{{results.0.text}}"
[[script]]
agent = "other"
text = "x"
"#;

const ROUTER: &str = r#"
title = "T"
pattern = "router"
goal = "G"
[router]
fallback = "clerk"
prompt = "P"
[router.routes.clerk]
[agents.clerk]
description = "C"
tools = ["shop.order"]
[[script]]
step = "classify"
reply = { route = "clerk", confidence = 0.9, reason = "r" }
[[script]]
agent = "clerk"
round = 1
calls = [{ tool = "shop.order", args = { sku = "a", pieces = 2 } }]
[[script]]
agent = "clerk"
text = "{{results.0.text}}"
"#;

const ORCHESTRATOR: &str = r#"
title = "T"
pattern = "orchestrator"
goal = "G"
[orchestrator]
plan_prompt = "P"
finalize_prompt = "F"
[orchestrator.sections]
stock = "stock"
[orchestrator.level]
name = "health"
otherwise = "green"
[workers.stock]
description = "Stock of a product"
args = { sku = "The product" }
mcp = { server = "shop", tool = "get_stock" }
[[script]]
step = "plan"
reply = { kind = "plan", tasks = [{ id = "t1", worker = "stock", args = { sku = "a" }, critical = true }] }
[[script]]
step = "finalize"
text = "Done."
"#;

const RESILIENCE: &str = r#"
title = "T"
pattern = "resilience"
goal = "G"
[resilience]
agents = 2
turns = 2
pool = 2
steps = ["stock"]
[tools.stock]
mcp = { server = "shop", tool = "get_stock" }
"#;

const RESEARCH: &str = r#"
title = "T"
pattern = "research"
goal = "G"
[research]
question = "What is the price?"
allowed_domains_policy = ["a.example"]
allowed_domains_execution = ["a.example"]
plan = "rule"
notes = "rule"
answer = "rule"
[tools.search_sources]
mcp = { server = "shop", tool = "search" }
[tools.read_source]
mcp = { server = "shop", tool = "read" }
"#;

#[test]
fn every_pattern_calls_servers() {
    let allow = "allow = [\"*\"]";
    let Some(shop) = shop(allow) else { return };
    let home = Home::new();
    let good = TEAM.replace("PIECES", "2");
    for (text, pointer, expected) in [
        (good.as_str(), "/answer", Value::from("ordered 2 of a")),
        (SWARM, "/answer", Value::from("ordered 2 of a")),
        (ROUTER, "/answer", Value::from("ordered 2 of a")),
        (ORCHESTRATOR, "/aggregate/stock/pieces", Value::from(7)),
        (RESILIENCE, "/stop_reason", Value::from("success")),
    ] {
        let outcome = outcome(&home, &format!("{text}{shop}"));
        let found = outcome.pointer(pointer);
        assert_eq!(found, Some(&expected), "{outcome:#}");
        let servers = outcome["tools"].as_array().expect("tools").iter();
        let failed: u64 = servers.filter_map(|tool| tool["failed"].as_u64()).sum();
        assert_eq!(failed, 0, "{outcome:#}");
    }
    let outcome = outcome(&home, &format!("{RESEARCH}{shop}"));
    let text = outcome.to_string();
    assert!(text.contains("a.example/price") && text.contains("12 EUR"), "{outcome:#}");
}

/// What a tool reports is read by the model, and counts for no breaker.
#[test]
fn tool_errors_reach_the_model() {
    let Some(shop) = shop("allow = [\"*\"]") else { return };
    let home = Home::new();
    let outcome = outcome(&home, &format!("{}{shop}", TEAM.replace("PIECES", "9")));
    let answer = outcome["answer"].as_str().expect("a text");
    assert!(answer.contains("only 7 pieces are in stock"), "{answer}");
}

/// Without permission no server starts, and the command is shown whole.
#[test]
fn foreign_server_needs_permission_first() {
    let Some(shop) = shop("allow = [\"order\"]") else { return };
    let home = Home::new();
    home.write("mine.toml", &format!("{}{shop}", TEAM.replace("PIECES", "2")));
    for args in [&["run", "mine.toml", "--headless"][..], &["tools", "mine.toml"]] {
        let refused = home.run(args);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for said in [
            "start the MCP server shop: ",
            "mcp_shop.py",
            "call these tools of it without asking: order",
            "--trust",
        ] {
            assert!(refused.err.contains(said), "no {said:?} in\n{}", refused.err);
        }
    }
    let doctor = home.run(&["doctor", "mine.toml"]);
    assert!(doctor.out.contains("not started: the scenario is not allowed yet"), "{doctor:?}");
}

/// What `tools` and `doctor` say before and after a run has seen the tools, and after one has changed.
#[test]
fn tools_are_listed_with_their_state() {
    let Some(shop) = shop("") else { return };
    let home = Home::new();
    home.write("mine.toml", &format!("{}{shop}", TEAM.replace("PIECES", "2")));
    let listed = home.run(&["tools", "mine.toml", "--trust"]);
    assert!(listed.out.starts_with("shop: 4 tools\n"), "{listed:?}");
    assert!(listed.out.contains("  order             new"), "{}", listed.out);
    assert!(listed.out.contains("  get_stock  reads  new"), "{}", listed.out);
    let ended = home.run(&["run", "mine.toml", "--headless", "--format", "text"]);
    assert!(
        ended.out.contains("operator did not answer; fallback: the call is denied"),
        "{ended:?}"
    );
    let listed = home.run(&["tools", "mine.toml", "--json"]).json();
    assert_eq!(listed[0]["state"], "asks", "{listed:#}");
    assert_eq!(listed[0]["model_name"], "shop__get_stock");
    let seen = home.path().join("config/roundtable/tools.json");
    let text = std::fs::read_to_string(&seen).expect("what was seen");
    let pinned = text.replace("\"pin\": \"", "\"pin\": \"0");
    std::fs::write(&seen, &pinned).expect("written");
    let doctor = home.run(&["doctor", "mine.toml"]);
    assert!(doctor.out.contains("4 tools; changed since they were seen"), "{doctor:?}");
    let ended = home.run(&["run", "mine.toml", "--headless", "--format", "text"]);
    assert!(ended.out.contains("4 left out"), "a changed tool is not used: {ended:?}");
    // A change is said, also where the file allows the calls, and accepted by name.
    let variable = shop.replace("args = [", "env = { STAGE = \"test\" }, args = [");
    let allowing = format!("{}{variable}allow = [\"*\"]\n", TEAM.replace("PIECES", "2"));
    home.write("allowing.toml", &allowing);
    let other = home.run(&["tools", "allowing.toml", "--trust", "--json"]);
    assert_eq!(
        other.json()[0]["state"],
        "changed",
        "another variable is no other server: {other:?}"
    );
    std::fs::write(&seen, &pinned).expect("written");
    let shown = home.run(&["tools", "mine.toml"]);
    assert!(shown.out.contains("changed") && shown.out.contains("the next run asks"), "{shown:?}");
    let accepted = home.run(&["tools", "mine.toml", "--trust"]);
    assert!(accepted.out.contains("accepted: the next run uses it"), "{accepted:?}");
    assert_eq!(home.run(&["tools", "mine.toml", "--json"]).json()[0]["state"], "asks");
}

/// The servers of another client become a scenario that runs.
#[test]
fn servers_of_clients_become_a_scenario() {
    let Some(python) = sdk_python() else { return };
    let home = Home::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/senders/mcp_shop.py");
    let client = serde_json::json!({ "mcpServers": { "my.shop": {
        "command": python, "args": [script], "env": { "SHOP_TOKEN": "hunter2" },
    } } });
    home.write(".cursor/mcp.json", &client.to_string());
    let doctor = home.run(&["doctor"]);
    assert!(doctor.out.contains("my_shop") && doctor.out.contains("new --mcp"), "{}", doctor.out);
    let written = home.run(&["new", "--mcp", ".cursor/mcp.json", "mine.toml"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    let text = std::fs::read_to_string(home.path().join("mine.toml")).expect("a scenario");
    assert!(!text.contains("hunter2") && text.contains("SHOP_TOKEN"), "{text}");
    let mut command = home.command(&["run", "mine.toml", "--trust", "--format", "json"]);
    let ended = end(command.env("SHOP_TOKEN", "hunter2"));
    assert_eq!(ended.json()["stop_reason"], "success", "{ended:?}");
}

/// The example of the documents, with a server from npm that comes from the configuration.
#[test]
fn documented_example_runs() {
    let Some(npm) = npm() else { return };
    let home = Home::new();
    let page = include_str!("../../docs/mcp.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    home.write("notes.toml", example.expect("an example"));
    home.write("notes/price-list.md", "Blue widgets: 12 EUR.\n");
    let path = format!("{}:{}", npm.display(), std::env::var("PATH").expect("a path"));
    for args in [&["tools", "notes.toml", "--trust"][..], &["test", "notes.toml"]] {
        let ended = end(home.command(args).env("PATH", &path));
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let configured = example.map(|text| {
        let line = text.lines().find(|line| line.starts_with("command = ")).expect("a command");
        (text.replace(line, ""), line.to_owned())
    });
    let (scenario, command) = configured.expect("an example");
    home.write("configured.toml", &scenario);
    let missing = end(home.command(&["test", "configured.toml", "--trust"]).env("PATH", &path));
    assert!(missing.err.contains("has no MCP server files"), "{missing:?}");
    home.write("config/roundtable/config.toml", &format!("[mcp.files]\n{command}\n"));
    let ended = end(home.command(&["test", "configured.toml", "--trust"]).env("PATH", &path));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// A server that dies, says too much or leaves processes behind fails the call, and nothing else: the run
/// goes on, the breaker counts, and no process is left.
#[test]
fn misbehaving_server_fails_one_call() {
    let Some(python) = sdk_python() else { return };
    let home = Home::new();
    let fake = include_str!("../support/mcp_fake.py");
    // Its own copy, so that its processes are known by their arguments.
    home.write("fake.py", fake);
    let script = home.path().join("fake.py").display().to_string();
    let calls = [
        ("die", "it was"),
        ("echo", "{"),
        ("huge", "larger than 4 MiB"),
        ("pid", ""),
        ("die", "it was"),
        ("die", "takes no calls for now"),
        ("echo", "{"),
    ];
    let rounds = calls.iter().enumerate().map(|(nth, (tool, _))| {
        let round = nth + 1;
        format!(
            "[[script]]\nagent = \"clerk\"\nround = {round}\ncalls = [{{ tool = \"{tool}\", \
             args = {{ mib = 100, n = {round} }} }}]\n"
        )
    });
    let tools = ["die", "echo", "huge", "pid"].iter().map(|tool| {
        format!(
            "[tools.{tool}]\ndescription = \"T\"\nmcp = {{ server = \"shop\", tool = \"{tool}\" }}\n\
             approve = false\nbreaker = {{ fail_threshold = 2 }}\n"
        )
    });
    let texts: Vec<String> =
        (0..calls.len()).map(|nth| format!("{{{{results.{nth}.text}}}}")).collect();
    let scenario = format!(
        "title = \"T\"\npattern = \"swarm\"\ngoal = \"G\"\n[swarm]\nroot = \"desk\"\n\
         [mcp.shop]\ncommand = {{ program = {:?}, args = [{script:?}, \"plain\"], env = {{ TOKEN = \"hush\" }} }}\n\
         max_bytes = 4194304\n{}\
         [agents.desk]\ndescription = \"D\"\nmembers = [\"clerk\", \"other\"]\nentry = \"clerk\"\n\
         [agents.clerk]\ndescription = \"C\"\ntools = [\"die\", \"echo\", \"huge\", \"pid\"]\n\
         [agents.other]\ndescription = \"O\"\n{}\
         [[script]]\nagent = \"clerk\"\ntext = \"{}\"\n",
        python.display().to_string(),
        tools.collect::<String>(),
        rounds.collect::<String>(),
        texts.join(" | ")
    );
    let outcome = outcome(&home, &scenario);
    assert_eq!(outcome["stop_reason"], "success", "{outcome:#}");
    let answer = outcome["answer"].as_str().expect("a text");
    let said: Vec<&str> = answer.split(" | ").collect();
    assert_eq!(said.len(), calls.len(), "{answer}");
    for (said, (tool, expected)) in said.iter().zip(calls) {
        assert!(said.contains(expected), "{tool}: {said}");
    }
    let left = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter(|process| {
        let args = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&args).contains(&script)
    });
    assert_eq!(left.count(), 0, "processes are left");
}

/// A runner starts servers only where its command line allows it.
#[test]
fn runners_start_servers_if_allowed() {
    let Some(shop) = shop("allow = [\"*\"]") else { return };
    let Some(team) = RunnerTeam::start() else { return };
    let text = format!("{}{shop}", TEAM.replace("PIECES", "2"));
    team.home.write("mine.toml", &text);
    let mut refusing = team.runner("a", None);
    let followed = team.follow(&["mine.toml", "--trust", "--format", "json"]);
    let why = refusing.until("does not play");
    assert!(why.contains("start programs") && why.contains("--allow"), "{why}");
    let _allowing = team.runner_with("b", None, |command| {
        command.args(["--allow", "command"]);
    });
    let (status, out, err) = followed.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(out.contains("ordered 2 of a"), "{out}");
}
