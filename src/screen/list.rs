//! Lists: the selection and the rows in view, in a list of a window, in one that grows at its end, and
//! in a text whose lines wrap. How the heads of columns and a selected row are drawn.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::DrawContext;
use super::action::Action;
use super::layout::line;
use super::scroll::{Scroll, WrappingLines};
use super::text::{Pen, paint};
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;

/// The list position that a movement leads to; `None` for any other action.
pub(super) fn moved_index(
    action: Action,
    at: Option<usize>,
    len: usize,
    page: usize,
) -> Option<usize> {
    let last = len.checked_sub(1)?;
    let at = at.unwrap_or(0).min(last);
    Some(match action {
        Action::Up => at.saturating_sub(1),
        Action::Down => (at + 1).min(last),
        Action::Top => 0,
        Action::Bottom => last,
        Action::PageUp => at.saturating_sub(page),
        Action::PageDown => at.saturating_add(page).min(last),
        _ => return None,
    })
}

/// Like [`moved_index`] in a short list: a page key goes to an end, the keys to the left and right are
/// steps too. Without a selection the first step selects the row that is `shown` as the current one.
pub(super) fn stepped_index(
    action: Action,
    selected: Option<usize>,
    shown: usize,
    len: usize,
) -> Option<usize> {
    let action = match action {
        Action::Left => Action::Up,
        Action::Right => Action::Down,
        Action::PageUp => Action::Top,
        Action::PageDown => Action::Bottom,
        other => other,
    };
    match (action, selected) {
        (Action::Up | Action::Down, None) => Some(shown.min(len.checked_sub(1)?)),
        _ => moved_index(action, selected, len, 1),
    }
}

/// The first row of a window with `rows` rows over a list of `len` rows. It moves no more than
/// needed to show `selected`.
pub fn keep_in_view(top: usize, selected: usize, rows: usize, len: usize) -> usize {
    let rows = rows.max(1);
    let top = top.min(len.saturating_sub(rows));
    if selected < top {
        selected
    } else if selected >= top + rows {
        selected + 1 - rows
    } else {
        top
    }
}

/// The first row in view of a list in a window of this height, so that `row` of `rows` is in view. It
/// moves by whole windows, so that rows keep their place as long as possible.
pub fn window_start(row: usize, rows: usize, height: usize) -> usize {
    if rows <= height || height == 0 {
        return 0;
    }
    (row / height * height).min(rows - height)
}

/// The selected line of a list in a window, and the first line in view. The list may have lines that
/// cannot be selected, such as headings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListState {
    pub selected: usize,
    pub top: usize,
}

impl ListState {
    /// Moves the selection among these lines; returns whether the action was a movement.
    pub(super) fn on_move(&mut self, action: Action, choices: &[usize], page: usize) -> bool {
        let at = choices.iter().position(|line| *line == self.selected);
        let to = moved_index(action, at, choices.len(), page).and_then(|to| choices.get(to));
        self.selected = to.copied().unwrap_or(self.selected);
        to.is_some()
    }

    /// Selects a line; returns whether it was selected before, `None` if it cannot be selected.
    pub(super) fn select(&mut self, line: usize, choices: &[usize]) -> Option<bool> {
        let line = Some(line).filter(|line| choices.contains(line))?;
        Some(std::mem::replace(&mut self.selected, line) == line)
    }

    /// Keeps the selected one of `len` lines in view.
    pub(super) fn arrange(&mut self, len: usize, page: usize) {
        self.top = keep_in_view(self.top, self.selected, page, len);
    }

    /// Scrolls by one line.
    pub(super) fn scroll(&mut self, up: bool, len: usize, page: usize) {
        let last = len.saturating_sub(page);
        self.top = if up { self.top.saturating_sub(1) } else { (self.top + 1).min(last) };
    }
}

/// The selected line, and the first row in view once the operator has scrolled. A line higher than
/// the window is scrolled to its end before the next one is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCursor {
    /// The selected line; `None` follows the newest.
    pub line: Option<usize>,
    /// First line and row in view.
    pub top: Scroll,
}

