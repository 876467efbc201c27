//! The store that the dashboard reads.

#[cfg(feature = "store")]
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "store")]
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "store")]
use crate::app::request::RequestId;
#[cfg(feature = "store")]
use crate::store::database::{Database, StoreError};

/// The store that the dashboard reads; empty where runs are not kept.
#[derive(Clone, Default)]
pub struct KeptRuns {
    #[cfg(feature = "store")]
    database: Option<Database>,
    /// The last search over what was said.
    #[cfg(feature = "store")]
    last_search: Arc<AtomicU64>,
    /// The damage that the last list of runs had.
    #[cfg(feature = "store")]
    damage: Arc<Mutex<Option<StoreError>>>,
}

#[cfg(feature = "store")]
impl KeptRuns {
    /// The runs in this database.
    pub fn new(database: Option<Database>) -> Self {
        Self { database, ..Self::default() }
    }

    /// The database.
    pub fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }

    /// The damage that a list of runs has, unless the list before had the same.
    pub fn new_damage(&self, found: Option<StoreError>) -> Option<StoreError> {
        let mut known = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = *known == found;
        known.clone_from(&found);
        found.filter(|_| !is_known)
    }

    /// Begins a search: earlier ones are not wanted any more.
    pub fn begin_search(&self, request: RequestId) {
        self.last_search.fetch_max(request.0, Ordering::Relaxed);
    }

    /// Whether no search has begun after this one.
    pub fn is_last_search(&self, request: RequestId) -> bool {
        self.last_search.load(Ordering::Relaxed) == request.0
    }
}
