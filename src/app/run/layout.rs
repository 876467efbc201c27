//! The positions of the panes of a run's page, so that clicks, the wheel and the page keys know
//! which pane they are for. Pure geometry.

use ratatui::layout::Rect;

pub use super::pane_focus::{Pane, PaneFocus};

use super::inspect::target::{CalleeKind, Tab};
use crate::app::layout::{Size, hits, inside, padded, tabs};

/// Rows above the page: the run's title, then its progress.
const ABOVE: u16 = 2;
/// Rows below the page: counts and messages, then the keys.
const BELOW: u16 = 2;

/// From this page width on, panes are side by side.
const WIDE: u16 = 120;
/// From this page width on, panes are stacked, two sharing a place.
const STACKED: u16 = 84;
/// From this page width on, panes of a page of `HIGH` rows are stacked.
const NARROW: u16 = 60;
/// From this page height on, all panes or three of them are shown.
const TALL: u16 = 26;
/// From this page height on, panes are stacked on a narrow page.
const HIGH: u16 = 32;
/// From this page height on, a wide page shows two panes.
const SHORT: u16 = 14;

/// From this page height on, the goal of the run has a row.
const WITH_GOAL: u16 = 16;

/// How the rows of a page are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWish {
    /// The lower panes get as many rows as they have content: one for each seat, or tool.
    Content(usize),
    /// Texts get more rows than the events behind them.
    Texts,
}

/// How a view wants its panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneWish {
    /// How the rows are divided.
    pub rows: RowWish,
    /// Columns of the first pane, where the second is next to it.
    pub first: u16,
    /// Columns of the third pane, where the fourth is next to it.
    pub third: u16,
    /// How the panes of a run that has ended share their place, if other than above.
    pub ended: Option<EndedWish>,
}

/// How the panes of a run that has ended share their place, where all are shown: in two columns, each
/// divided on its own, so that the outcome gets the height that the picture does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedWish {
    /// Columns of the first and the third pane.
    pub left: u16,
    /// Rows that the first pane needs: the picture.
    pub picture: u16,
    /// Rows that the second pane needs: the outcome.
    pub outcome: u16,
    /// Rows that the longer of the two columns needs; the events get the others.
    pub rows: u16,
}

/// Columns inside the frames of two panes side by side, which take three lines.
pub fn inner_columns(page: Rect) -> u16 {
    page.width.saturating_sub(3)
}

/// How many panes are shown at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageShape {
    /// All panes, side by side.
    Wide,
    /// Three places, stacked; two of them hold two panes each and show one.
    Stacked,
    /// The focused pane and the one that belongs to it, side by side; of the events, one.
    Pair,
    /// One pane.
    Single,
}

/// The areas of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    /// How many panes are shown.
    pub shape: PageShape,
    /// The row of tabs, if one pane is shown at a time.
    pub tabs: Rect,
    /// The inside of each pane that is shown, without its frame.
    panes: [Option<Rect>; 5],
    /// The scrubber: a sparkline and marks, two rows.
    pub scrubber: Rect,
    /// The row of the run's goal, if there is room.
    pub goal: Rect,
}

/// The part of the screen for a run's page.
pub fn page(size: Size) -> Rect {
    let height = size.rows.saturating_sub(ABOVE + BELOW);
    Rect::new(0, ABOVE.min(size.rows), size.cols, height)
}

