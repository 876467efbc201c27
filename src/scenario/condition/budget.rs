//! What an evaluation may cost: steps and bytes, counted while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps between two looks at whether anyone still waits for the answer.
const LOOK: u64 = 1_024;

/// Bytes of text that one step goes through.
const STRIDE: usize = 64;

/// The most that an evaluation may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps: one for each part of a condition that is evaluated, for each element and for every 64
    /// bytes of text that a part goes through.
    pub steps: u64,
    /// Bytes of the values that are made: texts, lists and maps.
    pub bytes: u64,
}

impl Limits {
    /// What one decision may cost, all rows or rules of it together.
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

/// Why an evaluation was given up. Once it was, nothing more is evaluated within its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// It takes more steps than there may be.
    #[error("it takes more than {0} steps")]
    Steps(u64),
    /// It makes more bytes than there may be.
    #[error("it makes more than {0} bytes of values")]
    Bytes(u64),
    /// Nobody waits for its answer any more.
    #[error("it was cancelled")]
    Abandoned,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Limits::DECISION)
    }
}

impl Budget {
    /// A budget of which nothing is spent.
    pub fn new(limits: Limits) -> Self {
        Self { limits, steps: 0, bytes: 0, look: LOOK, spent: None, abandoned: None }
    }

    /// The same, and the evaluation ends soon after `abandoned` is set.
    pub fn until(limits: Limits, abandoned: Arc<AtomicBool>) -> Self {
        Self { abandoned: Some(abandoned), ..Self::new(limits) }
    }

    /// What went beyond the limits, if anything did.
    pub fn spent(&self) -> Option<Spent> {
        self.spent
    }

    /// Steps taken so far, the one that went beyond the limit not among them.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Bytes made so far, those that went beyond the limit not among them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes so many steps.
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

    /// Goes through a text of so many bytes.
    pub(super) fn scan(&mut self, bytes: usize) -> Result<(), Spent> {
        self.step((bytes / STRIDE) as u64)
    }

    /// Makes a value of so many bytes; asked before it is made.
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
