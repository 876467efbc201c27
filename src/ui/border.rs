//! The borders of panes and windows. Frames that share sides are collected before drawing, so that
//! crossings get the right glyph and the focused frame is complete. A window that covers others has
//! a double border.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::cx::DrawContext;
use crate::narrate::glyph::{Glyph, Glyphs};
use crate::narrate::style_role::StyleRole;

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
    use crate::ui::theme::Theme;

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
