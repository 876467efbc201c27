//! The index of what was said: how it is written, and which runs have the words that somebody looks
//! for. A text is one event: all words of a question are in the same reply, result or message.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::numbers::{as_integer, as_number};
use super::said_rows::{SEQ_BITS, add_said};
use super::writer::Change;
use super::{Database, StoreError};
use crate::base::word_query::WordQuery;
use crate::event::{RunId, Seq};
use crate::store::EventGroup;
use crate::store::said::SaidWords;

/// Rows of one run after which the rest of the run is skipped, where only the run is wanted.
const MANY: u32 = 64;

/// Rows after which it is asked again whether the answer is still wanted.
const ROWS: u32 = 512;

/// A run with words that are not in the index: the run was faster than the store, an earlier version stored
/// it, its process was killed, or another process is about to add them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnindexedRun {
    /// Its id.
    pub run: RunId,
    /// The first event that is not in the index.
    from: Seq,
}

/// Where a run has the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHits {
    /// The run.
    pub run: RunId,
    /// The first events that have them.
    pub first: Vec<Seq>,
    /// How many events have them.
    pub count: u64,
}

/// The words as FTS5 reads them. They have letters and digits only, and every phrase is in quotes, so
/// none is taken for an operator.
fn match_expression(query: &WordQuery) -> String {
    let term = |words: &[String], is_prefix: bool| {
        format!("\"{}\"{}", words.join(" "), if is_prefix { " *" } else { "" })
    };
    let terms = query.terms().iter().map(|it| term(&it.words, it.is_prefix));
    terms.collect::<Vec<_>>().join(" AND ")
}

/// The index of what was said in the runs of a database.
#[derive(Clone, Copy)]
pub struct SaidIndex<'d>(pub &'d Database);

impl SaidIndex<'_> {
    /// The runs whose words are not all in the index, the newest first. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn unindexed(&self) -> Result<Vec<UnindexedRun>, StoreError> {
        self.0.writer().index();
        self.0.reading(|connection| {
            connection
                .prepare_cached(
                    "SELECT id, said FROM run WHERE said < next AND deleted IS NULL
                     ORDER BY started DESC, id DESC",
                )?
                .query_map([], |row| {
                    let run: String = row.get(0)?;
                    Ok(UnindexedRun { run: RunId::new(run), from: Seq(as_number(row, 1)?) })
                })?
                .collect::<rusqlite::Result<_>>()
        })
    }

    /// Adds the words of some groups of a run to the index; returns whether all of the run is in it
    /// now. Blocks.
    ///
    /// # Errors
    /// The database's error.
    fn index_some(&self, behind: &mut UnindexedRun) -> Result<bool, StoreError> {
        let Some((groups, _)) = self.0.some_groups(&behind.run, behind.from)? else {
            return Ok(true);
        };
        let Some(to) = groups.last().map(EventGroup::next) else { return Ok(true) };
        let said: Vec<SaidWords> = groups.iter().flat_map(EventGroup::words).collect();
        let (run, from) = (behind.run.as_str().to_owned(), behind.from);
        let change: Change = Box::new(move |connection| {
            // Another process may have added the same groups meanwhile, or removed the run.
            let indexed: Option<i64> = connection
                .prepare_cached("SELECT said FROM run WHERE id = ?1")?
                .query_row([&run], |row| row.get(0))
                .optional()?;
            if indexed == Some(as_integer(from.0)) {
                add_said(connection, &run, &said)?;
                connection
                    .prepare_cached("UPDATE run SET said = ?2 WHERE id = ?1")?
                    .execute(params![run, as_integer(to.0)])?;
            }
            Ok(Ok(0))
        });
        self.0.writer().wait(change)?;
        behind.from = to;
        Ok(false)
    }

    /// Adds runs to the index, from the first of these on, for about this long; those that are
    /// complete are taken off the list. So are those whose log is damaged, which are returned with what
    /// is wrong: they are searched as far as they are in the index. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn index_for(
        &self,
        behind: &mut Vec<UnindexedRun>,
        time: Duration,
    ) -> Result<Vec<(RunId, StoreError)>, StoreError> {
        let begun = Instant::now();
        let mut done = 0;
        let mut damaged = Vec::new();
        let mut result = Ok(());
        for run in behind.iter_mut() {
            let indexed = loop {
                match self.index_some(run) {
                    Ok(false) if begun.elapsed() < time => {}
                    other => break other,
                }
            };
            match indexed {
                Ok(true) => done += 1,
                Ok(false) => break,
                Err(error @ StoreError::DamagedLog { .. }) => {
                    damaged.push((run.run.clone(), error));
                    done += 1;
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        behind.drain(..done);
        result.map(|()| damaged)
    }

    /// The runs that have an event with all of these words, while the answer `is_wanted`; `None`: it
    /// is not any more. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn runs_that_said(
        &self,
        query: &WordQuery,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<RunId>>, StoreError> {
        let found = self.hits(query, 1, is_wanted)?;
        Ok(found.map(|hits| hits.into_iter().map(|hit| hit.run).collect()))
    }

    /// Where the runs have these words: of each at most `most` events, and how many there are. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn hits_of(&self, query: &WordQuery, most: usize) -> Result<Vec<RunHits>, StoreError> {
        Ok(self.hits(query, most, &|| true)?.unwrap_or_default())
    }

    fn hits(
        &self,
        query: &WordQuery,
        most: usize,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<RunHits>>, StoreError> {
        if query.is_empty() {
            return Ok(Some(Vec::new()));
        }
        self.0.writer().index();
        let words = match_expression(query);
        // The query begins again after a run with many hits, unless it has a prefix: each beginning
        // then merges the rows of all words with that prefix.
        let skips = most == 1 && query.terms().iter().all(|term| !term.is_prefix);
        self.0.reading(|connection| {
            let mut found: BTreeMap<i64, (Vec<Seq>, u64)> = BTreeMap::new();
            let mut matches = connection.prepare_cached(
                "SELECT rowid FROM said WHERE said MATCH ?1 AND rowid >= ?2 ORDER BY rowid",
            )?;
            let mut from = Some(0_i64);
            let mut seen = 0_u32;
            while let Some(first) = from.take() {
                let mut rows = matches.query(params![words, first])?;
                while let Some(row) = rows.next()? {
                    let id: i64 = row.get(0)?;
                    let run = id >> SEQ_BITS;
                    let (places, count) = found.entry(run).or_default();
                    if places.len() < most {
                        let seq = u64::try_from(id - (run << SEQ_BITS)).unwrap_or_default();
                        places.push(Seq(seq));
                    }
                    *count += 1;
                    seen = seen.wrapping_add(1);
                    if seen.is_multiple_of(ROWS) && !is_wanted() {
                        return Ok(None);
                    }
                    if skips && *count >= u64::from(MANY) {
                        from = Some((run + 1) << SEQ_BITS);
                        break;
                    }
                }
            }
            runs_of(connection, found).map(Some)
        })
    }
}

/// The hits with the ids of their runs, without removed runs.
fn runs_of(
    connection: &Connection,
    found: BTreeMap<i64, (Vec<Seq>, u64)>,
) -> rusqlite::Result<Vec<RunHits>> {
    let mut named = connection
        .prepare_cached("SELECT id FROM run WHERE number = ?1 AND deleted IS NULL AND next > 0")?;
    let mut hits = Vec::with_capacity(found.len());
    for (number, (first, count)) in found {
        let id: Option<String> = named.query_row([number], |row| row.get(0)).optional()?;
        hits.extend(id.map(|id| RunHits { run: RunId::new(id), first, count }));
    }
    Ok(hits)
}
