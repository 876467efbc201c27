//! Pane 1 of a collaboration: the seats around the table, and the round's result in its middle.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::seat::{SeatChange, names, put_name, seat_sign};
use super::table_middle;
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::app::run::layout::window_start;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::narrate::measure::wrap_within;
use crate::panes::collaboration::subject::{is_paused_before, off_seats, round_joined};
use crate::panes::collaboration::table::{LIST_HEAD, RoundTable, seat_rows, seats_in_list};
use crate::panes::collaboration::view::{CollaborationView, Selection};
use crate::pattern::collaboration::plan::CollaborationPlan;
use crate::pattern::collaboration::projection::{Collaboration, RoundSeat, SeatState};
use crate::ui::border::Borders;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::pane::put_sign;
use crate::ui::table;
use crate::ui::text::{Pen, columns, elide, elide_middle, on_border};
use crate::ui::theme::{StateSign, StyleRole};

/// Columns of a confidence's bar.
const BAR: u16 = 5;
/// Columns before the argument of a seat in a list.
const LIST_INDENT: u16 = 3;
/// Columns of a stance with its confidence, its change and the bar.
const STATE_WITH_BAR: u16 = 22;

/// Draws the pane.
pub(crate) fn render(
    view: &CollaborationView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(table) = world.collaboration() else {
        let dim = cx.theme.style(StyleRole::Dim);
        Pen::new(buf, area, cx.glyphs).put("The run is starting.", dim);
        return;
    };
    let plan = &*table.plan;
    match RoundTable::for_seats(area, &off_seats(table)) {
        Some(round) => render_table(view, data, cx, area, &round, table, buf),
        None => render_list(view, data, cx, area, table, plan, buf),
    }
}

/// A seat as the pane shows it, in the current round or before the first.
struct SeatView<'a> {
    index: usize,
    name: &'a str,
    flagged: bool,
    seat: Option<&'a RoundSeat>,
    round: u32,
    selected: bool,
    paused: bool,
}

impl SeatView<'_> {
    fn is_off(&self) -> bool {
        self.seat.is_some_and(|seat| seat.state == SeatState::Off)
    }
}

fn place<'a>(
    view: &CollaborationView,
    world: &World,
    table: &'a Collaboration,
    plan: &'a CollaborationPlan,
    index: usize,
) -> SeatView<'a> {
    let round = table.current();
    let role = plan.sequence.get(index);
    SeatView {
        index,
        name: role.map_or("", |role| role.as_str()),
        flagged: role.is_some_and(|role| plan.role_flags.contains_key(role)),
        seat: round.and_then(|round| round.seats.get(index)),
        round: round.map_or(0, |round| round.number),
        selected: view.selection() == Selection::Seat(index),
        paused: round.is_some_and(|round| is_paused_before(world, round, index)),
    }
}

fn render_table(
    view: &CollaborationView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    round: &RoundTable,
    table: &Collaboration,
    buf: &mut Buffer,
) {
    let (world, plan) = (data.shown(), &*table.plan);
    let places: Vec<_> =
        (0..round.cards.len()).map(|index| place(view, world, table, plan, index)).collect();
    let mut borders = Borders::new(area);
    let all = || round.cards.iter().zip(&places);
    let cards = || all().filter(|(_, place)| !place.is_off());
    for (card, _) in cards().filter(|(_, place)| !place.selected) {
        borders.frame(*card, StyleRole::Border);
    }
    borders.round(round.table, StyleRole::Border);
    for (card, _) in cards().filter(|(_, place)| place.selected) {
        borders.frame(*card, StyleRole::BorderFocus);
    }
    borders.paint(cx, buf);
    // Bars at every seat, or at none: they are there to be compared.
    let narrowest = cards().map(|(card, _)| card.width).min().unwrap_or(0);
    let with_bar = narrowest >= STATE_WITH_BAR + 4;
    for (card, place) in cards() {
        self::card(data, cx, (*card, with_bar), place, table, buf);
    }
    for (row, place) in all().filter(|(_, place)| place.is_off()) {
        let mut pen = table::row_or_blank(cx, *row, place.selected, buf);
        let name = (columns(place.name) as u16 + if place.flagged { 2 } else { 0 })
            .min(pen.left().saturating_sub(6));
        put_name(cx, &mut pen, place.name, place.flagged, name, cx.theme.style(StyleRole::Dim));
        pen.space(1);
        seat_state(data, cx, &mut pen, place, table, false);
    }
    let inside = Rect::new(
        round.table.x + 1,
        round.table.y + 1,
        round.table.width - 2,
        round.table.height - 2,
    );
    table_middle::render(cx, inside, world, table, plan, buf);
}

