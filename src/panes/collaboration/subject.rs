//! The subject of the page of a collaboration: the selected seat, else the current speaker.

use crate::event::world::{RunState, SpanState, World};
use crate::event::{Boundary, SpanId};
use crate::pattern::collaboration::facts::SeatStatus;
use crate::pattern::collaboration::projection::{Collaboration, Round, RoundSeat, SeatState};

/// The subject of the speaker's pane, of the prompt and of the inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatSubject {
    /// A seat in a round.
    Seat {
        /// The round, from 1.
        round: u32,
        /// Index of the seat in the sequence, from 0.
        seat: usize,
    },
    /// The model call at the end that composes the answer.
    Finalize,
    /// The outcome of the run.
    Outcome,
    /// None: no call has been made yet.
    None,
}

/// The subject that follows the run.
pub(super) fn followed_subject(world: &World, table: &Collaboration) -> SeatSubject {
    if world.progress.stage == RunState::Closed {
        return SeatSubject::Outcome;
    }
    if table.finalize.is_some() {
        return SeatSubject::Finalize;
    }
    let Some(round) = table.current() else { return SeatSubject::None };
    let seat_in =
        |states: &[SeatState]| round.seats.iter().position(|seat| states.contains(&seat.state));
    let last_in =
        |round: &Round| round.seats.iter().rposition(|seat| seat.state == SeatState::Accepted);
    let speaking = seat_in(&[SeatState::Speaking, SeatState::Retrying])
        .or_else(|| seat_in(&[SeatState::Refused, SeatState::Failed]))
        .or_else(|| seat_in(&[SeatState::Answered]))
        .or_else(|| last_in(round));
    if let Some(seat) = speaking {
        return SeatSubject::Seat { round: round.number, seat };
    }
    // In a round that has just begun, the last words of the round before stay.
    let before = round.number.checked_sub(1).and_then(|number| table.round(number));
    match before.and_then(|round| last_in(round).map(|seat| (round.number, seat))) {
        Some((round, seat)) => SeatSubject::Seat { round, seat },
        None => SeatSubject::None,
    }
}

/// Whether the run is paused right before this seat is called.
pub fn is_paused_before(world: &World, round: &Round, seat: usize) -> bool {
    let RunState::Paused { at, .. } = &world.progress.stage else { return false };
    let Some(role) = round.seats.get(seat).map(|seat| &seat.role) else { return false };
    let nth = round.seats[..=seat].iter().filter(|seat| seat.role == *role).count();
    let nth = u32::try_from(nth).unwrap_or(u32::MAX);
    let here = Boundary::Message { round: round.number, role: role.clone(), nth }.id();
    at.contains(&here)
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

/// Which seats are off in the current round.
pub fn off_seats(table: &Collaboration) -> Vec<bool> {
    let round = table.current();
    let state = |seat: usize| round.and_then(|round| round.seats.get(seat)).map(|seat| seat.state);
    (0..table.plan.sequence.len()).map(|seat| state(seat) == Some(SeatState::Off)).collect()
}

/// Whether a seat of the last round failed or was refused.
pub fn has_failed_seat(table: &Collaboration) -> bool {
    let of = |seat: &RoundSeat| matches!(seat.state, SeatState::Refused | SeatState::Failed);
    table.current().is_some_and(|round| round.seats.iter().any(of))
}
