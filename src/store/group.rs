//! A group of consecutive events, as it is stored: lines of JSON, the same bytes as
//! `--format jsonl`.

use std::sync::Arc;

use super::ReadError;
use super::said::SaidWords;
use crate::event::{Event, RunId, Seq, safe_json};

/// Size of a group in bytes from which it gets no more events.
pub const GROUP_BYTES: usize = 256 << 10;

/// Consecutive events of one run as lines of JSON, each with its line break.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventGroup {
    first: Seq,
    events: u32,
    lines: Vec<u8>,
    /// What the index gets of it, while it is not stored.
    said: Vec<SaidWords>,
}

impl EventGroup {
    /// An empty group whose first event will have this sequence number.
    pub fn starting_at(first: Seq) -> Self {
        Self { first, events: 0, lines: Vec::new(), said: Vec::new() }
    }

    /// A group as it was stored.
    pub fn stored(first: Seq, events: u32, lines: Vec<u8>) -> Self {
        Self { first, events, lines, said: Vec::new() }
    }

    /// Adds an event.
    ///
    /// # Errors
    /// No event of roundtable causes one.
    pub fn push(&mut self, event: &Event, run: &RunId) -> Result<(), serde_json::Error> {
        let line = event.to_line_with_run(run)?;
        self.lines.extend_from_slice(safe_json::escape(&line, false).as_bytes());
        self.lines.push(b'\n');
        self.events += 1;
        self.said.extend(SaidWords::of(event));
        Ok(())
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

    /// What was said in its events; empty in a group that was read.
    pub fn said(&self) -> &[SaidWords] {
        &self.said
    }

    /// What was said in the events of its lines; a line that cannot be read says nothing.
    pub fn words(&self) -> impl Iterator<Item = SaidWords> {
        let lines = self.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        (self.first.0..).zip(lines).filter_map(|(at, line)| {
            let event = Event::from_line(std::str::from_utf8(line).ok()?).ok()?;
            SaidWords::of(&Event { seq: Seq(at), ..event })
        })
    }

    /// Its events from `from` on.
    ///
    /// # Errors
    /// [`ReadError::Damaged`] if a line is not an event of this place.
    pub fn events(&self, from: Seq) -> Result<Vec<Arc<Event>>, ReadError> {
        let mut events = Vec::with_capacity(self.events as usize);
        let lines = self.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for (at, line) in (self.first.0..).zip(lines) {
            if at < from.0 {
                continue;
            }
            let damaged = |why: String| ReadError::Damaged { at, why };
            let text = std::str::from_utf8(line).map_err(|error| damaged(error.to_string()))?;
            let event = Event::from_line(text).map_err(|error| damaged(error.to_string()))?;
            if event.seq.0 != at {
                return Err(damaged(format!("it has the number {}", event.seq.0)));
            }
            events.push(Arc::new(event));
        }
        Ok(events)
    }
}
