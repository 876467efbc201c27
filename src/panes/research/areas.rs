//! The areas inside the panes of research. Pure geometry, so that a click finds its row.

use ratatui::layout::Rect;

use crate::app::run::subject_text::text_area;

/// The areas of the sources pane, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceParts {
    /// The funnel: one row.
    pub funnel: Rect,
    /// The budgets, one or two rows.
    pub budgets: Rect,
    /// The row of column names.
    pub head: Rect,
    /// The rows of sources.
    pub rows: Rect,
}

/// From this width on, the budgets fit in one row.
const ONE_ROW: u16 = 104;

/// Divides the rows of the sources pane.
pub fn source_parts(area: Rect) -> SourceParts {
    let wanted = if area.width >= ONE_ROW { 1 } else { 2 };
    let (funnel, budgets, head) = match area.height {
        0 => (0, 0, 0),
        1..=3 => (u16::from(area.height > 1), 0, 0),
        4..=6 => (1, 0, 1),
        _ => (1, wanted, 1),
    };
    let part = |before: u16, height: u16| Rect { y: area.y + before, height, ..area };
    let above = funnel + budgets + head;
    SourceParts {
        funnel: part(0, funnel),
        budgets: part(funnel, budgets),
        head: part(funnel + budgets, head),
        rows: part(above, area.height - above),
    }
}

/// Rows above the text of a page: title, address, age and trust, a gap.
pub const PAGE_HEAD: u16 = 4;

/// Columns left of the text of a page, for the ids of notes whose quotes begin there.
pub const GUTTER: u16 = 4;

/// The area of a page's text in its pane.
pub fn page_text(area: Rect) -> Rect {
    let area = text_area(area);
    let head = match area.height {
        10.. => PAGE_HEAD,
        6..10 => 2,
        3..6 => 1,
        _ => 0,
    };
    let gutter = if area.width >= 24 { GUTTER } else { 0 };
    Rect {
        x: area.x + gutter,
        y: area.y + head,
        width: area.width - gutter,
        height: area.height - head,
    }
}
