//! What the rest of the program asks the projection of a research run.

use super::Research;
use super::steps::WorkflowStep;
use crate::event::id::SourceNo;
use crate::event::kind::Purpose;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::{EventLog, MarkKind, Projection, RunFold, SpanKind};
use crate::event::{BoundaryId, Event, EventKind, Seq, SpanId};
use crate::pattern::research::facts::{ResearchFact, SourceOutcome};
use crate::pattern::research::spec::{READ, SEARCH};

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
