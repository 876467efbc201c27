//! A fork: a recording is executed again up to a boundary, and continues from there in a log of its
//! own.

use std::sync::Arc;
use std::task::Waker;

use super::error::PassedBoundary;
use crate::event::{BoundaryId, Event, EventKind, Seq};

/// What a fork takes from its recording.
pub(super) struct ForkLog {
    /// The boundary to continue from.
    pub at: BoundaryId,
    /// Whether a branch of the run waits there.
    pub is_reached: bool,
    /// The branches that wait there.
    pub waiting: Vec<Waker>,
    /// The boundaries that the run came to, in this order.
    pub passed: Vec<PassedBoundary>,
    /// The recorded events that were executed again, in that order.
    events: Vec<Arc<Event>>,
}

impl ForkLog {
    pub fn new(at: BoundaryId) -> Self {
        Self { at, is_reached: false, waiting: Vec::new(), passed: Vec::new(), events: Vec::new() }
    }

    /// Takes a recorded event into the log.
    pub fn take(&mut self, event: &Arc<Event>) {
        self.events.push(Arc::clone(event));
    }

    /// The head of the log is the one of the fork.
    pub fn set_head(&mut self, kind: EventKind) {
        if let Some(first) = self.events.first_mut() {
            *first = Arc::new(Event { kind, ..Event::clone(first) });
        }
    }

    /// The events that the log begins with, in their recorded order, and the branches that wait.
    pub fn into_events(mut self) -> (Vec<Arc<Event>>, Vec<Waker>) {
        self.events.sort_by_key(|event| event.seq);
        for (seq, event) in (0..).map(Seq).zip(&mut self.events) {
            if event.seq != seq {
                *event = Arc::new(Event { seq, ..Event::clone(event) });
            }
        }
        (self.events, self.waiting)
    }
}
