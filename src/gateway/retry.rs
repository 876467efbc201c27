//! Decides whether an attempt is retried, and after what wait. Pure, and the only place where that
//! is decided (docs/rules/patterns.md, *Tool gateway*). The gateway waits and makes the attempt.
//!
//! The retry budget of a tool is the share of its traffic that may be retries, so that retries do
//! not become the overload themselves. The time is passed in.

use std::time::Duration;

use tokio::time::Instant;

use crate::base::seeded_random::random_share;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::scenario::spec::policy::{CallPolicy, RetryBudgetLimits, RetryOn};

/// What happens after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Retry after this wait.
    Retry(Duration),
    /// No retry: the wait is longer than the time left for the run.
    TooLate(Duration),
    /// No retry: the policy retries timeouts only, and this failure could be retried otherwise.
    OnlyTimeouts,
    /// No retry: the call has failed.
    GiveUp,
}

/// The tool's `Retry-After`, if it is honoured: the failure is a rate limit or trouble of the tool
/// itself, and the policy retries transient failures. If this call cannot wait that long, the
/// breaker refuses other calls until then.
pub fn honoured_retry_after(policy: &CallPolicy, failure: &AttemptFailed) -> Option<Duration> {
    let ms = failure.retry_after_ms.filter(|ms| *ms > 0)?;
    let honoured = policy.retry_on == RetryOn::Transient && is_retryable(failure);
    honoured.then(|| Duration::from_millis(ms))
}

/// Whether a failure of this kind may be retried at all: timeout, connection trouble, 5xx, 408, 409
/// and 429 may; a rejected key, a broken contract or a panic may not. `x-should-retry` of the
/// endpoint takes precedence.
pub fn is_retryable(failure: &AttemptFailed) -> bool {
    if let Some(should) = failure.should_retry {
        return should;
    }
    match failure.class {
        FailureClass::Timeout
        | FailureClass::Resolve
        | FailureClass::Connect
        | FailureClass::Reset
        | FailureClass::RateLimited => true,
        FailureClass::Status => {
            failure.status.is_some_and(|status| matches!(status, 408 | 409) || status >= 500)
        }
        FailureClass::Tls
        | FailureClass::Tool
        | FailureClass::Auth
        | FailureClass::BadResponse
        | FailureClass::TooLarge
        | FailureClass::Denied
        | FailureClass::Rejected
        | FailureClass::Limit
        | FailureClass::ScriptMissing
        | FailureClass::Panic
        | FailureClass::Cancelled => false,
    }
}

/// Decides after attempt `attempt` (from 1) failed with `remaining` of the run's time left. `draw`
/// returns random bits for this wait; it is called only if jitter is on.
pub fn decide_retry(
    policy: &CallPolicy,
    attempt: u32,
    failure: &AttemptFailed,
    remaining: Duration,
    draw: impl FnOnce() -> u64,
) -> RetryDecision {
    let asked = honoured_retry_after(policy, failure).unwrap_or_default();
    let may = match policy.retry_on {
        RetryOn::Transient => is_retryable(failure),
        RetryOn::Timeout => failure.class == FailureClass::Timeout,
    };
    if attempt >= policy.max_attempts || !policy.idempotent {
        return RetryDecision::GiveUp;
    }
    if !may {
        let otherwise = policy.retry_on == RetryOn::Timeout && is_retryable(failure);
        return if otherwise { RetryDecision::OnlyTimeouts } else { RetryDecision::GiveUp };
    }
    let wait = backoff(policy, attempt, draw).max(asked);
    if wait >= remaining { RetryDecision::TooLate(wait) } else { RetryDecision::Retry(wait) }
}

/// Wait after attempt `attempt` (from 1): the entry of the list at this place, the last one
/// repeats. With equal jitter, half of the wait is fixed and the rest is random.
pub fn backoff(policy: &CallPolicy, attempt: u32, draw: impl FnOnce() -> u64) -> Duration {
    let place = (attempt.saturating_sub(1) as usize).min(policy.backoff.len().saturating_sub(1));
    let Some(full) = policy.backoff.get(place).copied() else { return Duration::ZERO };
    if policy.jitter { full / 2 + random_share(full / 2, draw()) } else { full }
}

