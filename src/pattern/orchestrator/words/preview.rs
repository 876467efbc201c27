//! The state of an orchestrator in the preview of its run.

use super::results::{level_part, state_word, task_result};
use crate::event::world::RunFold;
use crate::narrate::format;
use crate::narrate::pattern_words::Narrate;
use crate::narrate::preview::add_stop;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledText};
use crate::narrate::verdict::run_lead;
use crate::pattern::orchestrator::projection::{Orchestrator, TaskState};

/// The most tasks that are listed; the others are only counted.
const MAX_TASKS: usize = 32;

/// Adds how the run ended, and its tasks: their results, or their progress.
pub(super) fn add_state(orchestrator: &Orchestrator, run: &RunFold, to: &mut StyledText) {
    if let Some(closed) = &run.progress.closed {
        let lead = orchestrator.stop_detail(closed).unwrap_or_else(|| run_lead(run, closed));
        add_stop(run, lead, closed, to);
    }
    let level = &orchestrator.plan.level;
    if let Some(value) = orchestrator.aggregate.as_ref().and_then(|it| it.get(level)) {
        let part = level_part(value);
        to.lines.push(StyledLine { label: Some(level.clone().into()), parts: vec![part] });
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
