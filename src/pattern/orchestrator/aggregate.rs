//! How results are put together: named sections and a level, by the scenario's rules (`001`,
//! `aggregate_results`). Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::event::StopReason;
use crate::event::kind::Task;
use crate::scenario::condition::{ConditionError, Shown};
use crate::scenario::name::{TaskId, ToolName};
use crate::scenario::orchestrator::{LevelRules, Section};

/// What a task came to: its result, or why it has none.
pub type Result<'a> = std::result::Result<&'a Arc<Value>, &'a StopReason>;

/// The aggregate of these results, in plan order; of two results of one worker the later counts.
/// `failed_rule` is told of each rule that could not be evaluated; it counts as false.
pub fn aggregate<'a>(
    echo: Map<String, Value>,
    sections: &[Section],
    level: &LevelRules,
    results: impl Iterator<Item = (&'a Task, Result<'a>)> + Clone,
    mut failed_rule: impl FnMut(usize, ConditionError),
) -> Value {
    let section = |worker: &ToolName| {
        let of_worker = results.clone().filter(|(task, _)| task.worker == *worker);
        match of_worker.filter_map(|(_, result)| result.ok()).last() {
            // A result that is null makes an empty section.
            None => json!({}),
            Some(result) if result.is_null() => json!({}),
            Some(result) => (**result).clone(),
        }
    };
    let sections: Vec<(&str, Value)> =
        sections.iter().map(|it| (it.name.as_str(), section(&it.worker))).collect();
    let failed: Vec<Value> = results
        .clone()
        .filter_map(|(task, result)| {
            let reason = result.err()?;
            Some(json!({
                "task_id": task.id,
                "worker": task.worker,
                "critical": task.critical,
                "stop_reason": reason,
            }))
        })
        .collect();
    let mut shown = Shown::default();
    shown.set("inputs", &Value::Object(echo.clone()));
    shown.set("failed_tasks", &Value::from(failed.clone()));
    for (name, value) in &sections {
        shown.set_named(name, value);
    }
    let holds = |place: usize, rule: &crate::scenario::orchestrator::LevelRule| {
        rule.when.holds(&shown).map_err(|error| (place, error))
    };
    let mut found = None;
    for (place, rule) in level.rules.iter().enumerate() {
        match holds(place, rule) {
            Ok(true) => {
                found = Some(&rule.level);
                break;
            }
            Ok(false) => {}
            Err((place, error)) => failed_rule(place, error),
        }
    }
    let mut whole = echo;
    whole.insert(level.name.clone(), found.unwrap_or(&level.otherwise).as_str().into());
    whole.extend(sections.into_iter().map(|(name, value)| (name.to_owned(), value)));
    whole.insert("failed_tasks".to_owned(), Value::Array(failed));
    Value::Object(whole)
}

/// The tasks with a result whose worker has a later one.
pub fn overwritten<'a>(results: impl Iterator<Item = (&'a Task, bool)>) -> Vec<TaskId> {
    let done: Vec<&Task> = results.filter(|(_, done)| *done).map(|(task, _)| task).collect();
    let last: BTreeMap<&ToolName, usize> =
        done.iter().enumerate().map(|(place, task)| (&task.worker, place)).collect();
    let replaced = done.iter().enumerate().filter(|(place, task)| last[&task.worker] > *place);
    replaced.map(|(_, task)| task.id.clone()).collect()
}
