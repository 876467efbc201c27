//! The log of one run, which is also its bus: appended to by the engine, read by any number of
//! readers. Publishing is synchronous, cannot fail and never waits for a reader; a reader keeps a
//! cursor of its own and is only ever late, never lossy.
//!
//! Facts stand in append-only segments that readers walk without a lock. Beside the log, not in
//! it, each open span may have a *live slot*: the text that has come so far. Facts are what is
//! recorded; live text is for the eye and does not outlast its span.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::event::{Elapsed, Event, EventKind, Seq, SpanId};

/// Facts in one segment.
const SEGMENT: usize = 256;

/// A run's log. Cheap to clone; all clones are the same log.
#[derive(Clone)]
pub struct Bus(Arc<Log>);

struct Log {
    started: Instant,
    tail: Mutex<Tail>,
    spans: AtomicU32,
    live: Mutex<HashMap<SpanId, Arc<Mutex<LiveText>>>>,
    live_version: AtomicU64,
    live_changed: Notify,
}

struct Tail {
    len: u64,
    weight: u64,
    segments: Vec<Arc<Segment>>,
    waiting: Vec<(u64, Waker)>,
    readers: u64,
    closed: bool,
}

struct Segment {
    facts: Box<[OnceLock<Arc<Event>>]>,
    next: OnceLock<Arc<Segment>>,
}

impl Segment {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            facts: (0..SEGMENT).map(|_| OnceLock::new()).collect(),
            next: OnceLock::new(),
        })
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
    /// An empty log whose time starts now.
    pub fn new() -> Self {
        Self(Arc::new(Log {
            started: Instant::now(),
            tail: Mutex::new(Tail {
                len: 0,
                weight: 0,
                segments: Vec::new(),
                waiting: Vec::new(),
                readers: 0,
                closed: false,
            }),
            spans: AtomicU32::new(1),
            live: Mutex::default(),
            live_version: AtomicU64::new(0),
            live_changed: Notify::new(),
        }))
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
        let slot = (tail.len % SEGMENT as u64) as usize;
        if slot == 0 {
            let segment = Segment::new();
            if let Some(last) = tail.segments.last() {
                let _ = last.next.set(Arc::clone(&segment));
            }
            tail.segments.push(segment);
        }
        if let Some(last) = tail.segments.last() {
            let _ = last.facts[slot].set(fact);
        }
        tail.len += 1;
        tail.weight += weight as u64;
        if !tail.waiting.is_empty() {
            let waiting = std::mem::take(&mut tail.waiting);
            drop(tail);
            for (_, waker) in waiting {
                waker.wake();
            }
        }
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

    /// A reader that starts at `from`, be it there already or yet to come.
    pub fn reader(&self, from: Seq) -> Reader {
        let mut tail = lock(&self.0.tail);
        tail.readers += 1;
        let id = tail.readers;
        drop(tail);
        Reader { segment: None, bus: self.clone(), id, next: from.0 }
    }

    /// The id of a span that is about to be opened.
    pub fn next_span(&self) -> SpanId {
        SpanId(self.0.spans.fetch_add(1, Ordering::Relaxed))
    }

    /// Time since the start of the log.
    pub fn now(&self) -> Elapsed {
        Elapsed::of(self.0.started.elapsed())
    }

    /// How many facts the log holds.
    pub fn len(&self) -> u64 {
        lock(&self.0.tail).len
    }

    /// Whether the log holds no fact yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many bytes the log holds.
    pub fn weight(&self) -> u64 {
        let tail = lock(&self.0.tail);
        let segment = SEGMENT * std::mem::size_of::<OnceLock<Arc<Event>>>();
        tail.weight + (tail.segments.len() * segment) as u64
    }

    /// The fact at this place, if it is there.
    pub fn fact(&self, seq: Seq) -> Option<Arc<Event>> {
        let segment = {
            let tail = lock(&self.0.tail);
            Arc::clone(tail.segments.get((seq.0 / SEGMENT as u64) as usize)?)
        };
        segment.facts[(seq.0 % SEGMENT as u64) as usize].get().cloned()
    }

    /// Opens the live slot of a span; it is gone when the returned handle is dropped.
    pub fn live(&self, span: SpanId) -> LiveSlot {
        let text = Arc::new(Mutex::new(LiveText::default()));
        lock(&self.0.live).insert(span, Arc::clone(&text));
        LiveSlot { bus: self.clone(), span, text }
    }

    /// Looks at the text that has come so far in a span; `None` when it has no live slot.
    pub fn with_live<T>(&self, span: SpanId, look: impl FnOnce(&LiveText) -> T) -> Option<T> {
        let text = Arc::clone(lock(&self.0.live).get(&span)?);
        let text = lock(&text);
        Some(look(&text))
    }

    /// The spans that have a live slot now, by their ids.
    pub fn live_spans(&self) -> Vec<SpanId> {
        let mut spans: Vec<SpanId> = lock(&self.0.live).keys().copied().collect();
        spans.sort_unstable();
        spans
    }

    /// Grows with every change of any live slot: equal numbers mean nothing new to show.
    pub fn live_version(&self) -> u64 {
        self.0.live_version.load(Ordering::Acquire)
    }

    /// Waits until a live slot has changed since version `seen`.
    pub async fn live_changed(&self, seen: u64) -> u64 {
        loop {
            let changed = self.0.live_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let now = self.live_version();
            if now != seen {
                return now;
            }
            changed.await;
        }
    }

    fn touch_live(&self) {
        self.0.live_version.fetch_add(1, Ordering::AcqRel);
        self.0.live_changed.notify_waiters();
    }
}

