//! Whole logs that are put into the database.

use std::sync::Arc;

use super::rows::{RunCourse, update_change};
use super::waiting_words::GroupWords;
use super::{Database, StoreError};
use crate::event::run_row::RunRow;
use crate::event::{Event, EventKind, RunId, Seq};
use crate::store::{AppendError, EventGroup};

impl Database {
    /// An id for an imported run: its own, or that with a number where it is taken. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn free_id(&self, wanted: &RunId) -> Result<RunId, StoreError> {
        let mut id = wanted.clone();
        let mut number = 1_u32;
        while !self.reserve(&id, 0)? {
            number += 1;
            id = RunId::new(format!("{wanted}-{number}"));
        }
        Ok(id)
    }

    /// Stores a whole log under the row's id, which was [reserved](Self::reserve). Blocks.
    ///
    /// # Errors
    /// Why it was not stored; nothing of it is then.
    pub fn import(
        &self,
        row: &RunRow,
        course: &RunCourse,
        events: &[Arc<Event>],
    ) -> Result<(), StoreError> {
        let hash = events.iter().find_map(|event| match &event.kind {
            EventKind::RunStarted(head) => Some(head.scenario_hash()),
            _ => None,
        });
        if !self.begin(row, hash.as_deref().unwrap_or_default())? {
            return Err(StoreError::Refused(AppendError::Fenced));
        }
        // Half an import is not a run: it is hidden until all of it is there.
        let holder = Some(self.owner().name().to_owned());
        self.delete_at(&row.id, holder, Some(0))?;
        let store = |group: &EventGroup| {
            let change = self.append_change(&row.id, group.first(), group);
            let words = GroupWords::of(&row.id, group);
            self.writer().wait_with(change, words).map(Seq)
        };
        let mut group = EventGroup::starting_at(Seq(0));
        for event in events {
            group.push(event, &row.id).map_err(|error| AppendError::Unsure(error.to_string()))?;
            if group.is_full() {
                group = EventGroup::starting_at(store(&group)?);
            }
        }
        if !group.is_empty() {
            store(&group)?;
        }
        self.writer().wait(update_change(&row.id, course))?;
        let shown = self.change(row.id.clone(), |connection, run| {
            connection
                .prepare_cached("UPDATE run SET owner = NULL, deleted = NULL WHERE id = ?1")?
                .execute([run.as_str()])
                .map(|rows| rows as u64)
        });
        match shown? {
            1 => Ok(()),
            _ => Err(StoreError::Refused(AppendError::Gone)),
        }
    }
}
