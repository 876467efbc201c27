//! The projection of the gateway: what a log says of tools, breakers and alerts, folded from facts
//! written by hand.

use std::sync::Arc;
use std::time::Duration;

use crate::log::event::{
    AttemptFailed, BreakerCause, BreakerStage, CallStarted, Elapsed, Event, EventKind,
    FailureClass, FallbackKind, Initiator, Prompt, Purpose, Reply, RunStarted, Seq, SpanId,
    StopReason, ToolHead, ToolLimits, World,
};
use crate::log::facts::{PatternPlan, ResiliencePlan};
use crate::log::world::alerts::AlertKind;
use crate::log::world::tool_row::CallMark;
use crate::scenario::spec::AlertLimits;
use crate::scenario::spec::policy::{
    BreakerCounts, BreakerLimits, BreakerMode, BulkheadLimits, RetryBudgetLimits,
};
use crate::support::facts::head::started;
use serde_json::json;

fn limits() -> ToolLimits {
    ToolLimits {
        timeout_ms: 1_000,
        max_attempts: 2,
        backoff_ms: vec![250, 750],
        jitter: true,
        breaker: Some(BreakerLimits {
            fail_threshold: 5,
            open_for: Duration::from_secs(30),
            probe_permits: 1,
            mode: BreakerMode::HalfOpen,
            counts: BreakerCounts::Attempts,
            window: None,
        }),
        bulkhead: Some(BulkheadLimits { max_in_flight: 10, max_wait: Some(Duration::ZERO) }),
        rate: None,
        retry_budget: Some(RetryBudgetLimits::default()),
        safe_mode: None,
    }
}

/// A log that is written fact by fact.
struct Log {
    world: World,
    seq: u64,
    spans: u32,
    ms: u64,
}

impl Log {
    fn new(alerts: AlertLimits) -> Self {
        Self::with_limits(alerts, limits())
    }

    fn with_limits(alerts: AlertLimits, limits: ToolLimits) -> Self {
        let head = |name: &str, kind: &str| ToolHead {
            name: name.into(),
            kind: kind.to_owned(),
            shared: false,
            limits: limits.clone(),
            faults: Vec::new(),
        };
        let mut log = Self { world: World::new(), seq: 0, spans: 0, ms: 0 };
        let plan = ResiliencePlan {
            agents: 2,
            turns: 1,
            steps: vec!["vendor".into()],
            pool: 1,
            guarded: true,
            naive_attempts: 1,
            max_ms: 60_000,
        };
        let started = RunStarted {
            tools: vec![head("llm", "model"), head("vendor", "fixture")],
            alerts,
            ..started("r-0001", PatternPlan::Resilience(Arc::new(plan)))
        };
        log.put(SpanId::RUN, EventKind::RunStarted(Arc::new(started)));
        log
    }

    fn put(&mut self, span: SpanId, kind: EventKind) {
        let at = Elapsed::from_duration(Duration::from_millis(self.ms));
        self.world.apply(&Event { seq: Seq(self.seq), at, span, kind });
        self.seq += 1;
    }

    fn span(&mut self) -> SpanId {
        self.spans += 1;
        SpanId(self.spans)
    }

    fn call(&mut self, agent: u32, again: u32) -> SpanId {
        let span = self.span();
        let started = CallStarted {
            parent: SpanId::RUN,
            tool: "vendor".into(),
            purpose: Purpose::AgentStep { agent, turn: 1, step: 0, repeat: again },
            prompt: Prompt::default(),
            args: Some(Arc::new(json!({ "agent": agent }))),
            model: None,
            repeat: 0,
        };
        self.put(span, EventKind::CallStarted(Box::new(started)));
        span
    }

    fn attempt(&mut self, call: SpanId, attempt: u32) -> SpanId {
        let span = self.span();
        self.put(
            span,
            EventKind::AttemptStarted {
                parent: call,
                attempt,
                timeout_ms: 1_000,
                waited_ms: 0,
                probe: false,
            },
        );
        span
    }

    fn answer(&mut self, attempt: SpanId, call: SpanId) {
        let reply = Reply::from_tool_result(Arc::new(json!({ "ok": true })));
        self.put(attempt, EventKind::AttemptAnswered(Arc::new(reply)));
        self.put(call, EventKind::CallAnswered { attempts: 1 });
    }

    /// A call that is answered after so many milliseconds.
    fn answered_call(&mut self, ms: u64) {
        let call = self.call(1, 0);
        let attempt = self.attempt(call, 1);
        self.ms += ms;
        self.answer(attempt, call);
    }