/// Draws one seat's card: its name on the upper line, its state, and the round in which it joined.
fn card(
    data: &RunData,
    cx: &DrawContext,
    (card, with_bar): (Rect, bool),
    place: &SeatView,
    table: &Collaboration,
    buf: &mut Buffer,
) {
    let theme = cx.theme;
    let head = Rect { x: card.x + 1, width: card.width - 2, height: 1, ..card };
    let mut pen = Pen::new(buf, head, cx.glyphs);
    let name_style =
        on_border(theme.style(if place.selected { StyleRole::Strong } else { StyleRole::Text }));
    let mark = if place.selected { cx.glyphs.symbol(Glyph::Selected) } else { " " };
    pen.put(mark, on_border(theme.style(StyleRole::Key)));
    let flag = if place.flagged { 2 } else { 0 };
    let width = (columns(place.name) as u16).min(pen.left().saturating_sub(flag + 1));
    pen.name(place.name, width, name_style);
    if place.flagged {
        pen.put(" ", name_style).glyph(Glyph::Flag, on_border(theme.style(StyleRole::Flag)));
    }
    pen.put(" ", name_style);

    let inside = Rect::new(card.x + 2, card.y + 1, card.width - 4, card.height - 2);
    let mut pen = Pen::new(buf, line(inside, 0), cx.glyphs);
    seat_state(data, cx, &mut pen, place, table, with_bar);
    let rows = inside.height.saturating_sub(1);
    let said = place.seat.and_then(|seat| seat.contribution.as_ref());
    // The argument, and how it changed where the argument leaves room.
    let text_rows = if said.is_some() { rows } else { 0 };
    let text = said.map_or("", |said| &*said.summary);
    let width = usize::from(inside.width);
    let (lines, is_cut) = wrap_within(text, width, text_rows.into());
    let taken = lines.len() as u16;
    for (nth, text) in (0..).zip(&lines) {
        let pen = Pen::new(buf, line(inside, 1 + nth), cx.glyphs);
        put_wrapped(cx, pen, text, is_cut && nth + 1 == taken);
    }
    if taken < rows {
        let mut pen = Pen::new(buf, line(inside, 1 + taken), cx.glyphs);
        second_line(cx, &mut pen, place, table);
    }
    let foot = Rect { y: card.bottom() - 1, ..head };
    if let Some((text, role)) = seat_note(data, cx, place, table, foot.width.saturating_sub(3)) {
        let style = on_border(cx.theme.style(role));
        Pen::new(buf, foot, cx.glyphs).put(&format!(" {text} "), style);
    }
}

/// What else there is to say of a seat in this many columns: that it leaves, when it joined, or its model.
fn seat_note(
    data: &RunData,
    cx: &DrawContext,
    place: &SeatView,
    table: &Collaboration,
    width: u16,
) -> Option<(String, StyleRole)> {
    if let Some(change) = SeatChange::of(data, table, place.index).filter(|it| !it.joins) {
        return Some((change.text(), StyleRole::Flag));
    }
    let joined = round_joined(table, place.round, place.index).filter(|_| place.flagged);
    if let Some(since) = joined {
        let text = format!("joined in R{since}");
        return (columns(&text) <= usize::from(width)).then_some((text, StyleRole::Dim));
    }
    let model = place.seat.and_then(|seat| seat.model.as_deref()).filter(|_| width > 5)?;
    let text = elide_middle(model, usize::from(width), cx.glyphs);
    Some((text.into_owned(), StyleRole::Dim))
}

