//! A model that is asked live, and what its gateway does where a scenario says nothing: how often it
//! is asked, what its breaker counts, and which reason a run ends with when the endpoint is down.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Launch, ModelChoice};
use crate::log::event::{
    AttemptFailed, EventKind, FailureClass, Purpose, Reply, StopReason, World,
};
use crate::model::openai::OpenAi;
use crate::model::{ChatModel, ChatRequest};
use crate::net::{Http, ProxyMode};
use crate::scenario::Scenario;
use crate::scenario::spec::Tuning;
use crate::scenario::spec::policy::{BreakerCounts, RetryBudgetLimits};
use crate::support::server::ClosedPort;
use crate::support::table::{engine, facts, memory, read};
use crate::support::wire::{Server, answer, endpoint_at};

/// Four seats, and nothing said of the model.
const SEATS: &str = r#"
title = "A table"
pattern = "collaboration"
about = "For tests."
goal = "Decide."
[budget]
max_rounds = 2
max_messages = 12
max_seconds = 60
min_go_votes = 2
[collaboration]
sequence = ["a", "b", "c", "d"]
finalize_prompt = "Write the brief."
[roles]
a = { prompt = "You are a." }
b = { prompt = "You are b." }
c = { prompt = "You are c." }
d = { prompt = "You are d." }
"#;

const PARALLEL: &str = "collaboration.concurrency=parallel";
const SEQUENTIAL: &str = "collaboration.concurrency=sequential";

/// What a seat says that agrees, or the brief.
fn agrees(request: &ChatRequest) -> Reply {
    let text = match &request.purpose {
        Purpose::Contribution { role, .. } => format!(
            r#"{{"agent":"{role}","stance":"go","summary":"s","confidence":1,"actions":["x"]}}"#
        ),
        _ => "The brief.".to_owned(),
    };
    Reply::from_agent_text(text.into())
}

async fn play(scenario: &Arc<Scenario>, model: &Arc<dyn ChatModel>, seed: u64) -> World {
    let run = engine().start(Launch {
        model: ModelChoice::Live(Arc::clone(model).into(), Duration::from_secs(20)),
        seed: Some(seed),
        ..Launch::scripted(Arc::clone(scenario), true)
    });
    let facts = facts(&run).await;
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    assert_eq!(world.progress.closed.as_ref().map(|closed| closed.in_flight), Some(0));
    assert!(world.spans.open() <= 1, "at most the round");
    world
}

fn reason(world: &World) -> String {
    world.progress.closed.as_ref().expect("it has ended").reason.to_string()
}

fn error(world: &World) -> String {
    world.outcome().expect("an outcome").error.expect("what lies behind it").to_string()
}

/// The reasons that runs of these seeds end with, each once.
async fn reasons(sets: &[&str], model: &Arc<dyn ChatModel>) -> Vec<String> {
    let mut found = Vec::new();
    for concurrency in [PARALLEL, SEQUENTIAL] {
        let scenario = read(SEATS, &[sets, &[concurrency]].concat());
        for seed in 1..=100 {
            let reason = reason(&play(&scenario, model, seed).await);
            if !found.contains(&reason) {
                found.push(reason);
            }
        }
    }
    found
}

/// With the defaults, and with those of a script, under which the fifth attempt opens the breaker
/// between the attempts of a seat.
#[tokio::test(start_paused = true)]
async fn seed_never_changes_failure_reason() {
    let of_script = ["tools.llm.retries.max_attempts=2", "tools.llm.breaker.counts=attempts"];
    for sets in [&[][..], &of_script] {
        let refused = memory(|_| Err(AttemptFailed::new(FailureClass::Connect, "refused.")));
        assert_eq!(reasons(sets, &refused).await, ["llm_error:connection"], "{sets:?}");
        let busy = memory(|_| Err(AttemptFailed::from_status(503, "busy.")));
        assert_eq!(reasons(sets, &busy).await, ["llm_error:http_503"], "{sets:?}");
    }
}

/// Waits are short, so that a hundred runs are soon over; nothing else is set.
const SHORT: &str = "tools.llm.retries.backoff_ms=[2, 4, 8]";

#[tokio::test]
async fn closed_port_gives_one_reason() {
    let port = ClosedPort::new();
    let host = port.host();
    let endpoint = endpoint_at(&format!("http://{host}/v1"));
    let model: Arc<dyn ChatModel> =
        Arc::new(OpenAi::new(Http::new(ProxyMode::Direct), endpoint, Tuning::default(), true));
    assert_eq!(reasons(&[SHORT], &model).await, ["llm_error:connection"]);
    let world = play(&read(SEATS, &[SHORT, PARALLEL]), &model, 1).await;
    let error = error(&world);
    assert!(error.contains(&format!("no connection to {host}")), "{error}");
}

