//! Why sources and notes are dropped, in words; JSON keeps the identifiers.

use std::borrow::Cow;

use super::{Denial, DropReason, NotesLimit, ReadingEnd};
use crate::event::kind::FailureClass;

impl DropReason {
    /// The reason in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid address",
            Self::Duplicate { .. } => "duplicate",
            Self::MaxUrls => "over the URL limit",
        }
    }
}

impl Denial {
    /// The reason in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Policy => "not on the allowlist",
            Self::Execution => "switched off",
        }
    }
}

impl NotesLimit {
    /// The limit in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::NotesPerPage => "limit per page",
            Self::MaxNotes => "limit per run",
        }
    }
}

impl ReadingEnd {
    /// The reason in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::NoMoreSources => "no more sources",
            Self::MaxReadPages => "page limit reached",
            Self::MaxNotes => "note limit reached",
        }
    }
}

/// Why a source was skipped, in words; its identifier may come from a tool of the scenario.
pub(crate) fn skip_phrase(reason: &str) -> Cow<'_, str> {
    if let Some(class) = FailureClass::from_word(reason) {
        return class.phrase().into();
    }
    match reason.strip_prefix("http_") {
        Some(status) => format!("HTTP {status}").into(),
        None if reason.contains('_') => reason.replace('_', " ").into(),
        None => reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_skipped_source_is_no_identifier() {
        assert_eq!(skip_phrase("http_404"), "HTTP 404");
        assert_eq!(skip_phrase("robots_disallowed"), "robots disallowed");
        assert_eq!(skip_phrase("resolve"), "name not found");
    }
}
