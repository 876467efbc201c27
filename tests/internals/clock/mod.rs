//! The clock of a run that is re-executed: time moves and timers fire only when its driver says so.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use crate::log::clock::{Clock, ClockSleep};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Remembers that it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A wait with a waker of its own.
struct Waiting {
    sleep: Pin<Box<ClockSleep>>,
    woken: Arc<Woken>,
}

impl Waiting {
    /// A wait that was polled once.
    fn begin(sleep: ClockSleep) -> Self {
        let mut waiting = Self { sleep: Box::pin(sleep), woken: Arc::default() };
        assert!(!waiting.ends(), "no timer fires before the driver says so");
        waiting
    }

    fn ends(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.sleep.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(())
    }

    fn take_woken(&self) -> bool {
        self.woken.0.swap(false, Ordering::SeqCst)
    }
}

#[test]
fn driver_fires_timers_one_by_one() {
    let (clock, driver) = Clock::recorded();
    let start = clock.now();
    let mut late = Waiting::begin(clock.sleep(ms(30)));
    let mut early = Waiting::begin(clock.clone().sleep(ms(10)));
    let mut equal = Waiting::begin(clock.sleep_until(start + ms(10)));
    assert_eq!(driver.earliest(), Some(start + ms(10)));
    assert!(!driver.fire(), "none is due");
    driver.advance(start + ms(20));
    assert_eq!((clock.now(), clock.since(start)), (start + ms(20), ms(20)));
    assert!(!early.ends(), "moving time fires nothing");
    assert!(driver.fire());
    assert!(early.take_woken() && !equal.take_woken() && early.ends() && !equal.ends());
    assert!(driver.fire());
    assert!(equal.take_woken() && equal.ends());
    assert!(!driver.fire(), "the last one is not due");
    driver.advance(start + ms(5));
    assert_eq!(clock.now(), start + ms(20), "time never goes back");
    drop(late);
    assert_eq!(driver.earliest(), None, "a dropped wait leaves no timer");
    late = Waiting::begin(clock.sleep(Duration::MAX));
    assert_eq!(driver.earliest(), None, "it never ends");
    assert!(!late.ends());
}

#[test]
fn outside_wait_is_not_idle() {
    let (clock, driver) = Clock::recorded();
    assert!(!driver.waits_outside());
    let (first, second) = (clock.outside(), clock.outside());
    drop(first);
    assert!(driver.waits_outside());
    drop(second);
    assert!(!driver.waits_outside());
    drop(Clock::real().outside());
}

#[tokio::test(start_paused = true)]
async fn live_clock_uses_real_time() {
    let (clock, driver) = Clock::recorded();
    let start = clock.now();
    tokio::time::advance(ms(1_000_000)).await;
    let mut pending = Waiting::begin(clock.sleep(ms(100)));
    let mut due = Waiting::begin(clock.sleep(ms(30)));
    driver.advance(start + ms(40));
    driver.go_live();
    assert!(pending.take_woken() && due.take_woken(), "they become timers of tokio");
    assert_eq!(clock.since(start), ms(40));
    assert!(!pending.ends());
    let real = Instant::now();
    pending.sleep.as_mut().await;
    assert_eq!((real.elapsed(), clock.since(start)), (ms(60), ms(100)));
    assert!(due.ends(), "its time had passed");
    clock.sleep(ms(5)).await;
    clock.sleep_until(start + ms(110)).await;
    assert_eq!((real.elapsed(), clock.since(start)), (ms(70), ms(110)));
}

/// A step on a clock.
#[derive(Clone, Copy, Debug)]
enum Step {
    Sleep(u64),
    Drop(usize),
    Advance(u64),
    Fire,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_u64..20).prop_map(Step::Sleep),
        1 => any::<usize>().prop_map(Step::Drop),
        2 => (0_u64..10).prop_map(Step::Advance),
        3 => Just(Step::Fire),
    ]
}

proptest! {
    /// The clock behaves like a list of deadlines in which the earliest one that is due fires.
    #[test]
    fn timers_match_deadline_list(steps in prop::collection::vec(step(), 0..60)) {
        let (clock, driver) = Clock::recorded();
        let start = clock.now();
        let mut now = 0;
        // Deadline and number of each wait that has not ended, in the order of their beginning.
        let mut model: Vec<(u64, u64)> = Vec::new();
        let mut waits: Vec<(u64, Waiting)> = Vec::new();
        for (number, step) in (0..).zip(steps) {
            match step {
                Step::Sleep(time) => {
                    model.push((now + time, number));
                    waits.push((number, Waiting::begin(clock.sleep(ms(time)))));
                }
                Step::Drop(which) if !waits.is_empty() => {
                    let (gone, _) = waits.remove(which % waits.len());
                    model.retain(|(_, number)| *number != gone);
                }
                Step::Drop(_) => {}
                Step::Advance(time) => {
                    now += time;
                    driver.advance(start + ms(now));
                }
                Step::Fire => {
                    let due = model.iter().copied().filter(|(until, _)| *until <= now).min();
                    prop_assert_eq!(driver.fire(), due.is_some());
                    for (number, waiting) in &mut waits {
                        let fired = due.is_some_and(|(_, it)| it == *number);
                        prop_assert_eq!(waiting.take_woken(), fired);
                        prop_assert_eq!(waiting.ends(), fired);
                    }
                    if let Some((_, fired)) = due {
                        model.retain(|(_, number)| *number != fired);
                        waits.retain(|(number, _)| *number != fired);
                    }
                }
            }
            let earliest = model.iter().map(|(until, _)| start + ms(*until)).min();
            prop_assert_eq!(driver.earliest(), earliest);
            prop_assert_eq!(clock.since(start), ms(now));
        }
    }
}
