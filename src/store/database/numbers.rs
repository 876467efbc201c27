//! Numbers as SQLite stores them.

use rusqlite::Row;

/// A number as SQLite stores it.
pub(super) fn as_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column of such a number.
///
/// # Errors
/// The column has something else: the file is damaged.
pub(super) fn as_number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}
