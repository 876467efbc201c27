//! Client stacks and frameworks of PyPI and npm, alone and guarded.

use serde_json::Value;

use super::Vendor;
use crate::support::binary::Running;
use crate::support::senders::{python_of, sender_of};

pub const STACKS: &str = include_str!("../../senders/guard_stacks.py");

/// A program of others, alone and guarded: it gets the same, its vendor gets the same, and the log has the vendor's own
/// account. `unanswered`: calls that no attempt of the client got an answer to.
fn compare(vendor: &Vendor, program: &[&str], unanswered: u64) {
    let (alone, sent) = (vendor.direct(program), vendor.seen());
    let ended = vendor.guard(&[], program);
    assert_eq!(ended.out, alone, "{program:?}: {}", ended.err);
    let passed = vendor.seen();
    let sorted = |requests: &[Value]| {
        let mut texts: Vec<String> = requests.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    assert_eq!(sorted(&passed), sorted(&sent), "{program:?}");
    let answered = passed.iter().filter(|request| request["ok"] == true).count() as u64;
    let shown = vendor.home.run(&["show", "last"]).json();
    let usage = &shown["usage"];
    let counted =
        ["attempts", "prompt_tokens", "completion_tokens"].map(|name| usage[name].as_u64());
    let expected = [passed.len() as u64, answered * 11, answered * 7].map(Some);
    assert_eq!(counted, expected, "{program:?}: {usage}");
    // A retry is an attempt of the same call. The turns of agents are calls, too, but not of a model.
    let models = shown["model_calls"].as_array().expect("models").iter();
    let calls: u64 = models.filter_map(|row| row["calls"].as_u64()).sum();
    assert_eq!(calls, answered + unanswered, "{program:?}: {shown}");
    let log = format!("{:?}", vendor.log());
    assert!(!log.contains("canary"), "{program:?}: a key is in the log");
}

/// What a person reads of a call beyond a limit, and that the vendor does not get it.
fn is_refused(vendor: &Vendor, program: &[&str]) {
    let program = [program, &["whole", "refused"]].concat();
    let ended = vendor.guard(&["--max-calls", "1"], &program);
    let refused = ended.out.lines().find(|line| line.starts_with("refused "));
    let sentence = "the limit of 1 call is reached: raise --max-calls";
    assert!(refused.is_some_and(|line| line.contains(sentence)), "{program:?}: {ended:?}");
    assert_eq!(vendor.seen().len(), 1, "{program:?}");
}

const ALL: &[&str] = &["whole", "streamed", "parallel", "failing"];

fn stacks_of_python(environment: &str, stacks: &[(&str, &[&str], u64)]) {
    let Some(python) = python_of(environment) else { return };
    let vendor = Vendor::of("guard_stacks.py", STACKS);
    let python = python.to_string_lossy().into_owned();
    for (stack, modes, unanswered) in stacks {
        let program = [&*python, "guard_stacks.py", stack];
        compare(&vendor, &[&program[..], modes].concat(), *unanswered);
        is_refused(&vendor, &program);
    }
}

#[test]
fn clients_of_python_pass_unchanged() {
    let stacks: [(&str, &[&str], u64); 6] = [
        ("openai", ALL, 0),
        ("anthropic", ALL, 0),
        // It does not try again by itself.
        ("google", ALL, 1),
        ("litellm", ALL, 0),
        ("smolagents", ALL, 0),
        ("in_code", &["whole", "failing"], 0),
    ];
    stacks_of_python("guard", &stacks);
}

#[test]
fn langgraph_passes_unchanged() {
    stacks_of_python("langgraph", &[("langgraph", ALL, 0)]);
}

#[test]
fn openai_agents_pass_unchanged() {
    stacks_of_python("openai-agents", &[("openai_agents", ALL, 0)]);
}

#[test]
fn crewai_passes_unchanged() {
    stacks_of_python("crewai", &[("crewai", ALL, 0)]);
}

#[test]
fn pydantic_ai_passes_unchanged() {
    stacks_of_python("pydantic-ai", &[("pydantic_ai", ALL, 0)]);
}

#[test]
fn stacks_of_npm_pass_unchanged() {
    let vendor = Vendor::of("guard_stacks.py", STACKS);
    let Some(command) = sender_of("node", "guard_stacks.mjs", vendor.home.path()) else { return };
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    for stack in ["openai", "ai", "ai_anthropic", "agents"] {
        let program = [&command[..], &[stack]].concat();
        compare(&vendor, &[&program[..], ALL].concat(), 0);
        is_refused(&vendor, &program);
    }
}

/// Each fault, and what a person does with a held call, on three stacks: the client copes as it does with a vendor.
#[test]
fn faults_reach_each_client() {
    let Some(python) = python_of("guard") else { return };
    let vendor = Vendor::of("guard_stacks.py", STACKS);
    let python = python.to_string_lossy().into_owned();
    for stack in ["openai", "anthropic", "smolagents"] {
        for (fault, said) in [
            // The client tries again after it.
            ("kind = \"errors\", percent = 100, status = 529, times = 2", Some("hello whole")),
            ("kind = \"errors\", percent = 100, status = 429, times = 1", Some("hello whole")),
            ("kind = \"latency\", ms = 20", Some("hello whole")),
            ("kind = \"refusal\"", None),
            ("kind = \"empty\"", None),
            ("kind = \"malformed\"", None),
            ("kind = \"reset\"", None),
        ] {
            vendor.home.write("guard.toml", &format!("[models.\"*\"]\nfaults = [{{ {fault} }}]\n"));
            let program = [&*python, "guard_stacks.py", stack, "whole"];
            let ended = vendor.guard(&["--rules", "guard.toml"], &program);
            match said {
                Some(said) => assert!(ended.out.contains(said), "{stack} {fault}: {ended:?}"),
                None => assert!(!ended.out.contains("hello"), "{stack} {fault}: {ended:?}"),
            }
            let log = vendor.log();
            let ends = super::of_kind(&log, "attempt.failed").len();
            let times = match fault {
                _ if fault.contains("times = 2") => 2,
                _ if fault.contains("times = 1") => 1,
                _ => ends,
            };
            assert_eq!(ends, times, "{stack} {fault}");
        }
    }
}

/// A person answers in place of the model, whole and streamed, and refuses a call: what three clients make of it.
#[test]
fn held_calls_reach_each_client() {
    let Some(python) = python_of("guard") else { return };
    let vendor = Vendor::of("guard_stacks.py", STACKS);
    let python = python.to_string_lossy().into_owned();
    vendor.home.write("reply.json", r#"{ "reply": "Forty-two." }"#);
    for stack in ["openai", "anthropic", "smolagents"] {
        let args = [
            "guard",
            "--people",
            "wait",
            "--pause-at",
            "call:1",
            "--format",
            "jsonl",
            "--",
            &python,
            "guard_stacks.py",
            stack,
            "whole",
            "streamed",
            "refused",
        ];
        let mut command = vendor.home.command(&args);
        command.current_dir(vendor.home.path()).envs(vendor.variables());
        let mut running = Running::start(&mut command);
        let run = running.until("run.started")["run"].as_str().expect("an id").to_owned();
        let said = ["--args", "reply.json"];
        for answer in [said, said, ["--deny", "not today"]] {
            let asked = running.until("question.asked");
            let id = asked["id"].as_str().expect("an id");
            let answered = vendor.home.run(&[&["answer", &run, id][..], &answer].concat());
            assert_eq!(answered.code, Some(0), "{stack}: {answered:?}");
        }
        let (_, _, said) = running.end();
        for line in ["whole Forty-two.", "streamed Forty-two."] {
            assert!(said.contains(line), "{stack}: {said}");
        }
        let refused = said.lines().find(|line| line.starts_with("refused "));
        let why = "the operator refused this call: not today";
        assert!(refused.is_some_and(|line| line.contains(why)), "{stack}: {said}");
        assert!(vendor.seen().is_empty(), "{stack}: nothing was sent");
    }
}
