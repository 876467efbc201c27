//! What runs of tools and tasks come to: the fields of their outcomes and what their facts weigh,
//! folded from facts written by hand.

use std::sync::Arc;

use crate::log::event::{
    BreakerCause, BreakerStage, EventKind, FailureClass, FallbackKind, SpanId, StopReason, World,
};
use crate::log::facts::orchestrator::{OrchestratorFact, Task};
use crate::log::facts::{PatternFact, PatternPlan, ResiliencePlan};
use crate::log::world::orchestrator::Orchestrator;
use crate::support::facts::head::tool;
use crate::support::facts::tools::{ToolFacts, brownout, critical, many, story};
use serde_json::{Map, Value, json};

fn world(facts: &ToolFacts) -> World {
    World::from_events(facts.log.iter().map(|fact| &**fact))
}

fn outcome(facts: &ToolFacts) -> Value {
    let outcome = world(facts).outcome().expect("the run is closed");
    serde_json::to_value(outcome).expect("JSON")
}

fn orchestrator(world: &World) -> &Orchestrator {
    world.orchestrator().expect("an orchestrator")
}

/// A run of the story whose second task, a critical one, is out.
fn at_the_second() -> ToolFacts {
    let mut facts = ToolFacts::orchestrator(8);
    facts.plan(story());
    facts.after(10).task(1).after(500);
    facts
}

#[test]
fn omitted_critical_task_counts_as_replaced() {
    let mut facts = at_the_second();
    let reason = "worker_error:payments_worker";
    facts.fails("t2", FailureClass::Status, Some(503), None);
    facts.degraded("t2", FallbackKind::Omitted, reason, None).task_failed(1, reason);
    facts.ends("critical_task_failed", Some("dispatch"));
    let outcome = outcome(&facts);
    assert_eq!(outcome["degraded"], true);
    assert_eq!(
        outcome["replaced"],
        json!([{
            "tool": "payments_worker", "task_id": "t2", "fallback": "omitted", "reason": reason,
        }])
    );
    assert_eq!(outcome["failed_critical"][0]["task_id"], "t2");
}

#[test]
fn failed_critical_task_replaces_nothing() {
    let outcome = outcome(&critical());
    assert_eq!(outcome["degraded"], false);
    assert!(outcome.get("replaced").is_none());
    assert_eq!(outcome["failed_critical"][0]["task_id"], "t2");
}

#[test]
fn lists_critical_failures_that_stopped_run() {
    for (reason, is_listed) in
        [("critical_task_failed", true), ("max_seconds", false), ("cancelled", false)]
    {
        let mut facts = at_the_second();
        facts.fails("t2", FailureClass::Timeout, None, None);
        facts.gives_up("t2", "task_timeout").task_failed(1, "task_timeout");
        facts.ends(reason, Some("dispatch"));
        let outcome = outcome(&facts);
        assert_eq!(outcome.get("failed_critical").is_some(), is_listed, "{reason}");
        assert_eq!(outcome["trace"][0]["stop_reason"], "task_timeout", "{reason}");
    }
}

#[test]
fn refusal_at_end_counts_no_dispatch() {
    for (reason, dispatches) in [
        ("cancelled", 0),
        ("max_seconds", 0),
        ("max_dispatches", 0),
        ("worker_denied:sales_worker", 1),
        ("circuit_open:sales_worker", 1),
    ] {
        let mut facts = ToolFacts::orchestrator(8);
        facts.plan(story()).place(0).refused("t1", reason);
        assert_eq!(orchestrator(&world(&facts)).dispatches, dispatches, "{reason}");
    }
}

/// However a call in back-off ends, its task waits for no further attempt.
#[test]
fn ended_call_clears_pending_retry() {
    let ends: [fn(&mut ToolFacts); 4] = [
        |facts| {
            facts.gives_up("t2", "cancelled");
        },
        |facts| {
            facts.gives_up("t2", "task_timeout");
        },
        |facts| {
            facts.degraded("t2", FallbackKind::Default, "task_timeout", None);
        },
        |facts| {
            facts.refused("t2", "circuit_open:payments_worker");
        },
    ];
    for (nth, end) in ends.into_iter().enumerate() {
        let mut facts = at_the_second();
        facts.fails("t2", FailureClass::Timeout, None, Some(300));
        let before = world(&facts);
        assert!(orchestrator(&before).tasks[1].retry_at.is_some());
        assert_eq!(before.tally.retrying, 1);
        end(&mut facts);
        let after = world(&facts);
        assert_eq!(orchestrator(&after).tasks[1].retry_at, None, "{nth}");
        assert_eq!(after.tally.retrying, 0, "{nth}");
    }
}

#[test]
fn task_lookup_takes_first_match() {
    let mut log = world(&many(200));
    let found = orchestrator(&log).task("task_17").map(|(place, row)| (place, row.task.id.clone()));
    assert_eq!(found, Some((16, "task_17".into())));
    assert!(orchestrator(&log).task("task_201").is_none());
    let mut facts = ToolFacts::orchestrator(8);
    let [first, second, ..] = &story()[..] else { panic!("a story") };
    facts.plan(vec![first.clone(), Task { id: first.id.clone(), ..second.clone() }]);
    log = world(&facts);
    assert_eq!(orchestrator(&log).task("t1").map(|(place, _)| place), Some(0));
}

