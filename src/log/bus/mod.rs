//! The log of one run: the engine appends, any number of readers read. Publishing is synchronous,
//! cannot fail and never waits for a reader. A slow reader is late and loses nothing.
//!
//! Events are in append-only segments that readers walk without a lock. A log keeps all of its
//! events or only a window ([`LogLimits`]); an event outside the window is freed when every reader
//! has read it. To bound this too, a run awaits [`wait_for_room`](Bus::wait_for_room) while a
//! reader is too far behind.
//!
//! Next to the log, an open span may have a live slot: the text received so far, for display only. A
//! mark says how far the log is stored. A paid call waits for it, so every paid call is in the stored
//! log. A mirror is a copy of a log elsewhere, with the times of its events.

mod live;
mod reader;
mod segment;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::segment::{HeldBytes, MAX_SEGMENT_BYTES, Segment};
use super::clock::Clock;
use super::event::{BoundaryId, Command, Elapsed, Event, EventKind, Reply, Seq, SpanId};
use super::replay::{Replay, ReplayedEvent};

pub use self::live::{LiveSlot, LiveText, LiveTextReader};
pub use self::reader::LogReader;
pub use super::replay::recording::{Recording, RecordingError};
pub use super::replay::{Divergence, PassedBoundary, ReplayError};

/// Limits of the memory that a log uses, in bytes as [`EventKind::weight`] estimates them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Bytes of events that every reader has read: the latest of them are kept, up to this size.
    pub window: u64,
    /// Bytes of events that some reader has not read yet: above this the run waits for the reader.
    pub ahead: u64,
}

impl Default for LogLimits {
    /// No limits: the log keeps everything, and the run never waits for a reader.
    fn default() -> Self {
        Self { window: u64::MAX, ahead: u64::MAX }
    }
}

/// A window is trimmed in steps of 1/32 of its size, so a reader that follows the window does
/// little work at a time.
const STEPS: u64 = 32;

/// A run's log. Cheap to clone; all clones are the same log.
#[derive(Clone)]
pub struct Bus(Arc<Log>);

struct Log {
    clock: Clock,
    /// The moment of its first event. A recorded one begins when it is made.
    started: OnceLock<Instant>,
    tail: Mutex<Tail>,
    held: Arc<HeldBytes>,
    spans: AtomicU32,
    live: Mutex<BTreeMap<SpanId, Arc<Mutex<LiveText>>>>,
    live_version: AtomicU64,
    live_changed: Notify,
    /// The log continues a recording.
    replay: Option<Replay>,
    stored: OnceLock<Arc<StoredMark>>,
    late: OnceLock<Arc<dyn LateAnswers>>,
}

struct Tail {
    len: u64,
    /// Sum of the weights of `segments`, in bytes.
    weight: u64,
    /// Weight of the last segment in bytes, and below it the number of its events.
    last_weight: u64,
    last_len: usize,
    bounds: LogLimits,
    segments: VecDeque<Arc<Segment>>,
    waiting: Vec<(u64, Waker)>,
    readers: u64,
    closed: bool,
    /// Whether the end of the run is there.
    has_end: bool,
}

impl Tail {
    /// Sequence number of the first event that is kept.
    fn first(&self) -> u64 {
        self.segments.front().map_or(self.len, |segment| segment.first)
    }

    /// The segment that has the event with this sequence number.
    fn segment_of(&self, place: u64) -> Option<&Arc<Segment>> {
        let after = self.segments.partition_point(|segment| segment.first <= place);
        self.segments.get(after.checked_sub(1)?)
    }

    fn next_reader_id(&mut self) -> u64 {
        self.readers += 1;
        self.readers
    }

