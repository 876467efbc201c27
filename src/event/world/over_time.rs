//! A run over time, for the scrubber: its marks and how many events there were.

use super::activity::Activity;
use super::marks::{MarkKind, ScrubberMark};
use crate::event::Event;

/// Most marks for the scrubber; further ones are counted in [`RunOverTime::marks_not_kept`].
const MARKS: usize = 2048;

/// A run over time.
#[derive(Clone, Debug, Default)]
pub struct RunOverTime {
    /// Moments to mark on the scrubber, in order.
    pub marks: Vec<ScrubberMark>,
    /// Number of marks that were not kept.
    pub marks_not_kept: u64,
    /// Number of events over time.
    pub activity: Activity,
}

impl RunOverTime {
    pub(super) fn mark(&mut self, event: &Event, what: MarkKind) {
        if self.marks.len() < MARKS {
            self.marks.push(ScrubberMark { at: event.at, seq: event.seq, what });
        } else {
            self.marks_not_kept += 1;
        }
    }
}
