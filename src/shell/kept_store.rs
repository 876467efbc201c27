//! The store that the dashboard reads.

#[cfg(feature = "store")]
use std::sync::Arc;
#[cfg(feature = "store")]
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "store")]
use crate::app::request::RequestId;
#[cfg(feature = "store")]
use crate::store::database::Database;

/// The store that the dashboard reads; empty where runs are not kept.
#[derive(Clone, Default)]
pub struct KeptRuns {
    #[cfg(feature = "store")]
    database: Option<Database>,
    /// The last search over what was said.
    #[cfg(feature = "store")]
    last_search: Arc<AtomicU64>,
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

    /// Begins a search: earlier ones are not wanted any more.
    pub fn begin_search(&self, request: RequestId) {
        self.last_search.fetch_max(request.0, Ordering::Relaxed);
    }

    /// Whether no search has begun after this one.
    pub fn is_last_search(&self, request: RequestId) -> bool {
        self.last_search.load(Ordering::Relaxed) == request.0
    }
}
