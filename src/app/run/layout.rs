//! Where the panes of a run's page stand, so that a click, a wheel and a page key know what they
//! meet. Pure geometry.

use ratatui::layout::Rect;

use super::face::Face;
use super::inspect::{Asks, Tab};
use crate::app::state::Size;

/// Rows above the page: who and what, then the run's progress.
const ABOVE: u16 = 2;
/// Rows below the page: counts and news, then the keys.
const BELOW: u16 = 2;

/// Columns of a seat in one round: changed, stance, confidence, two blanks.
pub const STANCE: u16 = 9;
/// From this width on, panes stand side by side.
const WIDE: u16 = 120;
/// From this width on, panes stand below each other, two to a place.
const STACKED: u16 = 84;
/// From this height of the page on, more than one pane stands at a time.
const TALL: u16 = 26;

/// The places of a run's page, in the order of their numbers. What stands in them is said by its
/// [`Face`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pane {
    /// The whole at a glance: the seats, the waterfall, the breakers.
    First,
    /// What is selected, or what goes on just now; at the end what the run came to.
    Second,
    /// Below on the left: stances, results, bulkheads.
    Third,
    /// Below on the right: the gateway, the slots, the retries.
    Fourth,
    /// The facts.
    Events,
}

impl Pane {
    /// Every pane.
    pub const ALL: [Pane; 5] = [Self::First, Self::Second, Self::Third, Self::Fourth, Self::Events];

    /// Its number, from 1.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The pane of this number.
    pub fn of(number: u8) -> Option<Pane> {
        Self::ALL.into_iter().find(|pane| pane.number() == number)
    }

    /// The pane this many further on, round and round.
    pub fn next(self, by: usize) -> Pane {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// What decides where the panes stand, beside the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What fills them.
    pub face: Face,
    /// Rows that the panes in the middle have: one for each seat, or tool.
    pub rows: usize,
    /// Columns of the longest name of a seat, with the sign of its flag.
    pub names: usize,
    /// Rounds at most.
    pub rounds: u32,
    /// The pane that is focused.
    pub focus: Pane,
    /// Whether it is shown alone.
    pub zoom: bool,
    /// Of the first and the second pane, the one seen last.
    pub upper: Pane,
    /// Of the third and the fourth pane, the one seen last.
    pub middle: Pane,
}

/// How the panes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All of them, side by side.
    Wide,
    /// Three places below each other; two of them hold two panes, one seen at a time.
    Stacked,
    /// One pane at a time.
    Single,
}

/// Where everything of the page stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    /// How.
    pub shape: Shape,
    /// The row of tabs, where one pane stands at a time.
    pub tabs: Rect,
    /// The inside of each pane that is shown, its frame not counted.
    panes: [Option<Rect>; 5],
    /// Sparkline and marks: two rows.
    pub scrubber: Rect,
}

/// The part of the screen that a run's page fills.
pub fn page(size: Size) -> Rect {
    let height = size.rows.saturating_sub(ABOVE + BELOW);
    Rect::new(0, ABOVE.min(size.rows), size.cols, height)
}

impl Areas {
    /// Places the panes in a page.
    pub fn of(page: Rect, wanted: Wanted) -> Areas {
        let scrubber_rows = if page.height >= 8 { 2 } else { 0 };
        let upper = Rect { height: page.height - scrubber_rows, ..page };
        let scrubber = Rect { y: upper.bottom(), height: scrubber_rows, ..page };
        let none = Rect { width: 0, height: 0, ..page };
        let tall = page.height >= TALL && !wanted.zoom;
        let (shape, panes) = if tall && page.width >= WIDE {
            (Shape::Wide, wide(upper, wanted))
        } else if tall && page.width >= STACKED {
            (Shape::Stacked, stacked(upper, wanted))
        } else {
            let tabs_rows = u16::from(upper.height >= 4);
            let mut panes = [None; 5];
            let frame = Rect { y: upper.y + tabs_rows, height: upper.height - tabs_rows, ..upper };
            panes[wanted.focus as usize] = Some(inside(frame));
            let tabs = Rect { height: tabs_rows, ..upper };
            return Areas { shape: Shape::Single, tabs, panes, scrubber };
        };
        Areas { shape, tabs: none, panes, scrubber }
    }

