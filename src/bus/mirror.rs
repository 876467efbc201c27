//! A log that is a copy of one elsewhere: readers, limits and live text are those of any log.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::{Bus, LogLimits};
use crate::clock::Clock;
use crate::event::Event;

impl Bus {
    /// An empty copy of a log that began so long ago.
    pub(crate) fn mirror(bounds: LogLimits, age: Duration) -> Self {
        let clock = Clock::real();
        let began = OnceLock::new();
        if let Some(start) = Instant::now().checked_sub(age) {
            let _ = began.set(start);
        }
        Self::build(bounds, clock, 1, None, began)
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
