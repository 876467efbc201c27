//! Faults that the breaker alone answers for, one by one, where `breaker_model.rs` does not have them in
//! every order.

use std::time::Duration;

use crate::gateway::breaker::{
    AttemptVerdict, Breaker, BreakerRefusal, BreakerState, BreakerView, Recorded, RefusalReason,
    Ticket,
};
use crate::log::event::{BreakerCause, WindowCounts};
use crate::scenario::spec::policy::{BreakerLimits, BreakerMode, Rate, WindowKind, WindowLimits};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
const OPEN_FOR: Duration = Duration::from_secs(30);
const BOTH: [BreakerMode; 2] = [BreakerMode::HalfOpen, BreakerMode::TwoState];

fn breaker(mode: BreakerMode) -> Breaker {
    Breaker::new(BreakerLimits { mode, ..BreakerLimits::default() })
}

fn ticket(breaker: &mut Breaker, now: Instant) -> Ticket {
    breaker.allow(now).expect("let through")
}

fn attempt(breaker: &mut Breaker, verdict: AttemptVerdict, now: Instant) -> Recorded {
    let ticket = ticket(breaker, now);
    breaker.record(ticket, verdict, now)
}

/// A breaker that five failures opened at `now`.
fn opened(mode: BreakerMode, now: Instant) -> Breaker {
    let mut breaker = breaker(mode);
    for _ in 0..5 {
        attempt(&mut breaker, AttemptVerdict::Failure, now);
    }
    breaker
}

fn open(left: Duration) -> BreakerView {
    BreakerView::Open { left: Some(left), held: false }
}

fn closed(failures: u32) -> BreakerView {
    BreakerView::Closed { failures, of: 5 }
}

fn refused(why: RefusalReason, retry_in: Option<Duration>) -> BreakerRefusal {
    BreakerRefusal { reason: why, retry_in }
}

#[test]
fn defaults_match_source() {
    let limits = BreakerLimits::default();
    assert_eq!((limits.fail_threshold, limits.open_for), (5, OPEN_FOR));
    assert_eq!((limits.probe_permits, limits.mode), (1, BreakerMode::HalfOpen));
}

#[test]
fn fault_2_gate_refuses_without_counting() {
    let start = Instant::now();
    let hour = 3600 * SECOND;
    let mut breaker = breaker(BreakerMode::HalfOpen);
    breaker.set_retry_after(start + hour);
    breaker.set_retry_after(start + SECOND);
    assert_eq!(breaker.allow(start).unwrap_err(), refused(RefusalReason::RetryAfter, Some(hour)));
    assert_eq!(breaker.view(start), closed(0), "no failure opened it");
    let last = start + hour - SECOND;
    assert_eq!(breaker.allow(last).unwrap_err(), refused(RefusalReason::RetryAfter, Some(SECOND)));
    assert_eq!(attempt(&mut breaker, AttemptVerdict::Success, start + hour), Recorded::Counted);

    // Of a gate and an open time the later end is reported; a manual override goes before both.
    breaker.set_retry_after(start + 2 * hour);
    breaker.trip(start + hour);
    assert_eq!(
        breaker.allow(start + hour).unwrap_err(),
        refused(RefusalReason::RetryAfter, Some(hour)),
        "the open time is over long before"
    );
    assert_eq!(
        breaker.allow(start + 2 * hour - SECOND).unwrap_err().reason,
        RefusalReason::RetryAfter,
        "no probe starts behind the gate"
    );
    breaker.trip(start + 2 * hour - SECOND);
    let told = breaker.allow(start + 2 * hour - SECOND).unwrap_err();
    assert_eq!(told, refused(RefusalReason::Open, Some(OPEN_FOR)));
    breaker.hold_open(start + hour);
    assert_eq!(breaker.allow(start + hour).unwrap_err(), refused(RefusalReason::Held, None));
    breaker.disable();
    assert_eq!(breaker.allow(start + hour).unwrap_err().reason, RefusalReason::RetryAfter);
    breaker.reset();
    assert_eq!(attempt(&mut breaker, AttemptVerdict::Success, start + hour), Recorded::Counted);
}

/// Fault 16: after a suspension the clock is far ahead, and a reader may hold an older time.
#[test]
fn fault_16_no_countdown_is_negative() {
    for mode in BOTH {
        let start = Instant::now() + 3600 * SECOND;
        let mut breaker = opened(mode, start);
        let ages = start + 365 * 24 * 3600 * SECOND;
        assert_eq!(breaker.view(ages), open(Duration::ZERO));
        assert_eq!(breaker.view(start - 60 * SECOND), open(OPEN_FOR + 60 * SECOND));
        breaker.set_retry_after(start);
        assert_eq!(breaker.retry_after_left(ages), None);
        assert!(breaker.allow(ages).is_ok(), "{mode:?}");
    }
}

#[test]
fn huge_open_time_never_panics() {
    let now = Instant::now();
    let mut breaker = opened(BreakerMode::HalfOpen, now);
    breaker.set_limits(BreakerLimits { open_for: Duration::MAX, ..breaker.limits() });
    assert_eq!(breaker.allow(now + 3600 * SECOND).unwrap_err().reason, RefusalReason::Open);
}

