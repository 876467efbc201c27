//! The panes of a run's page: their positions, frames, titles and tabs, and which of them is
//! focused.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::inspector::{CalleeKind, Tab};
use super::views::{PaneTitle, View};
use super::{RunPage, events};
use crate::screen::DrawContext;
use crate::screen::frame::Borders;
use crate::screen::layout::{Size, hits, inside, padded, tabs};
use crate::screen::text::{Pen, on_border};
use crate::screen::theme::StateSign;
use crate::screen::widgets::put_sign;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

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
pub enum RowSize {
    /// The lower panes get as many rows as they have content: one for each seat, or tool.
    Content(usize),
    /// Texts get more rows than the events behind them.
    Texts,
}

/// How a view wants its panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneSizes {
    pub rows: RowSize,
    /// Columns of the first pane, where the second is next to it.
    pub first: u16,
    /// Columns of the third pane, where the fourth is next to it.
    pub third: u16,
    /// How the panes of a run that has ended share their place, if other than above.
    pub ended: Option<EndedSize>,
}

/// How the panes of a run that has ended share their place, where all are shown: in two columns, each
/// divided on its own, so that the outcome gets the height that the picture does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSize {
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
    pub fn for_page(page: Rect, wish: PaneSizes, focus: PaneFocus) -> Areas {
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

    /// The same with the areas of two panes exchanged, for a view that shows a pane of another view at
    /// another place.
    pub(crate) fn swapped(&self, one: Pane, other: Pane) -> Self {
        let mut areas = *self;
        areas.panes.swap(one as usize, other as usize);
        areas
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

pub fn inspector_tab_at(row: Rect, asks: CalleeKind, col: u16) -> Option<Tab> {
    let places = tabs(row, Tab::names(asks));
    Tab::ALL.into_iter().zip(places).find(|(_, tab)| hits(*tab, col, row.y)).map(|(tab, _)| tab)
}

/// Rows that seats around a table need.
const TABLE: u16 = 13;
/// Minimum rows of a useful list of events.
const LIST: u16 = 4;

/// Inner rows of the three places, from top to bottom: `rows` excludes the four lines.
fn heights(rows: u16, wish: RowSize) -> [u16; 3] {
    let content = match wish {
        RowSize::Texts => return text_heights(rows),
        RowSize::Content(content) => u16::try_from(content).unwrap_or(u16::MAX),
    };
    let middle = content.saturating_add(2).max(4).min(rows.saturating_sub(TABLE + LIST).max(4));
    let left = rows.saturating_sub(middle);
    let lower = (left.saturating_sub(10) / 3).clamp(LIST, 12).min(left);
    [left - lower, middle, lower]
}

/// The inner rows of the three places, if texts get more rows than the events behind them.
fn text_heights(rows: u16) -> [u16; 3] {
    let lower = (rows / 5).clamp(LIST, 10);
    let left = rows - lower;
    let upper = (left * 4).div_ceil(7);
    [upper, left - upper, lower]
}

fn wide(area: Rect, wish: PaneSizes) -> [Option<Rect>; 5] {
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
fn pair(frame: Rect, wish: PaneSizes, focus: Pane) -> [Option<Rect>; 5] {
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

fn stacked(area: Rect, wish: PaneSizes, focus: PaneFocus) -> [Option<Rect>; 5] {
    let [upper, middle, lower] = heights(area.height - 4, wish.rows);
    let row = |y: u16, height: u16| Some(Rect::new(area.x + 1, y, area.width - 2, height));
    let mut panes = [None; 5];
    panes[focus.upper as usize] = row(area.y + 1, upper);
    panes[focus.middle as usize] = row(area.y + upper + 2, middle);
    panes[Pane::Events as usize] = row(area.y + upper + middle + 3, lower);
    panes
}

/// The panes of a run's page, in the order of their numbers. The view of the page says what each shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pane {
    /// The overview: the seats, the waterfall, the breakers.
    First,
    /// The selected or current item; after the end, the outcome of the run.
    Second,
    /// Lower left: stances, results, bulkheads.
    Third,
    /// Lower right: the gateway, the slots, the retries.
    Fourth,
    /// The log of events.
    Events,
}

impl Pane {
    /// Every pane, in the order of their numbers.
    pub const ALL: [Pane; 5] = [Self::First, Self::Second, Self::Third, Self::Fourth, Self::Events];

    /// Its number on screen, from 1.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    pub fn from_number(number: u8) -> Option<Pane> {
        Self::ALL.into_iter().find(|pane| pane.number() == number)
    }

    /// The pane this many further on; after the last comes the first.
    pub fn next(self, by: usize) -> Pane {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// The focus on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneFocus {
    pub focus: Pane,
    /// Whether the focused pane is zoomed, that is shown alone.
    pub zoom: bool,
    /// The first or the second pane, whichever was focused last.
    pub upper: Pane,
    /// The third or the fourth pane, whichever was focused last.
    pub middle: Pane,
    /// Whether the operator is dragging, from the scrubber.
    pub(super) dragging: bool,
    /// Whether the operator has moved the focus.
    pub(super) is_moved: bool,
}

impl Default for PaneFocus {
    fn default() -> Self {
        let (upper, middle) = (Pane::First, Pane::Third);
        Self { focus: upper, zoom: false, upper, middle, dragging: false, is_moved: false }
    }
}

impl PaneFocus {
    /// Focuses a pane; returns whether another one was focused.
    pub(super) fn focus_on(&mut self, pane: Pane) -> bool {
        let changed = self.focus != pane;
        self.is_moved = true;
        self.focus = pane;
        match pane {
            Pane::First | Pane::Second => self.upper = pane,
            Pane::Third | Pane::Fourth => self.middle = pane,
            Pane::Events => {}
        }
        changed
    }
}

/// Draws the frames with their titles, and the tabs if one pane is shown at a time.
pub(crate) fn render(
    page: &RunPage,
    view: &dyn View,
    cx: &DrawContext,
    area: Rect,
    areas: &Areas,
    buf: &mut Buffer,
) {
    let mut borders = Borders::new(area);
    let shown = || Pane::ALL.into_iter().filter(|pane| areas.pane(*pane).is_some());
    for pane in shown().filter(|pane| *pane != page.focus()) {
        if let Some(frame) = areas.frame(pane) {
            borders.frame(frame, StyleRole::Border);
        }
    }
    if let Some(frame) = areas.frame(page.focus()) {
        borders.frame(frame, StyleRole::BorderFocus);
    }
    borders.paint(cx, buf);
    for pane in shown() {
        let Some((inside, frame)) = areas.pane(pane).zip(areas.frame(pane)) else { continue };
        title(page, view, cx, pane, areas.shape, (inside, frame), buf);
    }
    let names = page.views.tabs(page);
    if matches!(areas.shape, PageShape::Single | PageShape::Pair) && areas.tabs.height > 0 {
        let places = tabs(areas.tabs, names);
        for ((pane, name), place) in Pane::ALL.into_iter().zip(names).zip(places) {
            let role = if pane == page.focus() { StyleRole::Button } else { StyleRole::Dim };
            let text = format!(" {} {} ", pane.number(), name);
            Pen::new(buf, place, cx.glyphs).put(&text, cx.theme.style(role));
        }
    }
}

/// Draws a pane's number, title and right-aligned note on the upper line of its frame.
fn title(
    page: &RunPage,
    view: &dyn View,
    cx: &DrawContext,
    pane: Pane,
    shape: PageShape,
    (inside, frame): (Rect, Rect),
    buf: &mut Buffer,
) {
    let row = Rect {
        x: frame.x + 2,
        width: frame.width.saturating_sub(4),
        height: frame.height.min(1),
        ..frame
    };
    let focused = page.focus() == pane;
    let style = |role| on_border(cx.theme.style(role));
    let plain = style(if focused { StyleRole::Title } else { StyleRole::Text });
    let dim = style(StyleRole::Dim);
    let number = style(if focused { StyleRole::Key } else { StyleRole::Dim });
    let PaneTitle { text, sign, notes, aside } = match pane {
        Pane::Events => PaneTitle { aside: events::aside(page, cx.glyphs), ..PaneTitle::default() },
        _ => view.title(page, pane, cx, inside),
    };
    let width = columns(&aside) as u16;
    let aside_fits = width > 0 && row.width >= width + 24;
    let mut pen = Pen::new(buf, row, cx.glyphs);
    let keep = if aside_fits { width + 3 } else { 1 };
    let end = row.right().saturating_sub(keep);
    pen.put(" ", dim).put(&format!("{} ", pane.number()), number);
    let left = |pen: &Pen| end.saturating_sub(pen.x());
    if pane == Pane::Events {
        events::title(page, cx, &mut pen, end, plain);
    } else {
        let state = sign.map_or(0, |sign| columns(sign.word) as u16 + 3);
        let room = left(&pen).saturating_sub(state);
        pen.put_within(&text, room, plain);
        if let Some(sign) = sign {
            pen.put(" ", plain);
            put_sign(cx, &mut pen, StateSign { style: on_border(sign.style), ..sign });
        }
        for note in notes {
            if columns(&note) <= usize::from(left(&pen)) {
                pen.put(&note, dim);
            }
        }
    }
    pen.put(" ", dim);
    if shape == PageShape::Stacked {
        // The other pane in the same place.
        let other = match pane {
            Pane::First => Some(Pane::Second),
            Pane::Second => Some(Pane::First),
            Pane::Third => Some(Pane::Fourth),
            Pane::Fourth => Some(Pane::Third),
            Pane::Events => None,
        };
        if let Some(other) = other {
            let text = format!(" {} {} ", other.number(), page.views.tabs(page)[other as usize]);
            if pen.fits(columns(&text) + 2) {
                pen.glyphs(Glyph::Horizontal, 1, cx.theme.style(StyleRole::Border)).put(&text, dim);
            }
        }
    }
    if aside_fits {
        pen.advance_to(row.right() - width - 2).put(" ", dim).put(&aside, dim).put(" ", dim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: PaneSizes =
        PaneSizes { rows: RowSize::Content(4), first: 68, third: 48, ended: None };

    fn focus(zoom: bool) -> PaneFocus {
        PaneFocus { focus: Pane::Events, zoom, ..PaneFocus::default() }
    }

    #[test]
    fn every_pane_fits_its_page() {
        let rows = [1, 4, 9, 60].map(RowSize::Content).into_iter().chain([RowSize::Texts]);
        let wishes: Vec<PaneSizes> = rows
            .flat_map(|rows| {
                [(66, 30), (130, 60), (0, 0), (u16::MAX, u16::MAX)].map(|(first, third)| {
                    PaneSizes {
                        rows,
                        first,
                        third,
                        ended: (first == 130).then_some(EndedSize {
                            left: 70,
                            picture: 7,
                            outcome: 60,
                            rows: 9,
                        }),
                    }
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
}
