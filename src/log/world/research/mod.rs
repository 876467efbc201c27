//! Projection of a research run: the sources and their outcomes, the notes with their quotes, the
//! verification, the sentences of the answer.
//!
//! What the rest of the program asks the projection of a research run.

mod outcome;
pub mod rows;
pub mod unanswered;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use self::rows::WorkflowStep;
use self::unanswered::unanswered;
use super::outcome::OutcomeFields;
use super::spans::Spans;
use super::{EventLog, MarkKind, Projection, RunFold, SpanKind};
use crate::log::event::id::SourceNo;
use crate::log::event::{BoundaryId, Elapsed, Event, EventKind, Purpose, Seq, SpanId, StopReason};
use crate::log::facts::PatternFact;
use crate::log::facts::research::{
    NoteId, NoteRefused, NotesCompared, PlannedStep, ReadingEnd, ResearchFact, ResearchPlan,
    Sentence, SourceOutcome,
};
use crate::scenario::patterns::research::{READ, SEARCH};

pub use self::rows::{Funnel, NoteRow, RefusedPlan, SourcePage, SourceRow, SourceState, Verified};

/// State of a research run.
#[derive(Clone, Debug)]
pub struct Research {
    pub plan: Arc<ResearchPlan>,
    /// The call that requests the plan, once it is made.
    pub plan_call: Option<SpanId>,
    /// The accepted steps of the plan, and when they were accepted.
    pub steps: Option<(Arc<[PlannedStep]>, Elapsed)>,
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
    /// The parts of the question that no note says anything about, once there is an answer.
    pub unanswered: Arc<[String]>,
    pub answered: Option<Elapsed>,
    /// Results of reading calls, until their pages are recorded.
    answers: BTreeMap<SpanId, Arc<Value>>,
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
            unanswered: Arc::default(),
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

    fn fold(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::Pattern(PatternFact::Research(fact)) => self.fold_fact(event, fact, spans),
            EventKind::PlanRefused { reason, raw, details } => {
                self.refused_plan = Some(RefusedPlan {
                    reason: reason.clone(),
                    raw: (**raw).clone(),
                    details: details.as_deref().cloned(),
                });
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
            EventKind::RunClosed(_) => self.end_waiting(&SourceState::Cancelled),
            _ => {}
        }
    }

