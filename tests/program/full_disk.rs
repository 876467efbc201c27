//! Runs whose disk is full before they end.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::binary::{Home, Running};
use crate::support::counting_endpoint::{CountingEndpoint, ModelAttempts, count, surplus};
use crate::support::full_disk::{UNDER, set_full};

const SCENARIO: &str = "front-desk";

/// Starts a live run whose disk is full from its second request on.
fn live_run(home: &Home, endpoint: &CountingEndpoint, more: &[&str]) -> Running {
    endpoint.hold(2, false);
    let args = [&["run", SCENARIO, "--live", "--format", "json"], more];
    let mut command = home.command_under(&UNDER, &args.concat());
    let running = Running::start(command.envs(endpoint.env()));
    endpoint.wait_until_held();
    set_full(running.pid(), true);
    endpoint.release();
    running
}

#[test]
fn a_live_run_stops_and_is_continued_when_there_is_room() {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of(SCENARIO));
    let (status, out, err) = live_run(&home, &endpoint, &[]).end();
    let outcome: Value = serde_json::from_str(&out).expect("an outcome");
    assert_eq!((status.code(), &outcome["stop_reason"]), (Some(1), &"store_failed".into()));
    assert!(err.contains("cannot be stored"), "{err}");

    let row = home.run(&["runs", "--json"]).json()[0].clone();
    assert_eq!((&row["status"], &row["id"]), (&"interrupted".into(), &outcome["run_id"]));
    let before = ModelAttempts::of(&home.run(&["export", "last"]).lines());
    let asked = endpoint.prompts();
    assert_eq!(surplus(&count(asked.clone()), &before.started()), [""; 0]);
    let resumed = endpoint.run(&home, &["resume", "last", "--format", "json"]);
    assert_eq!(resumed.json()["stop_reason"], "success", "{resumed:?}");
    let after = ModelAttempts::of(&home.run(&["export", "last"]).lines());
    let more = count(endpoint.prompts().split_off(asked.len()));
    assert_eq!(surplus(&more, &after.started_after(&before)), [""; 0]);
}

#[test]
fn a_live_run_without_a_store_needs_no_room() {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of(SCENARIO));
    let (status, out, err) = live_run(&home, &endpoint, &["--no-store"]).end();
    let outcome: Value = serde_json::from_str(&out).expect("an outcome");
    assert_eq!((status.code(), &outcome["stop_reason"]), (Some(0), &"success".into()), "{err}");
    assert!(!err.contains("store"), "{err}");
}

#[test]
fn a_scripted_run_continues_without_the_store_and_says_so() {
    let home = Home::new();
    let args = ["run", "fraud-check", "--format", "jsonl"];
    let running = Running::start(&mut home.command_under(&UNDER, &args));
    // Some of it is stored.
    let limit = Instant::now() + Duration::from_secs(60);
    while home.run(&["runs", "--json"]).json()[0].is_null() {
        assert!(Instant::now() < limit, "nothing is stored");
    }
    set_full(running.pid(), true);
    let (status, out, err) = running.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(err.contains("this run is not kept any more: "), "{err}");
    let lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let warnings = lines.iter().filter(|line| line["kind"] == "warning");
    assert_eq!(warnings.count(), 1, "said once: {out}");
    assert_eq!(lines.last().map(|line| &line["stop_reason"]), Some(&"success".into()));

    // What was stored before is as it was, and another run is kept.
    let row = home.run(&["runs", "--json"]).json()[0].clone();
    assert_eq!(row["status"], "interrupted");
    let kept = home.run(&["export", "last"]).lines();
    assert!(!kept.is_empty() && kept.len() < lines.len(), "{}", kept.len());
    assert_eq!(home.run(&["run", "fraud-check", "--instant"]).code, Some(0));
    assert_eq!(home.run(&["runs", "--json"]).json()[0]["status"], "ended");
}

#[test]
fn a_run_that_finds_the_disk_full_at_its_start_is_not_kept() {
    let (home, endpoint) = (Home::new(), CountingEndpoint::of(SCENARIO));
    // The shell itself has no room, and the program begins so.
    let full = ["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"];
    let args = ["run", SCENARIO, "--format", "json"];
    for (more, live) in [("--instant", false), ("--live", true)] {
        let mut command = home.command_under(&full, &[&args[..], &[more]].concat());
        let ran = crate::support::binary::end(command.envs(endpoint.env()));
        assert_eq!(ran.code, Some(0), "{live}: {ran:?}");
        assert!(ran.err.contains("runs are not kept: "), "{live}: {ran:?}");
    }
    assert_eq!(home.run(&["runs", "--json"]).json(), serde_json::json!([]));
}
