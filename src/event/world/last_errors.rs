//! The last error of each failed model call, and the limit that prevented a retry: the cause behind
//! a stop such as `llm_error:bad_response`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::spans::{SpanKind, Spans};
use crate::event::kind::{Asks, Purpose, RetryLimit};
use crate::event::stop::StopClass;
use crate::event::{Event, EventKind, SpanId, StopReason};

/// The last errors of model calls.
#[derive(Clone, Debug, Default)]
pub(super) struct LastErrors {
    /// Of open calls, by their spans.
    open: BTreeMap<SpanId, LastError>,
    /// For each stop reason of a model call, the call that counts.
    failed: Vec<StopCandidate>,
}

/// Error of the last attempt of a call, and what prevented another attempt.
#[derive(Clone, Debug)]
pub(super) struct LastError {
    /// Text of the error.
    pub text: Arc<str>,
    /// The limit that prevented a retry, if there was one.
    pub limit: Option<RetryLimit>,
    /// A later attempt that was refused: its number, and the reason.
    pub refused: Option<(u32, StopReason)>,
    /// Attempts of the call, refused ones included.
    pub attempts: u32,
    /// Attempts that only repeated a request without a parameter; they do not count as retries.
    pub adapted: u32,
    /// Longest wait in milliseconds that an earlier attempt was answered with (`Retry-After`). The
    /// text already has that of the last attempt.
    pub earlier_wait_ms: Option<u64>,
    own_wait_ms: Option<u64>,
}

#[derive(Clone, Debug)]
struct StopCandidate {
    reason: StopReason,
    call: SpanId,
    said: LastError,
}

impl LastErrors {
    pub fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::AttemptFailed(failed) => {
                if let Some(attempt) = spans.get(event.span) {
                    let before = self.open.get(&attempt.parent);
                    let adapted = before.map_or(0, |said| said.adapted);
                    let said = LastError {
                        text: failed.text.as_str().into(),
                        limit: None,
                        refused: None,
                        attempts: 1,
                        adapted: adapted + u32::from(failed.adapted.is_some()),
                        earlier_wait_ms: before
                            .and_then(|said| said.own_wait_ms.max(said.earlier_wait_ms)),
                        own_wait_ms: failed.retry_after_ms,
                    };
                    self.open.insert(attempt.parent, said);
                }
            }
            EventKind::RetryRefused { limit, .. } => {
                if let Some(said) = self.open.get_mut(&event.span) {
                    said.limit = Some(*limit);
                }
            }
            EventKind::AttemptRefused { attempt, reason, .. } => {
                if let Some(said) = self.open.get_mut(&event.span) {
                    said.refused = Some((*attempt, reason.clone()));
                }
            }
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                self.open.remove(&event.span);
            }
            EventKind::CallFailed { attempts, reason } => {
                let said = self.open.remove(&event.span);
                if let (Some(mut said), Some(call)) = (said, spans.get(event.span)) {
                    said.attempts = *attempts;
                    self.note(reason, event.span, said, &call.kind);
                }
            }
            EventKind::CallAnswered { .. } | EventKind::CallDegraded { .. } => {
                self.open.remove(&event.span);
            }
            _ => {}
        }
    }

    fn note(&mut self, reason: &StopReason, call: SpanId, said: LastError, what: &SpanKind) {
        // Concurrent seats: the first one in the sequence stops the run, no matter which one failed
        // first.
        let SpanKind::Call(purpose) = what else { return };
        // A tool has no such reason, and of an agent its own model call has the cause already.
        if purpose.asks() != Asks::Model {
            return;
        }
        let first_counts = matches!(purpose, Purpose::Contribution { .. });
        match self.failed.iter_mut().find(|failed| failed.reason == *reason) {
            Some(before) if first_counts && before.call < call => {}
            Some(before) => (before.call, before.said) = (call, said),
            None => self.failed.push(StopCandidate { reason: reason.clone(), call, said }),
        }
    }

    /// The last error of the model call that stopped a run with this reason, if there is one.
    pub fn for_reason(&self, stop: &StopReason) -> Option<&LastError> {
        let failed = self.failed.iter().find(|failed| failed.reason == *stop)?;
        // For a missing script row, the text already says whose row it is and what to add.
        let is_explained = matches!(stop, StopReason::ScriptMissing(_));
        (is_explained || stop.class() == StopClass::Unreachable).then_some(&failed.said)
    }
}