    fn fail_call(&mut self, call: SpanId) {
        let reason = StopReason::ToolError("vendor".into(), FailureClass::Status);
        self.put(call, EventKind::CallFailed { attempts: 1, reason });
    }

    fn fail(&mut self, attempt: SpanId, failed: Box<AttemptFailed>) {
        self.put(attempt, EventKind::AttemptFailed(failed));
    }

    fn vendor(&self) -> &crate::log::world::tool_row::ToolRow {
        self.world.tools.get("vendor").expect("the vendor")
    }
}

#[test]
fn counts_requests_per_call() {
    let mut log = Log::new(AlertLimits::default());
    // An agent asks; the client retries, then the wrapper, and then the agent.
    let first = log.call(1, 0);
    for attempt in 1..=2 {
        let span = log.attempt(first, attempt);
        log.put(span, EventKind::ClientRetried { request: 2, cause: FailureClass::Status });
        log.fail(span, AttemptFailed::from_status(503, "down"));
    }
    let reason = StopReason::ToolError("vendor".into(), FailureClass::Status);
    log.put(first, EventKind::CallFailed { attempts: 2, reason });
    let second = log.call(1, 1);
    let span = log.attempt(second, 1);
    log.answer(span, second);
    let row = log.vendor();
    assert_eq!((row.tally.calls, row.tally.repeats, row.tally.requests()), (1, 1, 5));
    assert_eq!(row.tally.amplification(), Some(5.0));
    assert_eq!(log.world.tools.amplification(), Some(5.0), "the model is not among the tools");
    assert_eq!(row.marks, [CallMark::Bad, CallMark::Bad, CallMark::Good]);
    assert_eq!((row.in_flight, row.peak, row.failures), (0, 1, 0));
    assert_eq!(row.tally.error_rate(), Some(2.0 / 3.0));
}

#[test]
fn refused_call_keeps_last_error() {
    let mut log = Log::new(AlertLimits::default());
    let refuse = |log: &mut Log| {
        let call = log.call(1, 0);
        let reason = StopReason::from("worker_bad_args:vendor");
        log.put(call, EventKind::CallFailed { attempts: 0, reason });
        log.vendor().last_failure.as_deref().expect("a failure").to_owned()
    };
    let refused = refuse(&mut log);
    assert_eq!(refused, StopReason::from("worker_bad_args:vendor").phrase());
    let call = log.call(1, 0);
    let attempt = log.attempt(call, 1);
    log.fail(attempt, AttemptFailed::from_status(503, "down"));
    let failed = log.vendor().last_failure.as_deref().expect("a failure").to_owned();
    assert!(failed != refused && refuse(&mut log) == failed, "{failed}");
}

#[test]
fn tool_history_omits_pauses() {
    let mut log = Log::new(AlertLimits::default());
    log.answered_call(100);
    log.put(SpanId::RUN, EventKind::Paused { at: Vec::new() });
    log.ms += 20 * 3_600_000;
    log.put(SpanId::RUN, EventKind::Resumed { by: Initiator::You, paused_ms: 72_000_000 });
    for _ in 0..9 {
        log.answered_call(100);
    }
    let at = |ms: u64| Elapsed(ms * 1_000);
    let tools = &log.vendor().timeline;
    let first = tools.between(at(0), at(250), at(1_000));
    assert_eq!(first.request_rate(), 12.0, "three in the first quarter of a second");
    assert_eq!(tools.between(at(0), at(1_000), at(1_000)).request_rate(), 10.0);
    let p95 = first.p95().map(|it| it.as_millis());
    assert_eq!(p95, Some(100), "and no call lasted as long as the pause");
}

