//! What the search and read tools return, as the run keeps it: on one line, and shortened.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::policy::quote::FoldedText;
use crate::base::visible::visible_within;
use crate::pattern::research::facts::FoundSource;

/// The most bytes of an address; a longer one is dropped as invalid.
const URL_BYTES: usize = 2_048;
/// The most characters of a title that are kept.
pub(super) const TITLE_CHARS: usize = 300;
/// The most characters of a search snippet that are kept.
const SNIPPET_CHARS: usize = 500;
/// The most characters of a date that are kept: `2026-03-07`, or whatever a page gives instead.
pub(super) const DAY_CHARS: usize = 40;

/// A text from a tool on one line, shortened and with control characters made visible.
pub(super) fn single_line_text(text: &str, chars: usize) -> Arc<str> {
    visible_within(FoldedText::fold_white_space(text).as_str(), chars).into()
}

/// The data of a successful tool result, in the envelope of the source document
/// (`_unwrap_tool_data`).
pub(super) fn unwrap_tool_data(answer: &Value) -> Option<&Map<String, Value>> {
    let well = answer.get("status").and_then(Value::as_str) == Some("ok");
    answer.get("data").and_then(Value::as_object).filter(|_| well)
}

/// A source in a search result; `None` if the row is not an object (the source document drops it
/// too).
pub(super) fn parse_source(row: &Value) -> Option<FoundSource> {
    let row = row.as_object()?;
    let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let shown = |key: &str, chars| single_line_text(text(key), chars);
    let url = Some(text("url")).filter(|url| url.len() <= URL_BYTES);
    Some(FoundSource {
        url: url.unwrap_or_default().into(),
        title: shown("title", TITLE_CHARS),
        snippet: shown("snippet", SNIPPET_CHARS),
        // Trust is multiplied with the score, so a score is at most 1.
        score: row.get("score").and_then(Value::as_f64).map(|score| score.clamp(0.0, 1.0)),
        published_at: shown("published_at", DAY_CHARS),
    })
}
