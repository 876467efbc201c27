//! The tables, and how a file of an earlier version becomes one of this version.
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

/// The steps from one version of the tables to the next. The version of a file is the number of steps
/// that were applied to it. A step is never changed once it was released.
const STEPS: &[&str] = &[RUNS, SAID, GROUPS, NO_OUTCOMES, CHECKED];

/// Version 1: runs and their logs.
const RUNS: &str = "CREATE TABLE run (
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
        forked_at TEXT
    ) STRICT;
    CREATE INDEX run_by_start ON run (started DESC, id DESC);
    CREATE TABLE segment (
        run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        first INTEGER NOT NULL,
        n INTEGER NOT NULL,
        bytes BLOB NOT NULL,
        PRIMARY KEY (run, first)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE outcome (
        run TEXT PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
        summary TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;";

/// Version 2: an index of what was said. It has words and no text: the text is in the log. The id of a
/// row is the number of its run, shifted by 32 bits, and the number of its event. `said` is the number
/// of the event up to which a run is in the index: 0 for runs of version 1, which are added when
/// somebody searches. The words are plain already, so the tokenizer only splits them.
const SAID: &str = "ALTER TABLE run ADD COLUMN number INTEGER;
    ALTER TABLE run ADD COLUMN said INTEGER NOT NULL DEFAULT 0;
    CREATE UNIQUE INDEX run_by_number ON run (number);
    CREATE VIRTUAL TABLE said USING fts5 (
        words, content = '', contentless_delete = 1, tokenize = 'ascii'
    );
    CREATE TRIGGER said_removed AFTER DELETE ON run WHEN old.number IS NOT NULL BEGIN
        DELETE FROM said WHERE rowid BETWEEN old.number << 32 AND (old.number << 32) + 4294967295;
    END;";

/// Version 3: groups in a table whose key is small. SQLite reads whole rows of a table without row ids
/// to find a place in it, and a group is large. The groups of earlier versions stay where they are;
/// `log` has all of them. Read it with `first` among the columns, and ordered by it, so that SQLite
/// searches both tables.
const GROUPS: &str = "CREATE TABLE event_group (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        first INTEGER NOT NULL,
        n INTEGER NOT NULL,
        bytes BLOB NOT NULL,
        UNIQUE (run, first)
    ) STRICT;
    CREATE VIEW log AS
        SELECT run, first, n, bytes FROM event_group
        UNION ALL SELECT run, first, n, bytes FROM segment;";

/// Version 4: an outcome is folded from the log of its run; nothing read the copy.
const NO_OUTCOMES: &str = "DROP TABLE outcome;";

/// Version 5: the checksum of a group, which every reader compares, and the answer of a run in a few
/// words: a decision, a level, a route. Groups of earlier versions have no checksum.
const CHECKED: &str = "ALTER TABLE event_group ADD COLUMN sum INTEGER;
    DROP VIEW log;
    CREATE VIEW log AS
        SELECT run, first, n, bytes, sum FROM event_group
        UNION ALL SELECT run, first, n, bytes, NULL FROM segment;
    ALTER TABLE run ADD COLUMN answer TEXT;";

/// The newest version of the tables.
pub fn newest() -> i64 {
    STEPS.len() as i64
}

/// Creates the tables in a new file, or brings those of an earlier version up to date.
///
/// # Errors
/// [`OpenError::Foreign`] and [`OpenError::Newer`] if the file is not to be written.
pub fn prepare(connection: &mut Connection) -> Result<(), OpenError> {
    // Most opens find everything done, without a lock.
    if version(connection)? == newest() && application_id(connection)? == APPLICATION_ID {
        return Ok(());
    }
    // Two processes may open a new file at the same time: the second one finds it done.
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (from, id) = (version(&change)?, application_id(&change)?);
    let tables: i64 =
        change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if id != APPLICATION_ID && (id != 0 || tables > 0) {
        return Err(OpenError::Foreign);
    }
    if from > newest() {
        return Err(OpenError::Newer { found: from, known: newest() });
    }
    let done = usize::try_from(from).unwrap_or_default();
    for step in STEPS.iter().skip(done) {
        change.execute_batch(step)?;
    }
    change.pragma_update(None, "application_id", APPLICATION_ID)?;
    change.pragma_update(None, "user_version", newest())?;
    change.commit()?;
    Ok(())
}

/// The version of the tables of a file that this program can read.
///
/// # Errors
/// As [`prepare`].
pub fn known_version(connection: &Connection) -> Result<i64, OpenError> {
    let found = version(connection)?;
    if application_id(connection)? != APPLICATION_ID {
        return Err(OpenError::Foreign);
    }
    match found > newest() {
        true => Err(OpenError::Newer { found, known: newest() }),
        false => Ok(found),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn application_id(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// Most damages that are named.
const MAX_DAMAGES: usize = 5;

/// What a store has, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreReport {
    /// Number of runs.
    pub runs: u64,
    /// What is damaged, one sentence each, at most five.
    pub damage: Vec<String>,
}

impl Database {
    /// Checks the file and each group of events in it. Nothing is created, changed or brought up to date.
    /// Blocks for as long as reading all of it takes.
    ///
    /// # Errors
    /// See [`OpenError`]: it cannot be checked at all.
    pub fn check(path: &Path) -> Result<StoreReport, OpenError> {
        let connection = connect(path)?;
        let version = known_version(&connection)?;
        let mut report = StoreReport::default();
        match check_structure(&connection) {
            Ok(damage) => report.damage = damage,
            Err(StoreError::Damaged(why)) => report.damage.push(why),
            Err(error) => return Err(OpenError::Store(error)),
        }
        // Of an earlier version no group has a checksum, and the next command brings it up to date.
        if report.damage.is_empty() && version == newest() {
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
        as_number(row, 18)?;
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