/// Draws a seat's stance, or its state before it has one. `wide`: with a confidence bar.
fn seat_state(
    data: &RunData,
    cx: &DrawContext,
    pen: &mut Pen,
    place: &SeatView,
    table: &Collaboration,
    wide: bool,
) {
    let theme = cx.theme;
    let change = SeatChange::of(data, table, place.index);
    if let Some(change) = change.filter(|change| change.joins) {
        let style = theme.style(StyleRole::Flag);
        pen.glyph(Glyph::Waiting, style).space(1).put(&change.text(), style);
        return;
    }
    let Some(seat) = place.seat else {
        put_sign(cx, pen, seat_sign(cx, data.shown(), None));
        return;
    };
    let Some(said) = &seat.contribution else {
        let sign = if place.paused {
            StateSign {
                glyph: Glyph::Paused,
                word: "paused here",
                style: theme.style(StyleRole::Paused),
            }
        } else if seat.asked_again > 0 && seat.state == SeatState::Speaking {
            StateSign { word: "retrying", ..seat_sign(cx, data.shown(), Some(seat)) }
        } else {
            seat_sign(cx, data.shown(), Some(seat))
        };
        put_sign(cx, pen, sign);
        if let Some(text) = speaking_time(data, cx, seat) {
            pen.space(1).put(&text, theme.style(StyleRole::Dim));
        }
        return;
    };
    let sign = theme.stance(said.stance);
    let changed = table.stance_changed(place.round, place.index);
    pen.put(&format!("{} {}", cx.glyphs.symbol(sign.glyph), sign.word), sign.style);
    let pad = "caution".len().saturating_sub(sign.word.len()) as u16;
    if !wide || pen.left() >= 16 {
        pen.space(pad);
    }
    pen.space(1).put(&format::confidence(said.confidence), theme.style(StyleRole::Text));
    if changed {
        pen.space(1).glyph(Glyph::Changed, theme.style(StyleRole::Changed));
    }
    if wide && pen.left() > BAR {
        let thousandths = (said.confidence * 1000.0) as u64;
        pen.space(if changed { 1 } else { 3 }.min(pen.left() - BAR));
        confidence_bar(cx, pen, thousandths, BAR);
    }
}

/// Draws a confidence's bar. Unlike a budget's bar it has no warning style.
fn confidence_bar(cx: &DrawContext, pen: &mut Pen, thousandths: u64, width: u16) {
    let full = (thousandths * u64::from(width) / 1000).min(u64::from(width)) as u16;
    pen.glyphs(Glyph::BarFull, full, cx.theme.style(StyleRole::Bar));
    pen.glyphs(Glyph::BarEmpty, width - full, cx.theme.style(StyleRole::BarEmpty));
}

/// How long a seat has been speaking.
fn speaking_time(data: &RunData, cx: &DrawContext, seat: &RoundSeat) -> Option<String> {
    let speaks = matches!(seat.state, SeatState::Speaking | SeatState::Retrying);
    if !speaks || !data.shown().progress.is_live() {
        return None;
    }
    let span = data.shown().spans.get(seat.call?)?;
    Some(format::duration_text(span.duration(data.time(cx.now))))
}

/// Draws a seat's number of actions and its previous stance, or why its reply was refused.
fn second_line(cx: &DrawContext, pen: &mut Pen, place: &SeatView, table: &Collaboration) {
    let dim = cx.theme.style(StyleRole::Dim);
    if let Some(seat) = place.seat.filter(|seat| seat.contribution.is_none())
        && let Some(detail) = &seat.detail
    {
        if seat.asked_again > 0 {
            let text = format!("retry {}: ", seat.asked_again);
            pen.put(&text, cx.theme.style(StyleRole::Retry));
        }
        pen.put(detail, dim);
        return;
    }
    if let Some(said) = place.seat.and_then(|seat| seat.contribution.as_ref()) {
        let actions = format::count_noun(said.actions.len() as u64, "action");
        pen.put(&actions, dim);
    }
    let before =
        table.seat_before(place.round, place.index).and_then(|seat| seat.contribution.as_ref());
    if let Some(before) = before {
        let text = format!(
            "was {} {}",
            cx.glyphs.symbol(cx.theme.stance(before.stance).glyph),
            format::confidence(before.confidence)
        );
        let gap = if pen.fits(columns(&text) + 2) { 2 } else { return };
        let start = place.seat.is_some_and(|seat| seat.contribution.is_some());
        pen.space(if start { gap } else { 0 }).put(&text, dim);
    }
}

