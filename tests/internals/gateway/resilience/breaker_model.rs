//! Random lives of a breaker against two references: for half-open, with and without a window, one
//! that keeps the history of each state and counts in it anew every time, for the source's mode the
//! source's own few lines.

use std::collections::HashSet;
use std::time::Duration;

use crate::gateway::breaker::{
    AttemptVerdict, Breaker, BreakerRefusal, BreakerView, Recorded, RefusalReason, Ticket,
};
use crate::log::event::{BreakerCause, WindowCounts};
use crate::scenario::spec::policy::{BreakerLimits, BreakerMode, Rate, WindowKind, WindowLimits};
use proptest::prelude::*;
use tokio::time::Instant;

use super::{STEPS, config};

/// What can happen to a breaker.
#[derive(Clone, Debug)]
enum Op {
    Allow,
    /// The result of one of the attempts that are out.
    Result(prop::sample::Index, AttemptVerdict),
    Step(u64),
    Hand(Hand),
    Gate(u64),
    Limits {
        fail_threshold: u32,
        open_ms: u64,
        probe_permits: u32,
        window: WindowLimits,
    },
}

#[derive(Clone, Copy, Debug)]
enum Hand {
    Trip,
    Hold,
    Disable,
    Reset,
}

fn op() -> impl Strategy<Value = Op> {
    let verdict = prop_oneof![
        2 => Just(AttemptVerdict::Success),
        1 => Just(AttemptVerdict::SlowSuccess),
        4 => Just(AttemptVerdict::Failure),
        1 => Just(AttemptVerdict::SlowFailure),
        1 => Just(AttemptVerdict::Neither),
    ];
    let hand = prop_oneof![
        2 => Just(Hand::Trip),
        1 => Just(Hand::Hold),
        1 => Just(Hand::Disable),
        3 => Just(Hand::Reset),
    ];
    prop_oneof![
        40 => Just(Op::Allow),
        30 => (any::<prop::sample::Index>(), verdict).prop_map(|(at, said)| Op::Result(at, said)),
        15 => prop_oneof![0..400_u64, Just(1000), 0..10_000_u64, Just(7_200_000)].prop_map(Op::Step),
        3 => hand.prop_map(Op::Hand),
        2 => (0..3000_u64).prop_map(Op::Gate),
        4 => (0..7_u32, prop_oneof![Just(1000_u64), 0..4000_u64], 0..4_u32, window()).prop_map(
            |(fail_threshold, open_ms, probe_permits, window)| {
                Op::Limits { fail_threshold, open_ms, probe_permits, window }
            }
        ),
    ]
}

/// The breaker has its own kind, which this value does not change.
fn window() -> impl Strategy<Value = WindowLimits> {
    let rate = || (1..=20_u32).prop_map(|of| Rate::from_share(f64::from(of) / 20.0));
    (1..12_u32, 1..8_u32, rate(), prop::option::of(Just(500)), rate()).prop_map(
        |(size, min_calls, failure_rate, slow_call_ms, slow_rate)| WindowLimits {
            kind: WindowKind::Count,
            size,
            min_calls,
            failure_rate,
            slow_call_ms,
            slow_rate,
        },
    )
}

/// An attempt by its number.
type Attempt = usize;

trait Reference {
    fn set_limits(&mut self, limits: BreakerLimits);
    /// What the state, the gate aside, says to an attempt; `None` lets it through.
    fn refusal(&self, now: Instant) -> Option<(RefusalReason, Option<Duration>)>;
    /// The attempt was let through.
    fn admit(&mut self, attempt: Attempt, now: Instant);
    fn record(&mut self, attempt: Attempt, verdict: AttemptVerdict, now: Instant) -> Recorded;
    fn hand(&mut self, hand: Hand, now: Instant);
    fn view(&self, now: Instant) -> BreakerView;
    /// What the window has, and what opened the breaker.
    fn window(&self, _now: Instant) -> (Option<WindowCounts>, Option<BreakerCause>) {
        (None, None)
    }
}

