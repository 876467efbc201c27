//! What the last attempt of a model's call said that failed for good: the cause behind a stop such
//! as `llm_error:bad_response`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::spans::{SpanKind, Spans};
use crate::event::kind::Purpose;
use crate::event::stop::StopClass;
use crate::event::{Event, EventKind, SpanId, StopReason};

/// What failed attempts said.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords {
    /// Of calls that are open, by their spans.
    open: BTreeMap<SpanId, Arc<str>>,
    /// Of the model's call that failed last, and the reason that it gave the run.
    failed: Option<(StopReason, Arc<str>)>,
}

impl LastWords {
    pub fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::AttemptFailed(failed) => {
                if let Some(attempt) = spans.get(event.span) {
                    self.open.insert(attempt.parent, failed.text.as_str().into());
                }
            }
            EventKind::CallFailed { reason, .. } => {
                let said = self.open.remove(&event.span);
                // An agent that fails of its model's call says no more than that it did.
                let what = spans.get(event.span).map(|call| &call.what);
                let passes_on = matches!(
                    what,
                    Some(SpanKind::Call(Purpose::Member { .. } | Purpose::Hop { .. }))
                );
                if let Some(said) = said.filter(|_| !passes_on) {
                    self.failed = Some((reason.clone(), said));
                }
            }
            EventKind::CallAnswered { .. } | EventKind::CallDegraded { .. } => {
                self.open.remove(&event.span);
            }
            _ => {}
        }
    }

    /// What the call said that stopped a run for this reason, if it was a model's.
    pub fn of(&self, stop: &StopReason) -> Option<&Arc<str>> {
        let (reason, said) = self.failed.as_ref()?;
        (stop.class() == StopClass::Unreachable && reason == stop).then_some(said)
    }
}
