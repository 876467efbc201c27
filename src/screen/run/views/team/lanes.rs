//! The geometry of the sequence diagram: a lane for each agent and person, and the cells of a hop between
//! two lanes. It depends on names and sizes alone, so that no lane moves during a run. Pure geometry.
//!
//! Names are above their lanes. If they are too long for one row, neighbours have theirs in
//! different rows, so that a name may be wider than its lane.

/// Columns before the lanes: mark, state, number, blank.
const NUMBER: u16 = 7;
/// Columns of the time of a hop.
pub const CLOCK: u16 = 6;
/// Columns of the operator's lane.
const YOU: u16 = 4;
/// Minimum and maximum width of a name above its lane.
const NAME: (u16, u16) = (4, 20);
/// Columns of a name besides its text: state, blank, mark of control, and a blank before the next.
const BESIDE_NAME: u16 = 4;
/// Minimum columns from one lane to the next: an arrow needs two between them.
const MIN_PITCH: u16 = 3;
/// Columns that the text of a hop should have.
const TEXT: u16 = 20;
/// Minimum width of a text in its row; with fewer columns, the text of one hop is below the rows.
pub const MIN_TEXT: u16 = 16;
/// Minimum width of a name that is shortened so that the rows have room for their texts.
const SHORT_NAME: u16 = 8;
/// Columns of the number of context tokens, with a blank before and after it.
pub const CONTEXT: u16 = 9;
/// Minimum width of a text next to a number of tokens.
const TEXT_AND_CONTEXT: u16 = 44;

/// The lanes of a diagram. Columns count from its left side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Whether each hop has its time.
    pub has_clock: bool,
    /// The column of the operator's lane.
    pub you: u16,
    /// Those of the agents, then those of people.
    pub named: Vec<NamedLane>,
    pub name_rows: u16,
    /// The first column of the texts, and their width.
    pub text: (u16, u16),
    /// Whether there is room for the number of context tokens.
    pub has_context: bool,
}

/// The lane of an agent or a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLane {
    /// Its column.
    pub x: u16,
    /// The row of its name, from 0.
    pub name_row: u16,
    /// Columns for the text of its name.
    pub name: u16,
}

/// An end of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneEnd {
    /// The operator.
    You,
    /// The agent or person of the lane with this index.
    Named(usize),
}

/// How a hop is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopArrow {
    /// Control is passed.
    Passes,
    /// Control returns.
    Consults,
    /// It was refused, so no agent was reached.
    Refused,
}

/// The content of a cell of a hop's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneCell {
    /// A lane without control.
    Waits,
    /// The lane of the agent in control.
    Controls,
    /// The line of the hop.
    Line,
    /// The two cells before the lane that the hop reaches; this is the left one.
    Tip {
        /// Whether it points to the right.
        right: bool,
        arrow: HopArrow,
    },
}

impl LaneCell {
    /// Columns of the cell.
    pub fn width(self) -> u16 {
        if matches!(self, Self::Tip { .. }) { 2 } else { 1 }
    }
}

impl Lanes {
    /// The lanes of agents and people with names of these widths; `None` if they do not fit.
    pub fn fit(width: u16, height: u16, names: &[u16]) -> Option<Lanes> {
        let count = u16::try_from(names.len()).ok().filter(|count| *count > 0)?;
        let longest = names.iter().copied().max()?.clamp(NAME.0, NAME.1) + BESIDE_NAME;
        let most_rows = match height {
            0..4 => return None,
            4..7 => 1,
            7..10 => 2,
            10 => 3,
            _ => 4,
        };
        let before = |clock: bool| NUMBER + if clock { CLOCK } else { 0 } + YOU;
        let room = |clock: bool, text: u16| width.checked_sub(before(clock) + text);
        // Lanes become narrower before the rows lose their texts.
        let narrow = || {
            let most = room(true, MIN_TEXT + 2)? / (count - 1).max(1);
            let whole = |rows: &u16| longest.div_ceil(*rows) <= most;
            let rows = (1..=most_rows).find(whole).unwrap_or(most_rows);
            let pitch = longest.div_ceil(rows).max(MIN_PITCH).min(most);
            let name = pitch.saturating_mul(rows).saturating_sub(BESIDE_NAME);
            let fits = pitch >= MIN_PITCH && name >= SHORT_NAME.min(longest - BESIDE_NAME);
            fits.then(|| Self::place(width, true, pitch, rows, names))
        };
        for (clock, text) in [(true, TEXT), (true, 0), (false, 0)] {
            if text == 0
                && clock
                && let Some(lanes) = narrow()
            {
                return Some(lanes);
            }
            for rows in 1..=most_rows {
                let pitch = longest.div_ceil(rows).max(MIN_PITCH);
                let needed = pitch.saturating_mul(count - 1) + longest.max(pitch);
                if room(clock, text).is_some_and(|room| needed <= room) {
                    return Some(Self::place(width, clock, pitch, rows, names));
                }
            }
        }
        // Names lose their middles.
        [true, false].into_iter().find_map(|clock| {
            let left = room(clock, 0)?.checked_sub(NAME.0 + BESIDE_NAME)?;
            let pitch = left / (count - 1).max(1);
            let name = pitch.saturating_mul(most_rows).checked_sub(BESIDE_NAME)?;
            (pitch >= MIN_PITCH && name >= NAME.0)
                .then(|| Self::place(width, clock, pitch, most_rows, names))
        })
    }

