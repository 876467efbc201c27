//! The sources of a research run with their pages, its notes, its plan and its verification.
//!
//! The steps of the workflow, and the one that a run is at.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::Research;
use crate::log::event::id::SourceNo;
use crate::log::event::{Boundary, BoundaryId, Elapsed, SpanId, StopReason};
use crate::log::facts::research::skip_phrase;
use crate::log::facts::research::{
    Denial, DropReason, FoundSource, Note, NoteProblem, NotesTruncated, ReadingEnd,
};
use crate::log::world::RunFold;
use crate::scenario::patterns::research::ResearchStep;

/// A refused plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedPlan {
    pub reason: StopReason,
    /// The refused reply.
    pub raw: Value,
    /// Expected and received value.
    pub details: Option<Value>,
}

/// Result of the verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Number of notes that were checked.
    pub checked: u32,
    /// The problems, in the order of the notes.
    pub issues: Arc<[NoteProblem]>,
    pub at: Elapsed,
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRow {
    pub no: SourceNo,
    /// The source as the search gave it.
    pub found: FoundSource,
    /// Its normalized address; `None` if it is not kept, or not yet.
    pub url: Option<Arc<str>>,
    /// Its domain; empty if it is not kept.
    pub domain: Arc<str>,
    /// How much its domain is trusted, from 0 to 1; `None` if it is not kept.
    pub trust: Option<f64>,
    pub state: SourceState,
    /// Its span, once its check begins.
    pub span: Option<SpanId>,
    /// When its check began.
    pub opened: Option<Elapsed>,
    pub closed: Option<Elapsed>,
    /// The call that reads it, once it is made.
    pub read_call: Option<SpanId>,
    /// The call that takes notes from it, once it is made.
    pub notes_call: Option<SpanId>,
    /// Its page, once it is read.
    pub page: Option<SourcePage>,
    /// The notes that were proposed beyond the limit, if any were.
    pub cut: Option<NotesTruncated>,
}

/// A page that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct SourcePage {
    /// Its final address after redirects, normalized.
    pub url: Arc<str>,
    pub title: Arc<str>,
    /// Date of publication; empty if the page gives none.
    pub published_at: Arc<str>,
    /// Age in days, counted back from the run's `as_of`, if both dates are known.
    pub age_days: Option<i64>,
    /// Characters of its text.
    pub chars: u64,
    /// Whether the date is the last change of the file, because the page itself gives none.
    pub modified: bool,
    pub(crate) answer: Option<Arc<Value>>,
}

impl SourcePage {
    /// Its text, with blank lines between paragraphs; empty if the log does not have it.
    pub fn text(&self) -> &str {
        let data = self.answer.as_deref().and_then(|answer| answer.get("data"));
        data.and_then(|data| data.get("body")).and_then(Value::as_str).unwrap_or_default()
    }

    /// Another field of the tool's result, such as `content_type` or `redirects`.
    pub fn result_field(&self, name: &str) -> Option<&Value> {
        self.answer.as_deref()?.get("data")?.get(name)
    }
}

/// Progress of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// It is in the search results.
    Found,
    /// It was dropped before the allowlists were checked.
    Dropped(DropReason),
    /// It is kept; its turn has not come.
    Waiting,
    /// Its allowlists are checked, or its page is read.
    Reading,
    /// Notes are taken from it.
    Noting,
    /// An allowlist refused it, or the address it redirects to.
    Denied {
        /// The allowlist.
        reason: Denial,
        /// The address it redirects to, if that was refused.
        location: Option<Arc<str>>,
    },
    /// Its page could not be fetched or used.
    Skipped {
        reason: Arc<str>,
        /// The reason, for display.
        text: Arc<str>,
    },
    Read {
        notes: u32,
        /// Number of refused notes.
        refused: u32,
    },
    /// Its turn did not come, because a limit was reached before.
    NotReached(ReadingEnd),
    /// The run ended before or during its turn.
    Cancelled,
}

/// An accepted note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRow {
    pub source: SourceNo,
    pub note: Arc<Note>,
    pub at: Elapsed,
}

