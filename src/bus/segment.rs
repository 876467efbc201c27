//! A stretch of a log. Each segment links to the one after it, so a reader that holds one holds all
//! that it has not read, whatever the log itself has let go.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::event::Event;

/// The most facts in one segment.
const MOST: usize = 256;
/// Facts in the first segment of a log: most logs are short.
const LEAST: usize = 32;
/// Bytes after which a segment takes no further fact, so that a log of heavy facts can let go of
/// them a few at a time.
pub(super) const HEAVY: u64 = 256 << 10;

/// Facts in a row.
pub(super) struct Segment {
    /// The place of its first fact.
    pub first: u64,
    /// The facts, the first first; those at its end may be missing for good once there is a next.
    pub facts: Box<[OnceLock<Arc<Event>>]>,
    /// The segment after it.
    pub next: OnceLock<Arc<Segment>>,
    /// Bytes, once it takes no further fact.
    weight: AtomicU64,
    held: Arc<Held>,
}

impl Segment {
    /// An empty one that begins at this place.
    pub fn new(first: u64, held: &Arc<Held>) -> Arc<Self> {
        let room = usize::try_from(first).unwrap_or(MOST).clamp(LEAST, MOST);
        Arc::new(Self {
            first,
            facts: (0..room).map(|_| OnceLock::new()).collect(),
            next: OnceLock::new(),
            weight: AtomicU64::new(0),
            held: Arc::clone(held),
        })
    }

    /// It takes no further fact; its facts weigh so much.
    pub fn close(&self, weight: u64) {
        self.weight.store(weight, Ordering::Relaxed);
        self.held.bytes.fetch_add(weight, Ordering::AcqRel);
    }

    /// What it weighs, once it takes no further fact.
    pub fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    /// What it takes beside its facts, in bytes.
    pub fn overhead(&self) -> u64 {
        (self.facts.len() * size_of::<OnceLock<Arc<Event>>>() + size_of::<Self>()) as u64
    }
}

impl Drop for Segment {
    /// One by one: segments that drop each other would need a stack as long as the log.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(segment) = next {
            next = Arc::into_inner(segment).and_then(|mut segment| segment.next.take());
        }
        let weight = self.weight.load(Ordering::Relaxed);
        if weight > 0 {
            self.held.let_go(weight);
        }
    }
}

/// What the closed segments of a log weigh that anyone holds: the log itself, or a reader that is
/// behind.
pub(super) struct Held {
    bytes: AtomicU64,
    /// The run waits above this, until it is down to `enough` again.
    most: AtomicU64,
    enough: AtomicU64,
    freed: Notify,
}

impl Held {
    /// Nothing yet, and no bound.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicU64::new(0),
            most: AtomicU64::new(u64::MAX),
            enough: AtomicU64::new(u64::MAX),
            freed: Notify::new(),
        })
    }

    /// Sets the bound, and how far down it goes once it was passed: those that wait for each other
    /// would else take turns at every segment.
    pub fn bound(&self, most: u64, enough: u64) {
        self.most.store(most, Ordering::Release);
        self.enough.store(enough, Ordering::Release);
        self.freed.notify_waiters();
    }

    /// Whether it is within its bound.
    pub fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Acquire) <= self.most.load(Ordering::Acquire)
    }

    fn is_enough(&self) -> bool {
        self.bytes.load(Ordering::Acquire) <= self.enough.load(Ordering::Acquire)
    }

    /// Waits until there is room, where there is none.
    pub async fn room(&self) {
        if self.has_room() {
            return;
        }
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.is_enough() {
                return;
            }
            freed.await;
        }
    }

    fn let_go(&self, weight: u64) {
        let before = self.bytes.fetch_sub(weight, Ordering::AcqRel);
        let enough = self.enough.load(Ordering::Acquire);
        if before > enough && before.saturating_sub(weight) <= enough {
            self.freed.notify_waiters();
        }
    }
}
