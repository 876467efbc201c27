//! Aggregates the task results into named sections and a level, by the scenario's rules
//! (`aggregate_results` in the orchestrator source document). Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::base::name::{TaskId, ToolName};
use crate::log::event::StopReason;
use crate::log::facts::orchestrator::Task;
use crate::scenario::cel::decision::ConditionDecision;
use crate::scenario::cel::{CelBindings, ConditionError, EvalBudget};
use crate::scenario::patterns::orchestrator::{AggregateSection, LevelRule, LevelRules};

/// The result of a task, or the reason why it has none.
pub type TaskResultRef<'a> = std::result::Result<&'a Arc<Value>, &'a StopReason>;

/// The results by section, before the level is known.
pub struct GatheredResults {
    echo: Map<String, Value>,
    sections: Vec<(String, Arc<Value>)>,
    failed: Arc<Value>,
}

/// Gathers the results in plan order. If a worker has several results, the last one counts.
pub fn gather_results<'a>(
    echo: Map<String, Value>,
    sections: &[AggregateSection],
    results: impl Iterator<Item = (&'a Task, TaskResultRef<'a>)> + Clone,
) -> GatheredResults {
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
    GatheredResults { echo, sections, failed: Arc::new(failed.collect()) }
}

impl GatheredResults {
    /// The rules of the level, with the values that they read.
    pub fn level_decision(&self, level: &LevelRules) -> LevelDecision {
        let mut shown = CelBindings::default();
        shown.bind("inputs", &Value::Object(self.echo.clone()));
        shown.bind_shared("failed_tasks", Arc::clone(&self.failed));
        for (name, value) in &self.sections {
            shown.bind_shared(name.clone(), Arc::clone(value));
        }
        LevelDecision { rules: Arc::clone(&level.rules), shown }
    }

    /// The aggregate, with the level of the matching rule; without a match, the `otherwise` level.
    pub fn into_aggregate(self, level: &LevelRules, rule: Option<usize>) -> Value {
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
pub struct LevelDecision {
    rules: Arc<[LevelRule]>,
    shown: CelBindings,
}

/// Which rule of a level matches.
#[derive(Debug, Default)]
pub struct DecidedLevel {
    /// Its index.
    pub rule: Option<usize>,
    /// The names of the values by which it holds.
    pub decided_by: Vec<String>,
    /// The rules that could not be evaluated, which count as false.
    pub failed: Vec<(usize, ConditionError)>,
}

impl ConditionDecision for LevelDecision {
    type DecisionResult = DecidedLevel;

    fn evaluate(&self, budget: &mut EvalBudget) -> DecidedLevel {
        let mut failed = Vec::new();
        let found = self.rules.iter().enumerate().position(|(place, rule)| {
            rule.when.holds_within(&self.shown, budget).unwrap_or_else(|error| {
                failed.push((place, error));
                false
            })
        });
        let matching = found.and_then(|rule| self.rules.get(rule));
        let decided_by = matching.map(|rule| rule.when.deciding_names(&self.shown, budget));
        DecidedLevel { rule: found, decided_by: decided_by.unwrap_or_default(), failed }
    }
}

/// The tasks whose result is replaced by a later result of the same worker.
pub fn overwritten_tasks<'a>(results: impl Iterator<Item = (&'a Task, bool)>) -> Vec<TaskId> {
    let done: Vec<&Task> = results.filter(|(_, done)| *done).map(|(task, _)| task).collect();
    let last: BTreeMap<&ToolName, usize> =
        done.iter().enumerate().map(|(place, task)| (&task.worker, place)).collect();
    let replaced = done.iter().enumerate().filter(|(place, task)| last[&task.worker] > *place);
    replaced.map(|(_, task)| task.id.clone()).collect()
}
