//! The policies around an attempt that is answered at once allocate nothing.

use std::time::Duration;

use crate::event::kind::AttemptFailed;
use crate::gateway::Guard;
use crate::gateway::breaker::AttemptVerdict;
use crate::gateway::time_limit::run_within;
use crate::scenario::spec::policy::CallPolicy;

const LIMIT: Duration = Duration::from_secs(10);

async fn guarded(guard: &Guard) {
    let (_, limit) = guard.policy();
    let pass = guard.enter(|| LIMIT, Default::default(), |_| None).await.expect("let through");
    assert!(guard.faults().is_empty());
    let attempt = async { Ok::<(), Box<AttemptFailed>>(()) };
    run_within(limit, attempt).await.expect("in time").expect("answered");
    pass.settle(AttemptVerdict::Success);
}

#[test]
fn an_attempt_that_is_answered_at_once_allocates_nothing_in_the_gateway() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let guard = Guard::new("tool".into(), CallPolicy::default(), LIMIT, &[]);
    let counts = || allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(counts().count_total, 1, "what is counted here");
    runtime.block_on(async {
        guarded(&guard).await;
        let mut calls = std::pin::pin!(async {
            for _ in 0..100 {
                guarded(&guard).await;
            }
        });
        let mut done = false;
        let counted = allocation_counter::measure(|| {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            done = calls.as_mut().poll(&mut cx).is_ready();
        });
        assert!(done, "nothing in it waits");
        assert_eq!(counted.count_total, 0, "{} bytes", counted.bytes_total);
    });
}
