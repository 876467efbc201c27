//! How the parts of a team's picture are put together: a tree of who was first asked by whom, each
//! part placed from its own corner. Pure geometry.

use super::{GAP, HIGH, Label, Work};
use crate::event::world::team::Edge;
use crate::scenario::name::AgentName;

/// Who was first asked by whom.
pub(super) struct Tree {
    /// The children of each agent, in the order in which they came.
    pub(super) children: Vec<Vec<usize>>,
    pub(super) roots: Vec<usize>,
    work: Vec<Work>,
    pub(super) placed: Vec<bool>,
    pub(super) also: Vec<usize>,
}

impl Tree {
    pub(super) fn of(names: &[&AgentName], edges: &[Edge], root: Option<usize>) -> Tree {
        let count = names.len();
        let mut tree = Tree {
            children: vec![Vec::new(); count],
            roots: root.into_iter().collect(),
            work: vec![Work::default(); count],
            placed: vec![false; count],
            also: Vec::new(),
        };
        let mut parent: Vec<Option<usize>> = vec![None; count];
        if let Some(root) = root {
            tree.placed[root] = true;
        }
        let place = |name: &AgentName| names.iter().position(|it| *it == name);
        for (nth, edge) in edges.iter().enumerate() {
            let Some(to) = place(&edge.to) else { continue };
            let from = edge.from.as_ref().and_then(&place);
            let Some(from) = from else {
                if edge.from.is_none() && !tree.placed[to] {
                    tree.placed[to] = true;
                    tree.roots.push(to);
                }
                continue;
            };
            if !tree.placed[to] && tree.placed[from] && edge.count > 0 {
                tree.placed[to] = true;
                parent[to] = Some(from);
                tree.children[from].push(to);
            }
            if parent[to] == Some(from) {
                let work = &mut tree.work[to];
                work.consults |= edge.consults;
                work.there += edge.count;
                work.refused += edge.refused;
            } else if parent[from] == Some(to) {
                let work = &mut tree.work[from];
                work.back += edge.count;
                work.back_refused += edge.refused;
            } else {
                tree.also.push(nth);
            }
        }
        tree
    }
}

/// A part of the picture, from its own upper left corner.
#[derive(Clone, Default)]
pub(super) struct Block {
    pub(super) wide: u16,
    pub(super) high: u16,
    /// The left side of its first box.
    pub(super) root: u16,
    pub(super) boxes: Vec<(usize, u16, u16)>,
    pub(super) wires: Vec<Vec<(u16, u16)>>,
    pub(super) labels: Vec<Label>,
}

impl Block {
    fn single(agent: usize, width: u16) -> Self {
        Self { wide: width, high: HIGH, boxes: vec![(agent, 0, 0)], ..Self::default() }
    }

    pub(super) fn shift(&mut self, by: u16, down: u16) {
        self.root += by;
        self.wide += by;
        self.high += down;
        self.boxes.iter_mut().for_each(|(_, x, y)| (*x, *y) = (*x + by, *y + down));
        let wires = self.wires.iter_mut().flatten();
        wires.for_each(|(x, y)| (*x, *y) = (*x + by, *y + down));
        for label in &mut self.labels {
            label.at = (label.at.0 + by, label.at.1 + down);
            label.end = label.end.map(|(x, y)| (x + by, y + down));
        }
    }

    pub(super) fn take(&mut self, other: Block) {
        self.wide = self.wide.max(other.wide);
        self.high = self.high.max(other.high);
        self.boxes.extend(other.boxes);
        self.wires.extend(other.wires);
        self.labels.extend(other.labels);
    }
}

/// Rows between two layers, and which layers have their first agent beside them: as they are tried.
pub(super) const SHAPES: [(u16, Beside); 6] = [
    (2, |_| false),
    (1, |_| false),
    (1, |depth| depth % 2 == 1),
    (1, |depth| depth % 2 == 0),
    (1, |depth| depth % 3 != 2),
    (1, |_| true),
];

