//! Faults of a scenario, the real binary: how `validate` and `run` read it, the messages before a run
//! starts, and those about a run that the scenario could not support.

use std::io::Write as _;
use std::process::Stdio;

use crate::support::binary::{Ended, Home, Running, end};
use serde_json::Value;

/// Two seats, of which the second has what `rows` gives it.
fn table(rows: &str) -> String {
    format!(
        "title = \"T\"\npattern = \"collaboration\"\ngoal = \"g\"\n\
         collaboration = {{ sequence = [\"ann\", \"bob\"], finalize_prompt = \"f\" }}\n\
         roles.ann.prompt = \"a\"\nroles.bob.prompt = \"b\"\n\
         flags.late = {{}}\n\
         [[script]]\nrole = \"ann\"\n{GO}{rows}\
         [[script]]\nstep = \"finalize\"\ntext = \"Done.\"\n"
    )
}

const GO: &str =
    "reply = { stance = \"go\", summary = \"s\", confidence = 0.9, actions = [\"a\"] }\n";

fn bob(rest: &str) -> String {
    format!("[[script]]\nrole = \"bob\"\n{rest}{GO}")
}

fn home(name: &str, text: &str) -> Home {
    let home = Home::new();
    home.write(name, text);
    home
}

fn given(home: &Home, args: &[&str], text: &str) -> Ended {
    let mut running = Running::start(home.command(args).stdin(Stdio::piped()));
    // It reads no more of a file that is too long.
    let _ = running.stdin().write_all(text.as_bytes());
    let (status, out, err) = running.end();
    Ended { code: status.code(), out, err }
}

#[test]
fn a_scenario_comes_on_standard_input() {
    let (home, good) = (Home::new(), table(&bob("")));
    let checked = given(&home, &["validate", "-"], &good);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert_eq!(checked.out, "✓ stdin: collaboration, 2 roles, 0 inputs, 1 flag, 3 script rows\n");
    let wrong = given(&home, &["validate", "-"], "title = 3\n");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("--> stdin:1:9"), "{}", wrong.err);
    let twice = given(&home, &["validate", "-", "-"], &good);
    assert!(twice.err.contains("standard input can be read only once"), "{twice:?}");
    let ran = given(&home, &["run", "-", "--instant"], &good);
    assert_eq!((ran.code, ran.json()["status"].as_str()), (Some(0), Some("ok")), "{ran:?}");
    let long = given(&home, &["run", "-"], &"# ".repeat(600_000));
    assert_eq!(long.code, Some(2), "{long:?}");
    assert!(
        long.err.contains("stdin is too large for a scenario: more than 1048576 bytes"),
        "{}",
        long.err
    );
}

