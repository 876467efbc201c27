//! From mark to mark of the scrubber.

use super::data::RunData;

/// The number of events up to the last mark that is before the first `events`.
pub(super) fn mark_before(run: &RunData, events: usize) -> Option<usize> {
    events_to_marks(run).rev().find(|place| *place < events)
}

/// The number of events up to the first mark after the first `events`.
pub(super) fn mark_after(run: &RunData, events: usize) -> Option<usize> {
    events_to_marks(run).find(|place| *place > events)
}

/// The number of events up to each mark, its own event included.
fn events_to_marks(run: &RunData) -> impl DoubleEndedIterator<Item = usize> {
    run.world.over_time.marks.iter().map(|mark| run.log.place(mark.seq) + 1)
}