    /// The inside of a pane, where it is shown.
    pub fn pane(&self, pane: Pane) -> Option<Rect> {
        self.panes.get(pane as usize).copied().flatten()
    }

    /// The frame of a pane, where it is shown. Neighbours share their lines.
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

    /// The pane that stands here, its frame counted.
    pub fn at(&self, col: u16, row: u16) -> Option<Pane> {
        Pane::ALL
            .into_iter()
            .find(|pane| self.pane(*pane).is_some_and(|area| holds(area, col, row)))
            .or_else(|| {
                let framed =
                    |pane: &Pane| self.frame(*pane).is_some_and(|area| holds(area, col, row));
                Pane::ALL.into_iter().rev().find(framed)
            })
    }
}

/// Whether a cell stands in a rectangle.
pub fn holds(area: Rect, col: u16, row: u16) -> bool {
    (area.left()..area.right()).contains(&col) && (area.top()..area.bottom()).contains(&row)
}

/// Where each of some tabs stands in its row: a blank, a digit, a blank, the name, a blank.
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

/// The pane of this face whose tab stands here.
pub fn tab_at(row: Rect, face: Face, col: u16) -> Option<Pane> {
    let places = tabs(row, Pane::ALL.map(|pane| face.tab(pane)));
    Pane::ALL.into_iter().zip(places).find(|(_, tab)| holds(*tab, col, row.y)).map(|(pane, _)| pane)
}

/// The part of the scrubber that stands for the time of the run.
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

/// The parts of the inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InspectorAreas {
    /// The frame of what stands beside the tabs, where there is room.
    pub beside: Option<Rect>,
    /// The frame of the open tab.
    pub frame: Rect,
    /// The tabs, in the upper line of that frame.
    pub tabs: Rect,
    /// The text of the open tab.
    pub text: Rect,
}

/// Places the inspector in a page.
pub fn inspector(page: Rect) -> InspectorAreas {
    /// The summary's frame.
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
    InspectorAreas { beside, frame, tabs, text }
}

/// The inside of a frame, a blank on both sides where there is room for it.
pub fn padded(frame: Rect) -> Rect {
    let inside = inside(frame);
    match inside.width {
        12.. => Rect { x: inside.x + 1, width: inside.width - 2, ..inside },
        _ => inside,
    }
}

/// The tab of the inspector that stands here.
pub fn inspector_tab_at(row: Rect, asks: Asks, col: u16) -> Option<Tab> {
    let places = tabs(row, Tab::words(asks));
    Tab::ALL.into_iter().zip(places).find(|(_, tab)| holds(*tab, col, row.y)).map(|(tab, _)| tab)
}

fn inside(frame: Rect) -> Rect {
    if frame.width < 2 || frame.height < 2 {
        return Rect { width: 0, height: 0, ..frame };
    }
    Rect::new(frame.x + 1, frame.y + 1, frame.width - 2, frame.height - 2)
}

/// The rows that seats around a table need.
const TABLE: u16 = 11;
/// The rows of the list of facts below which it tells little.
const LIST: u16 = 4;

/// The rows of the three places, inside: `rows` is what is left without the four lines.
fn heights(rows: u16, wanted: Wanted) -> [u16; 3] {
    if matches!(wanted.face, Face::Team | Face::Research) {
        return team_heights(rows);
    }
    let wanted = u16::try_from(wanted.rows).unwrap_or(u16::MAX);
    let middle = wanted.saturating_add(2).max(4).min(rows.saturating_sub(TABLE + LIST).max(4));
    let left = rows.saturating_sub(middle);
    let upper = (left * 13 / 20).max(TABLE.min(left.saturating_sub(LIST)));
    [upper, middle, left - upper]
}

/// The same of a team and of research: what is said is worth more rows than the facts behind it.
fn team_heights(rows: u16) -> [u16; 3] {
    let lower = (rows / 5).clamp(LIST, 10);
    let left = rows - lower;
    let upper = (left * 4).div_ceil(7);
    [upper, left - upper, lower]
}