impl ListCursor {
    /// The first line and row in a window of this height, and the selected line. Without a
    /// selection the window is at the end.
    pub fn position(self, lines: &impl WrappingLines, height: usize) -> (Scroll, Option<usize>) {
        match self.line {
            None => (Scroll::end(lines, height), None),
            Some(line) => {
                let line = line.min(lines.count().saturating_sub(1));
                (self.top.clamped(lines, height), Some(line))
            }
        }
    }

    /// The selection after a movement; without one, the first step begins at the last line.
    #[must_use]
    pub fn after_action(self, action: Action, lines: &impl WrappingLines, height: usize) -> Self {
        let Some(last) = lines.count().checked_sub(1) else { return self };
        let (top, line) = self.position(lines, height);
        let far = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1);
        let at = line.unwrap_or(last);
        let (line, top) = match action {
            Action::Down | Action::PageDown if line.is_none() => return self,
            Action::Up | Action::Left if line.is_none() => in_view(lines, at, top, height),
            Action::Up | Action::Left if at == top.line && top.row > 0 => {
                (at, top.step(-1, lines, height))
            }
            Action::Up | Action::Left => in_view(lines, at.saturating_sub(1), top, height),
            Action::Down | Action::Right if ends_below(lines, at, top, height) => {
                (at, top.step(1, lines, height))
            }
            Action::Down | Action::Right => in_view(lines, (at + 1).min(last), top, height),
            Action::PageUp | Action::PageDown => {
                let by = if action == Action::PageUp { -far } else { far };
                let top = top.step(by, lines, height);
                let line = if by < 0 { top.line } else { last_in(lines, top, height) };
                (line, top)
            }
            Action::Top => (0, Scroll::default()),
            Action::Bottom => return Self { line: None, ..self },
            _ => return self,
        };
        Self { line: Some(line), top }
    }

    /// Scrolls the window as a wheel does; past the end it follows the newest again.
    #[must_use]
    pub fn after_wheel(self, by: isize, lines: &impl WrappingLines, height: usize) -> Self {
        let (top, _) = self.position(lines, height);
        let end = Scroll::end(lines, height);
        let top = top.step(by, lines, height);
        let line = (by < 0 || top < end).then(|| last_in(lines, top, height));
        Self { line, top }
    }

    /// Selects a line; the window scrolls no more than needed.
    #[must_use]
    pub fn select(self, line: usize, lines: &impl WrappingLines, height: usize) -> Self {
        let (top, _) = self.position(lines, height);
        let (line, top) = in_view(lines, line, top, height);
        Self { line: Some(line), top }
    }

    /// Selects the line in this row of the window, if there is one.
    #[must_use]
    pub fn after_click(self, row: usize, lines: &impl WrappingLines, height: usize) -> Self {
        let (top, _) = self.position(lines, height);
        let mut left = row + top.row;
        let hit = (top.line..lines.count()).find(|at| {
            let rows = lines.rows(*at);
            let here = left < rows;
            left = left.saturating_sub(rows);
            here
        });
        hit.map_or(self, |line| Self { line: Some(line), top })
    }
}

/// Whether part of a line is below the window.
fn ends_below(lines: &impl WrappingLines, line: usize, top: Scroll, height: usize) -> bool {
    let before: usize = (top.line..line).map(|at| lines.rows(at)).sum();
    before + lines.rows(line) > top.row + height
}

/// The last line that begins in the window.
fn last_in(lines: &impl WrappingLines, top: Scroll, height: usize) -> usize {
    let mut rows = 0usize;
    let mut line = top.line;
    while line + 1 < lines.count() {
        rows += lines.rows(line);
        if rows.saturating_sub(top.row) >= height {
            break;
        }
        line += 1;
    }
    line
}

/// The line, and the window scrolled no more than needed to show the whole line, or its start.
fn in_view(lines: &impl WrappingLines, line: usize, top: Scroll, height: usize) -> (usize, Scroll) {
    let start = Scroll { line, row: 0 };
    if start < top || line - top.line > height || lines.rows(line) >= height {
        return (line, start.clamped(lines, height));
    }
    let rows: usize = (top.line..=line).map(|at| lines.rows(at)).sum();
    let over = rows.saturating_sub(top.row).saturating_sub(height);
    (line, top.step(isize::try_from(over).unwrap_or(0), lines, height))
}

