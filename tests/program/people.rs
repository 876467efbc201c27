//! Questions to people, headless: who answers them, exit codes, and runs that are killed while they wait.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::binary::{Home, Running};
use crate::support::people::DESK;

fn desk() -> Home {
    let home = Home::new();
    home.write("desk.toml", DESK);
    home
}

fn start(home: &Home, args: &[&str]) -> Running {
    let args = [args, &["--people", "ask", "--format", "jsonl"]].concat();
    Running::start(home.command(&args).stdin(Stdio::piped()))
}

/// Waits until it prints a line with this on standard error.
fn prints(run: &mut Running, what: &str) -> String {
    loop {
        let line = run.complains();
        assert!(!line.is_empty(), "ended before it printed {what}");
        if line.contains(what) {
            return line;
        }
    }
}

/// The events of one of these kinds in a stored run.
fn stored(home: &Home, kind: &str) -> Vec<Value> {
    let lines = home.run(&["export", "last"]).lines();
    lines.into_iter().filter(|line| line["kind"] == kind).collect()
}

/// Waits until as many events of this kind are stored.
fn wait_until_stored(home: &Home, kind: &str, count: usize) {
    let limit = Instant::now() + Duration::from_secs(60);
    while stored(home, kind).len() < count {
        assert!(Instant::now() < limit, "never stored: {kind}");
    }
}

