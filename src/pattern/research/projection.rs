//! Projection of a research run: the sources and their outcomes, the notes with their quotes, the
//! verification, the sentences of the answer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::event::kind::{
    Denial, DropReason, FoundSource, Note, NoteId, NoteProblem, NoteRefused, NotesCompared,
    NotesTruncated, PlannedStep, Purpose, ReadingEnd, ResearchPlan, Sentence, SourceNo,
    SourceOutcome,
};
use crate::event::phrase::skip_phrase;
use crate::event::world::spans::{SpanKind, Spans};
use crate::event::{Elapsed, Event, EventKind, SpanId, StopReason};

/// State of a research run.
#[derive(Clone, Debug)]
pub struct Research {
    /// The setup of the run.
    pub plan: Arc<ResearchPlan>,
    /// The call that requests the plan, once it is made.
    pub plan_call: Option<SpanId>,
    /// The accepted steps of the plan, and when they were accepted.
    pub steps: Option<(Arc<[PlannedStep]>, Elapsed)>,
    /// The plan, if it was refused.
    pub refused_plan: Option<RefusedPlan>,
    /// The call that searches, once it is made.
    pub search_call: Option<SpanId>,
    /// The query, and when its results arrived.
    pub query: Option<(Arc<str>, Elapsed)>,
    /// Number of documents that could not be searched, by reason.
    pub unsearched: BTreeMap<String, u64>,
    /// Every source in the order of the search; copies of the world share unchanged ones.
    pub sources: Vec<Arc<SourceRow>>,
    /// The kept sources in the order of reading, and when that order was set.
    pub kept: Option<(Arc<[SourceNo]>, Elapsed)>,
    /// Why no more sources are read, and since when.
    pub reading_end: Option<(ReadingEnd, Elapsed)>,
    /// The accepted notes in order.
    pub notes: Vec<NoteRow>,
    /// The refused notes.
    pub refused: Vec<Arc<NoteRefused>>,
    /// Agreement and conflicts between the notes.
    pub compared: NotesCompared,
    /// Result of the verification.
    pub verified: Option<Verified>,
    /// The call that writes the answer, once it is made.
    pub answer_call: Option<SpanId>,
    /// The stop reason and the reply, if the answer was refused.
    pub refused_answer: Option<(StopReason, Value)>,
    /// The sentences of the answer.
    pub sentences: Arc<[Sentence]>,
    /// Ids of the notes that the answer cites, in its order.
    pub citations: Arc<[NoteId]>,
    /// When the answer was accepted.
    pub answered: Option<Elapsed>,
    /// Results of reading calls, until their pages are recorded.
    answers: BTreeMap<SpanId, Arc<Value>>,
}

/// A refused plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedPlan {
    /// The stop reason.
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
    /// When it was done.
    pub at: Elapsed,
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRow {
    /// Number of the source.
    pub no: SourceNo,
    /// The source as the search gave it.
    pub found: FoundSource,
    /// Its normalized address; `None` if it is not kept, or not yet.
    pub url: Option<Arc<str>>,
    /// Its domain; empty if it is not kept.
    pub domain: Arc<str>,
    /// How much its domain is trusted, from 0 to 1; `None` if it is not kept.
    pub trust: Option<f64>,
    /// Its progress.
    pub state: SourceState,
    /// Its span, once its check begins.
    pub span: Option<SpanId>,
    /// When its check began.
    pub opened: Option<Elapsed>,
    /// When it ended.
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
    /// Its title.
    pub title: Arc<str>,
    /// Date of publication; empty if the page gives none.
    pub published_at: Arc<str>,
    /// Age in days, counted back from the run's `as_of`, if both dates are known.
    pub age_days: Option<i64>,
    /// Characters of its text.
    pub chars: u64,
    /// Whether the date is the last change of the file, because the page itself gives none.
    pub modified: bool,
    answer: Option<Arc<Value>>,
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
        /// Word for the reason.
        reason: Arc<str>,
        /// The reason, for display.
        text: Arc<str>,
    },
    /// It was read.
    Read {
        /// Number of accepted notes.
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
    /// Number of its source.
    pub source: SourceNo,
    /// The note.
    pub note: Arc<Note>,
    /// When it was accepted.
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
    /// Notes that were accepted.
    pub notes: usize,
    /// Notes that the answer cites.
    pub cited: usize,
}

