//! The faults that the gateway survives, if they name durations and orders: under paused time, by the
//! number of the list. After every case nothing is in flight.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::gateway::CallGuard;
use crate::gateway::breaker::BreakerView;
use crate::log::event::command::BreakerOverride;
use crate::log::event::{
    AttemptFailed, BreakerStage, EventKind, FailureClass, FallbackKind, Initiator, LimitChange,
    RetryLimit, StopReason,
};
use crate::scenario::spec::policy::{
    BreakerCounts, BreakerLimits, BulkheadLimits, CallPolicy, RetryBudgetLimits, SafeMode,
};
use crate::support::gateway_call;
use crate::support::gateway_call::{Odd, Scope, call, fails, guard, limited, policy, status};
use futures::FutureExt;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

fn at_rest(guard: &CallGuard, scope: &Scope) {
    assert_eq!(guard.snapshot().fill.in_flight, 0, "no permit is held");
    assert_eq!(guard.snapshot().fill.queued, 0, "nobody stands in line");
    assert_eq!(scope.out.load(Ordering::SeqCst), 0, "nothing is in flight");
}

fn failures(guard: &CallGuard) -> u32 {
    match guard.snapshot().breaker {
        BreakerView::Closed { failures, .. } => failures,
        other => panic!("not closed: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn fault_01_429_waits_without_failure() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let tool = Odd::failing(|number| if number == 1 { limited(2_000) } else { None });
    let since = Instant::now();
    call(&scope, &guard, &tool).await.expect("answered at the second attempt");
    assert_eq!(since.elapsed(), Duration::from_secs(2));
    assert_eq!((tool.asked(), failures(&guard)), (2, 0));
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_02_long_retry_after_gates() {
    let scope = Scope::with(Duration::from_secs(60));
    let guard = guard(policy(), &scope);
    let tool = Odd::failing(|_| limited(3_600_000));
    let since = Instant::now();
    let failed = call(&scope, &guard, &tool).await.expect_err("it cannot wait so long");
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert_eq!(failed.reason.to_string(), "tool_error:vendor:rate_limited");
    let again = call(&scope, &guard, &tool).await.expect_err("the tool is gated");
    assert_eq!(again.reason.to_string(), "circuit_open:vendor");
    assert_eq!(tool.asked(), 1, "the tool was not asked again");
    advance(Duration::from_secs(3_600)).await;
    let good = Odd::failing(|_| None);
    call(&scope, &guard, &good).await.expect("the time it asked for is over");
    assert_eq!(failures(&guard), 0);
    at_rest(&guard, &scope);
}

/// A `Retry-After` in the past or of nonsense is none (`net::retry_after`): the back-off counts.
#[tokio::test(start_paused = true)]
async fn fault_02_missing_header_uses_backoff() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let tool = Odd::failing(|number| if number == 1 { status(429) } else { None });
    call(&scope, &guard, &tool).await.expect("answered");
    assert_eq!(scope.waits().await, [250]);
    assert_eq!(failures(&guard), 0);
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_03_fifth_500_opens_breaker() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let tool = Odd::failing(|_| status(500));
    for _ in 0..2 {
        call(&scope, &guard, &tool).await.expect_err("500");
    }
    let since = Instant::now();
    let tripped = call(&scope, &guard, &tool).await.expect_err("500");
    assert_eq!(since.elapsed(), Duration::ZERO, "the fifth failure is followed by no wait");
    assert_eq!((tripped.attempts, tool.asked()), (1, 5));
    assert_eq!(tripped.reason.to_string(), "tool_error:vendor:status");
    let refused = call(&scope, &guard, &tool).await.expect_err("open");
    assert_eq!((refused.reason.to_string().as_str(), tool.asked()), ("circuit_open:vendor", 5));
    let moves: Vec<_> = scope
        .facts()
        .await
        .iter()
        .filter_map(|fact| match &fact.kind {
            EventKind::BreakerChanged { to, open_for_ms, .. } => Some((*to, *open_for_ms)),
            _ => None,
        })
        .collect();
    assert_eq!(moves, [(BreakerStage::Open, Some(30_000))]);
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_04_success_keeps_breaker_closed() {
    let scope = Scope::new();
    let once = CallPolicy { max_attempts: 1, ..policy() };
    let guard = guard(once, &scope);
    let (bad, good) = (Odd::failing(|_| status(500)), Odd::failing(|_| None));
    for _ in 0..10 {
        for _ in 0..4 {
            call(&scope, &guard, &bad).await.expect_err("500");
        }
        call(&scope, &guard, &good).await.expect("still asked");
    }
    assert_eq!(failures(&guard), 0);
    at_rest(&guard, &scope);
}

/// Four attempts of a call, which the breaker counts once.
fn by_calls() -> CallPolicy {
    let breaker = BreakerLimits { counts: BreakerCounts::Calls, ..BreakerLimits::default() };
    CallPolicy { max_attempts: 4, breaker: Some(breaker), retry_budget: None, ..policy() }
}

#[tokio::test(start_paused = true)]
async fn breaker_counts_each_call_once() {
    let scope = Scope::new();
    let guard = guard(by_calls(), &scope);
    let (bad, late) = (
        Odd::failing(|_| status(500)),
        Odd::failing(|number| if number < 4 { status(500) } else { None }),
    );
    for nth in 1..=4 {
        call(&scope, &guard, &bad).await.expect_err("500");
        assert_eq!(failures(&guard), nth, "call {nth}, not its attempts");
    }
    call(&scope, &guard, &late).await.expect("answered at the fourth attempt");
    assert_eq!(failures(&guard), 0, "its last attempt was good");
    for _ in 1..=4 {
        call(&scope, &guard, &bad).await.expect_err("500");
    }
    let fifth = call(&scope, &guard, &bad).await.expect_err("500");
    assert_eq!(fifth.attempts, 4, "it opens with the last attempt, not before");
    assert_eq!(fifth.reason.to_string(), "tool_error:vendor:status");
    let refused = call(&scope, &guard, &bad).await.expect_err("open");
    assert_eq!(refused.reason.to_string(), "circuit_open:vendor");
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn probe_decides_when_counting_calls() {
    let scope = Scope::new();
    let guard = guard(by_calls(), &scope);
    guard.override_breaker(BreakerOverride::Trip, Initiator::You);
    advance(Duration::from_secs(30)).await;
    let bad = Odd::failing(|_| status(500));
    let failed = call(&scope, &guard, &bad).await.expect_err("500");
    assert_eq!((failed.attempts, bad.asked()), (1, 1), "the probe opened it again");
    assert!(matches!(guard.snapshot().breaker, BreakerView::Open { held: false, .. }));
    advance(Duration::from_secs(30)).await;
    call(&scope, &guard, &Odd::failing(|_| None)).await.expect("a good probe");
    assert_eq!(failures(&guard), 0);
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn refused_retry_names_limit() {
    let limit_of = async |left: u64, policy: CallPolicy, failure: fn() -> _| {
        let scope = Scope::with(Duration::from_secs(left));
        let guard = guard(policy, &scope);
        let tool = Odd::failing(move |_| failure());
        let failed = call(&scope, &guard, &tool).await.expect_err("it fails");
        let facts = scope.facts().await;
        let closing: Vec<_> = facts.iter().rev().take(2).map(|fact| fact.kind.name()).collect();
        assert_eq!(closing[0], "call.failed");
        at_rest(&guard, &scope);
        facts.iter().find_map(|fact| match &fact.kind {
            EventKind::RetryRefused { attempt, limit } => {
                assert_eq!(*attempt, failed.attempts + 1);
                Some(*limit)
            }
            _ => None,
        })
    };
    let none = RetryBudgetLimits { ratio_percent: 0, min: 0 };
    let broke = CallPolicy { retry_budget: Some(none), ..policy() };
    let budget = RetryLimit::RetryBudget { used: 0, allowed: 0 };
    assert_eq!(limit_of(60, broke.clone(), || status(503)).await, Some(budget));
    let late = |requested| RetryLimit::Deadline { wait_ms: 3_600_000, left_ms: 60_000, requested };
    assert_eq!(limit_of(60, policy(), || limited(3_600_000)).await, Some(late(true)));
    let slow = CallPolicy { backoff: [Duration::from_secs(3_600)].into(), ..policy() };
    assert_eq!(limit_of(60, slow, || status(503)).await, Some(late(false)));
    // No limit is in the way of what would not be retried anyhow.
    assert_eq!(limit_of(60, broke.clone(), || status(404)).await, None);
    assert_eq!(limit_of(60, CallPolicy { max_attempts: 1, ..broke }, || status(503)).await, None);
}

/// Faults 5 to 9 and 12 to 14 as the gateway takes them: whether it asks again, and whether it is a
/// failure of the tool. How each of them comes about is tested over real sockets.
#[tokio::test(start_paused = true)]
async fn faults_05_to_14_classify_failures() {
    use FailureClass::*;
    type Failure = Box<dyn Fn() -> Option<Box<AttemptFailed>> + Send + Sync>;
    let table: [(&str, Failure, bool, bool); 14] = [
        ("5 400", Box::new(|| status(400)), false, false),
        ("5 401", Box::new(|| status(401)), false, false),
        ("5 404", Box::new(|| status(404)), false, false),
        ("3 503", Box::new(|| status(503)), true, true),
        ("6 refused", Box::new(|| fails(Connect)), true, true),
        ("7 no such name", Box::new(|| fails(Resolve)), true, true),
        ("8 certificate", Box::new(|| fails(Tls)), false, true),
        ("9 reset", Box::new(|| fails(Reset)), true, true),
        ("12 no JSON", Box::new(|| fails(BadResponse)), false, true),
        ("14 endless", Box::new(|| fails(TooLarge)), false, true),
        ("denied", Box::new(|| fails(Denied)), false, false),
        ("27 a program", Box::new(|| fails(Tool)), false, true),
        ("11 time-out", Box::new(|| fails(Timeout)), true, true),
        ("1 limited", Box::new(|| status(429)), true, false),
    ];
    for (name, failure, retried, counts) in table {
        let scope = Scope::new();
        let guard = guard(policy(), &scope);
        let tool = Odd::failing(move |_| failure());
        call(&scope, &guard, &tool).await.expect_err(name);
        let attempts = if retried { 2 } else { 1 };
        assert_eq!(tool.asked(), attempts, "{name}");
        assert_eq!(failures(&guard), if counts { attempts } else { 0 }, "{name}");
        at_rest(&guard, &scope);
    }
}

/// What trickles in does not keep an attempt alive: the time-out is for the whole of it.
#[tokio::test(start_paused = true)]
async fn fault_10_timeout_ends_slow_drip() {
    let scope = Scope::new();
    let once = CallPolicy { max_attempts: 1, ..policy() };
    let guard = guard(once, &scope);
    let tool = Odd::new(|_| {
        async {
            loop {
                sleep(Duration::from_secs(1)).await;
            }
        }
        .boxed()
    });
    let since = Instant::now();
    call(&scope, &guard, &tool).await.expect_err("too slow");
    assert_eq!(since.elapsed(), Duration::from_secs(10));
    assert_eq!(failures(&guard), 1);
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_11_silence_times_out_exactly() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let tool = Odd::new(|_| futures::future::pending().boxed());
    let since = Instant::now();
    let failed = call(&scope, &guard, &tool).await.expect_err("never");
    assert_eq!(since.elapsed(), Duration::from_millis(10_000 + 250 + 10_000));
    assert_eq!(failed.reason.to_string(), "tool_error:vendor:timeout");
    assert_eq!(tool.given_up.load(Ordering::SeqCst), 2, "both attempts were really cancelled");
    assert_eq!(failures(&guard), 2);
    at_rest(&guard, &scope);
}

/// Fault 16: after a suspension of a day the countdown of an open breaker is nothing, never negative,
/// and the next call is a probe. Fault 15 has no case of its own here: the gateway reads tokio's clock
/// and no wall clock that could jump. `fault_15_sources_avoid_system_clock`
/// (`tests/internals/gateway/resilience`) checks this in the sources.
#[tokio::test(start_paused = true)]
async fn fault_16_suspension_leaves_countdown_zero() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    guard.override_breaker(BreakerOverride::Trip, Initiator::You);
    advance(Duration::from_secs(24 * 3_600)).await;
    let BreakerView::Open { left, held: false } = guard.snapshot().breaker else {
        panic!("open until someone asks");
    };
    assert_eq!(left, Some(Duration::ZERO));
    call(&scope, &guard, &Odd::failing(|_| None)).await.expect("a probe goes through");
    assert!(matches!(guard.snapshot().breaker, BreakerView::Closed { failures: 0, .. }));
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_17_cancelled_probe_returns_permit() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    guard.override_breaker(BreakerOverride::Trip, Initiator::You);
    advance(Duration::from_secs(30)).await;
    let hangs = Odd::new(|_| futures::future::pending().boxed());
    tokio::select! {
        biased;
        _ = call(&scope, &guard, &hangs) => panic!("it never answers"),
        () = sleep(Duration::from_secs(1)) => {}
    }
    assert_eq!(hangs.given_up.load(Ordering::SeqCst), 1);
    at_rest(&guard, &scope);
    assert_eq!(guard.snapshot().breaker, BreakerView::HalfOpen { out: 0, permits: 1 });
    call(&scope, &guard, &Odd::failing(|_| None)).await.expect("the probe's place is free");
    let cancelled = |kind: &EventKind| {
        matches!(kind, EventKind::CallFailed { reason: StopReason::Cancelled, .. })
    };
    assert!(scope.facts().await.iter().any(|fact| cancelled(&fact.kind)), "the log says so");
}

#[tokio::test(start_paused = true)]
async fn fault_18_cancelled_backoff_stops_retry() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let tool = Odd::failing(|_| status(503));
    tokio::select! {
        biased;
        _ = call(&scope, &guard, &tool) => panic!("it waits"),
        () = sleep(Duration::from_millis(100)) => {}
    }
    sleep(Duration::from_secs(10)).await;
    assert_eq!(tool.asked(), 1);
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_19_contains_tool_panic() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let tool = Odd::new(|_| async { panic!("the tool is broken") }.boxed());
    let failed = call(&scope, &guard, &tool).await.expect_err("it panicked");
    assert_eq!(failed.reason.to_string(), "tool_error:vendor:panic");
    assert!(failed.last.expect("an attempt").text.contains("the tool is broken"));
    assert_eq!((tool.asked(), failures(&guard)), (1, 1));
    call(&scope, &guard, &Odd::failing(|_| None)).await.expect("the guard goes on");
    at_rest(&guard, &scope);
}

/// A reader that never reads, and one that is gone: publishing waits for neither.
#[tokio::test(start_paused = true)]
async fn fault_20_slow_reader_blocks_nothing() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let _slow = scope.bus.reader(crate::log::event::Seq(0));
    drop(scope.bus.reader(crate::log::event::Seq(0)));
    let since = Instant::now();
    for _ in 0..1_000 {
        call(&scope, &guard, &Odd::failing(|_| None)).await.expect("answered");
    }
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert_eq!(scope.bus.len(), 4_000, "nothing was lost");
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_21_refuses_eleventh_call() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let slow = Odd::new(|_| sleep(Duration::from_secs(5)).map(|()| Ok(json!({}))).boxed());
    let ten = futures::future::join_all((0..10).map(|_| call(&scope, &guard, &slow)));
    let eleventh = async {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(guard.snapshot().fill.in_flight, 10);
        let since = Instant::now();
        let refused = call(&scope, &guard, &slow).await.expect_err("full");
        assert_eq!(since.elapsed(), Duration::ZERO);
        assert_eq!(refused.reason.to_string(), "bulkhead_full:vendor");
        assert_eq!(guard.snapshot().fill.in_flight, 10);
    };
    let (answered, ()) = futures::join!(ten, eleventh);
    assert!(answered.iter().all(Result::is_ok));
    assert_eq!((slow.asked(), failures(&guard)), (10, 0));
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_22_late_result_is_stale() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let slow = Odd::new(|_| sleep(Duration::from_secs(5)).map(|()| Ok(json!({}))).boxed());
    let trip = async {
        sleep(Duration::from_secs(1)).await;
        guard.override_breaker(BreakerOverride::Trip, Initiator::You);
    };
    let (answered, ()) = futures::join!(call(&scope, &guard, &slow), trip);
    answered.expect("the answer itself is good");
    assert_eq!(
        guard.snapshot().breaker,
        BreakerView::Open { left: Some(Duration::from_secs(26)), held: false },
        "the opening time stays"
    );
    assert!(scope.kinds().await.contains(&"result.ignored".to_owned()));
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_23_limits_probes_after_cooldown() {
    use crate::scenario::spec::policy::BreakerMode::{HalfOpen, TwoState};
    for (mode, through) in [(HalfOpen, 1), (TwoState, 10)] {
        let scope = Scope::new();
        let breaker = Some(BreakerLimits { mode, ..BreakerLimits::default() });
        let guard = guard(CallPolicy { breaker, ..policy() }, &scope);
        guard.override_breaker(BreakerOverride::Trip, Initiator::You);
        advance(Duration::from_secs(30)).await;
        let slow = Odd::new(|_| sleep(Duration::from_secs(5)).map(|()| Ok(json!({}))).boxed());
        let all = (0..10).map(|_| call(&scope, &guard, &slow));
        let answered = futures::future::join_all(all).await;
        assert_eq!(answered.iter().filter(|it| it.is_ok()).count(), through, "{mode:?}");
        assert_eq!(slow.asked() as usize, through, "{mode:?}");
        at_rest(&guard, &scope);
    }
}

#[tokio::test(start_paused = true)]
async fn fault_24_shrunk_bulkhead_refuses_calls() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    let slow = Odd::new(|_| sleep(Duration::from_secs(5)).map(|()| Ok(json!({}))).boxed());
    let late = Odd::failing(|_| None);
    let eight = futures::future::join_all((0..8).map(|nth| {
        let (scope, guard, slow) = (&scope, &guard, &slow);
        async move {
            sleep(Duration::from_millis(nth * 100)).await;
            call(scope, guard, slow).await
        }
    }));
    let shrink = async {
        sleep(Duration::from_secs(2)).await;
        guard.change(LimitChange::MaxInFlight(5), Initiator::You);
        assert_eq!(guard.snapshot().fill.in_flight, 8);
        call(&scope, &guard, &late).await.expect_err("8 of 5");
        sleep(Duration::from_millis(3_350)).await;
        assert_eq!(guard.snapshot().fill.in_flight, 4, "four have come back by 5.35 s");
        call(&scope, &guard, &late).await.expect("4 of 5");
    };
    futures::join!(eight, shrink);
    at_rest(&guard, &scope);
}

#[tokio::test(start_paused = true)]
async fn fault_25_deadline_returns_cached_value() {
    let scope = Scope::with(Duration::from_millis(200));
    let safe_mode = SafeMode {
        enabled: true,
        allow_partial: true,
        cache_ttl: Some(Duration::from_secs(300)),
        fallback: None,
    };
    let guard = guard(CallPolicy { safe_mode, ..policy() }, &scope);
    call(&scope, &guard, &Odd::failing(|_| None)).await.expect("a good value");
    advance(Duration::from_millis(100)).await;
    let bad = Odd::failing(|_| status(503));
    let since = Instant::now();
    let stands_in = call(&scope, &guard, &bad).await.expect("its last good value");
    assert_eq!(since.elapsed(), Duration::ZERO, "250 ms are more than what is left");
    assert_eq!(stands_in.fallback, Some(FallbackKind::Cached { age_ms: 100 }));
    assert_eq!(stands_in.reply.result.as_deref(), Some(&json!({ "good": true })));
    assert_eq!(failures(&guard), 1, "what stands in is no success");
    at_rest(&guard, &scope);
}

/// An open breaker, a last good value that is too old, a declared one, and none at all.
#[tokio::test(start_paused = true)]
async fn safe_mode_falls_back_in_order() {
    let safe = |fallback: Option<serde_json::Value>| SafeMode {
        enabled: true,
        allow_partial: true,
        cache_ttl: Some(Duration::from_secs(60)),
        fallback: fallback.map(Into::into),
    };
    let with = |fallback| CallPolicy { safe_mode: safe(fallback), ..policy() };
    let scope = Scope::new();
    let guard = guard(with(Some(json!({ "declared": true }))), &scope);
    call(&scope, &guard, &Odd::failing(|_| None)).await.expect("a good value");
    guard.override_breaker(BreakerOverride::Hold, Initiator::You);
    let bad = Odd::failing(|_| status(503));
    let young = call(&scope, &guard, &bad).await.expect("cached");
    assert_eq!(young.fallback, Some(FallbackKind::Cached { age_ms: 0 }));
    advance(Duration::from_secs(61)).await;
    let old = call(&scope, &guard, &bad).await.expect("declared");
    assert_eq!(old.fallback, Some(FallbackKind::Default));
    assert_eq!(bad.asked(), 0, "the tool was not asked");
    let bare = gateway_call::guard(with(None), &scope);
    bare.override_breaker(BreakerOverride::Hold, Initiator::You);
    let left_out = call(&scope, &bare, &bad).await.expect_err("nothing");
    assert!(left_out.unavailable);
    assert_eq!(left_out.reason.to_string(), "circuit_open:vendor");
    // A wrong request is reported as such; no other value hides it.
    bare.override_breaker(BreakerOverride::Reset, Initiator::You);
    let wrong = call(&scope, &bare, &Odd::failing(|_| status(404))).await.expect_err("404");
    assert!(!wrong.unavailable);
}

/// At most a tenth of the attempts of the last minute may be repeats, and never fewer than three.
#[tokio::test(start_paused = true)]
async fn retry_budget_limits_all_calls() {
    let scope = Scope::new();
    let breaker = None;
    let retry_budget = Some(RetryBudgetLimits::default());
    let guard = guard(CallPolicy { breaker, retry_budget, ..policy() }, &scope);
    let bad = Odd::failing(|_| status(503));
    for _ in 0..20 {
        call(&scope, &guard, &bad).await.expect_err("503");
    }
    assert_eq!(bad.asked(), 23, "three repeats");
    advance(Duration::from_secs(61)).await;
    call(&scope, &guard, &bad).await.expect_err("503");
    assert_eq!(bad.asked(), 25, "the minute is over");
    at_rest(&guard, &scope);
}

/// The breaker is checked again for a queued call, since it may have opened meanwhile.
#[tokio::test(start_paused = true)]
async fn open_breaker_stops_queued_call() {
    let scope = Scope::new();
    let bulkhead = Some(BulkheadLimits { max_in_flight: 1, max_wait: None });
    let guard = guard(CallPolicy { bulkhead, ..policy() }, &scope);
    let slow = Odd::new(|_| sleep(Duration::from_secs(5)).map(|()| Ok(json!({}))).boxed());
    let next = Odd::failing(|_| None);
    let second = async {
        sleep(Duration::from_secs(1)).await;
        call(&scope, &guard, &next).await
    };
    let hold = async {
        sleep(Duration::from_secs(2)).await;
        guard.override_breaker(BreakerOverride::Hold, Initiator::You);
    };
    let (first, second, ()) = futures::join!(call(&scope, &guard, &slow), second, hold);
    first.expect("it was out before");
    assert_eq!(second.expect_err("held").reason.to_string(), "circuit_open:vendor");
    assert_eq!(next.asked(), 0);
    at_rest(&guard, &scope);
}

/// Who does not wait as long as a tool asks keeps the others from asking before then.
#[tokio::test(start_paused = true)]
async fn fault_02_last_attempt_gates_tool() {
    let once = CallPolicy { max_attempts: 1, ..policy() };
    let scope = Scope::new();
    let guard = guard(once, &scope);
    let tool = Odd::failing(|_| limited(5_000));
    call(&scope, &guard, &tool).await.expect_err("limited, and no attempt is left");
    let next = call(&scope, &guard, &tool).await.expect_err("it asked to be left alone");
    assert_eq!((next.reason.to_string().as_str(), tool.asked()), ("circuit_open:vendor", 1));
    advance(Duration::from_secs(5)).await;
    call(&scope, &guard, &Odd::failing(|_| None)).await.expect("the time is over");
    // A wrong request has no effect on the next call.
    let wrong = Odd::failing(|_| {
        let failed = *AttemptFailed::from_status(404, "no such thing");
        Some(Box::new(AttemptFailed { retry_after_ms: Some(3_600_000), ..failed }))
    });
    call(&scope, &guard, &wrong).await.expect_err("404");
    call(&scope, &guard, &Odd::failing(|_| None)).await.expect("not gated");
    at_rest(&guard, &scope);
}

/// Every change of the time when a breaker lets a call through is reported, not only its state.
#[tokio::test(start_paused = true)]
async fn every_new_opening_time_is_told() {
    let scope = Scope::new();
    let guard = guard(policy(), &scope);
    guard.override_breaker(BreakerOverride::Trip, Initiator::You);
    advance(Duration::from_secs(20)).await;
    guard.override_breaker(BreakerOverride::Trip, Initiator::You);
    guard.change(LimitChange::OpenForMs(300_000), Initiator::You);
    let told: Vec<Option<u64>> = scope
        .facts()
        .await
        .iter()
        .filter_map(|fact| match &fact.kind {
            EventKind::BreakerChanged { to: BreakerStage::Open, open_for_ms, .. } => {
                Some(*open_for_ms)
            }
            _ => None,
        })
        .collect();
    assert_eq!(told, [Some(30_000), Some(30_000), Some(300_000)]);
}

/// A tool that has no breaker gets none by hand, and amounts stay within bounds.
#[tokio::test(start_paused = true)]
async fn changes_stay_within_policy() {
    let scope = Scope::new();
    let guard = guard(CallPolicy { breaker: None, ..policy() }, &scope);
    for hand in [BreakerOverride::Reset, BreakerOverride::Trip, BreakerOverride::Hold] {
        guard.override_breaker(hand, Initiator::You);
        assert_eq!(guard.snapshot().breaker, BreakerView::Disabled);
    }
    guard.change(LimitChange::FailThreshold(1), Initiator::You);
    guard.change(LimitChange::MaxAttempts(u32::MAX), Initiator::You);
    assert_eq!((guard.limits().breaker, guard.limits().max_attempts), (None, 20));
    assert!(!scope.kinds().await.contains(&"breaker.changed".to_owned()));
}

/// Two attempts of which one stood in line are two that asked, and none was turned away.
#[tokio::test(start_paused = true)]
async fn queued_call_counts_once() {
    let scope = Scope::new();
    let bulkhead = Some(BulkheadLimits { max_in_flight: 1, max_wait: None });
    let guard = guard(CallPolicy { bulkhead, ..policy() }, &scope);
    let slow = Odd::new(|_| sleep(Duration::from_secs(1)).map(|()| Ok(json!({}))).boxed());
    let both = (0..2).map(|_| call(&scope, &guard, &slow));
    assert!(futures::future::join_all(both).await.iter().all(Result::is_ok));
    let counts = guard.snapshot().counts;
    assert_eq!((counts.asked, counts.admitted, counts.rejected), (2, 2, 0));
}
