//! What is removed: by the operator, with a way back, and by the retention.

use rusqlite::params;

use super::rows::{as_integer, as_number};
use super::{Database, StoreError};
use crate::event::RunId;
use crate::event::run_row::RunStatus;

/// Which runs are removed by themselves, the oldest first.
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
    /// Number of runs.
    pub runs: u64,
    /// Bytes of their logs.
    pub bytes: u64,
}

impl Database {
    /// Sets whether a run is never removed by itself; `false`: there is no such run. Blocks.
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
    /// removed for good; `false`: there is no such run, or a process plays it. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn delete(&self, run: &RunId, now_ms: u64) -> Result<bool, StoreError> {
        match self.run(run.as_str())? {
            Some(row) if row.status != RunStatus::Running => {}
            _ => return Ok(false),
        }
        self.delete_at(run, Some(now_ms))
    }

    pub(super) fn delete_at(&self, run: &RunId, at_ms: Option<u64>) -> Result<bool, StoreError> {
        let values = (run.clone(), at_ms.map(as_integer));
        let changed = self.change(values, |connection, (run, at)| {
            connection
                .prepare_cached("UPDATE run SET deleted = ?2 WHERE id = ?1")?
                .execute(params![run.as_str(), at])
                .map(|rows| rows as u64)
        })?;
        Ok(changed == 1)
    }

    /// Brings a deleted run back; `false`: it was removed for good. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn undelete(&self, run: &RunId) -> Result<bool, StoreError> {
        self.delete_at(run, None)
    }

    /// Removes for good what was deleted before `deleted_before_ms`, and what exceeds the retention.
    /// Pinned runs and runs that a process plays stay. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn prune(
        &self,
        keep: Retention,
        now_ms: u64,
        deleted_before_ms: u64,
    ) -> Result<Pruned, StoreError> {
        let alive = self.owners_alive()?;
        let doomed = self.reading(|connection| {
            let mut found = connection.prepare_cached(
                "SELECT id, started, live, owner, status, bytes, pinned, deleted, next FROM run
                 ORDER BY started DESC, id DESC",
            )?;
            let mut rows = found.query([])?;
            let mut kept = (0_u32, 0_u32, 0_u64);
            let oldest = now_ms.saturating_sub(u64::from(keep.days) * 86_400_000);
            let mut doomed = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, live): (String, bool) = (row.get(0)?, row.get(2)?);
                let (owner, status): (Option<String>, String) = (row.get(3)?, row.get(4)?);
                let (bytes, started) = (as_number(row, 5)?, as_number(row, 1)?);
                let (pinned, deleted): (bool, Option<i64>) = (row.get(6)?, row.get(7)?);
                let is_played = status == "open" && owner.is_some_and(|it| alive.contains(&it));
                if is_played {
                    continue;
                }
                let was_deleted = deleted
                    .is_some_and(|at| u64::try_from(at).unwrap_or_default() < deleted_before_ms);
                let is_empty = as_number(row, 8)? == 0;
                let runs = if live { &mut kept.0 } else { &mut kept.1 };
                let exceeds = !pinned
                    && deleted.is_none()
                    && (*runs >= keep.runs
                        || started < oldest
                        || kept.2.saturating_add(bytes) > keep.bytes);
                if was_deleted || is_empty || exceeds {
                    doomed.push((id, bytes));
                } else {
                    *runs += u32::from(!pinned);
                    kept.2 = kept.2.saturating_add(bytes);
                }
            }
            Ok(doomed)
        })?;
        let mut pruned = Pruned::default();
        for (id, bytes) in doomed {
            let removed = self.change(id, |connection, id| {
                connection
                    .prepare_cached("DELETE FROM run WHERE id = ?1")?
                    .execute([id])
                    .map(|rows| rows as u64)
            })?;
            pruned.runs += removed;
            pruned.bytes += bytes * removed;
        }
        Ok(pruned)
    }

    fn owners_alive(&self) -> Result<Vec<String>, StoreError> {
        let owners: Vec<String> = self.reading(|connection| {
            connection
                .prepare_cached(
                    "SELECT DISTINCT owner FROM run WHERE status = 'open' AND owner IS NOT NULL",
                )?
                .query_map([], |row| row.get(0))?
                .collect()
        })?;
        Ok(owners.into_iter().filter(|owner| self.owner().is_alive(owner)).collect())
    }
}
