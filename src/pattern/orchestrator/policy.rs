//! The rules of the orchestrator that a user must be able to trust: which plans are accepted, which
//! arguments a worker accepts, how arguments are hashed. Pure (`gateway.py` in the orchestrator
//! source document).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::base::name::{TaskId, ToolName};
use crate::base::{big_integer, canonical_json, digest};
use crate::event::StopReason;
use crate::event::plan_fault::PlanFault;
use crate::pattern::orchestrator::facts::Task;
use crate::scenario::spec::tool::REQUEST_ID;

/// `validate_orchestration_plan`: the tasks of a plan, in order, without other keys. Ids are
/// trimmed before they are compared; worker names are matched against the allowlist untrimmed.
///
/// # Errors
/// The first fault, in the order of the source document.
pub fn validate_plan(
    raw: &Value,
    allowed: &BTreeSet<ToolName>,
    max_tasks: u32,
) -> Result<Vec<Task>, PlanFault> {
    let plan = raw.as_object().ok_or(PlanFault::NonJson)?;
    if plan.get("kind").and_then(Value::as_str) != Some("plan") {
        return Err(PlanFault::Kind);
    }
    let tasks = plan.get("tasks").and_then(Value::as_array).ok_or(PlanFault::Tasks)?;
    if tasks.is_empty() || tasks.len() > max_tasks as usize {
        return Err(PlanFault::MaxTasks);
    }
    let mut taken = Vec::with_capacity(tasks.len());
    let mut ids = HashSet::with_capacity(tasks.len());
    for task in tasks {
        let task = task.as_object().ok_or(PlanFault::TaskShape)?;
        let (Some(id), Some(worker), Some(args), Some(critical)) =
            (task.get("id"), task.get("worker"), task.get("args"), task.get("critical"))
        else {
            return Err(PlanFault::MissingKeys);
        };
        let id = id.as_str().map(str::trim).filter(|id| !id.is_empty()).ok_or(PlanFault::TaskId)?;
        if !ids.insert(id) {
            return Err(PlanFault::DuplicateTaskId);
        }
        let worker = worker.as_str().filter(|worker| !worker.trim().is_empty());
        let worker = worker.ok_or(PlanFault::Worker)?;
        if !allowed.contains(worker) {
            return Err(PlanFault::worker_not_allowed(worker));
        }
        let args = args.as_object().ok_or(PlanFault::Args)?;
        let critical = critical.as_bool().ok_or(PlanFault::Critical)?;
        let worker = ToolName::from(worker);
        taken.push(Task { id: id.into(), worker, args: Arc::new(args.clone()), critical });
    }
    Ok(taken)
}

/// The first task with a whole number in its arguments that does not fit in 64 bits, and that
/// number as the planner wrote it in `reply`. Such a number would reach the worker changed.
pub fn changed_integer<'r>(reply: &'r str, tasks: &[Task]) -> Option<(TaskId, &'r str)> {
    tasks.iter().find_map(|task| {
        let args = task.args.values();
        let number =
            args.filter_map(|value| big_integer::first_changed_integer(reply, value)).next()?;
        Some((task.id.clone(), number))
    })
}

/// Whether a worker accepts these arguments: exactly those of its catalogue entry, like a call with
/// keyword arguments in the source document. A `request_id` from the planner is not counted,
/// because it is overwritten there too.
pub fn accepts_args(declared: &Map<String, Value>, given: &Map<String, Value>) -> bool {
    let given = || given.keys().filter(|key| *key != REQUEST_ID);
    declared.keys().filter(|key| *key != REQUEST_ID).count() == given().count()
        && given().all(|key| declared.contains_key(key))
}

/// `args_hash`: the first 12 hex digits of the SHA-256 of the canonical JSON of a task's arguments.
pub fn args_hash(args: &Map<String, Value>) -> String {
    let mut hash =
        digest::sha256_of_text(&canonical_json::to_canonical_json(&Value::Object(args.clone())));
    hash.truncate(12);
    hash
}

/// Whether any critical task failed.
pub fn has_failed_critical_task<'a>(
    results: impl Iterator<Item = (&'a Task, Option<&'a StopReason>)>,
) -> bool {
    results.into_iter().any(|(task, failed)| task.critical && failed.is_some())
}