    fn place(width: u16, has_clock: bool, pitch: u16, name_rows: u16, names: &[u16]) -> Lanes {
        let you = NUMBER + if has_clock { CLOCK } else { 0 };
        let mut x = you + YOU;
        let mut named = Vec::new();
        for (nth, name) in names.iter().enumerate() {
            let room = (pitch * name_rows).min(width.saturating_sub(x)).saturating_sub(BESIDE_NAME);
            let name_row = nth as u16 % name_rows;
            named.push(NamedLane { x, name_row, name: (*name).min(room) });
            x += pitch;
        }
        let last = named.last().map_or(you, |lane| lane.x);
        // A hop to the last lane has its text at once behind it, but below its name's end.
        let start = (last + 2).min(width);
        let left = width - start;
        let has_context = left >= TEXT_AND_CONTEXT;
        let after = match has_context {
            true => CONTEXT,
            // A blank before the border, where that leaves a text.
            false => u16::from(left > MIN_TEXT),
        };
        let text = (start, left - after);
        Lanes { has_clock, you, named, name_rows, text, has_context }
    }

    /// The column of an end of a hop.
    pub fn column(&self, end: LaneEnd) -> Option<u16> {
        match end {
            LaneEnd::You => Some(self.you),
            LaneEnd::Named(at) => self.named.get(at).map(|lane| lane.x),
        }
    }

    /// The index of the lane whose name is at this cell.
    pub fn named_at(&self, x: u16, row: u16) -> Option<usize> {
        let named = |lane: &NamedLane| {
            let name = lane.x..lane.x + lane.name + BESIDE_NAME - 1;
            lane.name_row == row && name.contains(&x)
        };
        self.named.iter().position(named)
    }

