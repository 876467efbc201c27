//! Runs that runners play, over a real NATS server: killed, stopped and drained runners, a server that
//! crashes, commands, late answers. An endpoint of the test counts what is asked of models.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::binary::{Ended, Home, Running, end, without_times};
use crate::support::counting_endpoint::{CountingEndpoint, ModelAttempts, count, surplus};
use crate::support::nats::NatsServer;

/// How long anything may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A live run needs a cost limit, and a cost limit a price.
const LIVE: [&str; 10] = [
    "--live",
    "--set",
    "budget.max_cost_usd=5",
    "--set",
    "model.prices.prompt_usd_per_million=1",
    "--set",
    "model.prices.completion_usd_per_million=1",
    "--set",
    "tools.llm.timeout_s=5",
    "--trust",
];

/// A server with what runs need, and a home.
struct Team {
    server: NatsServer,
    home: Home,
}

/// A runner, and what it said.
struct TestRunner {
    process: Running,
}

impl TestRunner {
    /// Waits until it says something with these words.
    fn until(&mut self, words: &str) -> String {
        loop {
            let line = self.process.complains();
            assert!(!line.is_empty(), "the runner ended before it said `{words}`");
            if line.contains(words) {
                return line;
            }
        }
    }
}

impl Drop for TestRunner {
    fn drop(&mut self) {
        self.process.kill();
    }
}

impl Team {
    /// `None`: there is no server, which is said.
    fn start() -> Option<Self> {
        let team = Self { server: NatsServer::start()?, home: Home::new() };
        let made = team.home.run(&["cluster", "init", "--on", &team.server.url()]);
        assert_eq!(made.code, Some(0), "{made:?}");
        Some(team)
    }

    /// A runner that takes runs of others over after a second.
    fn runner(&self, name: &str, endpoint: Option<&CountingEndpoint>) -> TestRunner {
        let url = self.server.url();
        let args =
            ["runner", "--on", &url, "--name", name, "--takeover-after", "1s", "--allow", "live"];
        let mut command = self.home.command(&args);
        if let Some(endpoint) = endpoint {
            command.envs(endpoint.env());
        }
        let mut runner = TestRunner { process: Running::start(&mut command) };
        runner.until("plays runs of pool");
        runner
    }

    fn args<'a>(&self, url: &'a str, args: &[&'a str]) -> Vec<&'a str> {
        [&["run"], args, &["--on", url]].concat()
    }

    /// Hands a run over and follows it to its end.
    fn run(&self, args: &[&str]) -> Ended {
        let url = self.server.url();
        end(&mut self.home.command(&self.args(&url, args)))
    }

    /// Hands a run over and follows it.
    fn follow(&self, args: &[&str]) -> Running {
        let url = self.server.url();
        let mut command = self.home.command(&self.args(&url, args));
        Running::start(&mut command)
    }
}

/// The outcome of a scenario that is played here.
fn local(scenario: &str) -> Value {
    let ran = Home::new().run(&["run", scenario, "--instant", "--no-store", "--format", "json"]);
    let outcome = without_times(&ran.json());
    // A runner plays the first message of a session.
    outcome.get("session").map_or(outcome.clone(), |session| session[0].clone())
}

/// The places are contiguous, there is one end, and the outcome is that of an undisturbed run.
fn check_log(lines: &[Value], expected: &Value) {
    let (outcome, events) = lines.split_last().expect("an outcome");
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], place, "{event}");
    }
    let ends = events.iter().filter(|event| event["kind"] == "run.closed").count();
    assert_eq!(ends, 1);
    let mut outcome = without_times(outcome);
    for key in ["v", "run", "kind"] {
        outcome.as_object_mut().expect("an object").remove(key);
    }
    assert_eq!(outcome, *expected);
}

fn lines_of(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_run_on_a_runner_is_the_same_as_here() {
    let Some(team) = Team::start() else { return };
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
fn a_run_whose_runner_is_killed_is_continued_by_another() {
    let Some(team) = Team::start() else { return };
    for (scenario, events) in [("checkout-launch", 12), ("dev-team", 20), ("front-desk", 6)] {
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
    }
}

#[test]
fn no_stored_answer_is_asked_for_again_when_a_runner_is_killed() {
    let Some(team) = Team::start() else { return };
    for (scenario, nth, replies_first) in
        [("checkout-launch", 5, true), ("checkout-launch", 7, false), ("front-desk", 2, true)]
    {
        let endpoint = CountingEndpoint::of(scenario);
        let first = team.runner("a", Some(&endpoint));
        endpoint.hold(nth, replies_first);
        let args = [&[scenario, "--format", "jsonl"][..], &LIVE[..]].concat();
        let mut followed = team.follow(&args);
        endpoint.wait_until_held();
        drop(first);
        endpoint.release();
        let second = team.runner("b", Some(&endpoint));
        let lines: Vec<Value> = followed
            .lines()
            .map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
            .collect();
        drop(second);
        let (_, _, err) = followed.end();
        let about = format!("{scenario}, request {nth}, replied: {replies_first}: {err}");
        let attempts = ModelAttempts::of(&lines);
        let asked = endpoint.prompts();
        let unannounced = surplus(&count(asked.clone()), &attempts.started());
        assert!(unannounced.is_empty(), "{about}: asked before it was stored: {unannounced:#?}");
        // Only the call that was in flight is made again.
        let again = lines.iter().filter(|line| line["kind"] == "call.in_doubt").count();
        let needed = lines.iter().filter(|line| line["kind"] == "attempt.answered").count();
        assert!(asked.len() <= needed + again, "{about}: {} asked", asked.len());
        assert_eq!(lines.last().expect("an outcome")["stop_reason"], "success", "{about}");
    }
}

#[test]
fn a_runner_that_was_stopped_leaves_the_answer_that_it_has_paid_for() {
    let Some(team) = Team::start() else { return };
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
    // What was in flight, of one seat or of several, was asked once.
    assert!(answered.iter().any(|it| it["adopted"] == true), "{err}");
    let in_doubt: Vec<&Value> = lines.iter().filter(|it| it["kind"] == "call.in_doubt").collect();
    assert!(in_doubt.is_empty(), "{in_doubt:?}");
    assert_eq!(endpoint.prompts().len(), answered.len(), "{err}");
    assert_eq!(lines.last().expect("an outcome")["stop_reason"], "success", "{err}");
}

#[test]
fn a_runner_that_is_told_to_stop_gives_its_runs_back() {
    let Some(team) = Team::start() else { return };
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
fn a_server_that_crashes_loses_nothing_and_doubles_nothing() {
    let Some(mut team) = Team::start() else { return };
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
fn a_runner_plays_only_what_it_allows_and_says_why() {
    let Some(team) = Team::start() else { return };
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
fn a_cluster_that_cannot_be_used_says_what_to_do() {
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
fn making_what_runs_need_twice_changes_nothing() {
    let Some(team) = Team::start() else { return };
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
