//! The facts of a research run (its plan, the sources, the notes, the answer), its setup in the
//! head of a log, the ids of notes, and the faults of steps, notes and answers in the words of its
//! source document.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Fact, FactAbout, Plan, facts};
use crate::base::time::millis;
use crate::base::worded;
use crate::log::event::id::{SourceNo, SpanId};
use crate::log::event::stop::{ReasonPart, StopReason};
use crate::log::event::{FailureClass, SpanKind, SpanState};
use crate::scenario::patterns::research::{
    MisquotePolicy, ResearchBudget, SamePage, SourceRule, StepExecutor,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    pub sources: Vec<SourceRule>,
    /// What makes the plan.
    pub plan_by: StepExecutor,
    /// What takes the notes.
    pub notes_by: StepExecutor,
    /// What writes the answer.
    pub answer_by: StepExecutor,
    /// When two addresses are the same page; in logs of earlier versions their path decides.
    #[serde(default, skip_serializing_if = "SamePage::is_path")]
    pub same_page: SamePage,
    /// Whether a quote may write signs in another way than its page: apostrophes, dashes, ligatures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folds_signs: bool,
    /// How a note is handled whose quote is not on its page.
    pub misquotes: MisquotePolicy,
    /// Number of domains that have to support a claim.
    pub min_independent_sources: u32,
    /// Max age of a page in days; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
    /// The limits.
    #[serde(flatten)]
    pub budget: ResearchBudget,
}

impl ResearchPlan {
    /// The scenario's rules for a domain, if there are any.
    pub fn source(&self, domain: &str) -> Option<&SourceRule> {
        self.sources.iter().find(|source| source.domain == domain)
    }
}

impl Plan for ResearchPlan {
    fn max_ms(&self) -> u64 {
        millis(self.budget.max_seconds)
    }
}

/// Id of a note, such as `n1`, as citations name it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
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

/// Advice for a fault that needs its own.
fn advice(word: &str) -> Option<&'static str> {
    Some(match word {
        "quote_not_in_source" => {
            "A quote was not found on its page: set research.misquotes = \"refuse\" to drop such notes."
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
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// A step of an accepted plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlannedStep {
    /// Id of the step, as the planner gave it.
    pub id: Arc<str>,
    /// Name of the step, such as `search_sources`.
    pub action: Arc<str>,
}

/// The results of a search, in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourcesFound {
    /// The query.
    pub query: Arc<str>,
    /// The sources.
    pub sources: Arc<[FoundSource]>,
    /// Number of documents that could not be searched, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unsearched: BTreeMap<String, u64>,
}

/// A source in the search results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FoundSource {
    /// Its address, as the search gave it; empty if there was none.
    pub url: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// Excerpt or summary that the search gave.
    pub snippet: Arc<str>,
    /// Relevance; higher is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Date of publication, as the search gave it.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub published_at: Arc<str>,
}

/// The sources without duplicates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourcesDeduped {
    /// The sources to read, in this order: by score times trust.
    pub kept: Arc<[KeptSource]>,
    /// The dropped sources, in the order of the search.
    pub dropped: Arc<[DroppedSource]>,
}

/// A source that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KeptSource {
    /// Number of the source.
    pub source: SourceNo,
    /// Its address, normalized.
    pub url: Arc<str>,
    /// Its domain, as the allowlists spell it.
    pub domain: Arc<str>,
    /// How much the scenario trusts its domain, from 0 to 1.
    pub trust: f64,
}

/// A source that was dropped before the allowlists were checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DroppedSource {
    /// Number of the source.
    pub source: SourceNo,
    /// The reason.
    #[serde(flatten)]
    pub reason: DropReason,
}

/// Why a source was dropped before the allowlists were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum DropReason {
    /// Its address is not an http or https address with a host.
    InvalidUrl,
    /// It has the same page as an earlier source.
    Duplicate {
        /// Number of the earlier source.
        duplicate_of: SourceNo,
    },
    /// The limit of kept sources (`max_urls`) was reached before it.
    MaxUrls,
}

impl DropReason {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid_url",
            Self::Duplicate { .. } => "duplicate",
            Self::MaxUrls => "max_urls",
        }
    }
}

/// The allowlist that refuses a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Denial {
    /// The domains that may ever be read.
    #[serde(rename = "source_denied_policy")]
    Policy,
    /// The domains that are switched on now.
    #[serde(rename = "source_denied_execution")]
    Execution,
}

worded! { Denial + phrase {
    Policy = "source_denied_policy" | "not on the allowlist",
    Execution = "source_denied_execution" | "switched off",
} }

/// The outcome of a source; closes its span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum SourceOutcome {
    /// An allowlist refused it, or the address it redirects to.
    Denied {
        /// The allowlist.
        reason: Denial,
        /// The address it redirects to, if that was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<Arc<str>>,
    },
    /// Its page could not be fetched or used; the run continues without it.
    Skipped {
        /// Word for the reason.
        reason: Arc<str>,
        /// The reason, for display.
        text: Arc<str>,
    },
    /// It was read, and notes were taken.
    Read {
        /// Number of accepted notes.
        notes: u32,
        /// Number of refused notes.
        refused: u32,
    },
    /// The run ended meanwhile.
    Cancelled,
}

