//! What waits while a person is asked: the clock of the run, timeouts, pauses, slots, probes.

use std::time::Duration;

use tokio::time::advance;

use super::*;
use crate::log::event::Initiator;

/// A coordinator that consults two members at once: one waits for a person, one for its tool.
const PARALLEL: &str = r#"
title = "Two"
pattern = "team"
goal = "G"
[budget]
max_seconds = 30
[team]
root = "boss"
[agents.boss]
description = "The coordinator."
members = ["a", "b"]
parallel_tools = true
[agents.a]
description = "A."
tools = ["refund"]
[agents.b]
description = "B."
tools = ["slow"]
[tools.refund]
description = "Refunds."
approve = true
fixture = { rows = [{ result = { ok = true } }] }
[tools.slow]
description = "Takes its time."
timeout_s = 60
fixture = { rows = [{ result = { ok = true }, latency = "10s" }] }
[tools.a]
timeout_s = 5
[[script]]
agent = "boss"
round = 1
calls = [{ tool = "a", args = { request = "x" } }, { tool = "b", args = { request = "x" } }]
[[script]]
agent = "boss"
text = "Done."
[[script]]
agent = "a"
round = 1
calls = [{ tool = "refund" }]
[[script]]
agent = "a"
text = "A done."
[[script]]
agent = "b"
round = 1
calls = [{ tool = "slow" }]
[[script]]
agent = "b"
text = "B done."
"#;

fn parallel() -> (RunHandle, Recorder) {
    let (scenario, tool) = (read(PARALLEL, &[]), Recorder::default());
    let mut tools = Toolbox::offline(&scenario, false);
    tools.replace("refund", Box::new(tool.clone()));
    let launch = Launch {
        tools: Some(tools),
        people: PeopleMode::Wait,
        ..Launch::scripted(scenario, false)
    };
    (engine().start(launch), tool)
}

