//! Live text: the part of a reply that has been received so far. It is kept next to the log, not in
//! it, and is dropped with its span.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::live_slots::LiveText;
use super::{Bus, lock};
use crate::event::{Elapsed, SpanId};

impl Bus {
    /// Opens the live slot of a span. Dropping the returned handle closes it.
    pub fn live(&self, span: SpanId) -> LiveSlot {
        let mut live = lock(&self.0.live);
        // A reader may still hold the spare text; then it gets a new one.
        let mut text = live.spare.take().unwrap_or_default();
        if Arc::get_mut(&mut text).is_none() {
            text = Arc::default();
        }
        live.insert(span, Arc::clone(&text));
        drop(live);
        LiveSlot { bus: self.clone(), span, text }
    }

    /// Calls `look` with the text received so far in a span; `None` if the span has no live slot.
    pub fn with_live<T>(&self, span: SpanId, look: impl FnOnce(&LiveText) -> T) -> Option<T> {
        let text = Arc::clone(lock(&self.0.live).get(span)?);
        let text = lock(&text);
        Some(look(&text))
    }

    /// Ids of the spans that have a live slot now, in ascending order.
    pub fn live_spans(&self) -> Vec<SpanId> {
        lock(&self.0.live).slots.iter().map(|(span, _)| *span).collect()
    }

    /// A number that grows with every change of any live slot. If it is unchanged, there is nothing
    /// new to draw.
    pub fn live_version(&self) -> u64 {
        self.0.live_version.load(Ordering::Acquire)
    }

    /// Waits until a live slot has changed since version `seen`; returns the new version.
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

/// Writer of a live slot.
pub struct LiveSlot {
    bus: Bus,
    span: SpanId,
    text: Arc<Mutex<LiveText>>,
}

impl LiveSlot {
    /// Appends a piece of text.
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

    /// The text received so far.
    pub fn text(&self) -> String {
        lock(&self.text).text.clone()
    }

    /// When the first piece arrived.
    pub fn first_at(&self) -> Option<Elapsed> {
        lock(&self.text).first_at
    }
}

impl Drop for LiveSlot {
    fn drop(&mut self) {
        let mut live = lock(&self.bus.0.live);
        // A text that nothing was written to is reused for the next span.
        live.spare = live.remove(self.span).filter(|text| lock(text).pieces == 0);
        drop(live);
        self.bus.touch_live();
    }
}
