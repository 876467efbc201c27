//! What happens after a failed attempt: the breaker gets its verdict, and the retry is decided.

use std::time::Duration;

use super::breaker::{AttemptVerdict, Recorded};
use super::guard::{BreakerPermit, Guard};
use super::retry::{self, RetryDecision};
use crate::bus::Bus;
use crate::event::id::millis;
use crate::event::kind::{AttemptFailed, RetryLimit};
use crate::event::{EventKind, SpanId};
use crate::scenario::spec::limits::BreakerCounts;
use crate::scenario::spec::policy::CallPolicy;

/// A failed attempt whose verdict the breaker has not received yet.
pub(super) struct FailedAttempt<'a> {
    /// Span of the attempt, already closed.
    pub span: SpanId,
    /// The failure.
    pub failed: Box<AttemptFailed>,
    /// The breaker's ticket. The bulkhead already has its permit back.
    pub permit: BreakerPermit<'a>,
}

impl FailedAttempt<'_> {
    /// The request is sent again in an adapted form: the breaker ignores this failure.
    pub fn settle_adapted(self, bus: &Bus, guard: &Guard) -> Box<AttemptFailed> {
        publish_if_stale(bus, self.span, guard, self.permit.settle(AttemptVerdict::Neither), false);
        self.failed
    }

    /// Records the failure with the breaker and decides on a retry: `Ok` with the wait before it,
    /// or `Err` with the limit that prevents it, if a limit does.
    pub fn settle(
        self,
        bus: &Bus,
        guard: &Guard,
        policy: &CallPolicy,
        next: RetryDecision,
        left: Duration,
    ) -> (Box<AttemptFailed>, Result<Duration, Option<RetryLimit>>) {
        let Self { span, failed, permit: leave } = self;
        let settle = |leave: BreakerPermit<'_>, counts: bool| {
            let of_tool = failed.class.is_failure_of_tool(failed.status);
            let verdict = match counts && of_tool {
                true => AttemptVerdict::of_result(true, failed.slow),
                false => AttemptVerdict::Neither,
            };
            let recorded = leave.settle(verdict);
            publish_if_stale(bus, span, guard, recorded, false);
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
            RetryDecision::Retry(wait) => guard.take_retry().map(|()| wait).map_err(Some),
            RetryDecision::TooLate(wait) => Err(Some(RetryLimit::Deadline {
                wait_ms: millis(wait),
                left_ms: millis(left),
                requested: retry::honoured_retry_after(policy, &failed) == Some(wait),
            })),
            RetryDecision::OnlyTimeouts => Err(Some(RetryLimit::OnlyTimeouts)),
            RetryDecision::GiveUp => Err(None),
        };
        if let Some(leave) = undecided {
            settle(leave, follows.is_err());
        }
        (failed, follows)
    }
}

/// Publishes that a result arrived after the breaker had changed state, if it did.
pub(super) fn publish_if_stale(
    bus: &Bus,
    span: SpanId,
    guard: &Guard,
    recorded: Recorded,
    ok: bool,
) {
    if recorded == Recorded::Stale {
        bus.publish(span, EventKind::ResultIgnored { tool: guard.name().clone(), success: ok });
    }
}
