//! The database as a [`RunLog`].

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::Database;
use super::numbers::as_integer;
use super::waiting_words::GroupWords;
use super::writer::Change;
use crate::event::{Event, RunId, Seq};
use crate::store::{AppendError, EventGroup, ReadError, RunLog};

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
        let appended = self.writer().send_with(self.append_change(run, expect, group), words);
        Box::pin(async move {
            match appended.await {
                Ok(result) => result.map(Seq),
                Err(_) => Err(AppendError::Unsure("the database is closed".to_owned())),
            }
        })
    }

    fn next<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            let (database, run) = (self.clone(), run.clone());
            match spawn_blocking(move || database.next_event(&run)).await {
                Ok(Ok(Some(next))) => Ok(next),
                Ok(Ok(None)) => Err(AppendError::Gone),
                Ok(Err(error)) => Err(AppendError::Unsure(error.to_string())),
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
        .prepare_cached("INSERT INTO event_group (run, first, n, bytes) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![run, number(group.first()), group.len(), group.lines()])?;
    connection
        .prepare_cached("UPDATE run SET next = ?2, bytes = bytes + ?3 WHERE id = ?1")?
        .execute(params![run, number(group.next()), group.lines().len() as i64])?;
    Ok(Ok(group.next().0))
}

/// A sequence number as SQLite stores it.
pub(super) fn number(seq: Seq) -> i64 {
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
    pub fn next_event(&self, run: &RunId) -> Result<Option<Seq>, super::StoreError> {
        self.reading(|connection| {
            connection
                .prepare_cached("SELECT next FROM run WHERE id = ?1")?
                .query_row([run.as_str()], |row| row.get::<_, i64>(0))
                .optional()
                .map(|next| next.map(|next| Seq(u64::try_from(next).unwrap_or_default())))
        })
    }

    /// The last event of a run; `None`: there is none, or it cannot be read. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn last_event(&self, run: &RunId) -> Result<Option<Event>, super::StoreError> {
        let lines: Option<Vec<u8>> = self.reading(|connection| {
            connection
                .prepare_cached(
                    "SELECT first, bytes FROM log WHERE run = ?1 ORDER BY first DESC LIMIT 1",
                )?
                .query_row([run.as_str()], |row| row.get(1))
                .optional()
        })?;
        let last = lines
            .as_deref()
            .and_then(|lines| lines.trim_ascii_end().rsplit(|it| *it == b'\n').next());
        let line = last.and_then(|line| std::str::from_utf8(line).ok());
        Ok(line.and_then(|line| Event::from_line(line).ok()))
    }

    /// Some of the groups of a run, from the one that has the event `from`, and whether the run is
    /// still open; `None`: there is no such run. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn some_groups(
        &self,
        run: &RunId,
        from: Seq,
    ) -> Result<Option<(Vec<EventGroup>, bool)>, super::StoreError> {
        self.reading(|connection| {
            let status: Option<String> = connection
                .prepare_cached("SELECT status FROM run WHERE id = ?1")?
                .query_row([run.as_str()], |row| row.get(0))
                .optional()?;
            let Some(status) = status else { return Ok(None) };
            let first: Option<i64> = connection
                .prepare_cached(
                    "SELECT first FROM log WHERE run = ?1 AND first <= ?2
                     ORDER BY first DESC LIMIT 1",
                )?
                .query_row(params![run.as_str(), number(from)], |row| row.get(0))
                .optional()?;
            let first = first.unwrap_or_default();
            let mut found = connection.prepare_cached(
                "SELECT first, n, bytes FROM log WHERE run = ?1 AND first >= ?2
                 ORDER BY first LIMIT ?3",
            )?;
            let groups = found.query_map(params![run.as_str(), first, GROUPS], |row| {
                let first: i64 = row.get(0)?;
                Ok(EventGroup::stored(
                    Seq(u64::try_from(first).unwrap_or_default()),
                    row.get(1)?,
                    row.get(2)?,
                ))
            })?;
            let groups = groups.collect::<rusqlite::Result<Vec<_>>>()?;
            let fresh = groups.into_iter().filter(|group| group.next() > from).collect();
            Ok(Some((fresh, status == "open")))
        })
    }
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
            let read = spawn_blocking(move || database.some_groups(&run, from)).await;
            let error = match read {
                Ok(Ok(Some((groups, is_open)))) => {
                    // What is appended before a run is closed is stored before its status.
                    cursor.ended = groups.is_empty() && !(cursor.waits && is_open);
                    if groups.is_empty() && !cursor.ended {
                        sleep(POLL).await;
                    }
                    cursor.found = groups.into();
                    continue;
                }
                Ok(Ok(None)) => ReadError::NoSuchRun,
                Ok(Err(error)) => ReadError::Unreadable(error.to_string()),
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
