//! Runs over servers that fail: three servers as one cluster of NATS, a server whose disk is full, a
//! server that is too old.

use std::thread;

use serde_json::Value;

use crate::support::binary::{Home, Running};
use crate::support::counting_endpoint::{CountingEndpoint, ModelAttempts, count, surplus};
use crate::support::nats::NatsServer;
use crate::support::nats_group::NatsGroup;
use crate::support::runners::{LIVE, RunnerTeam, check_log, lines_of, local, runner_at};

/// The stream of the logs.
const LOGS: &str = "RT_F_00";

/// Three servers with what runs need, and a home.
fn group() -> Option<(NatsGroup, Home)> {
    let (group, home) = (NatsGroup::start()?, Home::new());
    // One server was there before the others.
    for (replicas, objects) in [("1", "made"), ("3", "changed"), ("3", "is there")] {
        let args = ["cluster", "init", "--replicas", replicas, "--on", &group.url()];
        let made = home.run(&args);
        assert_eq!(made.code, Some(0), "{made:?}");
        let line = made.out.lines().find(|line| line.starts_with("RT_BLOB")).expect("objects");
        assert!(line.contains(objects), "{}", made.out);
    }
    for stream in [LOGS, "OBJ_RT_BLOB"] {
        group.wait_until_equal(stream);
    }
    Some((group, home))
}

/// Hands a run over and follows it.
fn follow(home: &Home, url: &str, scenario: &str) -> Running {
    let args = ["run", scenario, "--format", "jsonl", "--on", url];
    Running::start(&mut home.command(&args))
}

/// The next lines of a run.
fn some_lines(followed: &mut Running, count: usize) -> Vec<Value> {
    let lines = followed.lines().take(count);
    lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect()
}

/// Checks the rest of a run against the same run of this machine.
fn check_rest(followed: Running, mut lines: Vec<Value>, scenario: &str) {
    let (_, rest, err) = followed.end();
    lines.extend(lines_of(&rest));
    let has_ended = lines.iter().any(|line| line["kind"] == "run.closed");
    assert!(has_ended, "{scenario}: {} lines: {err}", lines.len());
    check_log(&lines, &local(scenario));
}

#[test]
fn runs_survive_each_log_leader_crash() {
    let Some((mut group, home)) = group() else { return };
    let url = group.url();
    let _runner = runner_at(&home, &url, "a", |_| ());
    let scenarios = ["checkout-launch", "dev-team", "payments-incident"];
    let mut runs = Vec::new();
    for scenario in scenarios {
        let mut followed = follow(&home, &url, scenario);
        let lines = some_lines(&mut followed, 3);
        runs.push(thread::spawn(move || check_rest(followed, lines, scenario)));
    }
    for _ in 0..2 {
        let leader = group.leader_of(LOGS);
        group.kill(leader);
        assert_ne!(group.leader_of(LOGS), leader, "another server leads it");
        group.restart(leader);
        group.wait_until_equal(LOGS);
    }
    for run in runs {
        run.join().expect("the run is as it is here");
    }
}

#[test]
fn run_waits_for_server_quorum() {
    let Some((mut group, home)) = group() else { return };
    let url = group.url();
    let _runner = runner_at(&home, &url, "a", |_| ());
    let mut followed = follow(&home, &url, "checkout-launch");
    let lines = some_lines(&mut followed, 12);
    group.kill(0);
    group.kill(1);
    group.wait_until_stalled(LOGS);
    group.restart(0);
    group.restart(1);
    check_rest(followed, lines, "checkout-launch");
}

#[test]
fn command_reaches_run_over_three_servers() {
    let Some((group, home)) = group() else { return };
    let url = group.url();
    let _runner = runner_at(&home, &url, "a", |_| ());
    let cancelled = (0..4).map(|_| {
        let mut followed = follow(&home, &url, "checkout-launch");
        thread::spawn(move || {
            some_lines(&mut followed, 5);
            followed.signal("INT");
            let (status, out, err) = followed.end();
            (status.code(), lines_of(&out).pop().expect("an outcome"), err)
        })
    });
    let cancelled: Vec<_> = cancelled.collect();
    for thread in cancelled {
        let (_, outcome, err) = thread.join().expect("no panic");
        assert_eq!(outcome["stop_reason"], "cancelled", "{err}");
    }
}

#[test]
fn full_server_disk_pauses_run() {
    let Some(mut team) = RunnerTeam::start() else { return };
    team.server.limit_files("64KB");
    team.server.restart();
    let endpoint = CountingEndpoint::of("checkout-launch");
    let mut runner = team.runner("a", Some(&endpoint));
    // A scripted run is ahead of its log, and has ended by then. Paid calls wait for the log.
    let mut scripted = team.follow(&["checkout-launch", "--format", "jsonl"]);
    let lines = some_lines(&mut scripted, 1);
    let live = team.follow(&[&["checkout-launch", "--format", "jsonl"][..], &LIVE[..]].concat());
    let mut wanted =
        vec!["paused, because the run cannot be stored", "its end cannot be stored yet"];
    while !wanted.is_empty() {
        let said = runner.until("stored");
        wanted.retain(|words| !said.contains(words));
    }
    team.server.limit_files("1GB");
    team.server.restart();
    check_rest(scripted, lines, "checkout-launch");
    let (_, out, err) = live.end();
    let lines = lines_of(&out);
    let pausing = lines.iter().find(|line| line["kind"] == "pausing").expect("a pause");
    assert_eq!(pausing["by"], "store");
    assert!(err.contains("paused, because the run cannot be stored"), "{err}");
    assert_eq!(lines.last().expect("an outcome")["stop_reason"], "success", "{err}");
    let unannounced = surplus(&count(endpoint.prompts()), &ModelAttempts::of(&lines).started());
    assert!(unannounced.is_empty(), "asked before it was stored: {unannounced:#?}");
}

#[test]
fn refuses_outdated_server() {
    let Some(server) = NatsServer::start_old() else { return };
    let (home, url) = (Home::new(), server.url());
    for args in [
        &["cluster", "init"][..],
        &["cluster", "status"],
        &["runner"],
        &["run", "checkout-launch", "--instant"],
    ] {
        let refused = home.run(&[args, &["--on", &url]].concat());
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let words = ["has version 2.9", "2.12.3 or later is needed"];
        assert!(words.iter().all(|word| refused.err.contains(word)), "{}", refused.err);
    }
}
