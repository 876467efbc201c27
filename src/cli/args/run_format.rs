//! The formats in which a run is written.

use clap::ValueEnum;

/// Output format of a headless run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// Only the outcome object; for several messages one object for the whole session
    Json,
    /// One line for each event, then the outcome object
    Jsonl,
    /// Human-readable progress
    Text,
    /// The answer of a research run with footnotes, refused notes and contradictions
    Markdown,
    /// Text in a group, with an annotation where a run was stopped, for GitHub Actions
    Github,
}