/// A page was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PageRead {
    /// Number of the source.
    pub source: SourceNo,
    /// The call whose result has the page.
    pub call: SpanId,
    /// Its final address after redirects, normalized.
    pub url: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// Date of publication, as the page gives it; empty if it gives none.
    pub published_at: Arc<str>,
    /// Age in days, counted back from the run's `as_of`, if both dates are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_days: Option<i64>,
    /// Characters of its text.
    pub chars: u64,
    /// Whether the date is the last change of the file, because the page itself gives none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub modified: bool,
}

/// A note: a claim, and the quote from a page that supports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Note {
    /// Id of the note.
    pub id: NoteId,
    /// The claim.
    pub claim: Arc<str>,
    /// The quote, word for word from the page.
    pub quote: Arc<str>,
    /// Address of the page, normalized.
    pub url: Arc<str>,
    /// Title of the page.
    pub title: Arc<str>,
    /// Date of publication; empty if the page gives none.
    pub published_at: Arc<str>,
    /// Whether the date is the last change of the file, because the page itself gives none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub modified: bool,
}

impl Note {
    /// The date of its page, for display.
    pub fn date_label(&self) -> String {
        match &*self.published_at {
            "" => "undated".to_owned(),
            day if self.modified => format!("changed {day}"),
            day => format!("published {day}"),
        }
    }
}

/// A note that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NoteRefused {
    /// Number of the source.
    pub source: SourceNo,
    /// The reason.
    pub reason: NoteIssue,
    /// The claim.
    pub claim: Arc<str>,
    /// The quote, as the model gave it.
    pub quote: Arc<str>,
}

/// Notes that a model proposed beyond the limit of a page; they were not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotesTruncated {
    /// Number of the source.
    pub source: SourceNo,
    /// Number of proposed notes.
    pub proposed: u32,
    /// Number of notes that were ignored: the last ones.
    pub cut: u32,
    /// The limit that they exceeded.
    pub limit: NotesLimit,
}

/// A limit of the notes on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotesLimit {
    /// `notes_per_page`
    NotesPerPage,
    /// What is left of the run's `max_notes`.
    MaxNotes,
}

worded! { NotesLimit + phrase {
    NotesPerPage = "notes_per_page" | "limit per page", MaxNotes = "max_notes" | "limit per run",
} }

/// Why no more sources are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadingEnd {
    /// All sources were read.
    NoMoreSources,
    /// The page limit was reached (`max_read_pages`).
    MaxReadPages,
    /// The note limit was reached (`max_notes`).
    MaxNotes,
}

worded! { ReadingEnd + phrase {
    NoMoreSources = "no_more_sources" | "no more sources",
    MaxReadPages = "max_read_pages" | "page limit reached",
    MaxNotes = "max_notes" | "note limit reached",
} }

/// Agreement and conflicts between notes of several sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotesCompared {
    /// Pairs of notes from independent sources with the same claim.
    pub agree: Arc<[NotePair]>,
    /// Pairs of notes that give different figures for the same thing.
    pub conflicts: Arc<[NoteConflict]>,
    /// Notes whose claim has fewer independent sources than the run requires.
    pub unconfirmed: Arc<[NoteId]>,
}

/// Two notes with the same claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotePair {
    /// The earlier note.
    pub left: NoteId,
    /// The later note.
    pub right: NoteId,
}

/// Two notes that give different figures for the same thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NoteConflict {
    /// The earlier note.
    pub left: NoteId,
    /// The later note.
    pub right: NoteId,
    /// The figure in the earlier note.
    pub left_figure: Arc<str>,
    /// The figure in the later note.
    pub right_figure: Arc<str>,
}

/// Result of the verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotesVerified {
    /// Number of notes that were checked.
    pub checked: u32,
    /// The problems, in the order of the notes.
    pub issues: Arc<[NoteProblem]>,
}

/// A problem of a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NoteProblem {
    /// Id of the note.
    pub note: NoteId,
    /// The problem.
    pub issue: NoteIssue,
}

/// The sentences of an accepted answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AnswerCited {
    /// The sentences in order; only white space is between them.
    pub sentences: Arc<[Sentence]>,
    /// Ids of the notes that the answer cites, in its order.
    pub citations: Arc<[NoteId]>,
    /// Of notes and an answer by rule: the parts of the question whose rarest word is in no quote.
    #[serde(default, skip_serializing_if = "no_parts")]
    pub unanswered: Arc<[String]>,
}

fn no_parts(parts: &[String]) -> bool {
    parts.is_empty()
}

/// A sentence of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sentence {
    /// Its text, as in the answer.
    pub text: Arc<str>,
    /// The notes that it cites; empty if it cites none.
    pub citations: Arc<[NoteId]>,
    /// Whether it has fewer independent sources than the run requires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
}

/// An answer that was refused; the run stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AnswerRefused {
    /// The stop reason.
    pub reason: StopReason,
    /// The refused reply.
    pub raw: serde_json::Value,
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

impl DropReason {
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid address",
            Self::Duplicate { .. } => "duplicate",
            Self::MaxUrls => "over the URL limit",
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
    fn skip_reason_reads_as_phrase() {
        assert_eq!(skip_phrase("http_404"), "HTTP 404");
        assert_eq!(skip_phrase("robots_disallowed"), "robots disallowed");
        assert_eq!(skip_phrase("resolve"), "name not found");
    }
}
