//! The shipped scenarios of the pattern orchestrator: what the orchestrator source document shows, and
//! its function that aggregates.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Launch;
use crate::log::event::{EventKind, FailureClass, Purpose, StopReason};
use crate::log::facts::PatternFact;
use crate::log::facts::orchestrator::{OrchestratorFact, Task};
use crate::log::world::SpanKind;
use crate::pattern::orchestrator::gather_results;
use crate::scenario;
use crate::scenario::cel::EvalBudget;
use crate::scenario::cel::decision::ConditionDecision;
use crate::scenario::patterns::PatternSpec;
use crate::scenario::{Override, Scenario, ScenarioOrigin};
use crate::support::plan::{engine, facts, played, world};
use crate::support::vectors::{same, table};
use serde_json::{Map, Value, json};

fn shipped(name: &str, sets: &[(&str, &str)]) -> Arc<Scenario> {
    let shipped = scenario::shipped().iter().find(|it| it.name == name);
    let shipped = shipped.unwrap_or_else(|| panic!("{name} is shipped"));
    let sets: Vec<Override> =
        sets.iter().map(|(path, to)| Override::new(path, to).expect("an override")).collect();
    match scenario::load(shipped.text, ScenarioOrigin::Shipped(shipped.path), &sets) {
        Ok(scenario) => Arc::new(scenario),
        Err(problems) => panic!("{}", problems.pretty(false)),
    }
}

/// `aggregate_results` of the source on the rules of the scenario.
#[test]
fn aggregate_answers_as_the_source_does() {
    let scenario = shipped("morning-report", &[]);
    let PatternSpec::Orchestrator(spec) = &scenario.pattern else { panic!("an orchestrator") };
    let (_, cases) = table(include_str!("../../vectors/orchestrator_aggregate.json"));
    for (row, case) in cases.iter().enumerate() {
        let items = case["given"]["input"].as_array().expect("results");
        let results: Vec<(Task, Result<Arc<Value>, StopReason>)> = items
            .iter()
            .map(|item| {
                let text = |key: &str| item[key].as_str().expect("a text");
                let task = Task {
                    id: text("task_id").into(),
                    worker: text("worker").into(),
                    args: Arc::new(Map::new()),
                    critical: item["critical"].as_bool().expect("a truth"),
                };
                let came = match item.get("stop_reason").and_then(Value::as_str) {
                    Some(reason) => Err(StopReason::from(reason)),
                    None => Ok(Arc::new(item["observation"]["result"].clone())),
                };
                (task, came)
            })
            .collect();
        let echo = json!({ "report_date": "2026-02-26", "region": "US" });
        let gathered = gather_results(
            echo.as_object().expect("a table").clone(),
            &spec.sections,
            results.iter().map(|(task, came)| (task, came.as_ref())),
        );
        let decided = gathered.level_decision(&spec.level).evaluate(&mut EvalBudget::default());
        assert_eq!(decided.failed, [], "row {row}");
        let ours = gathered.into_aggregate(&spec.level, decided.rule);
        assert!(same(&ours, &case["return"]), "row {row}: {ours}, not {}", case["return"]);
        let keys: Vec<&String> = ours.as_object().expect("a table").keys().collect();
        let theirs: Vec<&String> = case["return"].as_object().expect("a table").keys().collect();
        assert_eq!(keys, theirs, "row {row}: in the source's order");
    }
}

/// The source's own example: its plan, its figures, its trace.
#[tokio::test(start_paused = true)]
async fn morning_report_matches_source() {
    let outcome = played(&shipped("morning-report", &[])).await;
    assert_eq!((&outcome["status"], &outcome["stop_reason"]), (&json!("ok"), &json!("success")));
    let args = json!({ "report_date": "2026-02-26", "region": "US" });
    let workers = ["sales_worker", "payments_worker", "inventory_worker"];
    let plan: Vec<Value> = (1..)
        .zip(workers)
        .map(|(nth, worker)| json!({ "id": format!("t{nth}"), "worker": worker, "args": args, "critical": true }))
        .collect();
    assert_eq!(outcome["plan"], Value::from(plan));
    let results = [
        json!({ "gross_sales_usd": 182_450.0, "orders": 4_820, "aov_usd": 37.85 }),
        json!({ "failed_payment_rate": 0.023, "chargeback_alerts": 3, "gateway_incident": "none" }),
        json!({
            "low_stock_skus": ["SKU-4411", "SKU-8820"],
            "out_of_stock_skus": ["SKU-9033"],
            "restock_eta_days": 2,
        }),
    ];
    let [sales, payments, inventory] = &results;
    assert_eq!(
        outcome["aggregate"],
        json!({
            "report_date": "2026-02-26", "region": "US", "health": "yellow", "sales": sales,
            "payments": payments, "inventory": inventory, "failed_tasks": [],
        })
    );
    let history = outcome["history"].as_array().expect("a history");
    for (place, (worker, result)) in workers.iter().zip(&results).enumerate() {
        let attempts = if *worker == "payments_worker" { 2 } else { 1 };
        let id = format!("t{}", place + 1);
        assert_eq!(
            history[place],
            json!({
                "task_id": id, "worker": worker, "critical": true, "status": "done",
                "attempts_used": attempts, "retried": attempts > 1, "args_hash": "2c66d7cf0e03",
                "observation": { "status": "done", "worker": worker, "result": result },
            })
        );
        assert_eq!(
            outcome["trace"][place],
            json!({
                "task_id": id, "worker": worker, "status": "done", "attempts_used": attempts,
                "retried": attempts > 1, "args_hash": "2c66d7cf0e03", "stop_reason": null,
                "critical": true,
            })
        );
    }
}

