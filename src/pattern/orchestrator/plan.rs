//! The setup of an orchestrator, as the head of a log has it.

use serde::{Deserialize, Serialize};

use crate::base::name::{FlagName, ToolName};
use crate::event::plan::Plan;
use crate::event::redact::TextRedactor;
use crate::event::weight::texts;

/// Setup of an orchestrator: its workers, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct OrchestratorPlan {
    /// The available workers, in the scenario's order.
    pub workers: Vec<WorkerHead>,
    /// Max tasks of a plan.
    pub max_tasks: u32,
    /// Concurrency limit of tasks at the start.
    pub max_parallel: u32,
    /// Max attempts of a task after the first.
    pub max_retries_per_task: u32,
    /// Max attempts of all tasks together.
    pub max_dispatches: u32,
    /// Timeout of one attempt in milliseconds.
    pub task_timeout_ms: u64,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
    /// The sections of the aggregate.
    pub sections: Vec<String>,
    /// Name of the aggregate's level, such as `health`.
    pub level: String,
}

/// A worker that may be planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct WorkerHead {
    /// Name of the worker.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// The flag that removes it from the execution list when off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

impl Plan for OrchestratorPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }

    fn weight(&self) -> usize {
        let workers = self.workers.iter().fold(0, |sum, worker| {
            let flag = worker.flag.as_ref().map_or(0, |flag| flag.as_str().len());
            let name = worker.name.as_str().len();
            sum + size_of_val(worker) + name + worker.description.len() + flag
        });
        size_of::<Self>()
            + self.level.len()
            + texts(self.sections.iter().map(String::as_str))
            + workers
    }

    fn redact(&mut self, by: &mut TextRedactor) {
        let Self {
            workers,
            max_tasks: _,
            max_parallel: _,
            max_retries_per_task: _,
            max_dispatches: _,
            task_timeout_ms: _,
            max_ms: _,
            sections: _,
            level,
        } = self;
        by.text(level);
        for WorkerHead { name, description, flag: _ } in workers {
            by.declare(name.as_str());
            by.text(description);
        }
    }
}
