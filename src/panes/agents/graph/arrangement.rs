//! The parts of a team's picture: each agent with its members below it, each part with its own
//! origin. Pure geometry.

use super::parts::{BOX_ROWS, GAP};
use crate::agents::plan::AgentsPlan;
use crate::base::name::AgentName;

/// Columns reserved for a label next to a line.
const LABEL_COLUMNS: u16 = 5;
/// Indent of members that are stacked, in columns.
const INDENT: u16 = 11;

/// The members of each agent, by the indices of their names.
pub(super) struct Forest {
    /// The members of each agent, in the plan's order.
    pub(super) members: Vec<Vec<usize>>,
    /// Agents that are no one's member, the root of the plan first; for a swarm that the operator
    /// talks to, its members.
    pub(super) roots: Vec<usize>,
}

impl Forest {
    pub(super) fn of(names: &[&AgentName], plan: &AgentsPlan) -> Forest {
        let place = |name: &AgentName| names.iter().position(|it| *it == name);
        let mut members = vec![Vec::new(); names.len()];
        let mut is_member = vec![false; names.len()];
        for (from, name) in names.iter().enumerate() {
            let Some(agent) = plan.agent(name) else { continue };
            for to in agent.members.iter().filter_map(place) {
                // A log from a file may list a member twice, or an agent as its own member.
                if to > from && !is_member[to] {
                    is_member[to] = true;
                    members[from].push(to);
                }
            }
        }
        let roots = (0..names.len()).filter(|at| !is_member[*at]).collect();
        Forest { members, roots }
    }

    /// Whether no agent has members.
    pub(super) fn is_flat(&self) -> bool {
        self.members.iter().all(Vec::is_empty)
    }
}

/// The place of a label for the work that an agent gives to a member, within its part.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelSpot {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Where its line turns or ends.
    pub(super) at: (u16, u16),
    /// Whether the label is left of that point.
    pub(super) before: bool,
    pub(super) on_line: bool,
}

/// A part of the picture; its origin is its upper left corner.
#[derive(Clone, Default)]
pub(super) struct Block {
    pub(super) wide: u16,
    pub(super) high: u16,
    /// The left side of the first box.
    pub(super) root: u16,
    pub(super) boxes: Vec<(usize, u16, u16)>,
    pub(super) wires: Vec<Vec<(u16, u16)>>,
    pub(super) spots: Vec<LabelSpot>,
}

impl Block {
    fn single(agent: usize, width: u16) -> Self {
        Self { wide: width, high: BOX_ROWS, boxes: vec![(agent, 0, 0)], ..Self::default() }
    }

    pub(super) fn shift(&mut self, by: u16, down: u16) {
        self.root += by;
        self.wide += by;
        self.high += down;
        self.boxes.iter_mut().for_each(|(_, x, y)| (*x, *y) = (*x + by, *y + down));
        let wires = self.wires.iter_mut().flatten();
        let spots = self.spots.iter_mut().map(|spot| &mut spot.at);
        wires.chain(spots).for_each(|(x, y)| (*x, *y) = (*x + by, *y + down));
    }

    pub(super) fn merge(&mut self, other: Block) {
        self.wide = self.wide.max(other.wide);
        self.high = self.high.max(other.high);
        self.boxes.extend(other.boxes);
        self.wires.extend(other.wires);
        self.spots.extend(other.spots);
    }

    /// The first and the last used column of each row.
    fn extents(&self, widths: &[u16]) -> Vec<(u16, u16)> {
        let mut rows = vec![(u16::MAX, 0); usize::from(self.high)];
        let mut mark = |y: u16, from: u16, to: u16| {
            if let Some(row) = rows.get_mut(usize::from(y)) {
                *row = (row.0.min(from), row.1.max(to));
            }
        };
        for (agent, x, y) in &self.boxes {
            (0..BOX_ROWS).for_each(|down| mark(y + down, *x, x + widths[*agent]));
        }
        for pair in self.wires.iter().flat_map(|wire| wire.windows(2)) {
            let ((ax, ay), (bx, by)) = (pair[0], pair[1]);
            (ay.min(by)..=ay.max(by)).for_each(|y| mark(y, ax.min(bx), ax.max(bx) + 1));
        }
        for spot in self.spots.iter().filter(|spot| !spot.before) {
            mark(spot.at.1, spot.at.0, spot.at.0 + 2 + LABEL_COLUMNS);
        }
        rows
    }

    /// How far another part has to be shifted to be right of this one, in columns.
    fn shift_right_of(&self, other: &Block, widths: &[u16]) -> u16 {
        let (left, right) = (self.extents(widths), other.extents(widths));
        let rows = left.iter().zip(&right).filter(|(_, right)| right.0 < u16::MAX);
        rows.map(|(left, right)| (left.1 + GAP).saturating_sub(right.0)).max().unwrap_or(0)
    }
}