/// Draws a row for each seat, if there are many seats or little room.
fn render_list(
    view: &CollaborationView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    table: &Collaboration,
    plan: &CollaborationPlan,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let theme = cx.theme;
    let mut pen = Pen::new(buf, line(area, 0), cx.glyphs);
    pen.space(1);
    match table.current() {
        None => {
            pen.put("no round yet", theme.style(StyleRole::Dim));
        }
        Some(round) => {
            let of = format!("round {} of {}", round.number, plan.max_rounds);
            pen.put(&of, theme.style(StyleRole::Strong)).space(3);
            for (text, role) in table_middle::votes(cx, round, usize::from(pen.left())) {
                pen.put(&text, theme.style(role));
            }
            let state = table_middle::state_line(cx, world, table, round);
            let width: usize = state.iter().map(|(text, _)| columns(text)).sum();
            if pen.fits(width + 3) {
                pen.space(3);
                for (text, role) in state {
                    pen.put(&text, theme.style(role));
                }
            }
            let conflicts = table_middle::conflict_line(cx, table, round);
            if pen.fits(columns(&conflicts) + 3) {
                pen.space(3).put(&conflicts, theme.style(table_middle::conflict_role(round)));
            }
        }
    }
    let (seats, off) = (plan.sequence.len(), off_seats(table));
    let in_view = seats_in_list(area, &off);
    let first = window_start(view.selected_seat(data), seats, usize::from(in_view));
    if seats > first + usize::from(in_view) || first > 0 {
        let more = format!("{} seats", table::range(first, usize::from(in_view), seats));
        let width = columns(&more) as u16 + 1;
        if pen.fits(usize::from(width) + 2) {
            pen.advance_to(area.right().saturating_sub(width));
            pen.put(&more, theme.style(StyleRole::Dim));
        }
    }
    let name = names(plan).clamp(4, (area.width / 3).max(4));
    let mut top = LIST_HEAD;
    let heights = seat_rows(area, &off).into_iter().enumerate().skip(first);
    for (index, each) in heights.take(in_view.into()) {
        let place = place(view, world, table, plan, index);
        let at = line(area, top);
        top += each;
        let mut pen = table::row_or_blank(cx, at, place.selected, buf);
        let sign = seat_sign(cx, world, place.seat);
        pen.glyph(sign.glyph, sign.style).space(1);
        put_name(cx, &mut pen, place.name, place.flagged, name, theme.style(StyleRole::Text));
        pen.space(2);
        let start = pen.x();
        seat_state(data, cx, &mut pen, &place, table, false);
        pen.advance_to(start + 17).space(1);
        // With several rows the argument has them to itself.
        let text = match each {
            0..=2 => Rect { x: pen.x(), width: pen.left(), height: each, ..at },
            _ => {
                let left = pen.left().saturating_sub(1);
                if let Some((note, role)) = seat_note(data, cx, &place, table, left) {
                    pen.put(&note, theme.style(role));
                }
                let width = area.width.saturating_sub(LIST_INDENT + 1);
                Rect { x: area.x + LIST_INDENT, y: at.y + 1, width, height: each - 1 }
            }
        };
        let said = place.seat.and_then(|seat| seat.contribution.as_ref());
        let rows = if said.is_some() { text.height } else { 0 };
        let said = said.map_or("", |said| &*said.summary);
        let (lines, cut) = wrap_within(said, usize::from(text.width), rows.into());
        for (row, words) in (0..).zip(&lines) {
            let here = Rect { y: text.y + row, height: 1, ..text };
            let is_cut = cut && row + 1 == lines.len() as u16;
            put_wrapped(cx, Pen::new(buf, here, cx.glyphs), words, is_cut);
        }
        let taken = lines.len() as u16;
        if taken < text.height {
            let here = Rect { y: text.y + taken, height: 1, ..text };
            second_line(cx, &mut Pen::new(buf, here, cx.glyphs), &place, table);
        }
    }
}

/// Draws a row of what a seat says; `is_cut`: more follows.
fn put_wrapped(cx: &DrawContext, mut pen: Pen, text: &str, is_cut: bool) {
    let width = usize::from(pen.left());
    let text: Cow<'_, str> = match is_cut {
        true => {
            let whole = format!("{text}{}", cx.glyphs.symbol(Glyph::Ellipsis));
            elide(&whole, width, cx.glyphs).into_owned().into()
        }
        false => text.into(),
    };
    pen.put(&text, cx.theme.style(StyleRole::Dim));
}
