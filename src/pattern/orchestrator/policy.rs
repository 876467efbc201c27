//! The pure rules of an orchestrator: which plans are accepted, which arguments a worker accepts,
//! how arguments are hashed, and what exactly is wrong with a refused plan (`gateway.py` in the
//! orchestrator source document).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::base;
use crate::base::json_text;
use crate::base::name::{TaskId, ToolName};
use crate::log::event::StopReason;
use crate::log::facts::orchestrator::Task;
use crate::log::facts::plan_fault::PlanFault;
use crate::pattern::reply::{Detail, listed, missing_keys, show_value, wrong_name, wrong_value};
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
            args.filter_map(|value| json_text::first_changed_integer(reply, value)).next()?;
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
        base::sha256_of_text(&json_text::to_canonical_json(&Value::Object(args.clone())));
    hash.truncate(12);
    hash
}

/// Whether any critical task failed.
pub fn has_failed_critical_task<'a>(
    results: impl Iterator<Item = (&'a Task, Option<&'a StopReason>)>,
) -> bool {
    results.into_iter().any(|(task, failed)| task.critical && failed.is_some())
}

/// The keys of a task.
const KEYS: [&str; 4] = ["id", "worker", "args", "critical"];

/// The sentence that describes a fault of this plan.
pub fn describe_plan_fault(
    fault: &PlanFault,
    raw: &Value,
    allowed: &BTreeSet<ToolName>,
    max_tasks: u32,
) -> Detail {
    let field = |key: &str| raw.get(key).unwrap_or(&Value::Null);
    let tasks = || field("tasks").as_array().map(Vec::as_slice).unwrap_or_default();
    let find = |bad: &mut dyn FnMut(&Value) -> bool| {
        let found = tasks().iter().enumerate().find(|(_, task)| bad(task));
        found.map_or_else(
            || ("tasks".to_owned(), &Value::Null),
            |(nth, task)| (format!("tasks[{nth}]"), task),
        )
    };
    // The fault in the first task whose `key` is not valid.
    let in_task = |key: &str, wanted: &str, good: fn(&Value) -> bool| {
        let (place, task) = find(&mut |task| task.get(key).is_some_and(|value| !good(value)));
        wrong_value(&format!("{place}.{key}"), task.get(key).unwrap_or(&Value::Null), wanted)
    };
    match fault {
        PlanFault::NonJson => format!("the reply is {}, not an object", show_value(raw)).into(),
        PlanFault::Kind => match raw.get("kind") {
            None => "keys missing: kind".into(),
            Some(Value::String(kind)) => wrong_name("kind", kind, "not \"plan\"", &["plan"]),
            Some(kind) => wrong_value("kind", kind, "\"plan\"").into(),
        },
        PlanFault::Tasks if raw.get("tasks").is_none() => "keys missing: tasks".into(),
        PlanFault::Tasks => wrong_value("tasks", field("tasks"), "a list").into(),
        PlanFault::MaxTasks if tasks().is_empty() => "tasks is an empty list".into(),
        PlanFault::MaxTasks => {
            format!("{} tasks, budget.max_tasks is {max_tasks}", tasks().len()).into()
        }
        PlanFault::TaskShape => {
            let (place, task) = find(&mut |task| !task.is_object());
            wrong_value(&place, task, "an object").into()
        }
        PlanFault::MissingKeys => {
            let lacks = |task: &Value| KEYS.iter().any(|key| task.get(key).is_none());
            let (place, task) = find(&mut |task| lacks(task));
            missing_keys(&place, task, &KEYS).into()
        }
        PlanFault::TaskId => in_task("id", "text", is_filled).into(),
        PlanFault::DuplicateTaskId => {
            let mut ids = HashSet::new();
            let (place, task) = find(&mut |task| {
                let id = task.get("id").and_then(Value::as_str).map(str::trim);
                id.is_some_and(|id| !ids.insert(id.to_owned()))
            });
            // As the rule compares it.
            let id = task.get("id").and_then(Value::as_str).unwrap_or_default().trim();
            format!("{place}.id repeats {}", show_value(&id.into())).into()
        }
        PlanFault::Worker => in_task("worker", "the name of a worker", is_filled).into(),
        PlanFault::WorkerNotAllowed(_) => {
            let known: Vec<&str> = allowed.iter().map(ToolName::as_str).collect();
            let (place, task) = find(&mut |task| {
                let worker = task.get("worker").and_then(Value::as_str);
                worker.is_some_and(|worker| !known.contains(&worker))
            });
            let worker = task.get("worker").and_then(Value::as_str).unwrap_or_default();
            let wanted = format!("workers are {}", listed(known.iter().copied()));
            wrong_name(&format!("{place}.worker"), worker, &wanted, &known)
        }
        PlanFault::Args => in_task("args", "an object", Value::is_object).into(),
        PlanFault::Critical => in_task("critical", "true or false", Value::is_boolean).into(),
        PlanFault::ArgsInteger => {
            "an argument is a whole number beyond 64 bits, which would reach the worker changed"
                .into()
        }
        PlanFault::Steps | PlanFault::TooManySteps | PlanFault::StepSequence => {
            "the plan is for the research pattern".into()
        }
    }
}

fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_says_where_it_is() {
        let good = json!({ "id": "t1", "worker": "sales_fetch", "args": {}, "critical": true });
        let with = |key: &str, value: Value| {
            let mut task = good.clone();
            task[key] = value;
            json!({ "kind": "plan", "tasks": [good, task] })
        };
        let tasks = |tasks: Value| json!({ "kind": "plan", "tasks": tasks });
        let table = [
            (json!([]), "the reply is an empty list, not an object"),
            (json!({ "tasks": [] }), "keys missing: kind"),
            (
                json!({ "kind": "Plan", "tasks": [] }),
                "kind is \"Plan\", not \"plan\"; repair = [\"case\"] would accept it",
            ),
            (json!({ "kind": 1 }), "kind is 1, not \"plan\""),
            (json!({ "kind": "plan" }), "keys missing: tasks"),
            (tasks(json!("t1")), "tasks is \"t1\", not a list"),
            (tasks(json!([])), "tasks is an empty list"),
            (tasks(json!([1, 2, 3])), "3 tasks, budget.max_tasks is 2"),
            (tasks(json!([good, "t2"])), "tasks[1] is \"t2\", not an object"),
            (tasks(json!([{ "id": "t1" }])), "tasks[0]: keys missing: worker, args, critical"),
            (with("id", json!(" ")), "tasks[1].id is empty, not text"),
            (with("id", json!("t1")), "tasks[1].id repeats \"t1\""),
            (with("id", json!(" t1 ")), "tasks[1].id repeats \"t1\""),
            (with("worker", json!(null)), "tasks[1].worker is null, not the name of a worker"),
            (
                with("worker", json!("Sales Fetch")),
                "tasks[1].worker is \"Sales Fetch\", workers are sales_fetch, stock; repair = \
                 [\"case\"] would accept it",
            ),
            (
                with("worker", json!(" stock")),
                "tasks[1].worker is \" stock\" with blanks at its ends, workers are sales_fetch, \
                 stock",
            ),
            (
                with("worker", json!("other")),
                "tasks[1].worker is \"other\", workers are sales_fetch, stock",
            ),
            (with("args", json!("none")), "tasks[1].args is \"none\", not an object"),
            (with("critical", json!("yes")), "tasks[1].critical is \"yes\", not true or false"),
        ];
        let allowed: BTreeSet<ToolName> = ["stock", "sales_fetch"].map(ToolName::from).into();
        for (mut raw, expected) in table {
            // The second task has another id, unless the row is about ids.
            if let Some(second) = raw.pointer_mut("/tasks/1/id")
                && *second == json!("t1")
                && !expected.contains(".id")
            {
                *second = json!("t2");
            }
            let fault = validate_plan(&raw, &allowed, 2).expect_err(expected);
            let said = describe_plan_fault(&fault, &raw, &allowed, 2).to_string();
            assert_eq!(said, expected);
        }
    }
}
