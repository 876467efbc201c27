//! Pane 3 of a collaboration: every seat's stance in every round.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::seat::{names, put_name, seat_sign, state_sign};
use super::{CollaborationView, STANCE, Selection};
use crate::log::world::collaboration::{Collaboration, RoundSeat, SeatState};
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::run::layout::Pane;
use crate::screen::text::Pen;
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;

pub(crate) fn render(
    view: &CollaborationView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(table) = world.collaboration() else { return };
    let plan = &*table.plan;
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let name = names(plan).clamp(4, (area.width / 2).max(4));
    // Selected, state, blank, name, blank.
    let head = 3 + name + 1;
    let current = table.current().map_or(0, |round| round.number);
    let last = plan.budget.max_rounds.max(current).max(1);
    // The last column does not need its two blanks.
    let fit = u32::from(((area.width + 2).saturating_sub(head + 1) / STANCE).max(1));
    let shown = view.selected_round().unwrap_or(current.max(1));
    let from = window(shown, last, fit);
    let to = last.min(from.saturating_add(fit - 1));

    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.advance_to(area.x + head);
    if from > 1 {
        pen.glyph(Glyph::Left, theme.style(StyleRole::Key));
    } else {
        pen.space(1);
    }
    for number in from..=to {
        let end = pen.x() + STANCE;
        let role = if Some(number) == view.selected_round() {
            StyleRole::Strong
        } else if number == current {
            StyleRole::Text
        } else {
            StyleRole::Dim
        };
        pen.space(2).put(&format!("R{number}"), theme.style(role)).advance_to(end);
    }
    if to < last {
        pen.glyph(Glyph::Right, theme.style(StyleRole::Key));
    }

    let list = view.seat_list(data, Pane::Third, area);
    for (index, at) in list.rows() {
        let Some(role) = plan.sequence.get(index) else { break };
        let selected = view.selection() == Selection::Seat(index);
        let mut pen = list::row_or_blank(cx, at, selected, buf);
        let seat = table.current().and_then(|round| round.seats.get(index));
        let sign = seat_sign(cx, world, seat);
        pen.glyph(sign.glyph, sign.style).space(1);
        let flagged = plan.role_flags.contains_key(role);
        put_name(cx, &mut pen, role.as_str(), flagged, name, theme.style(StyleRole::Text));
        pen.advance_to(area.x + head + 1);
        for number in from..=to {
            let end = pen.x() + STANCE;
            let seat = table.round(number).and_then(|round| round.seats.get(index));
            let here = selected && view.selected_round() == Some(number);
            cell(cx, &mut pen, table, number, index, seat, world.progress.is_live(), here);
            pen.advance_to(end);
        }
    }
    Pen::new(buf, line(area, 0), cx.glyphs).space(1).put_within(&list.range_text(), head, dim);
}

/// The first of `fit` rounds in view, such that `shown` and, if possible, its successor are in
/// view.
fn window(shown: u32, last: u32, fit: u32) -> u32 {
    if last <= fit {
        return 1;
    }
    let after = u32::from(fit > 2);
    shown.saturating_sub(fit - 1 - after).clamp(1, last - fit + 1)
}

#[expect(clippy::too_many_arguments, reason = "one cell of one pane, all of it context")]
/// Draws a seat's stance in a round, with its confidence and a mark if it changed; else its state.
fn cell(
    cx: &DrawContext,
    pen: &mut Pen,
    table: &Collaboration,
    round: u32,
    index: usize,
    seat: Option<&RoundSeat>,
    live: bool,
    selected: bool,
) {
    let theme = cx.theme;
    // The selected cell is reversed: pane 2 has its text.
    let of = |style: Style| match selected {
        true => style.add_modifier(Modifier::REVERSED),
        false => style,
    };
    let dim = of(theme.style(StyleRole::Dim));
    let Some(seat) = seat else {
        if live {
            pen.space(2).glyph(Glyph::NotYet, dim);
        }
        return;
    };
    let Some(said) = &seat.contribution else {
        let sign = state_sign(theme, seat.state);
        match seat.state {
            SeatState::Waiting if live => pen.space(2).glyph(Glyph::NotYet, dim),
            // After the run's end no seat is waiting or speaking.
            SeatState::Waiting | SeatState::Speaking | SeatState::Retrying if !live => {
                pen.space(2).glyph(Glyph::Off, of(theme.style(StyleRole::Off)))
            }
            _ => pen.space(2).glyph(sign.glyph, of(sign.style)),
        };
        return;
    };
    if table.stance_changed(round, index) {
        pen.glyph(Glyph::Changed, theme.style(StyleRole::Changed)).space(1);
    } else {
        pen.space(2);
    }
    let sign = theme.stance(said.stance);
    let role = if selected { StyleRole::Strong } else { StyleRole::Text };
    pen.glyph(sign.glyph, of(sign.style)).put(" ", of(theme.style(role)));
    pen.put(&format::confidence(said.confidence), of(theme.style(role)));
}

#[cfg(test)]
mod tests {
    use super::window;

    #[test]
    fn selected_round_is_in_view() {
        assert_eq!(window(2, 3, 3), 1);
        assert_eq!(window(1, 9, 3), 1);
        assert_eq!(window(5, 9, 3), 4);
        assert_eq!(window(9, 9, 3), 7);
        assert_eq!(window(7, 9, 1), 7);
        for shown in 1..=9 {
            for fit in 1..=9 {
                let from = window(shown, 9, fit);
                assert!((from..from + fit).contains(&shown), "{shown} in {fit}");
            }
        }
    }
}