fn left(since: Instant, limits: &BreakerLimits, now: Instant) -> Duration {
    limits.open_for.saturating_sub(now - since)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Closed,
    Open,
    Held,
    HalfOpen,
    Disabled,
}

/// The time that one state lasted, with all that happened in it.
struct Period {
    kind: Kind,
    since: Instant,
    admitted: Vec<Attempt>,
    verdicts: Vec<(AttemptVerdict, Instant)>,
    /// Telling verdicts that a smaller window has left out already.
    forgotten: usize,
    /// Why the window opened the breaker for this period.
    opened_by: Option<BreakerCause>,
}

impl Period {
    /// The verdicts that say something, with their times.
    fn telling(&self) -> Vec<(AttemptVerdict, Instant)> {
        let telling = self.verdicts.iter().filter(|(said, _)| said.is_failure().is_some());
        telling.copied().collect()
    }

    /// How many of them are no longer in the window.
    fn outside(&self, window: &WindowLimits, now: Instant) -> usize {
        let telling = self.telling();
        let outside = match window.kind {
            WindowKind::Count => telling.len().saturating_sub(window.size as usize),
            WindowKind::Time => {
                let second = |at: Instant| (at - telling[0].1).as_secs();
                let old = |at: &Instant| second(*at) + u64::from(window.size) <= second(now);
                telling.iter().filter(|(_, at)| old(at)).count()
            }
        };
        outside.max(self.forgotten)
    }

    fn counts(&self, window: &WindowLimits, now: Instant) -> WindowCounts {
        let inside = &self.telling()[self.outside(window, now)..];
        let count = |is: fn(AttemptVerdict) -> bool| {
            inside.iter().filter(|(said, _)| is(*said)).count() as u32
        };
        WindowCounts {
            calls: count(|_| true),
            failures: count(|said| said.is_failure() == Some(true)),
            slow: count(AttemptVerdict::is_slow),
        }
    }
}

struct History {
    limits: BreakerLimits,
    periods: Vec<Period>,
}

impl History {
    fn new(limits: BreakerLimits, now: Instant) -> Self {
        let mut history = Self { limits, periods: Vec::new() };
        history.begin(Kind::Closed, now);
        history
    }

    fn begin(&mut self, kind: Kind, since: Instant) {
        self.periods.push(Period {
            kind,
            since,
            admitted: Vec::new(),
            verdicts: Vec::new(),
            forgotten: 0,
            opened_by: None,
        });
    }

    fn last(&self) -> &Period {
        self.periods.last().expect("a period")
    }

    fn run_of_failures(&self) -> u32 {
        if self.limits.window.is_some() {
            return 0;
        }
        let telling = self.last().telling();
        telling.iter().rev().take_while(|(said, _)| said.is_failure() == Some(true)).count() as u32
    }

    fn good_probes(&self) -> u32 {
        let good = |said: &AttemptVerdict| said.is_failure() == Some(false) && !said.is_slow();
        self.last().verdicts.iter().filter(|(said, _)| good(said)).count() as u32
    }

    /// Which rate the window has reached.
    fn reached(&self, window: &WindowLimits, now: Instant) -> Option<BreakerCause> {
        let WindowCounts { calls, failures, slow } = self.last().counts(window, now);
        let reached = |part: u32, rate: Rate| f64::from(part) / f64::from(calls) >= rate.share();
        match () {
            () if calls < window.min_calls => None,
            () if reached(failures, window.failure_rate) => Some(BreakerCause::FailureRate),
            () if window.slow_call_ms.is_some() && reached(slow, window.slow_rate) => {
                Some(BreakerCause::SlowCalls)
            }
            () => None,
        }
    }

    fn out(&self) -> u32 {
        (self.last().admitted.len() - self.last().verdicts.len()) as u32
    }
}

