//! A fork: a recording is executed again up to a boundary, and continues from there in a log of its
//! own.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::{Replay, ReplayError};
use crate::event::{Boundary, BoundaryId, Elapsed, Event, EventKind, Seq};

/// A boundary that a recorded run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedBoundary {
    /// The boundary.
    pub id: BoundaryId,
    /// The first event of the recording after it.
    pub next: Seq,
    /// Time of the run then.
    pub at: Elapsed,
}

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
    /// The recorded events that were executed again, in this order: the log begins with them.
    events: Vec<Arc<Event>>,
}

impl ForkLog {
    pub fn new(at: BoundaryId) -> Self {
        Self { at, is_reached: false, waiting: Vec::new(), passed: Vec::new(), events: Vec::new() }
    }

    /// Takes a recorded event into the log. Its time is at least that of the event before it.
    pub fn take(&mut self, event: &Arc<Event>) {
        let seq = Seq(self.events.len() as u64);
        let at = self.events.last().map_or(Elapsed(0), |last| last.at).max(event.at);
        self.events.push(if (seq, at) == (event.seq, event.at) {
            Arc::clone(event)
        } else {
            Arc::new(Event { seq, at, ..Event::clone(event) })
        });
    }

    /// The head of the log is the one of the fork.
    pub fn set_head(&mut self, kind: EventKind) {
        if let Some(first) = self.events.first_mut() {
            *first = Arc::new(Event { kind, ..Event::clone(first) });
        }
    }

    /// The events that the log begins with, and the branches that wait.
    pub fn into_events(self) -> (Vec<Arc<Event>>, Vec<Waker>) {
        (self.events, self.waiting)
    }
}

impl Replay {
    /// Whether a fork has come to its boundary.
    pub(crate) fn is_at_fork(&self) -> bool {
        self.lock().fork.as_ref().is_some_and(|fork| fork.is_reached)
    }

    /// Where a fork should have begun, and the boundaries that the run came to instead; `None`: the
    /// log continues the recording.
    pub(crate) fn not_reached(&self) -> Option<ReplayError> {
        let mut state = self.lock();
        let fork = state.fork.as_mut()?;
        Some(ReplayError::NotReached {
            at: fork.at.clone(),
            passed: std::mem::take(&mut fork.passed),
        })
    }

    /// A branch has come to a boundary. If it is where a fork begins, it waits there until the run is
    /// live.
    pub(crate) async fn arrive(&self, boundary: &Boundary) {
        let mut is_known = false;
        poll_fn(|cx| {
            let mut state = self.lock();
            let next = Seq(state.next as u64);
            let Some(fork) = state.fork.as_mut().filter(|_| !self.is_live()) else {
                return Poll::Ready(());
            };
            let id = boundary.id();
            let is_here = fork.at == id;
            if !is_known {
                is_known = true;
                let at = Elapsed::from_duration(self.clock.since(self.started));
                fork.passed.push(PassedBoundary { id, next, at });
            }
            if !is_here {
                return Poll::Ready(());
            }
            fork.is_reached = true;
            fork.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
