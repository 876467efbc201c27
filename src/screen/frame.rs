//! The frames of windows and panes, with titles and feet on their borders. Frames that share sides
//! are collected before drawing, so that crossings get the right glyph and the focused frame is
//! complete. A window that covers others has a double border.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::layout::inside;
use super::text::Pen;
use super::{DrawContext, text};
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::measure;
use crate::words::styled::StyleRole;

/// The number, labels and border style of a pane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'a> {
    /// Its number, if a digit key focuses it.
    pub number: Option<u8>,
    pub title: &'a str,
    /// The text at the right end of its lower border; of a numbered pane, whose lower border may be the
    /// upper one of another, at the right end of its upper border.
    pub foot: &'a str,
    pub focused: bool,
}

/// The title of a window about a run, and whether that run is live: `Flags of r-7f3a, live`.
pub fn live_title(what: &str, of: &str, is_live: bool) -> String {
    format!("{what} of {of}{}", if is_live { ", live" } else { "" })
}

/// Draws a window over the screen below it; returns the area inside.
pub fn window(title: &str, foot: &str, cx: &DrawContext, area: Rect, buf: &mut Buffer) -> Rect {
    window_border(cx, area, buf);
    label(Frame { title, foot, focused: true, ..Frame::default() }, cx, area, buf);
    inside(area.intersection(buf.area))
}

/// Clears the area of a window and draws its border.
pub fn window_border(cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    text::clear(buf, area);
    if area.width >= 2 && area.height >= 2 {
        double(cx, area, cx.theme.style(StyleRole::BorderFocus), buf);
    }
}

/// Draws title and foot onto a border.
pub fn label(frame: Frame, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    if area.width < 2 || area.height < 2 {
        return;
    }
    let role = if frame.focused { StyleRole::BorderFocus } else { StyleRole::Border };
    let style = cx.theme.style(role);
    let (left, right) = (area.left(), area.right() - 1);
    let (top, bottom) = (area.top(), area.bottom() - 1);
    let room = area.width.saturating_sub(4);
    let title_style = text::on_border(cx.theme.style(if frame.focused {
        StyleRole::Title
    } else {
        StyleRole::Text
    }));
    if !frame.title.is_empty() && room > 2 {
        let row = Rect { x: left + 2, y: top, width: room, height: 1 };
        let mut pen = Pen::new(buf, row, cx.glyphs);
        pen.put(" ", style);
        if let Some(number) = frame.number {
            pen.put(&format!("{number} "), cx.theme.style(StyleRole::Dim));
        }
        let width = pen.left().saturating_sub(1);
        pen.put_within(frame.title, width, title_style).put(" ", style);
    }
    let foot = u16::try_from(measure::columns(frame.foot)).unwrap_or(u16::MAX);
    if foot > 0 && foot.saturating_add(2) <= room {
        let x = right - 2 - foot;
        let y = if frame.number.is_some() { top } else { bottom };
        let row = Rect { x: x - 1, y, width: foot + 2, height: 1 };
        let dim = cx.theme.style(StyleRole::Dim);
        Pen::new(buf, row, cx.glyphs).put(" ", dim).put(frame.foot, dim).put(" ", dim);
    }
}

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;
const ROUND: u8 = 16;

/// The lines of an area, collected and then drawn.
pub(crate) struct Borders {
    area: Rect,
    cells: Vec<(u8, StyleRole)>,
}

impl Borders {
    /// An area without lines.
    pub fn new(area: Rect) -> Self {
        Self {
            area,
            cells: vec![(0, StyleRole::Border); usize::from(area.width) * usize::from(area.height)],
        }
    }

    /// Adds a frame. On a shared side the last added frame determines the style.
    pub fn frame(&mut self, frame: Rect, role: StyleRole) {
        self.add(frame, role, 0);
    }

    /// Adds a frame with round corners.
    pub fn round(&mut self, frame: Rect, role: StyleRole) {
        self.add(frame, role, ROUND);
    }

    fn add(&mut self, frame: Rect, role: StyleRole, round: u8) {
        if frame.width < 2 || frame.height < 2 {
            return;
        }
        let (left, right) = (frame.left(), frame.right() - 1);
        let (top, bottom) = (frame.top(), frame.bottom() - 1);
        for x in left + 1..right {
            self.mark(x, top, LEFT | RIGHT, role);
            self.mark(x, bottom, LEFT | RIGHT, role);
        }
        for y in top + 1..bottom {
            self.mark(left, y, UP | DOWN, role);
            self.mark(right, y, UP | DOWN, role);
        }
        self.mark(left, top, DOWN | RIGHT | round, role);
        self.mark(right, top, DOWN | LEFT | round, role);
        self.mark(left, bottom, UP | RIGHT | round, role);
        self.mark(right, bottom, UP | LEFT | round, role);
    }