impl Reference for History {
    fn set_limits(&mut self, limits: BreakerLimits) {
        self.limits = limits;
        let Some(window) = limits.window else { return };
        let newest = self.last().telling().last().map(|(_, at)| *at);
        if let (Kind::Closed, Some(newest)) = (self.last().kind, newest) {
            let outside = self.last().outside(&window, newest);
            self.periods.last_mut().expect("a period").forgotten = outside;
        }
        let period = self.last();
        if period.kind == Kind::HalfOpen && self.good_probes() >= limits.probe_permits.max(1) {
            self.begin(Kind::Closed, period.since);
        }
    }

    fn refusal(&self, now: Instant) -> Option<(RefusalReason, Option<Duration>)> {
        let period = self.last();
        let left = left(period.since, &self.limits, now);
        match period.kind {
            Kind::Held => Some((RefusalReason::Held, None)),
            Kind::Open if !left.is_zero() => Some((RefusalReason::Open, Some(left))),
            Kind::HalfOpen => {
                let good = if self.limits.window.is_some() { self.good_probes() } else { 0 };
                let all = self.out() + good >= self.limits.probe_permits.max(1);
                all.then_some((RefusalReason::Probing, None))
            }
            _ => None,
        }
    }

    fn admit(&mut self, attempt: Attempt, now: Instant) {
        if self.last().kind == Kind::Open {
            self.begin(Kind::HalfOpen, now);
        }
        self.periods.last_mut().expect("a period").admitted.push(attempt);
    }

    fn record(&mut self, attempt: Attempt, verdict: AttemptVerdict, now: Instant) -> Recorded {
        let period = self.periods.last_mut().expect("a period");
        if !period.admitted.contains(&attempt) {
            return Recorded::Stale;
        }
        period.verdicts.push((verdict, now));
        let kind = period.kind;
        if let (Some(window), Some(_)) = (self.limits.window, verdict.is_failure()) {
            if kind == Kind::Closed {
                let outside = self.last().outside(&window, now);
                self.periods.last_mut().expect("a period").forgotten = outside;
                let reached = self.reached(&window, now);
                if reached.is_some() {
                    self.begin(Kind::Open, now);
                    self.periods.last_mut().expect("a period").opened_by = reached;
                }
                return if reached.is_some() { Recorded::Opened } else { Recorded::Counted };
            }
            if kind == Kind::HalfOpen && verdict == AttemptVerdict::Success {
                if self.good_probes() < self.limits.probe_permits.max(1) {
                    return Recorded::Counted;
                }
                self.begin(Kind::Closed, now);
                return Recorded::Closed;
            }
            if kind == Kind::HalfOpen {
                self.begin(Kind::Open, now);
                return Recorded::Opened;
            }
        }
        match (kind, verdict.is_failure()) {
            (Kind::HalfOpen, Some(false)) => {
                self.begin(Kind::Closed, now);
                Recorded::Closed
            }
            (Kind::HalfOpen, Some(true)) => {
                self.begin(Kind::Open, now);
                Recorded::Opened
            }
            (Kind::Closed, Some(true)) if self.run_of_failures() >= self.limits.fail_threshold => {
                self.begin(Kind::Open, now);
                Recorded::Opened
            }
            _ => Recorded::Counted,
        }
    }

    fn hand(&mut self, hand: Hand, now: Instant) {
        let kind = match hand {
            Hand::Trip => Kind::Open,
            Hand::Hold => Kind::Held,
            Hand::Disable => Kind::Disabled,
            Hand::Reset => Kind::Closed,
        };
        self.begin(kind, now);
    }

    fn view(&self, now: Instant) -> BreakerView {
        let period = self.last();
        match period.kind {
            Kind::Closed => BreakerView::Closed {
                failures: self.run_of_failures(),
                of: self.limits.fail_threshold.max(1),
            },
            Kind::Open => {
                BreakerView::Open { left: Some(left(period.since, &self.limits, now)), held: false }
            }
            Kind::Held => BreakerView::Open { left: None, held: true },
            Kind::HalfOpen => {
                BreakerView::HalfOpen { out: self.out(), permits: self.limits.probe_permits.max(1) }
            }
            Kind::Disabled => BreakerView::Disabled,
        }
    }

