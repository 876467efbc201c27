//! All runs in one SQLite file. Writes go through one thread of the process; reads have connections
//! of their own. Failed statements and commits are [`StoreError`]s, never values.
//!
//! Each process holds a lock on a file of its own next to the database until it ends, for any reason.
//! So a run is interrupted if the file of its owner is not locked. (Process numbers repeat, and
//! differ between containers.)

mod reader;
pub mod removal;
pub mod rows;
mod schema;
pub mod text_index;
pub mod writer;

use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, Rows};

use self::writer::{LockClock, LockWaits, Writer};
use super::{AppendError, ReadError};
use crate::base::private_file;

/// Connections for reading that are kept open.
const MAX_IDLE: usize = 4;

/// The runs of this user on this machine. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Database(Arc<Shared>);

/// The order of the fields is that in which they are closed: SQLite copies its log into the file with the
/// last connection, if that one may write.
struct Shared {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    writer: Writer,
    owner: Owner,
    is_local: bool,
    waits: LockWaits,
    reads: LockClock,
}

/// Size of the pages of a new file.
const PAGE_BYTES: u32 = 16 << 10;

impl Database {
    /// Opens the database; creates it (mode 0600) and its folder (0700) if they are missing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, LockWaits::default())
    }

    /// The same; `waits` reports waits for another process.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_with(path: &Path, waits: LockWaits) -> Result<Self, OpenError> {
        // Creates the file with its mode; SQLite gives its other files the same mode.
        drop(private_file::append(path)?);
        let is_local = !is_on_network(path);
        let mut connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(writer::LOCK_ATTEMPT)?;
        // SQLite itself does not wait where two would wait for each other, as when both turn a new file
        // into one with a WAL.
        let opening = LockClock::new(&waits);
        let set = |name: &str, value: &dyn rusqlite::ToSql| {
            opening.wait(|| connection.pragma_update(None, name, value).map_err(OpenError::from))
        };
        // Of a new file; others keep theirs. A group is written page by page, a call of the system each.
        set("page_size", &PAGE_BYTES)?;
        // The same. It also says that the file never had pages with removed texts: see `purge`.
        if std::fs::metadata(path)?.len() == 0 {
            set("auto_vacuum", &"INCREMENTAL")?;
        }
        // On a network file system processes of other machines cannot share a WAL.
        set("journal_mode", &if is_local { "WAL" } else { "DELETE" })?;
        set("synchronous", &"FULL")?;
        set("foreign_keys", &true)?;
        // What is removed is overwritten, and the log is cut when it was copied.
        set("secure_delete", &true)?;
        set("journal_size_limit", &0)?;
        opening.wait(|| schema::prepare(&mut connection))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let owner = Owner::new(&folder.join("owners"))?;
        let writer = Writer::start(connection, path, &waits)?;
        let (path, idle) = (path.to_owned(), Mutex::default());
        let reads = LockClock::new(&waits);
        Ok(Self(Arc::new(Shared { path, idle, writer, owner, is_local, waits, reads })))
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether the file is on this machine, not on a network file system.
    pub fn is_local(&self) -> bool {
        self.0.is_local
    }

    /// This process as the owner of runs.
    pub fn owner(&self) -> &Owner {
        &self.0.owner
    }

    /// Its waits for other processes.
    pub fn waits(&self) -> &LockWaits {
        &self.0.waits
    }

    fn writer(&self) -> &Writer {
        &self.0.writer
    }

    /// Copies SQLite's log into the file, so that a copy of the file alone has every run. Blocks.
    pub fn checkpoint(&self) {
        // Connections that are between two reads do not hinder it.
        self.writer().checkpoint();
    }

    /// Overwrites what removed runs have left in the file, in the index of words and in SQLite's log, and
    /// shortens the file. `whole`: writes the whole file again, which takes seconds for a gigabyte; a small
    /// file, and one of a version that did not overwrite, is always written again. Other processes can
    /// read meanwhile. Blocks.
    ///
    /// # Errors
    /// The database's error: another process writes, or the disk has no room for a second copy.
    pub fn purge(&self, whole: bool) -> Result<(), StoreError> {
        self.writer().purge(whole).map(|_| ())
    }

    /// Whether the file was never purged and a version wrote it that did not overwrite what it removed. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn is_unpurged(&self) -> Result<bool, StoreError> {
        let mode = self.reading(|connection| {
            connection.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0))
        });
        mode.map(|mode| mode == 0)
    }

    /// Reads with a connection that writes nothing, again if another process holds the lock. Blocks: call
    /// it where blocking is allowed.
    ///
    /// # Errors
    /// The database's error.
    pub fn reading<T, E: Into<StoreError>>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        self.0.reads.wait(|| {
            let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match idle {
                Some(connection) => connection,
                None => connect(&self.0.path)?,
            };
            let found = work(&connection).map_err(Into::into)?;
            let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE {
                idle.push(connection);
            }
            Ok(found)
        })
    }

    /// Limits the size of the file, as a full disk does.
    ///
    /// # Errors
    /// The database's error.
    #[cfg(test)]
    pub fn limit_pages(&self, pages: Option<i64>) -> Result<(), StoreError> {
        self.with_writer(&format!("PRAGMA max_page_count = {}", pages.unwrap_or(1 << 30)))
    }

    /// Executes a statement in the connection that writes.
    ///
    /// # Errors
    /// The database's error.
    #[cfg(test)]
    pub fn with_writer(&self, sql: &str) -> Result<(), StoreError> {
        let sql = sql.to_owned();
        let change = Box::new(move |connection: &Connection| {
            connection.execute_batch(&sql)?;
            Ok(Ok(0))
        });
        self.writer().wait(change).map(|_| ())
    }
}