    fn mark(&mut self, x: u16, y: u16, sides: u8, role: StyleRole) {
        let (Some(col), Some(row)) = (x.checked_sub(self.area.x), y.checked_sub(self.area.y))
        else {
            return;
        };
        if col >= self.area.width {
            return;
        }
        let at = usize::from(row) * usize::from(self.area.width) + usize::from(col);
        if let Some(cell) = self.cells.get_mut(at) {
            *cell = (cell.0 | sides, role);
        }
    }

    /// Draws the lines.
    pub fn paint(&self, cx: &DrawContext, buf: &mut Buffer) {
        let width = usize::from(self.area.width).max(1);
        for (at, (sides, role)) in self.cells.iter().enumerate() {
            let Some(glyph) = glyph(*sides) else { continue };
            // Both casts are exact: the cell is inside the area.
            let (col, row) = ((at % width) as u16, (at / width) as u16);
            if let Some(cell) = buf.cell_mut((self.area.x + col, self.area.y + row)) {
                cell.set_symbol(cx.glyphs.symbol(glyph)).set_style(cx.theme.style(*role));
            }
        }
    }
}

/// Draws the double border of a window that covers others.
pub(crate) fn double(cx: &DrawContext, area: Rect, style: Style, buf: &mut Buffer) {
    let [across, down, corners @ ..] = match cx.glyphs {
        Glyphs::Unicode => ["═", "║", "╔", "╗", "╚", "╝"],
        Glyphs::Ascii => ["=", "|", "+", "+", "+", "+"],
    };
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    let mut put = |x, y, symbol| {
        if let Some(cell) = buf.cell_mut((x, y)) {
            cell.set_symbol(symbol).set_style(style);
        }
    };
    for x in area.left() + 1..right {
        put(x, area.top(), across);
        put(x, bottom, across);
    }
    for y in area.top() + 1..bottom {
        put(area.left(), y, down);
        put(right, y, down);
    }
    put(area.left(), area.top(), corners[0]);
    put(right, area.top(), corners[1]);
    put(area.left(), bottom, corners[2]);
    put(right, bottom, corners[3]);
}

fn glyph(sides: u8) -> Option<Glyph> {
    let round = sides & ROUND != 0;
    Some(match (sides & !ROUND, round) {
        (0, _) => return None,
        (s, _) if s == LEFT | RIGHT => Glyph::Horizontal,
        (s, _) if s == UP | DOWN => Glyph::Vertical,
        (s, false) if s == DOWN | RIGHT => Glyph::TopLeft,
        (s, false) if s == DOWN | LEFT => Glyph::TopRight,
        (s, false) if s == UP | RIGHT => Glyph::BottomLeft,
        (s, false) if s == UP | LEFT => Glyph::BottomRight,
        (s, true) if s == DOWN | RIGHT => Glyph::RoundTopLeft,
        (s, true) if s == DOWN | LEFT => Glyph::RoundTopRight,
        (s, true) if s == UP | RIGHT => Glyph::RoundBottomLeft,
        (s, true) if s == UP | LEFT => Glyph::RoundBottomRight,
        (s, _) if s == UP | DOWN | RIGHT => Glyph::TeeRight,
        (s, _) if s == UP | DOWN | LEFT => Glyph::TeeLeft,
        (s, _) if s == DOWN | LEFT | RIGHT => Glyph::TeeDown,
        (s, _) if s == UP | LEFT | RIGHT => Glyph::TeeUp,
        _ => Glyph::Cross,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::screen::theme::Theme;
    use crate::words::glyph::Glyphs;

    #[test]
    fn frame_of_any_size_stays_inside() {
        let theme = Theme::default();
        let cx = DrawContext { now: Duration::ZERO, theme: &theme, glyphs: Glyphs::Unicode };
        for width in 0..12 {
            for height in 0..6 {
                let mut buf = Buffer::empty(Rect::new(0, 0, 10, 5));
                let area = Rect::new(1, 1, width, height);
                window("A long title", "foot", &cx, area, &mut buf);
                let (number, title) = (Some(1), "A long title");
                let frame = Frame { number, title, foot: "foot", focused: true };
                label(frame, &cx, area, &mut buf);
            }
        }
    }

    fn drawn(glyphs: Glyphs) -> Vec<String> {
        let theme = Theme::default();
        let cx = DrawContext { now: Duration::ZERO, theme: &theme, glyphs };
        let mut buf = Buffer::empty(Rect::new(0, 0, 9, 5));
        let mut borders = Borders::new(buf.area);
        for area in [Rect::new(0, 0, 5, 3), Rect::new(4, 0, 5, 3), Rect::new(0, 2, 9, 3)] {
            borders.frame(area, StyleRole::Border);
        }
        borders.paint(&cx, &mut buf);
        (0..5).map(|y| (0..9).map(|x| buf[(x, y)].symbol()).collect()).collect()
    }

    #[test]
    fn shared_lines_join() {
        assert_eq!(
            drawn(Glyphs::Unicode),
            ["┌───┬───┐", "│   │   │", "├───┴───┤", "│       │", "└───────┘"]
        );
        assert_eq!(
            drawn(Glyphs::Ascii),
            ["+---+---+", "|   |   |", "+---+---+", "|       |", "+-------+"]
        );
    }
}
