//! Live runs of the shipped scenarios over an endpoint that is not reliable: a quarter of connections
//! breaks, a tenth of the replies in JSON breaks its contract.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::log::event::World;
use crate::scenario;
use crate::support::relay;
use crate::support::relay::{Does, Got, Relay, draw, shipped};
use futures::future::join_all;
use futures::{StreamExt, stream};
use serde_json::Value;

/// Runs of each scenario; a hundred in an optimised build: `cargo test --release --lib flaky_endpoint`.
const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 100 };
/// Runs at once.
const AT_ONCE: usize = 100;
const ASK_AGAIN: &str = "model.ask_again=2";
/// Waits are short, so that hundreds of runs are soon over; nothing else is set.
const SHORT: &str = "tools.llm.retries.backoff_ms=[2, 4, 8]";

/// What the endpoint does: broken before the answer or in the middle of it, or another reply.
fn flaky(got: &Got<'_>) -> Does {
    if draw(got, "drop") < 250 {
        let part = draw(got, "part");
        return Does::Drops(if part < 500 { 0 } else { part });
    }
    if got.json && draw(got, "break") < 100 {
        return Does::Says(broken(&got.good.text, draw(got, "how")));
    }
    Does::Reply
}

/// A reply that breaks its contract.
fn broken(good: &str, how: u64) -> String {
    match how % 4 {
        0 => good.chars().take(good.chars().count() / 2).collect(),
        1 => "I am not able to say that.".to_owned(),
        2 => format!("```json\n{good}\n```"),
        _ => match serde_json::from_str::<Value>(good) {
            Ok(Value::Object(mut fields)) => {
                let last = fields.keys().next_back().cloned().unwrap_or_default();
                fields.remove(&last);
                Value::Object(fields).to_string()
            }
            _ => String::new(),
        },
    }
}

fn reason(world: &World) -> String {
    world.progress.closed.as_ref().expect("it has ended").reason.to_string()
}

/// The shipped scenarios that succeed over an endpoint that is reliable, in at most 15 calls of their
/// model, with that number.
async fn good_ones() -> Vec<(&'static str, u64)> {
    let reliable = &Relay::start(|_| Does::Reply).await;
    // Most of the time is waits, so they are played at the same time. The agents of the brownout call no
    // model.
    let played = scenario::shipped().iter().filter(|it| it.name != "vendor-brownout").map(
        |shipped| async move {
            let scenario = relay::shipped(shipped.name, &[SHORT]);
            let (world, facts) = reliable.play(&scenario, 1).await;
            let asked = facts.iter().filter(|fact| is_of_model(&fact.kind)).count() as u64;
            let is_good = reason(&world) == "success" && (1..=15).contains(&asked);
            is_good.then_some((shipped.name, asked))
        },
    );
    join_all(played).await.into_iter().flatten().collect()
}

fn is_of_model(fact: &crate::log::event::EventKind) -> bool {
    use crate::log::event::EventKind;
    matches!(fact, EventKind::CallStarted(call) if call.tool.as_str() == "llm")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flaky_runs_succeed_or_name_limit() {
    let good = good_ones().await;
    assert!(good.len() >= 8, "{good:?}");
    for (name, calls) in good {
        let relay = Arc::new(Relay::start(flaky).await);
        let scenario = shipped(name, &[ASK_AGAIN, SHORT]);
        let runs = stream::iter(1..=SEEDS).map(|seed| {
            let (relay, scenario) = (Arc::clone(&relay), Arc::clone(&scenario));
            async move { relay.play(&scenario, seed).await.0 }
        });
        let worlds: Vec<World> = runs.buffer_unordered(AT_ONCE).collect().await;
        let (mut succeeded, mut others) = (0, BTreeMap::<String, u32>::new());
        for world in &worlds {
            let reason = reason(world);
            if reason == "success" {
                succeeded += 1;
                continue;
            }
            let outcome = world.outcome().expect("an outcome");
            let said = outcome.error.as_deref().or(outcome.detail.as_deref()).unwrap_or_default();
            let named = ["max_attempts", "retry_budget", "ask_again", "max_seconds"];
            assert!(named.iter().any(|it| said.contains(it)), "{name}: {reason}: {said}");
            *others.entry(reason).or_default() += 1;
        }
        println!("{name}: {calls} calls, {succeeded} of {SEEDS}, others {others:?}");
        assert!(succeeded * 100 >= 90 * SEEDS, "{name}: {succeeded}, others {others:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pattern_reports_first_failure() {
    let relay = &Relay::start(|_| Does::Drops(0)).await;
    for shipped in scenario::shipped().iter().filter(|it| it.name != "vendor-brownout") {
        let scenario = relay::shipped(shipped.name, &[SHORT]);
        let outcome = relay.play(&scenario, 1).await.0.outcome().expect("an outcome");
        let said = outcome.error.as_deref().unwrap_or_default();
        assert!(said.contains("broke"), "{}: {}: {said}", shipped.name, outcome.stop_reason);
    }
}
