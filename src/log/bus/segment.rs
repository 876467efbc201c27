//! Segments: the pieces that a log is stored in. Each segment links to the next, so a reader that
//! holds one also holds everything that it has not read, even if the log itself has dropped it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::log::event::Event;

/// Most events in one segment.
const MAX_EVENTS: usize = 256;
/// Events in the first segment of a log: most logs are short.
const FIRST_SEGMENT_EVENTS: usize = 32;
/// A segment of this many bytes gets no more events, so a log of large events can drop them a few
/// at a time.
pub(super) const MAX_SEGMENT_BYTES: u64 = 256 << 10;

/// A run of consecutive events.
pub(crate) struct Segment {
    /// Sequence number of its first event.
    pub first: u64,
    /// The events in order. Slots at the end may stay empty for good once `next` is set.
    pub events: Box<[OnceLock<Arc<Event>>]>,
    pub next: OnceLock<Arc<Segment>>,
    /// Bytes; set when the segment gets no more events.
    weight: AtomicU64,
    held: Arc<HeldBytes>,
}

impl Segment {
    /// An empty segment whose first event will have this sequence number.
    pub fn new(first: u64, held: &Arc<HeldBytes>) -> Arc<Self> {
        let room =
            usize::try_from(first).unwrap_or(MAX_EVENTS).clamp(FIRST_SEGMENT_EVENTS, MAX_EVENTS);
        Arc::new(Self {
            first,
            events: (0..room).map(|_| OnceLock::new()).collect(),
            next: OnceLock::new(),
            weight: AtomicU64::new(0),
            held: Arc::clone(held),
        })
    }

    /// Closes the segment: it gets no more events. `weight` is its size in bytes.
    pub fn close(&self, weight: u64) {
        self.weight.store(weight, Ordering::Relaxed);
        self.held.bytes.fetch_add(weight, Ordering::AcqRel);
    }

    /// Size in bytes, once the segment is closed.
    pub fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    /// Bytes that it takes besides its events.
    pub fn overhead(&self) -> u64 {
        (self.events.len() * size_of::<OnceLock<Arc<Event>>>() + size_of::<Self>()) as u64
    }
}

impl Drop for Segment {
    /// Drops the chain in a loop: with recursion the stack would grow with the length of the log.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(segment) = next {
            next = Arc::into_inner(segment).and_then(|mut segment| segment.next.take());
        }
        let weight = self.weight.load(Ordering::Relaxed);
        if weight > 0 {
            self.held.release(weight);
        }
    }
}

/// Bytes of all closed segments that the log or a slow reader keeps alive.
pub(crate) struct HeldBytes {
    bytes: AtomicU64,
    /// Above this the run waits, until the bytes are down to `enough`.
    max: AtomicU64,
    resume_at: AtomicU64,
    freed: Notify,
}

impl HeldBytes {
    /// Empty and without a limit.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicU64::new(0),
            max: AtomicU64::new(u64::MAX),
            resume_at: AtomicU64::new(u64::MAX),
            freed: Notify::new(),
        })
    }

    /// Sets the limit, and the lower mark at which a waiting run resumes. Without that mark, run
    /// and reader would take turns at every segment.
    pub fn set_limit(&self, most: u64, enough: u64) {
        self.max.store(most, Ordering::Release);
        self.resume_at.store(enough, Ordering::Release);
        self.freed.notify_waiters();
    }

    /// Whether the size is within the limit.
    pub fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Acquire) <= self.max.load(Ordering::Acquire)
    }

    fn may_resume(&self) -> bool {
        self.bytes.load(Ordering::Acquire) <= self.resume_at.load(Ordering::Acquire)
    }

    /// Waits until there is room. Before each wait it calls `trim`, which may make room.
    pub async fn room(&self, trim: impl Fn()) {
        if self.has_room() {
            return;
        }
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            trim();
            if self.may_resume() {
                return;
            }
            freed.await;
        }
    }

    fn release(&self, weight: u64) {
        let before = self.bytes.fetch_sub(weight, Ordering::AcqRel);
        let enough = self.resume_at.load(Ordering::Acquire);
        if before > enough && before.saturating_sub(weight) <= enough {
            self.freed.notify_waiters();
        }
    }
}
