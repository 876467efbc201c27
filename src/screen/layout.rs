//! The geometry of the screen: its parts, windows, frames, rows and tabs. Drawing and mouse hits use
//! the same functions. [`run::layout`](crate::screen::run::layout) lays out a run's page with them.

use ratatui::layout::Rect;

use super::list::{ListState, keep_in_view};

/// The smallest terminal that is supported: columns and rows.
pub const MIN_SIZE: (u16, u16) = (60, 16);

/// Whether this area is too small for the dashboard.
pub fn too_small(area: Rect) -> bool {
    area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1
}

/// The parts that every screen has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenParts {
    /// Two header rows.
    pub header: Rect,
    /// The area of the screen's own contents.
    pub body: Rect,
    /// The rows in which the program tells what to do; mostly none.
    pub strip: Rect,
    /// The status row: counts and the latest notice.
    pub status: Rect,
    /// The key row.
    pub keys: Rect,
}

impl ScreenParts {
    /// Cuts an area into its parts, without a strip.
    pub fn split(area: Rect) -> Self {
        Self::with_strip(area, 0)
    }

    /// Cuts an area into its parts, with so many rows for the strip.
    pub fn with_strip(area: Rect, strip: u16) -> Self {
        let strip = strip.min(area.height.saturating_sub(4));
        let row = |y: u16, height: u16| Rect::new(area.x, y, area.width, height).intersection(area);
        let bottom = area.bottom();
        let header = row(area.y, 2);
        Self {
            header,
            body: row(header.bottom(), area.height.saturating_sub(4 + strip)),
            strip: row(bottom.saturating_sub(2 + strip).max(area.y), strip),
            status: row(bottom.saturating_sub(2).max(area.y), 1),
            keys: row(bottom.saturating_sub(1).max(area.y), 1),
        }
    }
}

/// A window of at most this size in the middle of an area.
pub fn centred(area: Rect, cols: u16, rows: u16) -> Rect {
    let (cols, rows) = (cols.min(area.width), rows.min(area.height));
    Rect::new(area.x + (area.width - cols) / 2, area.y + (area.height - rows) / 2, cols, rows)
}

/// The parts of a window with a list. A drawer is at the lower edge of an area: the rows above it stay
/// visible, so that the operator sees the effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawerParts {
    /// All of it, border included.
    pub window: Rect,
    /// The rows to choose from.
    pub list: Rect,
    /// The note on the selected line: at the right of the list, or below it in a narrow area.
    pub note: Rect,
    /// The first line in view.
    pub top: usize,
}

/// Maximum width of a drawer's list with its note at the right, in columns.
const DRAWER_LIST: u16 = 60;
/// From this width on, the note of a drawer is at the right of its list.
const DRAWER_WIDE: u16 = 70;

/// The parts of a window with a line to type into, and a list of what matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchParts {
    /// All of it, border included.
    pub window: Rect,
    /// The line with the typed text.
    pub query: Rect,
    pub list: Rect,
    /// Two rows at the bottom.
    pub note: Rect,
}

impl SearchParts {
    pub fn split(window: Rect) -> Self {
        let inner = inside(window);
        let inner =
            Rect { x: inner.x + inner.width.min(1), width: inner.width.saturating_sub(2), ..inner };
        let row = |y: u16, height: u16| Rect { y, height, ..inner }.intersection(inner);
        let note_rows = 2.min(inner.height.saturating_sub(4));
        let list = inner.height.saturating_sub(2 + note_rows);
        Self {
            window,
            query: row(inner.y, 1),
            list: row(inner.y + inner.height.min(2), list),
            note: row(inner.bottom() - note_rows, note_rows),
        }
    }
}

