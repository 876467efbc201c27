//! Many runs at once in one session, and the tools that they have in common.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Launch, RunHandle, Schedule};
use crate::log::event::command::BreakerOverride;
use crate::log::event::{
    AttemptFailed, BoundaryId, BreakerStage, Command, EventKind, Initiator, LimitChange,
};
use crate::log::facts::PatternFact;
use crate::log::facts::orchestrator::OrchestratorFact;
use crate::support::plan::{engine, facts, plans, scenario, told, until, with, world};
use futures::FutureExt;
use serde_json::json;
use tokio::time::{Instant, sleep};

fn policy(extra: &str) -> String {
    format!(
        "[tools.money]\nretries = {{ max_attempts = 1 }}\nsafe_mode = {{ enabled = false }}\n{extra}\n"
    )
}

fn moves(facts: &[Arc<crate::log::event::Event>]) -> Vec<BreakerStage> {
    let moves = facts.iter().filter_map(|fact| match &fact.kind {
        EventKind::BreakerChanged { to, .. } => Some(*to),
        _ => None,
    });
    moves.collect()
}

/// One process holds a thousand running runs, and what they share bears all of them together.
#[tokio::test(start_paused = true)]
async fn thousand_runs_share_bulkhead() {
    let shared = policy("shared = true\nbulkhead = { max_in_flight = 40, max_wait_ms = 600000 }");
    let scenario = scenario(&format!("{shared}{}", plans(&[("t1", "money", true)])), &[]);
    let engine = engine();
    let since = Instant::now();
    let runs: Vec<RunHandle> =
        (0..1_000).map(|_| engine.start(Launch::scripted(Arc::clone(&scenario), false))).collect();
    sleep(Duration::from_millis(500)).await;
    let fill = runs[0]
        .tool_snapshots()
        .into_iter()
        .find(|it| it.tool.as_str() == "money")
        .expect("it")
        .fill;
    assert_eq!((fill.in_flight, fill.queued), (40, 960), "all runs stand in one line");
    for run in &runs {
        let world = world(run).await;
        assert!(world.run.progress.closed.is_some_and(|closed| closed.reason.is_success()));
    }
    assert_eq!(since.elapsed(), Duration::from_secs(25), "a second for each forty");
    assert!(
        runs[0]
            .tool_snapshots()
            .iter()
            .all(|tool| tool.fill.in_flight == 0 && tool.fill.queued == 0)
    );
}

#[tokio::test(start_paused = true)]
async fn shared_breaker_change_reaches_all_logs() {
    let shared = policy("shared = true\nbreaker = { fail_threshold = 1 }");
    let scenario = scenario(&format!("{shared}{}", plans(&[("t1", "money", true)])), &[]);
    let (bad, _) = told(|_| async { Err(AttemptFailed::from_status(500, "down")) }.boxed());
    let engine = engine();
    let first = engine.start(with(&scenario, vec![("money", bad)]));
    let (good, _) = told(|_| async { Ok(json!({ "incident": "none" })) }.boxed());
    let waits = Schedule { start_paused: true, ..Schedule::default() };
    let launch = with(&scenario, vec![("money", good)]);
    let second = engine.start(Launch { schedule: waits, ..launch });
    first.wait_until_finished().await;
    second.send(Command::Resume { by: Initiator::You });
    let (first, second) = (facts(&first).await, facts(&second).await);
    assert_eq!(moves(&first), [BreakerStage::Open]);
    assert_eq!(moves(&second), [BreakerStage::Open], "its own log says so too");
    let refused = second.iter().any(|fact| {
        matches!(&fact.kind, EventKind::AttemptRefused { reason, .. } if reason.to_string() == "circuit_open:money")
    });
    assert!(refused);
}

#[tokio::test(start_paused = true)]
async fn unshared_tool_stays_per_run() {
    let own = policy("breaker = { fail_threshold = 1 }");
    let scenario = scenario(&format!("{own}{}", plans(&[("t1", "money", true)])), &[]);
    let engine = engine();
    let (bad, _) = told(|_| async { Err(AttemptFailed::from_status(500, "down")) }.boxed());
    let first = world(&engine.start(with(&scenario, vec![("money", bad)]))).await;
    assert!(!first.run.progress.closed.expect("closed").reason.is_success());
    let second = world(&engine.start(Launch::scripted(scenario, false))).await;
    assert!(second.run.progress.closed.expect("closed").reason.is_success());
}

/// A live manual change: a tripped breaker refuses from the next attempt on, and a reset lets it
/// through.
#[tokio::test(start_paused = true)]
async fn manual_override_moves_live_breaker() {
    let tasks = [("t1", "money", false), ("t2", "money", false), ("t3", "money", false)];
    let scenario =
        scenario(&format!("{}{}", policy(""), plans(&tasks)), &["budget.max_parallel=1"]);
    let breaks = vec!["dispatch:1:t3"].into_iter().map(BoundaryId::new).collect();
    let schedule = Schedule { breaks, ..Schedule::default() };
    let run = engine().start(Launch { schedule, ..Launch::scripted(scenario, false) });
    let action = |action| Command::Breaker { tool: "money".into(), action, by: Initiator::You };
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    until(&run, |kind| {
        matches!(
            kind,
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskStarted {
                index: 0,
                ..
            }))
        )
    })
    .await;
    sleep(Duration::from_millis(500)).await;
    run.send(action(BreakerOverride::Hold));
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    run.send(action(BreakerOverride::Reset));
    run.send(Command::Resume { by: Initiator::You });
    let facts = facts(&run).await;
    assert_eq!(moves(&facts), [BreakerStage::Held, BreakerStage::Closed]);
    let world = crate::log::event::World::from_events(facts.iter().map(|fact| &**fact));
    let orchestrator = world.orchestrator().expect("an orchestrator");
    let reasons: Vec<_> =
        orchestrator.tasks.iter().map(|row| row.reason.as_ref().map(ToString::to_string)).collect();
    // The first was out before it was held; its late answer is stale, and it is good.
    assert_eq!(reasons[0], None);
    assert_eq!(reasons[1].as_deref(), Some("circuit_open:money"));
    assert_eq!(reasons[2], None);
    assert_eq!(world.tools.get("money").expect("it").tally.stale, 1);
}

