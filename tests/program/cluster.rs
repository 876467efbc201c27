//! Runs that runners play, over a real NATS server: killed, stopped and drained runners, a server that
//! crashes, commands, late answers. An endpoint of the test counts the requests to models.

use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::cluster_takeover::kill_at_request;
use crate::support::binary::{Home, end};
use crate::support::counting_endpoint::CountingEndpoint;
use crate::support::nats::NatsServer;
use crate::support::runners::{LIVE, PATIENCE, RunnerTeam, check_log, lines_of, local};

#[test]
fn remote_run_matches_local_run() {
    let Some(team) = RunnerTeam::start() else { return };
    let _runner = team.runner("a", None);
    for scenario in
        ["checkout-launch", "payments-incident", "ping-pong", "dev-team", "own-notes", "front-desk"]
    {
        let ran = team.run(&[scenario, "--instant", "--format", "jsonl"]);
        let expected = local(scenario);
        assert_eq!(
            ran.code == Some(0),
            expected["stop_reason"] == "success",
            "{scenario}: {ran:?}"
        );
        check_log(&ran.lines(), &expected);
    }
    // A stop of the policy has the exit code of a local run.
    let args = ["checkout-launch", "--instant", "--set", "budget.max_rounds=1"];
    let here = Home::new().run(&[&["run", "--no-store"], &args[..]].concat());
    let there = team.run(&args);
    assert_eq!(
        (there.code, there.json()["stop_reason"].clone()),
        (here.code, here.json()["stop_reason"].clone())
    );
    assert_ne!(here.code, Some(0));
}

#[test]
fn another_runner_resumes_killed_run() {
    let kills = [("checkout-launch", 12), ("dev-team", 20), ("front-desk", 6)];
    each_on_its_own(&kills, |team, (scenario, events)| {
        let first = team.runner("a", None);
        let mut followed = team.follow(&[scenario, "--format", "jsonl"]);
        let mut out: Vec<Value> = followed
            .lines()
            .take(events)
            .map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
            .collect();
        drop(first);
        let mut second = team.runner("b", None);
        second.until("continues");
        let (status, rest, err) = followed.end();
        assert_eq!(status.code(), Some(0), "{err}");
        assert!(err.contains("b continues"), "{err}");
        out.extend(lines_of(&rest));
        check_log(&out, &local(scenario));
        assert!(out.iter().any(|event| event["kind"] == "run.resumed"), "{scenario}");
    });
}

/// Tries each case on a server of its own, all at the same time: most of the time they wait.
fn each_on_its_own<C: Copy + Sync>(cases: &[C], test: impl Fn(&RunnerTeam, C) + Sync) {
    thread::scope(|scope| {
        for case in cases {
            let test = &test;
            scope.spawn(move || {
                if let Some(team) = RunnerTeam::start() {
                    test(&team, *case);
                }
            });
        }
    });
}

#[test]
fn killed_runner_repeats_no_stored_call() {
    let kills =
        [("checkout-launch", 5, true), ("checkout-launch", 7, false), ("front-desk", 2, true)];
    each_on_its_own(&kills, |team, (scenario, nth, replies_first)| {
        let paid = kill_at_request(team, scenario, nth, replies_first);
        assert_eq!(paid.reason, "success", "{scenario}, request {nth}");
    });
}

#[test]
fn paused_runner_keeps_paid_answer() {
    let Some(team) = RunnerTeam::start() else { return };
    let endpoint = CountingEndpoint::of("checkout-launch");
    let mut first = team.runner("a", Some(&endpoint));
    endpoint.hold(4, false);
    let args = [&["checkout-launch", "--format", "jsonl"][..], &LIVE[..]].concat();
    let mut followed = team.follow(&args);
    endpoint.wait_until_held();
    // Longer than the takeover takes: its call is in flight meanwhile.
    first.process.signal("STOP");
    let mut second = team.runner("b", Some(&endpoint));
    second.until("continues");
    endpoint.release();
    first.process.signal("CONT");
    first.until("belongs to another runner now");
    let lines: Vec<Value> = followed
        .lines()
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
        .collect();
    let (_, _, err) = followed.end();
    let answered: Vec<&Value> =
        lines.iter().filter(|line| line["kind"] == "attempt.answered").collect();
    // Calls in flight, of one seat or of several, were made once.
    assert!(answered.iter().any(|it| it["adopted"] == true), "{err}");
    let in_doubt: Vec<&Value> = lines.iter().filter(|it| it["kind"] == "call.in_doubt").collect();
    assert!(in_doubt.is_empty(), "{in_doubt:?}");
    assert_eq!(endpoint.prompts().len(), answered.len(), "{err}");
    assert_eq!(lines.last().expect("an outcome")["stop_reason"], "success", "{err}");
}

#[test]
fn stopping_runner_returns_its_runs() {
    let Some(team) = RunnerTeam::start() else { return };
    let mut first = team.runner("a", None);
    let mut followed = team.follow(&["checkout-launch", "--format", "jsonl"]);
    let mut out: Vec<Value> = followed
        .lines()
        .take(12)
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
        .collect();
    let second = team.runner("b", None);
    first.process.signal("TERM");
    first.until("returned");
    let (status, rest, err) = followed.end();
    drop(second);
    assert_eq!(status.code(), Some(0), "{err}");
    out.extend(lines_of(&rest));
    check_log(&out, &local("checkout-launch"));
    let kinds: Vec<&str> = out.iter().filter_map(|it| it["kind"].as_str()).collect();
    let pausing = kinds.iter().position(|kind| *kind == "pausing").expect("a pause");
    assert_eq!(out[pausing]["by"], "runner");
    assert!(!kinds.contains(&"call.in_doubt"), "nothing was in flight");
    assert!(kinds[pausing..].contains(&"run.resumed"), "{kinds:?}");
}

