//! Evaluates conditions without blocking the runtime.
//!
//! Nearly every decision is cheap and made at once. An expensive one is repeated on a blocking
//! thread with the full budget, so timers, signals and other runs do not wait for it. When its
//! caller stops waiting (the run was cancelled or ran out of time), it ends within some thousand
//! steps.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::scenario::condition::{Budget, Limits};

/// The budget on a thread of the runtime: less than a millisecond.
const AT_ONCE: Limits = Limits { steps: 10_000, bytes: 256 << 10 };

/// The most decisions on blocking threads at the same time; bounds the memory of all runs together.
const BESIDE: usize = 4;

static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new(cores.min(BESIDE))
});

/// A decision made by conditions that share one budget.
pub trait Decision: Clone + Send + 'static {
    /// The decision, and the conditions that could not be evaluated.
    type Found: Send + 'static;

    /// Decides. Called again with a larger budget if the first one was used up, so the result must
    /// depend on `self` only.
    fn find(&self, budget: &mut Budget) -> Self::Found;
}

/// Sets its flag when it is dropped, which stops the evaluation.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes a decision. Cancel-safe: dropping the future stops the evaluation.
pub async fn decide<D: Decision>(decision: &D) -> D::Found {
    let mut budget = Budget::new(AT_ONCE);
    let found = decision.find(&mut budget);
    if budget.spent().is_none() {
        return found;
    }
    let Ok(place) = PLACES.acquire().await else {
        // The semaphore is never closed; if it were, the result within the small budget would
        // count.
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
