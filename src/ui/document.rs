//! Drawing of the lines of a document: the inspector's, and the details of a task.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::glyph::Glyph;
use super::role::StyleRole;
use super::text::{Pen, wrap};
use crate::app::run::document::{DocumentLine, LineStyle};
use crate::app::run::inspect::FIELD_COLUMNS;

/// Draws a line from row `row` of the area on, without its first `skip` rows. Returns the next row.
pub(crate) fn draw_line(
    cx: &DrawContext,
    area: Rect,
    row: u16,
    skip: usize,
    line: &DocumentLine,
    buf: &mut Buffer,
) -> u16 {
    let theme = cx.theme;
    let style = theme.style(match line.style {
        LineStyle::Text | LineStyle::Field => StyleRole::Text,
        LineStyle::Head => StyleRole::Strong,
        LineStyle::Dim => StyleRole::Dim,
        LineStyle::Done => StyleRole::Done,
        LineStyle::Failed => StyleRole::Failed,
        LineStyle::Running => StyleRole::Running,
    });
    let (name, text, indent) = match (line.style, line.text.split_once('\t')) {
        (LineStyle::Field, Some((name, text))) => (name, text, FIELD_COLUMNS),
        _ => ("", line.text.as_str(), 0),
    };
    let width = area.width.saturating_sub(indent);
    let mut row = row;
    for (nth, part) in wrap(text, usize::from(width)).iter().enumerate().skip(skip) {
        if row >= area.height {
            break;
        }
        let at = Rect { y: area.y + row, height: 1, ..area };
        let mut pen = Pen::new(buf, at, cx.glyphs);
        if nth == 0 && indent > 0 {
            pen.put_within(name, indent.saturating_sub(1), theme.style(StyleRole::Dim));
        }
        pen.advance_to(area.x + indent).put(part, style);
        if line.style == LineStyle::Head && nth == 0 && pen.left() > 2 {
            let left = pen.space(1).left();
            pen.glyphs(Glyph::Horizontal, left, theme.style(StyleRole::Border));
        }
        row += 1;
    }
    row
}
