//! The nouns of research (`004`) that stand in facts: sources and how they fall out, pages, notes,
//! what was verified, the sentences of the answer with their citations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::SpanId;
pub use super::research_fault::{AnswerFault, NoteIssue, NotesFault, StepFault};
use super::stop::StopReason;

/// A source by its place among what was found, from 1: the same in every run with the same answers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SourceNo(pub u32);

impl SourceNo {
    /// That of the source at this place, from 0.
    pub fn at(place: usize) -> Self {
        Self(u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// Its place, from 0.
    pub fn place(self) -> Option<usize> {
        usize::try_from(self.0).ok()?.checked_sub(1)
    }
}

impl fmt::Display for SourceNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The id of a note, such as `n1`: what citations name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NoteId(Arc<str>);

impl NoteId {
    /// The id of this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// That of the nth note, from 1.
    pub fn nth(number: usize) -> Self {
        Self(format!("n{number}").into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NoteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A step of the plan, as it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Its id, as the planner gave it.
    pub id: Arc<str>,
    /// Its action, such as `search_sources`.
    pub action: Arc<str>,
}

/// What a search found, in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcesFound {
    /// What was searched.
    pub query: Arc<str>,
    /// The sources.
    pub sources: Arc<[Found]>,
    /// Documents that could not be searched, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// A source as it was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Its address, as it was found; empty where there was none.
    pub url: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// What the search says of it.
    pub snippet: Arc<str>,
    /// How well it fits, the more the better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// When it was published, as the search says it.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub published_at: Arc<str>,
}

/// What is left of the sources without those that stand for the same page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcesDeduped {
    /// Those that are kept, in the order in which they are looked at: score times trust.
    pub kept: Arc<[Kept]>,
    /// Those that fell out, in the order in which they were found.
    pub dropped: Arc<[Dropped]>,
}

/// A source that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Which.
    pub source: SourceNo,
    /// Its address, normalized.
    pub url: Arc<str>,
    /// Its domain, as the allowlists have it.
    pub domain: Arc<str>,
    /// How far the scenario trusts its domain, from 0 to 1.
    pub trust: f64,
}

/// A source that fell out before any gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Which.
    pub source: SourceNo,
    /// Why.
    #[serde(flatten)]
    pub reason: DropReason,
}

/// Why a source fell out before any gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum DropReason {
    /// Its address is none of http or https with a host.
    InvalidUrl,
    /// It stands for the same page as an earlier one.
    Duplicate {
        /// Which.
        of: SourceNo,
    },
    /// So many were kept before it (`max_urls`).
    MaxUrls,
}

impl DropReason {
    /// Its word in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid_url",
            Self::Duplicate { .. } => "duplicate",
            Self::MaxUrls => "max_urls",
        }
    }
}

/// Which of the two allowlists refuses a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Denial {
    /// What may ever be read.
    #[serde(rename = "source_denied_policy")]
    Policy,
    /// What is switched on now.
    #[serde(rename = "source_denied_execution")]
    Execution,
}

impl Denial {
    /// Its word in files and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Policy => "source_denied_policy",
            Self::Execution => "source_denied_execution",
        }
    }
}

/// How a source came out; closes its span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "came", rename_all = "snake_case")]
pub enum SourceCame {
    /// An allowlist refused it, or where it leads to.
    Denied {
        /// Which.
        reason: Denial,
        /// Where it leads to, where that was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<Arc<str>>,
    },
    /// Its page could not be had, or is of no use; the run goes on without it.
    Skipped {
        /// Why, in a word.
        reason: Arc<str>,
        /// Why, for people.
        text: Arc<str>,
    },
    /// It was read, and notes were looked for.
    Read {
        /// Notes that were taken.
        notes: u32,
        /// Notes that were refused.
        refused: u32,
    },
    /// The run ended in the middle of it.
    Cancelled,
}

/// A page was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRead {
    /// Which source.
    pub source: SourceNo,
    /// The call whose answer holds the page.
    pub call: SpanId,
    /// Where it was found in the end, normalized.
    pub url: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// When it was published, as the page says it; empty: it does not.
    pub published_at: Arc<str>,
    /// Days from then until the day that the run asks about, where both are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_days: Option<i64>,
    /// Characters of its text.
    pub chars: u64,
    /// Whether that day is when its file was last changed: the page itself says none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub modified: bool,
}

