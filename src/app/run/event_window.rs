//! The part of a run's log that the page keeps in memory: its last events. When the run's own log
//! drops events, they are dropped here too, or a little later, and only counted.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::event::world::EventLog;
use crate::event::{Event, Seq};

/// The events of a run, of which only the last are in memory. A place counts from the first event
/// of the run, so the place of an event never changes.
#[derive(Clone, Debug, Default)]
pub struct EventWindow {
    events: VecDeque<Arc<Event>>,
    dropped: usize,
}

impl EventWindow {
    /// Number of events so far, that is the place after the last one.
    pub fn len(&self) -> usize {
        self.dropped + self.events.len()
    }

    /// Whether no event is in memory.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Number of dropped events, that is the place of the first one in memory.
    pub fn dropped_count(&self) -> usize {
        self.dropped
    }

    /// The event at this place, if it is in memory.
    pub fn get(&self, place: usize) -> Option<&Arc<Event>> {
        self.events.get(place.checked_sub(self.dropped)?)
    }

    /// The first event in memory.
    pub fn first(&self) -> Option<&Arc<Event>> {
        self.events.front()
    }

    /// The last event.
    pub fn last(&self) -> Option<&Arc<Event>> {
        self.events.back()
    }

    /// The events in memory, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        self.events.iter()
    }

    /// The events in memory at the places `from..to`.
    pub fn between(&self, from: usize, to: usize) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let place = |place: usize| place.saturating_sub(self.dropped).min(self.events.len());
        let (from, to) = (place(from), place(to));
        self.events.range(from.min(to)..to)
    }

    /// The place of the first event that does not match, if all that match come before it.
    pub fn partition_point(&self, so: impl Fn(&Event) -> bool) -> usize {
        self.dropped + self.events.partition_point(|event| so(event))
    }

    /// The place of an event, or the place where it would be.
    pub(super) fn place(&self, seq: Seq) -> usize {
        let place = usize::try_from(seq.0).unwrap_or(usize::MAX);
        if self.get(place).is_some_and(|event| event.seq == seq) {
            return place;
        }
        self.partition_point(|event| event.seq < seq)
    }

    pub(super) fn push(&mut self, event: &Arc<Event>) {
        self.events.push_back(Arc::clone(event));
    }

    /// Drops the events before this place.
    pub(super) fn drop_before(&mut self, place: usize) {
        let gone = place.saturating_sub(self.dropped).min(self.events.len());
        self.events.drain(..gone);
        self.dropped += gone;
        // Many small events may have made the buffer long.
        if self.events.capacity() > 4 * self.events.len().max(1_024) {
            self.events.shrink_to(2 * self.events.len());
        }
    }

    /// The events in memory, for an export.
    pub(in crate::app) fn to_vec(&self) -> Vec<Arc<Event>> {
        self.events.iter().cloned().collect()
    }
}

impl EventLog for EventWindow {
    fn find_before(&self, seq: Seq, so: &dyn Fn(&Event) -> bool) -> Option<Seq> {
        let mut before = self.between(0, self.place(seq)).rev();
        before.find(|event| so(event)).map(|event| event.seq)
    }

    fn last_dropped(&self) -> Option<Seq> {
        Some(Seq(self.dropped.checked_sub(1)? as u64))
    }
}
