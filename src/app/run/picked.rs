//! Which line of a text of lines that wrap is selected, and where its window stands: a line that is
//! higher than the window is read to its end before the next is taken.

use super::scroll::{Lines, Scroll};
use crate::app::action::Action;

/// The line that is selected, and the first row in view once the reader has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Picked {
    /// The line that is selected; `None`: the pane follows what is new.
    pub line: Option<usize>,
    /// The line and row that stand first.
    pub top: Scroll,
}

impl Picked {
    /// The line and row that stand first in a window of this height, and the line that is selected.
    /// Without a selection the window stands at the end.
    pub fn at(self, lines: &impl Lines, height: usize) -> (Scroll, Option<usize>) {
        match self.line {
            None => (Scroll::end(lines, height), None),
            Some(line) => {
                let line = line.min(lines.count().saturating_sub(1));
                (self.top.within(lines, height), Some(line))
            }
        }
    }

    /// What a movement comes to; the last line is where the first step begins.
    #[must_use]
    pub fn moved(self, action: Action, lines: &impl Lines, height: usize) -> Self {
        let Some(last) = lines.count().checked_sub(1) else { return self };
        let (top, line) = self.at(lines, height);
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

    /// Moves the window as a wheel does; past the end it follows again.
    #[must_use]
    pub fn wheeled(self, by: isize, lines: &impl Lines, height: usize) -> Self {
        let (top, _) = self.at(lines, height);
        let end = Scroll::end(lines, height);
        let top = top.step(by, lines, height);
        let line = (by < 0 || top < end).then(|| last_in(lines, top, height));
        Self { line, top }
    }

    /// Selects a line; the window moves no more than it must.
    #[must_use]
    pub fn select(self, line: usize, lines: &impl Lines, height: usize) -> Self {
        let (top, _) = self.at(lines, height);
        let (line, top) = in_view(lines, line, top, height);
        Self { line: Some(line), top }
    }

    /// Selects the line that stands in this row of the window, if one does.
    #[must_use]
    pub fn hit(self, row: usize, lines: &impl Lines, height: usize) -> Self {
        let (top, _) = self.at(lines, height);
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

/// Whether a line goes on below the window.
fn ends_below(lines: &impl Lines, line: usize, top: Scroll, height: usize) -> bool {
    let before: usize = (top.line..line).map(|at| lines.rows(at)).sum();
    before + lines.rows(line) > top.row + height
}

/// The last line that begins in the window.
fn last_in(lines: &impl Lines, top: Scroll, height: usize) -> usize {
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

/// The line, and the window moved no more than it must so that the line is seen whole, or from its
/// start.
fn in_view(lines: &impl Lines, line: usize, top: Scroll, height: usize) -> (usize, Scroll) {
    let start = Scroll { line, row: 0 };
    if start < top || line - top.line > height || lines.rows(line) >= height {
        return (line, start.within(lines, height));
    }
    let rows: usize = (top.line..=line).map(|at| lines.rows(at)).sum();
    let over = rows.saturating_sub(top.row).saturating_sub(height);
    (line, top.step(isize::try_from(over).unwrap_or(0), lines, height))
}
