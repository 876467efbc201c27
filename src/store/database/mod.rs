//! All runs in one SQLite file. Writes go through one thread of the process, which stores the groups
//! of all runs that wait in one transaction; reads have connections of their own.

mod check;
mod error;
mod import;
pub mod lock;
pub mod names;
mod numbers;
pub mod owner;
mod read;
pub mod removal;
pub mod rows;
pub mod said;
pub mod said_places;
mod said_rows;
mod schema;
mod waiting_words;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};

use self::lock::{LockClock, LockWaits};
use self::owner::Owner;
use self::writer::Writer;
use crate::base::private;

pub use self::error::{OpenError, StoreError};

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
        drop(private::append(path)?);
        let is_local = !is_on_network(path);
        let mut connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(lock::ATTEMPT)?;
        // SQLite itself does not wait where two would wait for each other, as when both turn a new file
        // into one with a WAL.
        let opening = LockClock::new(&waits);
        let set = |name: &str, value: &dyn rusqlite::ToSql| {
            opening.wait(|| connection.pragma_update(None, name, value).map_err(OpenError::from))
        };
        // Of a new file; others keep theirs. A group is written page by page, a call of the system each.
        set("page_size", &PAGE_BYTES)?;
        // On a network file system processes of other machines cannot share a WAL.
        set("journal_mode", &if is_local { "WAL" } else { "DELETE" })?;
        set("synchronous", &"FULL")?;
        set("foreign_keys", &true)?;
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
    connection.busy_timeout(lock::ATTEMPT)?;
    Ok(connection)
}

/// Whether a file is on a network file system, as far as the system says so.
fn is_on_network(path: &Path) -> bool {
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
