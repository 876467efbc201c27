//! All runs in one SQLite file. Writes go through one thread of the process, which stores the groups
//! of all runs that wait in one transaction; reads have connections of their own.

mod error;
mod import;
pub mod names;
mod numbers;
pub mod owner;
mod read;
pub mod removal;
pub mod rows;
pub mod said;
mod said_places;
mod said_rows;
mod schema;
mod waiting_words;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use self::owner::Owner;
use self::writer::Writer;
use crate::base::private;

pub use self::error::{OpenError, StoreError};

/// How long a connection waits for another process that writes.
const BUSY: Duration = Duration::from_secs(10);

/// Connections for reading that are kept open.
const MAX_IDLE: usize = 4;

/// The runs of this user on this machine. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Database(Arc<Shared>);

struct Shared {
    path: PathBuf,
    writer: Writer,
    owner: Owner,
    idle: Mutex<Vec<Connection>>,
    is_local: bool,
}

/// Repeats a step of opening as long as another process has the file, at most [`BUSY`]. SQLite itself
/// does not wait where two would wait for each other, as when both turn a new file into one with a WAL.
fn when_free<T, E: Into<OpenError>>(
    mut step: impl FnMut() -> Result<T, E>,
) -> Result<T, OpenError> {
    /// Time between two attempts.
    const PAUSE: Duration = Duration::from_millis(5);
    let began = Instant::now();
    loop {
        match step().map_err(Into::into) {
            Err(error) if error.is_busy() && began.elapsed() < BUSY => thread::sleep(PAUSE),
            result => return result,
        }
    }
}

/// Size of the pages of a new file.
const PAGE_BYTES: u32 = 16 << 10;

impl Database {
    /// Opens the database; creates it (mode 0600) and its folder (0700) if they are missing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        // Creates the file with its mode; SQLite gives its other files the same mode.
        drop(private::append(path)?);
        let is_local = !is_on_network(path);
        let mut connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(BUSY)?;
        // Of a new file; others keep theirs. A group is written page by page, a call of the system each.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        // On a network file system processes of other machines cannot share a WAL.
        let journal = if is_local { "WAL" } else { "DELETE" };
        when_free(|| connection.pragma_update(None, "journal_mode", journal))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        when_free(|| schema::prepare(&mut connection))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let owner = Owner::new(&folder.join("owners"))?;
        let writer = Writer::start(connection)?;
        let (path, idle) = (path.to_owned(), Mutex::default());
        Ok(Self(Arc::new(Shared { path, writer, owner, idle, is_local })))
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

    fn writer(&self) -> &Writer {
        &self.0.writer
    }

    /// Reads with a connection that writes nothing. Blocks: call it where blocking is allowed.
    ///
    /// # Errors
    /// The database's error.
    pub fn reading<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let found = work(&connection)?;
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        Ok(found)
    }

    /// Limits the size of the file, as a full disk does.
    ///
    /// # Errors
    /// The database's error.
    #[cfg(test)]
    pub fn limit_pages(&self, pages: Option<i64>) -> Result<(), StoreError> {
        let pages = pages.unwrap_or(1 << 30);
        let change = Box::new(move |connection: &Connection| {
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
            Ok(Ok(0))
        });
        self.writer().wait(change).map(|_| ())
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(
            &self.0.path,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    }
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
