//! The cost limits of an evaluation, in steps and bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps between two checks for cancellation.
const LOOK: u64 = 1_024;

/// Bytes of text that count as one step.
const STRIDE: usize = 64;

/// The maximum cost of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps: one for each evaluated part of a condition, for each element of a loop, and for every
    /// 64 bytes of text that are read.
    pub steps: u64,
    /// Bytes of the values that are created: texts, lists and maps.
    pub bytes: u64,
}

impl Limits {
    /// Limits of one decision, all its rows or rules together.
    pub const DECISION: Self = Self { steps: 1_000_000, bytes: 16 << 20 };
}

/// What is left of the limits of one decision.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    steps: u64,
    bytes: u64,
    look: u64,
    spent: Option<Spent>,
    abandoned: Option<Arc<AtomicBool>>,
}

/// Why an evaluation ended early. After that, nothing more is evaluated within its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// It exceeds the limit of steps.
    #[error("it takes more than {0} steps")]
    Steps(u64),
    /// It exceeds the limit of bytes.
    #[error("it creates more than {0} bytes of values")]
    Bytes(u64),
    /// Its result is no longer needed.
    #[error("it was cancelled")]
    Abandoned,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Limits::DECISION)
    }
}

impl Budget {
    /// An unused budget.
    pub fn new(limits: Limits) -> Self {
        Self { limits, steps: 0, bytes: 0, look: LOOK, spent: None, abandoned: None }
    }

    /// An unused budget; its evaluation ends soon after `abandoned` is set.
    pub fn until(limits: Limits, abandoned: Arc<AtomicBool>) -> Self {
        Self { abandoned: Some(abandoned), ..Self::new(limits) }
    }

    /// The limit that was exceeded, if any.
    pub fn spent(&self) -> Option<Spent> {
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
    pub(super) fn step(&mut self, steps: u64) -> Result<(), Spent> {
        if let Some(spent) = self.spent {
            return Err(spent);
        }
        let taken = self.steps.saturating_add(steps);
        if taken > self.limits.steps {
            return Err(self.give_up(Spent::Steps(self.limits.steps)));
        }
        self.steps = taken;
        if taken >= self.look {
            self.look = taken + LOOK;
            if self.abandoned.as_ref().is_some_and(|it| it.load(Ordering::Relaxed)) {
                return Err(self.give_up(Spent::Abandoned));
            }
        }
        Ok(())
    }

    /// Counts the reading of a text of this many bytes.
    pub(super) fn scan(&mut self, bytes: usize) -> Result<(), Spent> {
        self.step((bytes / STRIDE) as u64)
    }

    /// Counts the creation of a value of this many bytes; called before it is created.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), Spent> {
        if let Some(spent) = self.spent {
            return Err(spent);
        }
        let made = self.bytes.saturating_add(bytes as u64);
        if made > self.limits.bytes {
            return Err(self.give_up(Spent::Bytes(self.limits.bytes)));
        }
        self.bytes = made;
        Ok(())
    }

    fn give_up(&mut self, spent: Spent) -> Spent {
        self.spent = Some(spent);
        spent
    }
}
