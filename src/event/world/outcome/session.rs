//! The outcome of a session: the outcomes of its runs, and their sums.

use serde::Serialize;

use super::{Outcome, OutcomeUsage, cost_note};
use crate::event::StopReason;
use crate::event::kind::Usage;

/// The outcome of a session of several messages.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct SessionOutcome {
    /// `ok` if every message was answered, else `stopped`.
    pub status: &'static str,
    /// The reason of the first stopped run; `success` if none was stopped.
    pub stop_reason: StopReason,
    /// Number of messages of the session. It equals the number of outcomes unless the session was
    /// cancelled early.
    pub messages: usize,
    /// Messages that were answered.
    pub answered: usize,
    /// Calls, tokens and cost of all runs.
    pub usage: OutcomeUsage,
    /// Milliseconds of all runs, pauses not counted.
    pub elapsed_ms: u64,
    /// Milliseconds of pauses.
    pub paused_ms: u64,
    /// Whether one of the runs was degraded.
    pub degraded: bool,
    /// The outcome of each run, in the order of the messages.
    pub session: Vec<Outcome>,
}

impl SessionOutcome {
    /// The outcome of a session of this many messages with these runs.
    pub fn new(session: Vec<Outcome>, messages: usize) -> Self {
        let stopped = session.iter().map(|run| &run.stop_reason).find(|why| !why.is_success());
        let answered = session.iter().filter(|run| run.stop_reason.is_success()).count();
        let cost_usd = session.iter().map(|run| run.usage.cost_usd).sum();
        let sum = |of: fn(&Outcome) -> u64| session.iter().map(of).sum::<u64>();
        Self {
            status: if answered == messages { "ok" } else { "stopped" },
            stop_reason: stopped.cloned().unwrap_or(StopReason::Success),
            messages,
            answered,
            usage: OutcomeUsage {
                calls: sum(|run| run.usage.calls),
                attempts: sum(|run| run.usage.attempts),
                tokens: session.iter().fold(Usage::default(), |mut sum, run| {
                    sum.add(run.usage.tokens);
                    sum
                }),
                cost_usd,
                cost_note: cost_note(cost_usd),
            },
            elapsed_ms: sum(|run| run.elapsed_ms),
            paused_ms: sum(|run| run.paused_ms),
            degraded: session.iter().any(|run| run.degraded),
            session,
        }
    }
}
