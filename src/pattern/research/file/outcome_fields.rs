//! The fields that the pattern adds to an outcome; `research/outcome.rs` makes their values.

use crate::scenario::pattern_row::OutcomeField;

/// The fields, in the order of an outcome.
pub(crate) const FIELDS: &[OutcomeField] = &[
    OutcomeField::new("outcome", "string", "`grounded_research_answer`. With success."),
    OutcomeField::new("answer", "string|null", "The answer. With success."),
    OutcomeField::new("citations", "array", "The ids of the cited notes. With success."),
    OutcomeField::new(
        "citation_details",
        "array",
        "The cited notes: `id`, `url`, `title`, `published_at`. With success.",
    ),
    OutcomeField::new(
        "sentences",
        "array",
        "Each sentence of the answer with the notes that support it. With success.",
    ),
    OutcomeField::new(
        "aggregate",
        "object",
        "The query, and how many pages, notes and citations there were. With success.",
    ),
    OutcomeField::new("details", "any", "What was expected of a refused plan, and what came."),
    OutcomeField::new("raw_plan", "any", "The plan that was refused."),
    OutcomeField::new("denied_sources", "array", "Sources that the policy denied."),
    OutcomeField::new("raw_answer", "any", "The answer that was refused."),
    OutcomeField::new("verification", "object", "What the verification of the quotes found."),
    OutcomeField::new(
        "dropped_sources",
        "array",
        "Results of the search that were dropped, each with its reason.",
    ),
    OutcomeField::new(
        "skipped_sources",
        "array",
        "Sources that were not read, each with its reason.",
    ),
    OutcomeField::new("refused_notes", "array", "Notes that were refused, each with its reason."),
    OutcomeField::new(
        "cut_notes",
        "array",
        "Pages of which notes were cut, by `notes_per_page` or by `max_notes`.",
    ),
    OutcomeField::new("unsearched", "any", "What the search left out."),
    OutcomeField::new(
        "unanswered",
        "array",
        "Parts of the question that no note says anything about.",
    ),
    OutcomeField::new("conflicts", "array", "Notes that contradict each other."),
    OutcomeField::new("unconfirmed", "array", "Notes that too few independent sources confirm."),
    OutcomeField::new("notes", "array", "The notes with their quotes."),
    OutcomeField::new("trace", "array", "Each step with its counts."),
    OutcomeField::new("history", "array", "Each step with its data."),
];
