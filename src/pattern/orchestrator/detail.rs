//! What exactly is wrong with a plan of tasks that policy refused. Pure.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::event::stop::PlanFault;
use crate::pattern::reply::detail::{listed, missing_keys, not, other_name, said};
use crate::scenario::name::ToolName;

/// The keys of a task.
const KEYS: [&str; 4] = ["id", "worker", "args", "critical"];

/// The sentence for a fault of this plan.
pub fn of(fault: &PlanFault, raw: &Value, allowed: &BTreeSet<ToolName>, max_tasks: u32) -> String {
    let field = |key: &str| raw.get(key).unwrap_or(&Value::Null);
    let tasks = || field("tasks").as_array().map(Vec::as_slice).unwrap_or_default();
    let find = |bad: &mut dyn FnMut(&Value) -> bool| {
        let found = tasks().iter().enumerate().find(|(_, task)| bad(task));
        found.map_or_else(
            || ("tasks".to_owned(), &Value::Null),
            |(nth, task)| (format!("tasks[{nth}]"), task),
        )
    };
    // What is wrong in a field of the first task that is not as it should be.
    let in_task = |key: &str, wanted: &str, good: fn(&Value) -> bool| {
        let (place, task) = find(&mut |task| task.get(key).is_some_and(|value| !good(value)));
        not(&format!("{place}.{key}"), task.get(key).unwrap_or(&Value::Null), wanted)
    };
    match fault {
        PlanFault::NonJson => format!("the reply is {}, not an object", said(raw)),
        PlanFault::Kind => match raw.get("kind") {
            None => "keys missing: kind".to_owned(),
            Some(Value::String(kind)) => other_name("kind", kind, "not \"plan\"", &["plan"]),
            Some(kind) => not("kind", kind, "\"plan\""),
        },
        PlanFault::Tasks if raw.get("tasks").is_none() => "keys missing: tasks".to_owned(),
        PlanFault::Tasks => not("tasks", field("tasks"), "a list"),
        PlanFault::MaxTasks if tasks().is_empty() => "tasks is an empty list".to_owned(),
        PlanFault::MaxTasks => {
            format!("{} tasks, budget.max_tasks is {max_tasks}", tasks().len())
        }
        PlanFault::TaskShape => {
            let (place, task) = find(&mut |task| !task.is_object());
            not(&place, task, "an object")
        }
        PlanFault::MissingKeys => {
            let lacks = |task: &Value| KEYS.iter().any(|key| task.get(key).is_none());
            let (place, task) = find(&mut |task| lacks(task));
            missing_keys(&place, task, &KEYS)
        }
        PlanFault::TaskId => in_task("id", "a text", is_filled),
        PlanFault::DuplicateTaskId => {
            let mut ids = HashSet::new();
            let (place, task) = find(&mut |task| {
                let id = task.get("id").and_then(Value::as_str).map(str::trim);
                id.is_some_and(|id| !ids.insert(id.to_owned()))
            });
            let id = task.get("id").unwrap_or(&Value::Null);
            format!("{place}.id is {} a second time", said(id))
        }
        PlanFault::Worker => in_task("worker", "the name of a worker", is_filled),
        PlanFault::WorkerNotAllowed(_) => {
            let known: Vec<&str> = allowed.iter().map(ToolName::as_str).collect();
            let (place, task) = find(&mut |task| {
                let worker = task.get("worker").and_then(Value::as_str);
                worker.is_some_and(|worker| !known.contains(&worker))
            });
            let worker = task.get("worker").and_then(Value::as_str).unwrap_or_default();
            let wanted = format!("workers are {}", listed(known.iter().copied()));
            other_name(&format!("{place}.worker"), worker, &wanted, &known)
        }
        PlanFault::Args => in_task("args", "an object", Value::is_object),
        PlanFault::Critical => in_task("critical", "true or false", Value::is_boolean),
        PlanFault::ArgsInteger => {
            "an argument is a whole number beyond 64 bits: it would reach the worker changed"
                .to_owned()
        }
        PlanFault::Steps | PlanFault::TooManySteps | PlanFault::StepSequence => {
            "the plan is one of research".to_owned()
        }
    }
}

fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}
