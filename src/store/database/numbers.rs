//! Values as SQLite stores them.

use rusqlite::types::ValueRef;
use rusqlite::{Row, Rows};

use super::error::value_damage;

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

/// What is read of each row, and what is wrong with rows that are damaged: a sentence each. The first column
/// is the id of the run.
///
/// # Errors
/// The database's error.
pub(super) fn read_rows<T>(
    rows: &mut Rows<'_>,
    mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<(Vec<T>, Vec<String>)> {
    let (mut found, mut damage) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(value) => found.push(value),
            Err(error) => {
                let why = value_damage(&error).ok_or(error)?;
                let run = match row.get_ref(0)? {
                    ValueRef::Text(id) | ValueRef::Blob(id) => String::from_utf8_lossy(id),
                    _ => "a run".into(),
                };
                damage.push(format!("{run}: its row cannot be read: {why}"));
            }
        }
    }
    Ok((found, damage))
}