    /// Makes sure that the last segment has a free slot for the next event.
    fn ensure_slot(&mut self, held: &Arc<HeldBytes>) {
        if let Some(last) = self.segments.back()
            && self.last_len < last.events.len()
            && self.last_weight < MAX_SEGMENT_BYTES
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

    /// Removes the oldest segments that do not fit into the window. It does so in [steps](STEPS),
    /// so a reader that follows the window has to move once per step and not at every segment.
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

/// Locks a mutex and ignores poisoning: no panic can leave this data half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the oldest segments that do not fit into the window. The caller frees them, after the lock is
/// released.
fn trimmed(tail: &Mutex<Tail>) -> Vec<Arc<Segment>> {
    lock(tail).trim()
}

impl Default for Bus {
    fn default() -> Self {
        Self::new()
    }
}

impl Bus {
    /// An empty log without limits. Its clock starts with the first event.
    pub fn new() -> Self {
        Self::with_limits(LogLimits::default())
    }

    /// An empty log with these limits. It begins with its first event, by tokio's clock.
    pub fn with_limits(bounds: LogLimits) -> Self {
        Self::build(bounds, Clock::real(), 1, None, OnceLock::new())
    }

    /// A log without limits that begins with a recording and continues it. Its clock is recorded time.
    pub(crate) fn resumed(recording: Recording) -> Self {
        let events = recording.clone();
        let bus = Self::replaying(recording, None);
        for event in events.events() {
            bus.push(event);
        }
        bus
    }

    /// A log without limits. It is empty until the run reaches this boundary of its recording; then
    /// it begins with the events that were executed again. Its clock is recorded time until then.
    pub(crate) fn forked(recording: Recording, at: BoundaryId) -> Self {
        Self::replaying(recording, Some(at))
    }

    fn replaying(recording: Recording, fork: Option<BoundaryId>) -> Self {
        let (clock, driver) = Clock::recorded();
        let next_span = recording.last_span().0.saturating_add(1);
        let replay = Replay::new(recording, fork, (clock.clone(), driver));
        let started = clock.now().into();
        Self::build(LogLimits::default(), clock, next_span, Some(replay), started)
    }

    fn build(
        bounds: LogLimits,
        clock: Clock,
        next_span: u32,
        replay: Option<Replay>,
        started: OnceLock<Instant>,
    ) -> Self {
        let bus = Self(Arc::new(Log {
            started,
            clock,
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
                has_end: false,
            }),
            held: HeldBytes::new(),
            spans: AtomicU32::new(next_span),
            live: Mutex::default(),
            live_version: AtomicU64::new(0),
            live_changed: Notify::new(),
            replay,
            stored: OnceLock::new(),
            late: OnceLock::new(),
        }));
        bus.set_limits(bounds);
        bus
    }

    /// Sets new limits. Events that no longer fit are dropped when the next segment begins, or when the run
    /// waits for its readers.
    pub fn set_limits(&self, bounds: LogLimits) {
        lock(&self.0.tail).bounds = bounds;
        let LogLimits { window, ahead } = bounds;
        let kept = window.saturating_add(window / STEPS);
        self.0.held.set_limit(kept.saturating_add(ahead), kept.saturating_add(ahead / 2));
    }

    /// Appends an event and returns its sequence number. While a recording is executed again, an
    /// event that the recording has is not appended.
    pub fn publish(&self, span: SpanId, kind: impl Into<EventKind>) -> Seq {
        let mut kind = Some(kind.into());
        let replay = self.0.replay.as_ref().filter(|replay| !replay.is_live());
        let matched = replay.and_then(|replay| replay.publish(span, &mut kind));
        matched.or_else(|| Some(self.append(span, kind?))).unwrap_or_default()
    }

    /// Opens a span with the event that opens it, and returns its id: that of the recording, if the
    /// recording has this span.
    pub(crate) fn open(&self, kind: impl Into<EventKind>) -> SpanId {
        let mut kind = Some(kind.into());
        let replay = self.0.replay.as_ref().filter(|replay| !replay.is_live());
        let matched = replay.and_then(|replay| replay.open(&mut kind, || self.next_span()));
        matched.unwrap_or_else(|| {
            let span = self.next_span();
            kind.map(|kind| self.append(span, kind));
            span
        })
    }

