//! Positions in the call tree. They are counted when calls start, so no one has to walk the tree to
//! know its length or the content of a row.

use super::AgentsFold;
use super::rows::Root;
use crate::log::event::SpanId;
use crate::log::event::kind::{CallStarted, Purpose};
use crate::log::world::spans::{SpanKind, Spans};

/// Most calls in the tree below one root.
pub const MAX_BELOW_ROOT: u32 = 2_000;

/// Most levels of the call tree. Runs never get so deep, but a file may have anything.
pub const MAX_DEPTH: u16 = 64;

/// Whether a call is part of the call tree: that of a member, a hop or a tool, not of a model.
pub fn is_in_tree(what: &SpanKind) -> bool {
    matches!(
        what,
        SpanKind::Call(Purpose::Member { .. } | Purpose::SwarmTurn { .. } | Purpose::Tool { .. })
    )
}

/// The root above a call of the tree: each call belongs to an attempt of the call above it.
pub fn root_of(call: SpanId, spans: &Spans) -> Option<SpanId> {
    let mut at = spans.get(call)?;
    for _ in 0..=MAX_DEPTH {
        if !is_in_tree(&at.kind) {
            return None;
        }
        if at.parent == SpanId::RUN {
            return Some(at.id);
        }
        let attempt = spans.get(at.parent)?;
        if !matches!(attempt.kind, SpanKind::Attempt(_)) {
            return None;
        }
        at = spans.get(attempt.parent)?;
    }
    None
}

impl AgentsFold {
    /// Adds a call to the counts of the call tree.
    pub(super) fn count_in_tree(&mut self, span: SpanId, call: &CallStarted, spans: &Spans) {
        if call.purpose.agent().is_none() || matches!(call.purpose, Purpose::ModelCall { .. }) {
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
            Some(root) if root.within <= MAX_BELOW_ROOT => root.within += 1,
            _ => return,
        }
        // Only roots that started while this one ran come after it.
        for below in place + 1..self.roots.len() {
            if let Some(root) = self.roots.get_mut(below) {
                root.above += 1;
            }
        }
    }

    /// Index of a call among the roots, which are in the order of their first events.
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