/// A connection that writes nothing.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(writer::LOCK_ATTEMPT)?;
    Ok(connection)
}

/// Whether a file is on a network file system, if the system can tell.
pub(super) fn is_on_network(path: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        /// NFS, SMB, CIFS, SMB2, 9P, AFS, Ceph, Coda, and FUSE, which may be anything (sshfs).
        const NETWORK: [u64; 9] = [
            0x6969,
            0x517b,
            0xff53_4d42,
            0xfe53_4d42,
            0x0102_1997,
            0x5346_414f,
            0x00c3_6400,
            0x7375_7245,
            0x6573_5546,
        ];
        rustix::fs::statfs(path)
            .is_ok_and(|it| u64::try_from(it.f_type).is_ok_and(|kind| NETWORK.contains(&kind)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        false
    }
}

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
    /// An earlier version of roundtable has written it.
    #[error(
        "an older version of roundtable wrote it (its tables have version {found}, this program reads \
         {known})"
    )]
    Older {
        /// Version of the tables.
        found: i64,
        /// The version that this program reads.
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
        matches!(
            self,
            Self::Older { .. }
                | Self::Foreign
                | Self::NotDatabase
                | Self::Store(StoreError::Damaged(_))
        )
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
    /// The path does not name the open file any more: new data would be lost.
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
fn value_damage(error: &rusqlite::Error) -> Option<String> {
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

/// This process as the owner of runs.
pub struct Owner {
    name: String,
    folder: PathBuf,
    file: File,
}

impl Owner {
    /// Creates and locks the file of this process.
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        private_file::make_dir(folder)?;
        loop {
            let name = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
            let path = folder.join(&name);
            let file = private_file::append(&path)?;
            match file.try_lock() {
                // Another process may have taken the file for one left over, and removed it.
                Ok(()) if path.exists() => {
                    let owner = Self { name, folder: folder.to_owned(), file };
                    owner.remove_dead();
                    return Ok(owner);
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Its name, as in the rows of its runs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the process with this name still runs.
    pub fn is_alive(&self, name: &str) -> bool {
        if name == self.name {
            return true;
        }
        is_file_name(name) && is_locked(&self.folder.join(name))
    }

    /// Removes the files of processes that have ended.
    fn remove_dead(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_file_name(name)) else { continue };
            let Ok(file) = OpenOptions::new().append(true).open(entry.path()) else {
                continue;
            };
            // Removed under its lock, so that a process that is about to lock it sees that.
            if name != self.name && file.try_lock().is_ok() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(&self.name));
        let _ = self.file.unlock();
    }
}

/// The name of an owner in a row is data: it must not name a file elsewhere.
fn is_file_name(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_locked(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().append(true).open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// A number as SQLite stores it.
pub(super) fn as_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column of such a number.
pub(crate) fn as_number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// The values of each row, and the faults of damaged rows, one sentence each. The first column is the
/// id of the run.
pub(crate) fn read_rows<T>(
    rows: &mut Rows<'_>,
    mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<(Vec<T>, Vec<String>)> {
    let (mut found, mut damage) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(value) => found.push(value),
            Err(error) => {
                let why = value_damage(&error).ok_or(error)?;
                let run = match row.get_ref(0)? {
                    ValueRef::Text(id) | ValueRef::Blob(id) => String::from_utf8_lossy(id),
                    _ => "a run".into(),
                };
                damage.push(format!("{run}: its row cannot be read: {why}"));
            }
        }
    }
    Ok((found, damage))
}