/// Spec section 1: the trace and the history stand last among the pattern's own fields.
#[test]
fn outcome_lists_breaker_and_agent_history() {
    let mut facts = brownout(true);
    let began = facts.log.last().expect("facts").at.0 / 1_000;
    facts.after(100);
    facts.breaker("search", BreakerStage::Open, BreakerCause::Failures, Some(3_000)).after(100);
    facts.breaker("vendor", BreakerStage::HalfOpen, BreakerCause::CooldownOver, None).after(100);
    facts.breaker("search", BreakerStage::Closed, BreakerCause::Manual, None);
    facts.ends("max_seconds", Some("agents"));
    let outcome = outcome(&facts);
    let fields: Vec<&String> = outcome.as_object().expect("a table").keys().collect();
    let source = ["status", "stop_reason", "phase", "summary", "trace", "history", "run_id"];
    assert_eq!(fields[..source.len()], source);
    let trace = outcome["trace"].as_array().expect("a list");
    assert_eq!((&trace[0]["tool"], &trace[0]["why"]), (&json!("vendor"), &json!("failures")));
    // The last fact before was 250 ms older than the builder's clock.
    let at = |ms: u64| began + 250 + ms;
    assert_eq!(
        trace[1..],
        [
            json!({ "at_ms": at(100), "tool": "search", "to": "open", "why": "failures" }),
            json!({ "at_ms": at(200), "tool": "vendor", "to": "half_open", "why": "cooldown_over" }),
            json!({ "at_ms": at(300), "tool": "search", "to": "closed", "why": "manual" }),
        ]
    );
    let history = outcome["history"].as_array().expect("a list");
    assert_eq!(history.len(), 20, "each agent");
    let row = |agent: u32, turn: u32, answered: u32, degraded: u32| {
        json!({
            "agent": agent, "turn": turn, "answered": answered, "degraded": degraded, "failed": 0,
        })
    };
    assert_eq!(history[0], row(1, 1, 2, 0));
    assert_eq!(history[9], row(10, 1, 0, 1));
    assert_eq!(history[19], row(20, 0, 0, 0), "it had no turn yet");
}

/// Memory is bounded by what facts weigh, so no name, text or value in one may weigh nothing.
#[test]
fn a_fact_weighs_what_it_holds() {
    let kinds: &[fn(&str) -> EventKind] = &[
        |text| {
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskStarted {
                parent: SpanId::RUN,
                task: text.into(),
                index: 0,
                worker: "w".into(),
                args_hash: String::new(),
            }))
        },
        |text| {
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted {
                tasks: [Task { id: text.into(), ..story()[0].clone() }].into(),
            }))
        },
        |text| {
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted {
                tasks: [Task { worker: text.into(), ..story()[0].clone() }].into(),
            }))
        },
        |text| {
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted {
                tasks: [Task {
                    args: Arc::new(Map::from_iter([(text.to_owned(), Value::Null)])),
                    ..story()[0].clone()
                }]
                .into(),
            }))
        },
        |text| EventKind::CallFailed { attempts: 1, reason: StopReason::from(text) },
        |text| {
            EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskFailed {
                attempts: 1,
                reason: StopReason::from(text),
            }))
        },
        |text| EventKind::PlanRefused {
            reason: StopReason::from(text),
            raw: Arc::default(),
            details: None,
        },
        |text| EventKind::AttemptRefused {
            attempt: 1,
            reason: StopReason::CircuitOpen(text.into()),
            retry_in_ms: None,
        },
        |text| EventKind::CallDegraded {
            attempts: 1,
            reason: StopReason::BulkheadFull("w".into()),
            by: FallbackKind::Default,
            value: Some(Arc::new(json!(text))),
        },
        |text| EventKind::CallDegraded {
            attempts: 1,
            reason: StopReason::ToolError(text.into(), FailureClass::Status),
            by: FallbackKind::Omitted,
            value: None,
        },
        |text| {
            let mut head = head(ToolFacts::storm(true));
            head.tools.push(tool(text, "fixture", 1, true));
            EventKind::RunStarted(Arc::new(head))
        },
        |text| {
            let mut head = head(ToolFacts::storm(true));
            let PatternPlan::Resilience(plan) = head.plan else { panic!("a storm") };
            let steps = vec![text.into()];
            head.plan =
                PatternPlan::Resilience(Arc::new(ResiliencePlan { steps, ..(*plan).clone() }));
            EventKind::RunStarted(Arc::new(head))
        },
        |text| {
            let mut head = head(ToolFacts::orchestrator(4));
            let PatternPlan::Orchestrator(plan) = &mut head.plan else { panic!("a plan") };
            Arc::make_mut(plan).workers[0].description = text.to_owned();
            EventKind::RunStarted(Arc::new(head))
        },
    ];
    for kind in kinds {
        let (light, heavy) = (kind("x"), kind(&"x".repeat(10_001)));
        let more = heavy.weight() - light.weight();
        assert!((10_000..20_100).contains(&more), "{}: {more} bytes more", light.name());
    }
}

/// The first fact of a log, to be changed.
fn head(facts: ToolFacts) -> crate::log::event::RunStarted {
    match &facts.log[0].kind {
        EventKind::RunStarted(head) => (**head).clone(),
        _ => panic!("a head"),
    }
}
