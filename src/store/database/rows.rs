//! The table of runs: the values that the list of runs shows, and the operations on whole runs.
//!
//! The names of kept runs, for completions in a shell.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, ToSql, params};

use super::reader::open_questions;
use super::writer::Change;
use super::{Database, StoreError, as_integer, as_number, read_rows};
use crate::log::event::{RunId, Seq};
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::store::AppendError;

/// What a row says of the course of a run; it is updated while the run plays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCourse {
    /// [`RunRow::title`], which the trace of a watched program gives; `None`: that of the row stays.
    pub title: Option<Arc<str>>,
    /// Time without pauses in milliseconds.
    pub elapsed_ms: u64,
    /// Tokens used.
    pub tokens: u64,
    /// US dollars, estimated; `None`: unknown.
    pub cost_usd: Option<f64>,
    /// [`RunRow::result`].
    pub result: Option<Arc<str>>,
    /// The stop reason, once the run has ended.
    pub ended: Option<String>,
}

/// The rows of runs that can be read, and the damage of those that cannot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptRows {
    pub rows: Vec<RunRow>,
    /// What is wrong with the others, one sentence each.
    pub damage: Vec<String>,
}

/// Most damages that an error names.
const MAX_DAMAGES: usize = 5;

impl KeptRows {
    /// The damage as one error; `None`: each row can be read.
    pub fn error(&self) -> Option<StoreError> {
        let named = self.damage.iter().take(MAX_DAMAGES).map(String::as_str);
        let mut text = named.collect::<Vec<_>>().join("; ");
        let more = self.damage.len().saturating_sub(MAX_DAMAGES);
        if more > 0 {
            text.push_str(&format!("; and {more} more"));
        }
        (!text.is_empty()).then_some(StoreError::Damaged(text))
    }

    /// The rows, if each can be read.
    fn whole(self) -> Result<Vec<RunRow>, StoreError> {
        self.error().map_or(Ok(self.rows), Err)
    }
}

/// What [`read_row`] reads.
pub(super) const COLUMNS: &str = "id, started, title, scenario, pattern, live, status, result, \
     elapsed_ms, tokens, cost, owner, next, bytes, pinned, parent, forked_at, answer, waits_for";

impl Database {
    /// Makes a change and returns how many rows it changed, once that is stored. Blocks.
    pub(crate) fn change<T>(
        &self,
        values: T,
        work: impl Fn(&Connection, &T) -> rusqlite::Result<u64> + Send + 'static,
    ) -> Result<u64, StoreError>
    where
        T: Send + 'static,
    {
        let change = Box::new(move |connection: &Connection| work(connection, &values).map(Ok));
        self.writer().wait(change)
    }

