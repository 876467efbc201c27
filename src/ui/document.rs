//! Drawing of the lines of a document: the inspector's, and the details of a task.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::text::{Pen, wrap};
use crate::app::run::inspect::{GLYPH_COLUMNS, WrappedDocument, text_columns};
use crate::app::run::scroll::Scroll;
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledText};

/// Draws a document from this scroll position on, with scroll arrows in the column at its right.
pub(crate) fn draw_scrolled(
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
pub(crate) fn draw_line(
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
    for (nth, part) in wrap(&line.text(), usize::from(width)).iter().enumerate().skip(skip) {
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
        if line.is_heading() && nth == 0 && pen.left() > 2 {
            let left = pen.space(1).left();
            pen.glyphs(Glyph::Horizontal, left, theme.style(StyleRole::Border));
        }
        row += 1;
    }
    row
}