    fn window(&self, now: Instant) -> (Option<WindowCounts>, Option<BreakerCause>) {
        let period = self.last();
        let counts = |window: WindowLimits| match period.kind {
            Kind::Closed if !period.telling().is_empty() => period.counts(&window, now),
            _ => WindowCounts::default(),
        };
        (self.limits.window.map(counts), period.opened_by)
    }
}

/// The source's `Breaker`, line by line, with the hand laid over it.
struct Literal {
    limits: BreakerLimits,
    failures: u32,
    opened_at: Option<Instant>,
    hand: Option<Hand>,
    /// Let through since it was disabled.
    while_disabled: HashSet<Attempt>,
}

impl Literal {
    fn new(limits: BreakerLimits) -> Self {
        Self { limits, failures: 0, opened_at: None, hand: None, while_disabled: HashSet::new() }
    }
}

impl Reference for Literal {
    fn set_limits(&mut self, limits: BreakerLimits) {
        self.limits = limits;
    }

    fn refusal(&self, now: Instant) -> Option<(RefusalReason, Option<Duration>)> {
        match (self.hand, self.opened_at) {
            (Some(Hand::Hold), _) => Some((RefusalReason::Held, None)),
            (None, Some(opened_at)) if now - opened_at < self.limits.open_for => {
                Some((RefusalReason::Open, Some(left(opened_at, &self.limits, now))))
            }
            _ => None,
        }
    }

    fn admit(&mut self, attempt: Attempt, _now: Instant) {
        if self.hand.is_some() {
            self.while_disabled.insert(attempt);
        } else if self.opened_at.is_some() {
            self.failures = 0;
            self.opened_at = None;
        }
    }

    fn record(&mut self, attempt: Attempt, verdict: AttemptVerdict, now: Instant) -> Recorded {
        if self.hand.is_some() {
            let stale = !self.while_disabled.contains(&attempt);
            return if stale { Recorded::Stale } else { Recorded::Counted };
        }
        let was_open = self.opened_at.is_some();
        match verdict.is_failure() {
            Some(false) => {
                self.failures = 0;
                self.opened_at = None;
            }
            Some(true) => {
                self.failures += 1;
                // The source's open breaker has its count at the threshold always; one that a hand
                // tripped, or whose threshold was raised, is taken the same way.
                if self.failures >= self.limits.fail_threshold || was_open {
                    self.opened_at = Some(now);
                }
            }
            None => {}
        }
        match (was_open, self.opened_at.is_some()) {
            (false, true) => Recorded::Opened,
            (true, false) => Recorded::Closed,
            _ => Recorded::Counted,
        }
    }

    fn hand(&mut self, hand: Hand, now: Instant) {
        self.failures = 0;
        self.while_disabled.clear();
        self.opened_at = matches!(hand, Hand::Trip).then_some(now);
        self.hand = matches!(hand, Hand::Hold | Hand::Disable).then_some(hand);
    }

    fn view(&self, now: Instant) -> BreakerView {
        match (self.hand, self.opened_at) {
            (Some(Hand::Hold), _) => BreakerView::Open { left: None, held: true },
            (Some(_), _) => BreakerView::Disabled,
            (None, Some(opened_at)) => {
                BreakerView::Open { left: Some(left(opened_at, &self.limits, now)), held: false }
            }
            (None, None) => BreakerView::Closed {
                failures: self.failures,
                of: self.limits.fail_threshold.max(1),
            },
        }
    }
}

/// What has to be said to an attempt: the later of gate and open time, a hand before both.
fn told(reference: &dyn Reference, gates: &[Instant], now: Instant) -> Option<BreakerRefusal> {
    let refusal =
        reference.refusal(now).map(|(why, retry_in)| BreakerRefusal { reason: why, retry_in });
    let gate = gates.iter().filter(|gate| **gate > now).max().map(|gate| *gate - now);
    let gated =
        gate.map(|left| BreakerRefusal { reason: RefusalReason::RetryAfter, retry_in: Some(left) });
    match (refusal, gated) {
        (Some(BreakerRefusal { reason: RefusalReason::Held, .. }), _) | (_, None) => refusal,
        (Some(open), Some(gated)) if open.retry_in > gated.retry_in => refusal,
        _ => gated,
    }
}

