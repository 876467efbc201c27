//! What a pattern makes of a scenario for all of its runs.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What a pattern makes of a scenario once and uses in each run of it, such as texts that every call
/// sends. A scenario has one pattern, so it has one such thing; its type is the pattern's own.
#[derive(Default)]
pub struct Prepared(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Prepared {
    /// What was made before, else what is made now. Something of another type is never kept in place
    /// of the first.
    pub fn get<T: Any + Send + Sync>(&self, make: impl Fn() -> T) -> Arc<T> {
        let kept = Arc::clone(self.0.get_or_init(|| Arc::new(make())));
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
