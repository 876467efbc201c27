//! The tree of calls: hops, consultations and tools, each below the call that made it. Only the
//! operator folds rows; nothing folds by itself.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::agents::projection::{AgentsFold, MAX_BELOW_ROOT, MAX_DEPTH, is_in_tree, root_of};
use crate::app::run::data::RunData;
use crate::event::SpanId;
use crate::event::kind::Purpose;
use crate::event::world::{Span, SpanKind, World};

/// A row of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// The call; the run's own span for the coordinator that the operator talks to.
    pub span: SpanId,
    /// Its depth in the tree, from 0.
    pub depth: u16,
    /// Whether it has calls below it, and whether they are shown.
    pub fold: Fold,
}

/// The state of the calls below a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// There are none.
    Empty,
    /// They are shown.
    Open,
    /// They are folded.
    Closed,
    /// There are more than are shown.
    Cut,
}

/// The tree with its folded and unfolded rows.
#[derive(Debug)]
pub struct CallTree<'a> {
    world: &'a World,
    team: &'a AgentsFold,
    /// Whether the coordinator is shown as the root of all others.
    head: bool,
    /// The calls that the operator has folded.
    closed: &'a BTreeSet<SpanId>,
    /// The roots with folded rows, in order.
    folded: Vec<FoldedRoot>,
}

/// The hops, consultations and tool calls directly within a call.
pub fn calls_within(world: &World, call: SpanId) -> impl Iterator<Item = &Span> {
    let attempts = world.spans.children(call);
    attempts
        .flat_map(|attempt| world.spans.children(attempt.id))
        .filter(|span| is_in_tree(&span.kind))
}

/// The attempt of the model call that an agent is in at present; `run` is the call of the agent, or
/// the run's own span.
pub fn current_attempt(world: &World, run: SpanId) -> Option<&Span> {
    let place = if run == SpanId::RUN { run } else { world.spans.last_child(run)?.id };
    let ask = world.spans.last_child(place).filter(|ask| ask.closed.is_none())?;
    match &ask.kind {
        SpanKind::Call(Purpose::ModelCall { .. }) => world.spans.last_child(ask.id).or(Some(ask)),
        _ => None,
    }
}

/// A root below which the operator has folded rows, so that fewer are shown than were counted.
#[derive(Debug)]
struct FoldedRoot {
    /// Index of the root.
    place: usize,
    /// The rows shown below it.
    rows: Vec<CallNode>,
    /// Number of counted rows that are hidden in this root and in those above it.
    hidden: usize,
}