#[tokio::test]
async fn busy_endpoint_gives_one_reason() {
    let server = Server::start().await;
    let model: Arc<dyn ChatModel> = Arc::new(server.streaming());
    let serving = tokio::spawn(async move {
        loop {
            let mut connection = server.accept().await;
            tokio::spawn(async move {
                while connection.next_request().await {
                    let busy = answer("503 Service Unavailable", &[], "{\"error\":\"busy\"}");
                    if !connection.takes(&busy).await {
                        return;
                    }
                }
            });
        }
    });
    assert_eq!(reasons(&[SHORT], &model).await, ["llm_error:http_503"]);
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn live_model_attempts_four_times() {
    let scenario = read(SEATS, &["collaboration.sequence=['a']", "budget.min_go_votes=1"]);
    let busy = memory(|_| Err(AttemptFailed::from_status(503, "busy.")));
    let run = engine().start(Launch {
        model: ModelChoice::Live(busy.into(), Duration::from_secs(20)),
        ..Launch::scripted(scenario, true)
    });
    let waits: Vec<u64> = facts(&run)
        .await
        .iter()
        .filter_map(|fact| match fact.kind {
            EventKind::CallRetried { wait_ms, .. } => Some(wait_ms),
            _ => None,
        })
        .collect();
    assert_eq!(waits.len(), 3, "{waits:?}");
    for (wait, full) in waits.into_iter().zip([500, 1_000, 2_000]) {
        assert!((full / 2..=full).contains(&wait), "half of {full} ms is certain: {wait}");
    }
}

#[test]
fn live_model_has_own_defaults() {
    let ms = Duration::from_millis;
    let live = read(SEATS, &[]).llm_live();
    assert_eq!(live.max_attempts, 4);
    assert_eq!(*live.backoff, [ms(500), ms(1_000), ms(2_000), ms(4_000), ms(8_000)]);
    assert!(live.jitter);
    assert_eq!(live.breaker.map(|it| it.counts), Some(BreakerCounts::Calls));
    let floor = live.retry_budget.expect("a budget");
    assert_eq!(floor, RetryBudgetLimits { ratio_percent: 10, min: 10 }, "four seats, the brief");

    // A script keeps the defaults of the source.
    let scenario = read(SEATS, &[]);
    let scripted = &scenario.llm;
    assert_eq!((scripted.max_attempts, &*scripted.backoff), (2, &[ms(250), ms(750)][..]));
    assert_eq!(scripted.retry_budget, Some(RetryBudgetLimits::default()));
    assert_eq!(scripted.breaker.map(|it| it.counts), Some(BreakerCounts::Attempts));

    // What the file sets wins, one by one.
    for (set, of) in [
        ("retries.max_attempts=2", (2, 500, 10, BreakerCounts::Calls)),
        ("retries.backoff_ms=[7]", (4, 7, 10, BreakerCounts::Calls)),
        ("retry_budget.min=0", (4, 500, 0, BreakerCounts::Calls)),
        ("retry_budget.percent=50", (4, 500, 10, BreakerCounts::Calls)),
        ("breaker.counts=attempts", (4, 500, 10, BreakerCounts::Attempts)),
        ("breaker.fail_threshold=2", (4, 500, 10, BreakerCounts::Calls)),
    ] {
        let live = read(SEATS, &[&format!("tools.llm.{set}")]).llm_live();
        let first = u64::try_from(live.backoff[0].as_millis()).expect("short");
        let floor = live.retry_budget.expect("a budget").min;
        let counts = live.breaker.expect("a breaker").counts;
        assert_eq!((live.max_attempts, first, floor, counts), of, "{set}");
    }
    let bare = read(SEATS, &["tools.llm.breaker.enabled=false"]).llm_live();
    assert_eq!(bare.breaker, None);
}

#[tokio::test(start_paused = true)]
async fn run_survives_one_503_per_seat() {
    let once = || {
        memory(|request| match (&request.purpose, request.attempt) {
            (Purpose::Contribution { .. }, 1) => Err(AttemptFailed::from_status(503, "busy.")),
            _ => Ok(agrees(request)),
        })
    };
    for concurrency in [PARALLEL, SEQUENTIAL] {
        let world = play(&read(SEATS, &[concurrency]), &once(), 1).await;
        assert_eq!(reason(&world), "success");
        assert_eq!(world.tally.retries, 4);
    }
    // A floor of three, as tools have, is what ended it; and now the run says so.
    let world = play(&read(SEATS, &["tools.llm.retry_budget.min=3"]), &once(), 1).await;
    assert_eq!(reason(&world), "llm_error:http_503");
    let error = error(&world);
    let says = "busy. Not retried: 3 of 3 retries of the last minute are used up \
                (tools.llm.retry_budget).";
    assert_eq!(error, says);
    assert!(world.stop_advice().is_some_and(|advice| advice.contains("retry_budget.min")));
}

#[tokio::test(start_paused = true)]
async fn retry_after_error_shows_remaining_time() {
    let limited = memory(|_| {
        let failed = AttemptFailed::from_status(429, "limits the rate of calls (HTTP 429).");
        Err(Box::new(AttemptFailed { retry_after_ms: Some(3_600_000), ..*failed }))
    });
    for concurrency in [PARALLEL, SEQUENTIAL] {
        let world = play(&read(SEATS, &[concurrency]), &limited, 1).await;
        assert_eq!(
            world.progress.closed.as_ref().map(|it| &it.reason),
            Some(&StopReason::from("llm_error:rate_limited"))
        );
        let error = error(&world);
        assert!(
            error.contains("the requested wait is 3600 s, but only 60 s of the run were left"),
            "{error}"
        );
        let advice = world.stop_advice().expect("advice");
        assert!(!advice.contains("retries"), "more attempts would not help: {advice}");
    }
}