fn live(
    mode: BreakerMode,
    window: Option<WindowLimits>,
    ops: Vec<Op>,
) -> Result<(), TestCaseError> {
    let open_for = Duration::from_secs(1);
    let limits = BreakerLimits { open_for, mode, window, ..Default::default() };
    let mut now = Instant::now();
    let mut breaker = Breaker::new(limits);
    let mut reference: Box<dyn Reference> = match mode {
        BreakerMode::HalfOpen => Box::new(History::new(limits, now)),
        BreakerMode::TwoState => Box::new(Literal::new(limits)),
    };
    let mut gates: Vec<Instant> = Vec::new();
    let mut out: Vec<(Attempt, Ticket)> = Vec::new();
    for (at, op) in ops.into_iter().enumerate() {
        match op {
            Op::Allow => {
                let before = breaker.view(now);
                let expected = told(&*reference, &gates, now);
                let answer = breaker.allow(now);
                prop_assert_eq!(answer.as_ref().err(), expected.as_ref());
                if let Ok(ticket) = answer {
                    let open = matches!(before, BreakerView::Open { left, .. }
                        if left != Some(Duration::ZERO));
                    prop_assert!(!open, "let through while {:?}", before);
                    reference.admit(at, now);
                    out.push((at, ticket));
                }
            }
            Op::Result(..) if out.is_empty() => {}
            Op::Result(which, verdict) => {
                let (attempt, ticket) = out.swap_remove(which.index(out.len()));
                let recorded = breaker.record(ticket, verdict, now);
                prop_assert_eq!(recorded, reference.record(attempt, verdict, now));
            }
            Op::Step(ms) => now += Duration::from_millis(ms),
            Op::Hand(hand) => {
                match hand {
                    Hand::Trip => breaker.trip(now),
                    Hand::Hold => breaker.hold_open(now),
                    Hand::Disable => breaker.disable(),
                    Hand::Reset => {
                        gates.clear();
                        breaker.reset();
                    }
                }
                reference.hand(hand, now);
            }
            Op::Gate(ms) => {
                let until = now + Duration::from_millis(ms);
                breaker.set_retry_after(until);
                gates.push(until);
            }
            Op::Limits { fail_threshold, open_ms, probe_permits, window: changed } => {
                let open_for = Duration::from_millis(open_ms);
                let limits = BreakerLimits {
                    fail_threshold,
                    open_for,
                    probe_permits,
                    mode,
                    window: window.map(|window| WindowLimits { kind: window.kind, ..changed }),
                    ..BreakerLimits::default()
                };
                breaker.set_limits(limits);
                reference.set_limits(limits);
            }
        }
        prop_assert_eq!(breaker.view(now), reference.view(now));
        let opened_by = breaker.opened_by_window().map(|(cause, _)| cause);
        prop_assert_eq!((breaker.window_counts(now), opened_by), reference.window(now));
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    /// Faults 3, 4, 17, 22 and 23 in every order.
    #[test]
    fn half_open_matches_history(ops in prop::collection::vec(op(), STEPS)) {
        live(BreakerMode::HalfOpen, None, ops)?;
    }

    /// The rates of the latest calls, and all probes.
    #[test]
    fn count_window_matches_history(
        (window, ops) in (window(), prop::collection::vec(op(), STEPS))
    ) {
        live(BreakerMode::HalfOpen, Some(window), ops)?;
    }

    /// The rates of the latest seconds.
    #[test]
    fn time_window_matches_history(
        (window, ops) in (window(), prop::collection::vec(op(), STEPS))
    ) {
        let window = WindowLimits { kind: WindowKind::Time, ..window };
        live(BreakerMode::HalfOpen, Some(window), ops)?;
    }

    /// The same in the source's mode.
    #[test]
    fn two_state_matches_source(ops in prop::collection::vec(op(), STEPS)) {
        live(BreakerMode::TwoState, None, ops)?;
    }
}
