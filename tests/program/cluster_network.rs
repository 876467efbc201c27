//! Runs over a network that fails: a runner that is cut from the server or from its models, answers of the
//! server that are lost or replaced, a runner that was stopped, clocks that are wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::binary::Running;
use crate::support::counting_endpoint::{CountingEndpoint, ModelAttempts, count, surplus};
use crate::support::cut_proxy::CutProxy;
use crate::support::nats_proxy::{Does, NatsProxy};
use crate::support::runners::{
    LIVE, RunnerTeam, TestRunner, check_log, lines_of, local, runner_at,
};

/// The lines of a followed run to its end, and the messages meanwhile.
fn end_of(followed: Running) -> (Vec<Value>, String) {
    let (_, out, err) = followed.end();
    (lines_of(&out), err)
}

/// The next lines of a run.
fn some_lines(followed: &mut Running, count: usize) -> Vec<Value> {
    let lines = followed.lines().take(count);
    lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect()
}

/// A runner whose way to the server is this proxy.
fn runner_behind(
    team: &RunnerTeam,
    proxy: &CutProxy,
    endpoint: Option<&CountingEndpoint>,
) -> TestRunner {
    runner_at(&team.home, &format!("nats://{}", proxy.address()), "a", |command| {
        if let Some(endpoint) = endpoint {
            command.envs(endpoint.env());
        }
    })
}

/// All that was asked of models was announced, and each question was asked again only if it was in doubt.
fn check_questions(lines: &[Value], endpoint: &CountingEndpoint, about: &str) {
    let (asked, attempts) = (endpoint.prompts(), ModelAttempts::of(lines));
    let unannounced = surplus(&count(asked.clone()), &attempts.started());
    assert!(unannounced.is_empty(), "asked before it was stored: {unannounced:#?}: {about}");
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    let (answered, again) = (of("attempt.answered"), of("call.in_doubt"));
    assert!(asked.len() <= answered + again, "{} of {answered} + {again}: {about}", asked.len());
    for (place, event) in lines[..lines.len() - 1].iter().enumerate() {
        assert_eq!(event["seq"], place, "{event}");
    }
    assert_eq!(lines.last().expect("an outcome")["stop_reason"], "success", "{about}");
}

#[test]
fn idle_disconnected_runner_loses_run() {
    let Some(team) = RunnerTeam::start() else { return };
    for closes in [false, true] {
        let proxy = CutProxy::to(team.server.address());
        let mut first = runner_behind(&team, &proxy, None);
        let mut followed = team.follow(&["checkout-launch", "--format", "jsonl"]);
        let mut lines = some_lines(&mut followed, 12);
        if closes {
            proxy.close()
        } else {
            proxy.cut()
        }
        let mut second = team.runner("b", None);
        second.until("continues");
        proxy.remove_fault();
        first.until("belongs to another runner now");
        let (rest, err) = end_of(followed);
        lines.extend(rest);
        check_log(&lines, &local("checkout-launch"));
        assert!(err.contains("b continues") && !err.contains("a continues"), "{err}");
    }
}

#[test]
fn disconnected_runner_keeps_in_flight_answer() {
    let Some(team) = RunnerTeam::start() else { return };
    let (proxy, endpoint) =
        (CutProxy::to(team.server.address()), CountingEndpoint::of("checkout-launch"));
    let mut first = runner_behind(&team, &proxy, Some(&endpoint));
    endpoint.hold(4, false);
    let followed =
        team.follow(&[&["checkout-launch", "--format", "jsonl"][..], &LIVE[..]].concat());
    endpoint.wait_until_held();
    proxy.cut();
    let mut second = team.runner("b", Some(&endpoint));
    second.until("continues");
    endpoint.release();
    proxy.remove_fault();
    first.until("belongs to another runner now");
    let (lines, err) = end_of(followed);
    check_questions(&lines, &endpoint, &err);
    assert!(lines.iter().any(|line| line["adopted"] == true), "{err}");
    assert!(!lines.iter().any(|line| line["kind"] == "call.in_doubt"), "{err}");
}

#[test]
fn unstored_answer_is_in_doubt() {
    let Some(team) = RunnerTeam::start() else { return };
    let (proxy, endpoint) =
        (CutProxy::to(team.server.address()), CountingEndpoint::of("checkout-launch"));
    let mut first = runner_behind(&team, &proxy, Some(&endpoint));
    endpoint.hold(4, false);
    let short = LIVE.map(|part| part.replace("timeout_s=5", "timeout_s=2"));
    let args: Vec<&str> = ["checkout-launch", "--format", "jsonl"]
        .into_iter()
        .chain(short.iter().map(String::as_str))
        .collect();
    let followed = team.follow(&args);
    endpoint.wait_until_held();
    proxy.cut();
    endpoint.release();
    let second = team.runner("b", Some(&endpoint));
    let (lines, err) = end_of(followed);
    proxy.remove_fault();
    first.until("belongs to another runner now");
    drop(second);
    check_questions(&lines, &endpoint, &err);
    assert!(lines.iter().any(|line| line["kind"] == "call.in_doubt"), "{err}");
    assert!(err.contains("b continues") && !err.contains("a continues"), "{err}");
}

