//! Plain mode: words on standard input, lines on standard output, no terminal.

use std::io::Write;
use std::process::Stdio;

use crate::support::binary::{Ended, Home, Running};

/// Types these lines into plain mode, and waits for its end.
fn types_into(home: &Home, args: &[&str], lines: &[&str]) -> Ended {
    let args = [&["--plain"], args].concat();
    let mut run = Running::start(home.command(&args).stdin(Stdio::piped()));
    let mut stdin = run.stdin();
    // It may have left before the last line.
    let _ = stdin.write_all((lines.join("\n") + "\n").as_bytes());
    drop(stdin);
    let (status, out, err) = run.end();
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "no escape code: {out}");
    Ended { code: status.code(), out, err }
}

fn types(lines: &[&str]) -> Ended {
    types_into(&Home::new(), &[], lines)
}

/// The lines in this order, perhaps with others between them.
fn has_in_order(ended: &Ended, wanted: &[&str]) {
    let mut lines = ended.out.lines();
    for want in wanted {
        assert!(lines.any(|line| line.contains(want)), "no `{want}` there: {}", ended.out);
    }
}

#[test]
fn a_session_is_words_and_lines() {
    let home = Home::new();
    let ended = types_into(
        &home,
        &["run", "checkout-launch", "--instant", "--pause-at", "round:1"],
        &[
            "wait",
            "flags",
            "flag legal_analyst on",
            "undo",
            "flag legal_analyst on",
            "step",
            "wait",
            "resume",
            "wait",
            "inspect 1",
            "show outcome",
            "export",
            "at round:2",
            "at live",
            "events all 3",
            "fork",
            "set Boundary message:1:demand_analyst",
            "start",
            "wait",
            "compare",
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    // The first kept run of a home says where runs are.
    assert!(ended.err.starts_with("roundtable: runs are kept in "), "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    has_in_order(
        &ended,
        &[
            "roundtable",
            ": paused before round 1",
            "legal_analyst off",
            "  flag legal_analyst on: ",
            "legal_analyst",
            ": ended: completed",
            "raw:",
            "an earlier moment, at",
            "form of a fork of r-",
            "field 1 Continue from: Boundary: ",
            ": paused before ",
            "they differ first in ",
            "ends with this program: no line follows",
        ],
    );
    let numbered = ended.out.lines().filter(|line| line.starts_with("1 00:00")).count();
    assert_eq!(numbered, 2, "each run begins with its first event: {}", ended.out);
    assert!(std::fs::read_dir(home.path()).expect("a folder").any(|entry| {
        entry.expect("an entry").file_name().to_string_lossy().ends_with(".jsonl")
    }));
}

#[test]
fn home_starts_by_name_and_number() {
    let ended = types(&[
        "scenarios checkout",
        "new checkout-launch",
        "set Replies 2",
        "command",
        "start",
        "wait",
        "home",
        "runs",
        "open 1",
        "status",
    ]);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    has_in_order(
        &ended,
        &[
            " checkout-launch: ",
            "form of a run of checkout-launch",
            "Replies: scripted, no delays",
            "roundtable run scenarios/checkout-launch.toml --instant",
            ": ended: completed",
            "home: ",
            "1 r-",
            "r-",
        ],
    );
    let bare = types(&["checkout-launch", "kill", "yes", "wait"]);
    has_in_order(&bare, &["End run r-", "type yes or no", "cancelled"]);
}

#[test]
fn questions_are_answered_by_words() {
    let refused = ["wait", "answer 1 no, ask me tomorrow", "wait"];
    let approved = [
        "wait",
        "questions",
        "answer 1",
        "yes",
        "resume",
        "maybe",
        "status",
        "yes",
        "wait",
        "answer 1",
    ];
    let args = ["run", "refund-desk", "--instant", "--people", "wait"];
    let ended = types_into(&Home::new(), &args, &refused);
    has_in_order(
        &ended,
        &["question 1 of r-", "type: answer 1 yes, or no, or no and a reason", "ask me tomorrow"],
    );
    let ended = types_into(&Home::new(), &args, &approved);
    has_in_order(
        &ended,
        &[
            "question 1 of r-",
            "type: answer 1 yes",
            "type yes, or no",
            "cannot be undone: refund",
            "resume has to wait, type yes or no: ",
            "type yes or no: ",
            "waits for operator (question 1)",
            "type yes or no: ",
            "answered: question 1 of r-",
            " was approved by ",
        ],
    );
}

#[test]
fn faults_and_breakers_have_words() {
    let ended = types_into(
        &Home::new(),
        &["run", "payments-incident", "--instant", "--pause-at", "plan"],
        &[
            "wait",
            "faults llm",
            "fault llm latency 20",
            "fault llm hang off",
            "fault lmm hang",
            "fault llm slow",
            "limit llm max_attempts 3",
            "breaker llm disable",
            "show breakers",
            "tools",
            "resume",
            "wait",
        ],
    );
    has_in_order(
        &ended,
        &[
            "limit llm timeout_ms",
            "no tool lmm",
            "`slow` is no fault: use latency",
            "llm ",
            ": ended: ",
        ],
    );
    let text = &ended.out;
    assert!(text.contains("latency"), "the event of the fault: {text}");
}

#[test]
fn runs_at_rest_end_with_input() {
    let args = ["run", "checkout-launch", "--instant", "--pause-at", "round:2"];
    let ended = types_into(&Home::new(), &args, &[]);
    assert_eq!(ended.code, Some(0));
    has_in_order(&ended, &["ends with this program: no line follows", "cancelled"]);
}

#[cfg(unix)]
#[test]
fn closed_pipe_ends_it_quietly() {
    let home = Home::new();
    let mut run = Running::start(home.command(&["--plain"]).stdin(Stdio::piped()));
    run.close_out();
    let mut stdin = run.stdin();
    let _ = stdin.write_all(b"scenarios\nhelp\nscenarios\n");
    let (status, _, err) = run.end();
    assert_eq!((status.code(), err.as_str()), (Some(141), ""));
}

#[test]
fn unknown_words_get_a_suggestion() {
    let ended = types(&["puase", "start chekout-launch", "help pause", "flag x on"]);
    has_in_order(
        &ended,
        &[
            "no word `puase`: did you mean `pause`?",
            "no scenario chekout-launch: did you mean `checkout-launch`?",
            "pause [all]: ",
            "for example: pause all",
            "no run is open",
        ],
    );
}

#[test]
fn filtered_lists_hide_no_run() {
    let home = Home::new();
    types_into(&home, &["run", "checkout-launch", "--instant"], &["wait"]);
    let ended = types_into(
        &home,
        &[],
        &["runs", "runs status:failed", "open 1", "home", "open last", "open r-none"],
    );
    has_in_order(
        &ended,
        &[
            "numbers now name the 1 run: open 1",
            "no runs of `status:failed`; numbers still name the 1 run",
            ": Checkout v2",
            "home: ",
            ": Checkout v2",
            "no run r-none",
        ],
    );
}

#[test]
fn panes_are_rows_and_items() {
    let lines =
        ["wait", "show stances", "show speaker risk_analyst", "show speaker x", "show tool llm"];
    let ended = types_into(&Home::new(), &["run", "checkout-launch", "--instant"], &lines);
    has_in_order(
        &ended,
        &[
            "show outcome reads it",
            "demand_analyst: round 1 go, confidence 0.86; round 2 ",
            "speaker risk_analyst",
            "no speaker x: one of demand_analyst",
            "tool llm",
        ],
    );
}

#[test]
fn wrong_fields_are_typed_again() {
    let home = Home::new();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/checkout-unanimous.toml");
    let text = std::fs::read_to_string(shipped).expect("a shipped scenario");
    let seat = text.find("[roles.risk_analyst]\n").expect("a seat");
    let (before, after) = text.split_at(seat);
    let rest = after.split_once("\n\n").expect("the end of the seat").1;
    let seat = "[roles.risk_analyst]\nperson = \"cfo\"\n\n[people.cfo]\ndescription = \"Risk\"\n\n";
    std::fs::write(home.path().join("seat.toml"), format!("{before}{seat}{rest}")).expect("a file");
    let lines = [
        "wait",
        "question 1",
        "answer 1",
        "block",
        "much",
        "0.9",
        ".",
        "Too soon.",
        ".",
        ".",
        "Wait.",
        ".",
    ];
    let args = ["run", "seat.toml", "--instant", "--people", "wait"];
    let ended = types_into(&home, &args, &lines);
    has_in_order(
        &ended,
        &[
            "goal: ",
            "fact ",
            "field 2 of 4: confidence",
            "not taken: the confidence is a number from 0 to 1",
            "not taken: the summary is empty",
            "not taken: a contribution needs at least one action",
            "answered: question 1 of r-",
        ],
    );
}

/// A run whose events come faster than they are shown ends when it is told to.
#[test]
fn words_are_heard_beside_many_events() {
    let run = ["run", "vendor-brownout", "--instant", "--no-store"];
    let args = [&run[..], &["--set", "resilience.turns=2000"]].concat();
    let ended = types_into(&Home::new(), &args, &["kill", "yes", "wait"]);
    has_in_order(&ended, &["End run r-", ": ended: cancelled"]);
}
