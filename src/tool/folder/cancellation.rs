//! Cancellation of work on a blocking thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cancellation flag of the work; clones share it.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

/// The work was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCancelled;

impl CancelFlag {
    /// Called between two steps of the work.
    ///
    /// # Errors
    /// The work was cancelled.
    pub fn check(&self) -> Result<(), WorkCancelled> {
        if self.0.load(Ordering::Relaxed) { Err(WorkCancelled) } else { Ok(()) }
    }

    /// A guard that cancels the work when it is dropped.
    pub fn on_drop(&self) -> CancelGuard {
        CancelGuard(self.clone())
    }
}

/// Cancels the work when it is dropped.
#[derive(Debug)]
pub struct CancelGuard(CancelFlag);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