    /// Takes an id for a new run of this process; `false`: it is taken. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn reserve(&self, run: &RunId, started_ms: u64) -> Result<bool, StoreError> {
        let values = (run.clone(), self.owner().name().to_owned(), started_ms);
        let inserted = self.change(values, |connection, (run, owner, started)| {
            connection
                .prepare_cached(
                    "INSERT INTO run (id, started, owner) VALUES (?1, ?2, ?3)
                     ON CONFLICT (id) DO NOTHING",
                )?
                .execute(params![run.as_str(), as_integer(*started), owner])
                .map(|rows| rows as u64)
        })?;
        Ok(inserted == 1)
    }

    /// The process that the row of a run names; `None`: it names none, or there is no such run. Blocks.
    pub(crate) fn holder(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        let found: Option<Option<String>> = self.reading(|connection| {
            connection
                .prepare_cached("SELECT owner FROM run WHERE id = ?1")?
                .query_row([run.as_str()], |row| row.get(0))
                .optional()
        })?;
        Ok(found.flatten())
    }

    /// Stores what the head of a run says, and the SHA-256 of the scenario's file, in hexadecimal. Makes
    /// the row, if the id could not be [reserved](Self::reserve); `false`: another process has it.
    /// Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn begin(&self, row: &RunRow, scenario_hash: &str) -> Result<bool, StoreError> {
        let values = (row.clone(), scenario_hash.to_owned(), self.owner().name().to_owned());
        let written = self.change(values, |connection, (row, scenario_hash, owner)| {
            connection
                .prepare_cached(
                    "INSERT INTO run (id, started, title, scenario, scenario_hash, pattern, live,
                     parent, forked_at, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                     ON CONFLICT (id) DO UPDATE SET started = ?2, title = ?3, scenario = ?4,
                     scenario_hash = ?5, pattern = ?6, live = ?7, parent = ?8, forked_at = ?9
                     WHERE owner = ?10",
                )?
                .execute(params![
                    row.id.as_str(),
                    as_integer(row.started_ms),
                    row.title,
                    row.scenario,
                    scenario_hash,
                    row.pattern,
                    row.live,
                    row.parent.as_ref().map(RunId::as_str),
                    row.forked_at,
                    owner
                ])
                .map(|rows| rows as u64)
        })?;
        Ok(written == 1)
    }

    /// Whether this process plays a run: its row says so. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn is_own(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(self.holder(run)?.as_deref() == Some(self.owner().name()))
    }

    /// Whether a process plays a run. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn is_played(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(self.holder(run)?.is_some_and(|owner| self.owner().is_alive(&owner)))
    }

    /// Stores how far a run is. Resolves once it survives a power failure.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub async fn update(&self, run: &RunId, course: &RunCourse) -> Result<(), AppendError> {
        let stored = self.writer().send(update_change(run, course), None).await;
        stored.unwrap_or(Err(StoreError::Closed)).map(|_| ()).map_err(AppendError::from)
    }

    /// Like [`update`](Self::update), but does not wait for another process that holds the lock. A run
    /// that was deleted needs no row. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn update_now(&self, run: &RunId, course: &RunCourse) -> Result<(), StoreError> {
        match self.writer().try_now(update_change(run, course)) {
            Ok(_) | Err(StoreError::Refused(AppendError::Gone)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The rows of runs, the newest first. A damaged row does not hide the others. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn runs(&self) -> Result<KeptRows, StoreError> {
        // In the order of the file, which is that of the starts but for a few: by the index each row
        // would be looked up.
        let sql =
            format!("SELECT {COLUMNS} FROM run NOT INDEXED WHERE deleted IS NULL AND next <> 0");
        let mut kept = self.rows(&sql, &[])?;
        kept.rows.reverse();
        kept.rows.sort_by(|a, b| (b.started_ms, &b.id).cmp(&(a.started_ms, &a.id)));
        Ok(kept)
    }

    /// The rows of runs that are interrupted, the newest first, without damaged ones. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn interrupted(&self) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run WHERE status = 'open' AND deleted IS NULL AND next <> 0
             ORDER BY started DESC, id DESC"
        );
        let mut rows = self.rows(&sql, &[])?.rows;
        rows.retain(|row| row.status == RunStatus::Interrupted);
        Ok(rows)
    }

    /// The row of one run. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn run(&self, id: &str) -> Result<Option<RunRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM run WHERE id = ?1 AND deleted IS NULL");
        Ok(self.rows(&sql, &[&id])?.whole()?.pop())
    }

    /// The rows of runs whose id begins with `prefix`, at most `most`. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn runs_with_prefix(&self, prefix: &str, most: u32) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM run WHERE substr(id, 1, length(?1)) = ?1 AND deleted IS NULL
             AND next <> 0 ORDER BY started DESC, id DESC LIMIT ?2"
        );
        self.rows(&sql, &[&prefix, &most])?.whole()
    }

    /// The row of the run that was started or imported `back` runs before the last one. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn nth_last(&self, back: u32) -> Result<Option<RunRow>, StoreError> {
        // Rows have the order in which they were made, also where the clock was set back.
        let sql = format!(
            "SELECT {COLUMNS} FROM run WHERE deleted IS NULL AND next <> 0
             ORDER BY rowid DESC LIMIT 1 OFFSET ?1"
        );
        Ok(self.rows(&sql, &[&back])?.whole()?.pop())
    }

    fn rows(&self, sql: &str, values: &[&dyn ToSql]) -> Result<KeptRows, StoreError> {
        self.reading(|connection| {
            let mut alive = std::collections::BTreeMap::new();
            let mut before = TextsBefore::default();
            let mut found = connection.prepare_cached(sql)?;
            let (rows, damage) = read_rows(&mut found.query(values)?, |row| {
                read_row(row, &mut before, &mut |owner| {
                    if let Some(known) = alive.get(owner) {
                        return *known;
                    }
                    let is_alive = self.owner().is_alive(owner);
                    alive.insert(owner.to_owned(), is_alive);
                    is_alive
                })
            })?;
            Ok::<_, rusqlite::Error>(KeptRows { rows, damage })
        })
    }

    /// Takes over a run whose process has ended, to continue it. Returns the number that its log
    /// continues with, or `None` if a process plays it, it has ended, or there is none. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn take_over(&self, run: &RunId) -> Result<Option<Seq>, StoreError> {
        // The holder is read first: if another process takes the run meanwhile, nothing is changed.
        let before = self.holder(run)?;
        match self.run(run.as_str())? {
            Some(row) if row.status == RunStatus::Interrupted => {}
            _ => return Ok(None),
        }
        let values = (run.clone(), before, self.owner().name().to_owned());
        let changed = self.change(values, |connection, (run, before, owner)| {
            connection
                .prepare_cached(
                    "UPDATE run SET owner = ?3, epoch = epoch + 1
                     WHERE id = ?1 AND owner IS ?2 AND status = 'open'",
                )?
                .execute(params![run.as_str(), before, owner])
                .map(|rows| rows as u64)
        })?;
        if changed == 0 { Ok(None) } else { self.next_event(run) }
    }
}

