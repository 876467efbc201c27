//! The fields that the pattern adds to an outcome; `team/outcome.rs` makes their values.

use crate::scenario::pattern_row::OutcomeField;

/// The fields, in the order of an outcome.
pub(crate) const FIELDS: &[OutcomeField] = &[
    OutcomeField::new("answer", "string|null", "The answer. With success."),
    OutcomeField::new("final_agent", "string|null", "The agent that gave it. With success."),
    OutcomeField::new(
        "missing",
        "array",
        "Calls without a result that the answer does not mention: `of` and `text`.",
    ),
    OutcomeField::new(
        "written_calls",
        "array",
        "Answers of agents that are a tool call written as text: `who` and `text`.",
    ),
    OutcomeField::new("partial_answer", "string", "What was said last before the run was stopped."),
    OutcomeField::new(
        "handoffs",
        "array",
        "Each handoff: `from`, `to`, `message`, `at_ms`, and `swarm` in a nested one.",
    ),
    OutcomeField::new(
        "owner",
        "string|null",
        "The agent that the next message of the session goes to.",
    ),
    OutcomeField::new("message", "integer", "The number of the message in its session, from 1."),
    OutcomeField::new("after", "string", "The run that answered the message before."),
    OutcomeField::new(
        "trace",
        "array",
        "Each turn of an agent: `agent`, `team`, `from`, `kind`, `status`, times.",
    ),
    OutcomeField::new(
        "history",
        "array",
        "The transcript: messages, replies, calls, results, handoffs.",
    ),
];
