//! The event that caused another event.

use super::inspect::InspectTarget;
use super::layout::Pane;
use super::{InputOutcome, RunPage};
use crate::app::state::Size;
use crate::event::kind::{Purpose, SourceNo};
use crate::event::world::SpanKind;
use crate::event::{Event, EventKind, Seq, SpanId, StopReason};

impl RunPage {
    /// Selects the event that caused what is selected.
    pub(super) fn show_cause(&mut self, size: Size) -> InputOutcome {
        let Some(target) = self.target() else { return InputOutcome::Handled { redraw: false } };
        let Some(seq) = self.cause_of(target) else { return self.report_no_cause(target) };
        if self.is_dropped(seq) {
            return InputOutcome::Say(self.dropped_notice());
        }
        self.focus_on(Pane::Events);
        let height = self.list_height(&self.areas_in(size));
        self.list.select(self.place(seq), &self.log, height);
        InputOutcome::redraw()
    }

    /// Answers a jump to a cause that is not there; says so if its event was dropped.
    pub(super) fn report_no_cause(&self, target: InspectTarget) -> InputOutcome {
        match self.is_target_dropped(target) {
            true => InputOutcome::Say(self.dropped_notice()),
            false => InputOutcome::Handled { redraw: false },
        }
    }
}

/// The event that caused this one: the place where an operator would look next.
pub(super) fn cause_of_event(page: &RunPage, event: &Event) -> Option<Seq> {
    let world = page.world();
    let span = world.spans.get(event.span);
    let opened = |span: SpanId| world.spans.get(span).map(|span| span.opened_by);
    let table = world.collaboration();
    let seat_call = |round: u32, seat: u16| {
        table.and_then(|table| table.round(round)?.seats.get(usize::from(seat))?.call)
    };
    match &event.kind {
        EventKind::ContributionAccepted { round, seat, .. }
        | EventKind::ContributionRefused { round, seat, .. } => opened(seat_call(*round, *seat)?),
        EventKind::HandoffMade { requested_by, .. }
        | EventKind::HandoffRefused { requested_by, .. } => {
            world.spans.get(*requested_by)?.closed_by
        }
        EventKind::ToolCallRefused { .. } => span?.closed_by,
        EventKind::AnswerComposed { by: Some(by), .. } => {
            world.spans.get(world.team()?.agent(by)?.last_call?)?.closed_by
        }
        EventKind::AnswerComposed { .. } => {
            let plan = world.orchestrator();
            opened(table.map_or_else(|| plan?.finalize, |table| table.finalize)?)
        }
        EventKind::PlanAccepted { .. } | EventKind::PlanRefused { .. } => span?.closed_by,
        kind if is_research_event(kind) => cause_in_research(page, event),
        EventKind::TaskStarted { .. } => {
            last_before(page, event, |kind| matches!(kind, EventKind::PlanAccepted { .. }))
        }
        EventKind::ResultsAggregated { .. } => last_before(page, event, |kind| {
            matches!(kind, EventKind::TaskDone { .. } | EventKind::TaskFailed { .. })
        }),
        // The change of the breaker that refused it.
        EventKind::AttemptRefused { reason: StopReason::CircuitOpen(tool), .. } => last_before(
            page,
            event,
            |kind| matches!(kind, EventKind::BreakerChanged { tool: of, .. } if of == tool),
        ),
        EventKind::BreakerChanged { .. } => {
            let before = page.place(event.seq).checked_sub(1)?;
            page.log().get(before).map(|event| event.seq)
        }
        EventKind::RoundClosed { round, .. } => {
            let round = table?.round(*round)?;
            let last = round.seats.iter().rev().find(|seat| seat.contribution.is_some())?;
            Some(page.verdict_event(last.call?)?.seq)
        }
        EventKind::RoundStarted { round, .. } => {
            let before = table?.round(round.checked_sub(1)?)?;
            world.spans.get(before.span)?.closed_by
        }
        EventKind::RunClosed(_) => {
            let before = page.place(event.seq).checked_sub(1)?;
            page.log().get(before).map(|event| event.seq)
        }
        EventKind::CallStarted(call) => match &call.purpose {
            Purpose::Contribution { .. } => opened(call.parent),
            Purpose::Finalize if table.is_none() => {
                last_before(page, event, |kind| matches!(kind, EventKind::ResultsAggregated { .. }))
            }
            Purpose::Finalize => world.spans.get(table?.current()?.span)?.closed_by,
            Purpose::Task { .. } => opened(call.parent),
            Purpose::SwarmTurn { from: Some(from), .. } => last_before(
                page,
                event,
                |kind| matches!(kind, EventKind::HandoffMade { from: who, .. } if who == from),
            ),
            Purpose::ModelCall { .. } | Purpose::SwarmTurn { .. } => opened(call.parent),
            Purpose::Member { requested_by, .. } | Purpose::Tool { requested_by, .. } => {
                world.spans.get(*requested_by)?.closed_by
            }
            Purpose::Read { .. } => opened(call.parent),
            Purpose::Notes { source } => last_before(
                page,
                event,
                |kind| matches!(kind, EventKind::PageRead(page) if page.source == *source),
            ),
            Purpose::Search => {
                last_before(page, event, |kind| matches!(kind, EventKind::StepsAccepted { .. }))
            }
            Purpose::Synthesize => {
                last_before(page, event, |kind| matches!(kind, EventKind::NotesVerified(_)))
            }
            Purpose::Plan | Purpose::AgentStep { .. } => None,
        },
        EventKind::CallRetried { attempt, .. } => {
            let failed = world.spans.children(event.span).find(
                |child| matches!(child.kind, SpanKind::Attempt(nth) if nth + 1 == *attempt),
            )?;
            failed.closed_by
        }
        EventKind::CallAnswered { .. }
        | EventKind::CallDegraded { .. }
        | EventKind::CallFailed { .. }
        | EventKind::RetryRefused { .. }
        | EventKind::TaskDone { .. }
        | EventKind::TaskFailed { .. } => world.spans.last_child(event.span)?.closed_by,
        EventKind::AttemptStarted { parent, .. } => opened(*parent),
        EventKind::AttemptAnswered(_) | EventKind::AttemptFailed(_) => Some(span?.opened_by),
        _ => None,
    }
}

