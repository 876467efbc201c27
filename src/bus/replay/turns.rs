//! Calls that wait for their turn, and the turns that were given to them.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

/// The calls that wait for their turn.
#[derive(Default)]
pub(super) struct Turns {
    /// By the index of the event that each publishes next, then in the order in which they came.
    waiting: BTreeMap<(usize, u64), Waker>,
    /// Numbers of those whose turn it is.
    given: BTreeSet<u64>,
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

    /// A call waits no longer. Returns whether it was given its turn.
    pub fn leave(&mut self, key: (usize, u64)) -> bool {
        self.waiting.remove(&key);
        self.given.remove(&key.1)
    }

    /// Gives the turn to the call whose event comes first, if that event has an index up to `last`.
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
