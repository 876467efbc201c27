//! The database as a [`RunLog`].

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream;
use futures::stream::{BoxStream, StreamExt};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::text_index::GroupWords;
use super::writer::Change;
use super::{Database, StoreError, as_integer, as_number};
use crate::log::event::{Event, RunId, Seq};
use crate::store::{AppendError, EventGroup, OpenQuestions, ReadError, RunLog};

/// Groups that are read at a time.
const GROUPS: u32 = 32;

/// Groups whose events are read at the same time, while those before them are used.
const READ_AHEAD: usize = 4;

/// How often the end of a log is looked at for what another process has appended.
const POLL: Duration = Duration::from_millis(100);

impl RunLog for Database {
    fn has_index(&self) -> bool {
        true
    }

    fn append<'a>(
        &'a self,
        run: &'a RunId,
        expect: Seq,
        group: &EventGroup,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        let words = GroupWords::of(run, group);
        let appended = self.writer().send(self.append_change(run, expect, group), words);
        Box::pin(async move {
            match appended.await {
                Ok(result) => result.map(Seq).map_err(AppendError::from),
                Err(_) => Err(StoreError::Closed.into()),
            }
        })
    }

    fn next<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            let (database, run) = (self.clone(), run.clone());
            match spawn_blocking(move || database.next_event(&run)).await {
                Ok(Ok(Some(next))) => Ok(next),
                Ok(Ok(None)) => Err(AppendError::Gone),
                Ok(Err(error)) => Err(error.into()),
                Err(error) => Err(AppendError::Unsure(error.to_string())),
            }
        })
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        groups(self, run, from, false)
    }

    fn tail<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        groups(self, run, from, true)
    }
}

fn append(
    connection: &Connection,
    run: &str,
    owner: &str,
    expect: Seq,
    group: &EventGroup,
) -> rusqlite::Result<Result<u64, AppendError>> {
    let held: Option<(i64, Option<String>)> = connection
        .prepare_cached("SELECT next, owner FROM run WHERE id = ?1")?
        .query_row([run], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((next, holder)) = held else { return Ok(Err(AppendError::Gone)) };
    if holder.as_deref() != Some(owner) || next != number(expect) || group.first() != expect {
        return Ok(Err(AppendError::Fenced));
    }
    connection
        .prepare_cached(
            "INSERT INTO event_group (run, first, n, bytes, sum) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![run, number(group.first()), group.len(), group.lines(), group.sum()])?;
    connection
        .prepare_cached("UPDATE run SET next = ?2, bytes = bytes + ?3 WHERE id = ?1")?
        .execute(params![run, number(group.next()), group.lines().len() as i64])?;
    if !group.questions().is_empty() {
        change_questions(connection, run, group)?;
    }
    Ok(Ok(group.next().0))
}

/// Updates who a run waits for with the questions of a group. The row says it in the transaction of the
/// events, so it is right also after the process was killed.
fn change_questions(
    connection: &Connection,
    run: &str,
    group: &EventGroup,
) -> rusqlite::Result<()> {
    let mut open = connection
        .prepare_cached("SELECT waits_for FROM run WHERE id = ?1")?
        .query_row([run], |row| open_questions(row, 0))?;
    group.questions().iter().for_each(|change| change.make(&mut open));
    let text = (!open.is_empty()).then(|| serde_json::to_string(&open)).transpose();
    let text = text.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    connection
        .prepare_cached("UPDATE run SET waits_for = ?2 WHERE id = ?1")?
        .execute(params![run, text])?;
    Ok(())
}

/// Who the open questions of a run ask, as the row of the run has it.
pub(super) fn open_questions(row: &Row<'_>, column: usize) -> rusqlite::Result<OpenQuestions> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else {
        return Ok(OpenQuestions::default());
    };
    serde_json::from_str(text).map_err(|error| FromSqlError::Other(error.into()).into())
}

/// A sequence number as SQLite stores it.
pub(crate) fn number(seq: Seq) -> i64 {
    as_integer(seq.0)
}

impl Database {
    /// Appends a group to the log of a run of this process.
    pub(super) fn append_change(&self, run: &RunId, expect: Seq, group: &EventGroup) -> Change {
        let (id, group) = (run.as_str().to_owned(), group.clone());
        let owner = self.owner().name().to_owned();
        Box::new(move |connection| append(connection, &id, &owner, expect, &group))
    }

    /// The sequence number that the log of a run continues with; `None`: there is no such run.
    /// Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn next_event(&self, run: &RunId) -> Result<Option<Seq>, StoreError> {
        self.reading(|connection| {
            connection
                .prepare_cached("SELECT next FROM run WHERE id = ?1")?
                .query_row([run.as_str()], |row| as_number(row, 0).map(Seq))
                .optional()
        })
    }

    /// The last event of a run; `None`: it has no event. Blocks.
    ///
    /// # Errors
    /// The database's error, also that the end of the log is damaged.
    pub fn last_event(&self, run: &RunId) -> Result<Option<Event>, StoreError> {
        self.reading(|connection| {
            let last = match group_before(connection, run, Seq(u64::MAX))? {
                Some(group) => group.events(Seq(group.next().0.saturating_sub(1)))?.pop(),
                None => None,
            };
            Ok::<_, StoreError>(last.map(|event| Event::clone(&event)))
        })
    }

    /// Some of the groups of a run, from the one that has the event `from`, and whether the run is
    /// still open; `None`: there is no such run. Blocks.
    ///
    /// # Errors
    /// The database's error, also that something is missing or not what was stored.
    pub fn some_groups(
        &self,
        run: &RunId,
        from: Seq,
    ) -> Result<Option<(Vec<EventGroup>, bool)>, StoreError> {
        self.reading(|connection| some_groups(connection, run, from))
    }
}

