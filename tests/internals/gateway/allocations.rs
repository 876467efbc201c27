//! The policies around an attempt that is answered at once allocate nothing, and the future of a call is
//! small.

use std::time::Duration;

use crate::gateway::CallGuard;
use crate::gateway::attempt::run_within;
use crate::gateway::breaker::AttemptVerdict;
use crate::log::event::AttemptFailed;
use crate::scenario::spec::policy::CallPolicy;
use crate::support::gateway_call::{Odd, Scope, call};

const LIMIT: Duration = Duration::from_secs(10);

async fn guarded(guard: &CallGuard) {
    let (_, limit) = guard.policy();
    let pass = guard.enter(|| LIMIT, Default::default(), |_| None).await.expect("let through");
    assert!(guard.faults().is_empty());
    let attempt = async { Ok::<(), Box<AttemptFailed>>(()) };
    run_within(limit, attempt).await.expect("in time").expect("answered");
    pass.settle(AttemptVerdict::Success);
}

#[test]
fn answered_attempt_allocates_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let guard = CallGuard::new("tool".into(), CallPolicy::default(), LIMIT, &[]);
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

/// A future is moved when it is awaited, and that of a call is awaited by five others.
#[tokio::test]
async fn call_future_stays_small() {
    let (scope, odd) = (Scope::new(), Odd::failing(|_| None));
    let guard = CallGuard::new("vendor".into(), CallPolicy::default(), LIMIT, &[]);
    let call = call(&scope, &guard, &odd);
    assert!(size_of_val(&call) <= 1_000, "{} bytes", size_of_val(&call));
    let enter = guard.enter(|| LIMIT, Default::default(), |_| None);
    assert!(size_of_val(&enter) <= 160, "{} bytes", size_of_val(&enter));
}
