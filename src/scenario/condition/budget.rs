//! The cost limits of an evaluation, in steps and bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