#[test]
fn lines_of_json_answer_questions() {
    let home = desk();
    let mut run = start(&home, &["run", "desk.toml"]);
    let mut stdin = run.stdin();
    let asked = run.until("question.asked");
    assert_eq!(asked["args"], json!({ "charge": "ch_2", "amount_usd": 149.9 }));
    let printed = prints(&mut run, "q1 for operator");
    assert!(printed.contains("refund charge: ch_2, amount_usd: 149.9"), "{printed}");
    prints(&mut run, r#"q1: approve it or deny it, such as {"id":"q1","approve":true}"#);
    for (line, wrong) in [
        ("yes", "not JSON"),
        (r#"{"id":"q1","approve":true,"digest":"0"}"#, "the digest is not that of q1"),
        (r#"{"id":"q2","approve":true}"#, "q2 is not open"),
        (r#"{"id":"q1","approve":"yes"}"#, "`approve` is not true or false"),
        (r#"{"id":"q1","text":"fine"}"#, "approve it or deny it"),
    ] {
        writeln!(stdin, "{line}").expect("it listens");
        let said = run.complains();
        assert!(said.contains(wrong), "{line}: {said}");
    }
    // Neither a line that is no UTF-8 nor one that is too long ends standard input.
    for line in [b"caf\xe9\n".to_vec(), [vec![b'x'; 3 << 20], b"\n".to_vec()].concat()] {
        stdin.write_all(&line).expect("it listens");
        assert!(run.complains().contains("not JSON"));
    }
    writeln!(stdin, r#"{{"id":"q1","approve":true,"args":{{"charge":"ch_2","amount_usd":99.5}}}}"#)
        .expect("it listens");
    let answered = run.until("question.answered");
    assert_eq!((&answered["by"], answered["name"].is_string()), (&json!("person"), true));
    assert_eq!(run.until("question.asked")["about"], "turn");
    writeln!(stdin, r#"{{"id":"q1","approve":true}}"#).expect("it listens");
    prints(&mut run, "q1 is not open any more: approved with other arguments by ");
    writeln!(stdin, r#"{{"id":"q2","text":"We are."}}"#).expect("it listens");
    let outcome = run.until("outcome");
    assert_eq!(outcome["answer"], "We are.");
    assert_eq!(outcome["questions"]["by_person"], 2);
    assert_eq!(run.end().0.code(), Some(0));
    let calls = stored(&home, "attempt.answered");
    assert!(calls.iter().any(|call| call["result"]["refund"] == "re_31"), "{calls:?}");
}

#[test]
fn run_without_people_exits_with_three() {
    let home = desk();
    let ran = home.run(&["run", "desk.toml", "--people", "nobody", "--format", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!(ran.json()["stop_reason"], "no_answer:manager");
    assert!(ran.out.contains("operator was asked to approve this call and did not answer"));
    assert!(stored(&home, "attempt.started").iter().all(|attempt| attempt["tool"] != "refund"));
}

#[test]
fn end_of_input_answers_nothing() {
    let home = desk();
    let mut run = start(&home, &["run", "desk.toml"]);
    run.until("question.asked");
    drop(run.stdin());
    let outcome = run.until("outcome");
    assert_eq!(outcome["stop_reason"], "no_answer:manager");
    assert_eq!(run.end().0.code(), Some(3));
}

#[test]
fn killed_run_asks_again_until_answered() {
    let home = desk();
    let mut run = start(&home, &["run", "desk.toml"]);
    let asked = run.until("question.asked");
    wait_until_stored(&home, "question.asked", 1);
    run.kill();
    // Killed while the question was open: it is open after, and is the same.
    let mut run = start(&home, &["resume", "last"]);
    let mut stdin = run.stdin();
    prints(&mut run, "q1 for operator");
    writeln!(stdin, r#"{{"id":"q1","approve":true}}"#).expect("it listens");
    let answered = run.until("question.answered");
    assert_eq!(answered["digest"], asked["digest"]);
    wait_until_stored(&home, "question.asked", 2);
    run.kill();
    // Killed after the answer: the call is not asked about or made twice.
    let mut run = start(&home, &["resume", "last"]);
    let mut stdin = run.stdin();
    prints(&mut run, "q2 for manager");
    writeln!(stdin, r#"{{"id":"q2","text":"We are."}}"#).expect("it listens");
    assert_eq!(run.until("outcome")["answer"], "We are.");
    assert_eq!(run.end().0.code(), Some(0));
    assert_eq!(stored(&home, "question.asked").len(), 2);
    assert_eq!(stored(&home, "question.answered").len(), 2);
}

/// A run that waits at its first question, and was killed there.
fn killed_while_asking(home: &Home, people: &str) {
    let args = ["run", "desk.toml", "--people", people, "--format", "jsonl"];
    let mut run = Running::start(home.command(&args).stdin(Stdio::piped()));
    run.until("question.asked");
    wait_until_stored(home, "question.asked", 1);
    run.kill();
}

/// `resume` keeps who answered, and decides for nobody.
#[test]
fn resumed_run_waits_for_its_people() {
    for (people, stdin, says) in [
        (
            "wait",
            false,
            "q1: nobody can answer it here, the run waits for operator: `roundtable answer",
        ),
        ("ask", false, "standard input has ended: questions stay open until their deadline"),
        ("ask", true, r#"q1: approve it or deny it, such as {"id":"q1","approve":true}"#),
    ] {
        let home = desk();
        killed_while_asking(&home, people);
        let mut command = home.command(&["resume", "last", "--format", "jsonl"]);
        if stdin {
            command.stdin(Stdio::piped());
        }
        let mut run = Running::start(&mut command);
        prints(&mut run, says);
        assert!(stored(&home, "question.answered").is_empty(), "{people}");
        if stdin {
            writeln!(run.stdin(), r#"{{"id":"q1","approve":false}}"#).expect("it listens");
        } else {
            let ran = home.run(&["answer", "last", "q1", "--deny", "No."]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        let answered = run.until("question.answered");
        assert_eq!((&answered["by"], &answered["answer"]), (&json!("person"), &json!("deny")));
        run.kill();
    }
}

#[test]
fn explicit_nobody_and_script_are_kept() {
    let home = desk();
    killed_while_asking(&home, "wait");
    let ran = home.run(&["resume", "last", "--people", "nobody", "--format", "json"]);
    assert_eq!((ran.code, &ran.json()["questions"]["unanswered"]), (Some(3), &json!(2)));
    // What the run was started with is in the head of its log; logs of earlier versions do not have it.
    for (args, kept) in [(&[][..], "script"), (&["--people", "nobody"], "nobody")] {
        home.run(&[&["run", "desk.toml"], args].concat());
        assert_eq!(stored(&home, "run.started")[0]["launch"]["answerers"], kept);
    }
}

/// A call that was in flight is asked about where people answer, without an option of `resume`.
#[test]
fn call_in_doubt_waits_for_people() {
    let home = Home::new();
    let fixture = "fixture     = { rows = [{ result = { refund = \"re_31\" } }] }";
    let hangs = "command = { program = \"sleep\", args = [\"600\"] }\ntimeout_s = 900";
    home.write("desk.toml", &DESK.replace(fixture, hangs));
    let args = ["run", "desk.toml", "--trust", "--people", "ask", "--format", "jsonl"];
    let mut run = Running::start(home.command(&args).stdin(Stdio::piped()));
    let mut stdin = run.stdin();
    run.until("question.asked");
    writeln!(stdin, r#"{{"id":"q1","approve":true}}"#).expect("it listens");
    run.until("question.answered");
    run.until("attempt.started");
    wait_until_stored(&home, "attempt.started", 2);
    run.kill();
    let mut run = Running::start(&mut home.command(&["resume", "last", "--format", "jsonl"]));
    prints(&mut run, "q2 for operator: refund was in flight: make it again?");
    assert_eq!(stored(&home, "run.closed").len(), 0);
    let ran = home.run(&["answer", "last", "q2", "--choice", "stop"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(run.until("outcome")["stop_reason"], "in_doubt:refund");
}

/// Answers in a log from elsewhere count only where the person who continues it says so.
#[test]
fn imported_answers_need_consent() {
    let own = desk();
    let mut run = start(&own, &["run", "desk.toml"]);
    let mut stdin = run.stdin();
    run.until("question.asked");
    writeln!(stdin, r#"{{"id":"q1","approve":true}}"#).expect("it listens");
    run.until("question.asked");
    wait_until_stored(&own, "question.asked", 2);
    run.kill();
    let log = own.run(&["export", "last"]).lines();
    let at = log.iter().position(|it| it["kind"] == "question.answered").expect("an answer");
    let (asked, answered) = (&log[at - 1], &log[at]);
    assert_eq!(asked["kind"], "question.asked");
    let by_script = {
        let mut forged = answered.clone();
        let fields = forged.as_object_mut().expect("an object");
        fields.retain(|name, _| !["name", "host"].contains(&name.as_str()));
        fields["by"] = json!("script");
        forged
    };
    // A command that was sent, and had no effect when the log ends, is given to the run again.
    let mut sent = json!({ "v": 2, "seq": at, "at_us": answered["at_us"], "span": 0 });
    for (name, value) in
        [("kind", json!("command.taken")), ("by", json!("ann")), ("place", json!(1))]
    {
        sent[name] = value;
    }
    sent["command"] = json!({
        "command": "answer", "id": "q1", "digest": asked["digest"], "by": "rule", "answer": "approve",
    });
    for last in [answered, &by_script, &sent] {
        let home = desk();
        let lines = log[..at].iter().chain([last]).map(|line| format!("{line}\n"));
        home.write("log.jsonl", &lines.collect::<String>());
        let imported = home.run(&["import", "log.jsonl"]);
        assert_eq!(imported.code, Some(0), "{imported:?}");
        let refused = |args: &[&str]| {
            let ran = home.run(args);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {ran:?}");
            for said in [
                "came from elsewhere",
                "q1 refund charge: ch_2, amount_usd: 149.9: approve",
                "--trust-answers",
            ] {
                assert!(ran.err.contains(said), "{args:?}: {ran:?}");
            }
        };
        refused(&["resume", "last", "--people", "nobody", "--trust"]);
        refused(&["fork", "last@finalize", "--trust"]);
        if last["kind"] == "question.answered" {
            refused(&["run", "desk.toml", "--replay", "log.jsonl"]);
            refused(&["run", "desk.toml", "--replay", "last", "--trust"]);
        }
        assert_eq!(
            stored(&home, "question.answered").len() + stored(&home, "command.taken").len(),
            1
        );
        let ran = home.run(&["resume", "last", "--people", "nobody", "--trust-answers"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.out.contains("re_31"), "{ran:?}");
    }
}

/// A run that was killed while it waited says for whom, until it is resumed and answered.
#[test]
fn killed_run_says_who_is_asked() {
    let home = desk();
    let listed = || {
        let row = home.run(&["runs", "--json"]).json()[0].clone();
        (row["status"].clone(), row["waits_for"].clone())
    };
    let waits = ["run", "desk.toml", "--people", "wait", "--format", "jsonl"];
    let mut run = Running::start(&mut home.command(&waits));
    run.until("question.asked");
    wait_until_stored(&home, "question.asked", 1);
    assert_eq!(listed(), (json!("running"), json!(["operator"])));
    run.kill();
    assert_eq!(listed(), (json!("interrupted"), json!(["operator"])));
    let text = home.run(&["runs"]).flat();
    assert!(text.contains("INTERRUPTED ◆ waits for operator"), "{text}");
    let mut run = start(&home, &["resume", "last"]);
    let mut stdin = run.stdin();
    prints(&mut run, "q1 for operator");
    writeln!(stdin, r#"{{"id":"q1","approve":true}}"#).expect("it listens");
    wait_until_stored(&home, "question.asked", 2);
    run.kill();
    assert_eq!(listed(), (json!("interrupted"), json!(["manager"])));
    let mut run = start(&home, &["resume", "last"]);
    let mut stdin = run.stdin();
    prints(&mut run, "q2 for manager");
    writeln!(stdin, r#"{{"id":"q2","text":"We are."}}"#).expect("it listens");
    run.until("outcome");
    assert_eq!(run.end().0.code(), Some(0));
    assert_eq!(listed(), (json!("ended"), Value::Null));
    let text = home.run(&["show", "last", "--format", "text"]).flat();
    assert!(text.contains("; questions: 2 asked, 2 answered by people, median wait"), "{text}");
}

#[test]
fn next_message_gets_its_lines() {
    let home = desk();
    let mut run = start(&home, &["run", "desk.toml", "--message", "One", "--message", "Two"]);
    let mut stdin = run.stdin();
    let mut before = json!("r-0");
    for _ in ["One", "Two"] {
        let id = run.until("run.started")["run"].clone();
        assert!(id.is_string() && id != before);
        run.until("question.asked");
        // A late line of the run before does not approve a call of this one.
        for (late, wrong) in [
            (json!({ "id": "q1", "approve": true }), "`run` is missing"),
            (json!({ "run": before, "id": "q1", "approve": true }), "does not play now"),
        ] {
            writeln!(stdin, "{late}").expect("it listens");
            prints(&mut run, wrong);
        }
        writeln!(stdin, "{}", json!({ "run": id, "id": "q1", "approve": true }))
            .expect("it listens");
        run.until("question.answered");
        run.until("question.asked");
        writeln!(stdin, "{}", json!({ "run": id, "id": "q2", "text": "We are." }))
            .expect("it listens");
        run.until("question.answered");
        before = id;
    }
    assert_eq!(run.until("session")["answered"], 2);
    assert_eq!(run.end().0.code(), Some(0));
}

/// Boundaries are listed although the program of a worker is not started, and nobody is asked again.
#[test]
fn fork_lists_boundaries_of_workers() {
    let home = Home::new();
    let text = r#"
title = "Worker"
pattern = "orchestrator"
goal = "Report."
[people.operator]
description = "The operator"
[orchestrator]
plan_prompt = "Plan."
finalize_prompt = "Write."
level = { name = "health", otherwise = "green" }
sections = { disk = "disk_worker" }
[workers.disk_worker]
description = "Measures the disk"
args = {}
contract = { used = "number" }
command = { program = "echo", args = ['{"used": 12}'] }
APPROVE
[[script]]
step = "plan"
reply = { kind = "plan", tasks = [{ id = "disk", worker = "disk_worker", args = {}, critical = false }] }
[[script]]
step = "finalize"
text = "There is room."
"#;
    let scripted = "approve = true\n[[script]]\nperson = \"operator\"\napprove = true";
    for approve in ["", scripted] {
        home.write("worker.toml", &text.replace("APPROVE", approve));
        let ran = home.run(&["run", "worker.toml", "--trust"]);
        assert_eq!(ran.code, Some(0), "{approve}: {ran:?}");
        let places = home.run(&["fork", "last"]);
        assert_eq!(places.code, Some(0), "{approve}: {places:?}");
        assert!(places.out.contains("finalize"), "{approve}: {places:?}");
    }
}
