//! The scroll position in a text whose lines wrap, and the drawing of a document from there on.
//! Only visible lines are wrapped, and a change of width hardly moves the position.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::DrawContext;
use super::run::inspector::{GLYPH_COLUMNS, WrappedDocument, text_columns};
use super::run::pane_text::text_area;
use super::text::Pen;
use crate::words::glyph::Glyph;
use crate::words::measure::wrap;
use crate::words::styled::{StyleRole, StyledLine, StyledText};

/// A text whose lines are one or more rows high.
pub trait WrappingLines {
    /// Number of lines.
    fn count(&self) -> usize;
    /// Number of rows of a line, at least 1.
    fn rows(&self, line: usize) -> usize;
    /// Number of rows of all lines, at most `most`.
    fn rows_within(&self, most: u16) -> u16 {
        let mut rows = 0;
        for line in 0..self.count() {
            rows += self.rows(line).max(1);
            if rows >= usize::from(most) {
                return most;
            }
        }
        rows as u16
    }
}

/// The first line and row in view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scroll {
    /// Line, from 0.
    pub line: usize,
    /// Row within it, from 0.
    pub row: usize,
}

impl Scroll {
    /// The last position that still fills a window of this height.
    pub fn end(lines: &impl WrappingLines, height: usize) -> Scroll {
        let mut left = height;
        for line in (0..lines.count()).rev() {
            let rows = lines.rows(line);
            if rows >= left {
                return Scroll { line, row: rows - left };
            }
            left -= rows;
        }
        Scroll::default()
    }

    /// The position this many rows further on; it stops at the end.
    #[must_use]
    pub fn step(self, by: isize, lines: &impl WrappingLines, height: usize) -> Scroll {
        if lines.count() == 0 {
            return Scroll::default();
        }
        let mut at = self.clamped(lines, height);
        for _ in 0..by.unsigned_abs() {
            if by > 0 {
                if at.row + 1 < lines.rows(at.line) {
                    at.row += 1;
                } else if at.line + 1 < lines.count() {
                    at = Scroll { line: at.line + 1, row: 0 };
                } else {
                    break;
                }
            } else if at.row > 0 {
                at.row -= 1;
            } else if at.line > 0 {
                at.line -= 1;
                at.row = lines.rows(at.line) - 1;
            } else {
                break;
            }
        }
        at.clamped(lines, height)
    }

    /// The position after `by` rows in a document that fills a pane.
    #[must_use]
    pub fn step_in(self, by: isize, document: &StyledText, pane: Rect) -> Scroll {
        let area = text_area(pane);
        let lines = WrappedDocument { document, width: area.width };
        self.step(by, &lines, usize::from(area.height))
    }

    /// Back to the start; returns whether it was elsewhere.
    pub fn reset(&mut self) -> bool {
        std::mem::take(self) != Scroll::default()
    }

    /// This position, or the nearest valid one.
    #[must_use]
    pub fn clamped(self, lines: &impl WrappingLines, height: usize) -> Scroll {
        if lines.count() == 0 {
            return Scroll::default();
        }
        let line = self.line.min(lines.count() - 1);
        let last = lines.rows(line).saturating_sub(1);
        let row = if line == self.line { self.row.min(last) } else { last };
        Scroll { line, row }.min(Self::end(lines, height))
    }
}

/// Draws a document from this scroll position on, with scroll arrows in the column at its right.
pub(super) fn draw_scrolled(
    cx: &DrawContext,
    area: Rect,
    document: &StyledText,
    scroll: Scroll,
    buf: &mut Buffer,
) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let lines = WrappedDocument { document, width: area.width };
    let height = usize::from(area.height);
    let top = scroll.clamped(&lines, height);
    let mut row = 0;
    for (nth, line) in document.lines.iter().enumerate().skip(top.line) {
        if row >= area.height {
            break;
        }
        let skip = if nth == top.line { top.row } else { 0 };
        row = draw_line(cx, area, row, skip, line, buf);
    }
    let more = Rect { x: area.right(), width: 1, height: area.height.min(1), ..area };
    let key = cx.theme.style(StyleRole::Key);
    if top != Scroll::default() {
        Pen::new(buf, more, cx.glyphs).glyph(Glyph::Up, key);
    }
    if top != Scroll::end(&lines, height) {
        let last = Rect { y: area.bottom().saturating_sub(1), ..more };
        Pen::new(buf, last, cx.glyphs).glyph(Glyph::Down, key);
    }
}

/// Draws a line from row `row` of the area on, without its first `skip` rows. Returns the next row.
pub(super) fn draw_line(
    cx: &DrawContext,
    area: Rect,
    row: u16,
    skip: usize,
    line: &StyledLine,
    buf: &mut Buffer,
) -> u16 {
    let theme = cx.theme;
    let style = theme.style(line.role());
    let (name, indent) = (line.label.as_deref().unwrap_or_default(), text_columns(line));
    let width = area.width.saturating_sub(indent);
    let mut row = row;
    let parts = wrap(&line.text(), usize::from(width));
    for (nth, part) in parts.iter().enumerate().skip(skip) {
        if row >= area.height {
            break;
        }
        let at = Rect { y: area.y + row, height: 1, ..area };
        let mut pen = Pen::new(buf, at, cx.glyphs);
        if nth == 0 && indent > 0 {
            pen.put_within(name, indent.saturating_sub(1), theme.style(StyleRole::Dim));
        }
        if let Some(glyph) = line.glyph().filter(|_| nth == 0) {
            pen.advance_to(area.x + indent - GLYPH_COLUMNS);
            pen.put_within(cx.glyphs.symbol(glyph), GLYPH_COLUMNS, style);
        }
        pen.advance_to(area.x + indent).put(part, style);
        if line.is_heading() && nth + 1 == parts.len() && pen.left() > 2 {
            let left = pen.space(1).left();
            pen.glyphs(Glyph::Horizontal, left, theme.style(StyleRole::Border));
        }
        row += 1;
    }
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl WrappingLines for Vec<usize> {
        fn count(&self) -> usize {
            self.len()
        }
        fn rows(&self, line: usize) -> usize {
            self[line]
        }
    }

    proptest! {
        #[test]
        fn scroll_fills_window_when_possible(
            lines in proptest::collection::vec(1usize..5, 0..20),
            steps in proptest::collection::vec(-9isize..9, 0..20),
            height in 1usize..12,
        ) {
            let mut at = Scroll { line: 99, row: 99 };
            for by in steps {
                at = at.step(by, &lines, height);
                let before: usize = lines.iter().take(at.line).sum::<usize>() + at.row;
                let all: usize = lines.iter().sum();
                prop_assert!(before <= all.saturating_sub(height), "{at:?}");
            }
        }
    }
}