impl Areas {
    /// Lays out the panes of a page.
    pub fn for_page(page: Rect, wish: PaneWish, focus: PaneFocus) -> Areas {
        let tall = page.height >= TALL && !focus.zoom;
        let stacks = match page.width {
            STACKED.. => tall,
            NARROW.. => tall && page.height >= HIGH,
            _ => false,
        };
        let pairs = page.width >= WIDE && page.height >= SHORT && !focus.zoom;
        let goal_rows = u16::from(page.height >= WITH_GOAL);
        let goal = Rect { height: goal_rows, ..page };
        let page = Rect { y: page.y + goal_rows, height: page.height - goal_rows, ..page };
        let scrubber_rows = if page.height >= 8 { 2 } else { 0 };
        let upper = Rect { height: page.height - scrubber_rows, ..page };
        let scrubber = Rect { y: upper.bottom(), height: scrubber_rows, ..page };
        let none = Rect { width: 0, height: 0, ..page };
        let (shape, panes) = if tall && page.width >= WIDE {
            (PageShape::Wide, wide(upper, wish))
        } else if stacks {
            (PageShape::Stacked, stacked(upper, wish, focus))
        } else {
            let tabs_rows = u16::from(upper.height >= 4);
            let frame = Rect { y: upper.y + tabs_rows, height: upper.height - tabs_rows, ..upper };
            let tabs = Rect { height: tabs_rows, ..upper };
            let (shape, panes) = if pairs && focus.focus != Pane::Events {
                (PageShape::Pair, pair(frame, wish, focus.focus))
            } else {
                let mut panes = [None; 5];
                panes[focus.focus as usize] = Some(inside(frame));
                (PageShape::Single, panes)
            };
            return Areas { shape, tabs, panes, scrubber, goal };
        };
        Areas { shape, tabs: none, panes, scrubber, goal }
    }

    /// The inside of a pane, if it is shown.
    pub fn pane(&self, pane: Pane) -> Option<Rect> {
        self.panes.get(pane as usize).copied().flatten()
    }

    /// The frame of a pane, if it is shown. Neighbours share their lines.
    pub fn frame(&self, pane: Pane) -> Option<Rect> {
        self.pane(pane).map(|area| {
            Rect::new(
                area.x.saturating_sub(1),
                area.y.saturating_sub(1),
                area.width + 2,
                area.height + 2,
            )
        })
    }

    /// The pane at this cell; its frame counts as part of it.
    pub fn pane_at(&self, col: u16, row: u16) -> Option<Pane> {
        Pane::ALL
            .into_iter()
            .find(|pane| self.pane(*pane).is_some_and(|area| hits(area, col, row)))
            .or_else(|| {
                let framed =
                    |pane: &Pane| self.frame(*pane).is_some_and(|area| hits(area, col, row));
                Pane::ALL.into_iter().rev().find(framed)
            })
    }
}

/// The pane whose tab is at this column; `names` are those on the tabs.
pub fn tab_at(row: Rect, names: [&str; 5], col: u16) -> Option<Pane> {
    let places = tabs(row, names);
    Pane::ALL.into_iter().zip(places).find(|(_, tab)| hits(*tab, col, row.y)).map(|(pane, _)| pane)
}

/// The part of the scrubber that represents the time of the run.
pub fn scrubber_line(scrubber: Rect) -> Rect {
    /// A blank, a clock and a blank.
    const LEFT: u16 = 7;
    /// A blank, a clock of more than an hour, a blank.
    const RIGHT: u16 = 9;
    let line = Rect { height: scrubber.height.min(1), ..scrubber };
    if scrubber.width < 2 * (LEFT + RIGHT) {
        return line;
    }
    Rect { x: line.x + LEFT, width: line.width - LEFT - RIGHT, ..line }
}

/// The areas of the inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InspectorAreas {
    /// The frame of the summary at the left, if there is room for it.
    pub summary: Option<Rect>,
    /// The frame of the open tab.
    pub frame: Rect,
    /// The tabs, in the top line of that frame.
    pub tabs: Rect,
    /// The text of the open tab.
    pub text: Rect,
}

/// Lays out the inspector in a page.
pub fn inspector(page: Rect) -> InspectorAreas {
    /// Width of the summary's frame.
    const BESIDE: u16 = 36;
    let (beside, frame) = if page.width >= 100 {
        let left = Rect { width: BESIDE, ..page };
        // The two share a line.
        let right = Rect { x: page.x + BESIDE - 1, width: page.width - BESIDE + 1, ..page };
        (Some(left), right)
    } else {
        (None, page)
    };
    let text = padded(frame);
    let tabs = Rect { y: frame.y, height: frame.height.min(1), ..inside(frame) };
    InspectorAreas { summary: beside, frame, tabs, text }
}

/// The tab of the inspector at this column.
pub fn inspector_tab_at(row: Rect, asks: CalleeKind, col: u16) -> Option<Tab> {
    let places = tabs(row, Tab::names(asks));
    Tab::ALL.into_iter().zip(places).find(|(_, tab)| hits(*tab, col, row.y)).map(|(tab, _)| tab)
}

