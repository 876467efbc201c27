//! Where the agents of a team stand in its picture: a tree of who was first asked by whom, drawn
//! from what happened. Pure geometry, so that a click finds its agent.
//!
//! Each agent stands below, or beside, the one that first passed work to it, so no two lines cross;
//! work that went another way is told in words. Of several shapes the first that fits is taken:
//! all below each other, then every other layer beside the one before.

mod shape;

use ratatui::layout::Rect;

use self::shape::{Block, SHAPES, Shape, Tree};
use super::super::RunPage;
use super::super::layout::holds;
use super::pictured;
use crate::app::measure::columns;
use crate::app::run::table::first_seat;
use crate::event::kind::TeamPlan;
use crate::event::world::team::Team;
use crate::scenario::name::AgentName;

/// Rows of the list above its agents.
pub const LIST_HEAD: u16 = 1;
/// From this many agents on they stand in a list.
const MOST: usize = 12;
/// Rows of a box.
const HIGH: u16 = 3;
/// Columns between two boxes of a row.
const GAP: u16 = 2;
/// Columns of a box beside its name: frame, state, who is in control.
const BESIDE: u16 = 6;
/// Columns before the first agent: whoever asked it.
pub const START: u16 = 6;

/// The picture of a team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The boxes of the agents, in the order in which the plan names them.
    pub boxes: Vec<Boxed>,
    /// The lines between them, from corner to corner.
    pub wires: Vec<Vec<(u16, u16)>>,
    /// What stands beside a line: where, and of which pair.
    pub labels: Vec<Label>,
    /// Where the person's words come in: the columns before the first agent.
    pub start: Option<(u16, u16)>,
    /// Work that went another way than the lines: places among the edges.
    pub also: Vec<usize>,
    /// The row in which that is told, and who was not used where no box of theirs has room.
    pub told: Rect,
    /// Those that have no box: none of them was used.
    pub unused: Vec<AgentName>,
    /// The row of what the lines mean.
    pub legend: Rect,
}

/// An agent's box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxed {
    /// Whose.
    pub agent: AgentName,
    /// Its frame.
    pub frame: Rect,
}

/// What is told of the work between two agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where it begins.
    pub at: (u16, u16),
    /// Whether it stands on a line, so that there are blanks around it.
    pub on_line: bool,
    /// Where the line ends, where that runs to the right: an arrow stands there.
    pub end: Option<(u16, u16)>,
    /// How often, and how.
    pub work: Work,
}

/// The work that went between two agents, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Whether control comes back.
    pub consults: bool,
    /// There.
    pub there: u32,
    /// There, refused.
    pub refused: u32,
    /// Back.
    pub back: u32,
    /// Back, refused.
    pub back_refused: u32,
}

impl Work {
    /// The columns that it is told in, in glyphs of one column but for the first.
    pub fn width(self) -> u16 {
        let digits = |number: u32| columns(&number.to_string()) as u16;
        let part = |count: u32, extra: u16| if count > 0 { digits(count) + extra } else { 0 };
        let consults = if self.consults { 3 } else { 0 };
        consults
            + digits(self.there)
            + part(self.refused, 2)
            + part(self.back, 2)
            + part(self.back_refused, 2)
    }
}

impl Graph {
    /// The picture in an area; `None` where the agents stand in a list.
    pub fn of(area: Rect, team: &Team, plan: &TeamPlan) -> Option<Graph> {
        let names: Vec<&AgentName> = pictured(team, plan).collect();
        if names.is_empty() || names.len() > MOST || area.height < HIGH + 2 {
            return None;
        }
        let root = names.iter().position(|name| **name == plan.root);
        let tree = Tree::of(&names, &team.edges, root);
        let longest = names.iter().map(|name| columns(name.as_str())).max().unwrap_or(0);
        let whole = u16::try_from(longest).unwrap_or(u16::MAX).clamp(5, 20) + BESIDE;
        let told = u16::from(!tree.also.is_empty());
        let high = area.height - 1 - told;
        let widths = [whole, whole.min(18), whole.min(15)];
        let found = widths.into_iter().find_map(|width| {
            SHAPES.into_iter().find_map(|(between, beside)| {
                let shape = Shape { width, between, beside };
                let mut block = Block::default();
                for root in &tree.roots {
                    let mut other = shape.block(&tree, *root, 0);
                    let by = if block.boxes.is_empty() { 0 } else { block.wide + GAP };
                    other.shift(by, 0);
                    if block.boxes.is_empty() {
                        block.root = other.root;
                    }
                    block.take(other);
                }
                (block.wide <= area.width && block.high <= high).then_some((width, block))
            })
        });
        let (width, block) = found?;
        Some(Self::placed(area, &names, tree, width, block, told))
    }

