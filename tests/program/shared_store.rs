//! Several processes that keep their runs in one store at the same time.

use std::collections::BTreeMap;
use std::thread;

use serde_json::Value;

use crate::support::binary::{Home, Running};

/// The output of a process about a run, and whether it ended on its own.
struct Printed {
    lines: Vec<Value>,
    ended: bool,
}

/// Plays runs one after the other; each third one is killed.
fn play(home: &Home, runs: usize) -> Vec<Printed> {
    const SCENARIOS: [&str; 4] =
        ["front-desk", "checkout-launch", "fraud-check", "checkout-unanimous"];
    let play_one = |nth: usize| {
        let is_killed = nth % 3 == 2;
        let scenario = if is_killed { "checkout-unanimous" } else { SCENARIOS[nth % 4] };
        let args = ["run", scenario, "--format", "jsonl"];
        if !is_killed {
            let ran = home.run(&[&args[..], &["--instant"]].concat());
            assert_eq!(ran.code, Some(0), "{}", ran.err);
            return Printed { lines: ran.lines(), ended: true };
        }
        let mut running = Running::start(&mut home.command(&args));
        let lines = running.lines().take(9 + nth % 12);
        let read = |line: String| serde_json::from_str(&line).expect("JSON");
        let lines = lines.map(|line| line.map(read).expect("a line")).collect();
        running.kill();
        Printed { lines, ended: false }
    };
    (0..runs).map(play_one).collect()
}

/// Two processes try to continue the same run: one of them does.
fn resume_twice(home: &Home, run: &str) {
    let [one, other] = thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| home.run(&["resume", run, "--format", "json"])));
        both.map(|one| one.join().expect("no panic"))
    });
    let (won, lost) = if one.code == Some(0) { (one, other) } else { (other, one) };
    assert_eq!((won.code, won.json()["run_id"].as_str()), (Some(0), Some(run)), "{won:?} {lost:?}");
    let refused = ["is played by another process", "there is nothing to continue"];
    assert!(refused.iter().any(|why| lost.err.contains(why)), "{lost:?}");
    assert_eq!((lost.code, lost.out.as_str()), (Some(1), ""), "{lost:?}");
}

fn id_of(lines: &[Value]) -> &str {
    lines[0]["run"].as_str().expect("an id")
}

/// Two processes play so many runs each, of which a third is killed and continued.
fn share(runs: usize) {
    let home = Home::new();
    let printed: Vec<Printed> = thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| play(&home, runs)));
        both.into_iter().flat_map(|one| one.join().expect("no panic")).collect()
    });
    let by_id: BTreeMap<&str, &Printed> =
        printed.iter().map(|printed| (id_of(&printed.lines), printed)).collect();
    assert_eq!(by_id.len(), 2 * runs, "an id was given twice");

    let rows = home.run(&["runs", "--json"]).json();
    let rows = rows.as_array().expect("a list");
    let mut interrupted = Vec::new();
    for row in rows {
        let id = row["id"].as_str().expect("an id");
        let printed = by_id.get(id).unwrap_or_else(|| panic!("nobody played {id}"));
        let kept = home.run(&["export", id]).lines();
        let common = kept.len().min(printed.lines.len());
        assert_eq!(kept[..common], printed.lines[..common], "{id}");
        if printed.ended {
            assert_eq!(row["status"], "ended", "{id}");
            assert_eq!(kept.len() + 1, printed.lines.len(), "all of {id} but its outcome");
            continue;
        }
        assert_eq!(row["status"], "interrupted", "{id}");
        interrupted.push(id);
    }
    let continued = interrupted.len();
    thread::scope(|scope| {
        for run in interrupted {
            scope.spawn(|| resume_twice(&home, run));
        }
    });
    // A run that was killed before its first event was stored leaves none.
    let ended = printed.iter().filter(|printed| printed.ended).count();
    assert_eq!(rows.len() - continued, ended);
    println!("{continued} of {} killed runs were continued", 2 * runs - ended);
    assert!(continued > 0);

    let rows = home.run(&["runs", "--json"]).json();
    for row in rows.as_array().expect("a list") {
        let id = row["id"].as_str().expect("an id");
        let kept = home.run(&["export", id]).lines();
        assert_eq!((&row["status"], &row["events"]), (&"ended".into(), &kept.len().into()));
        for (number, line) in kept.iter().enumerate() {
            assert_eq!((&line["seq"], &line["run"]), (&number.into(), &row["id"]), "{line}");
        }
        let count = |kind: &str| kept.iter().filter(|line| line["kind"] == kind).count();
        assert_eq!((count("run.started"), count("run.closed")), (1, 1), "{id}");
    }
}

#[test]
fn two_processes_share_store() {
    share(6);
}

/// `cargo test --test program -- --ignored share_many_runs`
#[test]
#[ignore = "half a minute; the test above is its sample"]
fn two_processes_share_many_runs() {
    share(20);
}
