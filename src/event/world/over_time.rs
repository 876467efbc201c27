//! A run over time, for the scrubber: its marks and how many events there were.

use super::activity::Activity;
use super::idle::IdleTimes;
use super::marks::{MarkKind, ScrubberMark};
use super::progress::RunProgress;
use crate::event::{Elapsed, Event};

/// Most marks for the scrubber; further ones are counted in [`RunOverTime::marks_not_kept`].
const MARKS: usize = 2048;

/// A run over time.
#[derive(Clone, Debug, Default)]
pub struct RunOverTime {
    /// Moments to mark on the scrubber, in order.
    pub marks: Vec<ScrubberMark>,
    /// Number of marks that were not kept.
    pub marks_not_kept: u64,
    /// Number of events over the time of the run, without its pauses.
    pub activity: Activity,
    /// The longest times without an event.
    pub idle: IdleTimes,
    /// Time of the last event.
    last: Elapsed,
}

impl RunOverTime {
    /// Counts an event; `run` is as it was before it.
    pub(super) fn count(&mut self, event: &Event, run: &RunProgress) {
        self.activity.count(run.run_time_us(event.at));
        let last = std::mem::replace(&mut self.last, event.at);
        if run.active_between(last, event.at) == event.at.since(last) {
            self.idle.add(last, event.at);
        }
    }

    pub(super) fn mark(&mut self, event: &Event, what: MarkKind) {
        if self.marks.len() < MARKS {
            self.marks.push(ScrubberMark { at: event.at, seq: event.seq, what });
        } else {
            self.marks_not_kept += 1;
        }
    }
}
