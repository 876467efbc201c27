//! What people read in place of an identifier of a log: on screen, in Markdown and in text output.
//! JSON keeps the identifiers.

use super::contribution::{Conflict, Decision};
use super::failure_class::FailureClass;

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

impl FailureClass {
    /// The class in words, hardly longer than its identifier.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Timeout => "timed out",
            Self::Resolve => "name not found",
            Self::Connect => "no connection",
            Self::Status => "HTTP error",
            Self::RateLimited => "rate limited",
            Self::BadResponse => "bad response",
            Self::TooLarge => "too large",
            Self::ScriptMissing => "not scripted",
            other => other.word(),
        }
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
    }

    #[test]
    fn a_name_in_a_phrase_keeps_its_spelling() {
        for (id, phrase) in [
            ("max_rounds_reached", "round limit"),
            ("agent_denied:legal_analyst", "legal_analyst denied"),
            ("llm_error:http_503", "model: HTTP 503"),
            ("tool_error:vendor_api:rate_limited", "vendor_api: rate limited"),
            ("tool_error:vendor_api:resolve", "vendor_api: name not found"),
            ("tool_error:vendor_api:connect", "vendor_api: no connection"),
            ("tool_error:vendor_api:timeout", "vendor_api: timed out"),
            (
                "invalid_contribution:agent_mismatch:risk_analyst",
                "invalid contribution: expected agent risk_analyst",
            ),
            ("from_a_later_version", "from_a_later_version"),
        ] {
            assert_eq!(StopReason::from(id).phrase(), phrase);
        }
    }
}
