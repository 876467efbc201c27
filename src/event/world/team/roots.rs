//! The places of calls in their tree: counted as they begin, so that nobody has to walk the tree to
//! know how long it is, or what stands in a row of it.

use super::Team;
use crate::event::SpanId;
use crate::event::kind::{CallStarted, Purpose};
use crate::event::world::spans::{SpanKind, Spans};

/// A call that stands in no other: a root of the tree of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The call.
    pub span: SpanId,
    /// Calls that stand within the roots above it.
    pub above: u64,
    /// Calls that stand within it, at any depth down to [`DEEP`]; one more than [`WITHIN`] where
    /// there are more.
    pub within: u32,
}

/// The calls within one root that have a place in the tree.
pub const WITHIN: u32 = 2_000;

/// How deep calls stand in each other that have a place in the tree. Ours are never so deep; a file
/// may hold anything.
pub const DEEP: u16 = 64;

/// Whether a call has a place in the tree: of a member, a hop or a tool, not of a model.
pub fn is_in_tree(what: &SpanKind) -> bool {
    matches!(
        what,
        SpanKind::Call(Purpose::Member { .. } | Purpose::Hop { .. } | Purpose::Tool { .. })
    )
}

/// The root that a call of the tree stands within: each call in an attempt of the one above it.
pub fn root_of(call: SpanId, spans: &Spans) -> Option<SpanId> {
    let mut at = spans.get(call)?;
    for _ in 0..=DEEP {
        if !is_in_tree(&at.what) {
            return None;
        }
        if at.parent == SpanId::RUN {
            return Some(at.id);
        }
        let attempt = spans.get(at.parent)?;
        if !matches!(attempt.what, SpanKind::Attempt(_)) {
            return None;
        }
        at = spans.get(attempt.parent)?;
    }
    None
}

impl Team {
    /// Counts a call where it stands in the tree of calls, so that nobody has to walk it to know
    /// how long it is.
    pub(super) fn stands(&mut self, span: SpanId, call: &CallStarted, spans: &Spans) {
        if call.purpose.agent().is_none() || matches!(call.purpose, Purpose::Say { .. }) {
            return;
        }
        if call.parent == SpanId::RUN {
            let above = self.roots.last().map_or(0, |last| last.above + u64::from(last.within));
            self.roots.push(Root { span, above, within: 0 });
            return;
        }
        let Some(place) = root_of(span, spans).and_then(|root| self.root_at(root, spans)) else {
            return;
        };
        match self.roots.get_mut(place) {
            Some(root) if root.within <= WITHIN => root.within += 1,
            _ => return,
        }
        // Only those that began beside it stand below it.
        for below in place + 1..self.roots.len() {
            if let Some(root) = self.roots.get_mut(below) {
                root.above += 1;
            }
        }
    }

    /// Where a call stands among the roots, which are in the order of their first facts.
    pub fn root_at(&self, span: SpanId, spans: &Spans) -> Option<usize> {
        let wanted = spans.get(span)?.opened_by;
        let began = |place: usize| spans.get(self.roots.get(place)?.span).map(|it| it.opened_by);
        let (mut low, mut high) = (0, self.roots.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if began(middle)? < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.roots.get(low).is_some_and(|root| root.span == span).then_some(low)
    }
}
