//! What the rest of the program asks the projection of a collaboration.

use super::Collaboration;
use crate::event::contribution::Decision;
use crate::event::kind::Purpose;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::{EventLog, MarkKind, Projection, RunFold};
use crate::event::{Boundary, BoundaryId, Event, EventKind, Seq, SpanId};

impl Collaboration {
    fn seat_call(&self, round: u32, seat: u16) -> Option<SpanId> {
        self.round(round)?.seats.get(usize::from(seat))?.call
    }

    /// The verdict on the last contribution of a round.
    fn last_verdict(&self, round: u32, closed: Seq, log: &dyn EventLog) -> Option<Seq> {
        let seats = &self.round(round)?.seats;
        let last = seats.iter().rposition(|seat| seat.contribution.is_some())?;
        log.find_before(closed, &|event| match &event.kind {
            EventKind::ContributionAccepted { round: of, seat, .. }
            | EventKind::ContributionRefused { round: of, seat, .. } => {
                *of == round && usize::from(*seat) == last
            }
            _ => false,
        })
    }
}

impl Projection for Collaboration {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        self.fold(event, &run.spans);
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        match &event.kind {
            EventKind::RoundStarted { round, .. } => Some(MarkKind::Round(*round)),
            EventKind::ContributionRefused { .. } => Some(MarkKind::Failed),
            _ => None,
        }
    }

    fn call_of(&self, event: &Event, _run: &RunFold) -> Option<SpanId> {
        match &event.kind {
            EventKind::ContributionAccepted { round, seat, .. }
            | EventKind::ContributionRefused { round, seat, .. } => self.seat_call(*round, *seat),
            EventKind::AnswerComposed { .. } => self.finalize,
            _ => None,
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match &event.kind {
            EventKind::ContributionAccepted { round, seat, .. }
            | EventKind::ContributionRefused { round, seat, .. } => {
                run.spans.opened_by(self.seat_call(*round, *seat)?)
            }
            EventKind::AnswerComposed { .. } => run.spans.opened_by(self.finalize?),
            EventKind::RoundClosed { round, .. } => self.last_verdict(*round, event.seq, log),
            EventKind::RoundStarted { round, .. } => {
                run.spans.closed_by(self.round(round.checked_sub(1)?)?.span)
            }
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Contribution { .. } => run.spans.opened_by(call.parent),
                Purpose::Finalize => run.spans.closed_by(self.current()?.span),
                _ => None,
            },
            _ => None,
        }
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        let next = self.current().map_or(1, |round| round.number.saturating_add(1));
        let finalizes = next > self.plan.max_rounds;
        Ok(if finalizes { Boundary::Finalize } else { Boundary::Round(next) }.id())
    }

    fn decision(&self) -> Option<Decision> {
        self.rounds.last().and_then(|round| round.decision)
    }
}
