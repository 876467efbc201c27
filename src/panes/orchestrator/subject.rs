//! The subject of the page of an orchestrator: the selected row of the waterfall, else what runs.

use std::sync::Arc;

use super::waterfall::WaterfallRow;
use crate::event::SpanId;
use crate::event::world::{RunState, World};
use crate::pattern::orchestrator::projection::{Orchestrator, TaskRow, TaskState};

/// The subject of the task pane, of the prompt and of the inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSubject {
    /// The plan.
    Plan,
    /// A task, by its index in the plan.
    Task(usize),
    /// The join: the results combined.
    Join,
    /// The model call for the report.
    Finalize,
    /// The outcome of the run.
    Outcome,
    /// None: no call has been made yet.
    None,
}

/// The subject of the page while this row is selected, or none.
pub(super) fn subject_of(
    row: Option<WaterfallRow>,
    world: &World,
    plan: &Orchestrator,
) -> TaskSubject {
    match row {
        Some(WaterfallRow::Plan) => TaskSubject::Plan,
        Some(WaterfallRow::Task(task)) if task < plan.tasks.len() => TaskSubject::Task(task),
        Some(WaterfallRow::Join) => TaskSubject::Join,
        Some(WaterfallRow::Report) => match world.progress.stage {
            RunState::Closed => TaskSubject::Outcome,
            _ => TaskSubject::Finalize,
        },
        Some(WaterfallRow::Task(_)) | None => followed_subject(world, plan),
    }
}

/// The model call of a subject, if there is one.
pub(super) fn call_of(subject: TaskSubject, plan: &Orchestrator) -> Option<SpanId> {
    match subject {
        TaskSubject::Plan => plan.plan_call,
        TaskSubject::Task(task) => plan.tasks.get(task)?.call,
        TaskSubject::Finalize => plan.finalize,
        TaskSubject::Outcome => plan.finalize.or_else(|| {
            let failed = |critical: bool| {
                let of = |row: &&Arc<TaskRow>| {
                    row.state == TaskState::Failed && row.task.critical == critical
                };
                plan.tasks.iter().find(of)?.call
            };
            failed(true).or_else(|| failed(false)).or(plan.plan_call)
        }),
        TaskSubject::Join | TaskSubject::None => None,
    }
}

fn followed_subject(world: &World, plan: &Orchestrator) -> TaskSubject {
    if world.progress.stage == RunState::Closed {
        return TaskSubject::Outcome;
    }
    if plan.finalize.is_some() {
        return TaskSubject::Finalize;
    }
    if plan.aggregate.is_some() {
        return TaskSubject::Join;
    }
    if plan.tasks.is_empty() {
        return if plan.plan_call.is_some() { TaskSubject::Plan } else { TaskSubject::None };
    }
    let first = |state: TaskState| plan.tasks.iter().position(|row| row.state == state);
    first(TaskState::Running)
        .or_else(|| first(TaskState::Retrying))
        .or_else(|| first(TaskState::Waiting))
        .map_or(TaskSubject::Join, TaskSubject::Task)
}