/// The clock runs while one branch works, and stands while both wait.
#[tokio::test(start_paused = true)]
async fn clock_stands_while_all_wait() {
    let (run, tool) = parallel();
    let question = asked(&run, 1).await;
    let clock = |run: &RunHandle| run.control.active().as_secs();
    advance(Duration::from_secs(4)).await;
    tokio::task::yield_now().await;
    assert_eq!(clock(&run), 4, "the other branch works");
    for _ in 0..8 {
        advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(clock(&run), 10, "the other branch has ended");
    advance(Duration::from_secs(3_600)).await;
    assert_eq!(clock(&run), 10, "max_seconds and the timeout of the member do not count the wait");
    answer(&run, &question, approve());
    let events = facts(&run).await;
    assert_eq!(stop_reason(&events), "success");
    assert_eq!(tool.calls().len(), 1);
    let world = world(&events);
    let outcome = world.outcome().expect("an outcome");
    assert_eq!((outcome.elapsed_ms / 1_000, outcome.paused_ms / 1_000), (10, 3_602));
    // The fold knows the same from the events alone.
    assert_eq!(world.progress.run_time(world.progress.at).as_secs(), 10);
    let questions = outcome.questions.expect("questions");
    assert_eq!((questions.asked, questions.by_person), (1, 1));
    assert_eq!(questions.median_wait_ms.map(|ms| ms / 1_000), Some(3_612));
}

#[tokio::test(start_paused = true)]
async fn answer_during_a_pause_waits() {
    let (run, tool) = start(&desk("approve = true", ""));
    let question = asked(&run, 1).await;
    run.send(Command::Pause { by: Initiator::You });
    let paused =
        crate::support::table::until(&run, |kind| matches!(kind, EventKind::Paused { .. }));
    paused.await;
    answer(&run, &question, approve());
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(tool.calls().len(), 0, "the run is paused");
    run.send(Command::Resume { by: Initiator::You });
    let events = facts(&run).await;
    assert_eq!(tool.calls().len(), 1);
    assert_eq!(
        kinds(&events, &["question.", "paus", "resumed"]),
        ["question.asked", "pausing", "paused", "question.answered", "paused", "resumed"]
    );
}

#[tokio::test(start_paused = true)]
async fn deadline_runs_through_a_pause() {
    let (run, tool) = start(&desk("approve = { timeout = \"10m\" }", ""));
    asked(&run, 1).await;
    run.send(Command::Pause { by: Initiator::You });
    let answered =
        crate::support::table::until(&run, |kind| matches!(kind, EventKind::QuestionAnswered(_)));
    answered.await;
    run.send(Command::Resume { by: Initiator::You });
    let events = facts(&run).await;
    assert_eq!(answers(&events)[0].by, AnsweredBy::Nobody);
    assert_eq!(tool.calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn late_question_pauses_the_run() {
    let (run, tool) = start(&desk("approve = { timeout = \"10m\", otherwise = \"pause\" }", ""));
    let question = asked(&run, 1).await;
    let pausing = crate::support::table::until(&run, |kind| {
        matches!(kind, EventKind::Pausing { by: Initiator::Question, .. })
    });
    pausing.await;
    answer(&run, &question, approve());
    run.send(Command::Resume { by: Initiator::You });
    facts(&run).await;
    assert_eq!(tool.calls().len(), 1, "the question has stayed open");
}

/// A pause by the operator is not one of the question.
#[tokio::test(start_paused = true)]
async fn late_answer_keeps_operator_pause() {
    let (run, tool) = start(&desk("approve = { timeout = \"10m\", otherwise = \"pause\" }", ""));
    let question = asked(&run, 1).await;
    run.send(Command::Pause { by: Initiator::You });
    advance(Duration::from_secs(700)).await;
    tokio::task::yield_now().await;
    answer(&run, &question, approve());
    crate::support::table::until(&run, |kind| matches!(kind, EventKind::QuestionAnswered(_))).await;
    advance(Duration::from_secs(60)).await;
    assert_eq!(tool.calls().len(), 0, "the run is still paused");
    run.send(Command::Resume { by: Initiator::You });
    let events = facts(&run).await;
    assert_eq!(kinds(&events, &["run.resumed", "resumed"]).len(), 1);
    assert_eq!(tool.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelled_branch_withdraws_its_question() {
    let (run, tool) = start(&desk("approve = true", ""));
    asked(&run, 1).await;
    run.send(Command::Cancel);
    let events = facts(&run).await;
    assert_eq!(kinds(&events, &["question."]), ["question.asked", "question.withdrawn"]);
    assert_eq!(stop_reason(&events), "cancelled");
    assert_eq!(tool.calls().len(), 0);
    assert_eq!(world(&events).questions.open().len(), 0);
}

/// A member that is a probe of its breaker waits for a person: another call is the probe meanwhile.
#[tokio::test(start_paused = true)]
async fn waiting_probe_is_given_back() {
    let text = PARALLEL.replace(
        "[tools.a]\ntimeout_s = 5",
        "[tools.a]\nbreaker = { fail_threshold = 1, open_for_s = 1 }",
    );
    let run = engine()
        .start(Launch { people: PeopleMode::Wait, ..Launch::scripted(read(&text, &[]), false) });
    let guard = |run: &RunHandle| {
        let snapshots = run.tool_snapshots();
        let member = snapshots.into_iter().find(|guard| guard.tool.as_str() == "a");
        format!("{:?}", member.expect("a member").breaker)
    };
    run.send(Command::Breaker {
        tool: "a".into(),
        action: crate::log::event::command::BreakerOverride::Reset,
        by: Initiator::You,
    });
    asked(&run, 1).await;
    assert!(guard(&run).contains("Closed"), "{}", guard(&run));
    run.send(Command::Cancel);
    facts(&run).await;
}

/// While nobody answers, nothing wakes the run but its deadline.
#[tokio::test(start_paused = true)]
async fn waiting_run_has_one_timer() {
    let real = std::time::Instant::now();
    let (run, _) = start(&desk("approve = { timeout = \"10h\" }", ""));
    asked(&run, 1).await;
    let before = run.bus().len();
    // With a stopped clock, tokio moves to the next timer: it is the deadline. That goes by the time of
    // the wall, which also goes on by the real duration of this test.
    let started = tokio::time::Instant::now();
    facts(&run).await;
    let (waited, deadline) = (started.elapsed(), Duration::from_hours(10));
    let moment = Duration::from_millis(2);
    let earliest = deadline.saturating_sub(real.elapsed() + moment);
    assert!((earliest..=deadline + moment).contains(&waited), "{waited:?}");
    assert!(run.bus().len() > before);
}