/// A note: a claim with the words of its page that it stands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its id.
    pub id: NoteId,
    /// What is claimed.
    pub claim: Arc<str>,
    /// The page's own words.
    pub quote: Arc<str>,
    /// The page, normalized.
    pub url: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// When it was published; empty: it does not say.
    pub published_at: Arc<str>,
    /// Whether that day is when its file was last changed: the page itself says none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub modified: bool,
}

impl Note {
    /// The day of its page, for people.
    pub fn dated(&self) -> String {
        match &*self.published_at {
            "" => "undated".to_owned(),
            day if self.modified => format!("changed {day}"),
            day => format!("published {day}"),
        }
    }
}

/// A note that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteRefused {
    /// Of which source.
    pub source: SourceNo,
    /// Why.
    pub reason: NoteIssue,
    /// What it claims.
    pub claim: Arc<str>,
    /// What it says the page says.
    pub quote: Arc<str>,
}

/// Notes that a model proposed of a page beyond what may be taken: they were not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesCut {
    /// Of which source.
    pub source: SourceNo,
    /// How many were proposed.
    pub proposed: u32,
    /// How many of them were not looked at: the last.
    pub cut: u32,
    /// What they were beyond.
    pub limit: NotesLimit,
}

/// What bounds the notes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotesLimit {
    /// `notes_per_page`
    NotesPerPage,
    /// What is left of the run's `max_notes`.
    MaxNotes,
}

impl NotesLimit {
    /// Its key in a scenario.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotesPerPage => "notes_per_page",
            Self::MaxNotes => "max_notes",
        }
    }
}

/// Why no further source is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingEnd {
    /// There is none.
    NoMoreSources,
    /// So many pages were read (`max_read_pages`).
    MaxReadPages,
    /// So many notes were taken (`max_notes`).
    MaxNotes,
}

impl ReadingEnd {
    /// Its word in files and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoMoreSources => "no_more_sources",
            Self::MaxReadPages => "max_read_pages",
            Self::MaxNotes => "max_notes",
        }
    }
}

/// What notes of several sources say of one another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesCompared {
    /// Notes of independent sources that say the same.
    pub agree: Arc<[NotePair]>,
    /// Notes that say other figures of the same thing.
    pub conflicts: Arc<[NoteConflict]>,
    /// Notes whose claim has fewer independent sources than the run wants.
    pub unconfirmed: Arc<[NoteId]>,
}

/// Two notes that say the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotePair {
    /// The earlier.
    pub left: NoteId,
    /// The later.
    pub right: NoteId,
}

/// Two notes that say other figures of the same thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteConflict {
    /// The earlier.
    pub left: NoteId,
    /// The later.
    pub right: NoteId,
    /// The figure of the earlier.
    pub left_says: Arc<str>,
    /// The figure of the later.
    pub right_says: Arc<str>,
}

/// What verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesVerified {
    /// Notes that were looked at.
    pub checked: u32,
    /// What is wrong, in the order of the notes.
    pub issues: Arc<[IssueOf]>,
}

/// What is wrong with a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueOf {
    /// Which.
    pub note: NoteId,
    /// What.
    pub issue: NoteIssue,
}

/// The sentences of an answer that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerCited {
    /// The sentences in order; what is between them is white space.
    pub sentences: Arc<[Sentence]>,
    /// What the answer cites, in the order in which it does.
    pub citations: Arc<[NoteId]>,
}

/// A sentence of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sentence {
    /// Its text, as it stands in the answer.
    pub text: Arc<str>,
    /// The notes it stands on; none: it is uncited.
    pub citations: Arc<[NoteId]>,
    /// Whether it has fewer independent sources than the run wants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
}

/// An answer that was refused; the run stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerRefused {
    /// Why.
    pub reason: StopReason,
    /// What the model gave.
    pub raw: serde_json::Value,
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}
