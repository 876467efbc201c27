//! The refund desk, killed at its events, with an approval around its deadline: no refund without an approval
//! in time, and none twice. The log alone shows it, and the refunds are counted outside of it.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::binary::{Ended, Home, Running};
use crate::support::runners::RunnerTeam;

const SHIPPED: &str = include_str!("../../scenarios/refund-desk.toml");

/// What a refund does in the shipped file.
const FIXTURE: &str = "[[tools.refund.fixture.rows]]
latency = \"600ms..900ms\"
result  = { refund = \"re_31\", status = \"started\" }
";

/// The file of the desk, with this in place of each deadline.
fn with_deadlines(text: &str, timeout: &str) -> String {
    assert_eq!(text.matches("\"10m\"").count(), 2);
    text.replace("\"10m\"", timeout)
}

/// A home with the desk. A refund is a line of the file `refunds`.
fn desk() -> Home {
    let home = Home::new();
    assert!(SHIPPED.contains(FIXTURE));
    let refunds = home.path().join("refunds").display().to_string();
    let script = format!("echo one >> {refunds}; echo '{{\"refund\": \"re_31\"}}'");
    let args = json!(["-c", script]);
    let command = format!("[tools.refund.command]\nprogram = \"sh\"\nargs = {args}\n");
    home.write("desk.toml", &with_deadlines(&SHIPPED.replace(FIXTURE, &command), "\"1s\""));
    home
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("milliseconds")
}

/// Waits until this moment of the wall clock, which no simulated time can bring.
fn wait_until(wall_ms: u64) {
    while let Some(left) = wall_ms.checked_sub(now_ms()).filter(|left| *left > 0) {
        thread::park_timeout(Duration::from_millis(left));
    }
}

fn read(line: std::io::Result<String>) -> Value {
    serde_json::from_str(&line.expect("a line")).expect("JSON")
}

fn is_question(event: &Value) -> bool {
    is_about(event, "tool_call")
}

fn is_about(event: &Value, about: &str) -> bool {
    event["kind"] == "question.asked" && event["about"] == about
}

/// When people answer.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// So many milliseconds after the deadline, from another terminal; `None`: not while the first process
    /// plays the run.
    live_ms: Option<i64>,
    /// The run is continued after the deadline, not at once.
    is_late: bool,
    /// The process is killed when the store has the question, and not before.
    is_stored: bool,
}

const PLANS: [Plan; 4] = [
    Plan { live_ms: Some(-600), is_late: true, is_stored: false },
    Plan { live_ms: Some(-100), is_late: false, is_stored: false },
    Plan { live_ms: None, is_late: true, is_stored: false },
    Plan { live_ms: None, is_late: false, is_stored: false },
];

/// What the log and the refunds say.
fn check(lines: &[Value], refunds: Option<usize>, about: &str) -> bool {
    let asked = lines.iter().find(|it| is_about(it, "tool_call"));
    let due_ms = asked.and_then(|asked| asked["due_ms"].as_u64());
    let approved = lines.iter().find(|it| it["answer"] == "approve");
    let accepted_ms = approved.and_then(|it| it["at_ms"].as_u64());
    let in_time = accepted_ms.zip(due_ms).is_some_and(|(at_ms, due_ms)| at_ms < due_ms);
    assert_eq!(approved.is_some(), in_time, "{about}: {approved:?}, {asked:?}");
    let is_refund = |it: &&Value| it["kind"] == "call.started" && it["tool"] == "refund";
    let call = lines.iter().find(is_refund).map(|call| call["span"].clone());
    let attempts = lines.iter().filter(|it| {
        it["kind"] == "attempt.started" && call.as_ref().is_some_and(|call| it["parent"] == *call)
    });
    let attempts = attempts.count();
    assert!(attempts <= usize::from(in_time), "{about}: {attempts} attempts");
    if let Some(refunds) = refunds {
        assert!(refunds <= attempts, "{about}: {refunds} refunds");
    }
    attempts == 1
}

/// Kills the desk after so many events, continues it with a line on standard input that approves, and checks
/// what has become of the refund. Returns whether it was made or is in doubt.
fn kill_and_answer(events: usize, plan: Plan) -> bool {
    let (home, about) = (desk(), format!("killed after {events} events, {plan:?}"));
    let mut run = Running::start(&mut home.command(&[
        "run",
        "desk.toml",
        "--trust",
        "--instant",
        "--people",
        "wait",
        "--format",
        "jsonl",
    ]));
    let due_ms = thread::scope(|scope| {
        let mut due_ms = None;
        for event in run.lines().take(events).map(read) {
            if is_about(&event, "tool_call") {
                due_ms = event["due_ms"].as_u64();
                if let (Some(due_ms), Some(live_ms)) = (due_ms, plan.live_ms) {
                    let home = &home;
                    scope.spawn(move || {
                        wait_until(due_ms.saturating_add_signed(live_ms));
                        home.run(&["answer", "last", "q1", "--approve"])
                    });
                }
            }
        }
        while plan.is_stored && !home.run(&["export", "last"]).lines().iter().any(is_question) {
            thread::yield_now();
        }
        run.kill();
        due_ms
    });
    if let (true, Some(due_ms)) = (plan.is_late, due_ms) {
        wait_until(due_ms);
    }
    let args = ["resume", "last", "--people", "ask", "--format", "jsonl"];
    let mut resumed = Running::start(home.command(&args).stdin(Stdio::piped()));
    let mut stdin = resumed.stdin();
    for event in resumed.lines().map(read) {
        let answer = match event["about"].as_str() {
            Some("tool_call") => json!({ "id": event["id"], "approve": true }),
            Some("in_doubt") => json!({ "id": event["id"], "choice": "stop" }),
            _ => continue,
        };
        // It may have ended.
        let _ = writeln!(stdin, "{answer}");
    }
    resumed.end();
    let lines = home.run(&["export", "last"]).lines();
    assert!(lines.is_empty() || lines.last().expect("a line")["kind"] == "run.closed", "{about}");
    let refunds = fs::read_to_string(home.path().join("refunds")).unwrap_or_default();
    check(&lines, Some(refunds.lines().count()), &about)
}