#[test]
fn runner_without_models_keeps_run() {
    let Some(team) = RunnerTeam::start() else { return };
    let endpoint = CountingEndpoint::of("checkout-launch");
    let vendor = CutProxy::to(endpoint.address());
    let mut first = team.runner_with("a", Some(&endpoint), |command| {
        command.env("OPENAI_BASE_URL", format!("http://{}/v1", vendor.address()));
    });
    let short = LIVE.map(|part| part.replace("timeout_s=5", "timeout_s=1"));
    let args: Vec<&str> = ["checkout-launch", "--format", "jsonl"]
        .into_iter()
        .chain(short.iter().map(String::as_str))
        .collect();
    endpoint.hold(3, true);
    let mut followed = team.follow(&args);
    first.until("plays");
    endpoint.wait_until_held();
    vendor.cut();
    endpoint.release();
    let _second = team.runner("b", Some(&endpoint));
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &Value| line["kind"] != "attempt.failed") {
        lines.extend(some_lines(&mut followed, 1));
    }
    // The cluster does not notice: another run is played meanwhile.
    let other = team.run(&["checkout-launch", "--instant", "--format", "jsonl"]);
    check_log(&other.lines(), &local("checkout-launch"));
    vendor.remove_fault();
    let (rest, err) = end_of(followed);
    lines.extend(rest);
    assert!(!err.contains("continues"), "{err}");
    assert_eq!(lines.last().expect("an outcome")["stop_reason"], "success", "{err}");
    let resumed = lines.iter().filter(|line| line["kind"] == "run.resumed").count();
    assert_eq!(resumed, 0, "{err}");
}

#[test]
fn lost_run_passes_to_third_runner() {
    let Some(team) = RunnerTeam::start() else { return };
    let one = |name: &str| {
        team.runner_with(name, None, |command| {
            command.args(["--slots", "1"]);
        })
    };
    let mut first = one("a");
    let mut followed = team.follow(&["checkout-launch", "--format", "jsonl"]);
    let mut lines = some_lines(&mut followed, 12);
    first.process.signal("STOP");
    let mut second = one("b");
    second.until("continues");
    first.process.signal("CONT");
    first.until("belongs to another runner now");
    // It has another run now, and is alive.
    let mut other = team.follow(&["checkout-launch", "--pause-at", "round:2", "--format", "jsonl"]);
    first.until("plays");
    drop(second);
    let mut third = one("c");
    third.until("continues");
    third.until("has ended");
    let (rest, err) = end_of(followed);
    lines.extend(rest);
    check_log(&lines, &local("checkout-launch"));
    assert!(err.contains("b continues") && err.contains("c continues"), "{err}");
    assert!(!err.contains("a continues"), "{err}");
    other.kill();
    // What waits is the other run alone.
    let url = team.server.url();
    let status = team.home.run(&["cluster", "status", "--json", "--on", &url]).json();
    let parts = status["parts"].as_array().expect("a list");
    let queue = parts.iter().find(|part| part["name"] == "RT_TODO").expect("a queue");
    assert_eq!(queue["messages"], 1, "{status}");
}

/// An answer of a server that refuses.
fn refusal(code: u64, number: u64) -> String {
    format!(r#"{{"error":{{"code":{code},"err_code":{number},"description":"refused"}}}}"#)
}

/// Whether a message is appended to a log.
fn is_append(subject: &str) -> bool {
    subject.starts_with("rt.main.f.00.")
}

/// Whether this message appends a group of events.
fn is_group(subject: &str, headers: &str) -> bool {
    is_append(subject) && headers.contains("RT-Kind: events")
}

/// Plays scenarios over a server whose answer to the nth message that `is` picks is `instead`'s: each log
/// is stored once, by one runner. Returns how many messages were picked.
fn stored_once(
    team: &RunnerTeam,
    scenarios: &[&str],
    is: fn(&str, &str) -> bool,
    instead: impl Fn(usize) -> Does + Send + Sync + 'static,
) -> usize {
    let picked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&picked);
    let proxy =
        NatsProxy::to(team.server.address(), move |subject, headers| match is(subject, headers) {
            true => instead(seen.fetch_add(1, Ordering::SeqCst)),
            false => Does::Passes,
        });
    let _runner = runner_at(&team.home, &proxy.url(), "a", |_| ());
    for scenario in scenarios {
        let ran = team.run(&[scenario, "--instant", "--format", "jsonl"]);
        check_log(&ran.lines(), &local(scenario));
        assert!(!ran.err.contains("continues"), "{}", ran.err);
    }
    picked.load(Ordering::SeqCst)
}

#[test]
fn retried_append_is_stored_once() {
    let Some(team) = RunnerTeam::start() else { return };
    // Two of three: claims and events.
    let is_claim_or_event = |subject: &str, _: &str| is_append(subject);
    let picked = stored_once(&team, &["checkout-launch", "dev-team"], is_claim_or_event, |nth| {
        if nth.is_multiple_of(3) { Does::Passes } else { Does::Answers(refusal(503, 10_164)) }
    });
    assert!(picked > 10);
}

#[test]
fn log_end_settles_doubtful_append() {
    let Some(team) = RunnerTeam::start() else { return };
    for answer in [refusal(400, 10_071), "?".to_owned()] {
        let picked = stored_once(&team, &["checkout-launch"], is_group, move |nth| match nth % 2 {
            1 => Does::Replaces(answer.clone()),
            _ => Does::Passes,
        });
        assert!(picked > 1);
    }
}

#[test]
fn refused_append_is_stored_once() {
    let Some(team) = RunnerTeam::start() else { return };
    let picked = stored_once(&team, &["checkout-launch"], is_group, |nth| match nth {
        1 => Does::Answers(refusal(400, 10_071)),
        _ => Does::Passes,
    });
    assert!(picked > 1);
}
