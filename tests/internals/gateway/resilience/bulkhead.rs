//! Faults that the bulkhead alone answers for, one by one, where `bulkhead_model.rs` does not have them in
//! every order, and many tasks at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::gateway::bulkhead::{Bulkhead, BulkheadCounts, BulkheadFull, Permit, QueueFill};
use crate::scenario::spec::policy::BulkheadLimits;
use futures::poll;

fn fill(in_flight: u32, permits: u32, queued: usize) -> QueueFill {
    QueueFill { in_flight, permits, queued }
}

fn filled(permits: u32, in_flight: usize) -> (Bulkhead, Vec<Permit>) {
    let bulkhead = Bulkhead::new(permits);
    let held = (0..in_flight).map(|_| bulkhead.try_enter().expect("a permit")).collect();
    (bulkhead, held)
}

#[tokio::test]
async fn fault_21_refuses_eleventh_at_once() {
    let limits = BulkheadLimits::default();
    assert_eq!((limits.max_in_flight, limits.max_wait), (10, Some(Duration::ZERO)));
    let (bulkhead, held) = filled(limits.max_in_flight, 10);
    assert_eq!(bulkhead.try_enter().unwrap_err(), BulkheadFull(fill(10, 10, 0)));
    let mut eleventh = Box::pin(bulkhead.enter(limits.max_wait));
    let answer = poll!(eleventh.as_mut());
    assert!(matches!(answer, std::task::Poll::Ready(Err(BulkheadFull(_)))), "{answer:?}");
    assert_eq!(bulkhead.fill(), fill(10, 10, 0));
    assert_eq!(
        bulkhead.counts(),
        BulkheadCounts { asked: 12, admitted: 10, rejected: 2, cancelled: 0 }
    );
    drop(held);
    assert_eq!(bulkhead.fill(), fill(0, 10, 0));
}

/// Fault 19, the part of the bulkhead: the unwinding releases the permit.
#[test]
fn fault_19_panic_returns_permit() {
    let bulkhead = Bulkhead::new(1);
    let inside = bulkhead.clone();
    let panicked = std::thread::spawn(move || {
        let _permit = inside.try_enter().expect("a permit");
        std::panic::resume_unwind(Box::new("in the tool"));
    });
    assert!(panicked.join().is_err());
    assert_eq!(bulkhead.fill(), fill(0, 1, 0));
    assert!(bulkhead.try_enter().is_ok());
}

#[tokio::test(start_paused = true)]
async fn queue_timeout_refuses_call() {
    let (bulkhead, held) = filled(1, 1);
    let start = tokio::time::Instant::now();
    let waited = bulkhead.enter(Some(Duration::from_millis(250))).await;
    assert_eq!(waited.unwrap_err(), BulkheadFull(fill(1, 1, 0)));
    assert_eq!(start.elapsed(), Duration::from_millis(250));
    assert_eq!(
        bulkhead.counts(),
        BulkheadCounts { asked: 2, admitted: 1, rejected: 1, cancelled: 0 }
    );
    drop(held);
    let permit = bulkhead.enter(Some(Duration::from_millis(250))).await;
    assert!(permit.is_ok());
}

/// Many tasks on several threads enter, leave and give up while the size changes under them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_tasks_release_all_permits() {
    const MAX_TASKS: u32 = 4;
    let bulkhead = Bulkhead::new(MAX_TASKS);
    let inside = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..32_u32)
        .map(|task| {
            let (bulkhead, inside) = (bulkhead.clone(), Arc::clone(&inside));
            tokio::spawn(async move {
                for turn in 0..200_u32 {
                    if task == 0 {
                        bulkhead.resize(1 + turn % MAX_TASKS);
                    }
                    let patience = (task * 7 + turn) % 5;
                    let gives_up = async {
                        for _ in 0..patience {
                            tokio::task::yield_now().await;
                        }
                    };
                    tokio::select! {
                        permit = bulkhead.enter(None) => {
                            let permit = permit.expect("nobody is turned away");
                            let seen = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            assert!(seen <= MAX_TASKS, "{seen} at once");
                            tokio::task::yield_now().await;
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(permit);
                        }
                        () = gives_up => {}
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let counts = bulkhead.counts();
    assert_eq!((bulkhead.fill().in_flight, bulkhead.fill().queued), (0, 0));
    assert_eq!(counts.asked, counts.admitted + counts.cancelled, "{counts:?}");
    assert_eq!(counts.rejected, 0);
}
