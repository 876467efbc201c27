//! Live text: the part of a reply that has been received so far. It is kept next to the log, not in
//! it, and is dropped with its span.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

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

/// The live slots of a log.
#[derive(Default)]
pub(super) struct LiveSlots {
    /// Sorted by span. There are few at a time, and a new one usually goes last.
    slots: Vec<(SpanId, Arc<Mutex<LiveText>>)>,
    /// An empty text that can be reused.
    spare: Option<Arc<Mutex<LiveText>>>,
}

impl LiveSlots {
    /// The index of a span's slot, or the index at which to insert it.
    fn position(&self, span: SpanId) -> Result<usize, usize> {
        self.slots.binary_search_by_key(&span, |(span, _)| *span)
    }

    fn get(&self, span: SpanId) -> Option<&Arc<Mutex<LiveText>>> {
        self.slots.get(self.position(span).ok()?).map(|(_, text)| text)
    }

    fn insert(&mut self, span: SpanId, text: Arc<Mutex<LiveText>>) {
        match self.position(span) {
            Ok(index) => self.slots[index].1 = text,
            Err(index) => self.slots.insert(index, (span, text)),
        }
    }

    fn remove(&mut self, span: SpanId) -> Option<Arc<Mutex<LiveText>>> {
        self.position(span).ok().map(|index| self.slots.remove(index).1)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The slots behave like a map by span, in whatever order spans open and close.
        #[test]
        fn slots_behave_like_a_map_by_span(
            steps in prop::collection::vec((0_u32..12, any::<bool>()), 0..60),
        ) {
            let (mut slots, mut map) = (LiveSlots::default(), BTreeMap::new());
            for (span, opens) in steps {
                let span = SpanId(span);
                if opens {
                    let text = Arc::default();
                    slots.insert(span, Arc::clone(&text));
                    map.insert(span, text);
                } else {
                    let removed = slots.remove(span).map(|it| Arc::as_ptr(&it));
                    prop_assert_eq!(removed, map.remove(&span).map(|it| Arc::as_ptr(&it)));
                }
                prop_assert!(slots.slots.iter().map(|(span, _)| span).eq(map.keys()));
                for (span, text) in &map {
                    prop_assert!(slots.get(*span).is_some_and(|it| Arc::ptr_eq(it, text)));
                }
            }
        }
    }
}
