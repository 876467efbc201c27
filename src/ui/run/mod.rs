//! The view of one run: two header rows, the panes, the scrubber. Pure functions of the page.

mod agents;
mod breakers;
mod bulkheads;
mod events;
mod gateway;
mod gauges;
pub mod header;
mod phases;
mod research;
mod results;
mod retries;
mod rounds;
mod scrubber;
mod slots;
mod speaker;
mod stances;
mod table;
mod table_middle;
mod task;
mod team;
mod tiles;
mod tool;
mod waterfall;

pub(super) use self::tiles::Tiles;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::DrawContext;
use super::glyph::Glyph;
use super::text::{Pen, clear, columns, on_border, wrap_within};
use super::theme::{StateSign, StyleRole};
use crate::app::run::layout::tabs;
use crate::app::run::scroll::{Scroll, WrappingLines};
use crate::app::run::subject::Subject;
use crate::app::run::{Areas, PageShape, Pane, RunPage, View};
use crate::event::kind::CollaborationPlan;
use crate::event::world::{RunState, World};
use crate::pattern::collaboration::projection::{RoundSeat, SeatState};

/// Draws a run in the area between the header and the key row.
pub fn render(page: &RunPage, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    clear(buf, area);
    if page.inspector().is_some() {
        super::inspector::render(page, cx, area, buf);
        return;
    }
    let areas = page.areas(area);
    frames(page, cx, area, &areas, buf);
    for pane in Pane::ALL {
        let Some(inside) = areas.pane(pane) else { continue };
        let draw = match (page.view(), pane) {
            (_, Pane::Events) => events::render,
            (View::Collaboration, Pane::First) => table::render,
            (View::Collaboration, Pane::Second) => speaker::render,
            (View::Collaboration, Pane::Third) => stances::render,
            (View::Collaboration, Pane::Fourth) => gateway::render,
            (View::Orchestrator, Pane::First) => waterfall::render,
            (View::Orchestrator, Pane::Second) => task::render,
            (View::Orchestrator, Pane::Third) => results::render,
            (View::Orchestrator, Pane::Fourth) => slots::render,
            (View::Team, Pane::First) => team::graph::render,
            (View::Team, Pane::Second) => team::hops::render,
            (View::Team, Pane::Third) => team::calls::render,
            (View::Team, Pane::Fourth) => team::transcript::render,
            (View::Research, Pane::First) => research::sources::render,
            (View::Research, Pane::Second) => research::page::render,
            (View::Research, Pane::Third) => research::items::answer,
            (View::Research, Pane::Fourth) => research::items::notes,
            (View::Tools, Pane::First) => breakers::render,
            (View::Tools, Pane::Second) => tool::render,
            (View::Tools, Pane::Third) => bulkheads::render,
            (View::Tools, Pane::Fourth) => retries::render,
        };
        draw(page, cx, inside, buf);
    }
    scrubber::render(page, cx, areas.scrubber, buf);
}

/// Draws the frames with their titles, and the tabs if one pane is shown at a time.
fn frames(page: &RunPage, cx: &DrawContext, area: Rect, areas: &Areas, buf: &mut Buffer) {
    let mut tiles = Tiles::new(area);
    let shown = || Pane::ALL.into_iter().filter(|pane| areas.pane(*pane).is_some());
    for pane in shown().filter(|pane| *pane != page.focus()) {
        if let Some(frame) = areas.frame(pane) {
            tiles.frame(frame, StyleRole::Border);
        }
    }
    if let Some(frame) = areas.frame(page.focus()) {
        tiles.frame(frame, StyleRole::BorderFocus);
    }
    tiles.paint(cx, buf);
    for pane in shown() {
        let Some((inside, frame)) = areas.pane(pane).zip(areas.frame(pane)) else { continue };
        title(page, cx, pane, areas.shape, (inside, frame), buf);
    }
    let face = page.view();
    if areas.shape == PageShape::Single && areas.tabs.height > 0 {
        let places = tabs(areas.tabs, Pane::ALL.map(|pane| face.tab(pane)));
        for (pane, place) in Pane::ALL.into_iter().zip(places) {
            let role = if pane == page.focus() { StyleRole::Button } else { StyleRole::Dim };
            let text = format!(" {} {} ", pane.number(), face.tab(pane));
            Pen::new(buf, place, cx.glyphs).put(&text, cx.theme.style(role));
        }
    }
}

