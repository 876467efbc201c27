//! The names of kept runs, for completions in a shell.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// Most names that are offered.
const MAX_NAMES: u32 = 50;

/// How long it waits for another process that has the file for itself.
const PATIENCE: Duration = Duration::from_millis(100);

/// What a shell shows of a kept run.
#[derive(Clone, Debug)]
pub struct RunName {
    /// Its id.
    pub id: String,
    /// Its scenario.
    pub scenario: String,
    /// Its status, or why it stopped.
    pub status: String,
}

/// The newest runs of the database. None if it does not exist or cannot be read: nothing is created or
/// brought up to date, and nothing is reported. Blocks.
pub fn newest_names(path: &Path) -> Vec<RunName> {
    read(path).unwrap_or_default()
}

fn read(path: &Path) -> rusqlite::Result<Vec<RunName>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    let mut query = connection.prepare(
        "SELECT id, scenario, status FROM run WHERE deleted IS NULL ORDER BY started DESC, id DESC LIMIT ?1",
    )?;
    let rows = query.query_map([MAX_NAMES], |row| {
        Ok(RunName { id: row.get(0)?, scenario: row.get(1)?, status: row.get(2)? })
    })?;
    rows.collect()
}
