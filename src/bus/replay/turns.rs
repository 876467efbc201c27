//! Calls that wait for their turn, and the turns that were given to them.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

/// The calls that wait for their turn.
#[derive(Default)]
pub(super) struct Turns {
    /// Ordered by the index of the event that each publishes next, then by its number.
    waiting: BTreeMap<(usize, u64), Waker>,
    /// Numbers of the calls that may continue and have not done so yet.
    given: BTreeSet<u64>,
    /// The number that was given out last.
    last: u64,
}

/// The index of an event that is not recorded.
pub(super) const NOT_RECORDED: usize = usize::MAX;

impl Turns {
    /// A number for a call that comes to wait.
    pub fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A call waits until the event with this index is the next one.
    pub fn wait(&mut self, key: (usize, u64), waker: Waker) {
        self.waiting.insert(key, waker);
    }

    /// A call stops waiting. Returns whether it may continue.
    pub fn leave(&mut self, key: (usize, u64)) -> bool {
        self.waiting.remove(&key);
        self.given.remove(&key.1)
    }

    /// Lets the call continue whose event comes first, if that event has an index up to `last`.
    pub fn give(&mut self, last: usize) -> Option<Waker> {
        let first = self.waiting.first_entry().filter(|first| first.key().0 <= last)?;
        let ((_, number), waker) = first.remove_entry();
        self.given.insert(number);
        Some(waker)
    }

    /// The calls that still wait.
    pub fn into_wakers(self) -> impl Iterator<Item = Waker> {
        self.waiting.into_values()
    }
}