/// Rows that seats around a table need.
const TABLE: u16 = 13;
/// Fewest rows in which the list of events is useful.
const LIST: u16 = 4;

/// Inner rows of the three places, from top to bottom: `rows` excludes the four lines.
fn heights(rows: u16, wish: RowWish) -> [u16; 3] {
    let content = match wish {
        RowWish::Texts => return text_heights(rows),
        RowWish::Content(content) => u16::try_from(content).unwrap_or(u16::MAX),
    };
    let middle = content.saturating_add(2).max(4).min(rows.saturating_sub(TABLE + LIST).max(4));
    let left = rows.saturating_sub(middle);
    let lower = (left / 5).clamp(LIST, 8).min(left);
    [left - lower, middle, lower]
}

/// The rows where what was said deserves more of them than the events behind it.
fn text_heights(rows: u16) -> [u16; 3] {
    let lower = (rows / 5).clamp(LIST, 10);
    let left = rows - lower;
    let upper = (left * 4).div_ceil(7);
    [upper, left - upper, lower]
}

fn wide(area: Rect, wish: PaneWish) -> [Option<Rect>; 5] {
    let [mut upper, middle, mut lower] = heights(area.height - 4, wish.rows);
    if let Some(ended) = wish.ended {
        let spare = (upper + middle).saturating_sub(ended.rows).min(upper.saturating_sub(LIST));
        (upper, lower) = (upper - spare, lower + spare);
    }
    let inner = inner_columns(area);
    let (first, third) = (wish.first.min(inner), wish.third.min(inner));
    // Two panes below each other in a column; `above` rows for the upper one.
    let column = |x: u16, width: u16, above: u16| {
        let below = Rect::new(x, area.y + above + 2, width, upper + middle - above);
        [Some(Rect::new(x, area.y + 1, width, above)), Some(below)]
    };
    let (left, right) = (area.x + 1, |columns: u16| (area.x + columns + 2, inner - columns));
    let [[first, third], [second, fourth]] = match wish.ended {
        Some(ended) => {
            let columns = ended.left.min(inner);
            let most = (upper + middle).saturating_sub(LIST);
            let share = |rows: u16| rows.clamp(LIST.min(most), most);
            let (picture, outcome) = (share(ended.picture), share(ended.outcome));
            // Lines that nearly meet would look like a mistake.
            let picture = if picture.abs_diff(outcome) <= 1 { outcome } else { picture };
            let (x, width) = right(columns);
            [column(left, columns, picture), column(x, width, outcome)]
        }
        None => {
            let [one, _] = column(left, first, upper);
            let [_, three] = column(left, third, upper);
            let ((x, width), (low_x, low_width)) = (right(first), right(third));
            let [two, _] = column(x, width, upper);
            let [_, four] = column(low_x, low_width, upper);
            [[one, three], [two, four]]
        }
    };
    let events = Rect::new(area.x + 1, area.y + upper + middle + 3, area.width - 2, lower);
    [first, second, third, fourth, Some(events)]
}

/// The focused pane and its neighbour, with the columns that they have where all panes are shown.
fn pair(frame: Rect, wish: PaneWish, focus: Pane) -> [Option<Rect>; 5] {
    let (left, right, columns) = match focus {
        Pane::First | Pane::Second => (Pane::First, Pane::Second, wish.first),
        _ => (Pane::Third, Pane::Fourth, wish.third),
    };
    let inner = inner_columns(frame);
    let width = columns.min(inner);
    let inside = inside(frame);
    let mut panes = [None; 5];
    panes[left as usize] = Some(Rect { width, ..inside });
    panes[right as usize] = Some(Rect { x: inside.x + width + 1, width: inner - width, ..inside });
    panes
}

fn stacked(area: Rect, wish: PaneWish, focus: PaneFocus) -> [Option<Rect>; 5] {
    let [upper, middle, lower] = heights(area.height - 4, wish.rows);
    let row = |y: u16, height: u16| Some(Rect::new(area.x + 1, y, area.width - 2, height));
    let mut panes = [None; 5];
    panes[focus.upper as usize] = row(area.y + 1, upper);
    panes[focus.middle as usize] = row(area.y + upper + 2, middle);
    panes[Pane::Events as usize] = row(area.y + upper + middle + 3, lower);
    panes
}

