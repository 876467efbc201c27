//! Aggregates the task results into named sections and a level, by the scenario's rules
//! (`aggregate_results` in the orchestrator source document). Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::decide::Decision;
use crate::event::StopReason;
use crate::event::kind::Task;
use crate::scenario::condition::{Budget, ConditionError, Shown};
use crate::scenario::name::{TaskId, ToolName};
use crate::scenario::orchestrator::{LevelRule, LevelRules, Section};

/// The result of a task, or the reason why it has none.
pub type Result<'a> = std::result::Result<&'a Arc<Value>, &'a StopReason>;

/// The results by section, before the level is known.
pub struct Gathered {
    echo: Map<String, Value>,
    sections: Vec<(String, Arc<Value>)>,
    failed: Arc<Value>,
}

/// Gathers the results in plan order. If a worker has several results, the last one counts.
pub fn gather<'a>(
    echo: Map<String, Value>,
    sections: &[Section],
    results: impl Iterator<Item = (&'a Task, Result<'a>)> + Clone,
) -> Gathered {
    let section = |worker: &ToolName| {
        let of_worker = results.clone().filter(|(task, _)| task.worker == *worker);
        match of_worker.filter_map(|(_, result)| result.ok()).last() {
            Some(result) if !result.is_null() => Arc::clone(result),
            // A null result gives an empty section.
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
    /// The rules of the level, with the values that they read.
    pub fn rules(&self, level: &LevelRules) -> Rules {
        let mut shown = Shown::default();
        shown.set("inputs", &Value::Object(self.echo.clone()));
        shown.share("failed_tasks", Arc::clone(&self.failed));
        for (name, value) in &self.sections {
            shown.share(name.clone(), Arc::clone(value));
        }
        Rules { rules: Arc::clone(&level.rules), shown }
    }

    /// The aggregate, with the level of the matching rule; without a match, the `otherwise` level.
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

/// Decides which rule of a level matches: the first one, so scenarios list the most severe first.
#[derive(Clone)]
pub struct Rules {
    rules: Arc<[LevelRule]>,
    shown: Shown,
}

impl Decision for Rules {
    /// The index of the matching rule, and the rules that could not be evaluated, which count as
    /// false.
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

/// The tasks whose result is replaced by a later result of the same worker.
pub fn overwritten<'a>(results: impl Iterator<Item = (&'a Task, bool)>) -> Vec<TaskId> {
    let done: Vec<&Task> = results.filter(|(_, done)| *done).map(|(task, _)| task).collect();
    let last: BTreeMap<&ToolName, usize> =
        done.iter().enumerate().map(|(place, task)| (&task.worker, place)).collect();
    let replaced = done.iter().enumerate().filter(|(place, task)| last[&task.worker] > *place);
    replaced.map(|(_, task)| task.id.clone()).collect()
}
