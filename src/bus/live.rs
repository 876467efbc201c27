//! Live text: what has come so far of a text that is still on its way. It stands beside the log, not
//! in it, and goes with its span.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::{Bus, lock};
use crate::event::{Elapsed, SpanId};

impl Bus {
    /// Opens the live slot of a span; it is gone when the returned handle is dropped.
    pub fn live(&self, span: SpanId) -> LiveSlot {
        let mut live = lock(&self.0.live);
        // One that somebody still looks at is left to them.
        let mut text = live.spare.take().unwrap_or_default();
        if Arc::get_mut(&mut text).is_none() {
            text = Arc::default();
        }
        live.slots.insert(span, Arc::clone(&text));
        drop(live);
        LiveSlot { bus: self.clone(), span, text }
    }

    /// Looks at the text that has come so far in a span; `None` when it has no live slot.
    pub fn with_live<T>(&self, span: SpanId, look: impl FnOnce(&LiveText) -> T) -> Option<T> {
        let text = Arc::clone(lock(&self.0.live).slots.get(&span)?);
        let text = lock(&text);
        Some(look(&text))
    }

    /// The spans that have a live slot now, by their ids.
    pub fn live_spans(&self) -> Vec<SpanId> {
        lock(&self.0.live).slots.keys().copied().collect()
    }

    /// Grows with every change of any live slot: equal numbers mean nothing new to show.
    pub fn live_version(&self) -> u64 {
        self.0.live_version.load(Ordering::Acquire)
    }

    /// Waits until a live slot has changed since version `seen`.
    pub async fn live_changed(&self, seen: u64) -> u64 {
        loop {
            let changed = self.0.live_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let now = self.live_version();
            if now != seen {
                return now;
            }
            changed.await;
        }
    }

    fn touch_live(&self) {
        self.0.live_version.fetch_add(1, Ordering::AcqRel);
        self.0.live_changed.notify_waiters();
    }
}

/// The live slots of a log.
#[derive(Default)]
pub(super) struct LiveSlots {
    slots: BTreeMap<SpanId, Arc<Mutex<LiveText>>>,
    /// An empty text that is free again.
    spare: Option<Arc<Mutex<LiveText>>>,
}

/// The text of a span while it comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveText {
    /// What has come so far.
    pub text: String,
    /// In how many pieces.
    pub pieces: u64,
    /// When the first piece came.
    pub first_at: Option<Elapsed>,
    /// When the last piece came.
    pub last_at: Option<Elapsed>,
}

/// The writing end of a live slot.
pub struct LiveSlot {
    bus: Bus,
    span: SpanId,
    text: Arc<Mutex<LiveText>>,
}

impl LiveSlot {
    /// Adds a piece.
    pub fn push(&self, piece: &str) {
        let now = self.bus.now();
        {
            let mut live = lock(&self.text);
            live.text.push_str(piece);
            live.pieces += 1;
            live.first_at.get_or_insert(now);
            live.last_at = Some(now);
        }
        self.bus.touch_live();
    }

    /// What has come so far.
    pub fn text(&self) -> String {
        lock(&self.text).text.clone()
    }

    /// When the first piece came.
    pub fn first_at(&self) -> Option<Elapsed> {
        lock(&self.text).first_at
    }
}

impl Drop for LiveSlot {
    fn drop(&mut self) {
        let mut live = lock(&self.bus.0.live);
        // One that nothing was written to serves the next span.
        live.spare = live.slots.remove(&self.span).filter(|text| lock(text).pieces == 0);
        drop(live);
        self.bus.touch_live();
    }
}