/// Draws a pane's number, title and right-aligned note on the upper line of its frame.
fn title(
    page: &RunPage,
    cx: &DrawContext,
    pane: Pane,
    shape: PageShape,
    (inside, frame): (Rect, Rect),
    buf: &mut Buffer,
) {
    let row = Rect {
        x: frame.x + 2,
        width: frame.width.saturating_sub(4),
        height: frame.height.min(1),
        ..frame
    };
    let face = page.view();
    let focused = page.focus() == pane;
    let style = |role| on_border(cx.theme.style(role));
    let plain = style(if focused { StyleRole::Title } else { StyleRole::Text });
    let dim = style(StyleRole::Dim);
    let number = style(if focused { StyleRole::Key } else { StyleRole::Dim });
    let aside = match pane {
        Pane::Events => events::aside(page, cx.glyphs),
        _ if face == View::Team => team::rows_in_view(page, pane, inside),
        _ if face == View::Research => research::aside(page, pane, inside),
        _ => String::new(),
    };
    let width = columns(&aside) as u16;
    let aside_fits = width > 0 && row.width >= width + 24;
    let mut pen = Pen::new(buf, row, cx.glyphs);
    let keep = if aside_fits { width + 3 } else { 1 };
    let end = row.right().saturating_sub(keep);
    pen.put(" ", dim).put(&format!("{} ", pane.number()), number);
    let left = |pen: &Pen| end.saturating_sub(pen.x());
    match pane {
        Pane::Second => {
            let (who, sign) = match face {
                View::Collaboration => speaker_title(page, cx),
                View::Orchestrator => task::title(page, cx),
                View::Team => {
                    (format!("{}{}", face.title(pane), team::follows(page, cx, pane)), None)
                }
                View::Research => research::page::title(page, cx),
                View::Tools => tool::title(page, cx),
            };
            let state = sign.map_or(0, |sign| columns(sign.word) as u16 + 3);
            let room = left(&pen).saturating_sub(state);
            pen.put_within(&who, room, plain);
            if let Some(sign) = sign {
                pen.space(0).put(" ", plain);
                put_sign(cx, &mut pen, StateSign { style: on_border(sign.style), ..sign });
            }
        }
        Pane::Events => events::title(page, cx, &mut pen, end, plain),
        Pane::First | Pane::Third | Pane::Fourth => {
            let room = left(&pen);
            pen.put_within(face.title(pane), room, plain);
            let model = match face {
                View::Research => research::model(page, cx, pane),
                _ => String::new(),
            };
            let follows = match face {
                View::Team => team::follows(page, cx, pane),
                View::Research => research::follows(page, cx, pane),
                _ => String::new(),
            };
            if columns(&model) <= usize::from(left(&pen)) {
                pen.put(&model, dim);
            }
            if columns(&follows) <= usize::from(left(&pen)) {
                pen.put(&follows, dim);
            }
        }
    }
    pen.put(" ", dim);
    if shape == PageShape::Stacked {
        // The other pane in the same place.
        let other = match pane {
            Pane::First => Some(Pane::Second),
            Pane::Second => Some(Pane::First),
            Pane::Third => Some(Pane::Fourth),
            Pane::Fourth => Some(Pane::Third),
            Pane::Events => None,
        };
        if let Some(other) = other {
            let text = format!(" {} {} ", other.number(), face.tab(other));
            if pen.fits(columns(&text) + 2) {
                pen.glyphs(Glyph::Horizontal, 1, cx.theme.style(StyleRole::Border)).put(&text, dim);
            }
        }
    }
    if aside_fits {
        pen.advance_to(row.right() - width - 2).put(" ", dim).put(&aside, dim).put(" ", dim);
    }
}

/// Title and state of the speaker's pane.
fn speaker_title(page: &RunPage, cx: &DrawContext) -> (String, Option<StateSign>) {
    let world = page.shown();
    match (page.subject(), world.collaboration()) {
        (Subject::Seat { round, seat }, Some(table)) => {
            let seat = table.round(round).and_then(|round| round.seats.get(seat));
            let who = seat.map_or("", |seat| seat.role.as_str());
            (
                format!("{who} {} round {round}", cx.glyphs.symbol(Glyph::Dot)),
                seat.map(|seat| seat_sign(cx, world, Some(seat))),
            )
        }
        (Subject::Finalize, _) => {
            let (glyph, word, role) = match (&world.answer, world.is_live()) {
                (Some(_), _) => (Glyph::Done, "composed", StyleRole::Done),
                (None, true) => (Glyph::Running, "writing", StyleRole::Running),
                (None, false) => (Glyph::Failed, "not written", StyleRole::Failed),
            };
            let style = cx.theme.style(role);
            ("launch brief".to_owned(), Some(StateSign { glyph, word, style }))
        }
        (Subject::Outcome, _) => ("Outcome".to_owned(), Some(cx.theme.run(world))),
        _ => ("Speaker".to_owned(), None),
    }
}