/// A shared state belongs to a file and to all its settings of the tool, not to a name.
#[tokio::test(start_paused = true)]
async fn different_file_or_policy_separates_tools() {
    let shared = |says: &str| {
        let policy = policy("shared = true");
        let text = format!("{policy}{}\n# {says}", plans(&[("t1", "money", true)]));
        scenario(&text, &[&format!("workers.money.fixture.rows=[{{result={{said='{says}'}}}}]")])
    };
    let engine = engine();
    for says in ["mine", "foreign", "mine"] {
        let world = world(&engine.start(Launch::scripted(shared(says), true))).await;
        let orchestrator = world.orchestrator().expect("an orchestrator");
        let aggregate = orchestrator.aggregate.as_ref().expect("an aggregate");
        assert_eq!(aggregate["money"], json!({ "said": says }));
    }
}

#[tokio::test(start_paused = true)]
async fn new_run_learns_open_breaker() {
    let shared = policy("shared = true\nbreaker = { fail_threshold = 1 }");
    let scenario = scenario(&format!("{shared}{}", plans(&[("t1", "money", true)])), &[]);
    let (bad, _) = told(|_| async { Err(AttemptFailed::from_status(500, "down")) }.boxed());
    let engine = engine();
    engine.start(with(&scenario, vec![("money", bad)])).wait_until_finished().await;
    sleep(Duration::from_secs(10)).await;
    let second = facts(&engine.start(Launch::scripted(scenario, false))).await;
    let stands = second.iter().find_map(|fact| match &fact.kind {
        EventKind::BreakerChanged { to, open_for_ms, .. } => Some((fact.seq.0, *to, *open_for_ms)),
        _ => None,
    });
    assert_eq!(stands, Some((1, BreakerStage::Open, Some(20_000))), "right after the head");
}

/// Nothing that is asked of a run that has ended becomes a fact, and the last fact is the last.
#[tokio::test]
async fn nothing_comes_after_the_last_fact() {
    let shared = policy("shared = true");
    let scenario = scenario(&format!("{shared}{}", plans(&[("t1", "money", true)])), &[]);
    let engine = Arc::new(engine());
    for nth in 0..40 {
        let run = engine.start(Launch::scripted(Arc::clone(&scenario), true));
        let other = run.clone();
        let asks = std::thread::spawn(move || {
            for most in 1..200 {
                let change = LimitChange::MaxInFlight(most);
                other.send(Command::SetLimit { tool: "money".into(), change, by: Initiator::You });
                other.send(Command::SetParallel { max_parallel: most, by: Initiator::You });
            }
        });
        let facts = facts(&run).await;
        asks.join().expect("it ends");
        let last = facts.last().expect("facts").kind.name().to_owned();
        assert_eq!(last, "run.closed", "run {nth}");
    }
}

/// A vendor's flaky time is counted in the run's own time: who pauses to look does not miss it.
#[tokio::test(start_paused = true)]
async fn pause_never_skips_flaky_time() {
    let load = "[workers.money.fixture.load]\ncapacity = 9\nflaky_rate = 1.0\nflaky_from = \"500ms\"\nflaky_until = \"30s\"\n";
    let tasks = plans(&[("t1", "money", false), ("t2", "money", false)]);
    let sets = ["budget.max_parallel=1", "budget.max_retries_per_task=0"];
    let scenario = scenario(&format!("{load}{tasks}"), &sets);
    let schedule = Schedule {
        breaks: [BoundaryId::new("dispatch:1:t2")].into_iter().collect(),
        ..Schedule::default()
    };
    let run = engine().start(Launch { schedule, ..Launch::scripted(scenario, false) });
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    sleep(Duration::from_secs(600)).await;
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    let orchestrator = world.orchestrator().expect("an orchestrator");
    let reasons: Vec<_> =
        orchestrator.tasks.iter().map(|row| row.reason.as_ref().map(ToString::to_string)).collect();
    assert_eq!(reasons, [None, Some("worker_error:money".to_owned())]);
}

/// A run that has ended receives no more events of its shared tools.
#[tokio::test(start_paused = true)]
async fn closed_log_never_grows() {
    let shared = policy("shared = true");
    let scenario = scenario(&format!("{shared}{}", plans(&[("t1", "money", true)])), &[]);
    let engine = engine();
    let first = engine.start(Launch::scripted(Arc::clone(&scenario), false));
    let facts = facts(&first).await.len() as u64;
    let second = engine.start(Launch::scripted(scenario, false));
    let action = BreakerOverride::Trip;
    second.send(Command::Breaker { tool: "money".into(), action, by: Initiator::You });
    second.wait_until_finished().await;
    assert_eq!(first.bus().len(), facts);
}
