//! The fields that the pattern adds to an outcome; `resilience/outcome.rs` makes their values.

use crate::scenario::pattern_row::OutcomeField;

/// The fields, in the order of an outcome.
pub(crate) const FIELDS: &[OutcomeField] = &[
    OutcomeField::new(
        "summary",
        "object",
        "Results of all agents, the amplification of their calls, and the most calls that waited.",
    ),
    OutcomeField::new(
        "trace",
        "array",
        "Each change of a breaker: `at_ms`, `tool`, `to`, `why`, and `counted` where its window opened it.",
    ),
    OutcomeField::new("history", "array", "The results of each agent."),
];
