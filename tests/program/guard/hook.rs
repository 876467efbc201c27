//! The tool hook: frameworks ask before a tool is executed. Without an approval nothing has an effect, whoever is gone.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Vendor, of_kind};
use crate::support::binary::{Ended, Running, end};
use crate::support::senders::python_of;

const HOOKED: &str = include_str!("../../senders/hooked.py");

/// Each framework with the environment that has it.
const STACKS: [(&str, &str); 8] = [
    ("openai_agents", "openai-agents"),
    ("langgraph", "langgraph"),
    ("pydantic_ai", "pydantic-ai"),
    ("crewai", "crewai"),
    ("adk", "adk"),
    ("smolagents", "guard"),
    ("agno", "guard"),
    ("mcp", "openai-agents"),
];

/// Those on which people decide in the tests: coroutines, threads, and both.
const DECIDED: [(&str, &str); 3] = [
    ("openai_agents", "openai-agents"),
    ("langgraph", "langgraph"),
    ("pydantic_ai", "pydantic-ai"),
];

struct Desk {
    vendor: Vendor,
    python: PathBuf,
    stack: &'static str,
}

impl Desk {
    /// `None`: the tests have no such environment.
    fn of((stack, environment): (&'static str, &str)) -> Option<Self> {
        let python = python_of(environment)?;
        let vendor = Vendor::of("hooked.py", HOOKED);
        Some(Self { vendor, python, stack })
    }

    fn command(&self, options: &[&str], more: &[&str]) -> Command {
        let python = self.python.to_string_lossy();
        let program = ["--", &python, "hooked.py", self.stack];
        let mut command = self.vendor.home.command(&[&["guard"], options, &program, more].concat());
        command.current_dir(self.vendor.home.path()).envs(self.vendor.variables());
        command.env("NO_TRACING", "1");
        command
    }

    fn guard(&self, options: &[&str]) -> Ended {
        end(&mut self.command(options, &[]))
    }

    /// A guarded program whose tools need an approval of a person, when its tool asks: run and question.
    fn asks(&self, more: &[&str]) -> (Running, String, Value) {
        self.vendor.home.write("rules.toml", "[[approve]]\ntool = \"ref*\"\ndo = \"ask\"\n");
        let options = ["--rules", "rules.toml", "--people", "wait", "--format", "jsonl"];
        let mut running = Running::start(&mut self.command(&options, more));
        let asked = running.until("question.asked");
        let run = asked["run"].as_str().expect("a run").to_owned();
        (running, run, asked)
    }

    /// What its tool has paid since the last call of this.
    fn paid(&self) -> String {
        self.taken("paid")
    }

    fn taken(&self, name: &str) -> String {
        let file = self.vendor.home.path().join(name);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        text
    }

    /// The lines of a file, once it has so many.
    fn waits_for(&self, name: &str, lines: usize) -> String {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(30) {
            let file = self.vendor.home.path().join(name);
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if text.matches('\n').count() >= lines {
                return self.taken(name);
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        panic!("{name} has not so many lines");
    }
}

/// Each framework: the tool is one span with its call, and the output stays; and nothing is executed about which nobody
/// answers.
#[test]
fn tools_of_frameworks_ask_first() {
    for stack in STACKS {
        let Some(desk) = Desk::of(stack) else { continue };
        let stack = desk.stack;
        let went = desk.guard(&[]);
        assert!(went.out.contains("paid 20 for ch_1"), "{stack}: {went:?}");
        assert_eq!(desk.paid(), "ch_1 20\n", "{stack}");
        let log = desk.vendor.log();
        let calls = of_kind(&log, "call.started");
        let calls: Vec<_> = calls.iter().filter(|call| call["tool"] == "refund").collect();
        let [call] = &calls[..] else { panic!("{stack}: {calls:?}") };
        assert_eq!(call["args"], json!({ "charge": "ch_1", "usd": 20 }), "{stack}");
        let shown = desk.vendor.home.run(&["show", "last"]).json();
        assert_eq!(shown["tool_calls"][0]["calls"], 1, "{stack}: {shown}");
        assert_eq!(shown["tool_calls"].as_array().map(Vec::len), Some(1), "{stack}: {shown}");

        desk.vendor.home.write("rules.toml", "[[approve]]\ntool = \"refund\"\ndo = \"ask\"\n");
        let denied = desk.guard(&["--rules", "rules.toml"]);
        assert_eq!(desk.paid(), "", "{stack}: {denied:?}");
        assert!(denied.out.contains("did not answer"), "{stack}: {denied:?}");
        assert_eq!(of_kind(&desk.vendor.log(), "question.answered").len(), 1, "{stack}");
    }
}

/// What a person decides: other arguments, a result in place of the tool's, a denial with a reason.
#[test]
fn people_decide_about_tools() {
    for stack in DECIDED {
        let Some(desk) = Desk::of(stack) else { continue };
        desk.vendor.home.write("other.json", r#"{ "charge": "ch_1", "usd": 5 }"#);
        desk.vendor
            .home
            .write("typed.json", r#"{ "charge": "ch_1", "usd": 20, "result": "typed" }"#);
        for (words, paid, said) in [
            (&["--approve"][..], "ch_1 20\n", "paid 20 for ch_1"),
            (&["--args", "other.json"], "ch_1 5\n", "paid 5 for ch_1"),
            (&["--args", "typed.json"], "", "typed"),
            (&["--deny", "not today"], "", "not today"),
        ] {
            let (running, run, asked) = desk.asks(&[]);
            assert_eq!(desk.paid(), "", "{} {words:?}: before the answer", desk.stack);
            let id = asked["id"].as_str().expect("an id");
            let answered = desk.vendor.home.run(&[&["answer", &*run, id], words].concat());
            assert_eq!(answered.code, Some(0), "{answered:?}");
            let (_, _, err) = running.end();
            assert!(err.contains(said), "{} {words:?}: {err}", desk.stack);
            assert_eq!(desk.paid(), paid, "{} {words:?}", desk.stack);
        }
    }
}

/// An approval is for one call; what a rule denies is executed never.
#[test]
fn approvals_are_for_one_call() {
    let Some(desk) = Desk::of(("alone", "langgraph")) else { return };
    let (mut running, run, mut asked) = desk.asks(&["20", "20"]);
    for is_last in [false, true] {
        let id = asked["id"].as_str().expect("an id").to_owned();
        let answered = desk.vendor.home.run(&["answer", &run, &id, "--approve"]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
        if !is_last {
            asked = running.until("question.asked");
            assert_eq!(desk.paid(), "ch_1 20\n");
        }
    }
    running.end();
    assert_eq!(desk.paid(), "ch_1 20\n");
    let rules = "[[approve]]\ntool = \"refund\"\ndo = \"deny\"\nwhen = \"args.usd > 10\"\n";
    desk.vendor.home.write("rules.toml", rules);
    end(&mut desk.command(&["--rules", "rules.toml"], &["20", "5"]));
    assert_eq!(desk.paid(), "ch_1 5\n");
    assert!(desk.taken("result").contains("a rule of this run does not allow this call"));
}

/// The program is killed while its tool waits: the question is withdrawn, and an answer is too late.
#[test]
fn killed_programs_withdraw_their_questions() {
    let Some(desk) = Desk::of(("alone", "langgraph")) else { return };
    let (mut running, run, asked) = desk.asks(&[]);
    let killed = Command::new("kill").args(["-KILL", desk.taken("pid").trim()]).status();
    assert!(killed.expect("kill").success());
    assert_eq!(running.until("question.withdrawn")["id"], asked["id"]);
    running.until("run.closed");
    let late = desk.vendor.home.run(&["answer", &run, "q1", "--approve"]);
    assert_ne!(late.code, Some(0), "{late:?}");
    running.end();
    assert_eq!(desk.paid(), "");
}

/// Roundtable is killed: before the decision no tool is executed, and neither is a later one; what is executed already
/// goes on. Without rules about tools, they go on.
#[test]
fn tools_wait_for_nobody_gone() {
    let Some(desk) = Desk::of(("alone", "langgraph")) else { return };
    let gone = "roundtable is gone, so nobody can allow this tool\n";
    let (mut running, ..) = desk.asks(&["20", "30"]);
    running.kill();
    assert_eq!(desk.waits_for("result", 2), gone.repeat(2));
    assert_eq!(desk.paid(), "");

    let (mut running, run, _) = desk.asks(&["20", "30", "waits"]);
    assert_eq!(desk.vendor.home.run(&["answer", &run, "q1", "--approve"]).code, Some(0));
    assert_eq!(desk.waits_for("paid", 1), "ch_1 20\n");
    running.kill();
    desk.vendor.home.write("go", "");
    let both = desk.waits_for("result", 2);
    assert_eq!(both, format!("paid 20 for ch_1\n{gone}"));
    assert_eq!(desk.paid(), "", "it is not executed twice");
    let _ = desk.taken("go");

    let mut command = desk.command(&["--format", "jsonl"], &["20", "30", "waits"]);
    let mut running = Running::start(command.stdin(Stdio::null()));
    assert_eq!(desk.waits_for("paid", 1), "ch_1 20\n");
    running.kill();
    desk.vendor.home.write("go", "");
    let both = desk.waits_for("result", 2);
    assert_eq!(both, "paid 20 for ch_1\npaid 30 for ch_1\n");
    assert_eq!(desk.paid(), "ch_1 30\n");
}

/// Faults and limits of a tool, by the rules; and rules about tools need the hook.
#[test]
fn rules_protect_tools() {
    let Some(desk) = Desk::of(("alone", "langgraph")) else { return };
    let rules = "[tools.\"ref*\"]\nfaults = [{ kind = \"errors\", percent = 100, status = 503 }]\n\
                 breaker = { fail_threshold = 2, open_for_s = 60 }\n";
    desk.vendor.home.write("rules.toml", rules);
    let ended = end(&mut desk.command(&["--rules", "rules.toml"], &["20", "30", "40"]));
    assert_eq!(desk.paid(), "", "{ended:?}");
    let log = desk.vendor.log();
    let failed = of_kind(&log, "attempt.failed").len();
    assert_eq!((failed, of_kind(&log, "attempt.refused").len()), (2, 1), "{ended:?}");
    desk.vendor.home.write("rules.toml", "[tools.refund]\napprove = true\n");
    let refused = desk.guard(&["--rules", "rules.toml", "--no-tap"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}
