//! Checks a whole store without changing it.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};

use super::numbers::{as_number, read_rows};
use super::read::some_groups;
use super::rows::{COLUMNS, TextsBefore, read_row};
use super::{Database, OpenError, StoreError, connect, schema};
use crate::event::{RunId, Seq};
use crate::store::EventGroup;

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
        let version = schema::known_version(&connection)?;
        let mut report = StoreReport::default();
        match structure(&connection) {
            Ok(damage) => report.damage = damage,
            Err(StoreError::Damaged(why)) => report.damage.push(why),
            Err(error) => return Err(OpenError::Store(error)),
        }
        // Of an earlier version no group has a checksum, and the next command brings it up to date.
        if report.damage.is_empty() && version == schema::newest() {
            runs(&connection, &mut report).map_err(OpenError::Store)?;
        }
        Ok(report)
    }
}

/// What SQLite finds wrong with its file.
fn structure(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut query = connection.prepare(&format!("PRAGMA quick_check({MAX_DAMAGES})"))?;
    let found = query.query_map([], |row| row.get::<_, String>(0))?;
    let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(found.into_iter().filter(|text| text != "ok").collect())
}

fn runs(connection: &Connection, report: &mut StoreReport) -> Result<(), StoreError> {
    let sql = format!("SELECT {COLUMNS}, said FROM run WHERE next <> 0 ORDER BY rowid");
    let mut before = TextsBefore::default();
    let (ids, damage) = read_rows(&mut connection.prepare(&sql)?.query([])?, |row| {
        as_number(row, 18)?;
        Ok(read_row(row, &mut before, &mut |_| false)?.id)
    })?;
    report.runs = (ids.len() + damage.len()) as u64;
    report.damage = damage;
    for id in ids {
        match whole_log(connection, &id) {
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

fn whole_log(connection: &Connection, run: &RunId) -> Result<(), StoreError> {
    let mut from = Seq(0);
    while let Some((groups, _)) = some_groups(connection, run, from)? {
        let Some(next) = groups.last().map(EventGroup::next) else { break };
        from = next;
    }
    Ok(())
}