/// How members are arranged below their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// In a row, centred below the owner.
    Centred,
    /// In a row, the first directly below the owner.
    Leading,
    /// Stacked, one below the other.
    Stacked,
    /// Stacked, neighbours sharing a side.
    Tight,
}

/// The arrangements, tried in order, with the rows between two layers.
pub(super) const ARRANGEMENTS: [(Arrangement, u16); 6] = [
    (Arrangement::Centred, 2),
    (Arrangement::Centred, 1),
    (Arrangement::Leading, 2),
    (Arrangement::Leading, 1),
    (Arrangement::Stacked, 0),
    (Arrangement::Tight, 0),
];

/// The layout of the layers.
#[derive(Clone, Copy)]
pub(super) struct LayerLayout<'a> {
    /// Columns of each box.
    pub(super) widths: &'a [u16],
    /// Rows between a box and the boxes below it.
    pub(super) between: u16,
    pub(super) arrangement: Arrangement,
}

impl LayerLayout<'_> {
    /// All parts side by side, wrapped to a new row when there is no more room.
    pub(super) fn all_parts(self, forest: &Forest, room: u16) -> Block {
        let mut all = Block::default();
        let (mut x, mut y, mut high) = (0, 0, 0);
        for root in &forest.roots {
            let mut part = self.block(forest, *root);
            if x > 0 && x + part.wide > room {
                (x, y, high) = (0, y + high, 0);
            }
            high = high.max(part.high);
            part.shift(x, y);
            x = part.wide + GAP;
            if all.boxes.is_empty() {
                all.root = part.root;
            }
            all.merge(part);
        }
        all
    }

    fn block(self, forest: &Forest, agent: usize) -> Block {
        let members = &forest.members[agent];
        if members.is_empty() {
            return Block::single(agent, self.widths[agent]);
        }
        match self.arrangement {
            Arrangement::Stacked | Arrangement::Tight => self.stacked(forest, agent, members),
            Arrangement::Centred | Arrangement::Leading => self.row(forest, agent, members),
        }
    }

    fn stacked(self, forest: &Forest, agent: usize, members: &[usize]) -> Block {
        let mut block = Block::single(agent, self.widths[agent]);
        let trunk = 2;
        for member in members {
            let mut part = self.block(forest, *member);
            let shares = self.arrangement == Arrangement::Tight && block.high > BOX_ROWS;
            let top = block.high - u16::from(shares);
            let at = top + 1;
            part.shift(INDENT, top);
            block.wires.push(vec![(trunk, BOX_ROWS - 1), (trunk, at), (INDENT, at)]);
            let at = (trunk + 1, at);
            block.spots.push(LabelSpot {
                from: agent,
                to: *member,
                at,
                before: false,
                on_line: true,
            });
            block.merge(part);
        }
        block
    }

    fn row(self, forest: &Forest, agent: usize, members: &[usize]) -> Block {
        // With one row between the layers, the labels are on the line that the stems come from.
        let on_line = self.between == 1 && members.len() > 1;
        let mut row = Block::default();
        let mut centres: Vec<(usize, u16)> = Vec::new();
        for member in members {
            let mut part = self.block(forest, *member);
            if !centres.is_empty() {
                let by = row.shift_right_of(&part, self.widths);
                part.shift(by, 0);
            }
            centres.push((*member, part.root + self.widths[*member] / 2));
            row.merge(part);
        }
        let half = self.widths[agent] / 2;
        let first = centres.first().map_or(half, |(_, x)| *x);
        let last = centres.last().map_or(half, |(_, x)| *x);
        let centre =
            if self.arrangement == Arrangement::Centred { (first + last) / 2 } else { first };
        // The owner may reach further to the left than its members.
        let over = half.saturating_sub(centre);
        centres.iter_mut().for_each(|(_, x)| *x += over);
        let centre = centre + over;
        // Avoid a bend of one column if the owner is directly above a member.
        let right_below = centres.iter().map(|(_, x)| *x).find(|x| x.abs_diff(centre) <= 1);
        let centre = right_below.unwrap_or(centre).max(half);
        row.shift(over, BOX_ROWS + self.between);
        let mut block = Block::single(agent, self.widths[agent]);
        block.shift(centre - half, 0);
        let top = BOX_ROWS + self.between;
        for (member, x) in centres {
            let wire = if x == centre {
                vec![(x, BOX_ROWS - 1), (x, top)]
            } else {
                vec![(centre, BOX_ROWS - 1), (centre, BOX_ROWS), (x, BOX_ROWS), (x, top)]
            };
            block.wires.push(wire);
            let before = on_line && x > centre + 1;
            block.spots.push(LabelSpot {
                from: agent,
                to: member,
                at: (x, top - 1),
                before,
                on_line,
            });
        }
        block.merge(row);
        block
    }
}
