//! A page as its tool returned it, and the outcome of a source that gave none.

use std::sync::Arc;

use crate::base::visible::visible_within;
use crate::event::{SpanId, StopReason};
use crate::pattern::research::facts::SourceOutcome;

/// The outcome of a source, or why the run stops.
pub(super) type SourceResult = Result<SourceOutcome, StopReason>;

/// A page as its tool returned it.
pub(super) struct FetchedPage {
    pub call: SpanId,
    pub url: String,
    pub title: Arc<str>,
    pub published_at: Arc<str>,
    /// `published_at` is the modification date of its file.
    pub modified: bool,
    pub body: String,
}

/// The most characters of a tool's error identifier.
const REASON_CHARS: usize = 64;

/// The most characters of a tool's error text.
const TEXT_CHARS: usize = 400;

/// A skipped source. Texts of a tool are data: shortened, and control characters made visible.
pub(super) fn skipped(reason: &str, text: &str) -> SourceOutcome {
    SourceOutcome::Skipped {
        reason: visible_within(reason, REASON_CHARS).into(),
        text: visible_within(text, TEXT_CHARS).into(),
    }
}
