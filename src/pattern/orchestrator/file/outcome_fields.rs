//! The fields that the pattern adds to an outcome; `orchestrator/outcome.rs` makes their values.

use crate::scenario::pattern_row::OutcomeField;

/// The fields, in the order of an outcome.
pub(crate) const FIELDS: &[OutcomeField] = &[
    OutcomeField::new("answer", "string|null", "The report. With success."),
    OutcomeField::new("details", "any", "What was expected of a refused plan, and what came."),
    OutcomeField::new("raw_plan", "any", "The plan that was refused."),
    OutcomeField::new("plan", "array", "The tasks of the plan."),
    OutcomeField::new(
        "failed_critical",
        "array",
        "The critical tasks that failed and stopped the run.",
    ),
    OutcomeField::new(
        "aggregate",
        "object",
        "The results of the workers by section, and the level.",
    ),
    OutcomeField::new("trace", "array", "Each task that has ended: attempts, status, stop reason."),
    OutcomeField::new("history", "array", "The same tasks with their results."),
    OutcomeField::new(
        "unfinished",
        "array",
        "Tasks that were running or had not started when the run was stopped.",
    ),
];
