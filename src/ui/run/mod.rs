//! The view of one run: two header rows, the panes, the scrubber. Pure functions of the page.

mod agents;
mod breakers;
mod bulkheads;
mod events;
mod gateway;
mod gauges;
pub mod header;
mod middle;
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
mod task;
mod team;
mod tiles;
mod tool;
mod waterfall;

pub(super) use self::tiles::Tiles;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::Cx;
use super::glyph::Glyph;
use super::text::{Pen, clear, columns, on_line, wrap_within};
use super::theme::{Role, Sign};
use crate::app::run::layout::tabs;
use crate::app::run::scroll::{Lines, Scroll};
use crate::app::run::subject::Subject;
use crate::app::run::{Areas, Face, Pane, RunPage, Shape};
use crate::event::kind::CollaborationPlan;
use crate::event::world::collaboration::{Seat, SeatState};
use crate::event::world::{Stage, World};

/// Draws a run in the area between the header and the key row.
pub fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    clear(buf, area);
    if page.inspector().is_some() {
        super::inspector::render(page, cx, area, buf);
        return;
    }
    let areas = page.areas(area);
    frames(page, cx, area, &areas, buf);
    for pane in Pane::ALL {
        let Some(inside) = areas.pane(pane) else { continue };
        let draw = match (page.face(), pane) {
            (_, Pane::Events) => events::render,
            (Face::Collaboration, Pane::First) => table::render,
            (Face::Collaboration, Pane::Second) => speaker::render,
            (Face::Collaboration, Pane::Third) => stances::render,
            (Face::Collaboration, Pane::Fourth) => gateway::render,
            (Face::Orchestrator, Pane::First) => waterfall::render,
            (Face::Orchestrator, Pane::Second) => task::render,
            (Face::Orchestrator, Pane::Third) => results::render,
            (Face::Orchestrator, Pane::Fourth) => slots::render,
            (Face::Team, Pane::First) => team::graph::render,
            (Face::Team, Pane::Second) => team::baton::render,
            (Face::Team, Pane::Third) => team::calls::render,
            (Face::Team, Pane::Fourth) => team::transcript::render,
            (Face::Research, Pane::First) => research::sources::render,
            (Face::Research, Pane::Second) => research::page::render,
            (Face::Research, Pane::Third) => research::items::answer,
            (Face::Research, Pane::Fourth) => research::items::notes,
            (Face::Tools, Pane::First) => breakers::render,
            (Face::Tools, Pane::Second) => tool::render,
            (Face::Tools, Pane::Third) => bulkheads::render,
            (Face::Tools, Pane::Fourth) => retries::render,
        };
        draw(page, cx, inside, buf);
    }
    scrubber::render(page, cx, areas.scrubber, buf);
}

/// Draws the frames with their titles, and the tabs if one pane is shown at a time.
fn frames(page: &RunPage, cx: &Cx, area: Rect, areas: &Areas, buf: &mut Buffer) {
    let mut tiles = Tiles::new(area);
    let shown = || Pane::ALL.into_iter().filter(|pane| areas.pane(*pane).is_some());
    for pane in shown().filter(|pane| *pane != page.focus()) {
        if let Some(frame) = areas.frame(pane) {
            tiles.frame(frame, Role::Border);
        }
    }
    if let Some(frame) = areas.frame(page.focus()) {
        tiles.frame(frame, Role::BorderFocus);
    }
    tiles.paint(cx, buf);
    for pane in shown() {
        let Some((inside, frame)) = areas.pane(pane).zip(areas.frame(pane)) else { continue };
        title(page, cx, pane, areas.shape, (inside, frame), buf);
    }
    let face = page.face();
    if areas.shape == Shape::Single && areas.tabs.height > 0 {
        let places = tabs(areas.tabs, Pane::ALL.map(|pane| face.tab(pane)));
        for (pane, place) in Pane::ALL.into_iter().zip(places) {
            let role = if pane == page.focus() { Role::Button } else { Role::Dim };
            let text = format!(" {} {} ", pane.number(), face.tab(pane));
            Pen::new(buf, place, cx.glyphs).put(&text, cx.theme.style(role));
        }
    }
}

/// Draws a pane's number, title and right-aligned note on the upper line of its frame.
fn title(
    page: &RunPage,
    cx: &Cx,
    pane: Pane,
    shape: Shape,
    (inside, frame): (Rect, Rect),
    buf: &mut Buffer,
) {
    let row = Rect {
        x: frame.x + 2,
        width: frame.width.saturating_sub(4),
        height: frame.height.min(1),
        ..frame
    };
    let face = page.face();
    let focused = page.focus() == pane;
    let style = |role| on_line(cx.theme.style(role));
    let plain = style(if focused { Role::Title } else { Role::Text });
    let dim = style(Role::Dim);
    let number = style(if focused { Role::Key } else { Role::Dim });
    let aside = match pane {
        Pane::Events => events::aside(page, cx.glyphs),
        _ if face == Face::Team => team::cut(page, pane, inside),
        _ if face == Face::Research => research::aside(page, pane, inside),
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
                Face::Collaboration => speaker_title(page, cx),
                Face::Orchestrator => task::title(page, cx),
                Face::Team => {
                    (format!("{}{}", face.title(pane), team::follows(page, cx, pane)), None)
                }
                Face::Research => research::page::title(page, cx),
                Face::Tools => tool::title(page, cx),
            };
            let state = sign.map_or(0, |sign| columns(sign.word) as u16 + 3);
            let room = left(&pen).saturating_sub(state);
            pen.put_within(&who, room, plain);
            if let Some(sign) = sign {
                pen.space(0).put(" ", plain);
                put_sign(cx, &mut pen, Sign { style: on_line(sign.style), ..sign });
            }
        }
        Pane::Events => events::title(page, cx, &mut pen, end, plain),
        Pane::First | Pane::Third | Pane::Fourth => {
            let room = left(&pen);
            pen.put_within(face.title(pane), room, plain);
            let model = match face {
                Face::Research => research::model(page, cx, pane),
                _ => String::new(),
            };
            let follows = match face {
                Face::Team => team::follows(page, cx, pane),
                Face::Research => research::follows(page, cx, pane),
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
    if shape == Shape::Stacked {
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
                pen.glyphs(Glyph::Horizontal, 1, cx.theme.style(Role::Border)).put(&text, dim);
            }
        }
    }
    if aside_fits {
        pen.to(row.right() - width - 2).put(" ", dim).put(&aside, dim).put(" ", dim);
    }
}