#[test]
fn marks_separate_slow_failed_and_uncounted() {
    let mut log = Log::new(AlertLimits::default());
    for (ms, failed, expected) in [
        (500, None, CallMark::Good),
        (501, None, CallMark::Slow),
        (10, Some(AttemptFailed::from_status(500, "")), CallMark::Bad),
        (10, Some(AttemptFailed::from_status(429, "")), CallMark::NotCounted),
        (10, Some(AttemptFailed::from_status(404, "")), CallMark::NotCounted),
        (10, Some(AttemptFailed::new(FailureClass::Cancelled, "")), CallMark::NotCounted),
    ] {
        let call = log.call(1, 0);
        let attempt = log.attempt(call, 1);
        log.ms += ms;
        match failed {
            None => log.answer(attempt, call),
            Some(failed) => {
                log.fail(attempt, failed);
                let reason = StopReason::Cancelled;
                log.put(call, EventKind::CallFailed { attempts: 1, reason });
            }
        }
        assert_eq!(log.vendor().marks.back(), Some(&expected));
    }
    let call = log.call(1, 0);
    let reason = StopReason::CircuitOpen("vendor".into());
    log.put(call, EventKind::AttemptRefused { attempt: 1, reason, retry_in_ms: Some(10) });
    assert_eq!(log.vendor().marks.back(), Some(&CallMark::Refused));
    for _ in 0..200 {
        let reason = StopReason::BulkheadFull("vendor".into());
        log.put(call, EventKind::AttemptRefused { attempt: 1, reason, retry_in_ms: None });
    }
    assert_eq!(log.vendor().marks.len(), crate::log::world::tool_row::MARKS);
    assert_eq!((log.vendor().tally.circuit_open, log.vendor().tally.bulkhead_full), (1, 200));
}

/// The calls and failures in the window of the vendor's breaker.
fn window(log: &Log) -> (u32, u32) {
    let window = log.vendor().window.as_ref().expect("a window");
    let counts = window.counts(Elapsed::from_duration(Duration::from_millis(log.ms)));
    (counts.calls, counts.failures)
}

fn log_with_window(counts: BreakerCounts) -> Log {
    let mut limits = limits();
    if let Some(breaker) = &mut limits.breaker {
        breaker.counts = counts;
        breaker.window = Some(crate::support::facts::tools::WINDOW);
    }
    Log::with_limits(AlertLimits::default(), limits)
}

fn moves(to: BreakerStage, cause: BreakerCause) -> EventKind {
    let (tool, open_for_ms) = ("vendor".into(), None);
    EventKind::BreakerChanged { tool, to, cause, open_for_ms, by: None, counted: None }
}

/// The fold counts the calls that the breaker counts: not those of before a change of its state, and
/// not while only `Retry-After` keeps it from being closed are they forgotten.
#[test]
fn a_window_follows_its_breaker() {
    let mut log = log_with_window(BreakerCounts::Attempts);
    let fail = |log: &mut Log| {
        let call = log.call(1, 0);
        let attempt = log.attempt(call, 1);
        log.fail(attempt, AttemptFailed::from_status(500, ""));
        log.fail_call(call);
    };
    log.answered_call(10);
    fail(&mut log);
    assert_eq!(window(&log), (2, 1));
    log.put(SpanId::RUN, moves(BreakerStage::Open, BreakerCause::RetryAfter));
    log.put(SpanId::RUN, moves(BreakerStage::Closed, BreakerCause::CooldownOver));
    fail(&mut log);
    assert_eq!(window(&log), (3, 2), "the tool asked to wait; the window continues");
    let late_call = log.call(2, 0);
    let late = log.attempt(late_call, 1);
    log.put(SpanId::RUN, moves(BreakerStage::Open, BreakerCause::FailureRate));
    assert_eq!(window(&log), (0, 0));
    assert_eq!(log.vendor().window.as_ref().map(|it| it.marks().len()), Some(3), "what opened it");
    log.put(SpanId::RUN, moves(BreakerStage::HalfOpen, BreakerCause::CooldownOver));
    log.answered_call(10);
    assert_eq!(log.vendor().window.as_ref().map(|it| it.good_probes()), Some(1));
    log.put(SpanId::RUN, moves(BreakerStage::Closed, BreakerCause::ProbeAnswered));
    log.answer(late, late_call);
    assert_eq!(window(&log), (0, 0), "a result of before is too late");
    log.answered_call(10);
    assert_eq!(window(&log), (1, 0));
}

#[test]
fn call_window_counts_last_attempts() {
    let mut log = log_with_window(BreakerCounts::Calls);
    let call = log.call(1, 0);
    for number in 1..=2 {
        let attempt = log.attempt(call, number);
        log.fail(attempt, AttemptFailed::from_status(500, ""));
        assert_eq!(window(&log), (0, 0), "another attempt may follow");
        if number == 1 {
            let cause = FailureClass::Status;
            log.put(
                call,
                EventKind::CallRetried { attempt: 2, wait_ms: 0, cause, status: Some(500) },
            );
        }
    }
    log.fail_call(call);
    assert_eq!(window(&log), (1, 1));
}

