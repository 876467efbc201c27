//! A log that is a copy of one elsewhere: readers, limits and live text are those of any log. Its times are
//! those of its events.

use std::sync::{Arc, OnceLock};

use super::{Bus, LogLimits};
use crate::clock::Clock;
use crate::event::Event;

impl Bus {
    /// An empty copy.
    pub(crate) fn mirror(bounds: LogLimits) -> Self {
        Self::build(bounds, Clock::real(), 1, None, OnceLock::new())
    }

    /// Appends the next events of the other log. What is here already, or does not come next, is left
    /// out.
    pub(crate) fn copy(&self, events: &[Arc<Event>]) {
        for event in events {
            if self.len() == event.seq.0 {
                self.push(|_| Arc::clone(event));
            }
        }
    }
}
