//! Random lives of a bulkhead against a list of all that ever asked, searched from its beginning
//! every time. Futures are polled one by one, so that any of them may be cancelled or run out of
//! time after its turn came and before it has looked.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::gateway::bulkhead::{Bulkhead, BulkheadCounts, BulkheadFull, Permit, QueueFill};
use futures::poll;
use proptest::prelude::*;
use proptest::sample::Index;
use tokio::time::{Instant, advance};

use super::{STEPS, config};

#[derive(Clone, Debug)]
enum Op {
    Try,
    /// Asks with at most this many milliseconds in line.
    Enter(Option<u64>),
    /// A waiter is polled, as its task would be.
    Look(Index),
    Cancel(Index),
    Release(Index),
    Step(u64),
    Resize(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let max_wait = prop_oneof![Just(None), Just(Some(0)), (1..200_u64).prop_map(Some)];
    prop_oneof![
        6 => Just(Op::Try),
        24 => max_wait.prop_map(Op::Enter),
        20 => any::<Index>().prop_map(Op::Look),
        8 => any::<Index>().prop_map(Op::Cancel),
        20 => any::<Index>().prop_map(Op::Release),
        10 => (1..120_u64).prop_map(Op::Step),
        4 => (0..6_u32).prop_map(Op::Resize),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    InLine { until: Option<Instant> },
    Given,
    GaveBack,
    Rejected,
    Left,
}

struct Annals {
    permits: usize,
    askers: Vec<Fate>,
}

impl Annals {
    fn count(&self, is: impl Fn(&Fate) -> bool) -> usize {
        self.askers.iter().filter(|fate| is(fate)).count()
    }

    fn given(&self) -> usize {
        self.count(|fate| *fate == Fate::Given)
    }

    fn queued(&self) -> usize {
        self.count(|fate| matches!(fate, Fate::InLine { .. }))
    }

    /// Requests a permit; a request that may not queue is refused unless a permit is free.
    fn ask(&mut self, until: Option<Option<Instant>>) -> usize {
        self.askers.push(match until {
            _ if self.queued() == 0 && self.given() < self.permits => Fate::Given,
            Some(until) => Fate::InLine { until },
            None => Fate::Rejected,
        });
        self.askers.len() - 1
    }

    /// Permits go to the first in line for as long as there are any.
    fn settle(&mut self) {
        while self.given() < self.permits {
            let first = self.askers.iter().position(|fate| matches!(fate, Fate::InLine { .. }));
            let Some(first) = first else { return };
            self.askers[first] = Fate::Given;
        }
    }

    fn fill(&self) -> QueueFill {
        let (in_flight, permits) = (self.given() as u32, self.permits as u32);
        QueueFill { in_flight, permits, queued: self.queued() }
    }

    fn counts(&self) -> BulkheadCounts {
        BulkheadCounts {
            asked: self.askers.len() as u64,
            admitted: self.count(|fate| matches!(fate, Fate::Given | Fate::GaveBack)) as u64,
            rejected: self.count(|fate| *fate == Fate::Rejected) as u64,
            cancelled: self.count(|fate| *fate == Fate::Left) as u64,
        }
    }
}

type Entering = Pin<Box<dyn Future<Output = Result<Permit, BulkheadFull>>>>;

struct Life {
    bulkhead: Bulkhead,
    annals: Annals,
    waiting: Vec<(usize, Entering)>,
    held: Vec<(usize, Permit)>,
}

impl Life {
    async fn look(&mut self, at: usize) -> Result<(), TestCaseError> {
        let (asker, entering) = &mut self.waiting[at];
        let asker = *asker;
        let seen = poll!(entering.as_mut());
        match self.annals.askers[asker] {
            Fate::InLine { until: Some(until) } if until <= Instant::now() => {
                self.annals.askers[asker] = Fate::Rejected;
            }
            _ => {}
        }
        match (seen, self.annals.askers[asker]) {
            (Poll::Pending, Fate::InLine { .. }) => return Ok(()),
            (Poll::Ready(Ok(permit)), Fate::Given) => self.held.push((asker, permit)),
            (Poll::Ready(Err(_)), Fate::Rejected) => {}
            (seen, fate) => prop_assert!(false, "asker {} saw {:?}: {:?}", asker, seen, fate),
        }
        drop(self.waiting.swap_remove(at));
        Ok(())
    }

    async fn step(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Try => {
                let asker = self.annals.ask(None);
                let answer = self.bulkhead.try_enter();
                prop_assert_eq!(answer.is_ok(), self.annals.askers[asker] == Fate::Given);
                self.held.extend(answer.ok().map(|permit| (asker, permit)));
            }
            Op::Enter(ms) => {
                let max_wait = ms.map(Duration::from_millis);
                let until = match max_wait {
                    Some(Duration::ZERO) => None,
                    max_wait => Some(max_wait.map(|wait| Instant::now() + wait)),
                };
                let asker = self.annals.ask(until);
                let bulkhead = self.bulkhead.clone();
                let at_once = asker.is_multiple_of(2);
                let entering = Box::pin(async move {
                    match at_once.then(|| bulkhead.enter_at_once()).flatten() {
                        Some(permit) => Ok(permit),
                        None => bulkhead.enter(max_wait).await,
                    }
                });
                self.waiting.push((asker, entering));
                // Asking begins with the first poll.
                self.look(self.waiting.len() - 1).await?;
            }
            Op::Look(at) if !self.waiting.is_empty() => {
                self.look(at.index(self.waiting.len())).await?;
            }
            Op::Cancel(at) if !self.waiting.is_empty() => {
                let (asker, entering) = self.waiting.swap_remove(at.index(self.waiting.len()));
                drop(entering);
                let fate = &mut self.annals.askers[asker];
                *fate = if *fate == Fate::Given { Fate::GaveBack } else { Fate::Left };
            }
            Op::Release(at) if !self.held.is_empty() => {
                let (asker, permit) = self.held.swap_remove(at.index(self.held.len()));
                drop(permit);
                self.annals.askers[asker] = Fate::GaveBack;
            }
            Op::Look(_) | Op::Cancel(_) | Op::Release(_) => {}
            Op::Step(ms) => advance(Duration::from_millis(ms)).await,
            Op::Resize(permits) => {
                self.annals.permits = permits as usize;
                self.bulkhead.resize(permits);
            }
        }
        self.annals.settle();
        Ok(())
    }

    async fn live(ops: Vec<Op>) -> Result<(), TestCaseError> {
        let bulkhead = Bulkhead::new(3);
        let annals = Annals { permits: 3, askers: Vec::new() };
        let mut life = Self { bulkhead, annals, waiting: Vec::new(), held: Vec::new() };
        let mut before = life.bulkhead.fill();
        for op in ops {
            life.step(op).await?;
            let (fill, counts) = (life.bulkhead.fill(), life.bulkhead.counts());
            prop_assert_eq!(fill, life.annals.fill());
            prop_assert_eq!(counts, life.annals.counts());
            // After it was made smaller, no attempt gets in until fewer are in flight.
            prop_assert!(fill.in_flight <= fill.permits.max(before.in_flight));
            let settled = counts.admitted + counts.rejected + counts.cancelled;
            prop_assert_eq!(counts.asked, settled + fill.queued as u64);
            before = fill;
        }
        life.waiting.clear();
        life.held.clear();
        let QueueFill { in_flight, queued, .. } = life.bulkhead.fill();
        prop_assert_eq!((in_flight, queued), (0, 0));
        let BulkheadCounts { asked, admitted, rejected, cancelled: left } = life.bulkhead.counts();
        prop_assert_eq!(asked, admitted + rejected + left);
        Ok(())
    }
}

proptest! {
    #![proptest_config(config())]

    /// Faults 17, 21 and 24 in every order.
    #[test]
    fn bulkhead_matches_model(
        ops in prop::collection::vec(op(), STEPS),
    ) {
        let runtime = crate::support::table::paused_runtime();
        // Polled by hand many times a turn: tokio's budget of a turn must not end a poll early.
        runtime.block_on(tokio::task::unconstrained(Life::live(ops)))?;
    }
}
