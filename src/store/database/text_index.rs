//! The index of what was said (FTS5): the runs that have the words of a search, and the places in
//! their logs. All words of a question must be in the same reply, result or message. The texts
//! themselves are in the logs.
//!
//! FTS5 writes a part of the index for each transaction, so the words of many groups are added
//! together, later: when there are many, when they have waited, when the writer is idle, or before a
//! search. The index is never ahead of the logs; the next search adds the missing words from them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::reader::group_before;
use super::writer::Change;
use super::{Database, StoreError, as_integer, as_number};
use crate::base::word_query::WordQuery;
use crate::log::event::{Event, EventKind, RunId, Seq, SpanId, TextPart};
use crate::store::{EventGroup, EventWords};

/// Rows of one run after which the rest of the run is skipped, where only the run is wanted.
const MANY: u32 = 64;

/// Rows after which it is asked again whether the answer is still wanted.
const ROWS: u32 = 512;

/// A run with words that are not in the index: the run was faster than the store,
/// its process was killed, or another process is about to add them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnindexedRun {
    pub run: RunId,
    /// The first event that is not in the index.
    from: Seq,
}

/// Where a run has the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHits {
    pub run: RunId,
    /// The first events that have them.
    pub first: Vec<Seq>,
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
pub struct RunTextIndex<'d>(pub &'d Database);

impl RunTextIndex<'_> {
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
    fn index_some(&self, behind: &mut UnindexedRun) -> Result<bool, StoreError> {
        let Some((groups, _)) = self.0.some_groups(&behind.run, behind.from)? else {
            return Ok(true);
        };
        let Some(to) = groups.last().map(EventGroup::next) else { return Ok(true) };
        let said: Vec<EventWords> = groups.iter().flat_map(EventGroup::words).collect();
        let (run, from) = (behind.run.as_str().to_owned(), behind.from);
        let change: Change = Box::new(move |connection| {
            // Another process may have added the same groups meanwhile, or removed the run.
            let indexed: Option<i64> = connection
                .prepare_cached("SELECT said FROM run WHERE id = ?1")?
                .query_row([&run], |row| row.get(0))
                .optional()?;
            if indexed == Some(as_integer(from.0)) {
                add_words(connection, &run, &said)?;
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

    /// Adds runs to the index, from the first of these on, for about this long. Takes complete runs
    /// off the list, and runs with a damaged log: these are returned with the fault, and only their
    /// indexed part is searched. Blocks.
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

/// Groups before that of a reply in which its call is looked for.
const GROUPS_BACK: u32 = 64;

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// Sequence number of the event.
    pub seq: Seq,
    /// When, in milliseconds since the start of the run.
    pub at_ms: u64,
    /// In which way: [`TextPart::word`].
    pub what: &'static str,
    /// The seat, the agent, the step or the tool; empty if that is not known.
    pub who: String,
    /// The text; parts of it are separated by ` · `.
    pub text: String,
}

impl RunTextIndex<'_> {
    /// What was said in an event of a run; `None` if it cannot be read. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn said_at(&self, run: &RunId, seq: Seq) -> Result<Option<TextPlace>, StoreError> {
        self.0.reading(|connection| {
            let mut log = LogBackwards { connection, run, groups: Vec::new() };
            let Some(event) = log.event(seq)? else { return Ok(None) };
            let Some(said) = TextPart::of(&event.kind) else { return Ok(None) };
            let mut texts = Vec::new();
            said.each_text(&mut |text| texts.push(text.to_owned()));
            let who = match &event.kind {
                EventKind::RunStarted(_) => String::new(),
                EventKind::Pattern(fact) => fact.get().about().agent.unwrap_or_default().to_owned(),
                EventKind::AnswerComposed { by, .. } => {
                    by.as_ref().map(|by| by.to_string()).unwrap_or_default()
                }
                _ => log.caller(&event)?.unwrap_or_default(),
            };
            let (at_ms, text) = (event.at.0 / 1_000, texts.join(" · "));
            Ok::<_, StoreError>(Some(TextPlace { seq, at_ms, what: said.word(), who, text }))
        })
    }
}

/// The groups of a log that were read, the last one first.
struct LogBackwards<'c> {
    connection: &'c Connection,
    run: &'c RunId,
    groups: Vec<EventGroup>,
}

