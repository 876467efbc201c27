//! The selected line and the scroll position in a text whose lines wrap. A line higher than the
//! window is scrolled to its end before the next one is selected.

use super::scroll::{Scroll, WrappingLines};
use crate::app::action::Action;

/// The selected line, and the first row in view once the operator has scrolled.
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
