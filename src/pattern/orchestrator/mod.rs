//! The orchestrator pattern (orchestrator source document): a planner writes tasks, workers run
//! them in parallel, the scenario's rules aggregate the results, and a report is written. The payloads
//! for the planner and for the writer of the report follow `llm.py` of the source document.

mod aggregate;
pub mod dispatch;
pub mod policy;

pub use self::aggregate::{DecidedLevel, gather_results, overwritten_tasks};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use self::dispatch::{ConcurrencyLimit, TaskResult, dispatch};
use crate::base::name::{FlagName, ToolName};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::event::{Boundary, ChatMessage, EventKind, Purpose, SpanId, StopReason};
use crate::log::facts::orchestrator::{OrchestratorFact, Task};
use crate::log::facts::plan_fault::PlanFault;
use crate::model::{ReplyContract, ReplyForm};
use crate::pattern::prompting;
use crate::pattern::prompting::{conversation, fields};
use crate::pattern::reply::{JudgedReply, Refusal, request_json};
use crate::run::{ModelRequest, RunContext};
use crate::scenario::Scenario;
use crate::scenario::cel::CelBindings;
use crate::scenario::cel::decision::decide;
use crate::scenario::patterns::orchestrator::OrchestratorSpec;
use crate::scenario::spec::script::PromptTemplate;

/// Runs an orchestrator to its end. The context's phase says how far it got.
///
/// # Errors
/// The stop reason, if the run ends without a report.
pub async fn play(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &OrchestratorSpec,
    limit: &ConcurrencyLimit,
) -> Result<(), StopReason> {
    let base = prompting::run_conditions(cx, scenario);
    cx.set_phase("plan".to_owned());
    cx.boundary(Boundary::Plan).await?;
    let tasks = plan(cx, scenario, spec, base.clone()).await?;
    cx.set_phase("dispatch".to_owned());
    let came = dispatch(cx, spec, limit, &tasks).await?;
    let failed = tasks.iter().zip(&came).map(|(task, came)| (task, failure_reason(came)));
    if policy::has_failed_critical_task(failed) {
        return Err(StopReason::CriticalTaskFailed);
    }
    let aggregate = build_aggregate(cx, scenario, spec, &tasks, &came).await;
    cx.set_phase("finalize".to_owned());
    cx.boundary(Boundary::Finalize).await?;
    let results = tasks
        .iter()
        .zip(&came)
        .filter_map(|(task, came)| Some((task.id.to_string(), Value::clone(came.as_ref().ok()?))));
    report(cx, scenario, spec, base, &aggregate, results).await
}

/// Why a task has no result; `None` if it has one.
fn failure_reason(came: &TaskResult) -> Option<&StopReason> {
    came.as_ref().err().map(|failed| &failed.reason)
}

/// Requests the plan and validates it.
async fn plan(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &OrchestratorSpec,
    base: Option<CelBindings>,
) -> Result<Vec<Task>, StopReason> {
    let shown = base.map(|mut shown| {
        shown.bind("max_tasks", &spec.budget.max_tasks.into());
        shown.bind("available_workers", &catalogue(spec));
        shown.bind("flags", &prompting::to_json(&cx.control().flags()));
        shown
    });
    let path = Boundary::Plan.text();
    let messages = plan_messages(scenario, spec, &cx.shown_flags());
    let ask =
        ModelRequest::single(SpanId::RUN, Purpose::Plan, path, messages, plan_form(spec), shown);
    let allowed: BTreeSet<ToolName> = spec.workers.iter().map(|it| it.name.clone()).collect();
    let max_tasks = spec.budget.max_tasks;
    let wrap = |text: &str| json!({ "kind": "invalid", "raw": text });
    let asking = request_json(cx, &scenario.model, ask, wrap, None, |raw, text| {
        accept_plan(raw, text, &allowed, max_tasks).map_err(|fault| Refusal {
            detail: policy::describe_plan_fault(&fault, raw, &allowed, max_tasks),
            reason: StopReason::InvalidPlan(fault),
        })
    });
    let JudgedReply { call, text, raw, judged, .. } =
        asking.await.map_err(|failed| failed.reason)?;
    match judged {
        Ok(tasks) => {
            cx.publish(call, OrchestratorFact::PlanAccepted { tasks: tasks.as_slice().into() });
            Ok(tasks)
        }
        Err(reason) => {
            let details = changed_number(&raw, &text, &allowed, max_tasks).map(Arc::new);
            let (published, raw) = (reason.clone(), Arc::new(raw));
            cx.publish(call, EventKind::PlanRefused { reason: published, raw, details });
            Err(reason)
        }
    }
}

/// The tasks of a plan, refused if an argument would not reach its worker as the planner wrote it.
fn accept_plan(
    raw: &Value,
    text: &str,
    allowed: &BTreeSet<ToolName>,
    max_tasks: u32,
) -> Result<Vec<Task>, PlanFault> {
    let tasks = policy::validate_plan(raw, allowed, max_tasks)?;
    match policy::changed_integer(text, &tasks) {
        None => Ok(tasks),
        Some(_) => Err(PlanFault::ArgsInteger),
    }
}

