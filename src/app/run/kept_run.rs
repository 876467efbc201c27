//! What a page knows of the kept run that it shows, apart from its events.

use std::time::Duration;

use crate::app::request::RequestId;
use crate::event::id::millis;
use crate::event::run_row::{RunRow, RunStatus};

/// A kept run, or one in an exported log, and whether all of its events are here.
#[derive(Clone, Debug)]
pub struct KeptRun {
    /// Its row when it was opened.
    pub row: RunRow,
    /// Whether its log is an exported one. Such a run is not in the store, even if one there has its id.
    pub is_file: bool,
    /// The request for its events.
    pub request: RequestId,
    /// Whether all of the log has been read.
    pub is_read: bool,
    /// When the program started, as Unix time in milliseconds.
    began_ms: u64,
}

impl KeptRun {
    /// A kept run whose events are not here yet. `wall_ms` is the time as Unix time in
    /// milliseconds, `now` the time since the start of the program.
    pub fn new(row: RunRow, request: RequestId, wall_ms: u64, now: Duration) -> Self {
        let began_ms = wall_ms.saturating_sub(millis(now));
        Self { row, is_file: false, request, is_read: false, began_ms }
    }

    /// How long ago it started, in milliseconds.
    pub fn age_ms(&self, now: Duration) -> u64 {
        self.began_ms.saturating_add(millis(now)).saturating_sub(self.row.started_ms)
    }

    /// Whether another process plays it.
    pub fn is_elsewhere(&self) -> bool {
        self.row.status == RunStatus::Running
    }

    /// Whether its process ended before it did.
    pub fn is_interrupted(&self) -> bool {
        self.row.status == RunStatus::Interrupted
    }
}
