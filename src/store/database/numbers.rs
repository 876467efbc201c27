//! Numbers as SQLite stores them.

use rusqlite::Row;

/// A number as SQLite stores it.
pub(super) fn as_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column of such a number.
pub(super) fn as_number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or_default())
}
