//! What the gateway costs: the policies around one attempt, and ten thousand tasks of an
//! orchestrator beside a bare `JoinSet` with a semaphore that does the same.

mod paired;

use std::hint::black_box;
use std::time::Duration;

use paired::{median, pairs, report, timed};
use roundtable::event::kind::AttemptFailed;
use roundtable::scenario::model::CallPolicy;
use roundtable::tool::Guard;
use roundtable::tool::breaker::Verdict;
use roundtable::tool::gateway::bounded;

const CALLS: u32 = 200_000;
const LIMIT: Duration = Duration::from_secs(10);

fn one_core() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn work(number: u32) -> Result<u32, Box<AttemptFailed>> {
    Ok(black_box(number))
}

/// All policies around an attempt that is answered at once; facts aside.
async fn guarded(guard: &Guard, number: u32) -> u32 {
    let (policy, limit) = guard.policy();
    let pass = guard.enter(LIMIT, || {}).await.expect("let through");
    let faults = guard.faults();
    let answered = bounded(limit, work(number)).await.expect("answered");
    pass.settle(Verdict::Success);
    black_box((policy, faults));
    answered
}

fn main() {
    let runtime = one_core();
    let guard = Guard::new("tool".into(), CallPolicy::default(), LIMIT, &[]);
    let all = pairs(
        9,
        || {
            timed(|| {
                runtime.block_on(async {
                    for number in 0..CALLS {
                        black_box(guarded(&guard, number).await);
                    }
                });
            })
        },
        || {
            timed(|| {
                runtime.block_on(async {
                    for number in 0..CALLS {
                        let _ = black_box(work(number).await);
                    }
                });
            })
        },
    );
    let (with, without) = all.medians();
    let each = median(vec![(with - without) / f64::from(CALLS) * 1e9]);
    report("all policies around one attempt", &format!("{each:.0} ns"), "1,000 ns");
}