    fn placed(
        area: Rect,
        names: &[&AgentName],
        tree: Tree,
        width: u16,
        block: Block,
        told: u16,
    ) -> Graph {
        let high = area.height - 1 - told;
        let unused: Vec<usize> = (0..names.len()).filter(|at| !tree.placed[*at]).collect();
        let mut block = block;
        // Those that were not used stand beside the others, else below them, else in words.
        let (wide, rows) = (block.wide, block.high);
        let left: Vec<usize> = {
            let gap = if wide > 0 { GAP + 1 } else { 0 };
            let across = (area.width.saturating_sub(wide + gap + 2) + GAP) / (width + GAP);
            let down = high / HIGH;
            let per_row = (area.width + GAP) / (width + GAP);
            let below = high.saturating_sub(rows) / HIGH;
            let count = u16::try_from(unused.len()).unwrap_or(u16::MAX);
            if below * per_row >= count && per_row > 0 {
                for (nth, agent) in unused.iter().enumerate() {
                    let nth = nth as u16;
                    let x = nth % per_row * (width + GAP);
                    block.boxes.push((*agent, x, rows + nth / per_row * HIGH));
                    block.wide = block.wide.max(x + width);
                }
                Vec::new()
            } else if across > 0 && across * down >= count {
                // From the bottom up, so that the lines above have their room.
                let tall = down.min(count.div_ceil(across)).max(1);
                let top = high.min(rows.max(tall * HIGH)) - tall * HIGH;
                for (nth, agent) in unused.iter().enumerate() {
                    let nth = nth as u16;
                    let x = wide + gap + nth / tall * (width + GAP);
                    block.boxes.push((*agent, x, top + nth % tall * HIGH));
                    block.wide = block.wide.max(x + width);
                }
                Vec::new()
            } else {
                unused
            }
        };
        let spare = area.width - block.wide;
        let before = if tree.roots.is_empty() { 0 } else { START.saturating_sub(block.root) };
        let x = area.x + (spare / 2).max(before.min(spare.saturating_sub(1)));
        let move_to = |(at, y): (u16, u16)| (x + at, area.y + y);
        let root = tree.roots.first().copied();
        let mut boxes: Vec<(usize, Rect)> = block
            .boxes
            .iter()
            .map(|(agent, left, y)| {
                let (x, y) = move_to((*left, *y));
                (*agent, Rect::new(x, y, width, HIGH))
            })
            .collect();
        boxes.sort_by_key(|(agent, _)| *agent);
        let first = root.and_then(|root| boxes.iter().find(|(agent, _)| *agent == root));
        let start = first.map(|(_, frame)| (frame.x, frame.y + 1));
        let bottom = area.bottom() - 1;
        Graph {
            start: start.filter(|(left, _)| *left >= area.x + START).map(|(x, y)| (x - START, y)),
            boxes: boxes
                .into_iter()
                .map(|(agent, frame)| Boxed { agent: names[agent].clone(), frame })
                .collect(),
            wires: block
                .wires
                .iter()
                .map(|wire| wire.iter().copied().map(move_to).collect())
                .collect(),
            labels: block
                .labels
                .into_iter()
                .map(|it| Label { at: move_to(it.at), end: it.end.map(move_to), ..it })
                .collect(),
            also: tree.also,
            told: Rect { y: bottom - told, height: told, ..area },
            unused: left.into_iter().map(|agent| names[agent].clone()).collect(),
            legend: Rect { y: bottom, height: 1, ..area },
        }
    }

    /// The agent whose box stands here.
    pub fn at(&self, col: u16, row: u16) -> Option<&AgentName> {
        self.boxes.iter().find(|boxed| holds(boxed.frame, col, row)).map(|boxed| &boxed.agent)
    }
}

impl RunPage {
    /// The picture of the shown world in an area; `None` where there is a list.
    pub fn graph(&self, area: Rect) -> Option<Graph> {
        let (team, plan) = self.shown().team()?;
        Graph::of(area, team, plan)
    }

