//! The results of an orchestrator so far, one line each: first the aggregate, then the tasks.

use serde_json::Value;

use crate::app::run::data::RunData;
use crate::pattern::orchestrator::projection::TaskRow;

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

/// The number of lines.
pub fn result_count(run: &RunData) -> usize {
    let Some(orchestrator) = run.shown().orchestrator() else { return 0 };
    let plan = &*orchestrator.plan;
    let head = orchestrator.aggregate.as_ref().map_or(0, |_| plan.sections.len() + 1);
    head + orchestrator.tasks.len()
}

/// The line with this index.
pub fn result_line(run: &RunData, place: usize) -> Option<ResultLine<'_>> {
    let orchestrator = run.shown().orchestrator()?;
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
