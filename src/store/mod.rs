//! Where the logs of runs are kept: the trait [`RunLog`], its implementations ([`database`] in
//! SQLite, [`file`] for an exported `.jsonl`), and the [`recorder`] that stores a run
//! while it runs. This layer knows nothing of engines and screens: it reads a [`Bus`](crate::Bus)
//! like any other reader.
//!
//! A log is stored in groups of consecutive events: lines of JSON, the same bytes as `--format
//! jsonl`, each group with a checksum. An append that does not continue where its writer expects
//! the end is refused, so two processes never write one run. An outcome is not stored: it is folded
//! from the log when it is read.

pub mod database;
pub mod day_ledger;
pub mod file;
pub mod recorder;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::str;
use std::str::Utf8Error;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::base::name::PersonName;
use crate::base::word_query::push_plain_words;
use crate::log::event::{Event, EventKind, QuestionId, RunId, Seq, TextPart};

/// Durable, ordered logs, one for each run. A log grows at its end only, by groups of consecutive
/// events.
pub trait RunLog: Send + Sync {
    /// Appends a group to the log of a run. `expect` is the sequence number that the log has to
    /// continue with. Returns the number of the next event after the group; when this returns, the
    /// group survives a power failure. A log that is written elsewhere may begin at once, so the caller
    /// can do something else before it awaits the result, and append the next group meanwhile: it is
    /// refused if this one was not stored.
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        expect: Seq,
        group: &EventGroup,
    ) -> BoxFuture<'a, Result<Seq, AppendError>>;

    /// Whether the texts of events are indexed: only then groups get the words of their events.
    fn has_index(&self) -> bool {
        false
    }

    /// The sequence number that the log of a run continues with.
    fn next<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Seq, AppendError>>;

    /// The groups of a log from the one that has the event `from`, up to the present end.
    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>>;

    /// Like [`read`](Self::read), then the groups that any process appends later, until the run has
    /// ended.
    fn tail<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>>;
}

/// Why a group was not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The log does not continue with the expected event: another process has appended to it.
    #[error("another process writes the log of this run")]
    Fenced,
    /// The write failed, and it is not certain that nothing was stored: read
    /// [`RunLog::next`], then append again.
    #[error("{0}")]
    Unsure(String),
    /// The run was deleted.
    #[error("the run was deleted")]
    Gone,
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such run.
    #[error("there is no such run")]
    NoSuchRun,
    /// The file or the disk cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// What is stored is not the log of a run.
    #[error("event {at} cannot be read: {why}")]
    Damaged {
        /// Sequence number of the event.
        at: u64,
        /// What is wrong.
        why: String,
    },
}

/// Size of a group in bytes from which it gets no more events.
pub const GROUP_BYTES: usize = 256 << 10;

/// Consecutive events of one run as lines of JSON, each with its line break.
///
/// Clones share the lines.
#[derive(Clone, Debug, Default)]
pub struct EventGroup {
    first: Seq,
    events: u32,
    lines: Arc<Vec<u8>>,
    /// The words for the index, while the group is not stored; `None`: the next search reads them
    /// from the log.
    said: Option<Arc<Vec<EventWords>>>,
    /// The changes of the open questions in it, while it is not stored.
    questions: Vec<QuestionChange>,
    /// Its events, if they were read ahead.
    parsed: Option<Arc<Vec<Arc<Event>>>>,
}

impl PartialEq for EventGroup {
    /// Whether they have the same lines at the same place; all else follows from these.
    fn eq(&self, other: &Self) -> bool {
        (self.first, self.events, &self.lines) == (other.first, other.events, &other.lines)
    }
}

impl Eq for EventGroup {}

impl EventGroup {
    /// An empty group whose first event will have this sequence number.
    pub fn starting_at(first: Seq) -> Self {
        Self { first, said: Some(Arc::default()), ..Self::default() }
    }

    /// Like [`starting_at`](Self::starting_at), but reuses the memory of a stored group, unless a clone of
    /// that group still needs it.
    pub(crate) fn reusing(stored: Self, first: Seq) -> Self {
        let mut lines = Arc::into_inner(stored.lines).unwrap_or_default();
        lines.clear();
        // A long line has made some of them larger.
        lines.shrink_to(2 * GROUP_BYTES);
        Self { lines: Arc::new(lines), ..Self::starting_at(first) }
    }

