//! What happens after a failed attempt: the breaker gets its verdict, and the retry is decided.

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

/// A failed attempt whose verdict the breaker has not received yet.
pub(super) struct FailedAttempt<'a> {
    /// Span of the attempt, already closed.
    pub span: SpanId,
    /// The failure.
    pub failed: Box<AttemptFailed>,
    /// The breaker's ticket. The bulkhead already has its permit back.
    pub leave: Leave<'a>,
}

impl FailedAttempt<'_> {
    /// The request is sent again in an adapted form: the breaker ignores this failure.
    pub fn made_another_way(self, bus: &Bus, guard: &Guard) -> Box<AttemptFailed> {
        stale(bus, self.span, guard, self.leave.settle(Verdict::Neither), false);
        self.failed
    }

    /// Records the failure with the breaker and decides on a retry: `Ok` with the wait before it,
    /// or `Err` with the limit that prevents it, if a limit does.
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
        // A probe's verdict is recorded at once: while it is out, the breaker refuses all other
        // attempts.
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

/// Publishes that a result arrived after the breaker had changed state, if it did.
pub(super) fn stale(bus: &Bus, span: SpanId, guard: &Guard, recorded: Recorded, ok: bool) {
    if recorded == Recorded::Stale {
        bus.publish(span, EventKind::ResultStale { tool: guard.name().clone(), ok });
    }
}