/// A list in a pane whose rows stay where they are, with one of them in view: the selected one, or the one that the
/// run is at.
#[derive(Clone, Debug)]
pub struct ListPane {
    /// The area of the rows.
    pub area: Rect,
    /// The rows in view, by index.
    pub window: Range<usize>,
    pub len: usize,
}

impl ListPane {
    /// A list in this area, with the row `shown` in view.
    pub fn new(area: Rect, len: usize, shown: usize) -> Self {
        let height = usize::from(area.height);
        let start = window_start(shown, len, height);
        Self { area, window: start..(start + height).min(len), len }
    }

    /// The rows in view, each with its area.
    pub fn rows(&self) -> impl Iterator<Item = (usize, Rect)> {
        self.window.clone().zip(0..).map(|(row, nth)| (row, line(self.area, nth)))
    }

    /// The row at a row of the screen.
    pub fn row_at(&self, y: u16) -> Option<usize> {
        self.window.clone().nth(usize::from(y.checked_sub(self.area.y)?))
    }

    /// The rows in view, such as `1-11 of 12`; empty if all are.
    pub fn range_text(&self) -> String {
        part_in_view(&self.window, self.len)
    }
}

/// The selected row and the first row in view, in a list that grows at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCursor {
    /// The selected row; `None` follows the newest.
    pub cursor: Option<usize>,
    /// The first row in view, once the operator has scrolled.
    pub top: usize,
}

impl RowCursor {
    /// The rows in a window of this height.
    pub fn window(self, len: usize, height: usize) -> Range<usize> {
        if height == 0 {
            return 0..0;
        }
        let last = len.saturating_sub(height);
        let start = match self.cursor {
            None => last,
            Some(cursor) => {
                let row = cursor.min(len.saturating_sub(1));
                self.top.clamp((row + 1).saturating_sub(height), row).min(last)
            }
        };
        start..(start + height).min(len)
    }

    /// The selected row, or the newest if none is selected.
    pub fn row(self, len: usize) -> Option<usize> {
        let last = len.checked_sub(1)?;
        Some(self.cursor.map_or(last, |cursor| cursor.min(last)))
    }

    /// The selection after a movement.
    #[must_use]
    pub fn after_action(self, action: Action, len: usize, height: usize) -> Self {
        let Some(row) = self.row(len) else { return self };
        let page = height.saturating_sub(1).max(1);
        let row = match action {
            Action::Down | Action::PageDown if self.cursor.is_none() => return self,
            // The first step selects the newest row.
            Action::Up if self.cursor.is_none() => row,
            Action::Up => row.saturating_sub(1),
            Action::Down => row + 1,
            Action::PageUp => row.saturating_sub(page),
            Action::PageDown => row + page,
            Action::Top => 0,
            Action::Bottom => return Self::default(),
            _ => return self,
        };
        self.select(row.min(len - 1), len, height)
    }

    /// Selects a row; the window scrolls no more than needed.
    #[must_use]
    pub fn select(self, row: usize, len: usize, height: usize) -> Self {
        let top = self.window(len, height).start;
        let moved = Self { cursor: Some(row), top };
        Self { top: moved.window(len, height).start, ..moved }
    }

    /// Scrolls the window as a wheel does; the selection stays within it. Past the end the list
    /// follows the newest again.
    #[must_use]
    pub fn after_wheel(self, by: isize, len: usize, height: usize) -> Self {
        let Some(row) = self.row(len) else { return self };
        let window = self.window(len, height);
        if by > 0 && (self.cursor.is_none() || window.end >= len) {
            return Self::default();
        }
        let top = window.start.saturating_add_signed(by).min(len.saturating_sub(height));
        let last = (top + height).saturating_sub(1).max(top);
        Self { cursor: Some(row.clamp(top, last)), top }
    }
}

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

    /// The last column, which takes the remaining width.
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
pub(super) fn head_row(rows: Rect) -> Rect {
    Rect { y: rows.y.saturating_sub(1), height: 1, ..rows }
}

