//! Kept runs by their names on the command line: an id, the beginning of one, `last`, `last~2`, or an
//! exported file.

use std::path::Path;

use crate::event::run_row::{RunRow, RunStatus};
use crate::event::{RunId, World};
use crate::store::ReadError;
use crate::store::database::{Database, StoreError};
use crate::store::file::LogFile;

/// Most ids in a message about a beginning that several runs have.
const MAX_NAMED: usize = 5;

/// Why a run cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum FindRunError {
    /// No kept run has this name.
    #[error("no kept run is called {0}; `roundtable runs` lists them")]
    None(String),
    /// Several runs have ids that begin so.
    #[error("{0} is the beginning of several runs: {1}")]
    Several(String, String),
    /// The store cannot be read.
    #[error("the store cannot be read: {0}")]
    Store(#[from] StoreError),
}

/// Finds a kept run by its id, the beginning of its id, `last` or `last~N` (N runs before the last).
/// Blocks.
///
/// # Errors
/// See [`FindRunError`].
pub fn find(database: &Database, name: &str) -> Result<RunRow, FindRunError> {
    let none = || FindRunError::None(crate::base::visible::visible(name).into_owned());
    if let Some(back) = runs_back(name) {
        return database.nth_last(back)?.ok_or_else(none);
    }
    if let Some(row) = database.run(name)? {
        return Ok(row);
    }
    if name.is_empty() {
        return Err(none());
    }
    let mut rows = database.runs_with_prefix(name, MAX_NAMED as u32 + 1)?;
    // People leave out what every id has.
    if rows.is_empty() {
        rows = database.runs_with_prefix(&format!("r-{name}"), MAX_NAMED as u32 + 1)?;
    }
    match &mut rows[..] {
        [] => Err(none()),
        [_] => rows.pop().ok_or_else(none),
        _ => {
            let ids = rows.iter().take(MAX_NAMED).map(|row| row.id.as_str());
            let more = if rows.len() > MAX_NAMED { ", …" } else { "" };
            let ids = ids.collect::<Vec<_>>().join(", ") + more;
            Err(FindRunError::Several(name.to_owned(), ids))
        }
    }
}

/// `last` is 0, `last~2` is 2.
fn runs_back(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("last")?;
    if rest.is_empty() {
        return Some(0);
    }
    rest.strip_prefix('~')?.parse().ok()
}

/// Whether a name on the command line is that of a file, not of a kept run.
pub fn is_file(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") || name.contains('/')
}

/// Puts the log of a file into the store, as an ended run or an interrupted one. A run of the same id
/// gets a new one. Returns the row. Blocks.
///
/// # Errors
/// Why it cannot be stored.
pub fn import(database: &Database, path: &Path) -> Result<(RunId, Vec<String>), String> {
    let file = LogFile::open(path).map_err(|error| error.to_string())?;
    store_log(database, &file).map_err(|error| error.to_string()).map(|id| (id, file.notes))
}

fn store_log(database: &Database, file: &LogFile) -> Result<RunId, ReadError> {
    let damaged = |why: &str| ReadError::Damaged { at: 0, why: why.to_owned() };
    let head = file.head().ok_or_else(|| damaged("it has no head"))?;
    let unreadable = |error: StoreError| ReadError::Unreadable(error.to_string());
    let id = database.free_id(&head.run).map_err(unreadable)?;
    let world = World::from_events(file.events.iter().map(|event| &**event));
    let row =
        RunRow { id: id.clone(), status: RunStatus::Interrupted, ..super::keep::row_of(head) };
    database
        .import(&row, &super::keep::course_of(&world), &file.events)
        .map_err(|error| ReadError::Unreadable(error.to_string()))?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_is_counted_back() {
        let table =
            [("last", Some(0)), ("last~0", Some(0)), ("last~12", Some(12)), ("last~", None)];
        for (name, back) in table {
            assert_eq!(runs_back(name), back, "{name}");
        }
        assert_eq!(runs_back("r-7f3a"), None);
        assert_eq!(runs_back("lasting"), None);
    }
}
