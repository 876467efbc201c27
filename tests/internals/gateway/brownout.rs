//! The incident of the cascading failures source document, guarded and naive, under paused time: the
//! same agents, the same flaky vendor, the same call slots.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Launch;
use crate::log::event::command::BreakerOverride;
use crate::log::event::{BreakerCause, BreakerStage, Command, EventKind, Initiator, World};
use crate::scenario;
use crate::scenario::Override;
use crate::support::plan::{engine, facts, world};

async fn brownout(through_guards: bool, seed: u64) -> World {
    let shipped = scenario::shipped().iter().find(|it| it.name == "vendor-brownout");
    let shipped = shipped.expect("it is shipped");
    let guarded = Override::new("inputs.guarded", if through_guards { "true" } else { "false" });
    let turns = Override::new("resilience.turns", "8").expect("an override");
    let sets = [guarded.expect("an override"), turns];
    let scenario = match scenario::load(shipped.text, shipped.origin(), &sets) {
        Ok(scenario) => Arc::new(scenario),
        Err(problems) => panic!("{}", problems.pretty(false)),
    };
    let launch = Launch { seed: Some(seed), ..Launch::scripted(scenario, false) };
    let world = world(&engine().start(launch)).await;
    let closed = world.progress.closed.as_ref().expect("closed");
    assert_eq!(closed.in_flight, 0);
    // Naive, the vendor stays down as long as the agents do not let go of it.
    assert!(closed.reason.is_success() || !through_guards, "{}", closed.reason);
    world
}

fn p95(world: &World, tool: &str) -> Duration {
    let row = world.tools.get(tool).expect("a tool");
    row.latencies.percentile(95).expect("enough calls")
}

fn amplification(world: &World) -> f64 {
    world.tools.get("enrich").and_then(|row| row.tally.amplification()).expect("calls")
}

#[tokio::test(start_paused = true)]
async fn guarded_run_avoids_meltdown() {
    for seed in [1, 42, 2_026] {
        let (guarded, naive) = (brownout(true, seed).await, brownout(false, seed).await);
        let (small, large) = (amplification(&guarded), amplification(&naive));
        println!("seed {seed}: amplification {small:.2} and {large:.2}");
        assert!(small <= 1.2, "guarded: {small:.2} requests for each call");
        assert!(large > 3.0, "naive: {large:.2} requests for each call");
        for healthy in ["orders", "search"] {
            let (better, worse) = (p95(&guarded, healthy), p95(&naive, healthy));
            println!("seed {seed}: {healthy} p95 {better:?} and {worse:?}");
            assert!(worse >= better * 3, "{healthy}: p95 {better:?} guarded, {worse:?} naive");
        }
        let load = |world: &World| world.tools.get("enrich").map_or(0, |row| row.peak);
        assert!(load(&guarded) < load(&naive), "the vendor bears less");
    }
}

/// The course that a person watches: it opens, a probe finds out, it closes again, and the results
/// missed meanwhile are reported.
#[tokio::test(start_paused = true)]
async fn guarded_breaker_opens_and_recovers() {
    let world = brownout(true, 42).await;
    let row = world.tools.get("enrich").expect("the vendor");
    let moves: Vec<BreakerStage> = row.history.iter().map(|it| it.to).collect();
    assert_eq!(moves.first(), Some(&BreakerStage::Open));
    assert!(moves.contains(&BreakerStage::HalfOpen));
    assert_eq!(moves.last(), Some(&BreakerStage::Closed), "{moves:?}");
    assert!(row.tally.circuit_open > 0);
    assert!(world.is_degraded());
    assert!(row.tally.cached > 0 && row.tally.fallback > 0, "{:?}", row.tally);
    assert!(row.peak <= row.head.limits.bulkhead.expect("a bulkhead").max_in_flight);
    assert!(!world.alerts.all().is_empty());
    let storm = world.resilience().expect("agents");
    let plan = &*storm.plan;
    let asked = u64::from(plan.agents) * u64::from(plan.turns) * plan.steps.len() as u64;
    assert_eq!(storm.answered + storm.degraded + storm.failed, asked, "nothing was lost");
    assert_eq!((storm.in_use, storm.waiting), (0, 0));
}

/// The naive gateway has no policy left but its time-out, so all that is asked is attempted.
#[tokio::test(start_paused = true)]
async fn naive_gateway_has_no_breaker() {
    let world = brownout(false, 42).await;
    let row = world.tools.get("enrich").expect("the vendor");
    assert!(row.history.is_empty());
    assert_eq!(row.tally.refused() + row.tally.degraded(), 0);
    assert!(row.tally.repeats > 0, "the agents try again");
    assert!(row.tally.retries > 0, "the tool's wrapper tries again");
    assert!(row.tally.client_retries > 0, "its client tries again");
}