#[test]
fn limit_change_keeps_counts() {
    let start = Instant::now();
    let mut breaker = breaker(BreakerMode::HalfOpen);
    for _ in 0..4 {
        attempt(&mut breaker, AttemptVerdict::Failure, start);
    }
    let lower = BreakerLimits { fail_threshold: 2, ..breaker.limits() };
    breaker.set_limits(lower);
    assert_eq!(breaker.state(), BreakerState::Closed { failures: 4 }, "not opened by the change");
    assert_eq!(attempt(&mut breaker, AttemptVerdict::Failure, start), Recorded::Opened);
    // The running countdown is counted from when it opened.
    let now = start + 10 * SECOND;
    breaker.set_limits(BreakerLimits { open_for: 15 * SECOND, ..lower });
    assert_eq!(breaker.view(now), open(5 * SECOND));
    breaker.set_limits(BreakerLimits { open_for: 5 * SECOND, ..lower });
    assert_eq!(breaker.view(now), open(Duration::ZERO));
    let probe = ticket(&mut breaker, now);
    // The source knows no half-open.
    breaker.set_limits(BreakerLimits { mode: BreakerMode::TwoState, ..lower });
    assert_eq!(breaker.state(), BreakerState::Closed { failures: 0 });
    assert_eq!(breaker.record(probe, AttemptVerdict::Failure, now), Recorded::Counted);
    assert_eq!(breaker.state(), BreakerState::Closed { failures: 1 }, "late, and counts there");
}

const WINDOW: WindowLimits = WindowLimits {
    kind: WindowKind::Count,
    size: 10,
    min_calls: 5,
    failure_rate: Rate::ALL,
    slow_call_ms: Some(400),
    slow_rate: Rate::ALL,
};

/// The results of attempts, one a second: `.` success, `x` failure, `s` slow, `X` a slow failure.
fn play(breaker: &mut Breaker, results: &str, start: Instant) -> Option<(usize, Recorded)> {
    let verdict = |letter| match letter {
        '.' => AttemptVerdict::Success,
        's' => AttemptVerdict::SlowSuccess,
        'x' => AttemptVerdict::Failure,
        'X' => AttemptVerdict::SlowFailure,
        _ => AttemptVerdict::Neither,
    };
    let seconds = (0..).map(|nth| start + nth * SECOND);
    let told = results.chars().zip(seconds).map(|(letter, now)| {
        let ticket = breaker.allow(now).ok()?;
        Some(breaker.record(ticket, verdict(letter), now))
    });
    (1..).zip(told).find_map(|(nth, told)| Some((nth, told.filter(|it| *it != Recorded::Counted)?)))
}

/// When a window opens a breaker, and what the window has then.
#[test]
fn a_window_opens_at_its_rates() {
    use BreakerCause::{FailureRate, SlowCalls};
    let rate = Rate::from_share;
    let half = WindowLimits { failure_rate: rate(0.5), ..WINDOW };
    let slow = WindowLimits { slow_rate: rate(0.6), ..WINDOW };
    let three_seconds = WindowLimits { kind: WindowKind::Time, size: 3, min_calls: 2, ..half };
    let counts = |calls, failures, slow| WindowCounts { calls, failures, slow };
    let table = [
        (
            "four in five, never five in a row",
            half,
            "xxxx.",
            Some((5, FailureRate, counts(5, 4, 0))),
        ),
        ("not before the fewest calls", half, "xxxx", None),
        ("exactly at the rate", half, "x.x..x", Some((6, FailureRate, counts(6, 3, 0)))),
        ("just below the rate", half, "x.x....x..", None),
        ("the oldest call goes", half, "....x.xxxxx", Some((10, FailureRate, counts(10, 5, 0)))),
        ("what says nothing is no call", half, "--x-x-x-x", None),
        ("slow ones", slow, "s.s.s", Some((5, SlowCalls, counts(5, 0, 3)))),
        ("a slow failure is both", slow, "X.X.s", Some((5, SlowCalls, counts(5, 2, 3)))),
        ("failures are named first", half, "XXXXX", Some((5, FailureRate, counts(5, 5, 5)))),
        ("no limit for slow ones", WindowLimits { slow_call_ms: None, ..WINDOW }, "sssss", None),
        ("the latest seconds", three_seconds, "x---x-x", Some((7, FailureRate, counts(2, 2, 0)))),
        ("seconds that are over", three_seconds, "x--x--x--x", None),
    ];
    for (what, window, results, expected) in table {
        let start = Instant::now();
        let mut breaker =
            Breaker::new(BreakerLimits { window: Some(window), ..BreakerLimits::default() });
        let opened = play(&mut breaker, results, start);
        let by = breaker.opened_by_window();
        let found = opened.zip(by).map(|((nth, _), (cause, counts))| (nth, cause, counts));
        assert_eq!(found, expected, "{what}: {results}");
    }
}

/// What the source's breaker misses: it counts failures in a row only.
#[test]
fn consecutive_count_misses_high_rate() {
    let results = "xxxx.".repeat(100);
    let start = Instant::now();
    let mut in_a_row = breaker(BreakerMode::HalfOpen);
    assert_eq!(play(&mut in_a_row, &results, start), None);
    let window = Some(WindowLimits { failure_rate: Rate::from_share(0.8), ..WINDOW });
    let mut by_rate = Breaker::new(BreakerLimits { window, ..BreakerLimits::default() });
    assert_eq!(play(&mut by_rate, &results, start), Some((5, Recorded::Opened)));
}
