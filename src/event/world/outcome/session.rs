//! What a session came to: the outcomes of its runs, and what they add up to.

use serde::Serialize;

use super::{Outcome, OutcomeUsage, cost_note};
use crate::event::StopReason;
use crate::event::kind::Usage;

/// The outcome of a session of several messages.
#[derive(Clone, Debug, Serialize)]
pub struct SessionOutcome {
    /// `ok` where every message was answered, else `stopped`.
    pub status: &'static str,
    /// Of the first run that was stopped; `success` where none was.
    pub stop_reason: StopReason,
    /// Messages that the session was to have: as many as there are outcomes, unless it was
    /// cancelled before.
    pub messages: usize,
    /// Messages that were answered.
    pub answered: usize,
    /// Calls, tokens and cost of all runs.
    pub usage: OutcomeUsage,
    /// Milliseconds of all runs, pauses left out.
    pub elapsed_ms: u64,
    /// Milliseconds of pauses.
    pub paused_ms: u64,
    /// Whether one of the runs was degraded.
    pub degraded: bool,
    /// The outcome of each run, in the order of the messages.
    pub session: Vec<Outcome>,
}

impl SessionOutcome {
    /// What these runs of a session of so many messages came to.
    pub fn of(session: Vec<Outcome>, messages: usize) -> Self {
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
