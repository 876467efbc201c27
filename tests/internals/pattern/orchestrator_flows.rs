//! Whole runs of the pattern orchestrator under paused time: what it does with plans, workers, limits
//! and commands of the operator. After every run nothing is in flight and every span is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::engine::{Launch, Schedule};
use crate::log::event::{AttemptFailed, BoundaryId, Command, EventKind, FailureClass, Initiator};
use crate::log::facts::PatternFact;
use crate::log::facts::orchestrator::OrchestratorFact;
use crate::log::world::RunState;
use crate::log::world::orchestrator::TaskState;
use crate::support::plan::{
    HEAD, engine, facts, outcome, plans, played, read, says, scenario, three, told, until, with,
    world,
};
use futures::FutureExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

fn reasons(outcome: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let trace = outcome["trace"].as_array().expect("a trace").iter();
    trace
        .map(|row| {
            (
                row["task_id"].as_str().expect("an id"),
                row["status"].as_str().expect("a status"),
                row["stop_reason"].as_str(),
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn tasks_run_parallel_results_keep_order() {
    let scenario =
        scenario(&three(), &["workers.sales.fixture.rows=[{latency='1500ms',result={orders=1}}]"]);
    let since = Instant::now();
    let outcome = played(&scenario).await;
    assert_eq!(since.elapsed(), Duration::from_millis(1_500), "the slowest, not the sum");
    assert_eq!(outcome["status"], "ok");
    assert_eq!(outcome["answer"], "The report.");
    assert_eq!(
        reasons(&outcome),
        [("t1", "done", None), ("t2", "done", None), ("t3", "done", None)]
    );
    assert_eq!(
        outcome["aggregate"],
        json!({
            "day": "Monday", "health": "green", "sales": { "orders": 1 },
            "money": { "incident": "none" }, "stock": { "skus": [] }, "failed_tasks": [],
        })
    );
    assert_eq!(outcome["degraded"], false);
    let first = &outcome["history"][0];
    assert_eq!(
        first["observation"],
        json!({ "status": "done", "worker": "sales", "result": { "orders": 1 } })
    );
    let keys: Vec<&String> = outcome.as_object().expect("a table").keys().collect();
    let source = ["status", "stop_reason", "answer", "plan", "aggregate", "trace", "history"];
    assert_eq!(keys[..source.len()], source, "the source's fields in its order");
}

/// Decisions: attempt 1 is cancelled at its time-out, and attempt 2 never runs beside it.
#[tokio::test(start_paused = true)]
async fn cancels_timed_out_attempt_before_next() {
    let scenario = scenario(&plans(&[("t1", "money", true)]), &[]);
    let out = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&out);
    let (tool, dropped) = told(move |number| {
        let out = Arc::clone(&seen);
        async move {
            assert_eq!(out.fetch_add(1, Ordering::SeqCst), number - 1, "never side by side");
            sleep(Duration::from_millis(if number == 1 { 2_600 } else { 300 })).await;
            Ok(json!({ "incident": "none" }))
        }
        .boxed()
    });
    let since = Instant::now();
    let outcome = outcome(with(&scenario, vec![("money", tool)])).await;
    assert_eq!(since.elapsed(), Duration::from_millis(2_300), "2.0 s and 0.3 s, no wait between");
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "the tool saw it");
    let row = &outcome["trace"][0];
    assert_eq!((&row["attempts_used"], &row["retried"]), (&json!(2), &json!(true)));
}

/// As in the orchestrator source document: only `task_timeout` is retried.
#[tokio::test(start_paused = true)]
async fn default_policy_retries_only_timeouts() {
    let scenario = scenario(&three(), &[]);
    let broken = |class: FailureClass| {
        told(move |_| async move { Err(AttemptFailed::new(class, "as told")) }.boxed()).0
    };
    let (panics, _) = told(|_| async { panic!("broken") }.boxed());
    let tools = vec![
        ("sales", broken(FailureClass::Connect)),
        ("money", broken(FailureClass::BadResponse)),
        ("stock", panics),
    ];
    let outcome = outcome(with(&scenario, tools)).await;
    assert_eq!(
        reasons(&outcome),
        [
            ("t1", "failed", Some("worker_error:sales")),
            ("t2", "failed", Some("worker_bad_result:money")),
            ("t3", "failed", Some("worker_error:stock")),
        ]
    );
    assert_eq!(outcome["usage"]["attempts"], 5, "one each, and two of the model");
    assert_eq!((&outcome["status"], &outcome["degraded"]), (&json!("ok"), &json!(true)));
    let failed = outcome["aggregate"]["failed_tasks"].as_array().expect("a list");
    assert_eq!(failed.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn critical_failure_stops_after_all_end() {
    let script = plans(&[("t1", "sales", false), ("t2", "money", true), ("t3", "stock", false)]);
    let scenario = scenario(&script, &[]);
    let (tool, _) =
        told(|_| async { Err(AttemptFailed::new(FailureClass::Connect, "refused")) }.boxed());
    let outcome = outcome(with(&scenario, vec![("money", tool)])).await;
    assert_eq!(outcome["status"], "stopped");
    assert_eq!(outcome["stop_reason"], "critical_task_failed");
    assert_eq!(outcome["phase"], "dispatch");
    assert_eq!(outcome["failed_critical"][0]["task_id"], "t2");
    assert_eq!(outcome["failed_critical"][0]["stop_reason"], "worker_error:money");
    assert_eq!(outcome["trace"].as_array().map(Vec::len), Some(3));
    assert!(outcome.get("aggregate").is_none() && outcome.get("answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn refused_plan_stops_with_reason() {
    let table = [
        (says("not JSON"), "invalid_plan:kind", json!({ "kind": "invalid", "raw": "not JSON" })),
        (says(""), "invalid_plan:kind", json!({})),
        (says("[1]"), "invalid_plan:non_json", json!([1])),
        (says("null"), "invalid_plan:non_json", Value::Null),
        (says(r#"{"kind":"plan","tasks":[]}"#), "invalid_plan:max_tasks", Value::Null),
        (plans(&[("t1", "nobody", true)]), "invalid_plan:worker_not_allowed:nobody", Value::Null),
    ];
    for (script, reason, raw) in table {
        let outcome = played(&scenario(&script, &[])).await;
        assert_eq!(outcome["stop_reason"], reason);
        assert_eq!(outcome["phase"], "plan");
        if !raw.is_null() {
            assert_eq!(outcome["raw_plan"], raw, "{reason}");
        }
        assert!(outcome.get("raw_plan").is_some(), "{reason}");
        assert_eq!(outcome["history"], json!([]));
    }
}

/// A whole number that 64 bits do not hold would be another one for the worker.
#[tokio::test(start_paused = true)]
async fn refuses_plan_with_unrepresentable_integer() {
    let plan = |day: &str, more: &str| {
        let task = |id: &str, day: &str| {
            format!(
                r#"{{"id":"{id}","worker":"sales","args":{{"day":{day}}},"critical":true{more}}}"#
            )
        };
        says(&format!(r#"{{"kind":"plan","tasks":[{},{}]}}"#, task("t1", "1"), task("t2", day)))
    };
    for (day, number) in [
        ("12345678901234567890123", "12345678901234567890123"),
        (r#"{"of":["a",-9223372036854775809]}"#, "-9223372036854775809"),
    ] {
        let outcome = played(&scenario(&plan(day, ""), &[])).await;
        assert_eq!(outcome["stop_reason"], "invalid_plan:args_integer");
        assert_eq!(outcome["details"], json!({ "task_id": "t2", "number": number }));
        assert_eq!((&outcome["phase"], outcome.get("plan")), (&json!("plan"), None));
    }
    // Numbers that fit into 64 bits, numbers that are not whole, and fields that no worker gets stay as
    // they are.
    for (day, args) in [
        ("18446744073709551615", json!({ "day": u64::MAX })),
        ("-9223372036854775808", json!({ "day": i64::MIN })),
        ("1e30", json!({ "day": 1e30 })),
        (r#""12345678901234567890123""#, json!({ "day": "12345678901234567890123" })),
    ] {
        let more = r#","note":12345678901234567890123"#;
        let outcome = played(&scenario(&plan(day, more), &[])).await;
        assert_eq!(outcome["stop_reason"], "success", "{day}");
        assert_eq!(outcome["plan"][1]["args"], args);
    }
}

/// Every attempt of every task counts, refused ones too; a task that finds the budget spent fails.
#[tokio::test(start_paused = true)]
async fn max_dispatches_bounds_all_attempts() {
    let scenario = scenario(
        &plans(&[("t1", "sales", false), ("t2", "money", false), ("t3", "stock", false)]),
        &[
            "budget.max_dispatches=3",
            "budget.max_parallel=1",
            "workers.sales.fixture.rows=[{latency='5s',result={orders=1}}]",
        ],
    );
    let outcome = played(&scenario).await;
    assert_eq!(
        reasons(&outcome),
        [
            ("t1", "failed", Some("task_timeout")),
            ("t2", "done", None),
            ("t3", "failed", Some("max_dispatches")),
        ]
    );
    assert_eq!(outcome["trace"][2]["attempts_used"], 1);
}

#[tokio::test(start_paused = true)]
async fn disabled_worker_is_denied_at_dispatch() {
    let scenario = scenario(&three(), &[]);
    let launch = Launch {
        flags: vec![("stock_on".into(), false)],
        ..Launch::scripted(Arc::clone(&scenario), false)
    };
    let outcome = outcome(launch).await;
    assert_eq!(outcome["trace"][2]["stop_reason"], "worker_denied:stock");
    assert_eq!(outcome["trace"][2]["attempts_used"], 1);
}

#[tokio::test(start_paused = true)]
async fn flag_change_affects_next_dispatch() {
    let scenario = scenario(&three(), &["budget.max_parallel=1"]);
    let run = engine().start(Launch::scripted(scenario, false));
    until(&run, |kind| {
        matches!(
            kind,
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskStarted { .. }))
        )
    })
    .await;
    run.send(Command::SetFlag { flag: "stock_on".into(), on: false, by: Initiator::You });
    let facts = facts(&run).await;
    let changed = facts.iter().find_map(|fact| match &fact.kind {
        EventKind::FlagChanged { boundary, .. } => Some(boundary.as_str().to_owned()),
        _ => None,
    });
    assert_eq!(changed.as_deref(), Some("dispatch:1:t2"), "the next boundary");
    let refused = facts.iter().any(|fact| {
        matches!(&fact.kind, EventKind::AttemptRefused { reason, .. } if reason.to_string() == "worker_denied:stock")
    });
    assert!(refused);
}

#[tokio::test(start_paused = true)]
async fn unknown_arguments_give_bad_args() {
    let plan = json!({ "kind": "plan", "tasks": [
        { "id": "t1", "worker": "sales", "args": { "date": "Monday" }, "critical": false },
    ] });
    let outcome = played(&scenario(&says(&plan.to_string()), &[])).await;
    assert_eq!(reasons(&outcome), [("t1", "failed", Some("worker_bad_args:sales"))]);
    assert_eq!(outcome["usage"]["attempts"], 2, "the tool was not asked");
}

/// Decisions: of two tasks of one worker the later wins in the aggregate, and an event says so.
#[tokio::test(start_paused = true)]
async fn later_result_of_worker_wins() {
    let scenario = scenario(&plans(&[("t1", "sales", true), ("t2", "sales", true)]), &[]);
    let (tool, _) = told(|number| {
        async move {
            // The first task ends last.
            sleep(Duration::from_millis(if number == 1 { 900 } else { 100 })).await;
            Ok(json!({ "number": number }))
        }
        .boxed()
    });
    let run = engine().start(with(&scenario, vec![("sales", tool)]));
    let world = world(&run).await;
    let orchestrator = world.orchestrator().expect("an orchestrator");
    let aggregate = orchestrator.aggregate.as_ref().expect("an aggregate");
    assert_eq!(aggregate["sales"], json!({ "number": 2 }), "in plan order, not as they came");
    assert_eq!(orchestrator.overwritten.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["t1"]);
}

/// The pane of the results shows a section in the row of its task, so it has to be the right one.
#[tokio::test(start_paused = true)]
async fn section_belongs_to_producing_task() {
    let both = || told(|_| async { Ok(json!({ "ok": true })) }.boxed()).0;
    let tasks = [("t1", "sales", true), ("t2", "money", true), ("t3", "sales", true)];
    let owners = async |sections: &str| {
        let text = format!("{HEAD}{}", plans(&tasks));
        let text = text.replace("sales = \"sales\"\nmoney = \"money\"\n", sections);
        let scenario = read(&text, &[]);
        let run = engine().start(with(&scenario, vec![("sales", both()), ("money", both())]));
        world(&run).await.orchestrator().expect("an orchestrator").section_tasks.clone()
    };
    let named = "sales = \"sales\"\nmoney = \"money\"\n";
    assert_eq!(owners(named).await, [Some(2), Some(1), None], "equal, so the names decide");
    let others = "sold = \"sales\"\nmoney = \"money\"\n";
    assert_eq!(owners(others).await, [None, Some(1), None], "it could be that of either");
    let twice = "money = \"money\"\npaid = \"money\"\n";
    assert_eq!(owners(twice).await, [Some(1), None, None], "a task stands for one section");
}

#[tokio::test(start_paused = true)]
async fn max_parallel_can_change_during_dispatch() {
    let names: Vec<String> = (1..=8).map(|nth| format!("t{nth}")).collect();
    let tasks: Vec<(&str, &str, bool)> =
        names.iter().map(|name| (name.as_str(), "sales", false)).collect();
    let scenario = scenario(&plans(&tasks), &["budget.max_parallel=1"]);
    let run = engine().start(Launch::scripted(scenario, false));
    let since = Instant::now();
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { attempt: 1, .. })).await;
    sleep(Duration::from_millis(1_500)).await;
    // One is done, the second is out: three more go at once now.
    run.send(Command::SetParallel { max_parallel: 4, by: Initiator::You });
    sleep(Duration::from_millis(100)).await;
    assert_eq!(run.in_flight(), 4);
    // They are back by 2.5 s; only two slots stay, and two tasks are left then.
    run.send(Command::SetParallel { max_parallel: 1, by: Initiator::You });
    sleep(Duration::from_millis(800)).await;
    let world = world(&run).await;
    let orchestrator = world.orchestrator().expect("an orchestrator");
    assert_eq!(orchestrator.count(TaskState::Done), 8);
    assert_eq!(orchestrator.max_parallel, 1);
    // t1 1 s, t2..t5 until 2.0 and 2.5 s, then one after another: t6, t7, t8.
    assert_eq!(since.elapsed(), Duration::from_millis(5_500), "as many at once as were allowed");
}

#[tokio::test(start_paused = true)]
async fn pause_waits_for_tasks_stops_clock() {
    let scenario = scenario(&three(), &["budget.max_parallel=2", "budget.max_seconds=10"]);
    let run = engine().start(Launch::scripted(scenario, false));
    until(&run, |kind| {
        matches!(
            kind,
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskStarted {
                index: 1,
                ..
            }))
        )
    })
    .await;
    run.send(Command::Pause { by: Initiator::You });
    let paused = until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    let EventKind::Paused { at } = &paused.kind else { panic!("paused") };
    assert_eq!(at.iter().map(BoundaryId::as_str).collect::<Vec<_>>(), ["dispatch:1:t3"]);
    assert_eq!(run.in_flight(), 0);
    sleep(Duration::from_secs(100)).await;
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    let closed = world.progress.closed.as_ref().expect("closed");
    assert!(closed.reason.is_success(), "a pause does not consume max_seconds: {}", closed.reason);
    assert!(closed.paused_ms >= 99_000, "{}", closed.paused_ms);
}

#[tokio::test(start_paused = true)]
async fn step_runs_one_dispatch() {
    let scenario = scenario(&three(), &[]);
    let schedule = Schedule { start_paused: true, ..Schedule::default() };
    let run = engine().start(Launch { schedule, ..Launch::scripted(scenario, true) });
    let mut at = Vec::new();
    loop {
        let rests = world_when_paused(&run, at.len()).await;
        let Some(rests) = rests else { break };
        at.push(rests);
        run.send(Command::Step);
    }
    assert_eq!(at, ["plan", "dispatch:1:t1", "dispatch:1:t2", "dispatch:1:t3", "finalize"]);
}

/// Where the run goes on first at its nth rest; `None` once it has ended.
async fn world_when_paused(run: &crate::engine::RunHandle, nth: usize) -> Option<String> {
    let mut reader = run.bus().reader(crate::log::event::Seq(0));
    let mut facts = Vec::new();
    loop {
        let seen = facts.len();
        if reader.next_batch(&mut facts, 64).await == 0 {
            return None;
        }
        let _ = seen;
        let rests: Vec<_> = facts
            .iter()
            .filter_map(|fact| match &fact.kind {
                EventKind::Paused { at } => at.first().map(|at| at.as_str().to_owned()),
                _ => None,
            })
            .collect();
        if let Some(rests) = rests.get(nth) {
            return Some(rests.clone());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_cancels_running_keeps_finished() {
    let scenario = scenario(
        &three(),
        &[
            "budget.max_seconds=2",
            "budget.task_timeout_seconds=30",
            "workers.money.fixture.rows=[{latency='20s',result={incident='none'}}]",
        ],
    );
    let since = Instant::now();
    let outcome = played(&scenario).await;
    assert_eq!(since.elapsed(), Duration::from_secs(2));
    assert_eq!(
        (&outcome["stop_reason"], &outcome["phase"]),
        (&json!("max_seconds"), &json!("dispatch"))
    );
    assert_eq!(reasons(&outcome), [("t1", "done", None), ("t3", "done", None)]);
    assert_eq!(outcome["plan"].as_array().map(Vec::len), Some(3));
}

#[tokio::test(start_paused = true)]
async fn cancel_drops_attempts_closes_spans() {
    let scenario = scenario(&three(), &[]);
    let (tool, dropped) = told(|_| futures::future::pending().boxed());
    let run = engine().start(with(&scenario, vec![("money", tool)]));
    until(&run, |kind| matches!(kind, EventKind::AttemptStarted { .. })).await;
    sleep(Duration::from_millis(500)).await;
    run.send(Command::Cancel);
    let world = world(&run).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!((world.run.progress.stage, world.run.spans.open()), (RunState::Closed, 0));
    let rows = world.pattern;
    let crate::log::world::PatternWorld::Orchestrator(rows) = rows else { panic!("one") };
    assert!(rows.tasks.iter().all(|row| row.state == TaskState::Cancelled));
    assert_eq!(rows.running, 0);
}

/// `[tools.<worker>]` puts section 5's policy in the place of the orchestrator's own.
#[tokio::test(start_paused = true)]
async fn tool_policy_replaces_orchestrator_policy() {
    let policy = "[tools.money]\ntimeout_s = 5\nretries = { max_attempts = 3, backoff_ms = [100], jitter = false }\n";
    let scenario = scenario(&format!("{policy}{}", plans(&[("t1", "money", true)])), &[]);
    let (tool, _) = told(|number| {
        async move {
            if number < 3 {
                Err(AttemptFailed::from_status(503, "as told"))
            } else {
                Ok(json!({ "incident": "none" }))
            }
        }
        .boxed()
    });
    let since = Instant::now();
    let outcome = outcome(with(&scenario, vec![("money", tool)])).await;
    assert_eq!(since.elapsed(), Duration::from_millis(200));
    assert_eq!(outcome["trace"][0]["attempts_used"], 3);
    assert_eq!(outcome["degraded"], false);
}

#[tokio::test(start_paused = true)]
async fn worker_fallback_degrades_run() {
    let policy = "[tools.money]\nsafe_mode = { fallback = { incident = 'unknown' } }\n";
    let scenario = scenario(&format!("{policy}{}", plans(&[("t1", "money", true)])), &[]);
    let (tool, _) = told(|_| async { Err(AttemptFailed::from_status(503, "down")) }.boxed());
    let outcome = outcome(with(&scenario, vec![("money", tool)])).await;
    assert_eq!((&outcome["status"], &outcome["degraded"]), (&json!("ok"), &json!(true)));
    assert_eq!(outcome["aggregate"]["money"], json!({ "incident": "unknown" }));
    assert_eq!(outcome["aggregate"]["health"], "red");
    let replaced = &outcome["replaced"][0];
    assert_eq!((&replaced["task_id"], &replaced["fallback"]), (&json!("t1"), &json!("default")));
    assert_eq!(replaced["reason"], "worker_error:money");
}

/// Fault 25: no partial result is allowed, so the run stops with the tool's reason.
#[tokio::test(start_paused = true)]
async fn required_tool_failure_stops_run() {
    let policy = "[tools.money]\nsafe_mode = { allow_partial = false }\n";
    let script = plans(&[("t1", "sales", false), ("t2", "money", false)]);
    let scenario = scenario(&format!("{policy}{script}"), &["budget.max_parallel=1"]);
    let (tool, _) = told(|_| async { Err(AttemptFailed::from_status(503, "down")) }.boxed());
    let outcome = outcome(with(&scenario, vec![("money", tool)])).await;
    assert_eq!(outcome["status"], "stopped");
    assert_eq!(outcome["stop_reason"], "worker_error:money");
    assert_eq!(reasons(&outcome)[0], ("t1", "done", None), "what was done is kept");
}

/// The same seed and answers give the same outcome, in any order of the ends.
#[tokio::test(start_paused = true)]
async fn max_parallel_does_not_change_outcome() {
    let mut outcomes = Vec::new();
    for parallel in ["1", "2", "3"] {
        let mut outcome =
            played(&scenario(&three(), &[&format!("budget.max_parallel={parallel}")])).await;
        let table = outcome.as_object_mut().expect("a table");
        for key in ["run_id", "elapsed_ms", "tools"] {
            table.remove(key);
        }
        outcomes.push(outcome);
    }
    assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(HEAD.contains("max_parallel"));
}

/// `allow_partial = false` is about tools that cannot be had, not about workers that may not run.
#[tokio::test(start_paused = true)]
async fn denied_noncritical_worker_stops_nothing() {
    let policy = "[tools.stock]\nsafe_mode = { allow_partial = false }\n";
    let scenario = scenario(&format!("{policy}{}", three()), &[]);
    let launch =
        Launch { flags: vec![("stock_on".into(), false)], ..Launch::scripted(scenario, true) };
    let outcome = outcome(launch).await;
    assert_eq!((&outcome["status"], &outcome["degraded"]), (&json!("ok"), &json!(true)));
}

/// Which tool failed first does not decide why the run stops.
#[tokio::test(start_paused = true)]
async fn first_task_gives_stop_reason() {
    let policy = "[tools.sales]\nsafe_mode = { allow_partial = false }\n[tools.money]\nsafe_mode = { allow_partial = false }\n";
    for (first, second) in [(100, 900), (900, 100)] {
        let scenario = scenario(&format!("{policy}{}", three()), &[]);
        let fails = |ms: u64| {
            told(move |_| {
                async move {
                    sleep(Duration::from_millis(ms)).await;
                    Err(AttemptFailed::new(FailureClass::BadResponse, "broken"))
                }
                .boxed()
            })
            .0
        };
        let tools = vec![("sales", fails(first)), ("money", fails(second))];
        let outcome = outcome(with(&scenario, tools)).await;
        assert_eq!(outcome["stop_reason"], "worker_bad_result:sales", "{first} and {second} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn raised_parallelism_starts_nothing_while_paused() {
    let scenario = scenario(&three(), &["budget.max_parallel=1"]);
    let schedule =
        Schedule { breaks: vec![BoundaryId::new("dispatch:1:t1")], ..Schedule::default() };
    let run = engine().start(Launch { schedule, ..Launch::scripted(scenario, false) });
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    run.send(Command::SetParallel { max_parallel: u32::MAX, by: Initiator::You });
    let all = |kind: &EventKind| matches!(kind, EventKind::Paused { at } if at.len() == 3);
    until(&run, all).await;
    sleep(Duration::from_secs(5)).await;
    run.send(Command::Resume { by: Initiator::You });
    let facts = facts(&run).await;
    let resumed = facts.iter().position(|fact| fact.kind.name() == "resumed").expect("resumed");
    assert!(facts[..resumed].iter().all(|fact| fact.kind.name() != "task.started"));
    let most = facts.iter().find_map(|fact| match fact.kind {
        EventKind::ConcurrencyChanged { max_parallel, .. } => Some(max_parallel),
        _ => None,
    });
    assert_eq!(most, Some(1_024), "as in a file");
}

/// As in the orchestrator source document: each worker receives the id of its request with its
/// arguments. A `request_id` that the planner wrote is overwritten, and stays in the hash.
#[tokio::test(start_paused = true)]
async fn worker_receives_request_id() {
    struct Seen(Arc<std::sync::Mutex<Vec<Value>>>);
    impl crate::gateway::Tool for Seen {
        fn ask<'a>(
            &'a self,
            request: crate::gateway::ToolRequest<'a>,
        ) -> futures::future::BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
            self.0.lock().expect("free").push(Value::Object(request.args.clone()));
            async { Ok(Arc::new(json!({}))) }.boxed()
        }
    }
    let plan = json!({ "kind": "plan", "tasks": [{
        "id": "t1", "worker": "sales", "critical": true,
        "args": { "day": "Monday", "request_id": "mine" },
    }] });
    let scenario = scenario(&says(&plan.to_string()), &[]);
    let seen = Arc::default();
    let mut tools = crate::engine::Toolbox::offline(&scenario, true);
    tools.replace("sales", Box::new(Seen(Arc::clone(&seen))));
    let run = engine().start(Launch { tools: Some(tools), ..Launch::scripted(scenario, true) });
    let world = world(&run).await;
    assert!(world.run.progress.closed.expect("closed").reason.is_success());
    let id = format!("{}:t1", run.id());
    assert_eq!(*seen.lock().expect("free"), [json!({ "day": "Monday", "request_id": id })]);
}

/// A worker without a policy of its own is never gated by `Retry-After`: the orchestrator source
/// document has no such rule.
#[tokio::test(start_paused = true)]
async fn a_bare_worker_is_not_gated() {
    let tasks = [("t1", "money", false), ("t2", "money", false)];
    let scenario = scenario(&plans(&tasks), &["budget.max_parallel=1"]);
    let (tool, _) = told(|_| {
        let failed = *AttemptFailed::from_status(429, "slow down");
        let failed = AttemptFailed { retry_after_ms: Some(3_600_000), ..failed };
        async move { Err(Box::new(failed)) }.boxed()
    });
    let outcome = outcome(with(&scenario, vec![("money", tool)])).await;
    let error = Some("worker_error:money");
    assert_eq!(reasons(&outcome), [("t1", "failed", error), ("t2", "failed", error)]);
}

/// A rest of the run is no part of how long a task or a call took.
#[tokio::test(start_paused = true)]
async fn task_time_excludes_pauses() {
    let scenario = scenario(&plans(&[("t1", "money", true)]), &[]);
    let breaks = vec![BoundaryId::new("dispatch:2:t1")];
    let (tool, _) = told(|number| {
        async move {
            sleep(Duration::from_millis(if number == 1 { 2_600 } else { 300 })).await;
            Ok(json!({}))
        }
        .boxed()
    });
    let schedule = Schedule { breaks, ..Schedule::default() };
    let launch = Launch { schedule, ..with(&scenario, vec![("money", tool)]) };
    let run = engine().start(launch);
    until(&run, |kind| matches!(kind, EventKind::Paused { .. })).await;
    sleep(Duration::from_secs(30)).await;
    run.send(Command::Resume { by: Initiator::You });
    let world = world(&run).await;
    let orchestrator = world.orchestrator().expect("an orchestrator");
    let row = &orchestrator.tasks[0];
    let (opened, closed) = (row.opened.expect("begun"), row.closed.expect("over"));
    assert_eq!(closed.since(opened), Duration::from_millis(32_300));
    assert_eq!(world.progress.active_between(opened, closed), Duration::from_millis(2_300));
    let latencies = &world.tools.get("money").expect("it").latencies;
    assert_eq!(latencies.longest(), Some(Duration::from_millis(2_300)));
}

/// An answer outside its contract is none, and counts as the tool's failure.
#[tokio::test(start_paused = true)]
async fn invalid_worker_answer_is_bad_result() {
    let contract = "[workers.money.contract]\nincident = \"text\"\n";
    let scenario = scenario(&format!("{contract}{}", plans(&[("t1", "money", false)])), &[]);
    for (answer, reason) in [
        (json!({ "incident": "none", "more": 1 }), None),
        (json!({ "incident": 7 }), Some("worker_bad_result:money")),
        (json!({}), Some("worker_bad_result:money")),
        (json!([1]), Some("worker_bad_result:money")),
        (Value::Null, Some("worker_bad_result:money")),
    ] {
        let (tool, _) = told(move |_| {
            let answer = answer.clone();
            async move { Ok(answer) }.boxed()
        });
        let outcome = outcome(with(&scenario, vec![("money", tool)])).await;
        assert_eq!(outcome["trace"][0]["stop_reason"].as_str(), reason);
    }
}

/// A fault injected into the model is in front of it, as with any tool.
#[tokio::test(start_paused = true)]
async fn injects_faults_into_model() {
    let faults = "[tools.llm]\nfaults = [{ kind = \"errors\", percent = 100, status = 503 }]\n";
    let outcome = played(&scenario(&format!("{faults}{}", three()), &[])).await;
    assert_eq!(outcome["stop_reason"], "llm_error:http_503");
    assert_eq!(outcome["phase"], "plan");
}

/// An HTTP tool reaches this machine only where the scenario says so: before that nothing is sent.
#[tokio::test]
async fn http_tool_denies_private_address() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = port.expect("a port").port();
    let script = plans(&[("t1", "sales", false)]);
    for (allowed, class) in [(false, FailureClass::Denied), (true, FailureClass::Connect)] {
        let http = format!("{{url='http://127.0.0.1:{port}/v1',allow_private={allowed}}}");
        let text = HEAD.replace(
            "[[workers.sales.fixture.rows]]\nlatency = \"1s\"\nresult = { orders = 1 }",
            &format!("http = {http}"),
        );
        let scenario = read(&format!("{text}{script}"), &[]);
        let tools = crate::engine::Toolbox::make(&scenario, true, &|_| None);
        let tools = tools.unwrap_or_else(|_| panic!("it needs nothing"));
        let launch = Launch { tools: Some(tools), ..Launch::scripted(scenario, true) };
        let facts = facts(&engine().start(launch)).await;
        let failed = facts.iter().find_map(|fact| match &fact.kind {
            EventKind::AttemptFailed(failed) => Some(failed.class),
            _ => None,
        });
        assert_eq!(failed, Some(class), "allow_private = {allowed}");
    }
}
