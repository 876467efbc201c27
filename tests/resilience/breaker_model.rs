//! Random lives of a breaker against two references: for half-open one that keeps the history of
//! each state and counts in it anew every time, for the source's mode the source's own few lines.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use roundtable::gateway::breaker::{
    AttemptVerdict, Breaker, BreakerRefusal, BreakerView, Recorded, RefusalReason, Ticket,
};
use roundtable::scenario::spec::limits::{BreakerLimits, BreakerMode};
use tokio::time::Instant;

use crate::{STEPS, config};

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
        5 => Just(AttemptVerdict::Failure),
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
        4 => (0..7_u32, prop_oneof![Just(1000_u64), 0..4000_u64], 0..4_u32).prop_map(
            |(fail_threshold, open_ms, probe_permits)| {
                Op::Limits { fail_threshold, open_ms, probe_permits }
            }
        ),
    ]
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
    verdicts: Vec<AttemptVerdict>,
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
        self.periods.push(Period { kind, since, admitted: Vec::new(), verdicts: Vec::new() });
    }

    fn last(&self) -> &Period {
        self.periods.last().expect("a period")
    }

    fn run_of_failures(&self) -> u32 {
        let telling =
            self.last().verdicts.iter().rev().filter(|said| **said != AttemptVerdict::Neither);
        telling.take_while(|said| **said == AttemptVerdict::Failure).count() as u32
    }

    fn out(&self) -> u32 {
        (self.last().admitted.len() - self.last().verdicts.len()) as u32
    }
}

impl Reference for History {
    fn set_limits(&mut self, limits: BreakerLimits) {
        self.limits = limits;
    }

    fn refusal(&self, now: Instant) -> Option<(RefusalReason, Option<Duration>)> {
        let period = self.last();
        let left = left(period.since, &self.limits, now);
        match period.kind {
            Kind::Held => Some((RefusalReason::Held, None)),
            Kind::Open if !left.is_zero() => Some((RefusalReason::Open, Some(left))),
            Kind::HalfOpen if self.out() >= self.limits.probe_permits.max(1) => {
                Some((RefusalReason::Probing, None))
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
        period.verdicts.push(verdict);
        match (period.kind, verdict) {
            (Kind::HalfOpen, AttemptVerdict::Success) => {
                self.begin(Kind::Closed, now);
                Recorded::Closed
            }
            (Kind::HalfOpen, AttemptVerdict::Failure) => {
                self.begin(Kind::Open, now);
                Recorded::Opened
            }
            (Kind::Closed, AttemptVerdict::Failure)
                if self.run_of_failures() >= self.limits.fail_threshold =>
            {
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
        match verdict {
            AttemptVerdict::Success => {
                self.failures = 0;
                self.opened_at = None;
            }
            AttemptVerdict::Failure => {
                self.failures += 1;
                // The source's open breaker has its count at the threshold always; one that a hand
                // tripped, or whose threshold was raised, is taken the same way.
                if self.failures >= self.limits.fail_threshold || was_open {
                    self.opened_at = Some(now);
                }
            }
            AttemptVerdict::Neither => {}
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

fn live(mode: BreakerMode, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let limits = BreakerLimits { open_for: Duration::from_secs(1), mode, ..Default::default() };
    let mut now = Instant::now();
    let mut breaker = Breaker::new(limits);
    let mut reference: Box<dyn Reference> = match mode {
        BreakerMode::HalfOpen => Box::new(History::new(limits, now)),
        BreakerMode::Source => Box::new(Literal::new(limits)),
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
            Op::Limits { fail_threshold, open_ms, probe_permits } => {
                let open_for = Duration::from_millis(open_ms);
                let limits = BreakerLimits {
                    fail_threshold,
                    open_for,
                    probe_permits,
                    mode,
                    ..BreakerLimits::default()
                };
                breaker.set_limits(limits);
                reference.set_limits(limits);
            }
        }
        prop_assert_eq!(breaker.view(now), reference.view(now));
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    /// Faults 3, 4, 17, 22 and 23 in every order.
    #[test]
    fn half_open_does_what_its_history_says(ops in prop::collection::vec(op(), STEPS)) {
        live(BreakerMode::HalfOpen, ops)?;
    }

    /// The same in the source's mode.
    #[test]
    fn the_sources_mode_does_what_the_source_does(ops in prop::collection::vec(op(), STEPS)) {
        live(BreakerMode::Source, ops)?;
    }
}
