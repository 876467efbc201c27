//! The log of one run, which is also its bus: appended to by the engine, read by any number of
//! readers. Publishing is synchronous, cannot fail and never waits for a reader; a reader keeps a
//! cursor of its own and is only ever late, never lossy.
//!
//! Facts stand in append-only segments that readers walk without a lock. A log keeps all of them,
//! or a window of the last ([`Bounds`]): what has left the window is gone once every reader has read
//! it. A reader that is behind holds what it has not read; so that this is bounded too, a run asks
//! for [`room`](Bus::room) before it goes on, and waits while its log is too far ahead.
//!
//! Beside the log, not in it, each open span may have a *live slot*: the text that has come so far.
//! Facts are what is recorded; live text is for the eye and does not outlast its span.

mod live;
mod reader;
mod segment;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::sync::Notify;
use tokio::time::Instant;

use self::live::LiveSlots;
use self::segment::{HEAVY, Held, Segment};
use crate::event::{Elapsed, Event, EventKind, Seq, SpanId};

pub use self::live::{LiveSlot, LiveText};
pub use self::reader::Reader;

/// How much of a log is held in memory, in bytes as facts weigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of the facts that every reader has read: the last of them, up to so much.
    pub window: u64,
    /// Of the facts that a reader has not read yet: above this the run waits for it.
    pub ahead: u64,
}

impl Default for Bounds {
    /// All of it, however slow a reader is.
    fn default() -> Self {
        Self { window: u64::MAX, ahead: u64::MAX }
    }
}

/// Steps in which a window moves on: each drops 1/32 of it, so a reader that follows the window does
/// little work at a time.
const STEPS: u64 = 32;

/// A run's log. Cheap to clone; all clones are the same log.
#[derive(Clone)]
pub struct Bus(Arc<Log>);

struct Log {
    started: Instant,
    tail: Mutex<Tail>,
    held: Arc<Held>,
    spans: AtomicU32,
    live: Mutex<LiveSlots>,
    live_version: AtomicU64,
    live_changed: Notify,
}

struct Tail {
    len: u64,
    /// What the segments below weigh.
    weight: u64,
    /// The same of the last of them alone, and how many facts it has.
    last_weight: u64,
    last_len: usize,
    bounds: Bounds,
    segments: VecDeque<Arc<Segment>>,
    waiting: Vec<(u64, Waker)>,
    readers: u64,
    closed: bool,
}

impl Tail {
    /// The place of the first fact that is held.
    fn first(&self) -> u64 {
        self.segments.front().map_or(self.len, |segment| segment.first)
    }

    /// The segment that holds the fact at this place.
    fn segment_of(&self, place: u64) -> Option<&Arc<Segment>> {
        let after = self.segments.partition_point(|segment| segment.first <= place);
        self.segments.get(after.checked_sub(1)?)
    }

    /// The id of a further reader.
    fn reader(&mut self) -> u64 {
        self.readers += 1;
        self.readers
    }

    /// Sees to it that the last segment has a place for the next fact.
    fn make_room(&mut self, held: &Arc<Held>) {
        if let Some(last) = self.segments.back()
            && self.last_len < last.facts.len()
            && self.last_weight < HEAVY
        {
            return;
        }
        let segment = Segment::new(self.len, held);
        if let Some(last) = self.segments.back() {
            last.close(self.last_weight);
            let _ = last.next.set(Arc::clone(&segment));
        }
        self.last_len = 0;
        self.last_weight = segment.overhead();
        self.weight += self.last_weight;
        self.segments.push_back(segment);
    }

    /// Takes the first segments out that the window has no room for: in [steps](STEPS), so that
    /// a reader that follows the window does so once a step and not at every segment.
    fn trim(&mut self) -> Vec<Arc<Segment>> {
        let mut out = Vec::new();
        let window = self.bounds.window;
        if self.weight <= window.saturating_add(window / STEPS) {
            return out;
        }
        while self.weight > window
            && self.segments.len() > 1
            && let Some(first) = self.segments.pop_front()
        {
            self.weight = self.weight.saturating_sub(first.weight());
            out.push(first);
        }
        out
    }
}

/// A poisoned lock is taken all the same: nothing here is left half-done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Bus {
    fn default() -> Self {
        Self::new()
    }
}