/// Fault 25: when no tool will be had for the rest of the run, it stops early with the reason.
#[tokio::test(start_paused = true)]
async fn open_breakers_stop_run_early() {
    let shipped = scenario::shipped().iter().find(|it| it.name == "vendor-brownout");
    let shipped = shipped.expect("it is shipped");
    let scenario = scenario::load(shipped.text, shipped.origin(), &[]);
    let scenario =
        Arc::new(scenario.unwrap_or_else(|problems| panic!("{}", problems.pretty(false))));
    let run = engine().start(Launch::scripted(scenario, false));
    for tool in ["enrich", "scores", "orders", "search"] {
        let action = BreakerOverride::Hold;
        run.send(Command::Breaker { tool: tool.into(), action, by: Initiator::You });
    }
    let world = world(&run).await;
    let closed = world.progress.closed.as_ref().expect("closed");
    assert_eq!(closed.reason.to_string(), "circuit_open:enrich");
    assert!(closed.elapsed_ms < 10_000, "{}", closed.elapsed_ms);
}

/// An injected fault is in front of the tool, so the naive client meets it like a fault of the vendor.
#[tokio::test(start_paused = true)]
async fn injected_faults_are_amplified_too() {
    let shipped = scenario::shipped().iter().find(|it| it.name == "vendor-brownout");
    let shipped = shipped.expect("it is shipped");
    let sets = [
        ("inputs.guarded", "false"),
        ("resilience.agents", "1"),
        ("resilience.turns", "1"),
        ("tools.orders.faults", "[{kind='errors',percent=100,status=503}]"),
    ];
    let sets: Vec<Override> =
        sets.iter().map(|(path, to)| Override::new(path, to).expect("an override")).collect();
    let scenario = scenario::load(shipped.text, shipped.origin(), &sets);
    let scenario =
        Arc::new(scenario.unwrap_or_else(|problems| panic!("{}", problems.pretty(false))));
    let world = world(&engine().start(Launch::scripted(scenario, false))).await;
    let plan = &*world.resilience().expect("agents").plan;
    let tally = world.tools.get("orders").expect("a tool").tally;
    assert_eq!(tally.requests(), u64::from(plan.naive_attempts), "client x tool x agent");
}

/// The vendor fails four calls in five, never five in a row, and is slow later. One breaker counts
/// failures in a row and misses it, the other judges rates. The log folds to what the gateway counted.
#[tokio::test(start_paused = true)]
async fn rate_window_catches_missed_failures() {
    for seed in [1, 42, 2_026] {
        let shipped = scenario::shipped().iter().find(|it| it.name == "vendor-brownout");
        let shipped = shipped.expect("it is shipped");
        let turns = Override::new("resilience.turns", "8").expect("an override");
        let scenario = scenario::load(shipped.text, shipped.origin(), &[turns]);
        let scenario =
            Arc::new(scenario.unwrap_or_else(|problems| panic!("{}", problems.pretty(false))));
        let launch = Launch { seed: Some(seed), ..Launch::scripted(scenario, false) };
        let (mut world, mut causes) = (World::new(), Vec::new());
        for event in facts(&engine().start(launch)).await {
            if let EventKind::BreakerChanged { tool, cause, counted: Some(counted), .. } =
                &event.kind
            {
                assert_eq!(tool.as_str(), "enrich");
                let window = world.tools.get("enrich").and_then(|row| row.window.as_ref());
                assert_eq!(window.map(|it| it.counts(event.at)), Some(*counted), "seed {seed}");
                causes.push(*cause);
            }
            world.apply(&event);
        }
        assert!(causes.contains(&BreakerCause::FailureRate), "seed {seed}: {causes:?}");
        assert!(causes.contains(&BreakerCause::SlowCalls), "seed {seed}: {causes:?}");
        let scores = world.tools.get("scores").expect("the other tool");
        assert!(scores.history.is_empty(), "seed {seed}: {:?}", scores.history);
        assert!(scores.tally.bad > scores.tally.good / 4, "{:?}", scores.tally);
        let enrich = world.tools.get("enrich").expect("the vendor");
        assert_eq!(enrich.breaker, BreakerStage::Closed, "seed {seed}: it recovers");
    }
}
