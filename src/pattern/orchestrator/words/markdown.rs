//! The tasks of an orchestrator as Markdown.

use std::fmt::Write as _;

use super::results::task_result;
use crate::narrate::export::escape::table_cell;
use crate::pattern::orchestrator::projection::Orchestrator;

/// Adds the tasks and their results.
pub(super) fn add_tasks(orchestrator: &Orchestrator, out: &mut String) {
    if orchestrator.tasks.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Tasks\n\n| task | worker | attempts | result |");
    let _ = writeln!(out, "| --- | --- | --- | --- |");
    for row in &orchestrator.tasks {
        let (id, worker) = (&row.task.id, &row.task.worker);
        let (attempts, result) = (row.attempts.len(), table_cell(&task_result(row)));
        let _ = writeln!(out, "| {id} | {worker} | {attempts} | {result} |");
    }
}
