//! What a headless run writes to standard output, in each of its formats.

use std::io::{self, Write};

use super::args::Format;
use super::paint::Paint;
use super::{progress, safe_json};
use crate::event::world::Outcome;
use crate::event::{Event, World};

/// Writes a run in one format.
pub struct Output<W: Write> {
    format: Format,
    paint: Paint,
    to: io::BufWriter<W>,
}

impl<W: Write> Output<W> {
    /// Writes to `to`.
    pub fn new(format: Format, paint: Paint, to: W) -> Self {
        Self { format, paint, to: io::BufWriter::new(to) }
    }

    /// An event; `world` has it folded already.
    ///
    /// # Errors
    /// What the stream says; a reader that has gone is `BrokenPipe`.
    pub fn event(&mut self, event: &Event, world: &World) -> io::Result<()> {
        match self.format {
            Format::Json => Ok(()),
            Format::Jsonl => {
                let line = event.to_line().map_err(io::Error::other)?;
                writeln!(self.to, "{}", safe_json::escape(&line, false))
            }
            Format::Text => match progress::lines(event, world, &self.paint) {
                Some(line) => writeln!(self.to, "{line}"),
                None => Ok(()),
            },
        }
    }

    /// Hands on what was written so far.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// The outcome, at the end.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn outcome(&mut self, outcome: &Outcome, world: &World) -> io::Result<()> {
        match self.format {
            Format::Json => {
                let json = safe_json::pretty(outcome).map_err(io::Error::other)?;
                writeln!(self.to, "{json}")?;
            }
            Format::Jsonl => {
                let json = safe_json::line(outcome).map_err(io::Error::other)?;
                writeln!(self.to, "{json}")?;
            }
            Format::Text => write!(self.to, "{}", progress::closing(outcome, world))?,
        }
        self.to.flush()
    }
}
