//! A cursor of its own over a log.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use super::segment::Segment;
use super::{Bus, lock};
use crate::event::{Event, Seq};

/// A cursor of its own over a log. It holds what it has not read yet, so it is only ever late.
pub struct Reader {
    /// The segment of the next fact, or the one before it while that is not there yet.
    segment: Option<Arc<Segment>>,
    bus: Bus,
    id: u64,
    next: u64,
    missed: u64,
}

impl Bus {
    /// A reader that starts at `from`, be it there already or yet to come. Where the log has let go
    /// of that fact it starts with the first that is held, and [knows](Reader::missed) how many it
    /// missed.
    pub fn reader(&self, from: Seq) -> Reader {
        let mut tail = lock(&self.0.tail);
        let id = tail.reader();
        let mut reader = Reader { segment: None, bus: self.clone(), id, next: from.0, missed: 0 };
        if from.0 == tail.len {
            // What comes next must have a place that the reader can hold.
            tail.make_room(&self.0.held);
            reader.segment = tail.segments.back().cloned();
        } else if from.0 < tail.len {
            reader.find(&tail);
        }
        reader
    }
}

impl Clone for Reader {
    /// Another reader at the same place.
    fn clone(&self) -> Self {
        let id = lock(&self.bus.0.tail).reader();
        let (segment, bus) = (self.segment.clone(), self.bus.clone());
        Self { segment, bus, id, next: self.next, missed: self.missed }
    }
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
                let bus = self.bus.clone();
                self.find(&lock(&bus.0.tail));
            }
            let Some(segment) = &self.segment else { break };
            // Asked for first: once there is a next segment, this one takes no further fact.
            let after = segment.next.get();
            let slot = usize::try_from(self.next.saturating_sub(segment.first));
            let fact = slot.ok().and_then(|slot| segment.facts.get(slot)?.get());
            match (fact, after) {
                (Some(fact), _) => {
                    out.push(Arc::clone(fact));
                    came += 1;
                    self.next += 1;
                }
                (None, Some(after)) => self.segment = Some(Arc::clone(after)),
                (None, None) => break,
            }
        }
        came
    }

    /// Looks for the segment of the next fact, where the log has it.
    fn find(&mut self, tail: &super::Tail) {
        if self.next >= tail.len {
            return;
        }
        let first = tail.first();
        self.missed += first.saturating_sub(self.next);
        self.next = self.next.max(first);
        self.segment = tail.segment_of(self.next).cloned();
    }

    /// The place of the fact that comes next.
    pub fn position(&self) -> Seq {
        Seq(self.next)
    }

    /// Facts that the log had let go of before this reader came for them.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The first fact that the log itself still holds.
    pub fn window(&self) -> Seq {
        self.bus.first()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        lock(&self.bus.0.tail).waiting.retain(|(id, _)| *id != self.id);
    }
}
