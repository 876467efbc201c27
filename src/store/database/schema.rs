//! The tables, and which files this program reads.
//!
//! Checks a whole store without changing it.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::reader::some_groups;
use super::rows::{COLUMNS, TextsBefore, read_row};
use super::{Database, OpenError, StoreError, as_number, connect, read_rows};
use crate::log::event::{RunId, Seq};
use crate::store::EventGroup;

/// Marks a SQLite file as roundtable's: `rtbl`.
pub const APPLICATION_ID: i32 = 0x7274_626c;

/// Version of the tables of this program. Until the first release no other version is read.
pub const VERSION: i64 = 6;

/// Runs, the groups of events of their logs, and an index of what was said.
///
/// A row of `run` has the number of the run in the index (`number`), the event up to which it is in the
/// index (`said`), its answer in a few words, and who its open questions ask, as JSON by their ids
/// (`waits_for`). The index has words and no text: the text is in the
/// log. The id of a row in it is the number of its run, shifted by 32 bits, and the number of its event.
/// The words are plain already, so the tokenizer only splits them.
///
/// The key of a group is small, because SQLite reads whole rows of a table without row ids to find a
/// place in it, and a group is large. `sum` is the checksum of its bytes, which every reader compares.
const TABLES: &str = "CREATE TABLE run (
        id TEXT PRIMARY KEY,
        started INTEGER NOT NULL,
        title TEXT NOT NULL DEFAULT '',
        scenario TEXT NOT NULL DEFAULT '',
        scenario_hash TEXT NOT NULL DEFAULT '',
        pattern TEXT NOT NULL DEFAULT '',
        live INTEGER NOT NULL DEFAULT 0,
        status TEXT NOT NULL DEFAULT 'open',
        result TEXT NOT NULL DEFAULT '',
        elapsed_ms INTEGER NOT NULL DEFAULT 0,
        tokens INTEGER NOT NULL DEFAULT 0,
        cost REAL,
        owner TEXT,
        epoch INTEGER NOT NULL DEFAULT 1,
        next INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        pinned INTEGER NOT NULL DEFAULT 0,
        deleted INTEGER,
        parent TEXT,
        forked_at TEXT,
        number INTEGER,
        said INTEGER NOT NULL DEFAULT 0,
        answer TEXT,
        waits_for TEXT
    ) STRICT;
    CREATE INDEX run_by_start ON run (started DESC, id DESC);
    CREATE UNIQUE INDEX run_by_number ON run (number);
    CREATE TABLE event_group (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        first INTEGER NOT NULL,
        n INTEGER NOT NULL,
        bytes BLOB NOT NULL,
        sum INTEGER NOT NULL,
        UNIQUE (run, first)
    ) STRICT;
    CREATE VIRTUAL TABLE said USING fts5 (
        words, content = '', contentless_delete = 1, tokenize = 'ascii'
    );
    CREATE TRIGGER said_removed AFTER DELETE ON run WHEN old.number IS NOT NULL BEGIN
        DELETE FROM said WHERE rowid BETWEEN old.number << 32 AND (old.number << 32) + 4294967295;
    END;";

/// Creates the tables in a new file.
///
/// # Errors
/// [`OpenError::Foreign`], [`OpenError::Newer`] and [`OpenError::Older`] if the file is not to be
/// written.
pub fn prepare(connection: &mut Connection) -> Result<(), OpenError> {
    // Most opens find the tables, without a lock.
    if application_id(connection)? == APPLICATION_ID {
        return check_version(connection);
    }
    // Two processes may open a new file at the same time: the second one finds the tables.
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: i64 =
        change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application_id(&change)? != 0 || tables > 0 {
        return check_version(&change);
    }
    change.execute_batch(TABLES)?;
    change.pragma_update(None, "application_id", APPLICATION_ID)?;
    change.pragma_update(None, "user_version", VERSION)?;
    change.commit()?;
    Ok(())
}

/// Whether this program can read the tables of a file.
///
/// # Errors
/// As [`prepare`].
pub fn check_version(connection: &Connection) -> Result<(), OpenError> {
    if application_id(connection)? != APPLICATION_ID {
        return Err(OpenError::Foreign);
    }
    let found = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found {
        VERSION => Ok(()),
        found if found > VERSION => Err(OpenError::Newer { found, known: VERSION }),
        found => Err(OpenError::Older { found, known: VERSION }),
    }
}

fn application_id(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// Most damages that are named.
const MAX_DAMAGES: usize = 5;

/// What a store has, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreReport {
    pub runs: u64,
    /// What is damaged, one sentence each, at most five.
    pub damage: Vec<String>,
}

impl Database {
    /// Checks the file and each group of events in it. Nothing is created or changed. Blocks for as long as reading all of it takes.
    ///
    /// # Errors
    /// See [`OpenError`]: it cannot be checked at all.
    pub fn check(path: &Path) -> Result<StoreReport, OpenError> {
        let connection = connect(path)?;
        check_version(&connection)?;
        let mut report = StoreReport::default();
        match check_structure(&connection) {
            Ok(damage) => report.damage = damage,
            Err(StoreError::Damaged(why)) => report.damage.push(why),
            Err(error) => return Err(OpenError::Store(error)),
        }
        if report.damage.is_empty() {
            check_runs(&connection, &mut report).map_err(OpenError::Store)?;
        }
        Ok(report)
    }
}

/// What SQLite finds wrong with its file.
fn check_structure(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut query = connection.prepare(&format!("PRAGMA quick_check({MAX_DAMAGES})"))?;
    let found = query.query_map([], |row| row.get::<_, String>(0))?;
    let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(found.into_iter().filter(|text| text != "ok").collect())
}

fn check_runs(connection: &Connection, report: &mut StoreReport) -> Result<(), StoreError> {
    let sql = format!("SELECT {COLUMNS}, said FROM run WHERE next <> 0 ORDER BY rowid");
    let mut before = TextsBefore::default();
    let (ids, damage) = read_rows(&mut connection.prepare(&sql)?.query([])?, |row| {
        as_number(row, 19)?;
        Ok(read_row(row, &mut before, &mut |_| false)?.id)
    })?;
    report.runs = (ids.len() + damage.len()) as u64;
    report.damage = damage;
    for id in ids {
        match check_log(connection, &id) {
            Ok(()) => {}
            Err(StoreError::DamagedLog { at, why }) => {
                report.damage.push(format!("{id}: event {at} cannot be read: {why}"));
            }
            Err(StoreError::Damaged(why)) => report.damage.push(format!("{id}: {why}")),
            Err(error) => return Err(error),
        }
    }
    report.damage.truncate(MAX_DAMAGES);
    let orphan = "SELECT run FROM event_group WHERE run NOT IN (SELECT id FROM run) LIMIT 1";
    let orphan: Option<String> = connection.query_row(orphan, [], |row| row.get(0)).optional()?;
    report.damage.extend(orphan.map(|run| format!("{run}: its row is missing")));
    Ok(())
}

fn check_log(connection: &Connection, run: &RunId) -> Result<(), StoreError> {
    let mut from = Seq(0);
    while let Some((groups, _)) = some_groups(connection, run, from)? {
        let Some(next) = groups.last().map(EventGroup::next) else { break };
        from = next;
    }
    Ok(())
}
