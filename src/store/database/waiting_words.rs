//! Words that are not in the index yet. FTS5 writes a part of the index for each transaction that adds
//! words, and merges these parts later, so the words of many groups are added together: when there are
//! many, when they have waited, when nothing else is to be written, or when somebody searches. Words
//! that are lost meanwhile are read from the log again by the next search.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::numbers::as_integer;
use super::said_rows::add_said;
use crate::event::{RunId, Seq};
use crate::store::EventGroup;
use crate::store::said::SaidWords;

/// Bytes of words that are added to the index at once. What is stored meanwhile waits for it.
const MOST_BYTES: usize = 256 << 10;

/// How long words wait.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The words of consecutive events of a run.
pub(super) struct GroupWords {
    run: RunId,
    first: Seq,
    next: Seq,
    said: Vec<Arc<Vec<SaidWords>>>,
}

impl GroupWords {
    /// The words of a group, if it has them.
    pub fn of(run: &RunId, group: &EventGroup) -> Option<Self> {
        let said = vec![Arc::clone(group.said()?)];
        Some(Self { run: run.clone(), first: group.first(), next: group.next(), said })
    }

    fn bytes(&self) -> usize {
        self.said.iter().flat_map(|said| said.iter()).map(|said| said.words.len()).sum()
    }
}

/// The words that wait for the index.
#[derive(Default)]
pub(super) struct WaitingWords {
    runs: BTreeMap<RunId, GroupWords>,
    bytes: usize,
    since: Option<Instant>,
}

impl WaitingWords {
    /// Adds the words of a group that is stored.
    pub fn push(&mut self, group: GroupWords) {
        self.bytes += group.bytes();
        self.since.get_or_insert_with(Instant::now);
        match self.runs.get_mut(&group.run) {
            Some(before) if before.next == group.first => {
                before.next = group.next;
                before.said.extend(group.said);
            }
            _ => {
                self.runs.insert(group.run.clone(), group);
            }
        }
    }

    /// Whether they have to be added to the index although there is other work.
    pub fn are_due(&self) -> bool {
        self.bytes >= MOST_BYTES || self.since.is_some_and(|since| since.elapsed() >= LONGEST_WAIT)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds all words to the index. Those of a run that is not in the index up to them are left out.
    ///
    /// # Errors
    /// None of them is in the index then.
    pub fn write(self, connection: &mut Connection) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for words in self.runs.into_values() {
            let run = words.run.as_str();
            // Another process may have added some of them, or removed the run.
            let indexed: Option<i64> = transaction
                .prepare_cached("SELECT said FROM run WHERE id = ?1 AND next >= ?2")?
                .query_row(params![run, as_integer(words.next.0)], |row| row.get(0))
                .optional()?;
            let Some(indexed) = indexed else { continue };
            if !(as_integer(words.first.0)..as_integer(words.next.0)).contains(&indexed) {
                continue;
            }
            let said = words.said.iter().flat_map(|said| said.iter());
            add_said(&transaction, run, said.filter(|said| as_integer(said.seq.0) >= indexed))?;
            transaction
                .prepare_cached("UPDATE run SET said = ?2 WHERE id = ?1")?
                .execute(params![run, as_integer(words.next.0)])?;
        }
        transaction.commit()
    }
}
