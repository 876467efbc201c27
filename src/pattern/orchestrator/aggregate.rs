//! How results are put together: named sections and a level, by the scenario's rules (`001`,
//! `aggregate_results`). Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::decide::Decision;
use crate::event::StopReason;
use crate::event::kind::Task;
use crate::scenario::condition::{Budget, ConditionError, Shown};
use crate::scenario::name::{TaskId, ToolName};
use crate::scenario::orchestrator::{LevelRule, LevelRules, Section};

/// The result of a task, or why it has none.
pub type Result<'a> = std::result::Result<&'a Arc<Value>, &'a StopReason>;

/// Results by their sections, before their level is known.
pub struct Gathered {
    echo: Map<String, Value>,
    sections: Vec<(String, Arc<Value>)>,
    failed: Arc<Value>,
}

/// Gathers results, in plan order; of two results of one worker the later counts.
pub fn gather<'a>(
    echo: Map<String, Value>,
    sections: &[Section],
    results: impl Iterator<Item = (&'a Task, Result<'a>)> + Clone,
) -> Gathered {
    let section = |worker: &ToolName| {
        let of_worker = results.clone().filter(|(task, _)| task.worker == *worker);
        match of_worker.filter_map(|(_, result)| result.ok()).last() {
            Some(result) if !result.is_null() => Arc::clone(result),
            // A result that is null makes an empty section.
            _ => Arc::new(json!({})),
        }
    };
    let sections = sections.iter().map(|it| (it.name.clone(), section(&it.worker))).collect();
    let failed = results.filter_map(|(task, result)| {
        let reason = result.err()?;
        Some(json!({
            "task_id": task.id,
            "worker": task.worker,
            "critical": task.critical,
            "stop_reason": reason,
        }))
    });
    Gathered { echo, sections, failed: Arc::new(failed.collect()) }
}

impl Gathered {
    /// The rules of the level, over what was gathered.
    pub fn rules(&self, level: &LevelRules) -> Rules {
        let mut shown = Shown::default();
        shown.set("inputs", &Value::Object(self.echo.clone()));
        shown.share("failed_tasks", Arc::clone(&self.failed));
        for (name, value) in &self.sections {
            shown.share(name.clone(), Arc::clone(value));
        }
        Rules { rules: Arc::clone(&level.rules), shown }
    }

    /// The aggregate, with the level of the rule that held; of none: the level otherwise.
    pub fn with_level(self, level: &LevelRules, rule: Option<usize>) -> Value {
        let found = rule.and_then(|rule| level.rules.get(rule)).map(|rule| &rule.level);
        let mut whole = self.echo;
        whole.insert(level.name.clone(), found.unwrap_or(&level.otherwise).as_str().into());
        whole.extend(
            self.sections.into_iter().map(|(name, value)| (name, Arc::unwrap_or_clone(value))),
        );
        whole.insert("failed_tasks".to_owned(), Arc::unwrap_or_clone(self.failed));
        Value::Object(whole)
    }
}

/// Which rule of a level holds: the first, so the most severe stands first.
#[derive(Clone)]
pub struct Rules {
    rules: Arc<[LevelRule]>,
    shown: Shown,
}

impl Decision for Rules {
    /// The place of the rule, and of those that could not be evaluated, which count as false.
    type Found = (Option<usize>, Vec<(usize, ConditionError)>);

    fn find(&self, budget: &mut Budget) -> Self::Found {
        let mut failed = Vec::new();
        let found = self.rules.iter().enumerate().position(|(place, rule)| {
            rule.when.holds_within(&self.shown, budget).unwrap_or_else(|error| {
                failed.push((place, error));
                false
            })
        });
        (found, failed)
    }
}

/// The tasks with a result whose worker has a later one.
pub fn overwritten<'a>(results: impl Iterator<Item = (&'a Task, bool)>) -> Vec<TaskId> {
    let done: Vec<&Task> = results.filter(|(_, done)| *done).map(|(task, _)| task).collect();
    let last: BTreeMap<&ToolName, usize> =
        done.iter().enumerate().map(|(place, task)| (&task.worker, place)).collect();
    let replaced = done.iter().enumerate().filter(|(place, task)| last[&task.worker] > *place);
    replaced.map(|(_, task)| task.id.clone()).collect()
}