/// One slot for each second of the window.
const SLOTS: usize = RetryBudgetLimits::WINDOW.as_secs() as usize;

/// Counts attempts and retries of one tool in the last 60 seconds, by whole seconds since the first
/// attempt.
#[derive(Debug, Default)]
pub struct RetryBudget {
    /// Start of second 0; `None` before the first attempt.
    origin: Option<Instant>,
    /// Latest second with an entry; earlier times count as this one.
    latest: u64,
    /// Each slot stores its second. Slots that have left the window are ignored, so idle time costs
    /// nothing. The list grows up to the slot in use, because most runs need only a few.
    slots: Vec<SecondCounts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SecondCounts {
    second: u64,
    attempts: u32,
    retries: u32,
}

impl RetryBudget {
    /// Counts an attempt; a retry is an attempt too.
    pub fn count_attempt(&mut self, now: Instant) {
        let slot = self.slot(now);
        slot.attempts = slot.attempts.saturating_add(1);
    }

    /// Counts a retry.
    pub fn count_retry(&mut self, now: Instant) {
        let slot = self.slot(now);
        slot.retries = slot.retries.saturating_add(1);
    }

    /// Whether one more retry is within the limits.
    pub fn may_retry(&self, now: Instant, limits: RetryBudgetLimits) -> bool {
        let (retries, allowed) = self.usage(now, limits);
        retries < allowed
    }

    /// Counts a retry if the limits allow it, and returns whether they do.
    pub fn take_retry(&mut self, now: Instant, limits: RetryBudgetLimits) -> bool {
        let may = self.may_retry(now, limits);
        if may {
            self.count_retry(now);
        }
        may
    }

    /// Retries in the window, and the allowed number.
    pub fn usage(&self, now: Instant, limits: RetryBudgetLimits) -> (u64, u64) {
        let second = self.second(now);
        let in_window = |slot: &&SecondCounts| second - slot.second < SLOTS as u64;
        let (attempts, retries) =
            self.slots.iter().filter(in_window).fold((0, 0), |(attempts, retries), slot| {
                (attempts + u64::from(slot.attempts), retries + u64::from(slot.retries))
            });
        let share = attempts * u64::from(limits.ratio_percent) / 100;
        (retries, share.max(u64::from(limits.min)))
    }

    /// Second of this time, never before the latest one.
    fn second(&self, now: Instant) -> u64 {
        let since = self.origin.map_or(0, |origin| now.saturating_duration_since(origin).as_secs());
        since.max(self.latest)
    }

