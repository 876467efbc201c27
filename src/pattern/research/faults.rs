//! Faults of the steps, notes and answers of research, in the words of the research source
//! document.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::reason_part::ReasonPart;
use crate::event::redact::TextRedactor;

/// What to do about a fault that needs advice of its own.
fn advice(word: &str) -> Option<&'static str> {
    Some(match word {
        "quote_not_in_source" => {
            "A quote was not found on its page: set misquotes = \"refuse\" to drop such notes."
        }
        "citation_unknown" => {
            "The answer cites a note that does not exist: fix its prompt, or set model.ask_again."
        }
        "too_long" => "Raise budget.max_answer_chars, or ask for a shorter answer.",
        _ => return None,
    })
}

/// Defines enums that are printed as one word each; the second text is for people.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal, $phrase:literal;)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$each])* #[doc = concat!("`", $word, "`")] #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The word in stop reasons and in JSON.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The fault in words.
            pub(crate) fn phrase(self) -> &'static str {
                match self {
                    $(Self::$variant => $phrase,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }

        impl ReasonPart for $name {
            fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn phrase(&self) -> Cow<'_, str> {
                (*self).phrase().into()
            }

            fn redact(&mut self, _by: &TextRedactor) {}

            fn advice(&self) -> Option<&'static str> {
                advice(self.word())
            }
        }
    )+};
}

faults! {
    /// What is wrong with a step of the plan (`validate_plan`).
    StepFault {
        NotObject = "not_object", "not an object";
        Id = "id", "bad id";
        Action = "action", "bad action";
        Args = "args", "bad arguments";
    }
    /// What is wrong with the notes (`validate_notes`).
    NotesFault {
        Empty = "empty", "none";
        TooMany = "too_many", "too many";
        Item = "item", "bad note";
        Id = "id", "bad id";
        Url = "url", "bad address";
        Claim = "claim", "bad claim";
        Quote = "quote", "bad quote";
    }
    /// What is wrong with a note (`verify_notes`, and checks that roundtable adds).
    NoteIssue {
        QuoteTooShort = "quote_too_short", "quote too short";
        ClaimMissing = "claim_missing", "claim missing";
        /// Added by roundtable: the quote was not found on its page.
        QuoteNotInSource = "quote_not_in_source", "quote not on page";
        /// Added by roundtable: the claim has more than 1,000 characters. The note is refused.
        ClaimTooLong = "claim_too_long", "claim too long";
        /// Added by roundtable: the quote has more than 2,000 characters. The note is refused.
        QuoteTooLong = "quote_too_long", "quote too long";
    }
    /// What is wrong with the answer (`validate_synthesis`).
    AnswerFault {
        Empty = "empty", "empty";
        TooLong = "too_long", "too long";
        Citations = "citations", "bad citations";
        CitationUnknown = "citation_unknown", "unknown citation";
    }
}