impl DrawerParts {
    /// A drawer for `lines` lines of `line_rows` rows each, and a note; it takes at most half of the
    /// area.
    pub fn split(area: Rect, state: ListState, lines: usize, line_rows: u16, note: u16) -> Self {
        let wanted = u16::try_from(lines).unwrap_or(u16::MAX).max(1).saturating_mul(line_rows);
        let is_wide = area.width >= DRAWER_WIDE;
        let rows = if is_wide { wanted.max(note) } else { wanted.saturating_add(note) };
        let height = rows.saturating_add(2).min(area.height / 2);
        let window = Rect { y: area.bottom() - height, height, ..area };
        let inner = inside(window);
        let (list, note) = if is_wide {
            let width = (inner.width / 2).min(DRAWER_LIST);
            let x = inner.x + width + 1;
            let note = Rect { x, width: inner.right().saturating_sub(x), ..inner };
            (Rect { width, ..inner }, note)
        } else {
            let note = note.min(inner.height / 2);
            let list = Rect { height: inner.height - note, ..inner };
            (list, Rect { y: list.bottom(), height: note, ..inner })
        };
        let shown = usize::from(list.height / line_rows);
        Self { window, list, note, top: keep_in_view(0, state.selected, shown, lines) }
    }
}

/// Whether a cell lies in an area.
pub fn hits(area: Rect, col: u16, row: u16) -> bool {
    (area.left()..area.right()).contains(&col) && (area.top()..area.bottom()).contains(&row)
}

/// The terminal's size in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

impl Size {
    /// The whole screen.
    pub fn area(self) -> Rect {
        Rect::new(0, 0, self.cols, self.rows)
    }
    /// The area without header, status row and key row.
    pub fn body(self) -> Rect {
        ScreenParts::split(self.area()).body
    }
}

/// The area inside a border; empty where there is no room.
pub fn inside(frame: Rect) -> Rect {
    if frame.width < 2 || frame.height < 2 {
        return Rect { width: 0, height: 0, ..frame };
    }
    Rect::new(frame.x + 1, frame.y + 1, frame.width - 2, frame.height - 2)
}

/// The inside of a frame, padded by a blank on both sides if there is room.
pub fn padded(frame: Rect) -> Rect {
    let inside = inside(frame);
    match inside.width {
        12.. => Rect { x: inside.x + 1, width: inside.width - 2, ..inside },
        _ => inside,
    }
}

/// The nth line of an area; empty if it is outside.
pub fn line(area: Rect, nth: u16) -> Rect {
    let height = u16::from(nth < area.height);
    Rect { y: area.y.saturating_add(nth.min(area.height)), height, ..area }
}

/// The area below its first `rows` rows.
pub fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

/// The area of each tab in a row of tabs. A tab is a blank, a digit, a blank, the name, a blank.
pub fn tabs<'a>(row: Rect, names: impl IntoIterator<Item = &'a str>) -> Vec<Rect> {
    let mut x = row.x;
    let mut tabs = Vec::new();
    for name in names {
        let width = u16::try_from(name.len() + 4).unwrap_or(u16::MAX);
        let tab = Rect { x, width, ..row }.intersection(row);
        x = x.saturating_add(width);
        tabs.push(tab);
    }
    tabs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_inside_at_every_size() {
        for cols in 0..=90 {
            for rows in 0..=40 {
                let area = Rect::new(0, 0, cols, rows);
                let ScreenParts { header, body, strip, status, keys } =
                    ScreenParts::with_strip(area, 2);
                let drawer = DrawerParts::split(area, ListState::default(), 7, 1, 9);
                let DrawerParts { window, list, note, .. } = drawer;
                let drawer = [window, list, note];
                let parts = [header, body, strip, status, keys, centred(area, 40, 10)];
                for part in parts.into_iter().chain(drawer) {
                    assert_eq!(part.intersection(area), part, "{part:?} in {area:?}");
                }
                if !too_small(area) {
                    assert_eq!(header.height + body.height + 2 + status.height + keys.height, rows);
                    assert_eq!((body.bottom(), strip.bottom()), (strip.y, status.y));
                    let size = Size { cols, rows: rows - 2 };
                    assert_eq!(size.body(), body, "pages are laid out without the strip");
                }
            }
        }
    }
}
