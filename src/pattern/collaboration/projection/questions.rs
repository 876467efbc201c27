//! What the rest of the program asks the projection of a collaboration.

use super::Collaboration;
use crate::event::contribution::Decision;
use crate::event::kind::Purpose;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::{EventLog, MarkKind, Projection, RunFold};
use crate::event::{Boundary, BoundaryId, Event, EventKind, Seq, SpanId};
use crate::pattern::collaboration::facts::CollaborationFact;

impl Collaboration {
    fn seat_call(&self, round: u32, seat: u16) -> Option<SpanId> {
        self.round(round)?.seats.get(usize::from(seat))?.call
    }

    /// The verdict on the last contribution of a round.
    fn last_verdict(&self, round: u32, closed: Seq, log: &dyn EventLog) -> Option<Seq> {
        let seats = &self.round(round)?.seats;
        let last = seats.iter().rposition(|seat| seat.contribution.is_some())?;
        log.find_before(closed, &|event| match CollaborationFact::of(&event.kind) {
            Some(
                CollaborationFact::ContributionAccepted { round: of, seat, .. }
                | CollaborationFact::ContributionRefused { round: of, seat, .. },
            ) => *of == round && usize::from(*seat) == last,
            _ => false,
        })
    }

    fn cause_of_fact(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match CollaborationFact::of(&event.kind)? {
            CollaborationFact::ContributionAccepted { round, seat, .. }
            | CollaborationFact::ContributionRefused { round, seat, .. }
            | CollaborationFact::ContributionUnused { round, seat, .. } => {
                run.spans.opened_by(self.seat_call(*round, *seat)?)
            }
            CollaborationFact::RoundClosed { round, .. } => {
                self.last_verdict(*round, event.seq, log)
            }
            CollaborationFact::RoundStarted { round, .. } => {
                run.spans.closed_by(self.round(round.checked_sub(1)?)?.span)
            }
        }
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
        match CollaborationFact::of(&event.kind)? {
            CollaborationFact::RoundStarted { round, .. } => Some(MarkKind::Round(*round)),
            CollaborationFact::ContributionRefused { .. } => Some(MarkKind::Failed),
            _ => None,
        }
    }

    fn call_of(&self, event: &Event, _run: &RunFold) -> Option<SpanId> {
        match (&event.kind, CollaborationFact::of(&event.kind)) {
            (
                _,
                Some(
                    CollaborationFact::ContributionAccepted { round, seat, .. }
                    | CollaborationFact::ContributionRefused { round, seat, .. }
                    | CollaborationFact::ContributionUnused { round, seat, .. },
                ),
            ) => self.seat_call(*round, *seat),
            (EventKind::AnswerComposed { .. }, _) => self.finalize,
            _ => None,
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match &event.kind {
            EventKind::Pattern(_) => self.cause_of_fact(event, run, log),
            EventKind::AnswerComposed { .. } => run.spans.opened_by(self.finalize?),
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

    fn decides(&self) -> bool {
        true
    }

    fn decision(&self) -> Option<Decision> {
        self.rounds.last().and_then(|round| round.decision)
    }
}
