//! The counts of a run.

use crate::event::kind::Usage;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events.
    pub events: u64,
    /// Calls started.
    pub calls: u64,
    /// Calls with a reply or result.
    pub answered: u64,
    /// Calls without a result.
    pub failed: u64,
    /// Calls with a fallback or an omitted result.
    pub degraded: u64,
    /// Calls that were cancelled because the run stopped.
    pub cancelled: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Attempts after the first of their call.
    pub retries: u64,
    /// Attempts that policy refused before the tool was called.
    pub refused: u64,
    /// Calls that wait for their next attempt now.
    pub retrying: u64,
    /// Tokens of the replies, counted or estimated.
    pub usage: Usage,
    /// Replies whose tokens are estimated because the endpoint did not count them.
    pub estimated: u64,
    /// Replies whose tokens are unknown; only in logs of earlier versions.
    pub uncounted: u64,
    /// Events of kinds that this version does not know.
    pub unknown: u64,
}

impl Tally {
    /// Number of open calls.
    pub fn open(&self) -> u64 {
        let over = self.answered + self.failed + self.degraded + self.cancelled;
        self.calls.saturating_sub(over)
    }
}