fn wide(area: Rect, wanted: Wanted) -> [Option<Rect>; 5] {
    let [upper, middle, lower] = heights(area.height - 4, wanted);
    // Three lines stand beside what two panes hold.
    let inner = area.width - 3;
    let (first, third) = match wanted.face {
        Face::Collaboration => {
            let rounds = u16::try_from(wanted.rounds).unwrap_or(u16::MAX).min(40);
            let names = u16::try_from(wanted.names).unwrap_or(u16::MAX).min(30);
            let most = inner.saturating_sub(66).min(inner / 2);
            ((area.width * 57 / 100).clamp(66, 96), (5 + names + STANCE * rounds).clamp(30, most))
        }
        // Time runs to the right, so more of it is more to see.
        Face::Orchestrator => (area.width * 65 / 100, inner * 55 / 100),
        // One line down the page: the picture and the calls, then what was said beside them.
        Face::Team => (inner * 43 / 100, inner * 43 / 100),
        // A row for each source wants width; the answer and the notes are read alike.
        Face::Research => (inner * 62 / 100, inner * 48 / 100),
        Face::Tools => ((area.width * 62 / 100).min(130), inner * 47 / 100),
    };
    let row = |y: u16, height: u16, left: u16| {
        let right = Rect::new(area.x + left + 2, y, inner - left, height);
        (Some(Rect::new(area.x + 1, y, left, height)), Some(right))
    };
    let (first, second) = row(area.y + 1, upper, first);
    let (third, fourth) = row(area.y + upper + 2, middle, third);
    let events = Rect::new(area.x + 1, area.y + upper + middle + 3, area.width - 2, lower);
    [first, second, third, fourth, Some(events)]
}

fn stacked(area: Rect, wanted: Wanted) -> [Option<Rect>; 5] {
    let [upper, middle, lower] = heights(area.height - 4, wanted);
    let row = |y: u16, height: u16| Some(Rect::new(area.x + 1, y, area.width - 2, height));
    let mut panes = [None; 5];
    panes[wanted.upper as usize] = row(area.y + 1, upper);
    panes[wanted.middle as usize] = row(area.y + upper + 2, middle);
    panes[Pane::Events as usize] = row(area.y + upper + middle + 3, lower);
    panes
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted {
        face: Face::Collaboration,
        rows: 4,
        names: 17,
        rounds: 3,
        focus: Pane::Events,
        zoom: false,
        upper: Pane::First,
        middle: Pane::Third,
    };

    #[test]
    fn every_pane_stands_within_its_page_at_every_size() {
        for cols in 1..=210 {
            for rows in 1..=60 {
                let page = page(Size { cols, rows });
                for (face, rows) in Face::ALL
                    .into_iter()
                    .flat_map(|face| [1, 4, 9, 60].into_iter().map(move |rows| (face, rows)))
                {
                    for zoom in [false, true] {
                        let wanted = Wanted { face, rows, zoom, ..WANTED };
                        let areas = Areas::of(page, wanted);
                        let mut cells = 0;
                        for pane in Pane::ALL {
                            let Some(area) = areas.pane(pane) else { continue };
                            assert_eq!(area.intersection(page), area, "{pane:?} {cols}x{rows}");
                            cells += area.area();
                        }
                        assert!(cells <= page.area());
                        assert!(areas.pane(Pane::Events).is_some(), "what is focused is shown");
                        let scrubber = areas.scrubber;
                        assert_eq!(scrubber.intersection(page), scrubber);
                    }
                }
            }
        }
    }

    #[test]
    fn the_shape_goes_by_the_size() {
        let shape = |cols, rows| Areas::of(page(Size { cols, rows }), WANTED).shape;
        assert_eq!(shape(120, 36), Shape::Wide);
        assert_eq!(shape(200, 50), Shape::Wide);
        assert_eq!(shape(119, 36), Shape::Stacked);
        assert_eq!(shape(80, 24), Shape::Single);
        assert_eq!(shape(120, 24), Shape::Single);
    }

    #[test]
    fn a_click_meets_what_it_hits() {
        let areas = Areas::of(page(Size { cols: 120, rows: 36 }), WANTED);
        for pane in Pane::ALL {
            let area = areas.pane(pane).expect("shown");
            assert_eq!(areas.at(area.x, area.y), Some(pane));
            assert_eq!(areas.at(area.right() - 1, area.bottom() - 1), Some(pane));
        }
        assert_eq!(areas.at(0, 0), None);
    }
}
