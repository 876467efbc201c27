//! What can be wrong with the database.

use rusqlite::ErrorCode;

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A later version of roundtable has written it.
    #[error(
        "a newer version of roundtable wrote it (its tables have version {found}, this program knows \
         {known}); update roundtable"
    )]
    Newer {
        /// Version of the tables.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// Another program's file.
    #[error("it is the database of another program")]
    Foreign,
    /// The database's error.
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    /// The file system's error.
    #[error("{0}")]
    File(#[from] std::io::Error),
}

impl OpenError {
    /// Whether another process has the file at the moment.
    pub(super) fn is_busy(&self) -> bool {
        let code = match self {
            Self::Database(error) => error.sqlite_error_code(),
            Self::Newer { .. } | Self::Foreign | Self::File(_) => None,
        };
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }
}

/// A database that cannot be read or written at the moment.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database's error.
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    /// The thread that writes has ended.
    #[error("the database is closed")]
    Closed,
}
