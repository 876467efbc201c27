//! What follows an attempt that failed: what the breaker is told of it, and whether there is another.

use std::time::Duration;

use super::breaker::{Recorded, Verdict};
use super::guard::{Guard, Leave};
use super::retry::{self, Next};
use crate::bus::Bus;
use crate::event::id::millis;
use crate::event::kind::{AttemptFailed, RetryLimit};
use crate::event::{EventKind, SpanId};
use crate::scenario::model::CallPolicy;
use crate::scenario::resilience::BreakerCounts;

/// A failed attempt whose verdict is still to be given.
pub(super) struct FailedAttempt<'a> {
    /// Its span, closed.
    pub span: SpanId,
    /// How it failed.
    pub failed: Box<AttemptFailed>,
    /// The breaker's ticket; the bulkhead has its permit back.
    pub leave: Leave<'a>,
}

impl FailedAttempt<'_> {
    /// The attempt is made again in another way: the breaker learns nothing of it.
    pub fn made_another_way(self, bus: &Bus, guard: &Guard) -> Box<AttemptFailed> {
        stale(bus, self.span, guard, self.leave.settle(Verdict::Neither), false);
        self.failed
    }

    /// Tells the breaker of it and decides what follows: the wait before another attempt, or none,
    /// with the limit that is in the way where there is one.
    pub fn follows(
        self,
        bus: &Bus,
        guard: &Guard,
        policy: &CallPolicy,
        next: Next,
        left: Duration,
    ) -> (Box<AttemptFailed>, Result<Duration, Option<RetryLimit>>) {
        let Self { span, failed, leave } = self;
        let settle = |leave: Leave<'_>, counts: bool| {
            let of_tool = failed.class.is_failure_of_tool(failed.status);
            let verdict = if counts && of_tool { Verdict::Failure } else { Verdict::Neither };
            let recorded = leave.settle(verdict);
            stale(bus, span, guard, recorded, false);
            recorded
        };
        let by_calls = policy.breaker.is_some_and(|it| it.counts == BreakerCounts::Calls);
        // A probe decides by itself: nobody else is let through while it is out.
        let undecided = match by_calls && !leave.is_probe() {
            true => Some(leave),
            false if settle(leave, true) == Recorded::Opened => return (failed, Err(None)),
            false => None,
        };
        let follows = match next {
            Next::Retry(wait) => guard.take_retry().map(|()| wait).map_err(Some),
            Next::TooLate(wait) => Err(Some(RetryLimit::Deadline {
                wait_ms: millis(wait),
                left_ms: millis(left),
                asked: retry::asked_for(policy, &failed) == Some(wait),
            })),
            Next::GiveUp => Err(None),
        };
        if let Some(leave) = undecided {
            settle(leave, follows.is_err());
        }
        (failed, follows)
    }
}

/// Says that a result came after the breaker had moved on, if it did.
pub(super) fn stale(bus: &Bus, span: SpanId, guard: &Guard, recorded: Recorded, ok: bool) {
    if recorded == Recorded::Stale {
        bus.publish(span, EventKind::ResultStale { tool: guard.name().clone(), ok });
    }
}
