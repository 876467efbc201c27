//! Cache of the last good values of a tool, used while it is unavailable (cascading failures source
//! document: "cached / last-known-good").

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::log::event::weight::weight_of;

/// Most entries per tool; the oldest are evicted first.
const CACHED_VALUES: usize = 256;
/// Approximate bound of the cache in bytes.
const CACHED_BYTES: usize = 8 << 20;

/// The last good value for each set of arguments.
#[derive(Debug, Default)]
pub struct LastGood {
    values: HashMap<Arc<str>, CachedValue>,
    /// Keys by order of insertion. Times may be equal, and the iteration order of a hash map
    /// differs between runs.
    order: BTreeMap<u64, Arc<str>>,
    /// Number of values ever stored.
    count: u64,
    bytes: usize,
}

#[derive(Debug)]
struct CachedValue {
    value: Arc<Value>,
    at: Instant,
    /// Key in [`LastGood::order`].
    number: u64,
    /// Approximate size in bytes, key included.
    bytes: usize,
}

impl LastGood {
    /// Stores a value and replaces an earlier one for the same arguments. A value larger than the
    /// whole cache is not stored: the earlier one stays, with its age.
    pub fn insert(&mut self, key: &str, value: Arc<Value>, now: Instant) {
        let bytes = weight_of(&value) + key.len();
        if bytes > CACHED_BYTES {
            return;
        }
        self.drop_key(key);
        while self.values.len() >= CACHED_VALUES || self.bytes + bytes > CACHED_BYTES {
            let Some((_, first)) = self.order.first_key_value() else { break };
            let first = Arc::clone(first);
            self.drop_key(&first);
        }
        self.count += 1;
        self.bytes += bytes;
        let key: Arc<str> = key.into();
        self.order.insert(self.count, Arc::clone(&key));
        self.values.insert(key, CachedValue { value, at: now, number: self.count, bytes });
    }

    /// The value for these arguments and its age.
    pub fn get(&self, key: &str, now: Instant) -> Option<(Arc<Value>, Duration)> {
        let kept = self.values.get(key)?;
        Some((Arc::clone(&kept.value), now.saturating_duration_since(kept.at)))
    }

    fn drop_key(&mut self, key: &str) {
        if let Some(kept) = self.values.remove(key) {
            self.order.remove(&kept.number);
            self.bytes -= kept.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_latest_values_and_evicts_oldest() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut kept = LastGood::default();
        kept.insert("a", json!(1).into(), at(0));
        kept.insert("a", json!(2).into(), at(3));
        let (value, age) = kept.get("a", at(10)).expect("kept");
        assert_eq!((&*value, age), (&json!(2), Duration::from_secs(7)));
        for nth in 0..CACHED_VALUES as u64 {
            kept.insert(&nth.to_string(), json!(nth).into(), at(4 + nth));
        }
        assert!(kept.get("a", at(10)).is_none(), "it was the oldest");
        assert!(kept.get("0", at(10)).is_some());
    }

    #[test]
    fn evicts_simultaneous_values_in_order() {
        let now = Instant::now();
        let mut kept = LastGood::default();
        for nth in 0..CACHED_VALUES {
            kept.insert(&nth.to_string(), json!(nth).into(), now);
        }
        kept.insert("0", json!("again").into(), now);
        for more in 1..=5 {
            kept.insert(&format!("more {more}"), json!(more).into(), now);
            for gone in 1..=more {
                assert!(kept.get(&gone.to_string(), now).is_none(), "{gone} after {more} more");
            }
            assert!(kept.get(&(more + 1).to_string(), now).is_some());
        }
        assert!(kept.get("0", now).is_some(), "it was kept again later");
    }

    #[test]
    fn large_values_evict_oversized_is_skipped() {
        let now = Instant::now();
        let text = |bytes: usize| Arc::new(json!("x".repeat(bytes)));
        let mut kept = LastGood::default();
        for key in ["a", "b", "c", "d"] {
            kept.insert(key, text(CACHED_BYTES / 3 - 1_000), now);
        }
        let held = |kept: &LastGood| ["a", "b", "c", "d"].map(|key| kept.get(key, now).is_some());
        assert_eq!(held(&kept), [false, true, true, true]);
        kept.insert("b", text(CACHED_BYTES + 1), now);
        assert_eq!(held(&kept), [false, true, true, true]);
        kept.insert("b", text(10), now);
        kept.insert("c", text(10), now);
        kept.insert("a", text(CACHED_BYTES / 3 - 1_000), now);
        assert_eq!(held(&kept), [true; 4], "what went or was replaced takes no more room");
        assert!(kept.bytes <= CACHED_BYTES);
    }
}
