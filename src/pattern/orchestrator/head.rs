//! The setup of an orchestrator, for the head of its log.

use super::plan::{OrchestratorPlan, WorkerHead};
use super::spec::OrchestratorSpec;
use crate::event::id::millis;

/// The setup of a run.
pub(crate) fn setup(spec: &OrchestratorSpec) -> OrchestratorPlan {
    OrchestratorPlan {
        workers: spec
            .workers
            .iter()
            .map(|worker| WorkerHead {
                name: worker.name.clone(),
                description: worker.description.clone(),
                flag: worker.flag.clone(),
            })
            .collect(),
        max_tasks: spec.budget.max_tasks,
        max_parallel: spec.budget.max_parallel,
        max_retries_per_task: spec.budget.max_retries_per_task,
        max_dispatches: spec.budget.max_dispatches,
        task_timeout_ms: millis(spec.budget.task_timeout),
        max_ms: millis(spec.budget.max_seconds),
        sections: spec.sections.iter().map(|section| section.name.clone()).collect(),
        level: spec.level.name.clone(),
    }
}
