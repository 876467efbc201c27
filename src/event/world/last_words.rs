//! What the last attempt of a model's call said that failed for good, and which limit kept it from
//! another: the cause behind a stop such as `llm_error:bad_response`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::spans::{SpanKind, Spans};
use crate::event::kind::{Purpose, RetryLimit};
use crate::event::stop::StopClass;
use crate::event::{Event, EventKind, SpanId, StopReason};

/// What failed attempts said.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords {
    /// Of calls that are open, by their spans.
    open: BTreeMap<SpanId, Said>,
    /// For each reason that a model's call gave the run, the call that counts.
    failed: Vec<Failed>,
}

/// What an attempt said, and what kept its call from another.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// Its text.
    pub text: Arc<str>,
    /// The limit in the way, where there was one.
    pub limit: Option<RetryLimit>,
    /// An attempt after it that was refused: its number, and why.
    pub refused: Option<(u32, StopReason)>,
    /// Attempts of its call; one that was refused counts.
    pub attempts: u32,
    /// Those of them that were sent again without a parameter, which is no retry.
    pub adapted: u32,
    /// The longest wait that an attempt before it was asked for, in milliseconds; its own stands in its
    /// text.
    pub asked_ms: Option<u64>,
    own_ms: Option<u64>,
}

#[derive(Clone, Debug)]
struct Failed {
    reason: StopReason,
    call: SpanId,
    said: Said,
}

impl LastWords {
    pub fn apply(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::AttemptFailed(failed) => {
                if let Some(attempt) = spans.get(event.span) {
                    let before = self.open.get(&attempt.parent);
                    let adapted = before.map_or(0, |said| said.adapted);
                    let said = Said {
                        text: failed.text.as_str().into(),
                        limit: None,
                        refused: None,
                        attempts: 1,
                        adapted: adapted + u32::from(failed.adapted.is_some()),
                        asked_ms: before.and_then(|said| said.own_ms.max(said.asked_ms)),
                        own_ms: failed.retry_after_ms,
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
                    self.note(reason, event.span, said, &call.what);
                }
            }
            EventKind::CallAnswered { .. } | EventKind::CallDegraded { .. } => {
                self.open.remove(&event.span);
            }
            _ => {}
        }
    }

    fn note(&mut self, reason: &StopReason, call: SpanId, said: Said, what: &SpanKind) {
        // Seats speak at once: the first of the sequence stops the run, whichever failed first.
        let first_counts = match what {
            SpanKind::Call(Purpose::Contribution { .. }) => true,
            SpanKind::Call(
                Purpose::Plan
                | Purpose::Say { .. }
                | Purpose::Notes { .. }
                | Purpose::Synthesize
                | Purpose::Finalize,
            ) => false,
            // A tool, or an agent that fails of its model's call and says no more than that it did.
            _ => return,
        };
        match self.failed.iter_mut().find(|failed| failed.reason == *reason) {
            Some(before) if first_counts && before.call < call => {}
            Some(before) => (before.call, before.said) = (call, said),
            None => self.failed.push(Failed { reason: reason.clone(), call, said }),
        }
    }

    /// What the call said that stopped a run for this reason, if it was a model's.
    pub fn of(&self, stop: &StopReason) -> Option<&Said> {
        let failed = self.failed.iter().find(|failed| failed.reason == *stop)?;
        // A script that has no reply says whose, and what to add.
        let told = matches!(stop, StopReason::ScriptMissing(_));
        (told || stop.class() == StopClass::Unreachable).then_some(&failed.said)
    }
}
