//! What people read in place of an identifier of a log: on screen, in Markdown and in text output.
//! JSON keeps the identifiers.

use std::borrow::Cow;

use super::contribution::{Conflict, Decision};
use super::failure_class::FailureClass;
use crate::pattern::research::facts::{Denial, DropReason, NotesLimit, ReadingEnd};

impl Decision {
    /// The decision in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::GoWithCaution => "go with caution",
            Self::NoGo => "no go",
        }
    }
}

impl Conflict {
    /// The conflict in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::NoContributions => "no contributions",
            Self::GoVsCaution => "go vs caution",
            // Not "block vs go": the others may all say caution.
            Self::BlockingVsNonBlock => "block vs others",
            Self::HighDivergence => "far apart",
        }
    }
}

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

impl FailureClass {
    /// The class in words, as short as its identifier.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::RateLimited => "rate limited",
            Self::BadResponse => "bad response",
            Self::TooLarge => "too large",
            Self::ScriptMissing => "not scripted",
            other => other.word(),
        }
    }
}

/// Why a source was skipped, in words; its identifier may come from a tool of the scenario.
pub(crate) fn skip_phrase(reason: &str) -> Cow<'_, str> {
    match reason.strip_prefix("http_") {
        Some(status) => format!("HTTP {status}").into(),
        None if reason.contains('_') => reason.replace('_', " ").into(),
        None => reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::StopReason;

    #[test]
    fn no_phrase_is_an_identifier() {
        let phrases = Decision::ALL.map(Decision::phrase).into_iter();
        for phrase in phrases.chain(FailureClass::ALL.map(FailureClass::phrase)) {
            assert!(!phrase.contains('_'), "{phrase}");
        }
        assert_eq!(skip_phrase("http_404"), "HTTP 404");
        assert_eq!(skip_phrase("robots_disallowed"), "robots disallowed");
    }

    #[test]
    fn a_name_in_a_phrase_keeps_its_spelling() {
        for (id, phrase) in [
            ("max_rounds_reached", "round limit"),
            ("agent_denied:legal_analyst", "legal_analyst denied"),
            ("llm_error:http_503", "model: HTTP 503"),
            ("tool_error:vendor_api:rate_limited", "vendor_api: rate limited"),
            (
                "invalid_contribution:agent_mismatch:risk_analyst",
                "invalid contribution: expected agent risk_analyst",
            ),
            ("from_a_later_version", "from_a_later_version"),
        ] {
            assert_eq!(StopReason::from(id).phrase(), phrase);
        }
        assert_eq!(StopReason::Cancelled.phrase_and_id(), "cancelled");
        assert_eq!(StopReason::LlmTimeout.phrase_and_id(), "model timed out (llm_timeout)");
    }
}
