//! Runners that die or stop at any place of a run: an answered call is never repeated, and the run ends
//! as an undisturbed one.

use std::thread;

use serde_json::Value;

use crate::support::binary::Home;
use crate::support::counting_endpoint::{CountingEndpoint, ModelAttempts, count, surplus};
use crate::support::runners::{LIVE, RunnerTeam, check_log, lines_of, local};

fn event(line: std::io::Result<String>) -> Value {
    serde_json::from_str(&line.expect("a line")).expect("JSON")
}

/// What the kills of live runs came to.
#[derive(Default)]
pub(super) struct Paid {
    pub reason: Value,
    asked: usize,
    answered: usize,
    in_doubt: usize,
    adopted: usize,
}

/// Kills the runner of a live run at its `nth` request, before or after the reply; `None`: the run has
/// fewer requests.
pub(super) fn kill_at_request(
    team: &RunnerTeam,
    scenario: &str,
    nth: usize,
    replies_first: bool,
) -> Paid {
    let endpoint = CountingEndpoint::of(scenario);
    let first = team.runner("a", Some(&endpoint));
    endpoint.hold(nth, replies_first);
    let args = [&[scenario, "--format", "jsonl"][..], &LIVE[..]].concat();
    let mut followed = team.follow(&args);
    endpoint.wait_until_held();
    drop(first);
    endpoint.release();
    let second = team.runner("b", Some(&endpoint));
    let lines: Vec<Value> = followed.lines().map(event).collect();
    drop(second);
    let (_, _, err) = followed.end();
    let about = format!("{scenario}, request {nth}, replied: {replies_first}: {err}");
    let outcome = lines.last().expect("an outcome");
    let reason = outcome.get("stop_reason").unwrap_or(&outcome["messages_answered"]);
    assert!(!reason.to_string().contains("error"), "{about}: {reason}");
    let asked = endpoint.prompts();
    let mut started = count([]);
    for run in lines.chunk_by(|_, next| next["kind"] != "run.started") {
        for (prompt, times) in ModelAttempts::of(run).started() {
            *started.entry(prompt).or_default() += times;
        }
    }
    let unannounced = surplus(&count(asked.clone()), &started);
    assert!(unannounced.is_empty(), "{about}: asked before it was stored: {unannounced:#?}");
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    let adopted = lines.iter().filter(|line| line["adopted"] == true).count();
    let (answered, in_doubt) = (of("attempt.answered"), of("call.in_doubt"));
    // Only calls in flight are made again.
    assert!(asked.len() <= answered + in_doubt, "{about}: {} asked", asked.len());
    Paid { reason: reason.clone(), asked: asked.len(), answered, in_doubt, adopted }
}

/// Kills the runner of a scripted run when its follower has seen so many events.
fn kill_at_event(team: &RunnerTeam, scenario: &str, events: usize, expected: &Value) {
    let first = team.runner("a", None);
    let mut followed = team.follow(&[scenario, "--format", "jsonl"]);
    let mut out: Vec<Value> = followed.lines().take(events).map(event).collect();
    drop(first);
    let second = team.runner("b", None);
    let (_, rest, err) = followed.end();
    drop(second);
    out.extend(lines_of(&rest));
    assert!(!out.is_empty(), "{scenario} at {events}: {err}");
    check_log(&out, expected);
}

/// So many places between the first and the last, in parallel on clusters of their own.
fn at_each(places: impl Iterator<Item = usize>, kill: impl Fn(&RunnerTeam, usize) + Sync) {
    let places: Vec<usize> = places.collect();
    thread::scope(|scope| {
        for lane in 0..4 {
            let (places, kill) = (&places, &kill);
            scope.spawn(move || {
                let Some(team) = RunnerTeam::start() else { return };
                places.iter().skip(lane).step_by(4).for_each(|place| kill(&team, *place));
            });
        }
    });
}

/// `cargo test --test program -- --ignored takeover_works_at_each_event`: three minutes.
#[test]
#[ignore = "three minutes; cluster::another_runner_resumes_killed_run is its sample"]
fn takeover_works_at_each_event() {
    let expected = local("checkout-launch");
    let all = lines_of(&local_log("checkout-launch")).len() - 1;
    at_each(1..all, |team, events| kill_at_event(team, "checkout-launch", events, &expected));
    eprintln!(
        "{} kills, one at each event: every outcome and log is that of an undisturbed run",
        all - 1
    );
}

fn local_log(scenario: &str) -> String {
    Home::new().run(&["run", scenario, "--instant", "--no-store", "--format", "jsonl"]).out
}

/// `cargo test --test program -- --ignored takeover_works_at_each_request`: three minutes.
#[test]
#[ignore = "three minutes; cluster::killed_runner_repeats_no_stored_call is its sample"]
fn takeover_works_at_each_request() {
    for scenario in ["checkout-launch", "support-swarm", "front-desk"] {
        let endpoint = CountingEndpoint::of(scenario);
        endpoint.run(&Home::new(), &["run", scenario, "--live", "--no-store", "--format", "json"]);
        let needed = endpoint.prompts().len();
        let total = std::sync::Mutex::new(Paid::default());
        at_each(1..2 * needed + 1, |team, place| {
            let paid = kill_at_request(team, scenario, place.div_ceil(2), place % 2 == 0);
            let mut total = total.lock().expect("a lock");
            total.asked += paid.asked;
            total.answered += paid.answered;
            total.in_doubt += paid.in_doubt;
            total.adopted += paid.adopted;
        });
        let Paid { asked, answered, in_doubt, adopted, .. } = total.into_inner().expect("a lock");
        eprintln!(
            "{scenario}: {} kills, {asked} calls paid, {answered} answers stored ({adopted} adopted), \
             {in_doubt} in doubt, 0 asked again after they were stored",
            2 * needed
        );
    }
}

#[test]
fn frozen_runner_fails_next_write() {
    let Some(team) = RunnerTeam::start() else { return };
    let endpoint = CountingEndpoint::of("checkout-launch");
    let mut first = team.runner("a", Some(&endpoint));
    let pause = ["checkout-launch", "--format", "jsonl", "--pause-at", "round:2"];
    let mut followed = team.follow(&[&pause[..], &LIVE[..]].concat());
    let mut out = Vec::new();
    for line in followed.lines() {
        out.push(event(line));
        if out.last().is_some_and(|event| event["kind"] == "paused") {
            break;
        }
    }
    // Nothing is in flight: the run waits at its boundary.
    first.process.signal("STOP");
    let mut second = team.runner("b", Some(&endpoint));
    second.until("continues");
    first.process.signal("CONT");
    first.until("belongs to another runner now");
    // The new owner waits at the same boundary; a third one, after it returns the run.
    second.process.signal("TERM");
    second.until("returned");
    followed.signal("INT");
    let third = team.runner("c", Some(&endpoint));
    let (status, rest, err) = followed.end();
    drop(third);
    out.extend(lines_of(&rest));
    assert_eq!(status.code(), Some(130), "{err}");
    let (outcome, events) = out.split_last().expect("an outcome");
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], place, "{event}");
    }
    assert_eq!(outcome["stop_reason"], "cancelled", "{err}");
    let answered = events.iter().filter(|it| it["kind"] == "attempt.answered").count();
    assert_eq!(endpoint.prompts().len(), answered, "{err}");
    assert!(events.iter().all(|it| it["kind"] != "call.in_doubt"), "nothing was in flight");
}
