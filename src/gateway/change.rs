//! Changes a tool's policy while a run plays. Values are clamped to what a scenario file allows.

use std::time::Duration;

use crate::log::event::LimitChange;
use crate::scenario::spec::policy::{BreakerLimits, CallPolicy, WindowLimits, max};
use crate::scenario::spec::tool::InjectedFault;

/// Applies a change and returns it with the value that was set, or `None` if the policy has no such
/// limit.
pub fn apply_change(change: LimitChange, policy: &mut CallPolicy) -> Option<LimitChange> {
    let ms = Duration::from_millis;
    let mut change = change.clamped();
    match change {
        LimitChange::TimeoutMs(limit) => policy.timeout = Some(ms(limit)),
        LimitChange::MaxAttempts(most) => policy.max_attempts = most,
        LimitChange::WaitMs(wait) => policy.backoff = [ms(wait)].into(),
        LimitChange::Jitter(on) => policy.jitter = on,
        LimitChange::Idempotent(on) => policy.idempotent = on,
        LimitChange::RetryPercent(percent) => {
            policy.retry_budget.as_mut()?.ratio_percent = percent;
        }
        LimitChange::RetryMin(min) => policy.retry_budget.as_mut()?.min = min,
        // Where a window decides, failures in a row do not.
        LimitChange::FailThreshold(most) => without_window(policy)?.fail_threshold = most,
        LimitChange::BreakerMode(mode) => without_window(policy)?.mode = mode,
        LimitChange::OpenForMs(open) => policy.breaker.as_mut()?.open_for = ms(open),
        LimitChange::ProbePermits(most) => policy.breaker.as_mut()?.probe_permits = most,
        LimitChange::WindowSize(size) => {
            let window = window(policy)?;
            window.size = size;
            window.min_calls = window.min_calls.min(window.max_min_calls());
        }
        LimitChange::MinCalls(min) => {
            let window = window(policy)?;
            window.min_calls = min.min(window.max_min_calls());
            change = LimitChange::MinCalls(window.min_calls);
        }
        LimitChange::FailureRate(rate) => window(policy)?.failure_rate = rate,
        LimitChange::SlowCallMs(slow) => *window(policy)?.slow_call_ms.as_mut()? = slow,
        LimitChange::SlowRate(rate) => {
            window(policy).filter(|it| it.slow_call_ms.is_some())?.slow_rate = rate;
        }
        // A tool without a bulkhead gets one; attempts in flight continue.
        LimitChange::MaxInFlight(most) => {
            policy.bulkhead.get_or_insert_default().max_in_flight = most;
        }
        LimitChange::Rate(most) => policy.rate = Some(most),
        LimitChange::MaxWaitMs(wait) => policy.bulkhead.as_mut()?.max_wait = Some(ms(wait)),
        LimitChange::SafeMode(on) => policy.safe_mode.enabled = on,
        LimitChange::AllowPartial(on) => policy.safe_mode.allow_partial = on,
        LimitChange::CacheTtlMs(ttl) => policy.safe_mode.cache_ttl = (ttl > 0).then(|| ms(ttl)),
    }
    Some(change)
}

/// The breaker, if it counts failures in a row.
fn without_window(policy: &mut CallPolicy) -> Option<&mut BreakerLimits> {
    policy.breaker.as_mut().filter(|it| it.window.is_none())
}

/// The window of the breaker, if it has one.
fn window(policy: &mut CallPolicy) -> Option<&mut WindowLimits> {
    policy.breaker.as_mut()?.window.as_mut()
}

