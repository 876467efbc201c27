//! The scroll position in a text whose lines wrap: the first line and row in view. Only visible
//! lines are wrapped, and a change of width hardly moves the position.

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
        fn a_window_is_full_where_there_is_enough(
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
