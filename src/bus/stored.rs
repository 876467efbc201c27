//! How far the log of a run is stored. A paid call waits until the event that announces it is
//! stored, so no call is paid that a log does not know of.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::event::Seq;

/// The mark of one log: every event before it is stored.
#[derive(Debug, Default)]
pub struct StoredMark {
    next: AtomicU64,
    changed: Notify,
}

impl StoredMark {
    /// The events before this number are stored.
    pub fn raise(&self, next: Seq) {
        self.next.fetch_max(next.0, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// The run is not stored any more: no call waits from now on.
    pub fn abandon(&self) {
        self.raise(Seq(u64::MAX));
    }

    /// Waits until the events before this number are stored, or are not going to be.
    pub async fn reached(&self, next: Seq) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.next.load(Ordering::Acquire) >= next.0 {
                return;
            }
            changed.await;
        }
    }
}
