//! A group of consecutive events, as it is stored: lines of JSON, the same bytes as
//! `--format jsonl`.

use std::str::{self, Utf8Error};
use std::sync::Arc;

use super::ReadError;
use super::said::SaidWords;
use crate::event::{Event, RunId, Seq};

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
    /// What the index gets of it, while it is not stored; `None`: the next search reads it from the log.
    said: Option<Arc<Vec<SaidWords>>>,
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
    pub(super) fn reusing(stored: Self, first: Seq) -> Self {
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

    /// A group as it was stored, if it is what was written: it has so many lines, and the checksum of its
    /// bytes is `sum`. Without a checksum (of an earlier version of the store) each line has to be an
    /// event of its place.
    ///
    /// # Errors
    /// [`ReadError::Damaged`].
    pub fn checked(
        first: Seq,
        events: u32,
        lines: Vec<u8>,
        sum: Option<u32>,
    ) -> Result<Self, ReadError> {
        let damaged = |why: &str| ReadError::Damaged { at: first.0, why: why.to_owned() };
        let mut group = Self::stored(first, events, lines);
        if sum.is_some_and(|sum| sum != group.sum()) {
            return Err(damaged("its bytes are not those that were stored"));
        }
        let ends = group.lines.iter().filter(|byte| **byte == b'\n').count();
        if ends as u64 != u64::from(events) || group.lines.last().is_some_and(|it| *it != b'\n') {
            return Err(damaged("its group has another number of lines than were stored"));
        }
        if sum.is_none() {
            group.parsed = Some(Arc::new(group.events(Seq(0))?));
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
        self.push_line(|lines| event.append_line(Some(run), lines))?;
        self.push_words(event);
        Ok(())
    }

    /// Adds the line of an event, which `append` writes, and not its words.
    ///
    /// # Errors
    /// Those of `append`; then nothing is added.
    pub(super) fn push_line(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<(), serde_json::Error> {
        let lines = Arc::make_mut(&mut self.lines);
        append(lines)?;
        lines.push(b'\n');
        self.events += 1;
        Ok(())
    }

    /// Adds the words of an event, unless they are left out.
    pub(super) fn push_words(&mut self, event: &Event) {
        if let Some(said) = &mut self.said
            && let Some(words) = SaidWords::of(event)
        {
            Arc::make_mut(said).push(words);
        }
    }

    /// Leaves out the words of all its events: the next search reads them from the log.
    pub(super) fn leave_out_words(&mut self) {
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
    pub fn said(&self) -> Option<&Arc<Vec<SaidWords>>> {
        self.said.as_ref()
    }

    /// What was said in the events of its lines; a line that cannot be read says nothing.
    pub fn words(&self) -> impl Iterator<Item = SaidWords> {
        let lines = self.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        (self.first.0..).zip(lines).filter_map(|(at, line)| {
            let event = Event::from_line(std::str::from_utf8(line).ok()?).ok()?;
            SaidWords::of(&Event { seq: Seq(at), ..event })
        })
    }

    /// The group with its events read, so that [`events`](Self::events) has nothing left to do.
    pub(super) fn parsed(mut self) -> Self {
        // What is wrong with them is said by `events`.
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