/// Title and state of the speaker's pane.
fn speaker_title(page: &RunPage, cx: &Cx) -> (String, Option<Sign>) {
    let world = page.shown();
    match (page.subject(), world.collaboration()) {
        (Subject::Seat { round, seat }, Some((table, _))) => {
            let seat = table.round(round).and_then(|round| round.seats.get(seat));
            let who = seat.map_or("", |seat| seat.role.as_str());
            (
                format!("{who} {} round {round}", cx.glyphs.of(Glyph::Dot)),
                seat.map(|seat| seat_sign(cx, world, Some(seat))),
            )
        }
        (Subject::Finalize, _) => {
            let (glyph, word, role) = match (&world.answer, world.is_live()) {
                (Some(_), _) => (Glyph::Done, "composed", Role::Done),
                (None, true) => (Glyph::Running, "writing", Role::Running),
                (None, false) => (Glyph::Failed, "not written", Role::Failed),
            };
            let style = cx.theme.style(role);
            ("launch brief".to_owned(), Some(Sign { glyph, word, style }))
        }
        (Subject::Outcome, _) => ("Outcome".to_owned(), Some(cx.theme.run(world))),
        _ => ("Speaker".to_owned(), None),
    }
}

/// The state of a seat. After the run's end no seat is waiting or speaking.
fn seat_sign(cx: &Cx, world: &World, seat: Option<&Seat>) -> Sign {
    let state = seat.map_or(SeatState::Waiting, |seat| seat.state);
    match (&world.stage, state) {
        (Stage::Closed, SeatState::Waiting) => {
            Sign { word: "not run", ..cx.theme.seat(SeatState::Off) }
        }
        (Stage::Closed, SeatState::Speaking | SeatState::Retrying) => {
            cx.theme.seat(SeatState::Cancelled)
        }
        _ => cx.theme.seat(state),
    }
}

/// Draws a state: its glyph, then its word.
fn put_sign(cx: &Cx, pen: &mut Pen, sign: Sign) {
    let text = format!("{} {}", cx.glyphs.of(sign.glyph), sign.word);
    pen.put(&text, sign.style);
}

/// Paints the background of a selected row.
fn row_style(cx: &Cx, area: Rect, selected: bool, buf: &mut Buffer) {
    if selected {
        super::text::paint(buf, area, cx.theme.style(Role::Selected));
    }
}

/// Draws a seat's name in exactly `width` columns, with the flag's glyph right after it.
fn put_name(cx: &Cx, pen: &mut Pen, name: &str, flagged: bool, width: u16, style: Style) {
    let start = pen.x();
    let flag = if flagged { 2 } else { 0 };
    let text = super::text::elide_middle(name, usize::from(width.saturating_sub(flag)), cx.glyphs);
    pen.put_within(&text, width, style);
    if flagged {
        pen.space(1).glyph(Glyph::Flag, cx.theme.style(Role::Flag));
    }
    pen.to(start + width);
}

/// Width of the longest seat name, including the flag's glyph.
fn names(plan: &CollaborationPlan) -> u16 {
    let widths = plan.sequence.iter().map(|role| {
        let flag = if plan.behind.contains_key(role) { 2 } else { 0 };
        columns(role.as_str()) + flag
    });
    u16::try_from(widths.max().unwrap_or(0)).unwrap_or(u16::MAX)
}

/// Draws the text of a pane without rows.
fn empty(cx: &Cx, area: Rect, text: &str, buf: &mut Buffer) {
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let (rows, _) = wrap_within(text, width, usize::from(area.height));
    for (nth, row) in rows.iter().enumerate() {
        let mut pen = Pen::new(buf, line(area, nth as u16), cx.glyphs);
        pen.space(1).put(row, cx.theme.style(Role::Dim));
    }
}

/// Draws scroll arrows on the frame next to the text, so that the text keeps its width.
fn out_of_view(cx: &Cx, area: Rect, top: Scroll, lines: &impl Lines, buf: &mut Buffer) {
    if area.width < 20 || area.height < 2 {
        return;
    }
    let at = Rect { x: area.right(), width: 1, height: 1, ..area };
    let key = cx.theme.style(Role::Key);
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
fn bar(cx: &Cx, pen: &mut Pen, used: u64, allowed: u64, width: u16) {
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
    pen.glyphs(Glyph::BarEmpty, width - full, cx.theme.style(Role::BarEmpty));
}
