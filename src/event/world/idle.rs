//! The longest times of a run in which nothing happened, for the scrubber. Pauses do
//! not count: the clock of the run is stopped.

use std::time::Duration;

use crate::event::Elapsed;

/// Most idle times that are kept.
const KEPT: usize = 8;
/// Shortest idle time that is kept.
const LEAST: Duration = Duration::from_secs(30);

/// The longest idle times of a run.
#[derive(Clone, Debug, Default)]
pub struct IdleTimes {
    /// The longest first.
    longest: Vec<(Elapsed, Elapsed)>,
}

impl IdleTimes {
    /// Records the time between two consecutive events.
    pub(super) fn add(&mut self, from: Elapsed, until: Elapsed) {
        let length = until.since(from);
        if length < LEAST {
            return;
        }
        let place = self.longest.partition_point(|(from, until)| until.since(*from) >= length);
        if place < KEPT {
            self.longest.insert(place, (from, until));
            self.longest.truncate(KEPT);
        }
    }

    /// The idle times from this moment on that are worth folding: each is longer than all that is
    /// left of `total`, which is the time of the run without pauses.
    pub(crate) fn folded(
        &self,
        total: Duration,
        from: Elapsed,
    ) -> impl Iterator<Item = (Elapsed, Elapsed)> {
        let mut left = total;
        let held = self.longest.iter().copied().filter(move |(start, _)| *start >= from);
        held.take_while(move |(from, until)| {
            let length = until.since(*from);
            left = left.saturating_sub(length);
            length > left
        })
    }
}