impl Research {
    pub(crate) fn new(plan: Arc<ResearchPlan>) -> Self {
        Self {
            plan,
            plan_call: None,
            steps: None,
            refused_plan: None,
            search_call: None,
            query: None,
            unsearched: BTreeMap::new(),
            sources: Vec::new(),
            kept: None,
            reading_end: None,
            notes: Vec::new(),
            refused: Vec::new(),
            compared: NotesCompared::default(),
            verified: None,
            answer_call: None,
            refused_answer: None,
            sentences: Arc::default(),
            citations: Arc::default(),
            answered: None,
            answers: BTreeMap::new(),
        }
    }

    /// The source with this number.
    pub fn source(&self, no: SourceNo) -> Option<&SourceRow> {
        self.sources.get(no.index()?).map(|row| &**row)
    }

    /// The kept sources in the order of reading.
    pub fn kept(&self) -> impl Iterator<Item = &SourceRow> {
        let kept = self.kept.as_ref().map_or(&[][..], |(kept, _)| kept);
        kept.iter().filter_map(|no| self.source(*no))
    }

    /// The note with this id.
    pub fn note(&self, id: &NoteId) -> Option<&NoteRow> {
        self.notes.iter().find(|row| row.note.id == *id)
    }

    /// Whether the answer cites this note.
    pub fn is_cited(&self, id: &NoteId) -> bool {
        self.citations.contains(id)
    }

    /// Number of pages that were read, including unusable ones.
    pub fn pages_read(&self) -> usize {
        self.sources.iter().filter(|row| row.page.is_some()).count()
    }

    /// Number of items that passed each stage.
    pub fn funnel(&self) -> Funnel {
        let allowed = |row: &&Arc<SourceRow>| {
            row.read_call.is_some() && !matches!(row.state, SourceState::Denied { .. })
        };
        Funnel {
            found: self.sources.len(),
            deduped: self.kept.as_ref().map_or(0, |(kept, _)| kept.len()),
            allowed: self.sources.iter().filter(allowed).count(),
            read: self.pages_read(),
            notes: self.notes.len(),
            cited: self.notes.iter().filter(|row| self.is_cited(&row.note.id)).count(),
        }
    }

    fn row(&mut self, no: SourceNo) -> Option<&mut SourceRow> {
        self.sources.get_mut(no.index()?).map(Arc::make_mut)
    }

    fn of_span(&mut self, span: SpanId, spans: &Spans) -> Option<&mut SourceRow> {
        match spans.get(span)?.kind {
            SpanKind::Source(no) => self.row(no),
            _ => None,
        }
    }

    /// The call of an attempt, if it reads a page.
    fn reading_call(span: SpanId, spans: &Spans) -> Option<SpanId> {
        let call = spans.get(span)?.parent;
        let reads = matches!(spans.get(call)?.kind, SpanKind::Call(Purpose::Read { .. }));
        reads.then_some(call)
    }

