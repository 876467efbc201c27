//! Whole runs: how many a second on one core, and what a thousand at once weigh.

mod paired;

use std::sync::Arc;
use std::time::Instant;

use paired::{median, report};
use roundtable::{Engine, EngineSettings, Launch, Scenario, ScenarioOrigin, Seq, World, load};

const TEXT: &str = include_str!("../scenarios/checkout-unanimous.toml");

fn unanimous() -> Arc<Scenario> {
    let origin = ScenarioOrigin::Shipped("scenarios/checkout-unanimous.toml");
    Arc::new(load(TEXT, origin, &[]).expect("a good scenario"))
}

fn one_core() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Runs one after another, a hundred at a time, each to its outcome. Gives runs a second.
fn runs_a_second(scenario: &Arc<Scenario>, runs: usize) -> f64 {
    one_core().block_on(async {
        let engine = Engine::new(EngineSettings { finished_bytes: 8 << 20, ..Default::default() });
        let start = Instant::now();
        for _ in 0..runs / 100 {
            let batch: Vec<_> =
                (0..100).map(|_| engine.start(Launch::scripted(scenario.clone(), true))).collect();
            for run in batch {
                run.wait_until_finished().await;
                let mut facts = Vec::new();
                run.bus().reader(Seq(0)).take(&mut facts, usize::MAX);
                let outcome = World::from_events(facts.iter().map(|fact| &**fact)).outcome();
                assert!(outcome.is_some_and(|outcome| outcome.status == "ok"));
            }
        }
        runs as f64 / start.elapsed().as_secs_f64()
    })
}

/// Bytes of memory of this process.
fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split_whitespace().nth(1)?.parse::<u64>().ok().map(|pages| pages * 4096)
}

/// A thousand runs that are all in the middle of their first round.
fn thousand_at_once(scenario: &Arc<Scenario>) -> Option<u64> {
    one_core().block_on(async {
        let engine = Engine::new(EngineSettings::default());
        let before = resident()?;
        for _ in 0..1000 {
            engine.start(Launch::scripted(scenario.clone(), false));
        }
        while engine.in_flight() < 3000 {
            tokio::task::yield_now().await;
        }
        let during = resident()?;
        engine.shutdown().await;
        Some(during.saturating_sub(before))
    })
}

fn main() {
    let scenario = unanimous();
    let weight = thousand_at_once(&scenario);
    report(
        "1,000 runs of checkout-unanimous at once",
        &weight.map_or("not measured here".into(), |bytes| format!("{:.1} MB", bytes as f64 / 1e6)),
        "200 MB",
    );
    let rates: Vec<f64> = (0..5).map(|_| runs_a_second(&scenario, 5_000)).collect();
    report(
        "checkout-unanimous scripted --instant on one core",
        &format!("{:.0} runs/s", median(rates)),
        "5,000 runs/s",
    );
}