/// Whether a layer has its first agent beside it.
pub(super) type Beside = fn(u16) -> bool;

/// How the layers stand.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Columns of a box.
    pub(super) width: u16,
    /// Rows between a box and those below it.
    pub(super) between: u16,
    /// Which layers have their first agent beside them.
    pub(super) beside: Beside,
}

impl Shape {
    pub(super) fn block(self, tree: &Tree, agent: usize, depth: u16) -> Block {
        let children = &tree.children[agent];
        if children.is_empty() || depth > 32 {
            return Block::single(agent, self.width);
        }
        if (self.beside)(depth) {
            let base = self.below(tree, agent, &children[1..], depth);
            return self.with_beside(tree, base, children[0], depth);
        }
        self.below(tree, agent, children, depth)
    }

    /// An agent with some of those that it asked in a row below it.
    fn below(self, tree: &Tree, agent: usize, children: &[usize], depth: u16) -> Block {
        let mut block = Block::single(agent, self.width);
        if children.is_empty() {
            return block;
        }
        let between = self.between;
        // In one row the words stand on the line that the stems come from.
        let on_line = between == 1 && children.len() > 1;
        let half = self.width / 2;
        let mut kids = Block::default();
        let mut centres: Vec<(usize, u16)> = Vec::new();
        for child in children {
            let mut kid = self.block(tree, *child, depth + 1);
            // What is told beside the line has its room too, and that of the one before.
            let words = tree.work[*child].width();
            kid.wide = kid.wide.max(kid.root + half + 3 + words);
            let by = match centres.last() {
                None => 0,
                Some((before, x)) => {
                    // The stem may come down in the middle between the two.
                    let apart = x + 2 * (tree.work[*before].width().max(words) + 3);
                    (kids.wide + GAP).max(apart.saturating_sub(kid.root + half))
                }
            };
            kid.shift(by, 0);
            centres.push((*child, kid.root + half));
            kids.take(kid);
        }
        let first = centres.first().map_or(0, |(_, x)| *x);
        let last = centres.last().map_or(0, |(_, x)| *x);
        let centre = (first + last) / 2;
        let over = half.saturating_sub(centre);
        kids.shift(over, HIGH + between);
        kids.wide = kids.wide.max(centre + over - half + self.width);
        let root = centre + over - half;
        block.shift(root, 0);
        let (start, top) = (root + half, HIGH + between);
        for (child, x) in centres {
            let x = x + over;
            let wire = if x.abs_diff(start) <= 1 {
                vec![(x, HIGH - 1), (x, top)]
            } else {
                vec![(start, HIGH - 1), (start, HIGH), (x, HIGH), (x, top)]
            };
            block.wires.push(wire);
            let work = tree.work[child];
            let before = on_line && x > start + 1;
            let at = if before { x.saturating_sub(work.width() + 2) } else { x + 2 };
            block.labels.push(Label { at: (at, top - 1), on_line, end: None, work });
        }
        block.take(kids);
        block
    }

    /// A block with one more agent beside its first.
    fn with_beside(self, tree: &Tree, base: Block, child: usize, depth: u16) -> Block {
        let (mut base, mut kid) = (base, self.block(tree, child, depth + 1));
        let work = tree.work[child];
        let right = base.root + self.width;
        let line = work.width() + 7;
        let mut at = (right + line).saturating_sub(kid.root);
        if base.high > HIGH && kid.high > HIGH {
            at = at.max(base.wide + GAP);
        }
        // What stands below it may reach further to the left than all of this.
        let over = kid.root.saturating_sub(right + line);
        base.shift(over, 0);
        kid.shift(at, 0);
        let (from, to) = (right + over - 1, kid.root.max(right + over + line));
        let by = to - kid.root;
        kid.shift(by, 0);
        base.wires.push(vec![(from, 1), (to, 1)]);
        let end = Some((to - 1, 1));
        base.labels.push(Label { at: (from + 3, 1), on_line: true, end, work });
        base.take(kid);
        base
    }
}
