//! The facts of a research run: its plan, the sources, the notes, the answer.

mod parts;
pub(crate) mod phrases;
mod redact;

use std::sync::Arc;

pub use self::parts::{
    AnswerCited, AnswerRefused, Denial, DropReason, DroppedSource, FoundSource, KeptSource, Note,
    NoteConflict, NotePair, NoteProblem, NoteRefused, NotesCompared, NotesLimit, NotesTruncated,
    NotesVerified, PageRead, PlannedStep, ReadingEnd, Sentence, SourceOutcome, SourcesDeduped,
    SourcesFound,
};

use crate::event::fact::{Fact, FactAbout};
use crate::event::fact_enum::facts;
use crate::event::id::SourceNo;
use crate::event::id::SpanId;
use crate::event::redact::TextRedactor;
use crate::event::span::{SpanKind, SpanState};
use crate::event::weight::{ENTRY, json_weight};

facts! {
    /// A fact of a research run.
    pub enum ResearchFact in Research read as ResearchFactFields of "ResearchFact" {
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

    fn weight(&self) -> usize {
        match self {
            Self::StepsAccepted { steps } => {
                steps.iter().map(|it| size_of_val(it) + it.id.len() + it.action.len()).sum()
            }
            Self::SourcesFound(found) => {
                let each = found.sources.iter().map(|it| {
                    let texts = [&it.url, &it.title, &it.snippet, &it.published_at];
                    size_of_val(it) + texts.iter().map(|text| text.len()).sum::<usize>()
                });
                found.query.len() + each.sum::<usize>() + found.unsearched.len() * ENTRY
            }
            Self::SourcesDeduped(it) => {
                let kept =
                    it.kept.iter().map(|it| size_of_val(it) + it.url.len() + it.domain.len());
                kept.sum::<usize>() + size_of_val(&*it.dropped)
            }
            Self::PageRead(page) => {
                size_of_val(&**page) + page.url.len() + page.title.len() + page.published_at.len()
            }
            Self::NoteTaken { note, .. } => {
                let texts = [&note.claim, &note.quote, &note.url, &note.title, &note.published_at];
                size_of_val(&**note) + texts.iter().map(|text| text.len()).sum::<usize>()
            }
            Self::NoteRefused(note) => size_of_val(&**note) + note.claim.len() + note.quote.len(),
            Self::SourceClosed(came) => {
                let texts = match &**came {
                    SourceOutcome::Denied { location, .. } => {
                        location.as_ref().map_or(0, |it| it.len())
                    }
                    SourceOutcome::Skipped { reason, text } => reason.len() + text.len(),
                    SourceOutcome::Read { .. } | SourceOutcome::Cancelled => 0,
                };
                size_of_val(&**came) + texts
            }
            Self::NotesCompared(it) => {
                let ends =
                    it.conflicts.iter().map(|it| it.left_figure.len() + it.right_figure.len());
                size_of_val(&*it.agree)
                    + size_of_val(&*it.conflicts)
                    + size_of_val(&*it.unconfirmed)
                    + ends.sum::<usize>()
            }
            Self::NotesVerified(it) => size_of_val(&*it.issues),
            Self::AnswerCited(it) => {
                let each = it
                    .sentences
                    .iter()
                    .map(|it| size_of_val(it) + it.text.len() + size_of_val(&*it.citations));
                let unanswered = it.unanswered.iter().map(|it| size_of_val(it) + it.len());
                each.sum::<usize>() + size_of_val(&*it.citations) + unanswered.sum::<usize>()
            }
            Self::AnswerRefused(it) => json_weight(&it.raw) + it.reason.weight(),
            Self::SourceStarted { .. } | Self::NotesTruncated(_) | Self::ReadingClosed { .. } => 0,
        }
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

    fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::StepsAccepted { steps } => {
                for PlannedStep { id, action: _ } in Arc::make_mut(steps) {
                    by.text(id);
                }
            }
            Self::SourcesFound(found) => found.redact(by),
            Self::SourcesDeduped(deduped) => deduped.redact(by),
            Self::PageRead(page) => page.redact(by),
            Self::NoteTaken { source: _, note } => Arc::make_mut(note).redact(by),
            Self::NoteRefused(note) => {
                let NoteRefused { source: _, reason: _, claim, quote } = &mut **note;
                by.text(claim);
                by.text(quote);
            }
            Self::SourceClosed(outcome) => outcome.redact(by),
            Self::NotesCompared(compared) => compared.redact(by),
            Self::AnswerCited(answer) => {
                let AnswerCited { sentences, citations: _, unanswered } = &mut **answer;
                Arc::make_mut(unanswered).iter_mut().for_each(|part| by.text(part));
                for Sentence { text, citations: _, unconfirmed: _ } in Arc::make_mut(sentences) {
                    by.text(text);
                }
            }
            Self::AnswerRefused(refused) => {
                let AnswerRefused { reason, raw } = &mut **refused;
                reason.redact(by);
                by.value(raw);
            }
            Self::SourceStarted { parent: _, source: _ }
            | Self::NotesTruncated(NotesTruncated { source: _, proposed: _, cut: _, limit: _ })
            | Self::ReadingClosed { reason: _ }
            | Self::NotesVerified(_) => {}
        }
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