    /// The agent that stands here.
    pub(super) fn agent_at(&self, area: Rect, col: u16, row: u16) -> Option<AgentName> {
        if let Some(graph) = self.graph(area) {
            return graph.at(col, row).cloned();
        }
        let (team, plan) = self.shown().team()?;
        let all: Vec<&AgentName> = pictured(team, plan).collect();
        let rows = area.height.saturating_sub(LIST_HEAD);
        let at = self.selected_agent().and_then(|name| all.iter().position(|it| *it == name));
        let first = first_seat(at.unwrap_or(0), all.len(), usize::from(rows));
        let line = row.checked_sub(area.y + LIST_HEAD)?;
        all.get(first + usize::from(line)).map(|name| (*name).clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::world::team::Edge;

    fn names(count: usize) -> Vec<AgentName> {
        (0..count).map(|nth| format!("agent_{nth}").as_str().into()).collect()
    }

    fn draw(count: usize, pairs: &[(usize, usize)], area: Rect) -> Option<Graph> {
        let all = names(count);
        let refs: Vec<&AgentName> = all.iter().collect();
        let edge = |from: Option<usize>, to: usize| Edge {
            from: from.map(|from| all[from].clone()),
            to: all[to].clone(),
            consults: false,
            count: 1,
            refused: 0,
        };
        let mut edges = vec![edge(None, 0)];
        edges.extend(pairs.iter().map(|(from, to)| edge(Some(from % count), to % count)));
        let tree = Tree::of(&refs, &edges, None);
        let told = u16::from(!tree.also.is_empty());
        let shape = Shape { width: 13, between: 1, beside: |depth| depth % 2 == 1 };
        let block = shape.block(&tree, 0, 0);
        let fits = block.wide <= area.width && block.high < area.height - told;
        fits.then(|| Graph::placed(area, &refs, tree, 13, block, told))
    }

    proptest! {
        #[test]
        fn boxes_stand_apart_and_no_line_goes_through_one(
            count in 1usize..=12,
            pairs in proptest::collection::vec((0usize..12, 0usize..12), 0..30),
        ) {
            let area = Rect::new(3, 2, 180, 60);
            let Some(graph) = draw(count, &pairs, area) else { return Ok(()) };
            for (nth, one) in graph.boxes.iter().enumerate() {
                prop_assert_eq!(one.frame.intersection(area), one.frame);
                for other in &graph.boxes[nth + 1..] {
                    prop_assert!(!one.frame.intersects(other.frame), "{:?} {:?}", one, other);
                }
            }
            for wire in &graph.wires {
                for pair in wire.windows(2) {
                    let ((ax, ay), (bx, by)) = (pair[0], pair[1]);
                    for x in ax.min(bx)..=ax.max(bx) {
                        for y in ay.min(by)..=ay.max(by) {
                            let within = |boxed: &&Boxed| {
                                let frame = boxed.frame;
                                let inside = Rect::new(frame.x + 1, frame.y + 1, frame.width - 2, 1);
                                holds(inside, x, y)
                            };
                            prop_assert!(!graph.boxes.iter().any(|it| within(&it)), "{x},{y}");
                        }
                    }
                }
            }
            for label in &graph.labels {
                for x in label.at.0..label.at.0 + label.work.width() {
                    let hit = graph.boxes.iter().any(|it| holds(it.frame, x, label.at.1));
                    prop_assert!(!hit, "{label:?}");
                    prop_assert!(x < area.right());
                }
            }
        }
    }

    #[test]
    fn who_was_first_asked_by_whom_decides_where_an_agent_stands() {
        let area = Rect::new(0, 0, 80, 30);
        let graph = draw(5, &[(0, 1), (1, 2), (2, 1), (1, 3), (3, 0)], area).expect("room");
        let frame = |nth: usize| graph.boxes[nth].frame;
        assert!(frame(1).y > frame(0).y, "below the one that asked it");
        assert_eq!(frame(2).y, frame(1).y, "beside it");
        assert!(frame(3).y > frame(1).y);
        assert_eq!(graph.also, [5], "what goes back further is told in words");
        let back: u32 = graph.labels.iter().map(|label| label.work.back).sum();
        assert_eq!(back, 1);
    }
}
