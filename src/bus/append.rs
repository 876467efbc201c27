//! Appends events to the log.

use std::sync::Arc;

use super::{Bus, Tail, lock};
use crate::event::{Elapsed, Event, EventKind, Seq, SpanId};

impl Bus {
    /// Appends an event.
    pub(super) fn append(&self, span: SpanId, kind: EventKind) -> Seq {
        append_if(self, |_| true, span, kind).unwrap_or_default()
    }

    /// Appends the event that is made for the next sequence number. Number and time are assigned
    /// inside the lock, so both only grow along the log.
    pub(super) fn push(&self, make: impl FnOnce(Seq) -> Arc<Event>) -> Seq {
        push_if(self, |_| true, make).unwrap_or_default()
    }
}

/// Appends an event that comes from outside the run, unless the run has ended meanwhile: no event may
/// follow its end. Returns whether it was appended.
#[cfg(feature = "store")]
pub(crate) fn publish_unless_ended(bus: &Bus, span: SpanId, kind: EventKind) -> bool {
    if bus.replay().is_some_and(|replay| !replay.is_live()) {
        bus.publish(span, kind);
        return true;
    }
    append_if(bus, |tail| !tail.has_end, span, kind).is_some()
}

/// Appends an event, if this holds; `None`: it does not.
fn append_if(
    bus: &Bus,
    holds: impl FnOnce(&Tail) -> bool,
    span: SpanId,
    kind: EventKind,
) -> Option<Seq> {
    let mut fact = Arc::new(Event { seq: Seq(0), at: Elapsed(0), span, kind });
    push_if(bus, holds, |seq| {
        if let Some(fact) = Arc::get_mut(&mut fact) {
            fact.seq = seq;
            fact.at = bus.now();
        }
        fact
    })
}

/// Appends the event that is made for the next sequence number, if this holds; `None`: it does not.
fn push_if(
    bus: &Bus,
    holds: impl FnOnce(&Tail) -> bool,
    make: impl FnOnce(Seq) -> Arc<Event>,
) -> Option<Seq> {
    let mut tail = lock(&bus.0.tail);
    if !holds(&tail) {
        return None;
    }
    let seq = Seq(tail.len);
    let fact = make(seq);
    tail.has_end |= matches!(fact.kind, EventKind::RunClosed(_));
    let weight = fact.kind.weight();
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
