//! The tables, and how a file of an earlier version becomes one of this version.

use rusqlite::{Connection, TransactionBehavior};

use super::error::OpenError;

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
