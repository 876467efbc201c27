//! What the rest of the program asks the projection of a research run.

use super::Research;
use super::steps::WorkflowStep;
use crate::event::kind::{Purpose, SourceNo, SourceOutcome};
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::{EventLog, MarkKind, Projection, RunFold, SpanKind};
use crate::event::{BoundaryId, Event, EventKind, Seq, SpanId};
use crate::pattern::research::spec::{READ, SEARCH};

impl Research {
    /// The call that takes notes from a source, or else the one that reads it.
    fn source_call(&self, source: SourceNo) -> Option<SpanId> {
        let row = self.source(source)?;
        row.notes_call.or(row.read_call)
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
        match &event.kind {
            EventKind::PageRead(page) => Some(MarkKind::Page(page.source)),
            EventKind::SourceClosed(came) => match **came {
                SourceOutcome::Denied { .. } => Some(MarkKind::Refused),
                SourceOutcome::Skipped { .. } => Some(MarkKind::Failed),
                SourceOutcome::Read { .. } | SourceOutcome::Cancelled => None,
            },
            EventKind::NoteRefused(_) | EventKind::AnswerRefused(_) => Some(MarkKind::Failed),
            _ => None,
        }
    }

    fn call_of(&self, event: &Event, run: &RunFold) -> Option<SpanId> {
        match (&event.kind, run.spans.get(event.span).map(|span| &span.kind)) {
            (
                EventKind::AnswerCited(_)
                | EventKind::AnswerRefused(_)
                | EventKind::AnswerComposed { .. },
                _,
            ) => self.answer_call,
            (EventKind::PageRead(page), _) => Some(page.call),
            (_, Some(SpanKind::Source(no))) => self.source_call(*no),
            _ => None,
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        let before = |so: fn(&EventKind) -> bool| log.last_before(event.seq, &|it| so(&it.kind));
        let closed = |call: Option<SpanId>| run.spans.closed_by(call?);
        match &event.kind {
            EventKind::StepsAccepted { .. } => closed(self.plan_call),
            EventKind::SourcesFound(_) => closed(self.search_call),
            EventKind::SourcesDeduped(_) => {
                before(|kind| matches!(kind, EventKind::SourcesFound(_)))
            }
            EventKind::SourceStarted { .. } => {
                before(|kind| matches!(kind, EventKind::SourcesDeduped(_)))
            }
            EventKind::PageRead(page) => closed(Some(page.call)),
            EventKind::NoteTaken { source, .. } => closed(self.source_call(*source)),
            EventKind::NoteRefused(note) => closed(self.source_call(note.source)),
            EventKind::NotesTruncated(cut) => closed(self.source_call(cut.source)),
            EventKind::SourceClosed(_) => {
                log.find_before(event.seq, &|before| before.span == event.span)
            }
            EventKind::ReadingClosed { .. } => {
                before(|kind| matches!(kind, EventKind::SourceClosed(_)))
            }
            EventKind::NotesCompared(_) | EventKind::NotesVerified(_) => {
                before(|kind| matches!(kind, EventKind::ReadingClosed { .. }))
            }
            EventKind::AnswerCited(_) | EventKind::AnswerRefused(_) => closed(self.answer_call),
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Read { .. } => run.spans.opened_by(call.parent),
                Purpose::Notes { source } => log.last_before(
                    event.seq,
                    &|it| matches!(&it.kind, EventKind::PageRead(page) if page.source == *source),
                ),
                Purpose::Search => before(|kind| matches!(kind, EventKind::StepsAccepted { .. })),
                Purpose::Synthesize => before(|kind| matches!(kind, EventKind::NotesVerified(_))),
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
        next.map(|step| step.boundary()).ok_or("No breakpoint here: this is the last step.")
    }
}
