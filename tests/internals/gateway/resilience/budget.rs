//! The retry budget against a list of everything that was noted.

use std::time::Duration;

use crate::gateway::retry::RetryBudget;
use crate::scenario::spec::policy::RetryBudgetLimits;
use proptest::prelude::*;
use tokio::time::Instant;

use super::{STEPS, config};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
enum Op {
    Attempt,
    Retried,
    Take,
    Forward(u64),
    /// A caller comes with an older time than the one before.
    Back(u64),
    Limits(RetryBudgetLimits),
}

fn op() -> impl Strategy<Value = Op> {
    let forward = prop_oneof![
        6 => 0..300_u64,
        3 => 0..8000_u64,
        1 => prop_oneof![Just(1000_u64), Just(59_999), Just(60_000), Just(86_400_000)],
    ];
    prop_oneof![
        40 => Just(Op::Attempt),
        5 => Just(Op::Retried),
        15 => Just(Op::Take),
        20 => forward.prop_map(Op::Forward),
        2 => (0..3000_u64).prop_map(Op::Back),
        2 => (0..=100_u32, 0..6_u32)
            .prop_map(|(ratio_percent, min)| Op::Limits(RetryBudgetLimits { ratio_percent, min })),
    ]
}

/// Everything that was noted, with the second that it counts as.
#[derive(Default)]
struct Ledger {
    first: Option<Instant>,
    attempts: Vec<u64>,
    retries: Vec<u64>,
}

impl Ledger {
    fn second(&self, now: Instant) -> u64 {
        let since = self.first.map_or(0, |first| now.saturating_duration_since(first).as_secs());
        let latest = self.attempts.iter().chain(&self.retries).max().copied();
        since.max(latest.unwrap_or(0))
    }

    fn note(&mut self, now: Instant, retry: bool) {
        self.first = self.first.or(Some(now));
        let second = self.second(now);
        if retry { self.retries.push(second) } else { self.attempts.push(second) }
    }

    fn used(&self, now: Instant, limits: RetryBudgetLimits) -> (u64, u64) {
        let second = self.second(now);
        let recent = |noted: &[u64]| noted.iter().filter(|at| **at + 60 > second).count() as u64;
        let share = recent(&self.attempts) * u64::from(limits.ratio_percent) / 100;
        (recent(&self.retries), share.max(limits.min.into()))
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn budget_window_matches_ledger(
        ops in prop::collection::vec(op(), STEPS),
    ) {
        let mut now = Instant::now() + 3600 * SECOND;
        let mut limits = RetryBudgetLimits::default();
        let (mut budget, mut ledger) = (RetryBudget::default(), Ledger::default());
        for op in ops {
            match op {
                Op::Attempt => {
                    budget.count_attempt(now);
                    ledger.note(now, false);
                }
                Op::Retried => {
                    budget.count_retry(now);
                    ledger.note(now, true);
                }
                Op::Take => {
                    let (retries, allowed) = ledger.used(now, limits);
                    prop_assert_eq!(budget.take_retry(now, limits), retries < allowed);
                    if retries < allowed {
                        ledger.note(now, true);
                        prop_assert!(budget.usage(now, limits).0 <= allowed);
                    }
                }
                Op::Forward(ms) => now += Duration::from_millis(ms),
                Op::Back(ms) => now -= Duration::from_millis(ms),
                Op::Limits(new) => limits = new,
            }
            let (retries, allowed) = ledger.used(now, limits);
            prop_assert_eq!(budget.usage(now, limits), (retries, allowed));
            prop_assert_eq!(budget.may_retry(now, limits), retries < allowed);
        }
    }
}

#[test]
fn allows_tenth_or_three_retries() {
    let now = Instant::now();
    let limits = RetryBudgetLimits::default();
    assert_eq!((limits.ratio_percent, limits.min), (10, 3));
    for (attempts, allowed) in [(0, 3), (1, 3), (39, 3), (40, 4), (49, 4), (1000, 100)] {
        let mut budget = RetryBudget::default();
        for _ in 0..attempts {
            budget.count_attempt(now);
        }
        let taken = (0..200).filter(|_| budget.take_retry(now, limits)).count();
        assert_eq!(taken, allowed, "of {attempts} attempts");
        assert_eq!(budget.usage(now, limits), (allowed as u64, allowed as u64));
    }
}
