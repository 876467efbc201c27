//! Data that is computed once per scenario, for all of its runs.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::policy::CallPolicy;

/// Data that is computed once per scenario and used in each run. A scenario is not changed once a run was
/// started with it.
#[derive(Default)]
pub struct Prepared {
    /// Of the pattern, such as texts that every call sends. A scenario has one pattern, so one value
    /// is enough; the pattern chooses its type.
    pattern: OnceLock<Arc<dyn Any + Send + Sync>>,
    live_policy: OnceLock<Arc<CallPolicy>>,
}

impl Prepared {
    /// The policy for calls of a live model, which is made if it is not stored yet.
    pub(super) fn live_policy(&self, make: impl FnOnce() -> CallPolicy) -> Arc<CallPolicy> {
        Arc::clone(self.live_policy.get_or_init(|| Arc::new(make())))
    }

    /// The stored value, or a new one, which is then stored. A value of another type than the first
    /// is never stored.
    pub fn get<T: Any + Send + Sync>(&self, make: impl Fn() -> T) -> Arc<T> {
        let kept = Arc::clone(self.pattern.get_or_init(|| Arc::new(make())));
        kept.downcast().unwrap_or_else(|_| Arc::new(make()))
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_its_type_is_kept() {
        let prepared = Prepared::default();
        let first = prepared.get(|| 1_u32);
        assert!(Arc::ptr_eq(&first, &prepared.get(|| 2_u32)));
        assert_eq!(*prepared.get(|| "of another type"), "of another type");
        assert_eq!(*prepared.get(|| 3_u32), 1);
    }
}
