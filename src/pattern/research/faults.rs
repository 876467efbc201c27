//! Faults of the steps, notes and answers of research, in the words of the research source
//! document.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines enums that are printed as one word each.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

            pub(crate) fn of(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    )+};
}

faults! {
    /// What is wrong with a step of the plan (`validate_plan`).
    StepFault {
        NotObject = "not_object",
        Id = "id",
        Action = "action",
        Args = "args",
    }
    /// What is wrong with the notes (`validate_notes`).
    NotesFault {
        Empty = "empty",
        TooMany = "too_many",
        Item = "item",
        Id = "id",
        Url = "url",
        Claim = "claim",
        Quote = "quote",
    }
    /// What is wrong with a note (`verify_notes`, and checks that roundtable adds).
    NoteIssue {
        QuoteTooShort = "quote_too_short",
        ClaimMissing = "claim_missing",
        /// Added by roundtable: the quote was not found on its page.
        QuoteNotInSource = "quote_not_in_source",
        /// Added by roundtable: the claim has more than 1,000 characters. The note is refused.
        ClaimTooLong = "claim_too_long",
        /// Added by roundtable: the quote has more than 2,000 characters. The note is refused.
        QuoteTooLong = "quote_too_long",
    }
    /// What is wrong with the answer (`validate_synthesis`).
    AnswerFault {
        Empty = "empty",
        TooLong = "too_long",
        Citations = "citations",
        CitationUnknown = "citation_unknown",
    }
}
