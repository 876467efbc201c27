//! Projection of pattern `004`: the sources that were found and how each came out, the notes with
//! their quotes, what was verified, the sentences of the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::spans::{SpanKind, Spans};
use crate::event::kind::{
    Denial, DropReason, Found, IssueOf, Note, NoteId, NoteRefused, NotesCompared, NotesCut,
    PlannedStep, Purpose, ReadingEnd, Sentence, SourceCame, SourceNo,
};
use crate::event::{Elapsed, Event, EventKind, SpanId, StopReason};

/// A research run as its log tells it.
#[derive(Clone, Debug, Default)]
pub struct Research {
    /// The call that asks for the plan, once it is made.
    pub plan_call: Option<SpanId>,
    /// The steps of the plan, and when they were taken.
    pub steps: Option<(Arc<[PlannedStep]>, Elapsed)>,
    /// A plan that was refused.
    pub refused_plan: Option<RefusedPlan>,
    /// The call that searches, once it is made.
    pub search_call: Option<SpanId>,
    /// What was searched, and when it was found.
    pub query: Option<(Arc<str>, Elapsed)>,
    /// Documents that could not be searched, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Every source that was found, in its order; one that has not changed is shared between
    /// copies of the world.
    pub sources: Vec<Arc<SourceRow>>,
    /// Those that were kept, in the order in which they are looked at; and when that was settled.
    pub kept: Option<(Arc<[SourceNo]>, Elapsed)>,
    /// Why no further source is looked at, and since when.
    pub reading_end: Option<(ReadingEnd, Elapsed)>,
    /// The notes that were taken, in their order.
    pub notes: Vec<NoteRow>,
    /// The notes that were refused.
    pub refused: Vec<Arc<NoteRefused>>,
    /// What the notes say of one another.
    pub compared: NotesCompared,
    /// What verification found, and when.
    pub verified: Option<Verified>,
    /// The call that puts the answer together, once it is made.
    pub answer_call: Option<SpanId>,
    /// An answer that was refused: why, and what the model gave.
    pub refused_answer: Option<(StopReason, Value)>,
    /// The sentences of the answer.
    pub sentences: Arc<[Sentence]>,
    /// What the answer cites, in its order.
    pub citations: Arc<[NoteId]>,
    /// When the answer was taken.
    pub answered: Option<Elapsed>,
    /// What calls that read have answered, until their pages are taken.
    answers: BTreeMap<SpanId, Arc<Value>>,
}

/// A plan that was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedPlan {
    /// Why.
    pub reason: StopReason,
    /// What the planner gave.
    pub raw: Value,
    /// What was wanted and what came.
    pub details: Option<Value>,
}

/// What verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Notes that were looked at.
    pub checked: u32,
    /// What is wrong, in the order of the notes.
    pub issues: Arc<[IssueOf]>,
    /// When.
    pub at: Elapsed,
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRow {
    /// Which.
    pub no: SourceNo,
    /// As it was found.
    pub found: Found,
    /// Its address, normalized; `None` before it is kept, or where it is not.
    pub url: Option<Arc<str>>,
    /// Its domain; empty where it is not kept.
    pub domain: Arc<str>,
    /// How far its domain is trusted; `None` where it is not kept.
    pub trust: Option<f64>,
    /// How far it is.
    pub state: SourceState,
    /// Its span, once it is looked at.
    pub span: Option<SpanId>,
    /// When it was begun.
    pub opened: Option<Elapsed>,
    /// When it came out.
    pub closed: Option<Elapsed>,
    /// The call that reads it, once it is made.
    pub read_call: Option<SpanId>,
    /// The call that takes notes of it, once it is made.
    pub notes_call: Option<SpanId>,
    /// Its page, once it is read.
    pub page: Option<Page>,
    /// What was cut of the notes that were proposed of it.
    pub cut: Option<NotesCut>,
}

/// A page as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Where it was found in the end, normalized.
    pub url: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// When it was published; empty: it does not say.
    pub published_at: Arc<str>,
    /// Days from then until the day that the run asks about, where both are known.
    pub age_days: Option<i64>,
    /// Characters of its text.
    pub chars: u64,
    /// Whether that day is when its file was last changed: the page itself says none.
    pub modified: bool,
    answer: Option<Arc<Value>>,
}

impl Page {
    /// Its text, paragraphs with a blank line between; empty where the log does not have it.
    pub fn text(&self) -> &str {
        let data = self.answer.as_deref().and_then(|answer| answer.get("data"));
        data.and_then(|data| data.get("body")).and_then(Value::as_str).unwrap_or_default()
    }

    /// Something else that the tool says of it, such as `content_type` or `redirects`.
    pub fn told(&self, name: &str) -> Option<&Value> {
        self.answer.as_deref()?.get("data")?.get(name)
    }
}

/// How far a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// It was found.
    Found,
    /// It fell out before any gate.
    Dropped(DropReason),
    /// It is kept, and its turn has not come.
    Waiting,
    /// It is looked at: its gate is asked, or its page is read.
    Reading,
    /// Notes of it are taken.
    Noting,
    /// An allowlist refused it, or where it leads to.
    Denied {
        /// Which.
        reason: Denial,
        /// Where it leads to, where that was refused.
        location: Option<Arc<str>>,
    },
    /// Its page could not be had, or is of no use.
    Skipped {
        /// Why, in a word.
        reason: Arc<str>,
        /// Why, for people.
        text: Arc<str>,
    },
    /// It was read.
    Read {
        /// Notes that were taken.
        notes: u32,
        /// Notes that were refused.
        refused: u32,
    },
    /// Its turn did not come: the budget was spent before.
    NotReached(ReadingEnd),
    /// The run ended in the middle of it, or before its turn.
    Cancelled,
}

