//! The facts of a research run (its plan, the sources, the notes, the answer), its setup in the
//! head of a log, the ids of notes, and the faults of steps, notes and answers in the words of its
//! source document.

pub mod parts;

use crate::base::worded;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Fact, FactAbout, Plan, facts};
use crate::base::name::FlagName;
use crate::log::event::id::{SourceNo, SpanId};
use crate::log::event::stop::ReasonPart;
use crate::log::event::{SpanKind, SpanState};

pub use self::parts::{
    AnswerCited, AnswerRefused, Denial, DropReason, DroppedSource, FoundSource, KeptSource, Note,
    NoteConflict, NotePair, NoteProblem, NoteRefused, NotesCompared, NotesLimit, NotesTruncated,
    NotesVerified, PageRead, PlannedStep, ReadingEnd, Sentence, SourceOutcome, SourcesDeduped,
    SourcesFound,
};

facts! {
    /// A fact of a research run.
    pub enum ResearchFact in Research {
        /// The steps of a research plan were accepted.
        "steps.accepted" StepsAccepted {
            /// The steps in order.
            steps: Arc<[PlannedStep]>,
        },
        /// A search returned its results.
        "sources.found" SourcesFound(Box<SourcesFound>),
        /// Sources with the same page were merged.
        "sources.deduped" SourcesDeduped(Box<SourcesDeduped>),
        /// Opens a source's span: its check begins.
        "source.started" SourceStarted {
            /// The span it belongs to.
            parent: SpanId,
            /// Number of the source.
            source: SourceNo,
        },
        /// A source's page was read; belongs to the source's span.
        "page.read" PageRead(Box<PageRead>),
        /// A note was accepted; belongs to its source's span.
        "note.taken" NoteTaken {
            /// Number of the source.
            source: SourceNo,
            /// The note.
            note: Arc<Note>,
        },
        /// A note was refused; belongs to its source's span.
        "note.refused" NoteRefused(Box<NoteRefused>),
        /// A model proposed more notes on a page than the limit; belongs to the source's span.
        "notes.truncated" NotesTruncated(NotesTruncated),
        /// Closes a source's span.
        "source.closed" SourceClosed(Box<SourceOutcome>),
        /// No more sources are read.
        "reading.closed" ReadingClosed {
            /// The reason.
            reason: ReadingEnd,
        },
        /// The notes were compared with each other.
        "notes.compared" NotesCompared(Box<NotesCompared>),
        /// The notes were verified.
        "notes.verified" NotesVerified(Box<NotesVerified>),
        /// An answer was accepted; its text follows in `answer.composed`.
        "answer.cited" AnswerCited(Box<AnswerCited>),
        /// An answer was refused; the run stops.
        "answer.refused" AnswerRefused(Box<AnswerRefused>),
    }
}

impl Fact for ResearchFact {
    fn name(&self) -> &'static str {
        self.name()
    }

    fn opens(&self) -> Option<(SpanId, SpanKind)> {
        match self {
            Self::SourceStarted { parent, source } => Some((*parent, SpanKind::Source(*source))),
            _ => None,
        }
    }

    fn closes(&self) -> Option<SpanState> {
        let Self::SourceClosed(outcome) = self else { return None };
        Some(match **outcome {
            SourceOutcome::Read { .. } => SpanState::Done,
            _ => SpanState::Failed(None),
        })
    }

    fn about(&self) -> FactAbout<'_> {
        let reason = match self {
            Self::NoteRefused(note) => Some(note.reason.to_string()),
            Self::NotesTruncated(cut) => Some(cut.limit.word().to_owned()),
            Self::AnswerRefused(refused) => Some(refused.reason.to_string()),
            Self::SourceClosed(outcome) => match &**outcome {
                SourceOutcome::Denied { reason, .. } => Some(reason.word().to_owned()),
                SourceOutcome::Skipped { reason, .. } => Some(reason.to_string()),
                SourceOutcome::Read { .. } | SourceOutcome::Cancelled => None,
            },
            _ => None,
        };
        FactAbout { reason, ..FactAbout::default() }
    }

    fn shows_reply(&self) -> bool {
        matches!(
            self,
            Self::PageRead(_)
                | Self::NoteTaken { .. }
                | Self::NoteRefused(_)
                | Self::AnswerCited(_)
                | Self::AnswerRefused(_)
        )
    }
}

