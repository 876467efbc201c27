//! The rate of a policy: attempts that start in a minute.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::{Instant, advance, timeout};

use crate::gateway::attempt::CallTurn;
use crate::gateway::{CallGuard, GuardRefusal};
use crate::scenario::spec::policy::CallPolicy;

const MINUTE: Duration = Duration::from_secs(60);

fn guard(rate: u32) -> CallGuard {
    let policy =
        CallPolicy { rate: Some(rate), breaker: None, bulkhead: None, ..CallPolicy::default() };
    CallGuard::new("vendor".into(), policy, MINUTE, &[])
}

/// Starts an attempt that may wait so long, and ends it at once. Returns the wait.
async fn enter(guard: &CallGuard, patience: Duration) -> Result<Duration, GuardRefusal> {
    let permit = guard.enter(|| patience, CallTurn::default(), |_| None).await?;
    Ok(permit.waited)
}

#[tokio::test(start_paused = true)]
async fn later_attempts_wait_or_fail() {
    let guard = guard(2);
    for _ in 0..2 {
        assert_eq!(enter(&guard, Duration::ZERO).await, Ok(Duration::ZERO));
    }
    advance(Duration::from_secs(20)).await;
    let refused = enter(&guard, Duration::from_secs(30)).await;
    assert_eq!(refused, Err(GuardRefusal::RateReached { retry_in: Duration::from_secs(40) }));
    assert_eq!(enter(&guard, MINUTE).await, Ok(Duration::from_secs(40)));
}

/// An attempt that is given up while it waits takes no start of another one.
#[tokio::test(start_paused = true)]
async fn cancelled_attempts_take_no_start() {
    let guard = guard(1);
    enter(&guard, Duration::ZERO).await.expect("the first");
    for _ in 0..5 {
        timeout(Duration::from_secs(1), enter(&guard, MINUTE * 9)).await.expect_err("it waits");
    }
    assert_eq!(enter(&guard, MINUTE).await, Ok(Duration::from_secs(55)));
}

proptest! {
    /// Whatever arrives, waits or is cancelled: no minute has more starts than the rate.
    #[test]
    fn no_minute_has_more_starts(
        rate in 1_u32..5,
        attempts in prop::collection::vec((0_u64..40, 0_u64..200), 1..40),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        let starts = runtime.block_on(async {
            let (guard, starts) = (Arc::new(guard(rate)), Arc::new(Mutex::new(Vec::new())));
            let mut tasks = Vec::new();
            for (gap, patience) in attempts {
                tokio::time::sleep(Duration::from_secs(gap)).await;
                let (guard, starts) = (Arc::clone(&guard), Arc::clone(&starts));
                tasks.push(tokio::spawn(async move {
                    let entering = enter(&guard, MINUTE * 100);
                    if let Ok(Ok(_)) = timeout(Duration::from_secs(patience), entering).await {
                        starts.lock().expect("no panic").push(Instant::now());
                    }
                }));
            }
            for task in tasks {
                task.await.expect("no panic");
            }
            let mut starts = starts.lock().expect("no panic").clone();
            starts.sort_unstable();
            starts
        });
        for (first, last) in starts.iter().zip(starts.iter().skip(rate as usize)) {
            prop_assert!(*last - *first >= MINUTE, "{:?}", *last - *first);
        }
    }
}