    pub(crate) fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::StepsAccepted { steps } => {
                self.steps = Some((Arc::clone(steps), event.at));
            }
            EventKind::PlanRefused { reason, raw, details } => {
                self.refused_plan = Some(RefusedPlan {
                    reason: reason.clone(),
                    raw: (**raw).clone(),
                    details: details.as_deref().cloned(),
                });
            }
            EventKind::SourcesFound(found) if self.query.is_none() => {
                self.query = Some((Arc::clone(&found.query), event.at));
                self.unsearched.clone_from(&found.unsearched);
                let rows = found.sources.iter().enumerate();
                self.sources = rows.map(|(place, it)| SourceRow::new(place, it)).collect();
            }
            EventKind::SourcesDeduped(deduped) if self.kept.is_none() => {
                for it in &*deduped.dropped {
                    let Some(row) = self.row(it.source) else { continue };
                    row.state = SourceState::Dropped(it.reason);
                }
                for it in &*deduped.kept {
                    let Some(row) = self.row(it.source) else { continue };
                    row.state = SourceState::Waiting;
                    row.url = Some(Arc::clone(&it.url));
                    row.domain = Arc::clone(&it.domain);
                    row.trust = Some(it.trust);
                }
                let kept = deduped.kept.iter().map(|it| it.source).collect();
                self.kept = Some((kept, event.at));
            }
            EventKind::SourceStarted { source, .. } => {
                let Some(row) = self.row(*source) else { return };
                row.state = SourceState::Reading;
                row.span = Some(event.span);
                row.opened = Some(event.at);
            }
            EventKind::CallStarted(call) => self.call_started(event.span, &call.purpose),
            EventKind::AttemptAnswered(reply) => {
                if let (Some(call), Some(result)) =
                    (Self::reading_call(event.span, spans), &reply.result)
                {
                    self.answers.insert(call, Arc::clone(result));
                }
            }
            EventKind::CallDegraded { value: Some(value), .. } => {
                if matches!(
                    spans.get(event.span).map(|call| &call.kind),
                    Some(SpanKind::Call(Purpose::Read { .. }))
                ) {
                    self.answers.insert(event.span, Arc::clone(value));
                }
            }
            EventKind::PageRead(page) => {
                let answer = self.answers.remove(&page.call);
                let Some(row) = self.row(page.source) else { return };
                row.page = Some(SourcePage {
                    url: Arc::clone(&page.url),
                    title: Arc::clone(&page.title),
                    published_at: Arc::clone(&page.published_at),
                    age_days: page.age_days,
                    chars: page.chars,
                    modified: page.modified,
                    answer,
                });
            }
            EventKind::NoteTaken { source, note } => {
                let (source, note) = (*source, Arc::clone(note));
                self.notes.push(NoteRow { source, note, at: event.at });
            }
            EventKind::NoteRefused(note) => self.refused.push(Arc::new((**note).clone())),
            EventKind::NotesTruncated(cut) => {
                if let Some(row) = self.row(cut.source) {
                    row.cut = Some(*cut);
                }
            }
            EventKind::SourceClosed(came) => {
                let Some(row) = self.of_span(event.span, spans) else { return };
                row.closed = Some(event.at);
                row.state = match (**came).clone() {
                    SourceOutcome::Denied { reason, location } => {
                        SourceState::Denied { reason, location }
                    }
                    SourceOutcome::Skipped { reason, text } => {
                        SourceState::Skipped { reason, text }
                    }
                    SourceOutcome::Read { notes, refused } => SourceState::Read { notes, refused },
                    SourceOutcome::Cancelled => SourceState::Cancelled,
                };
                // The result of a page that was not used is not needed any more.
                if let Some(call) = row.read_call {
                    self.answers.remove(&call);
                }
            }
            EventKind::ReadingClosed { reason: why } => {
                self.reading_end = Some((*why, event.at));
                self.end_waiting(&SourceState::NotReached(*why));
            }
            EventKind::RunClosed(_) => self.end_waiting(&SourceState::Cancelled),
            EventKind::NotesCompared(compared) => self.compared = (**compared).clone(),
            EventKind::NotesVerified(verified) => {
                self.verified = Some(Verified {
                    checked: verified.checked,
                    issues: Arc::clone(&verified.issues),
                    at: event.at,
                });
            }
            EventKind::AnswerCited(cited) => {
                self.sentences = Arc::clone(&cited.sentences);
                self.citations = Arc::clone(&cited.citations);
                self.answered = Some(event.at);
            }
            EventKind::AnswerRefused(refused) => {
                self.refused_answer = Some((refused.reason.clone(), refused.raw.clone()));
            }
            _ => {}
        }
    }

    fn call_started(&mut self, call: SpanId, purpose: &Purpose) {
        match purpose {
            Purpose::Plan => self.plan_call = Some(call),
            Purpose::Search => self.search_call = Some(call),
            Purpose::Synthesize => self.answer_call = Some(call),
            Purpose::Read { source } => {
                if let Some(row) = self.row(*source) {
                    row.read_call = Some(call);
                }
            }
            Purpose::Notes { source } => {
                if let Some(row) = self.row(*source) {
                    row.notes_call = Some(call);
                    row.state = SourceState::Noting;
                }
            }
            _ => {}
        }
    }

    /// Sets the state of all sources whose turn has not come.
    fn end_waiting(&mut self, how: &SourceState) {
        for row in self.sources.iter_mut().filter(|row| row.state == SourceState::Waiting) {
            Arc::make_mut(row).state = how.clone();
        }
    }
}

impl SourceRow {
    fn new(place: usize, found: &FoundSource) -> Arc<Self> {
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