    fn fold_fact(&mut self, event: &Event, fact: &ResearchFact, spans: &Spans) {
        match fact {
            ResearchFact::StepsAccepted { steps } => {
                self.steps = Some((Arc::clone(steps), event.at));
            }
            ResearchFact::SourcesFound(found) if self.query.is_none() => {
                self.query = Some((Arc::clone(&found.query), event.at));
                self.unsearched.clone_from(&found.unsearched);
                let rows = found.sources.iter().enumerate();
                self.sources = rows.map(|(place, it)| SourceRow::new(place, it)).collect();
            }
            ResearchFact::SourcesDeduped(deduped) if self.kept.is_none() => {
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
            ResearchFact::SourceStarted { source, .. } => {
                let Some(row) = self.row(*source) else { return };
                row.state = SourceState::Reading;
                row.span = Some(event.span);
                row.opened = Some(event.at);
            }
            ResearchFact::PageRead(page) => {
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
            ResearchFact::NoteTaken { source, note } => {
                let (source, note) = (*source, Arc::clone(note));
                self.notes.push(NoteRow { source, note, at: event.at });
            }
            ResearchFact::NoteRefused(note) => self.refused.push(Arc::new((**note).clone())),
            ResearchFact::NotesTruncated(cut) => {
                if let Some(row) = self.row(cut.source) {
                    row.cut = Some(*cut);
                }
            }
            ResearchFact::SourceClosed(came) => {
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
            ResearchFact::ReadingClosed { reason: why } => {
                self.reading_end = Some((*why, event.at));
                self.end_waiting(&SourceState::NotReached(*why));
            }
            ResearchFact::NotesCompared(compared) => self.compared = (**compared).clone(),
            ResearchFact::NotesVerified(verified) => {
                self.verified = Some(Verified {
                    checked: verified.checked,
                    issues: Arc::clone(&verified.issues),
                    at: event.at,
                });
            }
            ResearchFact::AnswerCited(cited) => {
                self.sentences = Arc::clone(&cited.sentences);
                self.citations = Arc::clone(&cited.citations);
                let quotes = self.notes.iter().map(|row| &*row.note.quote);
                self.unanswered = match cited.unanswered.is_empty() {
                    true => unanswered(&self.plan.question, quotes).into(),
                    false => Arc::clone(&cited.unanswered),
                };
                self.answered = Some(event.at);
            }
            ResearchFact::AnswerRefused(refused) => {
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

impl Research {
    /// The call that takes notes from a source, or else the one that reads it.
    fn source_call(&self, source: SourceNo) -> Option<SpanId> {
        let row = self.source(source)?;
        row.notes_call.or(row.read_call)
    }

    fn cause_of_fact(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        let before = |so: fn(&ResearchFact) -> bool| last_fact(event.seq, log, &so);
        let closed = |call: Option<SpanId>| run.spans.closed_by(call?);
        match ResearchFact::of(&event.kind)? {
            ResearchFact::StepsAccepted { .. } => closed(self.plan_call),
            ResearchFact::SourcesFound(_) => closed(self.search_call),
            ResearchFact::SourcesDeduped(_) => {
                before(|fact| matches!(fact, ResearchFact::SourcesFound(_)))
            }
            ResearchFact::SourceStarted { .. } => {
                before(|fact| matches!(fact, ResearchFact::SourcesDeduped(_)))
            }
            ResearchFact::PageRead(page) => closed(Some(page.call)),
            ResearchFact::NoteTaken { source, .. } => closed(self.source_call(*source)),
            ResearchFact::NoteRefused(note) => closed(self.source_call(note.source)),
            ResearchFact::NotesTruncated(cut) => closed(self.source_call(cut.source)),
            ResearchFact::SourceClosed(_) => {
                log.find_before(event.seq, &|before| before.span == event.span)
            }
            ResearchFact::ReadingClosed { .. } => {
                before(|fact| matches!(fact, ResearchFact::SourceClosed(_)))
            }
            ResearchFact::NotesCompared(_) | ResearchFact::NotesVerified(_) => {
                before(|fact| matches!(fact, ResearchFact::ReadingClosed { .. }))
            }
            ResearchFact::AnswerCited(_) | ResearchFact::AnswerRefused(_) => {
                closed(self.answer_call)
            }
        }
    }
}

impl Projection for Research {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        self.fold(event, &run.spans);
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        match ResearchFact::of(&event.kind)? {
            ResearchFact::PageRead(page) => Some(MarkKind::Part(page.source.to_string().into())),
            ResearchFact::SourceClosed(came) => match **came {
                SourceOutcome::Denied { .. } => Some(MarkKind::Refused),
                SourceOutcome::Skipped { .. } => Some(MarkKind::Failed),
                SourceOutcome::Read { .. } | SourceOutcome::Cancelled => None,
            },
            ResearchFact::NoteRefused(_) | ResearchFact::AnswerRefused(_) => Some(MarkKind::Failed),
            _ => None,
        }
    }

    fn call_of(&self, event: &Event, run: &RunFold) -> Option<SpanId> {
        match (&event.kind, ResearchFact::of(&event.kind)) {
            (EventKind::AnswerComposed { .. }, _)
            | (_, Some(ResearchFact::AnswerCited(_) | ResearchFact::AnswerRefused(_))) => {
                self.answer_call
            }
            (_, Some(ResearchFact::PageRead(page))) => Some(page.call),
            _ => match run.spans.get(event.span)?.kind {
                SpanKind::Source(no) => self.source_call(no),
                _ => None,
            },
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        let before = |so: fn(&ResearchFact) -> bool| last_fact(event.seq, log, &so);
        match &event.kind {
            EventKind::Pattern(_) => self.cause_of_fact(event, run, log),
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Read { .. } => run.spans.opened_by(call.parent),
                Purpose::Notes { source } => last_fact(
                    event.seq,
                    log,
                    &|fact| matches!(fact, ResearchFact::PageRead(page) if page.source == *source),
                ),
                Purpose::Search => {
                    before(|fact| matches!(fact, ResearchFact::StepsAccepted { .. }))
                }
                Purpose::Synthesize => {
                    before(|fact| matches!(fact, ResearchFact::NotesVerified(_)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn tool_of(&self, purpose: &Purpose) -> Option<&str> {
        match purpose {
            Purpose::Search => Some(SEARCH),
            Purpose::Read { .. } => Some(READ),
            _ => None,
        }
    }

    fn next_breakpoint(&self, run: &RunFold) -> Result<BoundaryId, &'static str> {
        let current = WorkflowStep::current(run, self);
        let place = WorkflowStep::ALL.iter().position(|step| Some(*step) == current);
        let next = place.and_then(|place| WorkflowStep::ALL.get(place + 1));
        next.map(|step| step.boundary()).ok_or("No breakpoint here: this is the last phase.")
    }
}

/// The last fact before `seq` that matches.
fn last_fact(seq: Seq, log: &dyn EventLog, so: &dyn Fn(&ResearchFact) -> bool) -> Option<Seq> {
    log.last_before(seq, &|event| ResearchFact::of(&event.kind).is_some_and(so))
}
