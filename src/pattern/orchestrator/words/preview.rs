//! The state of an orchestrator in the preview of its run.

use super::results::{one_line, state_word, task_result};
use crate::event::world::RunFold;
use crate::narrate::format;
use crate::narrate::preview::add_end;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledText;
use crate::pattern::orchestrator::projection::{Orchestrator, TaskState};

/// The most tasks that are listed; the others are only counted.
const MAX_TASKS: usize = 32;

/// Adds how the run ended, and its tasks: their results, or their progress.
pub(super) fn add_state(orchestrator: &Orchestrator, run: &RunFold, to: &mut StyledText) {
    add_end(run, to);
    let level = &orchestrator.plan.level;
    if let Some(value) = orchestrator.aggregate.as_ref().and_then(|it| it.get(level)) {
        to.item(level, StyleRole::Text, one_line(value));
    }
    for (at, row) in orchestrator.tasks.iter().take(MAX_TASKS).enumerate() {
        let label = if at == 0 { "tasks" } else { "" };
        let state = state_word(row.state);
        let text = match row.state {
            TaskState::Failed | TaskState::Degraded => {
                format!("{} {state}: {}", row.task.id, task_result(row))
            }
            _ => format!("{} {state}: {}", row.task.id, row.task.worker),
        };
        match row.state {
            TaskState::Failed => to.error(label, text),
            _ => to.item(label, StyleRole::Text, text),
        }
    }
    if let Some(more @ 1..) = orchestrator.tasks.len().checked_sub(MAX_TASKS) {
        let text = format!("and {}", format::count_noun(more as u64, "more task"));
        to.item("", StyleRole::Dim, text);
    }
}