    /// Slot of this second, cleared if it held an older one.
    fn slot(&mut self, now: Instant) -> &mut SecondCounts {
        self.origin.get_or_insert(now);
        let second = self.second(now);
        self.latest = second;
        let index = (second % SLOTS as u64) as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, SecondCounts::default());
        }
        let slot = &mut self.slots[index];
        if slot.second != second {
            *slot = SecondCounts { second, ..SecondCounts::default() };
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn policy() -> CallPolicy {
        CallPolicy {
            max_attempts: 4,
            backoff: [250, 750].map(Duration::from_millis).into(),
            jitter: false,
            ..CallPolicy::default()
        }
    }

    fn failed(
        class: FailureClass,
        status: Option<u16>,
        retry_after_ms: Option<u64>,
    ) -> AttemptFailed {
        AttemptFailed { status, retry_after_ms, ..*AttemptFailed::new(class, "") }
    }

    #[test]
    fn which_failures_are_tried_again() {
        use FailureClass::*;
        let table = [
            (Timeout, None, true),
            (Resolve, None, true),
            (Connect, None, true),
            (Reset, None, true),
            (RateLimited, Some(429), true),
            (Status, Some(500), true),
            (Status, Some(503), true),
            (Status, Some(408), true),
            (Status, Some(409), true),
            (Status, Some(400), false),
            (Status, Some(404), false),
            (Auth, Some(401), false),
            (Tls, None, false),
            (BadResponse, Some(200), false),
            (Denied, None, false),
            (TooLarge, Some(200), false),
            (Denied, None, false),
            (Tool, None, false),
            (Panic, None, false),
            (Cancelled, None, false),
        ];
        for (class, status, expected) in table {
            assert_eq!(
                is_retryable(&failed(class, status, None)),
                expected,
                "{class:?} {status:?}"
            );
        }
    }

    #[test]
    fn endpoint_retry_hint_wins() {
        let failed = |status, should| AttemptFailed {
            should_retry: Some(should),
            ..*AttemptFailed::from_status(status, "")
        };
        for status in [400, 401, 404, 429, 500, 503] {
            assert!(is_retryable(&failed(status, true)), "{status}");
            assert!(!is_retryable(&failed(status, false)), "{status}");
        }
    }

    #[test]
    fn backoff_follows_list_and_repeats_last() {
        let failure = failed(FailureClass::Timeout, None, None);
        let waits: Vec<_> =
            (1..=4).map(|at| decide_retry(&policy(), at, &failure, LONG, || 0)).collect();
        let ms = |ms| RetryDecision::Retry(Duration::from_millis(ms));
        assert_eq!(waits, [ms(250), ms(750), ms(750), RetryDecision::GiveUp]);
    }

    #[test]
    fn equal_jitter_keeps_half_of_wait() {
        let jittered = CallPolicy { jitter: true, ..policy() };
        assert_eq!(backoff(&jittered, 1, || 0), Duration::from_millis(125));
        assert_eq!(backoff(&jittered, 1, || u64::MAX), Duration::from_millis(250));
        let middle = backoff(&jittered, 1, || u64::MAX / 2);
        assert!(middle > Duration::from_millis(186) && middle < Duration::from_millis(188));
    }

    #[test]
    fn retry_waits_retry_after_within_deadline() {
        let limited = |after| failed(FailureClass::RateLimited, Some(429), after);
        let at = |after, left| decide_retry(&policy(), 1, &limited(after), left, || 0);
        assert_eq!(at(Some(2000), LONG), RetryDecision::Retry(Duration::from_secs(2)));
        assert_eq!(at(Some(100), LONG), RetryDecision::Retry(Duration::from_millis(250)));
        assert_eq!(at(None, LONG), RetryDecision::Retry(Duration::from_millis(250)));
        let (two, hour) = (Duration::from_secs(2), Duration::from_secs(3_600));
        assert_eq!(at(Some(2000), two), RetryDecision::TooLate(two));
        assert_eq!(at(Some(3_600_000), Duration::from_secs(40)), RetryDecision::TooLate(hour));
    }

    #[test]
    fn honours_retry_after_when_retryable() {
        let hour = Some(Duration::from_secs(3600));
        let failed = |status| AttemptFailed {
            retry_after_ms: Some(3_600_000),
            ..*AttemptFailed::from_status(status, "")
        };
        assert_eq!(honoured_retry_after(&policy(), &failed(429)), hour);
        assert_eq!(honoured_retry_after(&policy(), &failed(503)), hour);
        assert_eq!(honoured_retry_after(&policy(), &failed(404)), None, "it was asked wrongly");
        let timeouts_only = CallPolicy { retry_on: RetryOn::Timeout, ..policy() };
        assert_eq!(
            honoured_retry_after(&timeouts_only, &failed(429)),
            None,
            "the orchestrator source document has no Retry-After"
        );
    }

    #[test]
    fn never_retries_unrepeatable_failures() {
        let once = CallPolicy { idempotent: false, ..policy() };
        let failure = failed(FailureClass::Timeout, None, None);
        assert_eq!(decide_retry(&once, 1, &failure, LONG, || 0), RetryDecision::GiveUp);
        let timeouts_only = CallPolicy { retry_on: RetryOn::Timeout, ..policy() };
        let (reset, status) = (failed(FailureClass::Reset, None, None), FailureClass::Status);
        assert_eq!(
            decide_retry(&timeouts_only, 1, &failure, LONG, || 0),
            RetryDecision::Retry(Duration::from_millis(250))
        );
        let unavailable = failed(status, Some(503), None);
        for (failure, attempt, expected) in [
            (&reset, 1, RetryDecision::OnlyTimeouts),
            (&unavailable, 1, RetryDecision::OnlyTimeouts),
            (&unavailable, 4, RetryDecision::GiveUp),
            (&failed(status, Some(404), None), 1, RetryDecision::GiveUp),
        ] {
            assert_eq!(decide_retry(&timeouts_only, attempt, failure, LONG, || 0), expected);
        }
    }
}
