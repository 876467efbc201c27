//! The result and the state of a task in words.

use serde_json::Value;

use crate::base::visible::visible_within;
use crate::event::StopReason;
use crate::narrate::badges;
use crate::narrate::event_line_tool::fallback_text;
use crate::narrate::readable::top_text;
use crate::narrate::short_error::short_error;
use crate::narrate::styled::StyledPart;
use crate::pattern::orchestrator::faults::WorkerFault;
use crate::pattern::orchestrator::projection::{Orchestrator, TaskRow, TaskState};

/// Most characters of one value by which a level was decided.
const EVIDENCE_CHARS: usize = 48;

/// The task with this index.
pub(super) fn task_at(orchestrator: &Orchestrator, index: u32) -> Option<&TaskRow> {
    orchestrator.tasks.get(usize::try_from(index).ok()?).map(|row| &**row)
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
        (TaskState::Failed | TaskState::Cancelled, ..) => task_cause(row).unwrap_or_default(),
        (TaskState::Done, ..) => result(),
        _ => String::new(),
    }
}

/// Why a task has no result: the error of its last attempt where the reason says only that its worker
/// failed.
pub fn task_cause(row: &TaskRow) -> Option<String> {
    Some(match (row.reason.as_ref()?, &row.error) {
        (StopReason::Worker(WorkerFault::Error | WorkerFault::BadResult, _), Some(error)) => {
            short_error(error)
        }
        (reason, _) => reason.phrase().into_owned(),
    })
}

/// How many tasks are finished, and how many of them failed: `2/4 tasks`, `1 ok, 3 failed of 4 tasks`.
pub fn tasks_text(orchestrator: &Orchestrator) -> String {
    let of = |state| orchestrator.tasks.iter().filter(|row| row.state == state).count();
    let (all, failed) = (orchestrator.tasks.len(), of(TaskState::Failed));
    let ended = orchestrator.ended();
    match failed {
        0 => format!("{ended}/{all} tasks"),
        _ => format!(
            "{} ok, {failed} failed of {all} tasks",
            of(TaskState::Done) + of(TaskState::Degraded)
        ),
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

/// The values by which the rule of the level holds, in words: `out of stock skus SKU-9033`. `None`: no
/// rule matched, or the log does not say.
pub(super) fn level_evidence(orchestrator: &Orchestrator) -> Option<String> {
    let aggregate = orchestrator.aggregate.as_deref()?;
    let values = orchestrator.level_decided_by.iter().filter_map(|name| {
        let value = name.split('.').try_fold(aggregate, |value, field| value.get(field))?;
        let field = name.rsplit('.').next().unwrap_or(name).replace('_', " ");
        Some(format!("{field} {}", visible_within(&one_line(value), EVIDENCE_CHARS)))
    });
    let values: Vec<String> = values.collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// A level of the aggregate: its word, with the glyph and the colour of its severity if it has one.
pub fn level_part(level: &Value) -> StyledPart {
    let word = one_line(level);
    match badges::level(&word) {
        Some(badge) => StyledPart::with_glyph(badge.glyph, badge.role, word),
        None => StyledPart::plain(word),
    }
}

/// A value in one line, an object as `key: value`.
pub fn one_line(value: &Value) -> String {
    top_text(value).replace('\n', " ")
}
