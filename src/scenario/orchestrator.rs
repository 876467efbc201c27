//! What the pattern `orchestrator` (source `001`) needs of its scenario.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::condition::Condition;
use super::name::{FlagName, InputName, ToolName};

/// `pattern = "orchestrator"`.
#[derive(Debug)]
pub struct OrchestratorSpec {
    /// Limits of `001`.
    pub budget: OrchestratorBudget,
    /// The catalogue that the planner is shown, in the file's order: the policy allowlist.
    pub workers: Vec<Worker>,
    /// System prompt of the planner, the reply contract not yet added.
    pub plan_prompt: Arc<str>,
    /// System prompt of the report at the end.
    pub finalize_prompt: Arc<str>,
    /// Inputs that the planner is shown and the aggregate repeats, such as `report_date`.
    pub echo: Vec<InputName>,
    /// The sections of the aggregate, in the file's order: whose results stand in each.
    pub sections: Vec<Section>,
    /// The level of the aggregate (`health` in `001`).
    pub level: LevelRules,
}

/// Limits of an orchestrator run, named as in `001`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrchestratorBudget {
    /// Tasks of a plan at most.
    pub max_tasks: u32,
    /// Tasks at once at most, at least 1.
    pub max_parallel: u32,
    /// Attempts beyond the first of a task whose worker timed out.
    pub max_retries_per_task: u32,
    /// Attempts of all tasks at most.
    pub max_dispatches: u32,
    /// Bound of one attempt.
    pub task_timeout: Duration,
    /// Bound of the whole run, pauses not counted.
    pub max_seconds: Duration,
}

/// A worker of the catalogue. The tool of the same name does its work.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Its name.
    pub name: ToolName,
    /// What it does, for the planner.
    pub description: String,
    /// The arguments it takes, each with what the planner is told of it.
    pub args: Map<String, Value>,
    /// The flag that takes it off the execution list when off.
    pub flag: Option<FlagName>,
}

/// A named part of the aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name, such as `payments`.
    pub name: String,
    /// The worker whose result it is.
    pub worker: ToolName,
}

/// How the level of the aggregate is found: the first rule that holds, so the most severe stands
/// first.
#[derive(Debug)]
pub struct LevelRules {
    /// Its name in the aggregate, such as `health`.
    pub name: String,
    /// The rules in order.
    pub rules: Arc<[LevelRule]>,
    /// The level when none holds.
    pub otherwise: String,
}

/// One rule.
#[derive(Debug)]
pub struct LevelRule {
    /// The level it gives.
    pub level: String,
    /// When: CEL over the sections, `inputs` and `failed_tasks`.
    pub when: Condition,
}

impl OrchestratorSpec {
    /// The worker of this name.
    pub fn worker(&self, name: &str) -> Option<&Worker> {
        self.workers.iter().find(|worker| worker.name.as_str() == name)
    }

    /// The flags that workers stand behind.
    pub fn behind(&self) -> BTreeMap<&ToolName, &FlagName> {
        self.workers
            .iter()
            .filter_map(|worker| Some((&worker.name, worker.flag.as_ref()?)))
            .collect()
    }
}