#[test]
fn server_crash_loses_and_doubles_nothing() {
    let Some(mut team) = RunnerTeam::start() else { return };
    let _runner = team.runner("a", None);
    let mut followed = team.follow(&["checkout-launch", "--format", "jsonl"]);
    let mut out: Vec<Value> = followed
        .lines()
        .take(15)
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
        .collect();
    team.server.restart();
    let (status, rest, err) = followed.end();
    assert_eq!(status.code(), Some(0), "{err}");
    out.extend(lines_of(&rest));
    check_log(&out, &local("checkout-launch"));
}

#[test]
fn runner_refuses_disallowed_runs_with_reason() {
    let Some(team) = RunnerTeam::start() else { return };
    let mut runner = team.runner("a", None);
    let mut followed = team.follow(&["real-services", "--format", "json"]);
    let why = runner.until("does not play");
    assert!(why.contains("--allow") && why.contains("http"), "{why}");
    let began = Instant::now();
    let mut said = String::new();
    while !said.contains("--allow") {
        assert!(began.elapsed() < PATIENCE, "{said}");
        said.push_str(&followed.complains());
    }
    // A live run without a limit of its cost.
    let mut live = team.follow(&["checkout-launch", "--live", "--format", "json"]);
    let why = runner.until("max_cost_usd");
    assert!(why.contains("a live run needs a cost limit"), "{why}");
    followed.kill();
    live.kill();
}

#[test]
fn unusable_cluster_error_advises_fix() {
    let home = Home::new();
    let ran = home.run(&["run", "checkout-launch", "--on", "nats://127.0.0.1:1"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.err.contains("cluster serve"), "{}", ran.err);
    let ran = home.run(&["run", "checkout-launch", "--on"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("[cluster]"), "{}", ran.err);
    let ran = home.run(&["cluster", "status", "--on", "nats://ann:hush@127.0.0.1"]);
    assert!(ran.err.contains("ROUNDTABLE_NATS_USER") && !ran.err.contains("hush"), "{ran:?}");
    let Some(server) = NatsServer::start() else { return };
    let ran = home.run(&["run", "checkout-launch", "--instant", "--on", &server.url()]);
    assert!(ran.err.contains("cluster init"), "{ran:?}");
    let ran = home.run(&["cluster", "status", "--on", &server.url()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("missing"), "{ran:?}");
}

#[test]
fn repeated_init_changes_nothing() {
    let Some(team) = RunnerTeam::start() else { return };
    let url = team.server.url();
    let again = team.home.run(&["cluster", "init", "--on", &url]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.out.matches("is there").count(), 7, "{}", again.out);
    let status = team.home.run(&["cluster", "status", "--on", &url, "--json"]).json();
    let parts = status["parts"].as_array().expect("a list");
    assert!(parts.iter().all(|part| part["ready"] == true), "{status}");
}

#[test]
fn a_login_comes_from_the_environment() {
    let login = "authorization { user: ann, password: hush }";
    let Some(server) = NatsServer::start_with(login) else { return };
    let (home, url) = (Home::new(), server.url());
    let refused = home.run(&["cluster", "init", "--on", &url]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("ROUNDTABLE_NATS_PASSWORD"), "{}", refused.err);
    let mut command = home.command(&["cluster", "init", "--on", &url]);
    command.env("ROUNDTABLE_NATS_USER", "ann").env("ROUNDTABLE_NATS_PASSWORD", "hush");
    let made = end(&mut command);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(!format!("{made:?}").contains("hush"));
}

#[test]
fn foreign_live_run_asks_before_submit() {
    let home = Home::new();
    let shipped = include_str!("../../scenarios/checkout-unanimous.toml");
    home.write("mine.toml", &format!("# Somebody's copy.\n{shipped}"));
    // Nothing is connected to before.
    let args = ["run", "mine.toml", "--live", "--on", "nats://127.0.0.1:1"];
    let asked = home.run(&args);
    assert_eq!(asked.code, Some(2), "{asked:?}");
    for part in ["--trust", "with the keys of a runner"] {
        assert!(asked.err.contains(part), "{part}: {}", asked.err);
    }
    let address = "model.base_url=http://127.0.0.1:9/v1";
    let asked = home.run(&[&args[..], &["--set", address]].concat());
    assert!(asked.err.contains("an address that the scenario sets"), "{}", asked.err);
    let scripted = home.run(&["run", "mine.toml", "--on", "nats://127.0.0.1:1"]);
    assert_eq!(scripted.code, Some(6), "{scripted:?}");
    let allowed = home.run(&[&args[..], &["--trust"]].concat());
    assert_eq!(allowed.code, Some(6), "{allowed:?}");
}

#[test]
fn waiting_batch_names_cause_and_cancels() {
    let Some(team) = RunnerTeam::start() else { return };
    let args = ["checkout-launch", "--times", "3", "--jobs", "2", "--pause-at", "round:2"];
    let mut batch = team.follow(&args);
    let mut said = String::new();
    while !said.contains("no runner of pool default has taken a run yet") {
        said.push_str(&batch.complains());
    }
    let mut runner = team.runner("a", None);
    for _ in 0..2 {
        runner.until("plays");
    }
    batch.signal("INT");
    let (status, out, err) = batch.end();
    assert_eq!(status.code(), Some(130), "{err}");
    // The third was not handed over any more.
    assert!(out.contains("2  100.0 %  cancelled"), "{out}{err}");
    assert!(out.contains(" --on nats://127.0.0.1"), "{out}");
}
