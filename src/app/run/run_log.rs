//! The facts of a run as far as the page holds them: the last of them. What the run's own log has let
//! go of goes here too, and is only counted.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::event::{Event, Seq};

/// The facts of a run, the last of which are held. A place counts all of them, so it is the same
/// fact's for good.
#[derive(Clone, Debug, Default)]
pub struct RunLog {
    held: VecDeque<Arc<Event>>,
    gone: usize,
}

impl RunLog {
    /// How many facts have come: the place after the last.
    pub fn len(&self) -> usize {
        self.gone + self.held.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How many are gone: the place of the first that is held.
    pub fn gone(&self) -> usize {
        self.gone
    }

    /// The fact at this place, where it is held.
    pub fn get(&self, place: usize) -> Option<&Arc<Event>> {
        self.held.get(place.checked_sub(self.gone)?)
    }

    /// The first that is held.
    pub fn first(&self) -> Option<&Arc<Event>> {
        self.held.front()
    }

    /// The last.
    pub fn last(&self) -> Option<&Arc<Event>> {
        self.held.back()
    }

    /// Those that are held, the first first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        self.held.iter()
    }

    /// Those from one place to before another that are held.
    pub fn between(&self, from: usize, to: usize) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let place = |place: usize| place.saturating_sub(self.gone).min(self.held.len());
        let (from, to) = (place(from), place(to));
        self.held.range(from.min(to)..to)
    }

    /// The place of the first that is not so, where all that are so stand before it.
    pub fn partition_point(&self, so: impl Fn(&Event) -> bool) -> usize {
        self.gone + self.held.partition_point(|event| so(event))
    }

    /// The place where a fact stands, or would stand.
    pub(super) fn place(&self, seq: Seq) -> usize {
        let place = usize::try_from(seq.0).unwrap_or(usize::MAX);
        if self.get(place).is_some_and(|event| event.seq == seq) {
            return place;
        }
        self.partition_point(|event| event.seq < seq)
    }

    pub(super) fn take(&mut self, event: &Arc<Event>) {
        self.held.push_back(Arc::clone(event));
    }

    /// Lets go of those before this place.
    pub(super) fn let_go(&mut self, place: usize) {
        let gone = place.saturating_sub(self.gone).min(self.held.len());
        self.held.drain(..gone);
        self.gone += gone;
        // A stretch of light facts may have made it long.
        if self.held.capacity() > 4 * self.held.len().max(1_024) {
            self.held.shrink_to(2 * self.held.len());
        }
    }

    /// All of them, for a file.
    pub(super) fn to_vec(&self) -> Vec<Arc<Event>> {
        self.held.iter().cloned().collect()
    }
}