/// The text of a span while it comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveText {
    /// What has come so far.
    pub text: String,
    /// In how many pieces.
    pub pieces: u64,
    /// When the first piece came.
    pub first_at: Option<Elapsed>,
    /// When the last piece came.
    pub last_at: Option<Elapsed>,
}

/// The writing end of a live slot.
pub struct LiveSlot {
    bus: Bus,
    span: SpanId,
    text: Arc<Mutex<LiveText>>,
}

impl LiveSlot {
    /// Adds a piece.
    pub fn push(&self, piece: &str) {
        let now = self.bus.now();
        {
            let mut live = lock(&self.text);
            live.text.push_str(piece);
            live.pieces += 1;
            live.first_at.get_or_insert(now);
            live.last_at = Some(now);
        }
        self.bus.touch_live();
    }

    /// What has come so far.
    pub fn text(&self) -> String {
        lock(&self.text).text.clone()
    }

    /// When the first piece came.
    pub fn first_at(&self) -> Option<Elapsed> {
        lock(&self.text).first_at
    }
}

impl Drop for LiveSlot {
    fn drop(&mut self) {
        lock(&self.bus.0.live).remove(&self.span);
        self.bus.touch_live();
    }
}

/// A cursor of its own over a log.
pub struct Reader {
    /// Before the log: a reader that is the last to hold both must let the log drop its segments
    /// one by one, not this one drop all that follow it from within each other.
    segment: Option<Arc<Segment>>,
    bus: Bus,
    id: u64,
    next: u64,
}

impl Reader {
    /// Takes what is there, at most `max` facts, onto the end of `out`; waits for the first of
    /// them. Returns how many came: 0 when the log is closed and read to its end (or `max` is 0).
    /// Dropped while it waits, it has taken nothing.
    pub async fn next_batch(&mut self, out: &mut Vec<Arc<Event>>, max: usize) -> usize {
        loop {
            let came = self.take(out, max);
            if came > 0 || max == 0 {
                return came;
            }
            let (bus, id, next) = (&self.bus, self.id, self.next);
            let more = poll_fn(|cx| {
                let mut tail = lock(&bus.0.tail);
                if tail.len > next {
                    Poll::Ready(true)
                } else if tail.closed {
                    Poll::Ready(false)
                } else {
                    match tail.waiting.iter_mut().find(|(waiting, _)| *waiting == id) {
                        Some((_, waker)) => waker.clone_from(cx.waker()),
                        None => tail.waiting.push((id, cx.waker().clone())),
                    }
                    Poll::Pending
                }
            })
            .await;
            if !more {
                return 0;
            }
        }
    }

    /// Takes what is there without waiting, at most `max` facts, onto the end of `out`.
    pub fn take(&mut self, out: &mut Vec<Arc<Event>>, max: usize) -> usize {
        let mut came = 0;
        while came < max {
            if self.segment.is_none() {
                let index = (self.next / SEGMENT as u64) as usize;
                self.segment = lock(&self.bus.0.tail).segments.get(index).cloned();
            }
            let Some(segment) = &self.segment else { break };
            let slot = (self.next % SEGMENT as u64) as usize;
            let Some(fact) = segment.facts[slot].get() else { break };
            out.push(Arc::clone(fact));
            came += 1;
            self.next += 1;
            if slot + 1 == SEGMENT {
                self.segment = segment.next.get().cloned();
            }
        }
        came
    }

    /// The place of the fact that comes next.
    pub fn position(&self) -> Seq {
        Seq(self.next)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        lock(&self.bus.0.tail).waiting.retain(|(id, _)| *id != self.id);
    }
}
