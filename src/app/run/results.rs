//! The results of an orchestrator so far, one line each: first the aggregate, then the tasks.

use serde_json::Value;

use super::RunPage;
use super::waterfall::WaterfallRow;
use crate::narrate::event_line_tool::fallback_text;
use crate::pattern::orchestrator::projection::{TaskRow, TaskState};

/// A line of the results.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultLine<'a> {
    /// The level that the results add up to, and the name of that field.
    Level(&'a str, &'a Value),
    /// A section of the aggregate.
    Section(&'a str, &'a Value),
    /// A task, with its index in the plan.
    Task(usize, &'a TaskRow),
}

impl RunPage {
    /// The number of lines.
    pub fn result_count(&self) -> usize {
        let Some(orchestrator) = self.shown().orchestrator() else { return 0 };
        let plan = &*orchestrator.plan;
        let head = orchestrator.aggregate.as_ref().map_or(0, |_| plan.sections.len() + 1);
        head + orchestrator.tasks.len()
    }

    /// The line with this index.
    pub fn result_line(&self, place: usize) -> Option<ResultLine<'_>> {
        let orchestrator = self.shown().orchestrator()?;
        let plan = &*orchestrator.plan;
        let mut task = place;
        if let Some(aggregate) = &orchestrator.aggregate {
            if place == 0 {
                let level = aggregate.get(&plan.level).unwrap_or(&Value::Null);
                return Some(ResultLine::Level(&plan.level, level));
            }
            if let Some(name) = plan.sections.get(place - 1) {
                let value = aggregate.get(name).unwrap_or(&Value::Null);
                return Some(ResultLine::Section(name, value));
            }
            task = place - 1 - plan.sections.len();
        }
        orchestrator.tasks.get(task).map(|row| ResultLine::Task(task, row))
    }

    /// The index of the line that is kept in view.
    pub fn shown_result(&self) -> usize {
        let head = self
            .shown()
            .orchestrator()
            .and_then(|it| it.aggregate.as_ref().map(|_| it.plan.sections.len() + 1));
        match (self.waterfall_row(), head) {
            (Some(WaterfallRow::Task(task)), head) => task + head.unwrap_or(0),
            (_, Some(_)) => 0,
            (_, None) => match self.shown_row() {
                WaterfallRow::Task(task) => task,
                _ => 0,
            },
        }
    }
}

/// The result of a task in one line.
pub fn task_result(row: &TaskRow) -> String {
    let result = || row.result.as_deref().map(one_line).unwrap_or_default();
    match (row.state, row.fallback, &row.reason) {
        (TaskState::Degraded, Some(fallback), _) => {
            let value = result();
            let colon = if value.is_empty() { "" } else { ": " };
            format!("{}{colon}{value}", fallback_text(fallback))
        }
        (TaskState::Failed | TaskState::Cancelled, _, Some(reason)) => reason.phrase().into_owned(),
        (TaskState::Done, ..) => result(),
        _ => String::new(),
    }
}

/// The state of a task in one word.
pub fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Waiting => "waiting",
        TaskState::Running => "running",
        TaskState::Retrying => "retrying",
        TaskState::Done => "done",
        TaskState::Degraded => "degraded",
        TaskState::Failed => "failed",
        TaskState::Cancelled => "cancelled",
    }
}

/// A value in one line: a string without its quotes, anything else as JSON.
pub fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('\n', " "),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
