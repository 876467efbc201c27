//! The live texts of a log by span.

use std::sync::{Arc, Mutex};

use crate::event::{Elapsed, SpanId};

/// The live slots of a log.
#[derive(Default)]
pub(super) struct LiveSlots {
    /// Sorted by span. There are few at a time, and a new one usually goes last.
    pub(super) slots: Vec<(SpanId, Arc<Mutex<LiveText>>)>,
}

impl LiveSlots {
    /// The index of a span's slot, or the index at which to insert it.
    fn position(&self, span: SpanId) -> Result<usize, usize> {
        self.slots.binary_search_by_key(&span, |(span, _)| *span)
    }

    pub(super) fn get(&self, span: SpanId) -> Option<&Arc<Mutex<LiveText>>> {
        self.slots.get(self.position(span).ok()?).map(|(_, text)| text)
    }

    pub(super) fn insert(&mut self, span: SpanId, text: Arc<Mutex<LiveText>>) {
        match self.position(span) {
            Ok(index) => self.slots[index].1 = text,
            Err(index) => self.slots.insert(index, (span, text)),
        }
    }

    /// Frees what is only of use for more slots: finished logs are kept for long.
    pub(super) fn release(&mut self) {
        self.slots.shrink_to_fit();
    }

    pub(super) fn remove(&mut self, span: SpanId) -> Option<Arc<Mutex<LiveText>>> {
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
