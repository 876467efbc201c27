//! The fields that the pattern adds to an outcome; `collaboration/outcome.rs` makes their values.

use crate::scenario::pattern_row::OutcomeField;

/// The fields, in the order of an outcome.
pub(crate) const FIELDS: &[OutcomeField] = &[
    OutcomeField::new("answer", "string|null", "The launch brief. With success."),
    OutcomeField::new(
        "final_decision",
        "string|null",
        "`go`, `go_with_caution` or `no_go`. With success.",
    ),
    OutcomeField::new(
        "decided_by",
        "object",
        "What decided where it was not the rule of the source document: `row` (its number, from 1) and `when`, or `veto` (a role).",
    ),
    OutcomeField::new("rounds_used", "integer", "Rounds that were closed. With success."),
    OutcomeField::new(
        "team_summary",
        "object|null",
        "The inputs that the scenario names, and `stances` and `conflicts` of the last round. With success.",
    ),
    OutcomeField::new("raw_contribution", "any", "The contribution that stopped the run."),
    OutcomeField::new(
        "unused_contributions",
        "array",
        "Valid contributions that came after another seat had stopped the run. In a live run.",
    ),
    OutcomeField::new(
        "brief",
        "string",
        "The brief of a table that did not decide: what keeps the seats apart. With `max_rounds_reached`, in a live run.",
    ),
    OutcomeField::new("trace", "array", "Each contribution and each closed round, in order."),
    OutcomeField::new("history", "array", "Each closed round with its whole contributions."),
];