    /// The recording is used up, or a fork has reached its boundary: time becomes real, and the
    /// events that were held are appended after `first`. Returns the commands that were sent before.
    pub(crate) fn go_live(&self, first: EventKind) -> Vec<Command> {
        let append = |event| match event {
            ReplayedEvent::Recorded(event) => {
                self.push(&event);
            }
            ReplayedEvent::New(span, kind) => {
                self.append(span, kind);
            }
        };
        self.0.replay.as_ref().map_or_else(Vec::new, |replay| replay.go_live(first, append))
    }

    /// Whether the log continues a recording.
    pub(crate) fn is_resumed(&self) -> bool {
        self.0.replay.is_some()
    }

    /// The recording that this log continues, and how much of it was executed again.
    pub(crate) fn replay(&self) -> Option<&Replay> {
        self.0.replay.as_ref()
    }

    /// Marks the end of the log: readers that have read everything get 0 instead of waiting.
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

    fn next_span(&self) -> SpanId {
        SpanId(self.0.spans.fetch_add(1, Ordering::Relaxed))
    }

    /// Time since the start of the log, pauses included.
    pub fn now(&self) -> Elapsed {
        let started = *self.0.started.get_or_init(|| self.0.clock.now());
        Elapsed::from_duration(self.0.clock.since(started))
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Number of events published so far.
    pub fn len(&self) -> u64 {
        lock(&self.0.tail).len
    }

    /// Whether no event has been published yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Approximate size of the kept events in bytes. A slow reader may hold more.
    pub fn weight(&self) -> u64 {
        lock(&self.0.tail).weight
    }

    /// Sequence number of the first event that the log still has; if it has none, that of the next
    /// event.
    pub fn first_seq(&self) -> Seq {
        Seq(lock(&self.0.tail).first())
    }

    /// The event with this sequence number, if it was published and the log still has it.
    pub fn event(&self, seq: Seq) -> Option<Arc<Event>> {
        let segment = Arc::clone(lock(&self.0.tail).segment_of(seq.0)?);
        let place = usize::try_from(seq.0 - segment.first).ok()?;
        segment.events.get(place)?.get().cloned()
    }

    /// Whether the log is within its limits: no reader is too far behind.
    pub fn is_within_limits(&self) -> bool {
        self.0.held.has_room()
    }

    /// Waits until slow readers have caught up, if the log is over its limits. A run awaits this
    /// where it is able to wait.
    pub async fn wait_for_room(&self) {
        // A run that waits begins no next segment, which would drop what no longer fits.
        self.0.held.room(|| drop(trimmed(&self.0.tail))).await;
    }
}

impl Bus {
    pub(crate) fn append(&self, span: SpanId, kind: EventKind) -> Seq {
        append_if(self, |_| true, span, kind).unwrap_or_default()
    }

