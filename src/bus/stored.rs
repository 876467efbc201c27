//! How far the log of a run is stored. A paid call waits until the event that announces it is
//! stored, so no call is paid that a log does not know of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use super::Bus;
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

    /// The events before this number are stored.
    pub fn next(&self) -> Seq {
        Seq(self.next.load(Ordering::Acquire))
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

impl Bus {
    /// The mark of what is stored. From the first call on, paid calls wait for it.
    pub fn stored_mark(&self) -> Arc<StoredMark> {
        Arc::clone(self.0.stored.get_or_init(Arc::default))
    }

    /// Waits until everything published so far is stored, if this log is stored at all.
    pub async fn wait_until_stored(&self) {
        let Some(mark) = self.0.stored.get() else { return };
        let published = Seq(self.len());
        if mark.next() < published {
            // Boxed: otherwise the future of every attempt would be larger.
            Box::pin(mark.reached(published)).await;
        }
    }
}