/// The fault with its values clamped; `None` if its status is not an error status.
pub fn clamp_fault(fault: InjectedFault) -> Option<InjectedFault> {
    match fault {
        InjectedFault::Errors { status, .. } if !(400..=599).contains(&status) => None,
        InjectedFault::Errors { percent, status, times } => {
            let times = times.map(|times| times.clamp(1, max::FAIL_THRESHOLD));
            Some(InjectedFault::Errors { percent: percent.clamp(1, 100), status, times })
        }
        InjectedFault::Latency { ms } => {
            Some(InjectedFault::Latency { ms: ms.clamp(1, max::LATENCY_MS.into()) })
        }
        InjectedFault::Hang
        | InjectedFault::Malformed
        | InjectedFault::Reset
        | InjectedFault::Empty
        | InjectedFault::Refusal => Some(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::spec::policy::{Rate as Share, WindowKind};

    #[test]
    fn clamps_amounts_to_file_limits() {
        use LimitChange::*;
        let table = [
            (TimeoutMs(0), Some(TimeoutMs(1))),
            (TimeoutMs(u64::MAX), Some(TimeoutMs(max::TIME_MS.into()))),
            (MaxAttempts(u32::MAX), Some(MaxAttempts(20))),
            (FailThreshold(0), Some(FailThreshold(1))),
            (FailThreshold(5_000), Some(FailThreshold(5_000))),
            (RetryMin(u32::MAX), Some(RetryMin(10_000))),
            (OpenForMs(0), Some(OpenForMs(1))),
            (MaxInFlight(u32::MAX), Some(MaxInFlight(100_000))),
            (LimitChange::Rate(0), Some(LimitChange::Rate(1))),
            (RetryPercent(400), Some(RetryPercent(100))),
            (CacheTtlMs(0), Some(CacheTtlMs(0))),
        ];
        for (asked, made) in table {
            assert_eq!(apply_change(asked, &mut CallPolicy::default()), made, "{asked:?}");
        }
        let mut bare = CallPolicy {
            breaker: None,
            bulkhead: None,
            retry_budget: None,
            ..CallPolicy::default()
        };
        for nothing in [FailThreshold(3), ProbePermits(2), OpenForMs(9), MaxWaitMs(5), RetryMin(1)]
        {
            assert_eq!(apply_change(nothing, &mut bare), None, "{nothing:?}");
        }
        assert_eq!(apply_change(MaxInFlight(4), &mut bare), Some(MaxInFlight(4)));
    }

    #[test]
    fn a_window_changes_within_its_bounds() {
        use LimitChange::*;
        let rate = Share::from_share;
        let limits = WindowLimits {
            kind: WindowKind::Count,
            size: 20,
            min_calls: 10,
            failure_rate: rate(0.5),
            slow_call_ms: Some(400),
            slow_rate: rate(0.6),
        };
        let with = |window| CallPolicy {
            breaker: Some(BreakerLimits { window, ..BreakerLimits::default() }),
            ..CallPolicy::default()
        };
        let table = [
            (WindowSize(0), Some(WindowSize(1))),
            (WindowSize(u32::MAX), Some(WindowSize(3_600))),
            (MinCalls(99), Some(MinCalls(20))),
            (FailureRate(rate(0.9)), Some(FailureRate(rate(0.9)))),
            (SlowCallMs(0), Some(SlowCallMs(1))),
            (SlowRate(rate(0.1)), Some(SlowRate(rate(0.1)))),
            // Failures in a row do not decide here.
            (FailThreshold(3), None),
            (BreakerMode(crate::scenario::spec::policy::BreakerMode::TwoState), None),
        ];
        for (asked, made) in table {
            assert_eq!(apply_change(asked, &mut with(Some(limits))), made, "{asked:?}");
        }
        let mut smaller = with(Some(limits));
        apply_change(WindowSize(5), &mut smaller);
        let window = smaller.breaker.and_then(|it| it.window).expect("a window");
        assert_eq!((window.size, window.min_calls), (5, 5), "else it would never open");
        for asked in [WindowSize(5), MinCalls(5), FailureRate(rate(0.9)), SlowCallMs(5)] {
            assert_eq!(apply_change(asked, &mut with(None)), None, "{asked:?}");
        }
        let fast = WindowLimits { slow_call_ms: None, ..limits };
        assert_eq!(apply_change(SlowRate(rate(0.9)), &mut with(Some(fast))), None);
    }

    #[test]
    fn a_fault_is_one() {
        let errors = |percent, status| InjectedFault::Errors { percent, status, times: None };
        assert_eq!(clamp_fault(errors(255, 200)), None);
        assert_eq!(clamp_fault(errors(255, 503)), Some(errors(100, 503)));
        assert_eq!(
            clamp_fault(InjectedFault::Latency { ms: u64::MAX }),
            Some(InjectedFault::Latency { ms: max::LATENCY_MS.into() })
        );
    }
}
