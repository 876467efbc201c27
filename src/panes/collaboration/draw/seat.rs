//! A seat's name and state.

use ratatui::style::Style;

use crate::app::run::data::RunData;
use crate::event::world::{RunState, World};
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::pattern::collaboration::facts::SeatStatus;
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::collaboration::projection::{Collaboration, RoundSeat, SeatState};
use crate::pattern::collaboration::words::badges::seat_badge;
use crate::ui::cx::DrawContext;
use crate::ui::sign::StateSign;
use crate::ui::text::{Pen, columns, elide_middle};
use crate::ui::theme::Theme;

/// The state of a seat. After the run's end no seat is waiting or speaking.
pub(crate) fn seat_sign(cx: &DrawContext, world: &World, seat: Option<&RoundSeat>) -> StateSign {
    let state = seat.map_or(SeatState::Waiting, |seat| seat.state);
    match (&world.progress.stage, state) {
        (RunState::Closed, SeatState::Waiting) => {
            StateSign { word: "not run", ..state_sign(cx.theme, SeatState::Off) }
        }
        (RunState::Closed, SeatState::Speaking | SeatState::Retrying) => {
            state_sign(cx.theme, SeatState::Cancelled)
        }
        _ => state_sign(cx.theme, state),
    }
}

/// Draws a seat's name in exactly `width` columns, with the flag's glyph right after it.
pub(crate) fn put_name(
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
    /// The round from which on.
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
        if !world.progress.is_live() || round > plan.max_rounds || table.decision().is_some() {
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
