//! The refused replies that an outcome needs: for each stop reason, the one that stops the run.

use std::sync::Arc;

use super::spans::{SpanKind, Spans};
use crate::event::kind::{Purpose, ReplyRefused};
use crate::event::{Event, EventKind, StopReason};

/// The refused replies of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    /// For each stop reason, the refusal that counts.
    stops: Vec<StopRefusal>,
}

/// A refused reply that may stop a run.
#[derive(Clone, Debug)]
pub struct StopRefusal {
    /// Round and seat, if seats are asked in parallel: the first seat of the sequence stops the
    /// run.
    seat: Option<(u32, u16)>,
    /// What the reply was for; `None`: the log does not say it.
    pub purpose: Option<Purpose>,
    /// The refusal.
    pub refused: Arc<ReplyRefused>,
}

/// Most reasons to keep: reasons that quote a model's own words may be many.
const MAX_REASONS: usize = 64;

impl Refusals {
    pub fn apply(&mut self, event: &Event, spans: &Spans) {
        let EventKind::ReplyRefused(refused) = &event.kind else { return };
        if refused.repeat.is_some() {
            return;
        }
        let purpose = match spans.get(event.span).map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => Some(purpose.clone()),
            _ => None,
        };
        let seat = match purpose {
            Some(Purpose::Contribution { round, seat, .. }) => Some((round, seat)),
            _ => None,
        };
        let new = StopRefusal { seat, purpose, refused: Arc::new(ReplyRefused::clone(refused)) };
        let room = self.stops.len() < MAX_REASONS;
        match self.stops.iter_mut().find(|it| it.refused.reason == refused.reason) {
            Some(before) => {
                let earlier = matches!(
                    (before.seat, seat),
                    (Some((round, first)), Some((same, second))) if round == same && first < second
                );
                if !earlier {
                    *before = new;
                }
            }
            None if room => self.stops.push(new),
            None => {}
        }
    }

    /// The refused reply that stops a run with this reason, if there is one.
    pub fn for_reason(&self, stop: &StopReason) -> Option<&StopRefusal> {
        self.stops.iter().find(|it| it.refused.reason == *stop)
    }
}
