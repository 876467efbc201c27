//! Evaluates conditions without blocking the runtime, and has the limits of an evaluation in steps
//! and bytes. Nearly every decision is cheap and made at once. An expensive one is repeated on a
//! blocking thread with the full budget. When its caller stops waiting, it ends within some
//! thousand steps.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

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

/// Steps between two checks for cancellation.
const CANCEL_CHECK_STEPS: u64 = 1_024;

/// Bytes of text that count as one step.
const BYTES_PER_STEP: usize = 64;

/// The maximum cost of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalLimits {
    /// Steps: one for each evaluated part of a condition, for each element of a loop, and for every
    /// 64 bytes of text that are read.
    pub steps: u64,
    /// Bytes of the values that are created: texts, lists and maps.
    pub bytes: u64,
}

impl EvalLimits {
    /// Limits of one decision, all its rows or rules together.
    pub const DECISION: Self = Self { steps: 1_000_000, bytes: 16 << 20 };
}

/// What is left of the limits of one decision.
#[derive(Clone, Debug)]
pub struct EvalBudget {
    limits: EvalLimits,
    steps: u64,
    bytes: u64,
    next_cancel_check: u64,
    spent: Option<BudgetExceeded>,
    cancel_flag: Option<Arc<AtomicBool>>,
}

/// Why an evaluation ended early. After that, nothing more is evaluated within its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetExceeded {
    /// It exceeds the limit of steps.
    #[error("it takes more than {0} steps")]
    Steps(u64),
    /// It exceeds the limit of bytes.
    #[error("it creates more than {0} bytes of values")]
    Bytes(u64),
    /// Its result is no longer needed.
    #[error("it was cancelled")]
    Cancelled,
}

impl Default for EvalBudget {
    fn default() -> Self {
        Self::new(EvalLimits::DECISION)
    }
}

impl EvalBudget {
    /// An unused budget.
    pub fn new(limits: EvalLimits) -> Self {
        Self {
            limits,
            steps: 0,
            bytes: 0,
            next_cancel_check: CANCEL_CHECK_STEPS,
            spent: None,
            cancel_flag: None,
        }
    }

    /// An unused budget; its evaluation ends soon after `abandoned` is set.
    pub fn with_cancel_flag(limits: EvalLimits, abandoned: Arc<AtomicBool>) -> Self {
        Self { cancel_flag: Some(abandoned), ..Self::new(limits) }
    }

    /// The limit that was exceeded, if any.
    pub fn exceeded(&self) -> Option<BudgetExceeded> {
        self.spent
    }

    /// Steps so far, without the one that exceeded the limit.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Bytes so far, without those that exceeded the limit.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts steps; fails beyond the limit.
    pub(super) fn count_steps(&mut self, steps: u64) -> Result<(), BudgetExceeded> {
        if let Some(spent) = self.spent {
            return Err(spent);
        }
        let taken = self.steps.saturating_add(steps);
        if taken > self.limits.steps {
            return Err(self.exceed(BudgetExceeded::Steps(self.limits.steps)));
        }
        self.steps = taken;
        if taken >= self.next_cancel_check {
            self.next_cancel_check = taken + CANCEL_CHECK_STEPS;
            if self.cancel_flag.as_ref().is_some_and(|it| it.load(Ordering::Relaxed)) {
                return Err(self.exceed(BudgetExceeded::Cancelled));
            }
        }
        Ok(())
    }

    /// Counts the reading of a text of this many bytes.
    pub(super) fn count_read(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.count_steps((bytes / BYTES_PER_STEP) as u64)
    }

    /// Counts the creation of a value of this many bytes; called before it is created.
    pub(super) fn count_created(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        if let Some(spent) = self.spent {
            return Err(spent);
        }
        let made = self.bytes.saturating_add(bytes as u64);
        if made > self.limits.bytes {
            return Err(self.exceed(BudgetExceeded::Bytes(self.limits.bytes)));
        }
        self.bytes = made;
        Ok(())
    }

    fn exceed(&mut self, spent: BudgetExceeded) -> BudgetExceeded {
        self.spent = Some(spent);
        spent
    }
}