/// A note that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRow {
    /// Of which source.
    pub source: SourceNo,
    /// The note.
    pub note: Arc<Note>,
    /// When.
    pub at: Elapsed,
}

/// How many came how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Funnel {
    /// Sources that were found.
    pub found: usize,
    /// Sources that were kept.
    pub deduped: usize,
    /// Sources that passed both allowlists.
    pub allowed: usize,
    /// Pages that were read.
    pub read: usize,
    /// Notes that were taken.
    pub notes: usize,
    /// Notes that the answer cites.
    pub cited: usize,
}

impl Research {
    /// The source of this number.
    pub fn source(&self, no: SourceNo) -> Option<&SourceRow> {
        self.sources.get(no.place()?).map(|row| &**row)
    }

    /// The sources that were kept, in the order in which they are looked at.
    pub fn kept(&self) -> impl Iterator<Item = &SourceRow> {
        let kept = self.kept.as_ref().map_or(&[][..], |(kept, _)| kept);
        kept.iter().filter_map(|no| self.source(*no))
    }

    /// The note of this id.
    pub fn note(&self, id: &NoteId) -> Option<&NoteRow> {
        self.notes.iter().find(|row| row.note.id == *id)
    }

    /// Whether the answer cites a note.
    pub fn is_cited(&self, id: &NoteId) -> bool {
        self.citations.contains(id)
    }

    /// Pages that were read, those of no use among them.
    pub fn pages_read(&self) -> usize {
        self.sources.iter().filter(|row| row.page.is_some()).count()
    }

    /// How many came how far.
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
        self.sources.get_mut(no.place()?).map(Arc::make_mut)
    }

    fn of_span(&mut self, span: SpanId, spans: &Spans) -> Option<&mut SourceRow> {
        match spans.get(span)?.what {
            SpanKind::Source(no) => self.row(no),
            _ => None,
        }
    }

    /// The call of an attempt, where it reads.
    fn reading_call(span: SpanId, spans: &Spans) -> Option<SpanId> {
        let call = spans.get(span)?.parent;
        let reads = matches!(spans.get(call)?.what, SpanKind::Call(Purpose::Read { .. }));
        reads.then_some(call)
    }

    pub(super) fn apply(&mut self, event: &Event, spans: &Spans) {
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
                self.left_out.clone_from(&found.left_out);
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
                    spans.get(event.span).map(|call| &call.what),
                    Some(SpanKind::Call(Purpose::Read { .. }))
                ) {
                    self.answers.insert(event.span, Arc::clone(value));
                }
            }
            EventKind::PageRead(page) => {
                let answer = self.answers.remove(&page.call);
                let Some(row) = self.row(page.source) else { return };
                row.page = Some(Page {
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
            EventKind::NotesCut(cut) => {
                if let Some(row) = self.row(cut.source) {
                    row.cut = Some(*cut);
                }
            }
            EventKind::SourceClosed(came) => {
                let Some(row) = self.of_span(event.span, spans) else { return };
                row.closed = Some(event.at);
                row.state = match (**came).clone() {
                    SourceCame::Denied { reason, location } => {
                        SourceState::Denied { reason, location }
                    }
                    SourceCame::Skipped { reason, text } => SourceState::Skipped { reason, text },
                    SourceCame::Read { notes, refused } => SourceState::Read { notes, refused },
                    SourceCame::Cancelled => SourceState::Cancelled,
                };
                // What a page that was not taken had answered is of no use any more.
                if let Some(call) = row.read_call {
                    self.answers.remove(&call);
                }
            }
            EventKind::ReadingClosed { why } => {
                self.reading_end = Some((*why, event.at));
                self.leave_waiting(&SourceState::NotReached(*why));
            }
            EventKind::RunClosed(_) => self.leave_waiting(&SourceState::Cancelled),
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

    /// Those whose turn has not come are left.
    fn leave_waiting(&mut self, how: &SourceState) {
        for row in self.sources.iter_mut().filter(|row| row.state == SourceState::Waiting) {
            Arc::make_mut(row).state = how.clone();
        }
    }
}

impl SourceRow {
    fn new(place: usize, found: &Found) -> Arc<Self> {
        Arc::new(Self {
            no: SourceNo::at(place),
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

    /// Its address as it is known best: normalized, else as it was found.
    pub fn address(&self) -> &str {
        self.url.as_deref().unwrap_or(&self.found.url)
    }

    /// Its title: the page's own, else as it was found.
    pub fn title(&self) -> &str {
        let own = self.page.as_ref().map(|page| &*page.title).filter(|title| !title.is_empty());
        own.unwrap_or(&self.found.title)
    }

    /// The word for why it fell out, where it did.
    pub fn fell_out(&self) -> Option<&str> {
        Some(match &self.state {
            SourceState::Dropped(reason) => reason.word(),
            SourceState::Denied { reason, .. } => reason.word(),
            SourceState::Skipped { reason, .. } => reason,
            SourceState::NotReached(why) => why.word(),
            SourceState::Cancelled if self.span.is_some() => "cancelled",
            SourceState::Cancelled => "not_reached",
            SourceState::Found
            | SourceState::Waiting
            | SourceState::Reading
            | SourceState::Noting
            | SourceState::Read { .. } => return None,
        })
    }
}
