//! Removes runs: those that the operator deletes, which can be undone, and those beyond the retention.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Row, params};

use super::{Database, StoreError, as_integer, as_number, read_rows};
use crate::log::event::RunId;
use crate::log::world::run_row::RunStatus;

/// Limits of the kept runs: beyond them the oldest ones are removed automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Most runs; scripted and live ones are counted apart.
    pub runs: u32,
    /// Most days since the start of a run.
    pub days: u32,
    /// Most bytes of all runs together.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { runs: 1_000, days: 90, bytes: 1 << 30 }
    }
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub runs: u64,
    /// Bytes of their logs.
    pub bytes: u64,
}

/// The result of deleting a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is marked as deleted.
    Done,
    /// It stays: a process plays it.
    Played,
    /// There is no such run.
    Missing,
}

/// One day in milliseconds.
const DAY_MS: u64 = 86_400_000;

impl Database {
    /// Sets whether a run is never removed automatically; `false`: there is no such run. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn pin(&self, run: &RunId, pinned: bool) -> Result<bool, StoreError> {
        let changed = self.change((run.clone(), pinned), |connection, (run, pinned)| {
            connection
                .prepare_cached("UPDATE run SET pinned = ?2 WHERE id = ?1 AND deleted IS NULL")?
                .execute(params![run.as_str(), pinned])
                .map(|rows| rows as u64)
        })?;
        Ok(changed == 1)
    }

    /// Marks a run as deleted, so that [`undelete`](Self::undelete) can bring it back until it is
    /// removed for good. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn delete(&self, run: &RunId, now_ms: u64) -> Result<Deletion, StoreError> {
        // The holder is read first: if a process takes the run meanwhile, nothing is changed.
        let before = self.holder(run)?;
        match self.run(run.as_str())? {
            None => Ok(Deletion::Missing),
            Some(row) if row.status == RunStatus::Running => Ok(Deletion::Played),
            Some(_) => Ok(match self.delete_at(run, before, Some(now_ms))? {
                true => Deletion::Done,
                false => Deletion::Played,
            }),
        }
    }

    /// Sets when a run was deleted, if its row still names this process.
    pub(super) fn delete_at(
        &self,
        run: &RunId,
        holder: Option<String>,
        at_ms: Option<u64>,
    ) -> Result<bool, StoreError> {
        let values = (run.clone(), holder, at_ms.map(as_integer));
        let changed = self.change(values, |connection, (run, holder, at)| {
            connection
                .prepare_cached("UPDATE run SET deleted = ?3 WHERE id = ?1 AND owner IS ?2")?
                .execute(params![run.as_str(), holder, at])
                .map(|rows| rows as u64)
        })?;
        Ok(changed == 1)
    }

    /// Brings a deleted run back; `false`: it was removed for good. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn undelete(&self, run: &RunId) -> Result<bool, StoreError> {
        self.delete_at(run, self.holder(run)?, None)
    }

    /// Removes for good the runs that were deleted before `deleted_before_ms`, and those that exceed
    /// the retention. Pinned runs and runs that a process plays stay. [`purge`](Self::purge) overwrites what
    /// they leave in the files. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn prune(
        &self,
        keep: Retention,
        now_ms: u64,
        deleted_before_ms: u64,
    ) -> Result<Pruned, StoreError> {
        // A clock may be set back. Rows have the order in which they were made, so a run did not
        // start before the runs of earlier rows, unless these started in the future.
        let rows = self.reading(|connection| {
            let mut found = connection.prepare_cached(
                "SELECT id, coalesce(max(iif(started <= ?1, started, NULL))
                 OVER (ORDER BY rowid), started), live, owner, status, bytes, pinned, deleted, next
                 FROM run ORDER BY rowid DESC",
            )?;
            // A damaged row stays, and is named where runs are listed.
            let (rows, _) = read_rows(&mut found.query([as_integer(now_ms)])?, PrunedRow::read)?;
            Ok::<_, rusqlite::Error>(rows)
        })?;
        // Asked after the rows were read: who holds a row locked its file before it wrote the row.
        let mut alive = BTreeMap::new();
        let mut is_alive = |owner: &String| {
            *alive.entry(owner.clone()).or_insert_with(|| self.owner().is_alive(owner))
        };
        let oldest = now_ms.saturating_sub(u64::from(keep.days) * DAY_MS);
        let (mut live, mut scripted, mut bytes) = (0_u32, 0_u32, 0_u64);
        let mut pruned = Pruned::default();
        for row in rows {
            if row.is_open && row.owner.as_ref().is_some_and(&mut is_alive) {
                continue;
            }
            let runs = if row.live { &mut live } else { &mut scripted };
            let was_deleted = row.deleted_ms.is_some_and(|at| at < deleted_before_ms);
            let exceeds = !row.pinned
                && row.deleted_ms.is_none()
                && (*runs >= keep.runs
                    || row.started_ms < oldest
                    || bytes.saturating_add(row.bytes) > keep.bytes);
            if !(was_deleted || exceeds || row.is_empty) {
                *runs += u32::from(!row.pinned);
                bytes = bytes.saturating_add(row.bytes);
                continue;
            }
            let removed = self.change((row.id, row.owner), |connection, (id, owner)| {
                // If a process has taken the run meanwhile, it stays.
                connection
                    .prepare_cached("DELETE FROM run WHERE id = ?1 AND owner IS ?2")?
                    .execute(params![id, owner])
                    .map(|rows| rows as u64)
            })?;
            if !row.is_empty {
                pruned.runs += removed;
                pruned.bytes += row.bytes * removed;
            }
        }
        Ok(pruned)
    }
}

/// What decides whether a run is removed.
struct PrunedRow {
    id: String,
    started_ms: u64,
    live: bool,
    owner: Option<String>,
    is_open: bool,
    bytes: u64,
    pinned: bool,
    deleted_ms: Option<u64>,
    /// Its process ended before it had stored an event.
    is_empty: bool,
}

impl PrunedRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let is_deleted = row.get_ref(7)? != ValueRef::Null;
        Ok(Self {
            id: row.get(0)?,
            started_ms: as_number(row, 1)?,
            live: row.get(2)?,
            owner: row.get(3)?,
            is_open: row.get_ref(4)?.as_str()? == "open",
            bytes: as_number(row, 5)?,
            pinned: row.get(6)?,
            deleted_ms: is_deleted.then(|| as_number(row, 7)).transpose()?,
            is_empty: as_number(row, 8)? == 0,
        })
    }
}
