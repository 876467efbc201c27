//! The event that caused another event.

use super::target::InspectTarget;
use crate::app::run::data::RunData;
use crate::app::run::event_window::EventWindow;
use crate::event::kind::Purpose;
use crate::event::world::{EventLog, SpanKind};
use crate::event::{Event, EventKind, Seq, StopReason, World};

/// The event that caused what is inspected or selected.
pub(crate) fn cause_of(run: &RunData, target: InspectTarget) -> Option<Seq> {
    match target {
        InspectTarget::Event(seq) => cause_of_event(run, run.event(seq)?),
        InspectTarget::Call(call) => {
            let call = run.opening_event(call)?;
            match &call.kind {
                EventKind::CallStarted(started) if matches!(started.purpose, Purpose::Finalize) => {
                    cause_of_event(run, call)
                }
                _ => Some(call.seq),
            }
        }
    }
}

/// The event that caused this one: the place where an operator would look next.
pub(super) fn cause_of_event(run: &RunData, event: &Event) -> Option<Seq> {
    let (world, log) = (run.world(), run.log());
    let of_pattern = world.projection().and_then(|it| it.cause_of(event, world, log));
    of_pattern.or_else(|| shared_cause(world, log, event))
}

/// The cause of an event that has the same cause in all patterns.
fn shared_cause(world: &World, log: &EventWindow, event: &Event) -> Option<Seq> {
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
