//! The event that caused another event.

use super::inspect::InspectTarget;
use super::layout::Pane;
use super::run_log::RunLog;
use super::{InputOutcome, RunPage};
use crate::app::layout::Size;
use crate::event::world::{EventLog, SpanKind};
use crate::event::{Event, EventKind, Seq, StopReason, World};

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
    let (world, log) = (page.world(), page.log());
    let of_pattern = world.projection().and_then(|it| it.cause_of(event, world, log));
    of_pattern.or_else(|| shared_cause(world, log, event))
}

/// The cause of an event that has the same cause in all patterns.
fn shared_cause(world: &World, log: &RunLog, event: &Event) -> Option<Seq> {
    match &event.kind {
        EventKind::PlanRefused { .. } => world.spans.closed_by(event.span),
        // The change of the breaker that refused it.
        EventKind::AttemptRefused { reason: StopReason::CircuitOpen(tool), .. } => log.last_before(
            event.seq,
            &|it| matches!(&it.kind, EventKind::BreakerChanged { tool: of, .. } if of == tool),
        ),
        EventKind::BreakerChanged { .. } | EventKind::RunClosed(_) => {
            log.find_before(event.seq, &|_| true)
        }
        EventKind::CallRetried { attempt, .. } => {
            let failed = world.spans.children(event.span).find(
                |child| matches!(child.kind, SpanKind::Attempt(nth) if nth + 1 == *attempt),
            )?;
            failed.closed_by
        }
        EventKind::CallAnswered { .. }
        | EventKind::CallDegraded { .. }
        | EventKind::CallFailed { .. }
        | EventKind::RetryRefused { .. } => world.spans.last_child(event.span)?.closed_by,
        EventKind::AttemptStarted { parent, .. } => world.spans.opened_by(*parent),
        EventKind::AttemptAnswered(_) | EventKind::AttemptFailed(_) => {
            world.spans.opened_by(event.span)
        }
        _ => None,
    }
}
