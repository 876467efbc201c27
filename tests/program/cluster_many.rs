//! Many runs over several runner processes, of which one is killed now and then: every outcome is that of
//! its local twin.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::support::binary::without_times;
use crate::support::runners::{PATIENCE, RunnerTeam, TestRunner, local};

/// Scenarios whose outcome does not depend on the order in which concurrent calls end.
const DETERMINISTIC: [&str; 8] = [
    "checkout-launch",
    "payments-incident",
    "ping-pong",
    "dev-team",
    "own-notes",
    "fraud-check",
    "support-swarm",
    "nested-swarm",
];

fn runner(team: &RunnerTeam, number: usize) -> TestRunner {
    let name = format!("n{number}");
    team.runner_with(&name, None, |command| {
        command.args(["--slots", "8"]);
    })
}

/// Plays so many batches of so many runs of each scenario, while a runner is killed and replaced each time that `every` runs
/// have ended.
fn play(batches: usize, times: usize, runners: usize, every: usize) {
    let Some(team) = RunnerTeam::start() else { return };
    let twins: Vec<Vec<Value>> = DETERMINISTIC.iter().map(|name| messages(local(name))).collect();
    let runs = batches * times * twins.iter().map(Vec::len).sum::<usize>();
    let next = AtomicUsize::new(0);
    let (ended, each_end) = mpsc::channel();
    let mut kills = 0;
    let mut alive: Vec<TestRunner> = (0..runners).map(|nth| runner(&team, nth)).collect();
    thread::scope(|scope| {
        let players: Vec<_> = (0..2)
            .map(|_| {
                let (ended, team, twins, next) = (ended.clone(), &team, &twins, &next);
                scope.spawn(move || {
                    loop {
                        let nth = next.fetch_add(1, Ordering::Relaxed);
                        if nth >= batches * DETERMINISTIC.len() {
                            return;
                        }
                        let place = nth % DETERMINISTIC.len();
                        let (name, expected) = (DETERMINISTIC[place], &twins[place]);
                        let sessions = times.to_string();
                        let args = [name, "--instant", "--times", &sessions, "--format", "jsonl"];
                        let mut batch = team.follow(&args);
                        let mut count = 0;
                        for line in batch.lines() {
                            let mut outcome: Value =
                                serde_json::from_str(&line.expect("a line")).expect("JSON");
                            outcome = without_times(&outcome);
                            for key in ["v", "run", "kind"] {
                                outcome.as_object_mut().expect("an object").remove(key);
                            }
                            // Each message of a session is a run.
                            let message = outcome["message"].as_u64().unwrap_or(1) as usize;
                            assert_eq!(outcome, expected[message - 1], "{name}");
                            count += 1;
                            ended.send(()).expect("it counts");
                        }
                        let (_, _, err) = batch.end();
                        assert_eq!(count, times * expected.len(), "{name}: {err}");
                    }
                })
            })
            .collect();
        drop(ended);
        for count in 1.. {
            if each_end.recv().is_err() {
                break;
            }
            if count % every == 0 {
                let place = &mut alive[kills % runners];
                place.process.kill();
                kills += 1;
                *place = runner(&team, runners + kills);
            }
        }
        for player in players {
            player.join().expect("every run ended as its twin");
        }
    });
    wait_for_rows(&team, runs);
    eprintln!("{runs} runs over {runners} runners, {kills} kills: each equals its local twin");
}

/// The list says of so many runs that they have ended; of one whose runner was killed just then the next
/// runner says it.
fn wait_for_rows(team: &RunnerTeam, runs: usize) {
    let began = Instant::now();
    loop {
        let rows = team.home.run(&["runs", "--on", &team.server.url(), "--json"]).json();
        let rows = rows.as_array().expect("a list");
        assert_eq!(rows.len(), runs);
        if rows.iter().all(|row| row["status"] == "ended") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{rows:?}");
    }
}

/// The outcome of each message of a session; of a run without one its own.
fn messages(outcome: Value) -> Vec<Value> {
    match outcome.get("session").and_then(Value::as_array) {
        Some(messages) => messages.clone(),
        None => vec![outcome],
    }
}

#[test]
fn runs_of_killed_runners_match_local() {
    play(1, 12, 2, 30);
}

/// `cargo test --test program -- --ignored ten_thousand_runs`: seven minutes.
#[test]
#[ignore = "seven minutes; the test above is its sample"]
fn ten_thousand_runs_match_local_runs() {
    play(5, 185, 4, 250);
}