/// The state of a seat. After the run's end no seat is waiting or speaking.
fn seat_sign(cx: &DrawContext, world: &World, seat: Option<&RoundSeat>) -> StateSign {
    let state = seat.map_or(SeatState::Waiting, |seat| seat.state);
    match (&world.stage, state) {
        (RunState::Closed, SeatState::Waiting) => {
            StateSign { word: "not run", ..cx.theme.seat(SeatState::Off) }
        }
        (RunState::Closed, SeatState::Speaking | SeatState::Retrying) => {
            cx.theme.seat(SeatState::Cancelled)
        }
        _ => cx.theme.seat(state),
    }
}

/// Draws a state: its glyph, then its word.
fn put_sign(cx: &DrawContext, pen: &mut Pen, sign: StateSign) {
    let text = format!("{} {}", cx.glyphs.symbol(sign.glyph), sign.word);
    pen.put(&text, sign.style);
}

/// Paints the background of a selected row.
fn row_style(cx: &DrawContext, area: Rect, selected: bool, buf: &mut Buffer) {
    if selected {
        super::text::paint(buf, area, cx.theme.style(StyleRole::Selected));
    }
}

/// Draws a seat's name in exactly `width` columns, with the flag's glyph right after it.
fn put_name(cx: &DrawContext, pen: &mut Pen, name: &str, flagged: bool, width: u16, style: Style) {
    let start = pen.x();
    let flag = if flagged { 2 } else { 0 };
    let text = super::text::elide_middle(name, usize::from(width.saturating_sub(flag)), cx.glyphs);
    pen.put_within(&text, width, style);
    if flagged {
        pen.space(1).glyph(Glyph::Flag, cx.theme.style(StyleRole::Flag));
    }
    pen.advance_to(start + width);
}

/// Width of the longest seat name, including the flag's glyph.
fn names(plan: &CollaborationPlan) -> u16 {
    let widths = plan.sequence.iter().map(|role| {
        let flag = if plan.role_flags.contains_key(role) { 2 } else { 0 };
        columns(role.as_str()) + flag
    });
    u16::try_from(widths.max().unwrap_or(0)).unwrap_or(u16::MAX)
}

/// Draws the text of a pane without rows.
fn empty(cx: &DrawContext, area: Rect, text: &str, buf: &mut Buffer) {
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let (rows, _) = wrap_within(text, width, usize::from(area.height));
    for (nth, row) in rows.iter().enumerate() {
        let mut pen = Pen::new(buf, line(area, nth as u16), cx.glyphs);
        pen.space(1).put(row, cx.theme.style(StyleRole::Dim));
    }
}

/// Draws scroll arrows on the frame next to the text, so that the text keeps its width.
fn out_of_view(
    cx: &DrawContext,
    area: Rect,
    top: Scroll,
    lines: &impl WrappingLines,
    buf: &mut Buffer,
) {
    if area.width < 20 || area.height < 2 {
        return;
    }
    let at = Rect { x: area.right(), width: 1, height: 1, ..area };
    let key = cx.theme.style(StyleRole::Key);
    if top > Scroll::default() {
        Pen::new(buf, at, cx.glyphs).glyph(Glyph::Up, key);
    }
    if top < Scroll::end(lines, usize::from(area.height)) {
        let last = Rect { y: area.bottom() - 1, ..at };
        Pen::new(buf, last, cx.glyphs).glyph(Glyph::Down, key);
    }
}

/// The nth line of an area; empty if it is outside.
fn line(area: Rect, nth: u16) -> Rect {
    let height = u16::from(nth < area.height);
    Rect { y: area.y.saturating_add(nth.min(area.height)), height, ..area }
}

/// Draws a bar of `width` cells for `used` of `allowed`. It is empty only at 0 and full only at
/// `allowed`.
fn bar(cx: &DrawContext, pen: &mut Pen, used: u64, allowed: u64, width: u16) {
    let cells = u64::from(width);
    let full = match (used, allowed) {
        (0, _) | (_, 0) => 0,
        (used, allowed) if used >= allowed => cells,
        (used, allowed) => {
            let exact = u128::from(used) * u128::from(cells) / u128::from(allowed);
            u64::try_from(exact).unwrap_or(cells).clamp(1, cells.saturating_sub(1).max(1))
        }
    };
    let full = u16::try_from(full).unwrap_or(width).min(width);
    pen.glyphs(Glyph::BarFull, full, cx.theme.budget(used, allowed));
    pen.glyphs(Glyph::BarEmpty, width - full, cx.theme.style(StyleRole::BarEmpty));
}