impl LogBackwards<'_> {
    /// Reads the group that has an event, or the one before those that were read.
    fn read(&mut self, seq: Option<Seq>) -> Result<bool, StoreError> {
        let last = match (seq, self.groups.last()) {
            (Some(seq), _) => seq,
            (None, Some(group)) if group.first() > Seq(0) => Seq(group.first().0 - 1),
            (None, _) => return Ok(false),
        };
        let group = group_before(self.connection, self.run, last)?;
        let found = group.is_some();
        self.groups.extend(group);
        Ok(found)
    }

    fn event(&mut self, seq: Seq) -> Result<Option<Event>, StoreError> {
        self.read(Some(seq))?;
        let Some(group) = self.groups.last() else { return Ok(None) };
        let events = group.events(seq)?;
        Ok(events.first().filter(|event| event.seq == seq).map(|event| Event::clone(event)))
    }

    /// Who made the call that an event belongs to: of a model the seat, agent or step, of a tool its
    /// name.
    fn caller(&mut self, event: &Event) -> Result<Option<String>, StoreError> {
        if let Some(name) = name_of_call(&event.kind) {
            return Ok(Some(name));
        }
        let mut span = event.span;
        // The span of an attempt, then that of its call.
        for _ in 0..2 {
            let Some(opening) = self.opening(span)? else { return Ok(None) };
            if let Some(name) = name_of_call(&opening.kind) {
                return Ok(Some(name));
            }
            let EventKind::AttemptStarted { parent, .. } = opening.kind else { return Ok(None) };
            span = parent;
        }
        Ok(None)
    }

    /// The event that opened a span of a call or of an attempt.
    fn opening(&mut self, span: SpanId) -> Result<Option<Event>, StoreError> {
        // Lines are as this program writes them: who said something is left out of others.
        let kinds = ["call.started", "attempt.started"];
        let marks = kinds.map(|kind| format!("\"span\":{},\"kind\":\"{kind}\"", span.0));
        let mut at = 0;
        loop {
            while let Some(group) = self.groups.get(at) {
                let text = String::from_utf8_lossy(group.lines());
                let line = text.lines().find(|line| marks.iter().any(|mark| line.contains(mark)));
                if let Some(line) = line {
                    return Ok(event_of(line.as_bytes()));
                }
                at += 1;
            }
            if at > GROUPS_BACK as usize || !self.read(None)? {
                return Ok(None);
            }
        }
    }
}

fn name_of_call(kind: &EventKind) -> Option<String> {
    let EventKind::CallStarted(call) = kind else { return None };
    let of_model = !call.prompt.is_empty();
    Some(if of_model { call.purpose.label().into_owned() } else { call.tool.to_string() })
}

fn event_of(line: &[u8]) -> Option<Event> {
    Event::from_line(std::str::from_utf8(line).ok()?).ok()
}

/// Bits of a row's id that are the number of the event.
const SEQ_BITS: u32 = 32;

/// Adds what was said in consecutive events of a run.
fn add_words<'s>(
    connection: &Connection,
    run: &str,
    said: impl IntoIterator<Item = &'s EventWords>,
) -> rusqlite::Result<()> {
    let mut said = said.into_iter().peekable();
    if said.peek().is_none() {
        return Ok(());
    }
    let run = number_of_run(connection, run)?;
    let mut insert =
        connection.prepare_cached("INSERT INTO said (rowid, words) VALUES (?1, ?2)")?;
    for said in said {
        if let Some(id) = index_row_id(run, said.seq) {
            insert.execute(params![id, said.words])?;
        }
    }
    Ok(())
}

/// The id of a row of the index; `None` for an event that no index has.
fn index_row_id(run: i64, seq: Seq) -> Option<i64> {
    let seq = u32::try_from(seq.0).ok()?;
    Some((run << SEQ_BITS) | i64::from(seq))
}

/// The number of a run in the index, which it gets with its first words.
fn number_of_run(connection: &Connection, run: &str) -> rusqlite::Result<i64> {
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

/// Bytes of words that are added to the index at once. What is stored meanwhile waits for it.
const MAX_BYTES: usize = 256 << 10;

/// How long words wait.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The words of consecutive events of a run.
pub(crate) struct GroupWords {
    run: RunId,
    first: Seq,
    next: Seq,
    said: Vec<Arc<Vec<EventWords>>>,
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
pub(crate) struct WaitingWords {
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
        self.bytes >= MAX_BYTES || self.since.is_some_and(|since| since.elapsed() >= LONGEST_WAIT)
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
            add_words(&transaction, run, said.filter(|said| as_integer(said.seq.0) >= indexed))?;
            transaction
                .prepare_cached("UPDATE run SET said = ?2 WHERE id = ?1")?
                .execute(params![run, as_integer(words.next.0)])?;
        }
        transaction.commit()
    }
}