impl<'a> CallTree<'a> {
    fn new(
        world: &'a World,
        team: &'a AgentsFold,
        head: bool,
        closed: &'a BTreeSet<SpanId>,
    ) -> CallTree<'a> {
        let mut tree = CallTree { world, team, head, closed, folded: Vec::new() };
        let roots = closed.iter().filter_map(|span| root_of(*span, &world.spans));
        let places: BTreeSet<usize> =
            roots.filter_map(|root| team.root_at(root, &world.spans)).collect();
        let mut hidden = 0;
        for place in places {
            let rows = tree.rows_of(place);
            hidden += counted_rows(team, place).saturating_sub(rows.len());
            tree.folded.push(FoldedRoot { place, rows, hidden });
        }
        tree
    }

    /// The rows shown below a root.
    fn rows_of(&self, place: usize) -> Vec<CallNode> {
        let mut rows = Vec::new();
        if let Some(root) = self.team.roots.get(place)
            && !self.closed.contains(&root.span)
        {
            self.unfold(root.span, 1, &mut rows);
        }
        rows
    }

    fn unfold(&self, call: SpanId, level: u16, rows: &mut Vec<CallNode>) {
        if level > MAX_DEPTH {
            return;
        }
        for span in calls_within(self.world, call) {
            let depth = level + u16::from(self.head);
            if rows.len() >= MAX_BELOW_ROOT as usize {
                if rows.last().is_some_and(|last| last.fold != Fold::Cut) {
                    rows.push(CallNode { span: span.id, depth, fold: Fold::Cut });
                }
                return;
            }
            let fold = self.fold(span.id);
            rows.push(CallNode { span: span.id, depth, fold });
            if fold == Fold::Open {
                self.unfold(span.id, level + 1, rows);
            }
        }
    }

    fn fold(&self, call: SpanId) -> Fold {
        match calls_within(self.world, call).next() {
            None => Fold::Empty,
            Some(_) if self.closed.contains(&call) => Fold::Closed,
            Some(_) => Fold::Open,
        }
    }

    /// Number of hidden rows in the roots above this one.
    fn hidden_above(&self, place: usize) -> usize {
        let above = self.folded.partition_point(|turned| turned.place < place);
        above.checked_sub(1).map_or(0, |last| self.folded[last].hidden)
    }

    /// The row of a root, without the coordinator's row.
    fn row_of(&self, place: usize) -> usize {
        let above = self.team.roots.get(place).map_or(0, |root| root.above as usize);
        place + above.saturating_sub(self.hidden_above(place))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        let Some(last) = self.team.roots.len().checked_sub(1) else {
            return usize::from(self.head);
        };
        let within = match self.folded.last().filter(|turned| turned.place == last) {
            Some(turned) => turned.rows.len(),
            None => counted_rows(self.team, last),
        };
        usize::from(self.head) + self.row_of(last) + 1 + within
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row with this index.
    pub fn row(&self, at: usize) -> Option<CallNode> {
        self.rows(at..at + 1).pop()
    }

    /// The row of the root that a row is below: the coordinator's, else that of the hop.
    pub fn root_of_row(&self, at: usize) -> Option<usize> {
        if self.head {
            return Some(0);
        }
        self.place(root_of(self.row(at)?.span, &self.world.spans)?)
    }

    /// The rows in this range. Only the roots in the range are visited.
    pub fn rows(&self, wanted: Range<usize>) -> Vec<CallNode> {
        let mut rows = Vec::new();
        let head = usize::from(self.head);
        if self.head && wanted.contains(&0) {
            rows.push(CallNode { span: SpanId::RUN, depth: 0, fold: Fold::Empty });
        }
        let (from, until) = (wanted.start.saturating_sub(head), wanted.end.saturating_sub(head));
        // Find the last root that begins at or above the first row.
        let (mut low, mut high) = (0, self.team.roots.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.row_of(middle) <= from { low = middle + 1 } else { high = middle }
        }
        for place in low.saturating_sub(1)..self.team.roots.len() {
            let first = self.row_of(place);
            if first >= until {
                break;
            }
            let Some(root) = self.team.roots.get(place) else { break };
            if first >= from {
                let (depth, fold) = (u16::from(self.head), self.fold(root.span));
                rows.push(CallNode { span: root.span, depth, fold });
            }
            let shown = |at: &usize| (from..until).contains(&(first + 1 + at));
            let turned = self.folded.binary_search_by_key(&place, |turned| turned.place);
            let within =
                turned.map_or_else(|_| self.rows_of(place), |at| self.folded[at].rows.clone());
            rows.extend(within.iter().enumerate().filter(|(at, _)| shown(at)).map(|(_, row)| *row));
        }
        rows
    }

    /// The call that a call is directly within.
    pub fn parent(&self, call: SpanId) -> Option<SpanId> {
        let parent = self.world.spans.get(call)?.parent;
        if parent == SpanId::RUN {
            return self.head.then_some(SpanId::RUN);
        }
        self.world.spans.get(parent).map(|attempt| attempt.parent)
    }

    /// The row of a call, if it is shown.
    pub fn place(&self, span: SpanId) -> Option<usize> {
        let head = usize::from(self.head);
        if span == SpanId::RUN {
            return self.head.then_some(0);
        }
        let root = root_of(span, &self.world.spans)?;
        let place = self.team.root_at(root, &self.world.spans)?;
        let first = head + self.row_of(place);
        if root == span {
            return Some(first);
        }
        let within = self.rows_of(place);
        within.iter().position(|node| node.span == span).map(|at| first + 1 + at)
    }
}

/// Number of rows counted below a root, folded or not.
fn counted_rows(team: &AgentsFold, place: usize) -> usize {
    team.roots.get(place).map_or(0, |root| root.within as usize)
}

/// The tree of calls in the world that is shown; the calls in `closed` are folded.
pub fn call_tree<'a>(run: &'a RunData, closed: &'a BTreeSet<SpanId>) -> Option<CallTree<'a>> {
    let world = run.shown();
    let team = world.agents()?;
    let head = team.plan.coordinator().is_some();
    Some(CallTree::new(world, team, head, closed))
}