/// The task and its whole number that would not reach the worker unchanged.
fn changed_number(
    raw: &Value,
    text: &str,
    allowed: &BTreeSet<ToolName>,
    max_tasks: u32,
) -> Option<Value> {
    let tasks = policy::validate_plan(raw, allowed, max_tasks).ok()?;
    let (task, number) = policy::changed_integer(text, &tasks)?;
    Some(json!({ "task_id": task, "number": visible_within(number, REASON_CHARS) }))
}

async fn build_aggregate(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &OrchestratorSpec,
    tasks: &[Task],
    came: &[TaskResult],
) -> Arc<Value> {
    let results = tasks
        .iter()
        .zip(came)
        .map(|(task, came)| (task, came.as_ref().map_err(|failed| &failed.reason)));
    let echo = echoed_payload(scenario, spec);
    let gathered = gather_results(echo, &spec.sections, results);
    // The rules may be evaluated on another thread.
    let outside = cx.bus().clock().outside();
    let DecidedLevel { rule, decided_by, failed } =
        decide(&gathered.level_decision(&spec.level)).await;
    drop(outside);
    for (place, error) in failed {
        let (place, text) = (format!("orchestrator.level.rules[{place}].when"), error.to_string());
        cx.publish(SpanId::RUN, EventKind::ConditionFailed { place, text });
    }
    let whole = Arc::new(gathered.into_aggregate(&spec.level, rule));
    let done = tasks.iter().zip(came).map(|(task, came)| (task, came.is_ok()));
    cx.publish(
        SpanId::RUN,
        OrchestratorFact::ResultsAggregated {
            aggregate: Arc::clone(&whole),
            overwritten: overwritten_tasks(done),
            rule: rule.and_then(|rule| u32::try_from(rule).ok()),
            decided_by,
        },
    );
    whole
}

/// The final call, whose reply is the answer.
async fn report(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &OrchestratorSpec,
    base: Option<CelBindings>,
    aggregate: &Value,
    results: impl Iterator<Item = (String, Value)>,
) -> Result<(), StopReason> {
    let shown = base.map(|mut shown| {
        shown.bind("aggregate", aggregate);
        shown.bind("results", &results.collect::<Map<String, Value>>().into());
        shown.bind("flags", &prompting::to_json(&cx.control().flags()));
        shown
    });
    let flags = cx.shown_flags();
    let messages = report_messages(&spec.finalize_prompt, &scenario.goal, aggregate, &flags);
    prompting::request_final_answer(cx, &scenario.model, messages, shown).await
}

/// The format of the planner's reply, part of its prompt.
const CONTRACT: &str = r#"Return only one JSON object in this exact shape:
{"kind":"plan","tasks":[{"id":"t1","worker":"<name>","args":{},"critical":true}]}
Use only workers from available_workers, each with exactly the args it lists. Mark a task critical only if the report is impossible without it. At most max_tasks tasks. No Markdown, no other keys."#;

/// The inputs that the planner and the aggregate both receive, in the scenario's order.
fn echoed_payload(scenario: &Scenario, spec: &OrchestratorSpec) -> Map<String, Value> {
    prompting::echoed_inputs(scenario, &spec.echo)
}

/// The worker catalogue as the planner receives it.
pub(crate) fn catalogue(spec: &OrchestratorSpec) -> Value {
    let workers = spec.workers.iter().map(|worker| {
        json!({ "name": worker.name, "description": worker.description, "args": worker.args })
    });
    Value::Array(workers.collect())
}

/// The form of a plan: the keys that the policy requires, and the names of the workers. Each worker
/// has its own arguments, so the schema is not strict.
pub(crate) fn plan_form(spec: &OrchestratorSpec) -> ReplyForm {
    let workers: Vec<ToolName> = spec.workers.iter().map(|worker| worker.name.clone()).collect();
    ReplyForm::with_contract("plan", false, move || {
        let task = ReplyContract::object([
            ("id", json!({ "type": "string" })),
            ("worker", ReplyContract::one_of(workers.iter().map(ToolName::as_str))),
            ("args", json!({ "type": "object" })),
            ("critical", json!({ "type": "boolean" })),
        ]);
        ReplyContract::object([
            ("kind", ReplyContract::one_of(["plan"])),
            ("tasks", json!({ "type": "array", "items": task })),
        ])
    })
}

fn plan_messages(
    scenario: &Scenario,
    spec: &OrchestratorSpec,
    flags: &BTreeMap<FlagName, bool>,
) -> Arc<[ChatMessage]> {
    let mut payload = Map::new();
    payload.insert("goal".to_owned(), Value::from(&*scenario.goal));
    payload.extend(echoed_payload(scenario, spec));
    payload.insert("max_tasks".to_owned(), spec.budget.max_tasks.into());
    payload.insert("available_workers".to_owned(), catalogue(spec));
    let system = format!("{}\n\n{CONTRACT}", spec.plan_prompt.filled(flags).trim());
    conversation(&system, payload, flags)
}

fn report_messages(
    prompt: &PromptTemplate,
    goal: &str,
    aggregate: &Value,
    flags: &BTreeMap<FlagName, bool>,
) -> Arc<[ChatMessage]> {
    let payload = fields(json!({ "goal": goal, "aggregate": aggregate }));
    conversation(prompt.filled(flags).trim(), payload, flags)
}