#[test]
fn validates_folder_file_by_file() {
    let home = home("mine/b.toml", &table(&bob("")));
    home.write("mine/a.toml", "title = \n");
    home.write("mine/notes.txt", "no scenario");
    home.write("empty/notes.txt", "no scenario");
    let found = home.run(&["validate", "mine"]);
    assert_eq!(found.code, Some(2), "{found:?}");
    assert!(found.out.starts_with("✓ mine/b.toml: collaboration"), "{}", found.out);
    assert!(found.err.contains("--> mine/a.toml:1:9"), "{}", found.err);
    assert!(found.err.ends_with("1 of 2 scenarios cannot be run\n"), "{}", found.err);
    let empty = home.run(&["validate", "empty"]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert!(empty.err.contains("no .toml file in empty"), "{}", empty.err);
}

#[test]
fn validates_overrides_and_flags() {
    let home = home("t.toml", &table(&bob("")));
    for (args, code, says) in [
        (&["--set", "budget.max_rounds=2", "--flag", "late=on@round:2"][..], 0, ""),
        (&["--set", "budget.max_rounds=0"], 2, "0 is out of range"),
        (&["--set", "budget.max_rounds"], 2, "`=` is missing"),
        (
            &["--flag", "early=on"],
            2,
            "t.toml: --flag early: no such flag\n  help: the scenario has: late\n",
        ),
        (&["--flag", "late=on@round:9"], 2, "round:9: never reached: budget.max_rounds is 3"),
        (&["--flag", "late=maybe"], 2, "NAME=on"),
    ] {
        let ended = home.run(&[&["validate", "t.toml"], args].concat());
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(ended.err.contains(says), "{args:?} does not say {says}:\n{}", ended.err);
        assert_eq!(ended.out.is_empty(), code != 0, "{args:?}: {}", ended.out);
    }
}

#[test]
fn missing_first_reply_prevents_start() {
    let lacks = |text: &str, says: &str| {
        let home = home("t.toml", text);
        let ended = home.run(&["run", "t.toml", "--instant"]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.err.contains(&format!("error: {says}")), "no {says} in\n{}", ended.err);
        // It is none the worse for a live run, and so good.
        let checked = home.run(&["validate", "t.toml"]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert!(checked.err.contains(&format!("warning: {says}")), "{}", checked.err);
    };
    lacks(&table(""), "`bob` has no scripted reply for offline runs");
    let team = "title = \"T\"\npattern = \"team\"\ngoal = \"g\"\nteam.root = \"pm\"\n\
                agents.pm = { description = \"P\", members = [\"dev\"] }\n\
                agents.dev = { description = \"D\" }\n";
    lacks(team, "`pm` has no scripted reply for offline runs");
    let plan = include_str!("../../scenarios/morning-report.toml");
    let plan = plan.replace("step    = \"plan\"", "step    = \"finalize\"");
    lacks(&plan, "there is no scripted plan for offline runs");
}

#[test]
fn missing_later_reply_names_agent() {
    for (rows, reason, says) in [
        (bob("round = 2\n"), "script_missing:bob", "no reply for bob in round 1"),
        (bob("when = \"goal == 'x'\"\n"), "script_missing:bob", "no reply for bob in round 1"),
        // Only the end shows that it is needed.
        (bob("") + "#", "script_missing:finalize", "finalize"),
    ] {
        let text = table(&rows);
        let text = match rows.ends_with('#') {
            true => text.replace("#[[script]]\nstep = \"finalize\"\ntext = \"Done.\"\n", ""),
            false => text,
        };
        let ended = home("t.toml", &text).run(&["run", "t.toml", "--instant"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let outcome = ended.json();
        assert_eq!(outcome["stop_reason"], reason, "{outcome}");
        let error = outcome["error"].as_str().expect("what was missing");
        assert!(error.contains(says) && error.contains("[[script]]"), "{error}");
        assert!(ended.err.contains(error), "{}", ended.err);
        // One attempt: the script says no more when it is asked again.
        assert!(!ended.out.contains("circuit_open"), "{outcome}");
    }
}

#[test]
fn warns_once_and_ends_with_error() {
    let odd = table(&bob("")).replace("flags.late", "budget.min_go_votes = 3\nflags.late");
    let odd = home("odd.toml", &odd);
    for format in ["json", "jsonl", "text"] {
        let ended = odd.run(&["run", "odd.toml", "--instant", "--format", format]);
        let said: Vec<&str> =
            ended.err.lines().filter(|line| line.contains("min_go_votes")).collect();
        let [line] = said[..] else { panic!("{format}: {said:?}") };
        assert!(line.starts_with("roundtable: odd.toml:7:"), "{format}: {line}");
        assert_eq!(ended.out.contains("min_go_votes:"), format == "jsonl", "{}", ended.out);
    }
    let broken = table("").replace("title = \"T\"", "title = 3");
    let ended = home("b.toml", &broken).run(&["validate", "b.toml"]);
    let heads: Vec<&str> = ended
        .err
        .lines()
        .filter(|line| line.starts_with("warning: ") || line.starts_with("error: "))
        .collect();
    assert_eq!(
        heads,
        [
            "warning: `bob` has no scripted reply for offline runs",
            "error: expected a string, found the number 3"
        ],
        "{}",
        ended.err
    );
}

#[test]
fn a_live_run_needs_no_script() {
    let text =
        table("").replace("roles.ann", "model.base_url = \"http://127.0.0.1:1/v1\"\nroles.ann");
    let home = home("t.toml", &text);
    let ended = home.run(&["run", "t.toml", "--live", "--trust", "--format", "jsonl"]);
    assert_eq!(ended.code, Some(6), "it was tried: {ended:?}");
    assert!(!ended.err.contains("offline") && !ended.out.contains("offline"), "{ended:?}");
    let broken = text.replace("title = \"T\"", "title = 3");
    home.write("b.toml", &broken);
    let ended = home.run(&["run", "b.toml", "--live"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(!ended.err.contains("offline"), "{}", ended.err);
}

#[test]
fn unreached_boundary_is_reported_at_end() {
    let home = home("t.toml", &table(&bob("")));
    let args = ["run", "t.toml", "--instant", "--format", "jsonl"];
    let named = ["--flag", "late=on@round:2", "--pause-at", "message:3:ann=1ms"];
    let ended = home.run(&[&args[..], &named].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines = ended.lines();
    let closed = lines.iter().position(|line| line["kind"] == "run.closed").expect("closed");
    let warned: Vec<&Value> =
        lines[..closed].iter().filter(|line| line["kind"] == "warning").collect();
    let texts: Vec<&str> = warned.iter().filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(
        texts,
        [
            "round:2 was never reached: the flag late was not switched on",
            "message:3:ann was never reached: the run did not pause there"
        ]
    );
    for text in texts {
        assert!(ended.err.contains(&format!("roundtable: warning: {text}\n")), "{}", ended.err);
    }
    // What came is not told of.
    let came = home.run(&[&args[..], &["--flag", "late=on@round:1"]].concat());
    assert!(came.lines().iter().any(|line| line["kind"] == "flag.changed"), "{came:?}");
    assert_eq!(came.err, "");
}

#[test]
fn refuses_unreachable_boundary() {
    let home = home("t.toml", &table(&bob("")));
    for (scenario, at, says) in [
        ("t.toml", "round:4", "budget.max_rounds is 3"),
        ("morning-report", "dispatch:3:t1", "a task has at most 2 attempts"),
        ("support-swarm", "ask:1:support/refunds.9", "cross_request_transfer"),
        ("ping-pong", "ask:1:help_desk/accounts.1", "a handoff comes before accounts's first call"),
    ] {
        let ended = home.run(&["run", scenario, "--instant", "--pause-at", at]);
        if says == "cross_request_transfer" {
            // The member that owned the last reply starts the next message.
            let refused = format!("{at}: never reached");
            assert!(!ended.err.contains(&refused), "{at}: {ended:?}");
            continue;
        }
        assert_eq!(ended.code, Some(2), "{at}: {ended:?}");
        assert!(ended.err.contains(says), "{at}: {}", ended.err);
    }
    let few = ["--set", "budget.max_messages=2", "--pause-at", "round:2"];
    let ended = end(&mut home.command(&[&["run", "t.toml", "--instant"], &few[..]].concat()));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("budget.max_messages is 2"), "{}", ended.err);
}

#[test]
fn text_fallback_becomes_member_reply() {
    let agents = "[agents.a]\ndescription = \"A\"\n[agents.b]\ndescription = \"B\"\n\
                  [tools.llm]\nretries.max_attempts = 1\n[tools.b]\n\
                  safe_mode = { fallback = \"We will call {{whom}} back.\\nTomorrow.\" }\n\
                  [inputs]\nwhom = { value = \"you\" }\n\
                  [[script]]\nagent = \"b\"\nfault = { kind = \"reset\", times = 9 }\ntext = \"x\"\n";
    let text = "We will call you back.\nTomorrow.";
    let swarm = format!(
        "title = \"T\"\npattern = \"swarm\"\ngoal = \"g\"\nswarm.root = \"s\"\n\
         [agents.s]\ndescription = \"S\"\nmembers = [\"a\", \"b\"]\nentry = \"a\"\n{agents}\
         [[script]]\nagent = \"a\"\n\
         calls = [{{ tool = \"transfer_to_agent\", args = {{ agent_name = \"b\" }} }}]\n"
    );
    let ended = home("t.toml", &swarm).run(&["run", "t.toml", "--instant"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let outcome = ended.json();
    assert_eq!((&outcome["answer"], &outcome["degraded"]), (&text.into(), &true.into()));
    // A coordinator receives it unchanged.
    let team = format!(
        "title = \"T\"\npattern = \"team\"\ngoal = \"g\"\nteam.root = \"pm\"\n\
         [agents.pm]\ndescription = \"P\"\nmembers = [\"a\", \"b\"]\n{agents}\
         [[script]]\nagent = \"pm\"\nround = 1\n\
         calls = [{{ tool = \"b\", args = {{ request = \"When?\" }} }}]\n\
         [[script]]\nagent = \"pm\"\nwhen = '''results[0].text == {text:?}'''\ntext = \"Told.\"\n\
         [[script]]\nagent = \"a\"\ntext = \"x\"\n"
    );
    let ended = home("t.toml", &team).run(&["run", "t.toml", "--instant"]);
    assert_eq!(ended.json()["answer"], "Told.", "{ended:?}");
}

#[test]
fn run_without_domains_finds_no_source() {
    for list in ["allowed_domains_policy", "allowed_domains_execution"] {
        let set = format!("research.{list}=[]");
        let ended = Home::new().run(&["run", "payments-incident", "--instant", "--set", &set]);
        assert_eq!(ended.code, Some(1), "{list}: {ended:?}");
        assert_eq!(ended.json()["stop_reason"], "no_reliable_sources", "{list}");
        assert!(ended.err.contains("every source will be denied"), "{}", ended.err);
    }
}

#[test]
fn scripted_texts_have_results_of_workers() {
    let text = r#"
title = "T"
pattern = "orchestrator"
goal = "g"
[orchestrator]
plan_prompt = "p"
finalize_prompt = "f"
[orchestrator.sections]
stock = "stock_worker"
[orchestrator.level]
name = "health"
otherwise = "green"
[workers.stock_worker]
description = "Items"
args = { item = "which" }
[[workers.stock_worker.fixture.rows]]
result = { items = 7, of = [{ name = "lamp" }] }
[[script]]
step = "plan"
reply = { kind = "plan", tasks = [{ id = "t1", worker = "stock_worker", args = { item = "a" }, critical = true }] }
[[script]]
step = "finalize"
text = "{{results.t1.items}} of {{results.t1.of.0.name}}, {{aggregate.stock.items}}; \\{{x}}; {{results.t2.items}}."
"#;
    let ended = home("t.toml", text).run(&["run", "t.toml", "--instant", "--format", "jsonl"]);
    let lines = ended.lines();
    let last = lines.last().expect("an outcome");
    assert_eq!(last["answer"], "7 of lamp, 7; {{x}}; .", "{ended:?}");
    let failed = lines.iter().find(|line| line["kind"] == "condition.failed").expect("an event");
    assert_eq!(failed["text"], "`results.t2.items` has no value", "{failed}");
    assert_eq!(failed["place"], "script[1].text", "{failed}");
    let more = text.replace("{{results.t2.items}}", "{{results.t2.items}}, {{results.t3.a}}");
    let home = home("t.toml", &format!("{more}[[expect]]\nthat = \"true\"\n"));
    let tested = home.run(&["test", "t.toml"]);
    for path in ["results.t2.items", "results.t3.a"] {
        let line = format!("script[1].text: `{path}` has no value; it is left out");
        assert!(tested.out.contains(&line), "{tested:?}");
    }
    let wrong = text.replace("{{results.t2.items}}", "{{flags.none}}");
    home.write("w.toml", &wrong);
    let told = home.run(&["validate", "w.toml"]);
    assert!(told.err.contains("flag") && told.code != Some(0), "{told:?}");
}

#[test]
fn a_script_sees_a_refused_handoff() {
    let transfer = |to: &str| {
        format!("calls = [{{ tool = \"transfer_to_agent\", args = {{ agent_name = \"{to}\" }} }}]")
    };
    let text = format!(
        "title = \"T\"\npattern = \"swarm\"\ngoal = \"g\"\nswarm.root = \"s\"\n\
         [agents.s]\ndescription = \"S\"\nmembers = [\"a\", \"b\"]\nentry = \"a\"\nmax_handoffs = 1\n\
         [agents.a]\ndescription = \"A\"\n[agents.b]\ndescription = \"B\"\n\
         [[script]]\nwhen = \"refused\"\ntext = \"{{{{agent}}}} answers alone.\"\n\
         [[script]]\nagent = \"a\"\n{}\n[[script]]\nagent = \"b\"\n{}\n",
        transfer("b"),
        transfer("a")
    );
    let ended = home("t.toml", &text).run(&["run", "t.toml", "--instant"]);
    assert_eq!(ended.json()["answer"], "b answers alone.", "{ended:?}");
}
