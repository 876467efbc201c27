//! The last good values of a tool, for when it cannot be had (source `003`: "cached /
//! last-known-good").

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// Values kept of one tool; the oldest go first.
const KEPT: usize = 256;

/// The last good value for each set of arguments.
#[derive(Debug, Default)]
pub struct LastGood {
    values: HashMap<Box<str>, (Arc<Value>, Instant)>,
}

impl LastGood {
    /// Keeps a value, in place of an earlier one for the same arguments.
    pub fn keep(&mut self, key: &str, value: Arc<Value>, now: Instant) {
        if let Some(held) = self.values.get_mut(key) {
            *held = (value, now);
            return;
        }
        if self.values.len() == KEPT {
            let oldest = self.values.iter().min_by_key(|(_, (_, at))| *at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.values.remove(&oldest);
            }
        }
        self.values.insert(key.into(), (value, now));
    }

    /// The value for these arguments, and how old it is.
    pub fn get(&self, key: &str, now: Instant) -> Option<(Arc<Value>, Duration)> {
        let (value, at) = self.values.get(key)?;
        Some((Arc::clone(value), now.saturating_duration_since(*at)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_value_is_kept_with_its_age_and_the_oldest_goes_first() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut kept = LastGood::default();
        kept.keep("a", json!(1).into(), at(0));
        kept.keep("a", json!(2).into(), at(3));
        let (value, age) = kept.get("a", at(10)).expect("kept");
        assert_eq!((&*value, age), (&json!(2), Duration::from_secs(7)));
        for nth in 0..KEPT as u64 {
            kept.keep(&nth.to_string(), json!(nth).into(), at(4 + nth));
        }
        assert!(kept.get("a", at(10)).is_none(), "it was the oldest");
        assert!(kept.get("0", at(10)).is_some());
    }
}