/// Writes how far a run is.
pub(super) fn update_change(run: &RunId, course: &RunCourse) -> Change {
    let (run, course) = (run.clone(), course.clone());
    Box::new(move |connection| {
        let (status, result) = match &course.ended {
            Some(reason) => ("ended", reason.as_str()),
            None => ("open", ""),
        };
        let rows = connection
            .prepare_cached(
                "UPDATE run SET elapsed_ms = ?2, tokens = ?3, cost = ?4, status = ?5,
                 result = ?6, answer = ?7, title = coalesce(?8, title) WHERE id = ?1",
            )?
            .execute(params![
                run.as_str(),
                as_integer(course.elapsed_ms),
                as_integer(course.tokens),
                course.cost_usd,
                status,
                result,
                course.result,
                course.title
            ])?;
        if rows == 0 {
            return Ok(Err(AppendError::Gone));
        }
        Ok(Ok(1))
    })
}

/// Texts of the row before: most runs of a list are of few scenarios, so a text is allocated once.
#[derive(Default)]
pub(crate) struct TextsBefore([Arc<str>; 3]);

impl TextsBefore {
    /// The text of this column, shared with the row before where it is the same.
    fn text(&mut self, row: &Row<'_>, column: usize, nth: usize) -> rusqlite::Result<Arc<str>> {
        let text = row.get_ref(column)?.as_str()?;
        let before = &mut self.0[nth];
        if **before != *text {
            *before = text.into();
        }
        Ok(Arc::clone(before))
    }
}

/// Reads a row of [`COLUMNS`].
pub(crate) fn read_row(
    row: &Row<'_>,
    before: &mut TextsBefore,
    is_alive: &mut dyn FnMut(&str) -> bool,
) -> rusqlite::Result<RunRow> {
    let owner = row.get_ref(11)?.as_str_or_null()?;
    let status = match row.get_ref(6)?.as_str()? {
        "open" if owner.is_some_and(is_alive) => RunStatus::Running,
        "open" => RunStatus::Interrupted,
        "ended" => RunStatus::Ended(row.get(7)?),
        other => return Err(FromSqlError::Other(format!("unknown status {other:?}").into()).into()),
    };
    let parent = row.get_ref(15)?.as_str_or_null()?;
    let waits_for = match status {
        RunStatus::Ended(_) => Vec::new(),
        _ => open_questions(row, 18)?.into_values().collect(),
    };
    Ok(RunRow {
        id: RunId::new(row.get_ref(0)?.as_str()?),
        started_ms: as_number(row, 1)?,
        title: before.text(row, 2, 0)?,
        scenario: before.text(row, 3, 1)?,
        pattern: before.text(row, 4, 2)?,
        live: row.get(5)?,
        status,
        waits_for,
        result: row.get_ref(17)?.as_str_or_null()?.map(Into::into),
        elapsed_ms: as_number(row, 8)?,
        tokens: as_number(row, 9)?,
        cost_usd: row.get(10)?,
        events: as_number(row, 12)?,
        bytes: as_number(row, 13)?,
        pinned: row.get(14)?,
        // No process of this machine has played it.
        imported: owner.is_none(),
        parent: parent.map(RunId::new),
        forked_at: row.get(16)?,
        runner: None,
        last: None,
    })
}

/// Most names that are offered.
const MAX_NAMES: u32 = 50;

/// How long it waits for another process that has the file for itself.
const PATIENCE: Duration = Duration::from_millis(100);

/// What a shell shows of a kept run.
#[derive(Clone, Debug)]
pub struct RunName {
    pub id: String,
    pub scenario: String,
    /// Its status, or why it stopped.
    pub status: String,
}

/// The newest runs of the database. None if it does not exist or cannot be read: nothing is created or
/// brought up to date, and nothing is reported. Blocks.
pub fn newest_names(path: &Path) -> Vec<RunName> {
    read_names(path).unwrap_or_default()
}

fn read_names(path: &Path) -> rusqlite::Result<Vec<RunName>> {
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
