//! Evaluates the conditions of a decision without holding up the runtime.
//!
//! Nearly every decision is cheap and is made where it is asked for. One that is not is made anew on
//! a thread beside the runtime, with the whole budget of a decision: timers, signals and the other
//! runs do not wait for it. When nobody waits for its answer any more (the run was cancelled, its
//! time is up) it ends within some thousand steps.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::scenario::condition::{Budget, Limits};

/// What is evaluated on a thread of the runtime: less than a millisecond.
const AT_ONCE: Limits = Limits { steps: 10_000, bytes: 256 << 10 };

/// Decisions that are made beside the runtime at the same time: the memory that evaluations take is
/// bounded for all runs together.
const BESIDE: usize = 4;

static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new(cores.min(BESIDE))
});

/// Something that conditions decide. Its conditions share one budget.
pub trait Decision: Clone + Send + 'static {
    /// What was decided, and which conditions could not be evaluated.
    type Found: Send + 'static;

    /// Decides. Called a second time with a larger budget where the first was used up, so it must
    /// depend on nothing but itself.
    fn find(&self, budget: &mut Budget) -> Self::Found;
}

/// Sets its mark when it is dropped.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What this decides. Dropped while it waits, it leaves nothing running.
pub async fn decide<D: Decision>(decision: &D) -> D::Found {
    let mut budget = Budget::new(AT_ONCE);
    let found = decision.find(&mut budget);
    if budget.spent().is_none() {
        return found;
    }
    let Ok(place) = PLACES.acquire().await else {
        // Never closed; if it were, the small budget's answer would stand.
        return found;
    };
    let abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = Abandon(Arc::clone(&abandoned));
    let decision = decision.clone();
    let beside = spawn_blocking(move || {
        let _place = place;
        decision.find(&mut Budget::until(Limits::DECISION, abandoned))
    });
    match beside.await {
        Ok(found) => found,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
