//! What keeps the logs of runs beyond the process: a store. The engine does not know which.

use super::RunHandle;
use crate::bus::LogReader;
use crate::event::{RunId, Seq};

/// Keeps the logs of the runs of an engine.
pub trait RunKeeper: Send + Sync {
    /// Takes an id for a new run; `false`: it is taken, by a kept run or another process.
    ///
    /// # Errors
    /// Why the run could not be kept at this moment.
    fn reserve(&self, id: &RunId) -> Result<bool, String>;

    /// The program is to end: nothing waits any longer for other processes.
    fn end_waits(&self) {}

    /// Keeps the log of a run. `reader` is before its first event. The events before `stored` are kept
    /// already; the others are not published yet.
    fn keep(&self, run: &RunHandle, reader: LogReader, stored: Seq);
}
