//! The log of a kept run, read in groups: as it is stored, or without its texts.

use std::io::{self, Write};

use crate::event::redact::TextRedactor;
use crate::event::{Event, RunId, Seq, World};
use crate::narrate::page::RunPageWriter;
use crate::store::EventGroup;
use crate::store::database::{Database, StoreError};

/// The log of a kept run.
pub struct StoredLog {
    /// The store.
    pub database: Database,
    /// Id of the run.
    pub run: RunId,
    /// The key for the digests of texts; `None`: the texts stay.
    pub key: Option<[u8; 32]>,
}

impl StoredLog {
    /// Writes the log as JSON lines. Blocks.
    ///
    /// # Errors
    /// Those of `out`, or that the store cannot be read.
    pub fn write_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.key.is_none() {
            return self.each_group(|group| out.write_all(group.lines()));
        }
        self.each_event(|event| {
            let mut line = EventGroup::starting_at(event.seq);
            line.push(&event, &self.run).map_err(io::Error::other)?;
            out.write_all(line.lines())
        })
    }

    /// Writes the run as a page of HTML. Reads the log twice: the page begins with the result. Blocks.
    ///
    /// # Errors
    /// As [`write_lines`](Self::write_lines).
    pub fn write_page(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut world = World::new();
        self.each_event(|event| {
            world.apply(&event);
            Ok(())
        })?;
        let mut page = RunPageWriter::begin(out, &world)?;
        self.each_event(|event| page.event(&event))?;
        page.end()
    }

    /// Passes each event in order. Blocks.
    ///
    /// # Errors
    /// Those of `take`, or that the store cannot be read.
    pub fn each_event(&self, mut take: impl FnMut(Event) -> io::Result<()>) -> io::Result<()> {
        let mut redactor = self.key.map(TextRedactor::new);
        self.each_group(|group| {
            let events = group.events(group.first()).map_err(StoreError::from);
            for event in events.map_err(io::Error::other)? {
                let event = Event::clone(&event);
                take(match &mut redactor {
                    Some(redactor) => redactor.redact(event),
                    None => event,
                })?;
            }
            Ok(())
        })
    }

    fn each_group(&self, mut take: impl FnMut(&EventGroup) -> io::Result<()>) -> io::Result<()> {
        let mut from = Seq(0);
        loop {
            let read = self.database.some_groups(&self.run, from).map_err(io::Error::other)?;
            let Some((groups, _)) = read.filter(|(groups, _)| !groups.is_empty()) else {
                return Ok(());
            };
            for group in groups {
                take(&group)?;
                from = group.next();
            }
        }
    }
}
