//! What can be wrong with the database.

use rusqlite::ErrorCode;

use crate::store::{AppendError, ReadError};

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
    /// No database at all.
    #[error("the file is not a database")]
    NotDatabase,
    /// The database cannot be read or written.
    #[error("{0}")]
    Store(StoreError),
    /// The file system's error.
    #[error("{0}")]
    File(#[from] std::io::Error),
}

impl OpenError {
    /// Whether the file has to be moved aside before runs can be kept there.
    pub fn is_of_contents(&self) -> bool {
        matches!(self, Self::Foreign | Self::NotDatabase | Self::Store(StoreError::Damaged(_)))
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotDatabase,
            _ => Self::Store(error.into()),
        }
    }
}

/// A database that cannot be read or written at the moment. A failed commit fails every change in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the lock, for longer than this one waits.
    #[error("another program holds the lock of the store")]
    Locked,
    /// There is no room.
    #[error("the disk is full")]
    Full,
    /// The disk refuses the write for another reason.
    #[error("the disk cannot be written: it is full, a quota is used up, or it is broken")]
    Disk,
    /// The file may not be written.
    #[error("the database cannot be written: it is read-only")]
    ReadOnly,
    /// The path does not name the open file any more: what is written now would be lost.
    #[error("the file of the store was removed or replaced while it was in use")]
    Gone,
    /// The file is not what SQLite has written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The log of a run is not what was stored.
    #[error("the store is damaged: event {at} cannot be read: {why}")]
    DamagedLog {
        /// Sequence number of the event.
        at: u64,
        /// What is wrong.
        why: String,
    },
    /// Any other error of SQLite.
    #[error("{0}")]
    Sqlite(String),
    /// The log refused a change.
    #[error("{0}")]
    Refused(#[from] AppendError),
    /// The thread that writes has ended.
    #[error("the database is closed")]
    Closed,
}

impl StoreError {
    /// What the operator can do about it; empty if nothing is known.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Locked => "end that program (a backup, a database browser), then try again",
            Self::Full | Self::Disk => "make room on the disk, then try again",
            Self::Damaged(_) | Self::DamagedLog { .. } => {
                "`roundtable doctor` says which file to move aside"
            }
            Self::Gone => "start roundtable again",
            _ => "",
        }
    }

    /// The error, and what to do about it.
    pub fn with_advice(&self) -> String {
        match self.advice() {
            "" => self.to_string(),
            advice => format!("{self}; {advice}"),
        }
    }

    /// Whether no other change can be stored either.
    pub(super) fn fails_all(&self) -> bool {
        matches!(self, Self::Locked | Self::ReadOnly | Self::Gone | Self::Closed)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::SystemIoFailure) => Self::Disk,
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(error.to_string())
            }
            _ => match value_damage(&error) {
                Some(why) => Self::Damaged(why),
                None => Self::Sqlite(error.to_string()),
            },
        }
    }
}

/// What is wrong with a value that this program cannot have stored; `None`: the error is another one.
pub(super) fn value_damage(error: &rusqlite::Error) -> Option<String> {
    match error {
        rusqlite::Error::IntegralValueOutOfRange(_, number) => {
            Some(format!("a number is {number}"))
        }
        rusqlite::Error::FromSqlConversionFailure(_, _, why) => Some(why.to_string()),
        rusqlite::Error::InvalidColumnType(_, name, kind) => Some(format!("{name} is {kind}")),
        rusqlite::Error::Utf8Error(_, why) => Some(why.to_string()),
        _ => None,
    }
}

impl From<ReadError> for StoreError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged { at, why } => Self::DamagedLog { at, why },
            error => Self::Sqlite(error.to_string()),
        }
    }
}

impl From<StoreError> for AppendError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refused) => refused,
            error => Self::Unsure(error.with_advice()),
        }
    }
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DamagedLog { at, why } => Self::Damaged { at, why },
            error => Self::Unreadable(error.to_string()),
        }
    }
}
