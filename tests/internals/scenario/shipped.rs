//! The scenarios that come inside the program: good, and with the endings that they demonstrate, under
//! any change of flags and facts.
use std::sync::Arc;

use crate::engine::{Engine, EngineSettings, Launch};
use crate::log::event::{Event, Seq, World};
use crate::scenario::patterns::PatternSpec;
use crate::scenario::{Override, Scenario, ScenarioListing, ShippedScenario, check, load, shipped};
use serde_json::{Value, json};

fn find(name: &str) -> &'static ShippedScenario {
    shipped().iter().find(|shipped| shipped.name == name).expect("a shipped scenario")
}

fn read(name: &str, set: &[&str]) -> Scenario {
    let set: Vec<Override> = set.iter().map(|set| set.parse().expect("an override")).collect();
    let shipped = find(name);
    load(shipped.text, shipped.origin(), &set).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Every fact of a run without latencies.
async fn facts(name: &str, flags: &[(&str, bool)], set: &[&str]) -> Vec<Arc<Event>> {
    facts_of(name, flags, set, true).await
}

/// Every fact of a run; `instant` leaves the latencies out.
async fn facts_of(
    name: &str,
    flags: &[(&str, bool)],
    set: &[&str],
    instant: bool,
) -> Vec<Arc<Event>> {
    let mut launch = Launch::scripted(Arc::new(read(name, set)), instant);
    launch.flags = flags.iter().map(|(flag, on)| ((*flag).into(), *on)).collect();
    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(launch);
    let mut reader = run.bus().reader(Seq(0));
    let mut facts = Vec::new();
    while reader.next_batch(&mut facts, 1024).await > 0 {}
    let odd = facts.iter().find(|fact| fact.kind.name() == "condition.failed");
    assert!(odd.is_none(), "{name} {set:?}: {odd:?}");
    facts
}

/// The outcome of such a run.
async fn play(name: &str, flags: &[(&str, bool)], set: &[&str]) -> Value {
    let world = World::from_events(facts(name, flags, set).await.iter().map(|fact| &**fact));
    serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON")
}

/// The outcome of a run with all its latencies, on tokio's paused clock.
async fn play_in_time(name: &str, flags: &[(&str, bool)], set: &[&str]) -> Value {
    let world =
        World::from_events(facts_of(name, flags, set, false).await.iter().map(|fact| &**fact));
    serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON")
}

/// `go go caution | go block | …`: the stances by round.
fn stances(outcome: &Value) -> String {
    let rounds = outcome["history"].as_array().expect("history").iter().map(|round| {
        let said = round["contributions"].as_array().expect("contributions");
        said.iter().filter_map(|said| said["stance"].as_str()).collect::<Vec<_>>().join(" ")
    });
    rounds.collect::<Vec<_>>().join(" | ")
}

/// The decision, or the stop reason.
fn end(outcome: &Value) -> &str {
    outcome["final_decision"]
        .as_str()
        .or_else(|| outcome["stop_reason"].as_str())
        .expect("a decision or a reason")
}

#[test]
fn shipped_scenarios_load_without_warnings() {
    let names: Vec<&str> = shipped().iter().map(|shipped| shipped.name).collect();
    assert_eq!(
        names,
        [
            "checkout-blocked",
            "checkout-deadlock",
            "checkout-denied",
            "checkout-launch",
            "checkout-unanimous",
            "dev-team",
            "fabricated-quote",
            "fraud-check",
            "front-desk",
            "mixed-table",
            "morning-report",
            "morning-report-denied",
            "morning-report-partial",
            "nested-swarm",
            "own-notes",
            "parallel-review",
            "payments-incident",
            "ping-pong",
            "real-services",
            "refund-desk",
            "rumour-mill",
            "runaway",
            "slow-specialist",
            "support-swarm",
            "three-coders",
            "vendor-brownout",
            "web-status",
        ]
    );
    for shipped in shipped() {
        let checked = check(shipped.text, shipped.origin(), &[]);
        assert!(checked.problems.is_empty(), "{}", checked.problems.pretty(false));
        let scenario = checked.scenario.expect("a scenario without problems");
        let listing = shipped.listing();
        assert_eq!(listing.name, scenario.name);
        assert_eq!(listing.title, scenario.title);
        assert_eq!(listing.about, scenario.about);
        assert_eq!(listing.pattern, scenario.pattern.get().name());
        assert_ne!(listing, ScenarioListing::read(shipped.name, ""));
    }
}

/// The figures, names and order of the collaboration source document.
#[test]
fn checkout_launch_keeps_source_facts() {
    let scenario = read("checkout-launch", &[]);
    let shared_context = json!({
        "report_date": "2026-03-02",
        "region": "US",
        "campaign": {
            "name": "Checkout v2 Launch",
            "window": "2026-03-02",
            "channel": "US paid + lifecycle",
        },
        "demand_signals": {
            "projected_orders": 15200,
            "conversion_lift_pct": 12.4,
            "traffic_risk": "medium",
        },
        "finance_signals": {
            "projected_revenue_usd": 684000.0,
            "expected_margin_pct": 19.2,
            "promo_cost_usd": 94000.0,
        },
        "risk_signals": {
            "failed_payment_rate": 0.028,
            "chargeback_alerts": 4,
            "critical_incidents": 0,
        },
        "policy_limits": {
            "payment_failure_block_threshold": 0.03,
            "max_chargeback_alerts_for_go": 5,
        },
    });
    let facts = Value::clone(&scenario.facts);
    assert_eq!(facts.to_string(), shared_context.to_string(), "also in this order");
    let PatternSpec::Collaboration(spec) = scenario.pattern else {
        panic!("a collaboration");
    };
    let budget = spec.budget;
    assert_eq!(
        (budget.max_rounds, budget.max_messages, budget.max_seconds.as_secs(), budget.min_go_votes),
        (3, 12, 40, 2)
    );
    let seats: Vec<&str> = spec.sequence.iter().map(|role| role.as_str()).collect();
    assert_eq!(seats, ["demand_analyst", "finance_analyst", "risk_analyst", "legal_analyst"]);
}

#[tokio::test(start_paused = true)]
async fn each_scenario_ends_as_intended() {
    for (name, expected, talk) in [
        ("checkout-launch", "go", "go caution block | go caution caution | go go go"),
        ("checkout-unanimous", "go", "go go go"),
        ("checkout-deadlock", "max_rounds_reached", "go caution block | go go block | go go block"),
        ("checkout-denied", "agent_denied:legal_analyst", ""),
        ("checkout-blocked", "no_go", "go caution block | caution block block"),
        ("mixed-table", "go_with_caution", "go caution caution | go go caution"),
        ("three-coders", "go_with_caution", "go block caution | caution caution go"),
    ] {
        let outcome = play(name, &[], &[]).await;
        assert_eq!((end(&outcome), stances(&outcome).as_str()), (expected, talk), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn lawyer_may_join_at_any_round() {
    let seated = play("checkout-launch", &[("legal_analyst", true)], &[]).await;
    assert_eq!(end(&seated), "go_with_caution");
    assert_eq!(
        stances(&seated),
        "go caution block caution | go caution caution caution | go go go caution"
    );
    let region = ["inputs.region=EU"];
    let abroad = play("checkout-launch", &[("legal_analyst", true)], &region).await;
    assert_eq!((end(&abroad), stances(&abroad)), ("go_with_caution", stances(&seated)));
    let said = |outcome: &Value, round: usize| {
        outcome["history"][round]["contributions"][3]["summary"].clone()
    };
    assert_ne!(said(&seated, 1), said(&abroad, 1));
    assert_ne!(said(&seated, 2), said(&abroad, 2));
    assert_eq!(said(&seated, 0).as_str().map(|text| text.contains("in US")), Some(true));
    assert_eq!(abroad["team_summary"]["region"], "EU");
}

#[tokio::test(start_paused = true)]
async fn the_script_stands_on_the_facts() {
    for (name, set, expected) in [
        ("checkout-launch", "facts.risk_signals.failed_payment_rate=0.03", "max_rounds_reached"),
        ("checkout-launch", "facts.risk_signals.critical_incidents=2", "max_rounds_reached"),
        ("checkout-launch", "facts.risk_signals.chargeback_alerts=6", "max_rounds_reached"),
        ("checkout-launch", "facts.demand_signals.traffic_risk=high", "go_with_caution"),
        ("checkout-launch", "budget.max_rounds=2", "max_rounds_reached"),
        ("checkout-launch", "budget.min_go_votes=3", "go"),
        ("checkout-launch", "budget.max_messages=5", "max_messages"),
        ("checkout-unanimous", "facts.risk_signals.failed_payment_rate=0.05", "max_rounds_reached"),
        ("checkout-deadlock", "facts.risk_signals.critical_incidents=0", "go_with_caution"),
        ("checkout-blocked", "facts.risk_signals.failed_payment_rate=0.012", "go_with_caution"),
        ("mixed-table", "facts.rollback.rehearsed=false", "no_go"),
    ] {
        assert_eq!(end(&play(name, &[], &[set]).await), expected, "{name} {set}");
    }
    let both =
        ["facts.risk_signals.critical_incidents=1", "facts.finance_signals.expected_margin_pct=8"];
    let outcome = play("checkout-launch", &[], &both).await;
    assert_eq!(end(&outcome), "no_go");
    let answer = outcome["answer"].as_str().expect("an answer");
    assert!(answer.contains("NO-GO") && answer.contains("8 percent"), "{answer}");
    let allowed = play("checkout-denied", &[("legal_analyst", true)], &[]).await;
    assert_eq!(
        (end(&allowed), stances(&allowed).as_str()),
        ("go_with_caution", "go go go caution")
    );
}

#[tokio::test(start_paused = true)]
async fn retries_failed_attempt_in_second_round() {
    let outcome = play("checkout-launch", &[], &[]).await;
    // Three rounds of three seats and the brief, and one call that took two attempts.
    assert_eq!(outcome["usage"]["calls"], 10, "{}", outcome["usage"]);
    let facts = facts("checkout-launch", &[], &[]).await;
    let retried = facts.iter().filter(|fact| fact.kind.name() == "call.retried").count();
    assert_eq!(retried, 1);
}

/// A person can watch: no reply is immediate and none takes long.
#[test]
fn latencies_are_made_for_watching() {
    for shipped in shipped() {
        for row in read(shipped.name, &[]).script.rows {
            let (min, max) = (row.latency.min.as_millis(), row.latency.max.as_millis());
            assert!((500..=2_500).contains(&min) && max <= 2_500 && min < max, "{}", shipped.name);
        }
    }
}

/// The figures, names and limits of the orchestrator source document.
#[test]
fn morning_report_keeps_source_facts() {
    let scenario = read("morning-report", &[]);
    let goal = "Prepare a morning operations report for e-commerce region US on 2026-02-26. \
                Include sales, payment risk, and inventory risk with one concrete action.";
    assert_eq!(&*scenario.goal, goal);
    let PatternSpec::Orchestrator(spec) = &scenario.pattern else { panic!("an orchestrator") };
    let budget = spec.budget;
    assert_eq!(
        (budget.max_tasks, budget.max_parallel, budget.max_retries_per_task, budget.max_dispatches),
        (4, 3, 1, 8)
    );
    assert_eq!((budget.task_timeout.as_millis(), budget.max_seconds.as_secs()), (2_000, 25));
    let args = json!({ "report_date": "YYYY-MM-DD", "region": "US|EU|..." });
    let catalogue: Vec<(&str, &str, Value)> = spec
        .workers
        .iter()
        .map(|worker| {
            (worker.name.as_str(), &*worker.description, Value::Object(worker.args.clone()))
        })
        .collect();
    assert_eq!(
        catalogue,
        [
            ("sales_worker", "Provides sales KPIs for a date and region", args.clone()),
            ("payments_worker", "Provides payment failure and chargeback signals", args.clone()),
            ("inventory_worker", "Provides low-stock and out-of-stock risk signals", args),
        ]
    );
    let fraud = read("fraud-check", &[]);
    let PatternSpec::Orchestrator(spec) = fraud.pattern else { panic!("an orchestrator") };
    assert_eq!((spec.workers.len(), spec.budget.max_parallel), (4, 2));
}

#[tokio::test(start_paused = true)]
async fn morning_report_matches_source_output() {
    let outcome = play_in_time("morning-report", &[], &[]).await;
    assert_eq!((&outcome["status"], &outcome["stop_reason"]), (&json!("ok"), &json!("success")));
    let aggregate = json!({
        "report_date": "2026-02-26",
        "region": "US",
        "health": "yellow",
        "sales": { "gross_sales_usd": 182_450.0, "orders": 4_820, "aov_usd": 37.85 },
        "payments": {
            "failed_payment_rate": 0.023, "chargeback_alerts": 3, "gateway_incident": "none",
        },
        "inventory": {
            "low_stock_skus": ["SKU-4411", "SKU-8820"],
            "out_of_stock_skus": ["SKU-9033"],
            "restock_eta_days": 2,
        },
        "failed_tasks": [],
    });
    assert_eq!(outcome["aggregate"].to_string(), aggregate.to_string(), "also in this order");
    let attempts: Vec<&Value> =
        (0..3).map(|task| &outcome["trace"][task]["attempts_used"]).collect();
    assert_eq!(attempts, [1, 2, 1], "the payments worker times out once");
}

#[tokio::test(start_paused = true)]
async fn each_report_ends_as_intended() {
    for (name, flags, set, reason, says) in [
        ("morning-report", &[][..], &[][..], "success", "YELLOW"),
        ("morning-report", &[], &["inputs.region=EU"], "success", "no data"),
        (
            "morning-report",
            &[],
            &["workers.payments_worker.fixture.rows[1].result.gateway_incident=down"],
            "success",
            "RED",
        ),
        (
            "morning-report",
            &[],
            &["workers.inventory_worker.fixture.rows[0].result.out_of_stock_skus=[]"],
            "success",
            "GREEN",
        ),
        ("morning-report", &[("inventory_runtime", false)], &[], "critical_task_failed", ""),
        ("morning-report", &[], &["budget.task_timeout_seconds=0.2"], "critical_task_failed", ""),
        ("morning-report", &[], &["budget.max_retries_per_task=0"], "critical_task_failed", ""),
        ("morning-report", &[], &["budget.max_tasks=2"], "invalid_plan:max_tasks", ""),
        ("morning-report-denied", &[], &[], "critical_task_failed", ""),
        ("morning-report-denied", &[("inventory_runtime", true)], &[], "success", "YELLOW"),
        ("morning-report-partial", &[], &[], "success", "without payments"),
        ("morning-report-partial", &[], &["inputs.region=EU"], "success", "incomplete"),
        (
            "morning-report-partial",
            &[],
            &["script[0].reply.tasks[1].critical=true"],
            "critical_task_failed",
            "",
        ),
        ("morning-report-partial", &[], &["budget.task_timeout_seconds=3"], "success", "after all"),
        ("fraud-check", &[], &[], "success", "Twelve orders"),
        ("fraud-check", &[("fraud_runtime", false)], &[], "success", "without a look at fraud"),
        ("fraud-check", &[], &["inputs.region=EU"], "success", "no data"),
        (
            "fraud-check",
            &[],
            &["workers.fraud_worker.fixture.rows[0].result.account_takeovers=1"],
            "success",
            "RED",
        ),
        (
            "fraud-check",
            &[],
            &["workers.fraud_worker.fixture.rows[0].result.suspicious_orders=many"],
            "success",
            "without a look at fraud",
        ),
    ] {
        let outcome = play_in_time(name, flags, set).await;
        assert_eq!(outcome["stop_reason"], reason, "{name} {flags:?} {set:?}: {outcome}");
        let answer = outcome["answer"].as_str().unwrap_or_default();
        assert!(answer.contains(says), "{name} {flags:?} {set:?}: {answer}");
    }
    let denied = play_in_time("morning-report-denied", &[], &[]).await;
    assert_eq!(denied["trace"][2]["stop_reason"], "worker_denied:inventory_worker");
    let partial = play_in_time("morning-report-partial", &[], &[]).await;
    assert_eq!(partial["degraded"], true);
    assert_eq!(partial["aggregate"]["payments"], json!({}));
    assert_eq!(partial["aggregate"]["failed_tasks"][0]["stop_reason"], "task_timeout");
}

/// The time of a run on tokio's clock is the sum of its latencies, not a measurement.
#[tokio::test(start_paused = true)]
async fn fraud_check_gains_from_two_slots() {
    let two = play_in_time("fraud-check", &[], &[]).await;
    let four = play_in_time("fraud-check", &[], &["budget.max_parallel=4"]).await;
    let elapsed = |outcome: &Value| outcome["elapsed_ms"].as_u64().expect("milliseconds");
    // Two slots: 1.6 s, then 1.8 s. Four: 1.8 s.
    assert_eq!(elapsed(&two) - elapsed(&four), 1_600);
    assert_eq!(two["aggregate"], four["aggregate"]);
}

#[tokio::test(start_paused = true)]
async fn guards_survive_brownout_naive_retries_fail() {
    let facts = facts_of("vendor-brownout", &[], &["resilience.turns=8"], false).await;
    let moves: Vec<Value> = facts
        .iter()
        .filter(|fact| fact.kind.name() == "breaker.changed")
        .map(|fact| serde_json::to_value(&fact.kind).expect("JSON")["to"].clone())
        .collect();
    assert_eq!(moves.first(), Some(&json!("open")), "{moves:?}");
    assert_eq!(moves.last(), Some(&json!("closed")), "a person sees it close again: {moves:?}");
    let world = World::from_events(facts.iter().map(|fact| &**fact));
    let guarded = serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON");
    let naive =
        play_in_time("vendor-brownout", &[], &["resilience.turns=8", "inputs.guarded=false"]).await;
    assert_eq!((&guarded["stop_reason"], &guarded["degraded"]), (&json!("success"), &json!(true)));
    assert_eq!(guarded["summary"]["failed"], 0);
    let kinds: Vec<&Value> = guarded["replaced"]
        .as_array()
        .expect("what was replaced")
        .iter()
        .map(|replaced| &replaced["fallback"])
        .collect();
    assert!(kinds.contains(&&json!("cached")), "the last good value stands in: {kinds:?}");
    let enrich =
        |outcome: &Value, what: &str| outcome["tools"][1][what].as_f64().expect("a number");
    assert_eq!(guarded["tools"][1]["tool"], "enrich");
    assert!(enrich(&guarded, "amplification") < 1.0);
    assert!(enrich(&naive, "amplification") > 3.5, "{naive}");
    assert!(naive["summary"]["failed"].as_u64() > Some(100), "{naive}");
    let elapsed = |outcome: &Value| outcome["elapsed_ms"].as_u64();
    assert!(elapsed(&naive) > elapsed(&guarded).map(|ms| 2 * ms), "{naive}");
    // The healthy tools suffer with it, because the vendor holds the slots of the pool.
    let slow = |outcome: &Value| {
        let alerts = outcome["alerts"].as_array().expect("alerts").iter();
        let slow = alerts.filter(|alert| alert["alert"] == "p95_ms");
        slow.filter_map(|alert| alert["tool"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    for healthy in ["orders", "search"] {
        assert!(!slow(&guarded).iter().any(|tool| tool == healthy), "{guarded}");
        assert!(slow(&naive).iter().any(|tool| tool == healthy), "{naive}");
    }
}
