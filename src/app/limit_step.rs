//! The steps in which limits and strengths of faults change.

use crate::event::kind::LimitChange;
use crate::scenario::spec::limits::{Rate, WindowLimits};

/// A duration in milliseconds, one step longer or shorter, but not below `least`.
pub(super) fn stepped_ms(ms: u64, up: bool, least: u64) -> u64 {
    // The step belongs to the range below the value, so that one step up and one down cancel out.
    let step = match if up { ms } else { ms.saturating_sub(1) } {
        0..1_000 => 100,
        1_000..10_000 => 500,
        10_000..60_000 => 5_000,
        _ => 30_000,
    };
    if up { ms.saturating_add(step) } else { ms.saturating_sub(step).max(least) }
}

fn stepped_count(count: u32, up: bool) -> u32 {
    if up { count.saturating_add(1) } else { count.saturating_sub(1).max(1) }
}

/// The next share in steps of 5 %.
fn stepped_rate(rate: Rate, up: bool) -> Rate {
    let twentieths = rate.share() * 20.0;
    let step =
        if up { (twentieths + 0.01).floor() + 1.0 } else { (twentieths - 0.01).ceil() - 1.0 };
    Rate::from_share((step / 20.0).clamp(0.05, 1.0))
}

/// A limit one step up or down; `None` at its bound.
pub fn stepped_limit(limit: LimitChange, up: bool) -> Option<LimitChange> {
    let to = match limit {
        LimitChange::TimeoutMs(ms) => LimitChange::TimeoutMs(stepped_ms(ms, up, 100)),
        LimitChange::MaxAttempts(most) => LimitChange::MaxAttempts(stepped_count(most, up)),
        LimitChange::FailThreshold(most) => LimitChange::FailThreshold(stepped_count(most, up)),
        LimitChange::OpenForMs(ms) => LimitChange::OpenForMs(stepped_ms(ms, up, 100)),
        LimitChange::ProbePermits(most) => LimitChange::ProbePermits(stepped_count(most, up)),
        LimitChange::MaxInFlight(most) => LimitChange::MaxInFlight(stepped_count(most, up)),
        LimitChange::MaxWaitMs(ms) => LimitChange::MaxWaitMs(stepped_ms(ms, up, 0)),
        LimitChange::WindowSize(size) => {
            LimitChange::WindowSize(stepped_count(size, up).min(WindowLimits::MAX_SIZE))
        }
        LimitChange::MinCalls(min) => LimitChange::MinCalls(stepped_count(min, up)),
        LimitChange::FailureRate(rate) => LimitChange::FailureRate(stepped_rate(rate, up)),
        LimitChange::SlowCallMs(ms) => LimitChange::SlowCallMs(stepped_ms(ms, up, 100)),
        LimitChange::SlowRate(rate) => LimitChange::SlowRate(stepped_rate(rate, up)),
        // The drawer has no row for the other limits.
        other => other,
    };
    (to != limit).then_some(to)
}