    /// A group as it was stored.
    pub fn stored(first: Seq, events: u32, lines: Vec<u8>) -> Self {
        Self { first, events, lines: Arc::new(lines), ..Self::default() }
    }

    /// A group as it was stored, if it is undamaged: it has this many lines, and the checksum of its
    /// bytes is `sum`.
    ///
    /// # Errors
    /// [`ReadError::Damaged`].
    pub fn checked(first: Seq, events: u32, lines: Vec<u8>, sum: u32) -> Result<Self, ReadError> {
        let damaged = |why: &str| ReadError::Damaged { at: first.0, why: why.to_owned() };
        let group = Self::stored(first, events, lines);
        if sum != group.sum() {
            return Err(damaged("its bytes are not those that were stored"));
        }
        let ends = group.lines.iter().filter(|byte| **byte == b'\n').count();
        if ends as u64 != u64::from(events) || group.lines.last().is_some_and(|it| *it != b'\n') {
            return Err(damaged("its group has another number of lines than were stored"));
        }
        Ok(group)
    }

    /// The checksum (CRC-32) of its bytes.
    pub fn sum(&self) -> u32 {
        let mut sum = flate2::Crc::new();
        sum.update(&self.lines);
        sum.sum()
    }

    /// Adds an event.
    ///
    /// # Errors
    /// No event of roundtable causes one.
    pub fn push(&mut self, event: &Event, run: &RunId) -> Result<(), serde_json::Error> {
        self.push_line(event, run)?;
        self.push_words(event);
        Ok(())
    }

    /// Adds the line of an event, and not its words.
    pub(crate) fn push_line(
        &mut self,
        event: &Event,
        run: &RunId,
    ) -> Result<(), serde_json::Error> {
        let lines = Arc::make_mut(&mut self.lines);
        event.append_line(Some(run), lines)?;
        lines.push(b'\n');
        self.events += 1;
        self.questions.extend(QuestionChange::of(&event.kind));
        Ok(())
    }

    /// Adds the words of an event, unless they are left out.
    pub(crate) fn push_words(&mut self, event: &Event) {
        if let Some(said) = &mut self.said
            && let Some(words) = EventWords::of(event)
        {
            Arc::make_mut(said).push(words);
        }
    }

    /// Leaves out the words of all its events: the next search reads them from the log.
    pub(crate) fn leave_out_words(&mut self) {
        self.said = None;
    }

    /// Sequence number of its first event.
    pub fn first(&self) -> Seq {
        self.first
    }

    /// Sequence number of the next event after it.
    pub fn next(&self) -> Seq {
        Seq(self.first.0.saturating_add(u64::from(self.events)))
    }

    /// Number of its events.
    pub fn len(&self) -> u32 {
        self.events
    }

    /// Whether it has no events.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Whether it is large enough to be stored.
    pub fn is_full(&self) -> bool {
        self.lines.len() >= GROUP_BYTES
    }

    /// Its lines.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// What was said in its events; `None` if that is left out, and in a group that was read.
    pub fn said(&self) -> Option<&Arc<Vec<EventWords>>> {
        self.said.as_ref()
    }

    /// The changes of the open questions in it; empty in a group that was read.
    pub(crate) fn questions(&self) -> &[QuestionChange] {
        &self.questions
    }

    /// What was said in the events of its lines; a line that cannot be read says nothing.
    pub fn words(&self) -> impl Iterator<Item = EventWords> {
        let lines = self.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        (self.first.0..).zip(lines).filter_map(|(at, line)| {
            let event = Event::from_line(std::str::from_utf8(line).ok()?).ok()?;
            EventWords::of(&Event { seq: Seq(at), ..event })
        })
    }

    /// The group with its events read, so that [`events`](Self::events) has nothing left to do.
    pub(crate) fn parsed(mut self) -> Self {
        // `events` reports the faults of the lines.
        self.parsed = self.events(Seq(0)).ok().map(Arc::new);
        self
    }