#[test]
fn countdown_never_goes_negative() {
    let mut log = Log::new(AlertLimits::default());
    log.ms = 1_000;
    let changed = |to, open_for_ms| EventKind::BreakerChanged {
        tool: "vendor".into(),
        to,
        cause: BreakerCause::Failures,
        open_for_ms,
        by: None,
        counted: None,
    };
    log.put(SpanId::RUN, changed(BreakerStage::Open, Some(30_000)));
    let left = |ms| log.vendor().retry_in(Elapsed::from_duration(Duration::from_millis(ms)));
    assert_eq!(left(1_000), Some(Duration::from_secs(30)));
    assert_eq!(left(30_999), Some(Duration::from_millis(1)));
    assert_eq!(left(999_000), Some(Duration::ZERO));
    log.put(SpanId::RUN, changed(BreakerStage::HalfOpen, None));
    assert_eq!(log.vendor().retry_in(Elapsed(0)), None);
    assert_eq!(log.vendor().history.len(), 2);
}

#[test]
fn alerts_follow_thresholds() {
    let mut log = Log::new(AlertLimits {
        breaker_opens_per_minute: Some(1),
        error_rate: Some(0.5),
        p95_ms: Some(400),
    });
    let attempt = |log: &mut Log, good: bool, took: u64| {
        let call = log.call(1, 0);
        let span = log.attempt(call, 1);
        log.ms += took;
        if good {
            log.answer(span, call);
        } else {
            log.fail(span, AttemptFailed::from_status(500, ""));
            let reason = StopReason::ToolError("vendor".into(), FailureClass::Status);
            log.put(call, EventKind::CallFailed { attempts: 1, reason });
        }
    };
    for _ in 0..9 {
        attempt(&mut log, false, 10);
    }
    assert!(log.world.alerts.all().is_empty(), "nine attempts are too few to say");
    attempt(&mut log, false, 10);
    let raised = log.world.alerts.all();
    assert_eq!(raised.len(), 1);
    assert_eq!(raised[0].what, AlertKind::ErrorRate(1.0));
    for _ in 0..10 {
        attempt(&mut log, true, 10);
    }
    assert_eq!(log.world.alerts.active().count(), 0, "half of them, and no more than half");
    for _ in 0..16 {
        attempt(&mut log, true, 500);
    }
    let now: Vec<_> = log.world.alerts.active().map(|alert| alert.what.word()).collect();
    assert_eq!(now, ["p95_ms"]);
    for nth in 0..2 {
        log.ms += 1_000;
        log.put(
            SpanId::RUN,
            EventKind::BreakerChanged {
                tool: "vendor".into(),
                to: BreakerStage::Open,
                cause: BreakerCause::ProbeFailed,
                open_for_ms: Some(1),
                by: None,
                counted: None,
            },
        );
        assert_eq!(log.world.alerts.active().count(), 1 + nth, "one opening is allowed");
    }
}

fn opens(why: BreakerCause) -> EventKind {
    let (tool, to) = ("vendor".into(), BreakerStage::Open);
    EventKind::BreakerChanged {
        tool,
        to,
        cause: why,
        open_for_ms: Some(1),
        by: None,
        counted: None,
    }
}

/// A fact that changes nothing about breakers and attempts.
fn beside() -> EventKind {
    EventKind::Warning { text: "beside".to_owned() }
}

#[test]
fn opening_alert_ends_after_minute() {
    let limits = AlertLimits { breaker_opens_per_minute: Some(1), ..AlertLimits::default() };
    let mut log = Log::new(limits);
    for why in [BreakerCause::Failures, BreakerCause::ProbeFailed] {
        log.ms += 1_000;
        log.put(SpanId::RUN, opens(why));
    }
    assert_eq!(log.world.alerts.active().count(), 1);
    log.ms = 61_000;
    log.put(SpanId::RUN, beside());
    assert_eq!(log.world.alerts.active().count(), 1, "the first is just a minute old");
    log.ms = 61_001;
    log.put(SpanId::RUN, beside());
    assert_eq!(log.world.alerts.active().count(), 0);
    assert_eq!(
        log.world.alerts.all()[0].ended,
        Some(Elapsed::from_duration(Duration::from_millis(61_001)))
    );
    log.put(SpanId::RUN, opens(BreakerCause::Failures));
    assert_eq!(log.world.alerts.all().len(), 2, "two within a minute again");
}

#[test]
fn only_failures_raise_opening_alert() {
    let limits = AlertLimits { breaker_opens_per_minute: Some(0), ..AlertLimits::default() };
    let mut log = Log::new(limits);
    for why in [BreakerCause::Manual, BreakerCause::RetryAfter, BreakerCause::Manual] {
        log.put(SpanId::RUN, opens(why));
    }
    assert_eq!(log.vendor().recent_openings(Elapsed(0)), 0);
    assert!(log.world.alerts.all().is_empty());
    log.put(SpanId::RUN, opens(BreakerCause::Failures));
    assert_eq!(log.world.alerts.all()[0].what, AlertKind::BreakerOpens(1));
}

