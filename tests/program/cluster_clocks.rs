//! Runners whose clocks are wrong. What counts for a run is the clock of the server alone.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::counting_endpoint::CountingEndpoint;
use crate::support::runners::{LIVE, RunnerTeam, TestRunner, check_log, lines_of, local};

/// Names the library `libfaketime.so.1`, which gives a program another clock.
const LIBRARY: &str = "ROUNDTABLE_FAKETIME";

/// The two clocks of each pair of runners.
const CLOCKS: [(&str, &str); 2] = [("+1h", "-1h"), ("-1h", "+1h")];

/// The library; `None`, with a message, if it is missing.
fn library() -> Option<PathBuf> {
    let found = std::env::var_os(LIBRARY).map(PathBuf::from);
    if found.is_none() {
        eprintln!("SKIPPED: no libfaketime; set {LIBRARY}");
    }
    found
}

/// A runner whose clock is off.
fn runner(
    team: &RunnerTeam,
    library: &PathBuf,
    (name, clock): (&str, &str),
    endpoint: Option<&CountingEndpoint>,
) -> TestRunner {
    team.runner_with(name, endpoint, |command| {
        command.env("LD_PRELOAD", library).env("FAKETIME", clock);
        // Only the time of day is wrong.
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    })
}

#[test]
fn wrong_clocks_cause_no_takeover() {
    let (Some(library), Some(team)) = (library(), RunnerTeam::start()) else { return };
    for (first, second) in CLOCKS {
        let mut owner = runner(&team, &library, ("a", first), None);
        let followed = team.follow(&["checkout-launch", "--format", "jsonl"]);
        owner.until("plays r-");
        let _other = runner(&team, &library, ("b", second), None);
        let (_, out, err) = followed.end();
        check_log(&lines_of(&out), &local("checkout-launch"));
        assert!(!err.contains("continues"), "{err}");
    }
}

#[test]
fn takeover_and_late_answers_ignore_clocks() {
    let (Some(library), Some(team)) = (library(), RunnerTeam::start()) else { return };
    for (first, second) in CLOCKS {
        let endpoint = CountingEndpoint::of("checkout-launch");
        let mut owner = runner(&team, &library, ("a", first), Some(&endpoint));
        endpoint.hold(4, false);
        let args = [&["checkout-launch", "--format", "jsonl"][..], &LIVE[..]].concat();
        let followed = team.follow(&args);
        endpoint.wait_until_held();
        owner.process.signal("STOP");
        let mut other = runner(&team, &library, ("b", second), Some(&endpoint));
        other.until("continues");
        endpoint.release();
        owner.process.signal("CONT");
        owner.until("belongs to another runner now");
        let (_, out, err) = followed.end();
        let lines: Vec<Value> = lines_of(&out);
        let answers: Vec<&Value> =
            lines.iter().filter(|line| line["kind"] == "attempt.answered").collect();
        assert!(answers.iter().any(|it| it["adopted"] == true), "{err}");
        assert_eq!(endpoint.prompts().len(), answers.len(), "{err}");
        assert_eq!(lines.last().expect("an outcome")["stop_reason"], "success", "{err}");
        let resumed = lines.iter().find(|line| line["kind"] == "run.resumed").expect("an event");
        println!("{resumed}");
    }
}