/// Setup of a research run: the question, the allowed sources, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct ResearchPlan {
    /// The question.
    pub question: String,
    /// The day that ages are counted from, `YYYY-MM-DD`.
    pub as_of: String,
    /// Domains that may ever be read.
    pub allowed_domains_policy: Vec<String>,
    /// Domains that are switched on, including those that depend on a flag.
    pub allowed_domains_execution: Vec<String>,
    /// The scenario's rules for domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceHead>,
    /// What makes the plan.
    pub plan_by: StepExecutor,
    /// What takes the notes.
    pub notes_by: StepExecutor,
    /// What writes the answer.
    pub answer_by: StepExecutor,
    /// What to do with a note whose quote is not on its page.
    pub misquotes: MisquotePolicy,
    /// Number of domains that have to support a claim.
    pub min_independent_sources: u32,
    /// Max age of a page in days; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
    /// Max steps of a plan.
    pub max_steps: u32,
    /// Max sources to keep.
    pub max_urls: u32,
    /// Max pages to read.
    pub max_read_pages: u32,
    /// Max notes to take.
    pub max_notes: u32,
    /// Max characters of the answer.
    pub max_answer_chars: u32,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
}

impl ResearchPlan {
    /// The scenario's rules for a domain, if there are any.
    pub fn source(&self, domain: &str) -> Option<&SourceHead> {
        self.sources.iter().find(|source| source.domain == domain)
    }
}

/// The scenario's rules for a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct SourceHead {
    /// The domain.
    pub domain: String,
    /// How much it is trusted, from 0 to 1.
    pub trust: f64,
    /// The flag that removes it from the execution allowlist when off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

impl Plan for ResearchPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }
}

/// Id of a note, such as `n1`, as citations name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct NoteId(Arc<str>);

impl NoteId {
    /// An id with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The id of the nth note, from 1.
    pub fn nth(number: usize) -> Self {
        Self(format!("n{number}").into())
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NoteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

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

/// The tool that searches for sources, named as in the research source document.
pub const SEARCH: &str = "search_sources";

/// The tool that reads a source, named as in the research source document.
pub const READ: &str = "read_source";

/// Who does a step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum StepExecutor {
    /// The model.
    Model,
    /// A rule of the program.
    Rule,
}

/// What happens if a quote is not found on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum MisquotePolicy {
    /// The note is kept as it is, and verification stops the run.
    Stop,
    /// The note is refused and counted; the run continues without it.
    Refuse,
}

/// The actions of a plan in order: every plan has these steps.
pub const ACTIONS: [&str; 5] =
    ["search_sources", "dedupe_urls", "read_extract_notes", "verify_notes", "synthesize_answer"];

/// The steps of research after its plan (research source document).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResearchStep {
    /// Search for sources.
    Search,
    /// Merge sources that have the same page.
    Dedupe,
    /// Read the sources one after another, and take notes.
    ReadExtract,
    /// Verify the notes.
    Verify,
    /// Write the answer.
    Synthesize,
}

worded! { ResearchStep + ALL {
    Search = "search", Dedupe = "dedupe", ReadExtract = "read_extract", Verify = "verify",
    Synthesize = "synthesize",
} }

impl ResearchStep {
    /// The name of this step in the plan.
    pub fn action(self) -> &'static str {
        match self {
            Self::Search => "search_sources",
            Self::Dedupe => "dedupe_urls",
            Self::ReadExtract => "read_extract_notes",
            Self::Verify => "verify_notes",
            Self::Synthesize => "synthesize_answer",
        }
    }
}
