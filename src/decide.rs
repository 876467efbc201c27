//! Evaluates conditions without blocking the runtime.
//!
//! Nearly every decision is cheap and made at once. An expensive one is repeated on a blocking
//! thread with the full budget, so timers, signals and other runs do not wait for it. When its
//! caller stops waiting (the run was cancelled or ran out of time), it ends within some thousand
//! steps.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::scenario::condition::{EvalBudget, EvalLimits};

/// The budget on a thread of the runtime: less than a millisecond.
const INLINE_LIMITS: EvalLimits = EvalLimits { steps: 10_000, bytes: 256 << 10 };

/// The most decisions on blocking threads at the same time; bounds the memory of all runs together.
const MAX_BLOCKING: usize = 4;

static BLOCKING_SLOTS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new(cores.min(MAX_BLOCKING))
});

/// A decision made by conditions that share one budget.
pub trait ConditionDecision: Clone + Send + 'static {
    /// The decision, and the conditions that could not be evaluated.
    type DecisionResult: Send + 'static;

    /// Decides. Called again with a larger budget if the first one was used up, so the result must
    /// depend on `self` only.
    fn evaluate(&self, budget: &mut EvalBudget) -> Self::DecisionResult;
}

/// Sets its flag when it is dropped, which stops the evaluation.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes a decision. Cancel-safe: dropping the future stops the evaluation.
pub async fn decide<D: ConditionDecision>(decision: &D) -> D::DecisionResult {
    let mut budget = EvalBudget::new(INLINE_LIMITS);
    let found = decision.evaluate(&mut budget);
    if budget.exceeded().is_none() {
        return found;
    }
    let abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = CancelOnDrop(Arc::clone(&abandoned));
    let runtime = Handle::current();
    // All runtimes of the process share the slots. A runtime of one thread may run on simulated time, which
    // advances whenever the runtime is idle, so it must not look idle here: a blocking thread waits. Other
    // runtimes wait without a thread and without a copy. The semaphore is never closed.
    let place = match runtime.runtime_flavor() {
        RuntimeFlavor::CurrentThread => None,
        _ => BLOCKING_SLOTS.acquire().await.ok(),
    };
    let decision = decision.clone();
    let beside = spawn_blocking(move || {
        let _place = place.or_else(|| runtime.block_on(BLOCKING_SLOTS.acquire()).ok());
        decision.evaluate(&mut EvalBudget::with_cancel_flag(EvalLimits::DECISION, abandoned))
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
