//! The fields of an orchestrator's outcome (orchestrator source document).

use serde_json::{Value, json};

use crate::event::StopReason;
use crate::event::world::RunFold;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::outcome::fields::to_value;
use crate::pattern::orchestrator::projection::{Orchestrator, TaskRow, TaskState};

impl Orchestrator {
    /// Adds the fields that the source document defines.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let Some(closed) = &run.progress.closed else { return };
        let success = closed.reason.is_success();
        let phase = closed.phase.as_deref();
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        // Ended tasks are reported, whatever stopped the run.
        let over = || self.tasks.iter().filter(|row| has_ended(row));
        if success {
            add("answer", run.progress.answer.as_deref().map_or(Value::Null, Value::from));
        }
        if let Some(details) = &self.refused_details {
            add("details", details.clone());
        }
        if let Some((_, raw)) = &self.refused {
            add("raw_plan", raw.clone());
        }
        if !self.tasks.is_empty() && (success || phase == Some("dispatch")) {
            let plan: Vec<_> = self.tasks.iter().map(|row| &row.task).collect();
            add("plan", to_value(&plan));
        }
        if closed.reason == StopReason::CriticalTaskFailed {
            let failed = over().filter(|row| row.state == TaskState::Failed && row.task.critical);
            add("failed_critical", failed.map(|row| history_entry(row)).collect());
        }
        if let Some(aggregate) = &self.aggregate {
            add("aggregate", (**aggregate).clone());
        }
        let trace = over().map(|row| {
            let reason = row.reason.as_ref().filter(|_| row.state == TaskState::Failed);
            let mut line = json!({
                "task_id": row.task.id,
                "worker": row.task.worker,
                "status": status(row),
                "attempts_used": row.attempts_used,
                "retried": row.attempts_used > 1,
                "args_hash": row.args_hash,
                "stop_reason": reason,
                "critical": row.task.critical,
            });
            add_own_fields(row, &mut line);
            line
        });
        add("trace", trace.collect());
        add("history", over().map(|row| history_entry(row)).collect());
        // Added by roundtable: the tasks that the stop left unfinished.
        let left = self.tasks.iter().filter(|row| !has_ended(row)).map(|row| unfinished(row));
        let left: Vec<Value> = left.collect();
        if !left.is_empty() && !success && phase == Some("dispatch") {
            add("unfinished", Value::Array(left));
        }
    }
}

/// A task that was running, or had not started, when the run was stopped.
fn unfinished(row: &TaskRow) -> Value {
    json!({
        "task_id": row.task.id,
        "worker": row.task.worker,
        "attempts_used": row.attempts.len(),
    })
}

/// Whether a task has a result, a fallback or a failure.
fn has_ended(row: &TaskRow) -> bool {
    matches!(row.state, TaskState::Done | TaskState::Degraded | TaskState::Failed)
}

fn status(row: &TaskRow) -> &'static str {
    if row.state == TaskState::Failed { "failed" } else { "done" }
}

/// A task as an entry of `history` in the orchestrator source document.
fn history_entry(row: &TaskRow) -> Value {
    let mut item = json!({
        "task_id": row.task.id,
        "worker": row.task.worker,
        "critical": row.task.critical,
        "status": status(row),
        "attempts_used": row.attempts_used,
        "retried": row.attempts_used > 1,
        "args_hash": row.args_hash,
    });
    if row.state == TaskState::Failed {
        item["stop_reason"] = to_value(&row.reason);
    } else {
        item["observation"] = json!({
            "status": "done",
            "worker": row.task.worker,
            "result": row.result,
        });
    }
    add_own_fields(row, &mut item);
    item
}

/// Fields that roundtable adds: the error of a failed task's last attempt, and the kind of
/// fallback, if one was used.
fn add_own_fields(row: &TaskRow, line: &mut Value) {
    if let Some(error) = &row.error
        && row.state == TaskState::Failed
    {
        line["error"] = (**error).into();
    }
    if let Some(by) = &row.fallback
        && row.state == TaskState::Degraded
    {
        line["fallback"] = by.word().into();
    }
}
