//! Pane 1 of a collaboration: the seats around the table, and the round's result in its middle.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::seat::{
    SeatChange, is_paused_before, names, off_seats, put_name, round_joined, seat_sign,
};
use super::speaker::reply_of_seat;
use super::{CollaborationView, Selection, table_middle};
use crate::base::time;
use crate::log::facts::collaboration::{CollaborationPlan, Contribution};
use crate::log::world::World;
use crate::log::world::collaboration::{Collaboration, RoundSeat, SeatState};
use crate::screen::frame::Borders;
use crate::screen::layout::{hits, line};
use crate::screen::list::window_start;
use crate::screen::run::data::RunData;
use crate::screen::run::pane_text::TextState;
use crate::screen::text::{Pen, elide, elide_middle, on_border};
use crate::screen::theme::StateSign;
use crate::screen::widgets::{empty, put_sign};
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::{columns, wrap, wrap_within};
use crate::words::styled::StyleRole;

/// Maximum seats around a table; more of them are shown in a list.
const MAX_SEATS: usize = 8;
/// Minimum width of a card's frame.
const CARD: u16 = 16;
/// Maximum width of a card's frame.
const MAX_CARD: u16 = 72;
/// Maximum height of a card's frame.
const CARD_HIGH: u16 = 7;
/// Minimum and maximum height of the table's frame.
const TABLE_HIGH: std::ops::Range<u16> = 5..11;
/// Minimum rows of a table with its seats; with fewer, a list has more room for their texts.
const TABLE_ROWS: u16 = 15;
/// Maximum rows of a seat in a list.
const SEAT_ROWS: u16 = 5;
/// Minimum width of the table's frame.
const TABLE: u16 = 26;
/// Header rows above the list of seats.
pub const LIST_HEAD: u16 = 1;

/// The frames of the table and its seats. A card at its side shares a line with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTable {
    /// The frame of the table.
    pub table: Rect,
    /// The frames of the seats in the order of the sequence: clockwise from the top left. A seat that is
    /// off has a part of the last row and no frame.
    pub cards: Vec<Rect>,
}

/// Number of seats above, to the right, below and to the left.
fn sides(seats: usize) -> Option<[u16; 4]> {
    Some(match seats {
        1 => [1, 0, 0, 0],
        2 => [0, 1, 0, 1],
        3 => [1, 1, 0, 1],
        4 => [1, 1, 1, 1],
        5 => [2, 1, 1, 1],
        6 => [2, 1, 2, 1],
        7 => [3, 1, 2, 1],
        MAX_SEATS => [3, 1, 3, 1],
        _ => return None,
    })
}

impl RoundTable {
    /// The layout for these seats, of which some are off; `None` if they have to be shown in a list.
    pub fn for_seats(area: Rect, off: &[bool]) -> Option<RoundTable> {
        if area.height < TABLE_ROWS {
            return None;
        }
        let off_count = off.iter().filter(|is_off| **is_off).count();
        let off_row = u16::from(off_count > 0);
        let around = Rect { height: area.height - off_row, ..area };
        let RoundTable { table, cards } = Self::around_table(around, off.len() - off_count)?;
        let last = Rect { y: area.bottom() - off_row, height: off_row, ..area };
        let mut off_cards = parts_of_row(last, off_count as u16).into_iter();
        let mut cards = cards.into_iter();
        let card = |is_off: &bool| if *is_off { off_cards.next() } else { cards.next() };
        Some(RoundTable { table, cards: off.iter().filter_map(card).collect() })
    }

