//! The rows of the index of what was said.

use rusqlite::{Connection, params};

use crate::event::Seq;
use crate::store::said::SaidWords;

/// Bits of a row's id that are the number of the event.
pub(super) const SEQ_BITS: u32 = 32;

/// Adds what was said in consecutive events of a run.
pub(super) fn add_said<'s>(
    connection: &Connection,
    run: &str,
    said: impl IntoIterator<Item = &'s SaidWords>,
) -> rusqlite::Result<()> {
    let mut said = said.into_iter().peekable();
    if said.peek().is_none() {
        return Ok(());
    }
    let run = number_of(connection, run)?;
    let mut insert =
        connection.prepare_cached("INSERT INTO said (rowid, words) VALUES (?1, ?2)")?;
    for said in said {
        if let Some(id) = row_id(run, said.seq) {
            insert.execute(params![id, said.words])?;
        }
    }
    Ok(())
}

/// The id of a row of the index; `None` for an event that no index has.
fn row_id(run: i64, seq: Seq) -> Option<i64> {
    let seq = u32::try_from(seq.0).ok()?;
    Some((run << SEQ_BITS) | i64::from(seq))
}

/// The number of a run in the index, which it gets with its first words.
fn number_of(connection: &Connection, run: &str) -> rusqlite::Result<i64> {
    let known: Option<i64> = connection
        .prepare_cached("SELECT number FROM run WHERE id = ?1")?
        .query_row([run], |row| row.get(0))?;
    if let Some(known) = known {
        return Ok(known);
    }
    connection
        .prepare_cached(
            "UPDATE run SET number = (SELECT coalesce(max(number), 0) + 1 FROM run) WHERE id = ?1
             RETURNING number",
        )?
        .query_row([run], |row| row.get(0))
}