    /// The cells of a row from left to right: every lane, and a hop between two of them.
    pub fn cells(
        &self,
        control: Option<usize>,
        hop: Option<(LaneEnd, LaneEnd, HopArrow)>,
    ) -> Vec<(u16, LaneCell)> {
        let ends = hop.and_then(|(from, to, arrow)| {
            let (from, to) = (self.column(from)?, self.column(to)?);
            (from != to).then_some((from, to, arrow))
        });
        let control = control.and_then(|at| self.column(LaneEnd::Named(at)));
        let lane = |x: u16| if control == Some(x) { LaneCell::Controls } else { LaneCell::Waits };
        let lanes = std::iter::once(self.you).chain(self.named.iter().map(|lane| lane.x));
        let mut cells: Vec<(u16, LaneCell)> = lanes.map(|x| (x, lane(x))).collect();
        let Some((from, to, arrow)) = ends else { return cells };
        // The hop is drawn over the lanes that it passes.
        let (left, right) = (from.min(to), from.max(to));
        cells.retain(|(x, _)| *x <= left || *x >= right);
        let points_right = to > from;
        let tip = if points_right { right - 2 } else { left + 1 };
        for x in left + 1..right {
            if x == tip {
                cells.push((x, LaneCell::Tip { right: points_right, arrow }));
            } else if x != tip + 1 {
                cells.push((x, LaneCell::Line));
            }
        }
        cells.sort_unstable_by_key(|(x, _)| *x);
        cells
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lanes_fit_where_there_is_room() {
        let fit = |width, height, agents: usize, name: u16| {
            let lanes = Lanes::fit(width, height, &vec![name; agents])?;
            Some((lanes.name_rows, lanes.named[0].name, lanes.has_clock, lanes.text.1))
        };
        // Columns and rows inside the pane, agents, columns of a name; rows of names, columns of a
        // name, whether there are times, columns of the text.
        let table = [
            // The pane at 120x36.
            ((74, 11, 2, 7), Some((1, 7, true, 35))),
            ((74, 11, 5, 7), Some((2, 7, true, 30))),
            ((74, 11, 12, 7), Some((4, 7, true, 21))),
            ((74, 11, 12, 20), Some((4, 8, true, 21))),
            // It is narrower once the run has ended: the rows keep their texts.
            ((65, 9, 4, 20), Some((2, 16, true, 16))),
            // One pane at 80x24, and at 60x16.
            ((78, 13, 2, 12), Some((1, 12, true, 42))),
            ((78, 13, 12, 12), Some((4, 8, true, 25))),
            ((58, 6, 6, 7), None),
            // The pane at 200x50.
            ((126, 19, 12, 12), Some((3, 12, true, 40))),
            ((126, 19, 22, 9), Some((4, 9, true, 22))),
            // Too many, too low, too narrow, none.
            ((74, 11, 30, 3), None),
            ((74, 3, 2, 3), None),
            ((14, 11, 2, 3), None),
            ((74, 11, 0, 0), None),
        ];
        for ((width, height, agents, name), expected) in table {
            let lanes = fit(width, height, agents, name);
            assert_eq!(lanes, expected, "{agents} agents of {name} in {width}x{height}");
        }
    }

    #[test]
    fn hop_connects_two_lanes() {
        let lanes = Lanes::fit(80, 12, &[3, 3, 3]).expect("room");
        let row = |control, hop| {
            let mut text = vec![' '; 80];
            for (x, cell) in lanes.cells(control, hop) {
                let drawn: &[char] = match cell {
                    LaneCell::Waits => &['|'],
                    LaneCell::Controls => &['H'],
                    LaneCell::Line => &['-'],
                    LaneCell::Tip { arrow: HopArrow::Consults, .. } => &['<', '>'],
                    LaneCell::Tip { arrow: HopArrow::Refused, right: true } => &['-', '/'],
                    LaneCell::Tip { arrow: HopArrow::Refused, right: false } => &['/', '-'],
                    LaneCell::Tip { right: true, .. } => &['-', '>'],
                    LaneCell::Tip { right: false, .. } => &['<', '-'],
                };
                drawn.iter().zip(usize::from(x)..).for_each(|(c, x)| text[x] = *c);
            }
            text.iter().collect::<String>().trim().to_owned()
        };
        let agent = LaneEnd::Named;
        let table = [
            (Some(0), Some((LaneEnd::You, agent(0), HopArrow::Passes)), "|-->H       |       |"),
            (Some(2), Some((agent(0), agent(2), HopArrow::Passes)), "|   |-------------->H"),
            (Some(0), Some((agent(2), agent(0), HopArrow::Passes)), "|   H<--------------|"),
            (Some(0), Some((agent(0), agent(1), HopArrow::Consults)), "|   H-----<>|       |"),
            (Some(1), Some((agent(1), agent(0), HopArrow::Refused)), "|   |/------H       |"),
            (Some(1), Some((agent(1), agent(1), HopArrow::Passes)), "|   |       H       |"),
            (None, Some((agent(1), LaneEnd::You, HopArrow::Passes)), "|<----------|       |"),
            (Some(1), None, "|   |       H       |"),
            (Some(9), Some((agent(1), agent(9), HopArrow::Passes)), "|   |       |       |"),
        ];
        for (control, hop, expected) in table {
            assert_eq!(row(control, hop), expected, "{control:?} {hop:?}");
        }
    }

    proptest! {
        #[test]
        fn diagram_parts_never_overlap(
            width in 0u16..220,
            height in 0u16..60,
            names in proptest::collection::vec(1u16..30, 0..40),
            (from, to) in (0usize..41, 0usize..41),
            control in proptest::option::of(0usize..40),
            arrow in 0usize..3,
        ) {
            let Some(lanes) = Lanes::fit(width, height, &names) else { return Ok(()) };
            prop_assert_eq!(lanes.named.len(), names.len());
            prop_assert!(lanes.name_rows + 1 < height, "there is a row for a hop");
            for row in 0..lanes.name_rows {
                let named: Vec<&NamedLane> =
                    lanes.named.iter().filter(|lane| lane.name_row == row).collect();
                for pair in named.windows(2) {
                    prop_assert!(pair[0].x + pair[0].name + BESIDE_NAME <= pair[1].x);
                }
                for lane in named {
                    prop_assert!(lane.name > 0 && lane.x + lane.name + BESIDE_NAME <= width + 1);
                    let at = lanes.named.iter().position(|it| it == lane);
                    prop_assert_eq!(lanes.named_at(lane.x, row), at);
                }
            }
            let end = |at: usize| at.checked_sub(1).map_or(LaneEnd::You, |at| LaneEnd::Named(at % names.len()));
            let (from, to) = (end(from), end(to));
            let arrow = [HopArrow::Passes, HopArrow::Consults, HopArrow::Refused][arrow];
            let cells = lanes.cells(control, Some((from, to, arrow)));
            for pair in cells.windows(2) {
                prop_assert!(pair[0].0 + pair[0].1.width() <= pair[1].0, "{:?}", pair);
            }
            let (first, last) = (cells[0], cells[cells.len() - 1]);
            prop_assert!(first.0 == lanes.you && last.0 + 1 < lanes.text.0);
            prop_assert!(lanes.text.0 + lanes.text.1 <= width);
            // Both ends have their cells, and an arrow is between them.
            for end in [from, to] {
                let x = lanes.column(end).expect("a lane");
                prop_assert!(cells.iter().any(|(at, _)| *at == x));
            }
            let tips = cells.iter().filter(|(_, cell)| matches!(cell, LaneCell::Tip { .. }));
            prop_assert_eq!(tips.count(), usize::from(from != to));
        }
    }
}