    /// The layout for seats of which none is off.
    fn around_table(area: Rect, seats: usize) -> Option<RoundTable> {
        let [above, right, below, left] = sides(seats)?;
        let table = (area.width / 3).clamp(TABLE, 44);
        // A card at a side shares a line with the table.
        let beside = ((area.width + 2).checked_sub(table)? / 2).min(MAX_CARD);
        if beside < CARD {
            return None;
        }
        let outer = u16::from(above > 0) + u16::from(below > 0);
        let outer_width = card_width(area, above.max(below));
        let mut spare = area.height.checked_sub(TABLE_HIGH.start + 3 * outer)?;
        let (mut card_h, mut table_h) = (3, TABLE_HIGH.start);
        // Rows go to the seats with the least room for their text.
        loop {
            let in_card = (card_h - 3) * (outer_width.saturating_sub(4));
            let in_side = (table_h - 3) * (beside - 4);
            let outer_grows = outer > 0 && card_h < CARD_HIGH && spare >= outer;
            let table_grows = table_h < TABLE_HIGH.end && spare > 0;
            if outer_grows && (in_card <= in_side || !table_grows) {
                (card_h, spare) = (card_h + 1, spare - outer);
            } else if table_grows {
                (table_h, spare) = (table_h + 1, spare - 1);
            } else {
                break;
            }
        }
        let gap = u16::from(outer > 0 && spare >= outer);
        spare -= gap * outer;
        let beside_h = if outer == 0 { area.height.min(8) } else { table_h };
        let lead = spare / 2;
        let upper = if above > 0 { card_h + gap } else { 0 };
        let middle = area.x + area.width / 2;
        let table = Rect::new(middle - table / 2, area.y + lead + upper, table, table_h);
        let beside_y = (table.y + table_h / 2).saturating_sub(beside_h / 2).max(area.y);
        let mut cards = row_of(area, above, table.y - upper, card_h);
        if right > 0 {
            cards.push(Rect::new(table.right() - 1, beside_y, beside, beside_h));
        }
        let mut lower = row_of(area, below, table.bottom() + gap, card_h);
        lower.reverse();
        cards.append(&mut lower);
        if left > 0 {
            cards.push(Rect::new(table.x + 1 - beside, beside_y, beside, beside_h));
        }
        if seats == 2 {
            // Two seats read from left to right.
            cards.reverse();
        }
        Some(RoundTable { table, cards })
    }
}

/// Columns between two cards in a row.
fn card_gap(count: u16) -> u16 {
    if count > 2 { 2 } else { 4 }
}

/// Width of each of some cards in a row.
fn card_width(area: Rect, count: u16) -> u16 {
    let count = count.max(1);
    (area.width.saturating_sub(card_gap(count) * (count - 1)) / count).min(MAX_CARD)
}

/// A row in equal parts.
fn parts_of_row(row: Rect, count: u16) -> Vec<Rect> {
    let width = row.width / count.max(1);
    (0..count).map(|nth| Rect { x: row.x + nth * width, width, ..row }).collect()
}

/// Cards in a row, centred in the area.
fn row_of(area: Rect, count: u16, y: u16, height: u16) -> Vec<Rect> {
    if count == 0 {
        return Vec::new();
    }
    let (gap, width) = (card_gap(count), card_width(area, count));
    let all = width * count + gap * (count - 1);
    let start = area.x + (area.width - all) / 2;
    (0..count).map(|nth| Rect::new(start + nth * (width + gap), y, width, height)).collect()
}

/// Rows of each seat in the list of this area: one of a seat that is off, and of the others as many as
/// there are, because their text wraps.
pub fn seat_rows(area: Rect, off: &[bool]) -> Vec<u16> {
    let rows = area.height.saturating_sub(LIST_HEAD);
    let off_count = off.iter().filter(|is_off| **is_off).count() as u16;
    let seats = (off.len() as u16 - off_count).max(1);
    let rows = rows.saturating_sub(off_count);
    let (each, mut more) = (rows / seats, rows % seats);
    let height = |is_off: &bool| {
        if *is_off || each == 0 {
            return 1;
        }
        let one_more = u16::from(more > 0);
        more -= one_more;
        (each + one_more).min(SEAT_ROWS)
    };
    off.iter().map(height).collect()
}

/// Seats in view in the list of this area.
pub fn seats_in_list(area: Rect, off: &[bool]) -> u16 {
    let rows: u16 = seat_rows(area, off).iter().sum();
    let room = area.height.saturating_sub(LIST_HEAD);
    // Where they do not all fit, each has one row.
    if rows > room { room } else { off.len() as u16 }
}