/// Number of items that passed each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Funnel {
    /// Sources in the search results.
    pub found: usize,
    /// Sources that were kept.
    pub deduped: usize,
    /// Sources that both allowlists allowed.
    pub allowed: usize,
    /// Pages that were read.
    pub read: usize,
    pub notes: usize,
    /// Notes that the answer cites.
    pub cited: usize,
}

impl SourceRow {
    pub(crate) fn new(place: usize, found: &FoundSource) -> Arc<Self> {
        Arc::new(Self {
            no: SourceNo::from_index(place),
            found: found.clone(),
            url: None,
            domain: "".into(),
            trust: None,
            state: SourceState::Found,
            span: None,
            opened: None,
            closed: None,
            read_call: None,
            notes_call: None,
            page: None,
            cut: None,
        })
    }

    /// Its best known address: normalized, or else as the search gave it.
    pub fn address(&self) -> &str {
        self.url.as_deref().unwrap_or(&self.found.url)
    }

    /// Its title: that of the page, or else as the search gave it.
    pub fn title(&self) -> &str {
        let own = self.page.as_ref().map(|page| &*page.title).filter(|title| !title.is_empty());
        own.unwrap_or(&self.found.title)
    }

    /// Why it was dropped, denied, skipped or not reached, in words; `None` otherwise.
    pub fn drop_phrase(&self) -> Option<Cow<'_, str>> {
        Some(match &self.state {
            SourceState::Dropped(reason) => reason.phrase().into(),
            SourceState::Denied { reason, .. } => reason.phrase().into(),
            SourceState::Skipped { reason, .. } => skip_phrase(reason),
            SourceState::NotReached(why) => why.phrase().into(),
            SourceState::Cancelled if self.span.is_some() => "cancelled".into(),
            SourceState::Cancelled => "not reached".into(),
            SourceState::Found
            | SourceState::Waiting
            | SourceState::Reading
            | SourceState::Noting
            | SourceState::Read { .. } => return None,
        })
    }
}

/// A step of the workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowStep {
    /// Making the plan.
    Plan,
    /// One of the steps of the plan.
    Step(ResearchStep),
}

impl WorkflowStep {
    /// Every step, in order.
    pub const ALL: [WorkflowStep; 6] = [
        Self::Plan,
        Self::Step(ResearchStep::Search),
        Self::Step(ResearchStep::Dedupe),
        Self::Step(ResearchStep::ReadExtract),
        Self::Step(ResearchStep::Verify),
        Self::Step(ResearchStep::Synthesize),
    ];

    /// The name of the step on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Step(ResearchStep::ReadExtract) => "read",
            Self::Step(step) => step.word(),
        }
    }

    /// The boundary before the step, where a run can pause.
    pub fn boundary(self) -> BoundaryId {
        match self {
            Self::Plan => Boundary::Plan.id(),
            Self::Step(step) => Boundary::Step(step.word()).id(),
        }
    }

    fn is_done(self, run: &RunFold, research: &Research) -> bool {
        match self {
            Self::Plan => research.steps.is_some(),
            Self::Step(ResearchStep::Search) => research.query.is_some(),
            Self::Step(ResearchStep::Dedupe) => research.kept.is_some(),
            Self::Step(ResearchStep::ReadExtract) => research.reading_end.is_some(),
            Self::Step(ResearchStep::Verify) => {
                research.verified.as_ref().is_some_and(|verified| verified.issues.is_empty())
            }
            Self::Step(ResearchStep::Synthesize) => run.progress.answer.is_some(),
        }
    }

    /// The current step, or the one in which the run stopped; `None` if all are done.
    pub fn current(run: &RunFold, research: &Research) -> Option<WorkflowStep> {
        let phase = run.progress.closed.as_ref().and_then(|closed| closed.phase.as_deref());
        let of =
            |phase: &str| Self::ALL.into_iter().find(|stage| stage.boundary().as_str() == phase);
        if let Some(stage) = phase.and_then(of) {
            return Some(stage);
        }
        Self::ALL.into_iter().find(|stage| !stage.is_done(run, research))
    }
}
