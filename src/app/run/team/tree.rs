//! The tree of calls: hops, consultations and tools, each within the one that asked for it. Nothing
//! folds itself while a person watches: rows go away by the person's key alone.

use std::collections::BTreeMap;

use super::super::RunPage;
use crate::event::SpanId;
use crate::event::kind::Purpose;
use crate::event::world::team::Team;
use crate::event::world::{Span, SpanKind, World};

/// Rows within one root at most; the rest is in the list of events.
const MOST: usize = 2_000;
/// The roots that are unfolded of themselves: the last ones, one to two of this many. What is
/// further back than that is folded away together, far out of view of who follows the newest.
const UNFOLDED: usize = 256;
/// A file may hold spans that stand in each other: no deeper than this.
const DEEP: u16 = 64;

/// A row of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The call; the run's own span for the coordinator that the person talks to.
    pub span: SpanId,
    /// In how many others it stands.
    pub depth: u16,
    /// Whether there is something within it, and whether that is shown.
    pub fold: Fold,
}

/// What is within a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Nothing.
    Empty,
    /// It stands below.
    Open,
    /// It is folded away.
    Closed,
    /// More than is shown.
    Cut,
}

/// The tree, as far as it is unfolded.
#[derive(Debug)]
pub struct Tree<'a> {
    world: &'a World,
    team: &'a Team,
    /// Whether the coordinator stands above all others.
    head: bool,
    /// The roots that are unfolded and hold something, by their place, with what is within.
    open: Vec<(usize, Vec<Node>)>,
}

/// The calls of hops, consultations and tools that stand right within a call.
pub fn within(world: &World, call: SpanId) -> impl Iterator<Item = &Span> {
    let attempts = world.spans.children(call);
    attempts.flat_map(|attempt| world.spans.children(attempt.id)).filter(|span| is_node(span))
}

fn is_node(span: &Span) -> bool {
    matches!(
        &span.what,
        SpanKind::Call(Purpose::Member { .. } | Purpose::Hop { .. } | Purpose::Tool { .. })
    )
}

/// The attempt of the model call that an agent's run is in just now; `run` is its call, or the
/// run's own span.
pub fn speaking(world: &World, run: SpanId) -> Option<&Span> {
    let place = if run == SpanId::RUN { run } else { world.spans.last_child(run)?.id };
    let ask = world.spans.last_child(place).filter(|ask| ask.closed.is_none())?;
    match &ask.what {
        SpanKind::Call(Purpose::Say { .. }) => world.spans.last_child(ask.id).or(Some(ask)),
        _ => None,
    }
}

impl<'a> Tree<'a> {
    fn new(
        world: &'a World,
        team: &'a Team,
        head: bool,
        folds: &BTreeMap<SpanId, bool>,
    ) -> Tree<'a> {
        let mut tree = Tree { world, team, head, open: Vec::new() };
        let roots = team.roots.len();
        let from = (roots / UNFOLDED).saturating_sub(1) * UNFOLDED;
        let going = team.running().filter(|row| row.depth == 0).map(|row| row.span);
        let turned = folds.iter().filter(|(_, open)| **open).map(|(span, _)| *span);
        let older = going.chain(turned).filter_map(|span| tree.root_at(span));
        let mut places: Vec<usize> = older.chain(from..roots).collect();
        places.retain(|at| team.roots.get(*at).is_some_and(|it| folds.get(it) != Some(&false)));
        places.sort_unstable();
        places.dedup();
        for place in places {
            let Some(root) = team.roots.get(place) else { continue };
            let mut rows = Vec::new();
            tree.unfold(*root, u16::from(head) + 1, folds, &mut rows);
            if !rows.is_empty() {
                tree.open.push((place, rows));
            }
        }
        tree
    }

    /// Where a call stands among the roots, which are in the order of their first facts.
    fn root_at(&self, span: SpanId) -> Option<usize> {
        let wanted = self.world.spans.get(span)?.opened_by;
        let (mut low, mut high) = (0, self.team.roots.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let root = self.team.roots.get(middle)?;
            if self.world.spans.get(*root)?.opened_by < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (self.team.roots.get(low) == Some(&span)).then_some(low)
    }

    fn unfold(
        &self,
        call: SpanId,
        depth: u16,
        folds: &BTreeMap<SpanId, bool>,
        rows: &mut Vec<Node>,
    ) {
        if depth > DEEP {
            return;
        }
        for span in within(self.world, call) {
            if rows.len() >= MOST {
                if rows.last().is_some_and(|last| last.fold != Fold::Cut) {
                    rows.push(Node { span: span.id, depth, fold: Fold::Cut });
                }
                return;
            }
            let fold = match within(self.world, span.id).next() {
                None => Fold::Empty,
                Some(_) if folds.get(&span.id) == Some(&false) => Fold::Closed,
                Some(_) => Fold::Open,
            };
            rows.push(Node { span: span.id, depth, fold });
            if fold == Fold::Open {
                self.unfold(span.id, depth + 1, folds, rows);
            }
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        let within: usize = self.open.iter().map(|(_, rows)| rows.len()).sum();
        usize::from(self.head) + self.team.roots.len() + within
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at this place.
    pub fn row(&self, at: usize) -> Option<Node> {
        let mut at = at;
        if self.head {
            if at == 0 {
                return Some(Node { span: SpanId::RUN, depth: 0, fold: Fold::Empty });
            }
            at -= 1;
        }
        // Roots, with what is within the unfolded ones between them.
        let mut shift = 0;
        for (root, rows) in &self.open {
            let first = root + shift;
            if at <= first {
                break;
            }
            if at <= first + rows.len() {
                return rows.get(at - first - 1).copied();
            }
            shift += rows.len();
        }
        let root = at - shift;
        let span = *self.team.roots.get(root)?;
        let open = self.open.iter().any(|(place, _)| *place == root);
        let fold = match within(self.world, span).next() {
            None => Fold::Empty,
            Some(_) if open => Fold::Open,
            Some(_) => Fold::Closed,
        };
        Some(Node { span, depth: u16::from(self.head), fold })
    }

    /// The row of a call, where it is shown.
    pub fn place(&self, span: SpanId) -> Option<usize> {
        let head = usize::from(self.head);
        if span == SpanId::RUN {
            return self.head.then_some(0);
        }
        if let Some(root) = self.root_at(span) {
            let before = self.open.iter().filter(|(place, _)| *place < root);
            let shift: usize = before.map(|(_, rows)| rows.len()).sum();
            return Some(head + root + shift);
        }
        let mut shift = 0;
        for (root, rows) in &self.open {
            if let Some(at) = rows.iter().position(|node| node.span == span) {
                return Some(head + root + shift + 1 + at);
            }
            shift += rows.len();
        }
        None
    }
}

impl RunPage {
    /// The tree of calls in the shown world.
    pub fn tree(&self) -> Option<Tree<'_>> {
        let world = self.shown();
        let (team, plan) = world.team()?;
        Some(Tree::new(world, team, plan.swarm(&plan.root).is_none(), &self.team.folds))
    }
}
