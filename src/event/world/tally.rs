//! The counts of a run.

use crate::event::kind::Usage;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Events.
    pub events: u64,
    /// Calls started.
    pub calls: u64,
    /// Those of them that called a tool.
    pub tool_calls: u64,
    /// Those of them that called another agent.
    pub agent_calls: u64,
    /// Calls with a reply or result.
    pub answered: u64,
    /// Calls without a result.
    pub failed: u64,
    /// Calls with a fallback or an omitted result.
    pub degraded: u64,
    /// Those of them that have neither a result nor a fallback value.
    pub omitted: u64,
    /// Calls that were cancelled because the run stopped.
    pub cancelled: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Attempts after the first of their call that were made.
    pub retries: u64,
    /// Replies that the pattern refused.
    pub refused_replies: u64,
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
    /// What of this is another run's; `None`: it was not forked.
    pub reused: Option<ReusedPart>,
}

/// The part of a fork that another run has executed and paid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReusedPart {
    /// Events.
    pub events: u64,
    /// Tokens of the replies.
    pub tokens: u64,
    /// Estimated US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
}

impl Tally {
    /// Number of calls that called a model.
    pub fn model_calls(&self) -> u64 {
        self.calls.saturating_sub(self.tool_calls + self.agent_calls)
    }

    /// Number of open calls.
    pub fn open(&self) -> u64 {
        let over = self.answered + self.failed + self.degraded + self.cancelled;
        self.calls.saturating_sub(over)
    }
}
