//! Selection and scroll position in a list that grows at its end.

use std::ops::Range;

use crate::app::action::Action;

/// The selected row and the first row in view.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_rows_do_not_scroll_a_moved_window() {
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
    fn the_wheel_moves_the_window_and_follows_past_the_end() {
        let up = RowCursor::default().after_wheel(-3, 20, 10);
        assert_eq!((up.cursor, up.window(20, 10)), (Some(16), 7..17));
        let down = up.after_wheel(3, 20, 10).after_wheel(3, 20, 10);
        assert_eq!(down, RowCursor::default());
        assert_eq!(RowCursor::default().after_wheel(-3, 5, 10).window(5, 10), 0..5);
    }
}