    /// Its events from `from` on.
    ///
    /// # Errors
    /// [`ReadError::Damaged`] if a line is not an event of this place.
    pub fn events(&self, from: Seq) -> Result<Vec<Arc<Event>>, ReadError> {
        if let Some(parsed) = &self.parsed {
            return Ok(parsed.iter().filter(|event| event.seq >= from).cloned().collect());
        }
        let mut events = Vec::with_capacity(self.events as usize);
        let mut read = |at: u64, line: Result<&str, Utf8Error>| {
            let damaged = |why: String| ReadError::Damaged { at, why };
            let line = line.map_err(|error| damaged(error.to_string()))?;
            let event = Event::from_line(line).map_err(|error| damaged(error.to_string()))?;
            if event.seq.0 != at {
                return Err(damaged(format!("it has the number {}", event.seq.0)));
            }
            events.push(Arc::new(event));
            Ok(())
        };
        match str::from_utf8(&self.lines) {
            Ok(text) => {
                let lines = text.split('\n').filter(|line| !line.is_empty());
                for (at, line) in (self.first.0..).zip(lines).filter(|(at, _)| *at >= from.0) {
                    read(at, Ok(line))?;
                }
            }
            Err(_) => {
                let lines = self.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                for (at, line) in (self.first.0..).zip(lines).filter(|(at, _)| *at >= from.0) {
                    read(at, str::from_utf8(line))?;
                }
            }
        }
        Ok(events)
    }
}

/// The open questions of a run that a person has to answer: who is asked.
pub(crate) type OpenQuestions = BTreeMap<QuestionId, PersonName>;

/// How an event changes the open questions of its run.
#[derive(Clone, Debug)]
pub(crate) enum QuestionChange {
    Asked(QuestionId, PersonName),
    Ended(QuestionId),
    /// The run has ended, and its questions with it.
    AllEnded,
}

impl QuestionChange {
    /// The change that an event makes. A question that a rule answers waits for nobody.
    fn of(kind: &EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::QuestionAsked(asked) if !asked.by_rule => {
                Self::Asked(asked.id, asked.who.clone())
            }
            EventKind::QuestionAnswered(answered) => Self::Ended(answered.id),
            EventKind::QuestionWithdrawn { id, .. } => Self::Ended(*id),
            EventKind::RunClosed(_) => Self::AllEnded,
            _ => return None,
        })
    }

    /// Makes the change.
    pub(crate) fn make(&self, open: &mut OpenQuestions) {
        match self {
            Self::Asked(id, who) => drop(open.insert(*id, who.clone())),
            Self::Ended(id) => drop(open.remove(id)),
            Self::AllEnded => open.clear(),
        }
    }
}

/// Bytes of words that are searched of one event.
const MAX_WORDS: usize = 256 << 10;

/// The words of an event, as the index of the store has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventWords {
    /// Sequence number of the event.
    pub seq: Seq,
    /// Its words in order, with a blank after each.
    pub words: String,
}

impl EventWords {
    /// The words of an event; `None` if nothing was said in it.
    pub fn of(event: &Event) -> Option<Self> {
        let mut words = String::new();
        TextPart::of(&event.kind)?.each_text(&mut |text| {
            push_plain_words(text, &mut words, MAX_WORDS);
        });
        (!words.is_empty()).then_some(Self { seq: event.seq, words })
    }
}

impl TextPart<'_> {
    /// The texts, in their order. A reply in JSON has those of its values.
    pub fn each_text(self, each: &mut dyn FnMut(&str)) {
        match self {
            Self::Goal(text, more) | Self::Error(text, more) => {
                each(text);
                more.into_iter().for_each(each);
            }
            Self::Arguments(value) | Self::Result(value) => each_value(value, each),
            Self::Reply(text) => match text.trim_start().starts_with(['{', '[']) {
                true => match serde_json::from_str(text) {
                    Ok(value) => each_value(&value, each),
                    Err(_) => each(text),
                },
                false => each(text),
            },
            Self::Answer(text) | Self::Handoff(text) => each(text),
        }
    }
}

/// The texts and numbers of a value.
fn each_value(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Number(number) => each(&number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| each_value(value, each)),
        Value::Object(fields) => fields.values().for_each(|value| each_value(value, each)),
        Value::Null | Value::Bool(_) => {}
    }
}