    /// Appends an event that has its number and its time.
    pub(crate) fn push(&self, event: &Arc<Event>) -> Seq {
        push_if(self, |_| true, event.kind.weight(), |_| Arc::clone(event)).unwrap_or_default()
    }
}

/// Appends an event that comes from outside the run, unless the run has ended meanwhile: no event may
/// follow its end. Returns whether it was appended.
pub(crate) fn publish_unless_ended(bus: &Bus, span: SpanId, kind: EventKind) -> bool {
    if bus.replay().is_some_and(|replay| !replay.is_live()) {
        bus.publish(span, kind);
        return true;
    }
    append_if(bus, |tail| !tail.has_end, span, kind).is_some()
}

/// Appends an event, if this holds; `None`: it does not. Number and time are assigned inside the lock, so
/// both only grow along the log.
fn append_if(
    bus: &Bus,
    holds: impl FnOnce(&Tail) -> bool,
    span: SpanId,
    kind: EventKind,
) -> Option<Seq> {
    // Weighed before the lock: an event with long texts would hold up every reader.
    let weight = kind.weight();
    let mut fact = Arc::new(Event { seq: Seq(0), at: Elapsed(0), span, kind });
    push_if(bus, holds, weight, |seq| {
        if let Some(fact) = Arc::get_mut(&mut fact) {
            fact.seq = seq;
            fact.at = bus.now();
        }
        fact
    })
}

/// Appends the event of this weight that is made for the next sequence number, if this holds; `None`: it
/// does not.
fn push_if(
    bus: &Bus,
    holds: impl FnOnce(&Tail) -> bool,
    weight: usize,
    make: impl FnOnce(Seq) -> Arc<Event>,
) -> Option<Seq> {
    let mut tail = lock(&bus.0.tail);
    if !holds(&tail) {
        return None;
    }
    let seq = Seq(tail.len);
    let fact = make(seq);
    tail.has_end |= matches!(fact.kind, EventKind::RunClosed(_));
    tail.ensure_slot(&bus.0.held);
    if let Some(place) = tail.segments.back().and_then(|last| last.events.get(tail.last_len)) {
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
    Some(seq)
}

/// The mark of one log: every event before it is stored.
#[derive(Debug, Default)]
pub struct StoredMark {
    next: AtomicU64,
    changed: Notify,
}

impl StoredMark {
    /// The events before this number are stored.
    pub fn raise(&self, next: Seq) {
        self.next.fetch_max(next.0, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// The events before this number are stored.
    pub fn next(&self) -> Seq {
        Seq(self.next.load(Ordering::Acquire))
    }

    /// The run is not stored any more: no call waits from now on.
    pub fn abandon(&self) {
        self.raise(Seq(u64::MAX));
    }

    /// Whether the run is not stored any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.next() == Seq(u64::MAX)
    }

    /// Waits until the events before this number are stored, or are not going to be.
    pub async fn reached(&self, next: Seq) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.next.load(Ordering::Acquire) >= next.0 {
                return;
            }
            changed.await;
        }
    }
}

impl Bus {
    /// The mark of the stored events. From the first call on, paid calls wait for it.
    pub fn stored_mark(&self) -> Arc<StoredMark> {
        Arc::clone(self.0.stored.get_or_init(Arc::default))
    }

    /// Waits until everything published so far is stored, if this log is stored at all.
    pub async fn wait_until_stored(&self) {
        let Some(mark) = self.0.stored.get() else { return };
        let published = Seq(self.len());
        if mark.next() < published {
            // Boxed: otherwise the future of every attempt would be larger.
            Box::pin(mark.reached(published)).await;
        }
    }
}

impl Bus {
    /// An empty copy.
    pub(crate) fn mirror(bounds: LogLimits) -> Self {
        Self::build(bounds, Clock::real(), 1, None, OnceLock::new())
    }

    /// Appends the next events of the other log. Skips events that the copy has, and events after a
    /// gap.
    pub(crate) fn copy(&self, events: &[Arc<Event>]) {
        for event in events {
            if self.len() == event.seq.0 {
                self.push(event);
            }
        }
    }
}

/// Gives the replies that arrived at a former owner of a run after it had lost the run.
pub trait LateAnswers: Send + Sync {
    /// The reply to an attempt that is in doubt; waits as long as one may arrive.
    fn answer(&self, attempt: SpanId) -> BoxFuture<'_, Option<Reply>>;
}

impl Bus {
    /// The source of the replies to a former owner; set if the run was taken over from one.
    pub(crate) fn late_answers(&self) -> &OnceLock<Arc<dyn LateAnswers>> {
        &self.0.late
    }
}

/// The reply that a former owner of the run received to an attempt in doubt.
pub(crate) async fn late_answer(bus: &Bus, attempt: SpanId) -> Option<Reply> {
    let _outside = bus.clock().outside();
    bus.late_answers().get()?.answer(attempt).await
}