/// Paints the background of a selected row.
pub(super) fn row_style(cx: &DrawContext, area: Rect, selected: bool, buf: &mut Buffer) {
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
pub(super) fn row_or_blank<'a>(
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
pub(super) fn pane_row<'a>(
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
pub(super) fn mark_or_blank(cx: &DrawContext, pen: &mut Pen, selected: bool) {
    let mark = if selected { cx.glyphs.symbol(Glyph::Selected) } else { " " };
    pen.put(mark, cx.theme.style(StyleRole::Key));
}

/// The rows in view, such as `1-11 of 12`; empty if all are.
pub(crate) fn part_in_view(window: &Range<usize>, count: usize) -> String {
    match window.is_empty() || window.len() >= count {
        true => String::new(),
        false => range(window.start, window.len(), count),
    }
}

/// The rows in view, such as `1-11 of 12`.
pub(crate) fn range(first: usize, rows: usize, count: usize) -> String {
    format!("{}-{} of {count}", first + 1, (first + rows).min(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_moves_only_as_needed() {
        assert_eq!(keep_in_view(0, 4, 5, 100), 0);
        assert_eq!(keep_in_view(0, 5, 5, 100), 1);
        assert_eq!(keep_in_view(10, 9, 5, 100), 9);
        assert_eq!(keep_in_view(10, 12, 5, 100), 10);
        assert_eq!(keep_in_view(98, 99, 5, 100), 95);
        assert_eq!(keep_in_view(7, 0, 0, 0), 0);
    }

    #[test]
    fn a_list_moves_on_by_windows() {
        assert_eq!(window_start(3, 9, 4), 0);
        assert_eq!(window_start(4, 9, 4), 4);
        assert_eq!(window_start(8, 9, 4), 5);
        assert_eq!(window_start(2, 3, 4), 0);
        assert_eq!(window_start(2, 3, 0), 0);
    }

    #[test]
    fn headings_cannot_be_selected() {
        let choices = [1, 2, 4];
        let mut list = ListState { selected: 2, top: 0 };
        assert!(list.on_move(Action::Down, &choices, 9));
        assert_eq!((list.selected, list.select(3, &choices)), (4, None));
        assert_eq!((list.select(1, &choices), list.select(1, &choices)), (Some(false), Some(true)));
        assert!(!list.on_move(Action::Down, &[], 9) && !list.on_move(Action::Open, &choices, 9));
        list.selected = 4;
        list.arrange(5, 2);
        assert_eq!(list.top, 3);
        list.scroll(true, 5, 2);
        assert_eq!(list, ListState { selected: 4, top: 2 });
    }

    #[test]
    fn new_rows_keep_moved_window() {
        let rows = RowCursor::default();
        assert_eq!(rows.window(100, 10), 90..100);
        let rows = rows.after_action(Action::PageUp, 100, 10);
        assert_eq!((rows.cursor, rows.window(100, 10)), (Some(90), 90..100));
        let rows = rows.after_action(Action::PageUp, 100, 10);
        assert_eq!((rows.cursor, rows.window(100, 10)), (Some(81), 81..91));
        assert_eq!(rows.window(500, 10), 81..91, "new rows do not scroll the window");
        assert_eq!(rows.after_action(Action::Bottom, 500, 10).window(500, 10), 490..500);
        assert_eq!(RowCursor::default().after_action(Action::Up, 0, 10), RowCursor::default());
        assert_eq!(rows.window(0, 10), 0..0);
    }

    #[test]
    fn wheel_moves_window_and_follows_end() {
        let up = RowCursor::default().after_wheel(-3, 20, 10);
        assert_eq!((up.cursor, up.window(20, 10)), (Some(16), 7..17));
        let down = up.after_wheel(3, 20, 10).after_wheel(3, 20, 10);
        assert_eq!(down, RowCursor::default());
        assert_eq!(RowCursor::default().after_wheel(-3, 5, 10).window(5, 10), 0..5);
    }
}