/// The seat at this cell, whether around a table or in a list whose window starts at `first`.
pub fn seat_at(area: Rect, off: &[bool], first: usize, col: u16, row: u16) -> Option<usize> {
    if let Some(round) = RoundTable::for_seats(area, off) {
        return round.cards.iter().position(|card| hits(*card, col, row));
    }
    let line = row.checked_sub(area.y + LIST_HEAD)?;
    let mut end = 0;
    let rows = seat_rows(area, off);
    let within = |rows: &u16| {
        end += rows;
        line < end
    };
    rows.iter().skip(first).position(within).map(|nth| first + nth)
}

/// Columns of a confidence's bar.
const BAR: u16 = 5;
/// Columns before the argument of a seat in a list.
const LIST_INDENT: u16 = 3;
/// Columns of a stance with its confidence, its change and the bar.
const STATE_WITH_BAR: u16 = 22;

pub(crate) fn render(
    view: &CollaborationView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(table) = world.collaboration() else {
        return empty(cx, area, "No seats yet: the run is starting.", buf);
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
        let mut pen = list::row_or_blank(cx, *row, place.selected, buf);
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
    // The argument, and how it changed where the argument leaves room.
    let (lines, is_cut) = said_rows(data, cx, place, table, (inside.width, rows));
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

/// The note on a seat in this many columns: that it leaves, when it joined, or its model.
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
    Some(time::duration_text(span.duration(data.time(cx.now))))
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
    let Some(said) = place.seat.and_then(|seat| seat.contribution.as_ref()) else { return };
    pen.put(&format::count_noun(said.actions.len() as u64, "action"), dim);
    let before = table.seat_before(place.round, place.index);
    if let Some(before) = before.and_then(|seat| seat.contribution.as_ref()) {
        let text = stance_before(cx, before);
        if pen.fits(columns(&text) + 2) {
            pen.space(2).put(&text, dim);
        }
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
            let of = format!("round {} of {}", round.number, plan.budget.max_rounds);
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
        let more = format!("{} seats", list::range(first, usize::from(in_view), seats));
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
        let mut pen = list::row_or_blank(cx, at, place.selected, buf);
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
        let (lines, cut) = said_rows(data, cx, &place, table, (text.width, text.height));
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

/// What a seat says, in so many columns and rows, and whether more follows: its argument, the last rows of
/// what it has said so far, or before that what it said in the round before.
fn said_rows(
    data: &RunData,
    cx: &DrawContext,
    place: &SeatView,
    table: &Collaboration,
    (width, rows): (u16, u16),
) -> (Vec<String>, bool) {
    let (width, rows) = (usize::from(width), usize::from(rows));
    let Some(seat) = place.seat else { return (Vec::new(), false) };
    if let Some(said) = &seat.contribution {
        return wrap_within(&said.summary, width, rows);
    }
    // The row below says why it was asked again.
    let rows = rows.saturating_sub(usize::from(seat.detail.is_some()));
    let said = match (seat.state, seat.call) {
        (SeatState::Speaking | SeatState::Answered, Some(call)) => Some(reply_of_seat(data, call)),
        _ => None,
    };
    match said {
        Some(said) if said.state == TextState::Streaming => {
            let mut lines = wrap(&said.text, width);
            return (lines.split_off(lines.len().saturating_sub(rows)), false);
        }
        Some(said) if said.state == TextState::Complete => {
            return wrap_within(&said.text, width, rows);
        }
        _ => {}
    }
    let before = table.seat_before(place.round, place.index);
    match before.and_then(|seat| seat.contribution.as_ref()) {
        Some(before) => {
            let text = format!("{}: {}", stance_before(cx, before), before.summary);
            wrap_within(&text, width, rows)
        }
        None => (Vec::new(), false),
    }
}

/// A stance of the round before.
fn stance_before(cx: &DrawContext, before: &Contribution) -> String {
    let glyph = cx.glyphs.symbol(cx.theme.stance(before.stance).glyph);
    format!("was {glyph} {}", format::confidence(before.confidence))
}

/// Draws a row of a seat's text; `is_cut`: more follows.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn area(width: u16, height: u16) -> Rect {
        Rect::new(3, 2, width, height)
    }

    #[test]
    fn seats_stay_apart_within_pane() {
        for (width, height) in (0..=120).flat_map(|width| (0..=40).map(move |it| (width, it))) {
            let area = area(width, height);
            for (seats, off) in (0..=12).flat_map(|seats| [(seats, 0), (seats, 1), (seats, 2)]) {
                let seats: Vec<bool> = (0..seats).map(|seat| seat < off).collect();
                let Some(round) = RoundTable::for_seats(area, &seats) else { continue };
                assert_eq!(round.cards.len(), seats.len());
                for (nth, card) in round.cards.iter().enumerate() {
                    assert_eq!(card.intersection(area), *card, "{seats:?} in {width}x{height}");
                    let least = if seats[nth] { (CARD / 2, 1) } else { (CARD, 3) };
                    assert!(card.width >= least.0 && card.height >= least.1, "{seats:?}: {card}");
                    for other in &round.cards[nth + 1..] {
                        assert!(!card.intersects(*other), "{seats:?} in {width}x{height}");
                    }
                    let shared = card.intersection(round.table);
                    assert!(shared.area() == 0 || shared.width == 1);
                }
                assert_eq!(round.table.intersection(area), round.table);
            }
        }
    }

    #[test]
    fn four_sit_clockwise_from_the_top() {
        let area = Rect::new(0, 0, 68, 15);
        let round = RoundTable::for_seats(area, &[false; 4]).expect("room for a table");
        let [top, right, bottom, left] = round.cards[..] else { panic!("four") };
        assert!(top.y < round.table.y && bottom.y > round.table.y);
        assert!(left.x < round.table.x && right.x > round.table.x);
        assert_eq!(seat_at(area, &[false; 4], 0, left.x, left.y), Some(3));
    }

    #[test]
    fn disabled_seat_gives_height_to_others() {
        let area = Rect::new(0, 0, 68, 15);
        let heights = |off: &[bool]| -> Vec<u16> {
            let round = RoundTable::for_seats(area, off).expect("room for a table");
            round.cards.iter().map(|card| card.height).collect()
        };
        assert_eq!(heights(&[false; 4]), [4, 7, 4, 7]);
        let off = [false, false, false, true];
        assert_eq!(heights(&off), [5, 9, 9, 1]);
        assert_eq!(seat_at(area, &off, 0, 2, 14), Some(3));
        for (height, off, rows) in [
            (14, [false; 4], [4, 3, 3, 3]),
            (14, off, [4, 4, 4, 1]),
            (9, [true, false, true, false], [1, 3, 1, 3]),
            (3, [false; 4], [1, 1, 1, 1]),
        ] {
            assert_eq!(seat_rows(Rect { height, ..area }, &off), rows, "{height}");
        }
    }

    #[test]
    fn nine_seats_or_small_pane_list() {
        let nine = [false; 9];
        assert_eq!(RoundTable::for_seats(area(90, 20), &nine), None);
        assert_eq!(RoundTable::for_seats(area(50, 20), &[false; 4]), None);
        assert_eq!(RoundTable::for_seats(area(78, 14), &[false; 4]), None);
        // Two rows for each, where there is room for them.
        for (height, rows) in [(19, 2), (10, 1), (60, 5)] {
            let area = Rect::new(0, 0, 90, height);
            assert_eq!(seat_rows(area, &nine), [rows; 9]);
            for seat in 0..9 {
                let row = LIST_HEAD + rows * seat;
                assert_eq!(seat_at(area, &nine, 0, 5, row), Some(seat.into()));
            }
            assert_eq!(seat_at(area, &nine, 0, 5, LIST_HEAD + rows * 9), None);
        }
    }
}
