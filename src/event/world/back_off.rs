//! The calls that wait for their next attempt.

use std::collections::BTreeSet;

use super::spans::Spans;
use crate::event::{Event, EventKind, SpanId};

/// Calls in backoff, by their span. Each counts once, no matter how its wait ends.
#[derive(Clone, Debug, Default)]
pub(super) struct BackOff(BTreeSet<SpanId>);

impl BackOff {
    /// Processes an event, after the span tree.
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

    /// Number of calls in backoff.
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }
}