/// Whether `of_research` finds the cause of this kind.
fn is_research_event(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::StepsAccepted { .. }
            | EventKind::SourcesFound(_)
            | EventKind::SourcesDeduped(_)
            | EventKind::SourceStarted { .. }
            | EventKind::PageRead(_)
            | EventKind::NoteTaken { .. }
            | EventKind::NoteRefused(_)
            | EventKind::NotesTruncated(_)
            | EventKind::SourceClosed(_)
            | EventKind::ReadingClosed { .. }
            | EventKind::NotesCompared(_)
            | EventKind::NotesVerified(_)
            | EventKind::AnswerCited(_)
            | EventKind::AnswerRefused(_)
    )
}

/// The cause of an event of research.
fn cause_in_research(page: &RunPage, event: &Event) -> Option<Seq> {
    let world = page.world();
    let research = world.research()?;
    let closed = |call: Option<SpanId>| world.spans.get(call?)?.closed_by;
    let before = |so: fn(&EventKind) -> bool| last_before(page, event, so);
    let noted = |source: &SourceNo| {
        let row = research.source(*source)?;
        closed(row.notes_call.or(row.read_call))
    };
    match &event.kind {
        EventKind::StepsAccepted { .. } => closed(research.plan_call),
        EventKind::SourcesFound(_) => closed(research.search_call),
        EventKind::SourcesDeduped(_) => before(|kind| matches!(kind, EventKind::SourcesFound(_))),
        EventKind::SourceStarted { .. } => {
            before(|kind| matches!(kind, EventKind::SourcesDeduped(_)))
        }
        EventKind::PageRead(page) => closed(Some(page.call)),
        EventKind::NoteTaken { source, .. } => noted(source),
        EventKind::NoteRefused(note) => noted(&note.source),
        EventKind::NotesTruncated(cut) => noted(&cut.source),
        EventKind::SourceClosed(_) => {
            let mut before = page.log().between(0, page.place(event.seq)).rev();
            let last = before.find(|it| it.span == event.span)?;
            Some(last.seq)
        }
        EventKind::ReadingClosed { .. } => {
            before(|kind| matches!(kind, EventKind::SourceClosed(_)))
        }
        EventKind::NotesCompared(_) | EventKind::NotesVerified(_) => {
            before(|kind| matches!(kind, EventKind::ReadingClosed { .. }))
        }
        EventKind::AnswerCited(_) | EventKind::AnswerRefused(_) => closed(research.answer_call),
        _ => None,
    }
}

/// The last event before `event` that matches. If no event in memory does, the match is taken to be
/// the last of those that were dropped.
fn last_before(page: &RunPage, event: &Event, so: impl Fn(&EventKind) -> bool) -> Option<Seq> {
    let mut before = page.log().between(0, page.place(event.seq)).rev();
    let found = before.find(|event| so(&event.kind)).map(|event| event.seq);
    found.or_else(|| Some(Seq(page.log().dropped_count().checked_sub(1)? as u64)))
}
