//! The subject of the page: the selected seat, else the current speaker.

use super::{RunPage, Selection};
use crate::event::kind::SeatStatus;
use crate::event::world::{RunState, SpanState, World};
use crate::event::{Boundary, SpanId};
use crate::pattern::collaboration::projection::{Collaboration, Round, RoundSeat, SeatState};

/// The subject of the speaker's pane, of the prompt and of the inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A seat in a round.
    Seat {
        /// The round, from 1.
        round: u32,
        /// Index of the seat in the sequence, from 0.
        seat: usize,
    },
    /// The plan of an orchestrator.
    Plan,
    /// A task, by its index in the plan.
    Task(usize),
    /// The join: the results combined.
    Join,
    /// The model call at the end that composes the answer.
    Finalize,
    /// The outcome of the run.
    Outcome,
    /// None: no call has been made yet.
    None,
}

impl RunPage {
    /// The subject in the world that is shown.
    pub fn subject(&self) -> Subject {
        let world = self.shown();
        if let Some(orchestrator) = world.orchestrator() {
            return self.orchestrator_subject(world, orchestrator);
        }
        let Some(table) = world.collaboration() else {
            return match world.stage {
                RunState::Closed => Subject::Outcome,
                _ => Subject::None,
            };
        };
        let current = table.current().map_or(0, |round| round.number);
        match self.selection() {
            Selection::Seat(seat) => {
                let round = self.round.unwrap_or(current);
                let there = table.round(round).is_some_and(|round| seat < round.seats.len());
                if there { Subject::Seat { round, seat } } else { Subject::None }
            }
            Selection::Finalize if table.finalize.is_some() => Subject::Finalize,
            Selection::Finalize | Selection::Follow => followed_subject(world, table),
        }
    }

    /// The model call of the subject, if there is one.
    pub fn subject_call(&self) -> Option<SpanId> {
        if let Some(orchestrator) = self.shown().orchestrator() {
            return self.orchestrator_call(orchestrator);
        }
        if let Some(team) = self.shown().team() {
            let plan = &*team.plan;
            let whom = team.answered_by.as_ref().or(team.in_control.as_ref()).unwrap_or(&plan.root);
            return team.agent(whom)?.last_call;
        }
        if self.shown().research().is_some() {
            return self.research_call();
        }
        let table = self.shown().collaboration()?;
        match self.subject() {
            Subject::Seat { round, seat } => table.round(round)?.seats.get(seat)?.call,
            Subject::Finalize => table.finalize,
            // For the outcome: the call of the brief, else the call that prevented it.
            Subject::Outcome => table.finalize.or_else(|| {
                // A failed seat comes before those that were cancelled because of it.
                let seats = &table.current()?.seats;
                let of =
                    |states: &[SeatState]| seats.iter().find(|seat| states.contains(&seat.state));
                let failed = of(&[SeatState::Refused, SeatState::Failed]);
                failed.or_else(|| of(&[SeatState::Cancelled]))?.call
            }),
            Subject::Plan | Subject::Task(_) | Subject::Join | Subject::None => None,
        }
    }

    /// Whether a seat of the last round failed or was refused, in the world that is shown.
    pub fn has_failed_seat(&self) -> bool {
        let of = |seat: &RoundSeat| matches!(seat.state, SeatState::Refused | SeatState::Failed);
        let table = self.shown().collaboration();
        table.and_then(|table| table.current()).is_some_and(|round| round.seats.iter().any(of))
    }
}

fn followed_subject(world: &World, table: &Collaboration) -> Subject {
    if world.stage == RunState::Closed {
        return Subject::Outcome;
    }
    if table.finalize.is_some() {
        return Subject::Finalize;
    }
    let Some(round) = table.current() else { return Subject::None };
    let seat_in =
        |states: &[SeatState]| round.seats.iter().position(|seat| states.contains(&seat.state));
    let last_in =
        |round: &Round| round.seats.iter().rposition(|seat| seat.state == SeatState::Accepted);
    let speaking = seat_in(&[SeatState::Speaking, SeatState::Retrying])
        .or_else(|| seat_in(&[SeatState::Refused, SeatState::Failed]))
        .or_else(|| seat_in(&[SeatState::Answered]))
        .or_else(|| last_in(round));
    if let Some(seat) = speaking {
        return Subject::Seat { round: round.number, seat };
    }
    // In a round that has just begun, the last words of the round before stay.
    let before = round.number.checked_sub(1).and_then(|number| table.round(number));
    match before.and_then(|round| last_in(round).map(|seat| (round.number, seat))) {
        Some((round, seat)) => Subject::Seat { round, seat },
        None => Subject::None,
    }
}

/// Whether the run is paused right before this seat is called.
pub fn is_paused_before(world: &World, round: &Round, seat: usize) -> bool {
    let RunState::Paused { at, .. } = &world.stage else { return false };
    let Some(role) = round.seats.get(seat).map(|seat| &seat.role) else { return false };
    let nth = round.seats[..=seat].iter().filter(|seat| seat.role == *role).count();
    let nth = u32::try_from(nth).unwrap_or(u32::MAX);
    let here = Boundary::Message { round: round.number, role: role.clone(), nth }.id();
    at.contains(&here)
}

/// Number of accepted contributions of a round, and number of seats that are called.
pub fn answered_and_called(round: &Round) -> (usize, usize) {
    (round.contributions().count(), round.asked_seats())
}

/// Whether a call is still open.
pub fn is_open(world: &World, call: SpanId) -> bool {
    world.spans.get(call).is_some_and(|span| span.state == SpanState::Open)
}

/// The round in which a vacant seat was taken, if that was not long before `round`.
pub fn round_joined(table: &Collaboration, round: u32, seat: usize) -> Option<u32> {
    /// A seat taken more rounds ago than this is no longer marked as new.
    const RECENT: u32 = 20;
    let taken =
        |number: u32| table.round(number).and_then(|round| round.seats.get(seat)).map(seat_taken);
    let mut number = round;
    while number > 1 && round - number < RECENT {
        match (taken(number), taken(number - 1)) {
            (Some(true), Some(false)) => return Some(number),
            (Some(true), Some(true)) => number -= 1,
            _ => return None,
        }
    }
    None
}

fn seat_taken(seat: &RoundSeat) -> bool {
    seat.asked == SeatStatus::Asked
}
