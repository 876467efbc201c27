//! Live text: the part of a reply that has been received so far. It is kept next to the log, not in
//! it, and is dropped with its span.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use super::{Bus, lock};
use crate::log::event::{Elapsed, SpanId};

impl Bus {
    /// The live slot of a span, which is there from its first piece of text on, until the returned handle
    /// is dropped.
    pub fn live(&self, span: SpanId) -> LiveSlot {
        LiveSlot { bus: self.clone(), span, text: OnceLock::new() }
    }

    /// Calls `look` with the text received so far in a span; `None` if the span has no live slot.
    pub fn with_live<T>(&self, span: SpanId, look: impl FnOnce(&LiveText) -> T) -> Option<T> {
        let text = Arc::clone(lock(&self.0.live).get(&span)?);
        let text = lock(&text);
        Some(look(&text))
    }

    /// Ids of the spans that have a live slot now, in ascending order.
    pub fn live_spans(&self) -> Vec<SpanId> {
        lock(&self.0.live).keys().copied().collect()
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
    text: OnceLock<Arc<Mutex<LiveText>>>,
}

impl LiveSlot {
    /// Appends a piece of text.
    pub fn push(&self, piece: &str) {
        let now = self.bus.now();
        let text = self.text.get_or_init(|| {
            let text = Arc::default();
            lock(&self.bus.0.live).insert(self.span, Arc::clone(&text));
            text
        });
        {
            let mut live = lock(text);
            live.text.push_str(piece);
            live.pieces += 1;
            live.first_at.get_or_insert(now);
            live.last_at = Some(now);
        }
        self.bus.touch_live();
    }

    /// The text received so far.
    pub fn text(&self) -> String {
        self.text.get().map_or_else(String::new, |text| lock(text).text.clone())
    }
}

impl Drop for LiveSlot {
    fn drop(&mut self) {
        if self.text.get().is_some() {
            lock(&self.bus.0.live).remove(&self.span);
            self.bus.touch_live();
        }
    }
}

/// Reads the live texts of a log as they change.
pub struct LiveTextReader {
    bus: Bus,
    /// The version that was read last.
    seen: u64,
    /// How many pieces of each span were read.
    read: BTreeMap<SpanId, u64>,
}

impl LiveTextReader {
    /// A reader that has read nothing.
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), seen: u64::MAX, read: BTreeMap::new() }
    }

    /// Waits for a change, and returns the whole text of each span that has changed; `None`: its slot was
    /// dropped. Cancel safe.
    pub async fn changes(&mut self) -> Vec<(SpanId, Option<String>)> {
        self.seen = self.bus.live_changed(self.seen).await;
        let mut changes = Vec::new();
        let spans = self.bus.live_spans();
        for span in &spans {
            let before = self.read.get(span).copied().unwrap_or(0);
            let text = self.bus.with_live(*span, |live| {
                (live.pieces > before).then(|| (live.pieces, live.text.clone()))
            });
            if let Some((pieces, text)) = text.flatten() {
                self.read.insert(*span, pieces);
                changes.push((*span, Some(text)));
            }
        }
        self.read.retain(|span, _| {
            let stays = spans.contains(span);
            if !stays {
                changes.push((*span, None));
            }
            stays
        });
        changes
    }
}

/// Partial text of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveText {
    /// The text received so far.
    pub text: String,
    /// Number of pieces received.
    pub pieces: u64,
    /// When the first piece arrived.
    pub first_at: Option<Elapsed>,
    /// When the last piece arrived.
    pub last_at: Option<Elapsed>,
}
