//! The store that the dashboard reads.

#[cfg(feature = "store")]
use crate::store::database::Database;

/// The store that the dashboard reads; empty where runs are not kept.
#[derive(Clone, Default)]
pub struct KeptRuns {
    #[cfg(feature = "store")]
    database: Option<Database>,
}

#[cfg(feature = "store")]
impl KeptRuns {
    /// The runs in this database.
    pub fn new(database: Option<Database>) -> Self {
        Self { database }
    }

    /// The database.
    pub fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }
}
