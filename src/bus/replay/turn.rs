//! The turn of a call. Several calls of a run may become ready at the same moment, and the one that
//! continues first takes the free slot, the place in a queue or the permission of a breaker. A run
//! that is executed again lets them continue in their recorded order.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use super::Replay;
use super::keys::opening_key;
use super::state::ReplayState;
use super::turns::NOT_RECORDED;
use crate::event::{Event, EventKind, SpanId, StopReason};

/// What a call does next, in its turn.
#[derive(Clone, Copy)]
pub(crate) enum CallStep<'a> {
    /// It starts, with this event.
    Start(&'a EventKind),
    /// It has a slot of the pool, makes an attempt, or has left the queue of its tool with a permit.
    Continue(SpanId),
    /// It has waited too long in the queue of its tool.
    GiveUp(SpanId),
}

/// A call that waits for its turn; it stops waiting when this is dropped.
struct WaitingTurn<'a> {
    replay: &'a Replay,
    key: (usize, u64),
}

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        self.replay.lock().turns.leave(self.key);
    }
}

impl Replay {
    /// Waits until everything that is recorded before this step has happened. A step that is not
    /// recorded waits until the recording is used up.
    pub(crate) async fn turn(&self, step: CallStep<'_>) {
        if self.is_live() {
            return;
        }
        let number = self.lock().turns.next_number();
        let mut waits = WaitingTurn { replay: self, key: (NOT_RECORDED, number) };
        poll_fn(|cx| {
            let mut state = self.lock();
            if self.is_live() || state.turns.leave(waits.key) {
                return Poll::Ready(());
            }
            let place = self.place_of(&state, step);
            if place == state.next
                && let Some(event) = self.recording.events().get(place)
            {
                self.advance(event.at);
                return Poll::Ready(());
            }
            waits.key.0 = place;
            state.turns.wait(waits.key, cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The index of the event that this step leads to.
    fn place_of(&self, state: &ReplayState, step: CallStep<'_>) -> usize {
        let place = match step {
            CallStep::Start(kind) => {
                opening_key(kind).and_then(|key| state.unmatched.get(&key)?.front().copied())
            }
            CallStep::Continue(call) => self.next_step(state, call),
            CallStep::GiveUp(call) => self.next_step(state, call).filter(|place| {
                let event = self.recording.events().get(*place);
                event.is_some_and(|event| is_queue_left(&event.kind))
            }),
        };
        place.unwrap_or(NOT_RECORDED)
    }

    /// The index of the next recorded step of a call.
    fn next_step(&self, state: &ReplayState, call: SpanId) -> Option<usize> {
        let mut steps = self.recording.steps_of(call).iter().copied();
        steps.find(|place| state.matched.get(*place) == Some(&false))
    }

    /// The next recorded step of a call: `call.admitted`, or the start, queueing or refusal of an
    /// attempt. `None` if it is not recorded, or the recording is used up.
    pub(crate) fn recorded_turn(&self, call: SpanId) -> Option<Arc<Event>> {
        let state = self.lock();
        if self.is_live() {
            return None;
        }
        self.recording.events().get(self.next_step(&state, call)?).cloned()
    }

    /// Lets the waiting call continue whose next step was recorded first. If `any` is set, this may also
    /// be a call whose next step is not recorded. Returns whether a call continues.
    pub(crate) fn give_turn(&self, any: bool) -> bool {
        let last = if any { NOT_RECORDED } else { NOT_RECORDED - 1 };
        let waker = self.lock().turns.give(last);
        waker.map(|waker| waker.wake()).is_some()
    }
}

/// Whether an attempt was refused because it found no permit in time.
fn is_queue_left(kind: &EventKind) -> bool {
    matches!(kind, EventKind::AttemptRefused { reason: StopReason::BulkheadFull(_), .. })
}
