//! A reader's cursor over a log.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use super::segment::Segment;
use super::{Bus, lock};
use crate::log::event::{Event, Seq};

/// A reader's cursor over a log. It keeps unread events alive, so it may be late but loses nothing.
pub struct LogReader {
    /// The segment of the next event, or the segment before it if that one does not exist yet.
    segment: Option<Arc<Segment>>,
    bus: Bus,
    id: u64,
    next: u64,
    missed: u64,
}

impl Bus {
    /// A reader that starts at `from`, which may be published already or not yet. If the log has
    /// dropped that event, the reader starts with the first one kept and counts how many it
    /// [missed](LogReader::missed).
    pub fn reader(&self, from: Seq) -> LogReader {
        let mut tail = lock(&self.0.tail);
        let id = tail.next_reader_id();
        let mut reader =
            LogReader { segment: None, bus: self.clone(), id, next: from.0, missed: 0 };
        if from.0 == tail.len {
            // The next event needs a slot now, so that the reader can hold its segment.
            tail.ensure_slot(&self.0.held);
            reader.segment = tail.segments.back().cloned();
        } else if from.0 < tail.len {
            reader.seek(&tail);
        }
        reader
    }
}

impl Clone for LogReader {
    /// Another reader with the same position.
    fn clone(&self) -> Self {
        let id = lock(&self.bus.0.tail).next_reader_id();
        let (segment, bus) = (self.segment.clone(), self.bus.clone());
        Self { segment, bus, id, next: self.next, missed: self.missed }
    }
}

impl LogReader {
    /// Appends at most `max` events to `out`; waits if there is none yet. Returns how many were
    /// read: 0 when the log is closed and read to its end (or `max` is 0). Cancel safe: dropped
    /// while it waits, it has read nothing.
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

    /// Appends at most `max` of the events that are there to `out`, and never waits. Returns how
    /// many.
    pub fn take(&mut self, out: &mut Vec<Arc<Event>>, max: usize) -> usize {
        let mut came = 0;
        while came < max {
            if self.segment.is_none() {
                let bus = self.bus.clone();
                self.seek(&lock(&bus.0.tail));
            }
            let Some(segment) = &self.segment else { break };
            // Read before the slots: once a next segment exists, this one gets no more events.
            let after = segment.next.get();
            let slot = usize::try_from(self.next.saturating_sub(segment.first)).ok();
            let slots = slot.and_then(|slot| segment.events.get(slot..)).unwrap_or_default();
            let there = || slots.iter().map_while(OnceLock::get).take(max - came);
            let read = there().count();
            out.reserve(read);
            out.extend(there().take(read).cloned());
            came += read;
            self.next += read as u64;
            if read == 0 {
                let Some(after) = after else { break };
                self.segment = Some(Arc::clone(after));
            }
        }
        came
    }

    /// Looks up the segment of the next event, if the log has it.
    fn seek(&mut self, tail: &super::Tail) {
        if self.next >= tail.len {
            return;
        }
        let first = tail.first();
        self.missed += first.saturating_sub(self.next);
        self.next = self.next.max(first);
        self.segment = tail.segment_of(self.next).cloned();
    }

    /// Sequence number of the next event.
    pub fn position(&self) -> Seq {
        Seq(self.next)
    }

    /// Number of events that the log had dropped before this reader could read them.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Sequence number of the first event that the log still has.
    pub fn log_start(&self) -> Seq {
        self.bus.first_seq()
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        lock(&self.bus.0.tail).waiting.retain(|(id, _)| *id != self.id);
    }
}