/// Some of the groups of a run: see [`Database::some_groups`].
pub(crate) fn some_groups(
    connection: &Connection,
    run: &RunId,
    from: Seq,
) -> Result<Option<(Vec<EventGroup>, bool)>, StoreError> {
    // One view of the file: else a group could be appended, or the run removed, between two reads.
    let view = connection.unchecked_transaction()?;
    let found = view
        .prepare_cached("SELECT status, next FROM run WHERE id = ?1")?
        .query_row([run.as_str()], |row| {
            Ok((row.get_ref(0)?.as_str()? == "open", Seq(as_number(row, 1)?)))
        })
        .optional()?;
    let Some((is_open, end)) = found else { return Ok(None) };
    if from >= end {
        return Ok(Some((Vec::new(), is_open)));
    }
    let missing = |at: Seq| ReadError::Damaged { at: at.0, why: "it is missing".to_owned() };
    let first: Option<i64> = view
        .prepare_cached(
            "SELECT first FROM event_group WHERE run = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1",
        )?
        .query_row(params![run.as_str(), number(from)], |row| row.get(0))
        .optional()?;
    let mut query = view.prepare_cached(
        "SELECT first, n, bytes, sum FROM event_group WHERE run = ?1 AND first >= ?2 ORDER BY first LIMIT ?3",
    )?;
    let mut rows = query.query(params![run.as_str(), first, GROUPS])?;
    let mut groups: Vec<EventGroup> = Vec::new();
    while let Some(row) = rows.next()? {
        let group = group_of(row)?;
        let expected = groups.last().map_or(group.first().min(from), EventGroup::next);
        if group.first() != expected {
            return Err(missing(expected).into());
        }
        groups.push(group);
    }
    let next = groups.last().map_or(Seq(0), EventGroup::next);
    if next <= from || (next < end && groups.len() < GROUPS as usize) {
        return Err(missing(next.max(from)).into());
    }
    Ok(Some((groups, is_open)))
}

/// The group that has an event, or the last one before it, if it is whole; `None`: there is no group.
pub(super) fn group_before(
    connection: &Connection,
    run: &RunId,
    seq: Seq,
) -> Result<Option<EventGroup>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT first, n, bytes, sum FROM event_group WHERE run = ?1 AND first <= ?2
         ORDER BY first DESC LIMIT 1",
    )?;
    let mut rows = query.query(params![run.as_str(), number(seq)])?;
    rows.next()?.map(group_of).transpose()
}

/// The group of a row, whose first columns are `first, n, bytes, sum`.
fn group_of(row: &Row<'_>) -> Result<EventGroup, StoreError> {
    let first = Seq(as_number(row, 0)?);
    Ok(EventGroup::checked(first, row.get(1)?, row.get(2)?, row.get(3)?)?)
}

struct GroupCursor {
    database: Database,
    run: RunId,
    from: Seq,
    waits: bool,
    found: VecDeque<EventGroup>,
    ended: bool,
}

fn groups<'a>(
    database: &Database,
    run: &RunId,
    from: Seq,
    waits: bool,
) -> BoxStream<'a, Result<EventGroup, ReadError>> {
    let (database, run, found) = (database.clone(), run.clone(), VecDeque::new());
    let cursor = GroupCursor { database, run, from, waits, found, ended: false };
    stream::unfold(cursor, |mut cursor| async move {
        loop {
            if let Some(group) = cursor.found.pop_front() {
                cursor.from = group.next();
                return Some((Ok(group), cursor));
            }
            if cursor.ended {
                return None;
            }
            let (database, run, from) = (cursor.database.clone(), cursor.run.clone(), cursor.from);
            let looks = cursor.waits;
            let read = spawn_blocking(move || {
                // Looked at before the log, which has all that the process has stored.
                let is_left = looks && !database.is_played(&run)?;
                Ok::<_, StoreError>((database.some_groups(&run, from)?, is_left))
            });
            let error = match read.await {
                Ok(Ok((Some((groups, is_open)), is_left))) => {
                    // What is appended before a run is closed is stored before its status.
                    cursor.ended = groups.is_empty() && !(cursor.waits && is_open && !is_left);
                    if groups.is_empty() && !cursor.ended {
                        sleep(POLL).await;
                    }
                    cursor.found = groups.into();
                    continue;
                }
                Ok(Ok((None, _))) => ReadError::NoSuchRun,
                Ok(Err(error)) => error.into(),
                Err(error) => ReadError::Unreadable(error.to_string()),
            };
            cursor.ended = true;
            return Some((Err(error), cursor));
        }
    })
    .map(|group: Result<EventGroup, ReadError>| async {
        let group = group?;
        let parsed = spawn_blocking(|| group.parsed()).await;
        parsed.map_err(|error| ReadError::Unreadable(error.to_string()))
    })
    .buffered(READ_AHEAD)
    .boxed()
}