/// The deadline comes while the payments are out: they stand apart from what the source lists.
#[tokio::test(start_paused = true)]
async fn stop_lists_unfinished_tasks() {
    let outcome = played(&shipped("morning-report", &[("budget.max_seconds", "2")])).await;
    assert_eq!(
        (&outcome["stop_reason"], &outcome["phase"]),
        (&json!("max_seconds"), &json!("dispatch"))
    );
    assert_eq!(
        outcome["unfinished"],
        json!([{ "task_id": "t2", "worker": "payments_worker", "attempts_used": 1 }])
    );
    assert_eq!(outcome["trace"].as_array().map(Vec::len), Some(2), "as the source has it");
    let whole = played(&shipped("morning-report", &[])).await;
    assert!(whole.get("unfinished").is_none(), "nothing is left behind: {whole}");
}

/// It takes its slowest chain (2.0 s, timed out, then 0.3 s), not the sum; the pool of the source
/// waits for the thread that runs on (2.6 s and 0.3 s).
#[tokio::test(start_paused = true)]
async fn morning_report_takes_slowest_chain() {
    let run = engine().start(Launch::scripted(shipped("morning-report", &[]), false));
    let facts = facts(&run).await;
    let at = |wanted: &dyn Fn(&EventKind) -> bool| {
        facts.iter().find(|fact| wanted(&fact.kind)).expect("a fact").at
    };
    let planned = at(&|kind| {
        matches!(
            kind,
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted { .. }))
        )
    });
    let joined = at(&|kind| {
        matches!(
            kind,
            EventKind::Pattern(PatternFact::Orchestrator(
                OrchestratorFact::ResultsAggregated { .. }
            ))
        )
    });
    assert_eq!(joined.since(planned), Duration::from_millis(2_300));
    let world = crate::log::event::World::from_events(facts.iter().map(|fact| &**fact));
    let failed = facts.iter().find_map(|fact| match &fact.kind {
        EventKind::AttemptFailed(failed) => Some((fact, failed)),
        _ => None,
    });
    let (fact, failed) = failed.expect("the attempt that timed out");
    assert_eq!(failed.class, FailureClass::Timeout);
    let span = world.spans.get(fact.span).expect("its span");
    assert_eq!(span.duration(fact.at), Duration::from_secs(2), "it ended at its limit");
    let call = world.spans.get(span.parent).expect("its call");
    assert!(
        matches!(&call.kind, SpanKind::Call(Purpose::Task { task, .. }) if task.as_str() == "t2")
    );
    let attempts: Vec<_> = world.spans.children(call.id).collect();
    assert_eq!(attempts.len(), 2);
    assert_eq!(Some(attempts[1].opened), attempts[0].closed, "one after the other, at once");
}

/// `INVENTORY_RUNTIME_ENABLED=False` of the source.
#[tokio::test(start_paused = true)]
async fn trace_shows_denied_worker() {
    let outcome = played(&shipped("morning-report-denied", &[])).await;
    assert_eq!(outcome["stop_reason"], "critical_task_failed");
    assert_eq!(outcome["trace"][2]["stop_reason"], "worker_denied:inventory_worker");
    assert_eq!(outcome["failed_critical"].as_array().map(Vec::len), Some(1));
}

/// "Make payments_worker non-critical and see how the run returns a partial result."
#[tokio::test(start_paused = true)]
async fn partial_report_names_missing_parts() {
    let outcome = played(&shipped("morning-report-partial", &[])).await;
    assert_eq!((&outcome["status"], &outcome["degraded"]), (&json!("ok"), &json!(true)));
    assert_eq!(outcome["aggregate"]["payments"], json!({}));
    let failed = &outcome["aggregate"]["failed_tasks"][0];
    assert_eq!(failed["worker"], "payments_worker");
    assert_eq!(failed["critical"], false);
    let replaced = &outcome["replaced"][0];
    assert_eq!(
        (&replaced["tool"], &replaced["fallback"]),
        (&json!("payments_worker"), &json!("omitted"))
    );
}

/// "Compare run time with max_parallel=2 and max_parallel=4."
#[tokio::test(start_paused = true)]
async fn fourth_worker_gains_from_parallelism() {
    let mut took = Vec::new();
    for parallel in ["2", "4"] {
        let scenario = shipped("fraud-check", &[("budget.max_parallel", parallel)]);
        let world = world(&engine().start(Launch::scripted(scenario, false))).await;
        assert!(world.progress.closed.as_ref().is_some_and(|closed| closed.reason.is_success()));
        let orchestrator = world.orchestrator().expect("an orchestrator");
        assert_eq!(orchestrator.tasks.len(), 4);
        let opened = orchestrator.tasks.iter().filter_map(|row| row.opened).min().expect("one");
        let closed = orchestrator.tasks.iter().filter_map(|row| row.closed).max().expect("one");
        took.push(closed.since(opened));
    }
    assert!(took[0] > took[1], "{took:?}");
}
