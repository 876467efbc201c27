//! Budgets of tokens and of money: a run stops before the call that would go beyond them, in every
//! pattern, and says so.

use std::sync::Arc;

use crate::engine::Launch;
use crate::log::event::{BudgetReached, Event, EventKind, World};
use crate::log::world::alerts::AlertKind;
use crate::scenario::Scenario;
use crate::support::relay::{Does, Relay, shipped};
use crate::support::table::engine;
use crate::support::{facts, table};

/// A scenario of each pattern that asks a model. Research asks none offline unless it is told to.
const SCENARIOS: [(&str, &[&str]); 6] = [
    ("checkout-launch", &[]),
    ("checkout-launch", &["collaboration.concurrency=sequential"]),
    ("morning-report", &[]),
    ("dev-team", &[]),
    ("support-swarm", &[]),
    ("own-notes", &[]),
];

async fn play(scenario: &Arc<Scenario>) -> (World, Vec<Arc<Event>>) {
    let run = engine().start(Launch::scripted(Arc::clone(scenario), true));
    let facts = table::facts(&run).await;
    (World::from_events(facts.iter().map(|fact| &**fact)), facts)
}

fn reason(world: &World) -> String {
    world.progress.closed.as_ref().expect("it has ended").reason.to_string()
}

fn model_calls(facts: &[Arc<Event>]) -> usize {
    let of_model = |fact: &&Arc<Event>| matches!(&fact.kind, EventKind::CallStarted(call) if call.tool.as_str() == "llm");
    facts.iter().filter(of_model).count()
}

#[tokio::test]
async fn stops_before_call_exceeds_tokens() {
    let relay = Relay::start(|_| Does::Reply).await;
    for (name, sets) in SCENARIOS {
        let (all, every) = relay.play(&shipped(name, sets), 1).await;
        let (calls, used) = (model_calls(&every), all.tally.usage.total());
        assert_eq!(reason(&all), "success", "{name}");
        assert!(calls > 1, "{name}: a run of one call shows nothing");
        // Each reply has 120 tokens; a call reserves 50 and its prompt. The last call has no room.
        let limit = format!("budget.max_total_tokens={}", used - 1);
        let sets: Vec<&str> =
            sets.iter().copied().chain([&*limit, "model.max_tokens=50"]).collect();
        let (world, facts) = relay.play(&shipped(name, &sets), 1).await;
        assert_eq!(reason(&world), "max_tokens_budget", "{name}");
        assert!(model_calls(&facts) < calls, "{name}");
        let reached = facts.iter().find_map(|fact| match &fact.kind {
            EventKind::BudgetReached(reached) => Some(*reached),
            _ => None,
        });
        let Some(BudgetReached::Tokens { limit, spent, estimate, .. }) = reached else {
            panic!("{name}: the call that was not made is told")
        };
        assert!(spent <= limit && spent + estimate > limit, "{name}: {reached:?}");
        assert!(world.tally.usage.total() <= limit, "{name}");
        let outcome = world.outcome().expect("an outcome");
        let error = outcome.error.expect("what lies behind it");
        assert!(error.contains("budget.max_total_tokens"), "{name}: {error}");
    }
}

#[tokio::test]
async fn parallel_seats_reserve_budget_separately() {
    // Three seats of a round would fit one by one, but not by their estimates at once.
    let scenario = shipped(
        "checkout-launch",
        &["budget.max_total_tokens=6000", "budget.max_rounds=1", "model.max_tokens=4000"],
    );
    let (world, facts) = play(&scenario).await;
    let mut out = 0_i32;
    for fact in &facts {
        match &fact.kind {
            EventKind::CallStarted(_) => out += 1,
            EventKind::CallAnswered { .. } => out -= 1,
            _ => {}
        }
        assert!(out <= 1, "one call reserves more than half of it");
    }
    assert!(world.tally.usage.total() <= 6_000);
    assert!(model_calls(&facts) >= 2, "each waits for the one before, and none is stopped");
}

#[tokio::test]
async fn cost_budget_stops_run() {
    let prices = [
        "model.prices.prompt_usd_per_million=1000",
        "model.prices.completion_usd_per_million=1000",
        "model.max_tokens=50",
    ];
    let (all, _) = play(&shipped("checkout-launch", &prices)).await;
    let cost = all.cost_usd().expect("there are prices");
    let limit = format!("budget.max_cost_usd={}", cost * 0.9);
    let sets: Vec<&str> = prices.into_iter().chain([&*limit]).collect();
    let (world, _) = play(&shipped("checkout-launch", &sets)).await;
    assert_eq!(reason(&world), "max_cost_budget");
    assert!(world.cost_usd().expect("a cost") <= cost * 0.9);
}

#[tokio::test]
async fn missing_usage_is_estimated_and_marked() {
    let relay = Relay::start(|_| Does::Uncounted).await;
    let (world, facts) = relay.play(&shipped("checkout-unanimous", &[]), 1).await;
    assert_eq!(reason(&world), "success");
    let replies: Vec<_> = facts
        .iter()
        .filter_map(|fact| match &fact.kind {
            EventKind::AttemptAnswered(reply) => Some(reply),
            _ => None,
        })
        .collect();
    assert!(replies.iter().all(|reply| reply.estimated && reply.usage.is_some()));
    let said: usize = replies.iter().map(|reply| reply.text.len().div_ceil(4)).sum();
    assert_eq!(world.tally.usage.completion_tokens, said as u64);
    assert_eq!(world.tally.estimated, replies.len() as u64);
}

#[test]
fn alerts_at_four_fifths_of_budget() {
    let mut story = facts::streaming();
    let used = World::from_events(story.log.iter().map(|fact| &**fact)).tally.usage.total();
    for (limit, alerted) in [(used * 5 / 4 + 2, false), (used * 5 / 4, true)] {
        story.limit_tokens(limit);
        let world = World::from_events(story.log.iter().map(|fact| &**fact));
        let raised = world.alerts.all();
        let has = raised.iter().any(|it| matches!(it.what, AlertKind::TokensUsed(_)));
        assert_eq!(has, alerted, "{used} of {limit}: {raised:?}");
    }
}

#[tokio::test]
async fn broken_reply_usage_is_estimated() {
    // The second half of the first answer of each call never comes.
    let relay = Relay::start(|got| if got.nth == 0 { Does::Drops(900) } else { Does::Reply }).await;
    let short = "tools.llm.retries.backoff_ms=[2, 4, 8]";
    let (world, facts) = relay.play(&shipped("checkout-unanimous", &[short]), 1).await;
    assert_eq!(reason(&world), "success");
    let lost: Vec<_> = facts
        .iter()
        .filter_map(|fact| match &fact.kind {
            EventKind::AttemptFailed(failed) => failed.usage,
            _ => None,
        })
        .collect();
    assert!(!lost.is_empty());
    let lost: u64 = lost.iter().map(|usage| usage.total()).sum();
    let answered = model_calls(&facts) as u64 * 120;
    assert_eq!(world.tally.usage.total(), answered + lost);
}
