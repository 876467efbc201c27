//! The subject of the page of a collaboration: the selected seat, else the current speaker.

use ratatui::style::Style;

use crate::log::event::{Boundary, SpanId};
use crate::log::facts::collaboration::{CollaborationPlan, SeatStatus};
use crate::log::world::collaboration::{Collaboration, Round, RoundSeat, SeatState};
use crate::log::world::{RunState, SpanState, World};
use crate::screen::DrawContext;
use crate::screen::run::data::RunData;
use crate::screen::text::{Pen, elide_middle};
use crate::screen::theme::{StateSign, Theme};
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::collaboration::seat_badge;
use crate::words::styled::StyleRole;

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
    Outcome,
    /// None: no call has been made yet.
    None,
}

/// The subject that follows the run.
pub(crate) fn followed_subject(world: &World, table: &Collaboration) -> SeatSubject {
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

/// The state of a seat. After the run's end no seat is waiting or speaking.
pub(super) fn seat_sign(cx: &DrawContext, world: &World, seat: Option<&RoundSeat>) -> StateSign {
    let state = seat.map_or(SeatState::Waiting, |seat| seat.state);
    match (&world.progress.stage, state) {
        (RunState::Closed, SeatState::Waiting) => {
            StateSign { word: "not run", ..state_sign(cx.theme, SeatState::Off) }
        }
        (RunState::Closed, SeatState::Speaking | SeatState::Retrying) => {
            state_sign(cx.theme, SeatState::Cancelled)
        }
        (_, SeatState::Speaking | SeatState::Retrying)
            if seat.is_some_and(|seat| world.questions.asks_for(seat.role.as_str())) =>
        {
            cx.theme.waits()
        }
        _ => state_sign(cx.theme, state),
    }
}

/// Draws a seat's name in exactly `width` columns, with the flag's glyph right after it.
pub(super) fn put_name(
    cx: &DrawContext,
    pen: &mut Pen,
    name: &str,
    flagged: bool,
    width: u16,
    style: Style,
) {
    let start = pen.x();
    let flag = if flagged { 2 } else { 0 };
    let text = elide_middle(name, usize::from(width.saturating_sub(flag)), cx.glyphs);
    pen.put_within(&text, width, style);
    if flagged {
        pen.space(1).glyph(Glyph::Flag, cx.theme.style(StyleRole::Flag));
    }
    pen.advance_to(start + width);
}

/// Width of the longest seat name, including the flag's glyph.
pub(crate) fn names(plan: &CollaborationPlan) -> u16 {
    let widths = plan.sequence.iter().map(|role| {
        let flag = if plan.role_flags.contains_key(role) { 2 } else { 0 };
        columns(role.as_str()) + flag
    });
    u16::try_from(widths.max().unwrap_or(0)).unwrap_or(u16::MAX)
}

/// The sign of a seat's progress.
pub(crate) fn state_sign(theme: &Theme, state: SeatState) -> StateSign {
    theme.badge(seat_badge(state))
}

/// What the next round changes at a seat that depends on a flag.
pub(crate) struct SeatChange {
    /// Whether it joins; else it leaves.
    pub joins: bool,
    pub round: u32,
    /// Whether the run has switched the flag; else that is pending.
    pub is_switched: bool,
}

impl SeatChange {
    /// The change of a seat; `None` if its seat stays as it is, or no round is left.
    pub(crate) fn of(data: &RunData, table: &Collaboration, index: usize) -> Option<Self> {
        let (world, plan) = (data.shown(), &*table.plan);
        let behind = plan.role_flags.get(plan.sequence.get(index)?)?;
        if behind.deny {
            // Such a seat never leaves: with its flag off the run stops at its turn.
            return None;
        }
        let round = table.current().map_or(1, |round| round.number + 1);
        if !world.progress.is_live() || round > plan.budget.max_rounds || table.decision().is_some()
        {
            return None;
        }
        let flag = world.settings.flags.iter().find(|row| row.name == behind.flag)?;
        // A past moment has no pending change.
        let next = match data.is_scrubbed() {
            true => flag.on,
            false => data.pending_changes().flag(&flag.name, flag.on),
        };
        let seat = table.current().and_then(|round| round.seats.get(index));
        let sits = match seat.map(|seat| seat.asked) {
            None => flag.on,
            Some(SeatStatus::Asked) => true,
            Some(SeatStatus::Skipped) => false,
            // The run stops in this round.
            Some(SeatStatus::Denied | SeatStatus::NotReached | SeatStatus::OverBudget) => {
                return None;
            }
        };
        (next != sits).then_some(Self { joins: next, round, is_switched: flag.on == next })
    }

    /// The change in words, such as `joins R2`.
    pub(crate) fn text(&self) -> String {
        format!("{} R{}", if self.joins { "joins" } else { "leaves" }, self.round)
    }
}
