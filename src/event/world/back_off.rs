//! The calls that wait for their next attempt.

use std::collections::BTreeSet;

use super::spans::Spans;
use crate::event::{Event, EventKind, SpanId};

/// Calls in back-off, by their span: a call is in it once, whatever ends its wait.
#[derive(Clone, Debug, Default)]
pub(super) struct BackOff(BTreeSet<SpanId>);

impl BackOff {
    /// Folds a fact that the tree of spans has taken.
    pub(super) fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::CallRetried { .. }
                if spans.get(event.span).is_some_and(|call| call.closed.is_none()) =>
            {
                self.0.insert(event.span);
            }
            EventKind::AttemptStarted { parent, .. } => {
                self.0.remove(parent);
            }
            EventKind::AttemptRefused { .. }
            | EventKind::CallAnswered { .. }
            | EventKind::CallDegraded { .. }
            | EventKind::CallFailed { .. } => {
                self.0.remove(&event.span);
            }
            EventKind::RunClosed(_) => self.0.clear(),
            _ => {}
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }
}