/// The first row in view of a list in a window of this height, so that `row` of `rows` is in view. It
/// moves by whole windows, so that rows keep their place as long as possible.
pub fn window_start(row: usize, rows: usize, height: usize) -> usize {
    if rows <= height || height == 0 {
        return 0;
    }
    (row / height * height).min(rows - height)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: PaneWish =
        PaneWish { rows: RowWish::Content(4), first: 68, third: 48, ended: None };

    fn focus(zoom: bool) -> PaneFocus {
        PaneFocus { focus: Pane::Events, zoom, ..PaneFocus::default() }
    }

    #[test]
    fn every_pane_stands_within_its_page_at_every_size() {
        let rows = [1, 4, 9, 60].map(RowWish::Content).into_iter().chain([RowWish::Texts]);
        let wishes: Vec<PaneWish> = rows
            .flat_map(|rows| {
                [(66, 30), (130, 60), (0, 0), (u16::MAX, u16::MAX)].map(|(first, third)| PaneWish {
                    rows,
                    first,
                    third,
                    ended: (first == 130).then_some(EndedWish {
                        left: 70,
                        picture: 7,
                        outcome: 60,
                        rows: 9,
                    }),
                })
            })
            .collect();
        for cols in 1..=210 {
            for rows in 1..=60 {
                let page = page(Size { cols, rows });
                for wish in &wishes {
                    for zoom in [false, true] {
                        let areas = Areas::for_page(page, *wish, focus(zoom));
                        let mut cells = 0;
                        for pane in Pane::ALL {
                            let Some(area) = areas.pane(pane) else { continue };
                            assert_eq!(area.intersection(page), area, "{pane:?} {cols}x{rows}");
                            cells += area.area();
                        }
                        assert!(cells <= page.area());
                        assert!(areas.pane(Pane::Events).is_some(), "the focused pane is shown");
                        let scrubber = areas.scrubber;
                        assert_eq!(scrubber.intersection(page), scrubber);
                    }
                }
            }
        }
    }

    #[test]
    fn the_shape_goes_by_the_size() {
        let shape =
            |cols, rows| Areas::for_page(page(Size { cols, rows }), WISH, focus(false)).shape;
        assert_eq!(shape(120, 36), PageShape::Wide);
        assert_eq!(shape(200, 50), PageShape::Wide);
        assert_eq!(shape(119, 36), PageShape::Stacked);
        assert_eq!(shape(80, 24), PageShape::Single);
        assert_eq!(shape(80, 50), PageShape::Stacked);
        assert_eq!(shape(80, 35), PageShape::Single);
        assert_eq!(shape(59, 50), PageShape::Single);
        assert_eq!(shape(120, 17), PageShape::Single);
        let upper = PaneFocus::default();
        let areas = Areas::for_page(page(Size { cols: 120, rows: 24 }), WISH, upper);
        assert_eq!(areas.shape, PageShape::Pair);
        let shown: Vec<Pane> =
            Pane::ALL.into_iter().filter(|pane| areas.pane(*pane).is_some()).collect();
        assert_eq!(shown, [Pane::First, Pane::Second]);
    }

    #[test]
    fn a_click_meets_what_it_hits() {
        let areas = Areas::for_page(page(Size { cols: 120, rows: 36 }), WISH, focus(false));
        for pane in Pane::ALL {
            let area = areas.pane(pane).expect("shown");
            assert_eq!(areas.pane_at(area.x, area.y), Some(pane));
            assert_eq!(areas.pane_at(area.right() - 1, area.bottom() - 1), Some(pane));
        }
        assert_eq!(areas.pane_at(0, 0), None);
    }

    #[test]
    fn a_list_moves_on_by_windows() {
        assert_eq!(window_start(3, 9, 4), 0);
        assert_eq!(window_start(4, 9, 4), 4);
        assert_eq!(window_start(8, 9, 4), 5);
        assert_eq!(window_start(2, 3, 4), 0);
        assert_eq!(window_start(2, 3, 0), 0);
    }
}
