//! Lists of rows in columns: the heads above them, the selected row and its mark, and which rows are
//! in view.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::cx::DrawContext;
use super::text::{Pen, paint};
use crate::narrate::glyph::Glyph;
use crate::narrate::style_role::StyleRole;

/// The head of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<'a> {
    head: &'a str,
    width: u16,
    right: bool,
}

impl<'a> Column<'a> {
    /// A column with its head at the left.
    pub(crate) fn left(head: &'a str, width: u16) -> Self {
        Self { head, width, right: false }
    }

    /// A column with its head at the right, above figures.
    pub(crate) fn right(head: &'a str, width: u16) -> Self {
        Self { head, width, right: true }
    }

    /// The last column, which takes what is left.
    pub(crate) fn rest(head: &'a str) -> Self {
        Self::left(head, u16::MAX)
    }
}

/// Draws the heads of the columns; a column of no width is left out.
pub(crate) fn heads(cx: &DrawContext, pen: &mut Pen, columns: &[Column<'_>]) {
    let dim = cx.theme.style(StyleRole::Dim);
    for column in columns.iter().filter(|column| column.width > 0) {
        match column.right {
            true => pen.right_aligned(column.head, column.width, dim),
            false => pen.cell(column.head, column.width, dim),
        };
    }
}

/// The row of column heads above the rows of a list.
pub(crate) fn head_row(rows: Rect) -> Rect {
    Rect { y: rows.y.saturating_sub(1), height: 1, ..rows }
}

/// Paints the background of a selected row.
pub(crate) fn row_style(cx: &DrawContext, area: Rect, selected: bool, buf: &mut Buffer) {
    if selected {
        paint(buf, area, cx.theme.style(StyleRole::Selected));
    }
}

/// A pen on a row: the background of a selected row is painted, and its mark drawn.
pub(crate) fn row<'a>(
    cx: &DrawContext,
    area: Rect,
    selected: bool,
    buf: &'a mut Buffer,
) -> Pen<'a> {
    row_with(mark, cx, area, selected, buf)
}

/// Like [`row`]; without a selection, the column of the mark has a blank of the mark's style.
pub(crate) fn row_or_blank<'a>(
    cx: &DrawContext,
    area: Rect,
    selected: bool,
    buf: &'a mut Buffer,
) -> Pen<'a> {
    row_with(mark_or_blank, cx, area, selected, buf)
}

fn row_with<'a>(
    draw_mark: impl FnOnce(&DrawContext, &mut Pen, bool),
    cx: &DrawContext,
    area: Rect,
    selected: bool,
    buf: &'a mut Buffer,
) -> Pen<'a> {
    row_style(cx, area, selected, buf);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    draw_mark(cx, &mut pen, selected);
    pen
}

/// A pen on a row of a list that keeps its selection while another pane has the focus: the mark is
/// then dim, and the background is not painted.
pub(crate) fn pane_row<'a>(
    cx: &DrawContext,
    area: Rect,
    y: u16,
    selected: bool,
    focused: bool,
    buf: &'a mut Buffer,
) -> Pen<'a> {
    let row = Rect { y, height: 1, ..area };
    if selected && focused {
        paint(buf, row, cx.theme.style(StyleRole::Selected));
    }
    let mut pen = Pen::new(buf, row, cx.glyphs);
    if selected {
        let role = if focused { StyleRole::Key } else { StyleRole::Dim };
        pen.glyph(Glyph::Selected, cx.theme.style(role));
    } else {
        pen.space(1);
    }
    pen
}

/// Draws the mark of a selected row, or leaves its column as it is.
pub(crate) fn mark(cx: &DrawContext, pen: &mut Pen, selected: bool) {
    match selected {
        true => pen.glyph(Glyph::Selected, cx.theme.style(StyleRole::Key)),
        false => pen.space(1),
    };
}

/// Draws the mark of a selected row, or a blank of the mark's style.
pub(crate) fn mark_or_blank(cx: &DrawContext, pen: &mut Pen, selected: bool) {
    let mark = if selected { cx.glyphs.symbol(Glyph::Selected) } else { " " };
    pen.put(mark, cx.theme.style(StyleRole::Key));
}

/// The rows in view, such as `1-11 of 12`.
pub(crate) fn range(first: usize, rows: usize, count: usize) -> String {
    format!("{}-{} of {count}", first + 1, (first + rows).min(count))
}