#[test]
fn error_alert_ends_after_idle_minute() {
    let mut log = Log::new(AlertLimits { error_rate: Some(0.5), ..AlertLimits::default() });
    let call = log.call(1, 0);
    for attempt in 1..=10 {
        let span = log.attempt(call, attempt);
        log.fail(span, AttemptFailed::from_status(500, ""));
    }
    assert_eq!(log.world.alerts.active().count(), 1);
    log.ms = 59_000;
    log.put(SpanId::RUN, beside());
    assert_eq!(log.world.alerts.active().count(), 1);
    log.ms = 62_000;
    log.put(SpanId::RUN, beside());
    assert_eq!(log.world.alerts.active().count(), 0);
}

#[test]
fn counts_alert_past_cap_once() {
    let limits = AlertLimits { breaker_opens_per_minute: Some(1), ..AlertLimits::default() };
    let mut log = Log::new(limits);
    for _ in 0..258 {
        log.ms += 120_000;
        for _ in 0..4 {
            log.put(SpanId::RUN, opens(BreakerCause::ProbeFailed));
        }
    }
    assert_eq!((log.world.alerts.all().len(), log.world.alerts.not_kept()), (256, 2));
}

#[test]
fn counts_calls_during_backoff() {
    let mut log = Log::new(AlertLimits::default());
    let waits = |log: &mut Log| {
        let call = log.call(1, 0);
        let span = log.attempt(call, 1);
        log.fail(span, AttemptFailed::from_status(503, "down"));
        let (after, status) = (FailureClass::Status, Some(503));
        log.put(call, EventKind::CallRetried { attempt: 2, wait_ms: 250, cause: after, status });
        call
    };
    let five: Vec<SpanId> = (0..5).map(|_| waits(&mut log)).collect();
    let [cancelled, started, refused, degraded, failed] = five[..] else { panic!("five") };
    assert_eq!(log.world.tally.retrying, 5);
    log.put(cancelled, EventKind::CallFailed { attempts: 1, reason: StopReason::Cancelled });
    assert_eq!(log.world.tally.retrying, 4);
    log.attempt(started, 2);
    assert_eq!(log.world.tally.retrying, 3);
    let reason = || StopReason::CircuitOpen("vendor".into());
    let kind = EventKind::AttemptRefused { attempt: 2, reason: reason(), retry_in_ms: None };
    log.put(refused, kind);
    log.put(refused, EventKind::CallFailed { attempts: 2, reason: reason() });
    assert_eq!(log.world.tally.retrying, 2, "once, though it was refused and failed");
    let by = FallbackKind::Omitted;
    log.put(degraded, EventKind::CallDegraded { attempts: 1, reason: reason(), by, value: None });
    log.put(failed, EventKind::CallFailed { attempts: 1, reason: reason() });
    assert_eq!(log.world.tally.retrying, 0);
    let tally = log.world.tally;
    assert_eq!((tally.degraded, tally.omitted), (1, 1), "it has no fallback value");
    // A file may say anything: a call that is over waits for nothing.
    let (after, status) = (FailureClass::Status, None);
    log.put(failed, EventKind::CallRetried { attempt: 2, wait_ms: 1, cause: after, status });
    assert_eq!(log.world.tally.retrying, 0);
}

#[test]
fn counts_slots_in_use() {
    let mut log = Log::new(AlertLimits::default());
    let (first, second) = (log.call(1, 0), log.call(2, 0));
    log.put(second, EventKind::CallQueued);
    let storm = log.world.resilience().expect("agents");
    assert_eq!((storm.in_use, storm.waiting, storm.peak), (1, 1, 1));
    assert!(storm.agents[1].waits_for_slot);
    let attempt = log.attempt(first, 1);
    log.answer(attempt, first);
    log.put(second, EventKind::CallAdmitted { waited_ms: 3 });
    let storm = log.world.resilience().expect("agents");
    assert_eq!((storm.in_use, storm.waiting, storm.peak_waiting), (1, 0, 1));
    log.put(second, EventKind::CallFailed { attempts: 1, reason: StopReason::Cancelled });
    let storm = log.world.resilience().expect("agents");
    assert_eq!((storm.in_use, storm.answered, storm.failed), (0, 1, 0));
}