/// The places of these events in a run that nobody answers: the question, and all.
fn places(home: &Home) -> (usize, usize) {
    let args = ["run", "desk.toml", "--trust", "--instant", "--no-store", "--people", "nobody"];
    let lines = home.run(&[&args[..], &["--format", "jsonl"]].concat()).lines();
    let asked = lines.iter().position(|it| is_about(it, "tool_call")).expect("a question");
    (asked + 1, lines.len() - 1)
}

/// Does this with each of them, so many at the same time; returns how often it was true.
fn count<T: Sync>(items: &[T], at_a_time: usize, holds: impl Fn(&T) -> bool + Sync) -> usize {
    let (next, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    found.fetch_add(usize::from(holds(item)), Ordering::Relaxed);
                }
            });
        }
    });
    found.into_inner()
}

#[test]
fn killed_desk_refunds_with_approval_only() {
    let (asked, _) = places(&desk());
    let [early, close, late, soon] = PLANS;
    let kills = [(asked, late), (asked, soon), (asked + 1, early), (asked + 3, close), (4, soon)];
    count(&kills, 3, |(events, plan)| kill_and_answer(*events, *plan));
    // The question of the killed process is stored, and no line after its deadline approves.
    assert!(!kill_and_answer(asked, Plan { is_stored: true, ..late }));
}

/// `cargo test --test program -- --ignored refund_desk_killed_at_each_event`: five minutes.
#[test]
#[ignore = "five minutes; the test above is its sample"]
fn refund_desk_killed_at_each_event() {
    let (_, all) = places(&desk());
    let kills: Vec<_> = (1..all + 8).flat_map(|events| PLANS.map(|plan| (events, plan))).collect();
    let made = count(&kills, 8, |(events, plan)| kill_and_answer(*events, *plan));
    println!("{} kills, {made} refunds, each with an approval in time", kills.len());
    assert!(made > 0 && made < kills.len(), "{made}");
}

/// The desk in a cluster, whose runner is killed at the question or after so many events. Somebody answers so
/// many milliseconds after the deadline, and another runner continues the run. `is_late`: only after the
/// deadline. Returns whether the refund was made, and what the answer came to.
fn kill_runner(
    team: &RunnerTeam,
    events: usize,
    (answer_ms, is_late): (i64, bool),
) -> (bool, Option<Ended>) {
    let about = format!("runner killed after {events} events, {answer_ms} ms, {is_late}");
    let url = team.server.url();
    team.home.write("desk.toml", &with_deadlines(SHIPPED, "\"3s\""));
    let first = team.runner("a", None);
    let mut followed = team.follow(&["desk.toml", "--instant", "--format", "jsonl"]);
    let mut lines: Vec<Value> = Vec::new();
    let (mut asked, mut run) = (None, Value::Null);
    for event in followed.lines().take(events).map(read) {
        run = if run.is_null() { event["run"].clone() } else { run };
        asked =
            asked.or_else(|| event["due_ms"].as_u64().filter(|_| is_about(&event, "tool_call")));
        lines.push(event);
    }
    drop(first);
    let run = run.as_str().expect("an id").to_owned();
    let (ended, second) = thread::scope(|scope| {
        let answered = asked.map(|due_ms: u64| {
            let (run, url) = (&run, &url);
            scope.spawn(move || {
                wait_until(due_ms.saturating_add_signed(answer_ms));
                team.home.run(&["answer", run, "q1", "--approve", "--on", url])
            })
        });
        if let (Some(due_ms), true) = (asked, is_late) {
            wait_until(due_ms.saturating_add_signed(answer_ms.max(0)) + 200);
        }
        let second = team.runner("b", None);
        (answered.map(|it| it.join().expect("no panic")), second)
    });
    for event in followed.lines().map(read) {
        lines.push(event);
    }
    drop(second);
    (check(&lines, None, &about), ended)
}

#[test]
fn stored_answers_count_by_server_time() {
    let Some(team) = RunnerTeam::start() else { return };
    let (asked, _) = places(&desk());
    // Nobody plays the run: what is stored before the deadline counts, whenever it is read.
    let (is_made, _) = kill_runner(&team, asked, (-2_500, true));
    assert!(is_made);
    let (is_made, ended) = kill_runner(&team, asked, (1_000, true));
    assert!(!is_made);
    let ended = ended.expect("an answer");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("too late, the deadline was "), "{ended:?}");
}

/// `cargo test --test program -- --ignored clustered_desk_killed_at_each_event`: ten minutes.
#[test]
#[ignore = "ten minutes; the test above is its sample"]
fn clustered_desk_killed_at_each_event() {
    let Some(team) = RunnerTeam::start() else { return };
    let (_, all) = places(&desk());
    let plans = [(-2_500, true), (-100, false), (50, false), (1_000, true)];
    let kills: Vec<_> = (1..all).flat_map(|events| plans.map(|plan| (events, plan))).collect();
    let made = count(&kills, 1, |(events, plan)| kill_runner(&team, *events, *plan).0);
    println!("{} kills, {made} refunds, each with an approval in time", kills.len());
    assert!(made > 0 && made < kills.len(), "{made}");
}
