//! Runs to which commands were given, cut after every event: what had taken effect before the cut
//! does so again, at the same place.

use std::sync::Arc;
use std::time::Duration;

use super::{faults, stored};
use crate::engine::{Engine, Launch, Resumption, RunHandle, Schedule};
use crate::log::event::command::BreakerOverride;
use crate::log::event::{
    BoundaryId, BreakerStage, Command, Event, EventKind, Initiator, LimitChange, Seq,
};
use crate::scenario::spec::InDoubt;
use crate::scenario::spec::tool::InjectedFault;
use crate::scenario::{load, shipped};
use crate::support::table::engine;

/// A command that is given once `after` events of the kind `when` are in the log, and the kind of
/// event that says that it has taken effect.
struct Given {
    when: &'static str,
    after: usize,
    command: Command,
    effect: fn(&EventKind) -> bool,
}

const BY: Initiator = Initiator::You;

/// Gives a run these commands, one after another, and reads its log to the end. A command whose
/// effect is among the first `had` events is not given again.
async fn steer(run: &RunHandle, given: &[Given], had: usize) -> Vec<Arc<Event>> {
    let (mut log, mut reader) = (Vec::new(), run.bus().reader(Seq(0)));
    let mut done = 0;
    let mut next = 0;
    while reader.next_batch(&mut log, 1).await > 0 {
        while let Some(rule) = given.get(next) {
            let new = log[done..].iter().filter(|event| event.kind.name() == rule.when).count();
            if new < rule.after {
                break;
            }
            done = log.len();
            next += 1;
            let before = run.bus().len().min(had as u64);
            let mut events = (done as u64..before).filter_map(|seq| run.bus().event(Seq(seq)));
            if !events.any(|event| (rule.effect)(&event.kind)) {
                if let EventKind::Paused { .. } = log[done - 1].kind {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                run.send(rule.command.clone());
            }
        }
    }
    run.wait_until_finished().await;
    log
}

async fn check(name: &str, schedule: Schedule, given: &[Given]) {
    let shipped = shipped().iter().find(|it| it.name == name).expect("a shipped scenario");
    let launch = || {
        let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        Launch { schedule: schedule.clone(), ..Launch::scripted(Arc::new(scenario), false) }
    };
    let full = steer(&engine().start(launch()), given, 0).await;
    for rule in given {
        assert!(full.iter().any(|it| (rule.effect)(&it.kind)), "{name}: {:?}", rule.command);
    }
    let mut wrong = Vec::new();
    // A flag that waits for its boundary is not in the log yet, and is lost with the run.
    let stored_in_order = |cut: usize| {
        let has = |rule: &Given| full[..cut].iter().any(|event| (rule.effect)(&event.kind));
        given.iter().map(has).is_sorted_by(|before, after| before >= after)
    };
    for cut in (1..full.len()).filter(|cut| stored_in_order(*cut)) {
        let engine: Engine = engine();
        let recording = stored(&full[..cut]);
        let resumption = Resumption { recording, by: BY, in_doubt: InDoubt::Retry };
        let run = engine.resume(launch(), resumption).expect("a run without its end");
        let continued = steer(&run, given, cut).await;
        let found = match run.wait_until_live().await {
            Ok(()) => faults(&full, cut, &continued),
            Err(divergence) => vec![divergence.to_string()],
        };
        let place = format!("{name}, cut after {cut} of {}", full.len());
        wrong.extend(found.into_iter().map(|fault| format!("{place}: {fault}")));
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

fn given(
    when: &'static str,
    after: usize,
    command: Command,
    effect: fn(&EventKind) -> bool,
) -> Given {
    Given { when, after, command, effect }
}

#[tokio::test(start_paused = true)]
async fn replay_applies_pauses_and_flag() {
    let shipped = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
    let first = scenario.flags.first().expect("a flag");
    let flag = Command::SetFlag { flag: first.name.clone(), on: !first.default, by: BY };
    let rules = [
        given("attempt.started", 2, Command::Pause { by: BY }, |it| {
            matches!(it, EventKind::Pausing { .. })
        }),
        given("paused", 1, flag, |it| matches!(it, EventKind::FlagChanged { .. })),
        given("paused", 0, Command::Step, |it| matches!(it, EventKind::Stepped { .. })),
        given("paused", 1, Command::StepRound, |it| matches!(it, EventKind::Stepped { .. })),
        given("paused", 1, Command::Resume { by: BY }, |it| {
            matches!(it, EventKind::Resumed { .. })
        }),
    ];
    check("checkout-launch", Schedule::default(), &rules).await;
}

#[tokio::test(start_paused = true)]
async fn replay_applies_scheduled_pause_and_flag() {
    let shipped = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
    let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
    let first = scenario.flags.first().expect("a flag");
    let schedule = Schedule {
        flags: vec![(BoundaryId::new("round:2"), first.name.clone(), !first.default)],
        breaks: vec![BoundaryId::new("round:2")],
        start_paused: true,
    };
    let resumed = |it: &EventKind| matches!(it, EventKind::Resumed { .. });
    let resume = || Command::Resume { by: BY };
    let rules = [given("paused", 1, resume(), resumed), given("paused", 1, resume(), resumed)];
    check("checkout-launch", schedule, &rules).await;
}

#[tokio::test(start_paused = true)]
async fn replay_applies_faults_limits_and_breakers() {
    let tool = || "llm".into();
    let fault = InjectedFault::Errors { percent: 60, status: 503, times: None };
    let inject = Command::Inject { tool: tool(), fault, by: BY };
    let change = Command::SetLimit { tool: tool(), change: LimitChange::MaxAttempts(5), by: BY };
    let trip = Command::Breaker { tool: tool(), action: BreakerOverride::Trip, by: BY };
    let reset = Command::Breaker { tool: tool(), action: BreakerOverride::Reset, by: BY };
    let remove = Command::RemoveFault { tool: tool(), kind: fault.kind(), by: BY };
    let rules = [
        given("attempt.started", 1, change, |it| matches!(it, EventKind::LimitsChanged { .. })),
        given("attempt.started", 0, inject, |it| matches!(it, EventKind::FaultInjected { .. })),
        given("attempt.started", 3, remove, |it| matches!(it, EventKind::FaultRemoved { .. })),
        given("attempt.started", 2, trip, |it| {
            matches!(it, EventKind::BreakerChanged { to: BreakerStage::Open, .. })
        }),
        given("breaker.changed", 1, reset, |it| {
            matches!(it, EventKind::BreakerChanged { to: BreakerStage::Closed, .. })
        }),
    ];
    check("checkout-launch", Schedule::default(), &rules).await;
}

#[tokio::test(start_paused = true)]
async fn replay_applies_concurrency_change() {
    let command = Command::SetParallel { max_parallel: 1, by: BY };
    let rules = [given("attempt.started", 2, command, |it| {
        matches!(it, EventKind::ConcurrencyChanged { .. })
    })];
    check("morning-report", Schedule::default(), &rules).await;
}
