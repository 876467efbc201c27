//! The fields that the pattern adds to an outcome; `router/outcome.rs` makes their values.

use crate::scenario::pattern_row::OutcomeField;

/// The fields, in the order of an outcome.
pub(crate) const FIELDS: &[OutcomeField] = &[
    OutcomeField::new("route", "string|null", "The route that was taken."),
    OutcomeField::new("proposed_route", "string|null", "The route that the classifier proposed."),
    OutcomeField::new("confidence", "number", "How sure the classifier was, from 0 to 1."),
    OutcomeField::new("reason", "string", "Why it proposed that route."),
    OutcomeField::new("alternatives", "array", "The other routes with their confidence."),
    OutcomeField::new("fallback_used", "boolean", "Whether the fallback route was taken."),
    OutcomeField::new("fallback_cause", "any", "Why the fallback was taken, or no route was."),
    OutcomeField::new("answer", "string|null", "The answer of the route's agent. With success."),
    OutcomeField::new("final_agent", "string|null", "The agent that gave it. With success."),
    OutcomeField::new(
        "written_calls",
        "array",
        "Answers of agents that are a tool call written as text: `who` and `text`.",
    ),
];
