//! What can be wrong with the steps, notes and answers of research (`004`), in the source's words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Enums that are printed as one word each.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$each])* #[doc = concat!("`", $word, "`")] #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Its word.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            pub(super) fn of(text: &str) -> Option<Self> {
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
    /// What was wrong with a step of the plan (`validate_plan`).
    StepFault {
        NotObject = "not_object",
        Id = "id",
        Action = "action",
        Args = "args",
    }
    /// What was wrong with the notes (`validate_notes`).
    NotesFault {
        Empty = "empty",
        TooMany = "too_many",
        Item = "item",
        Id = "id",
        Url = "url",
        Claim = "claim",
        Quote = "quote",
    }
    /// What verification found in a note (`verify_notes`, and ours).
    NoteIssue {
        QuoteTooShort = "quote_too_short",
        ClaimMissing = "claim_missing",
        /// Ours: the quote does not stand in its page.
        QuoteNotInSource = "quote_not_in_source",
        /// Ours: the claim has more than 1,000 characters. The note is refused.
        ClaimTooLong = "claim_too_long",
        /// Ours: the quote has more than 2,000 characters. The note is refused.
        QuoteTooLong = "quote_too_long",
    }
    /// What was wrong with the answer (`validate_synthesis`).
    AnswerFault {
        Empty = "empty",
        TooLong = "too_long",
        Citations = "citations",
        CitationUnknown = "citation_unknown",
    }
}