impl Bus {
    /// An empty log whose time starts now, and that keeps all its facts.
    pub fn new() -> Self {
        Self::bounded(Bounds::default())
    }

    /// An empty log whose time starts now.
    pub fn bounded(bounds: Bounds) -> Self {
        let bus = Self(Arc::new(Log {
            started: Instant::now(),
            tail: Mutex::new(Tail {
                len: 0,
                weight: 0,
                last_weight: 0,
                last_len: 0,
                bounds,
                segments: VecDeque::new(),
                waiting: Vec::new(),
                readers: 0,
                closed: false,
            }),
            held: Held::new(),
            spans: AtomicU32::new(1),
            live: Mutex::default(),
            live_version: AtomicU64::new(0),
            live_changed: Notify::new(),
        }));
        bus.bound(bounds);
        bus
    }

    /// Sets other bounds. What a smaller window has no room for goes with the next facts.
    pub fn bound(&self, bounds: Bounds) {
        lock(&self.0.tail).bounds = bounds;
        let Bounds { window, ahead } = bounds;
        let kept = window.saturating_add(window / STEPS);
        self.0.held.bound(kept.saturating_add(ahead), kept.saturating_add(ahead / 2));
    }

    /// Appends a fact. The sequence number and the time are given inside the lock, so that both
    /// only ever grow along the log.
    pub fn publish(&self, span: SpanId, kind: EventKind) -> Seq {
        let weight = kind.weight();
        let mut fact = Arc::new(Event { seq: Seq(0), at: Elapsed(0), span, kind });
        let mut tail = lock(&self.0.tail);
        let seq = Seq(tail.len);
        if let Some(fact) = Arc::get_mut(&mut fact) {
            fact.seq = seq;
            fact.at = self.now();
        }
        tail.make_room(&self.0.held);
        if let Some(place) = tail.segments.back().and_then(|last| last.facts.get(tail.last_len)) {
            let _ = place.set(fact);
        }
        tail.last_len += 1;
        tail.last_weight += weight as u64;
        tail.weight += weight as u64;
        tail.len += 1;
        let gone = if tail.last_len == 1 { tail.trim() } else { Vec::new() };
        let waiting = std::mem::take(&mut tail.waiting);
        drop(tail);
        for (_, waker) in waiting {
            waker.wake();
        }
        drop(gone);
        seq
    }

    /// Says that no more facts come: readers that have read all get 0 instead of waiting.
    pub fn close(&self) {
        let waiting = {
            let mut tail = lock(&self.0.tail);
            tail.closed = true;
            std::mem::take(&mut tail.waiting)
        };
        for (_, waker) in waiting {
            waker.wake();
        }
    }

    /// The id of a span that is about to be opened.
    pub fn next_span(&self) -> SpanId {
        SpanId(self.0.spans.fetch_add(1, Ordering::Relaxed))
    }

    /// Time since the start of the log.
    pub fn now(&self) -> Elapsed {
        Elapsed::of(self.0.started.elapsed())
    }

    /// How many facts were published.
    pub fn len(&self) -> u64 {
        lock(&self.0.tail).len
    }

    /// Whether no fact was published yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many bytes the log itself holds; a reader that is behind may hold more.
    pub fn weight(&self) -> u64 {
        lock(&self.0.tail).weight
    }

    /// The first fact that the log still holds; where it holds none, the place of the next.
    pub fn first(&self) -> Seq {
        Seq(lock(&self.0.tail).first())
    }

    /// The fact at this place, if it is there and the log still holds it.
    pub fn fact(&self, seq: Seq) -> Option<Arc<Event>> {
        let segment = Arc::clone(lock(&self.0.tail).segment_of(seq.0)?);
        let place = usize::try_from(seq.0 - segment.first).ok()?;
        segment.facts.get(place)?.get().cloned()
    }

    /// Whether the log is within its bounds: no reader is too far behind.
    pub fn has_room(&self) -> bool {
        self.0.held.has_room()
    }

    /// Waits until the readers of a log that is out of its bounds have caught up. A run that publishes
    /// much awaits it where it may wait.
    pub async fn room(&self) {
        self.0.held.room().await;
    }
}
