//! The log of a run in a file that was exported, `.jsonl` or `.jsonl.gz`: read only. Such a file is
//! data from elsewhere: nothing in it is executed, and a line that is cut off at its end is left out.

use std::fs::OpenOptions;
use std::io;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::ReadError;
use crate::base::read_file;
use crate::base::read_file::Links;
use crate::base::visible::without_byte_order_mark;
use crate::log::event::{Event, EventKind, RunStarted, Seq};

/// What is read of a file from elsewhere. A small compressed file may be a huge log, which is read into
/// memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogFileLimits {
    /// Maximum length of one line, in bytes.
    pub line: u64,
    /// Maximum length of all lines, in bytes.
    pub all: u64,
    /// Maximum number of lines.
    pub lines: u64,
}

const LIMITS: LogFileLimits = LogFileLimits { line: 64 << 20, all: 2 << 30, lines: 5_000_000 };

/// The first two bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The log of one run, as a file has it.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// The events in their order, with numbers from 0 and without gaps.
    pub events: Vec<Arc<Event>>,
    /// What was left out or changed while reading, one sentence each.
    pub notes: Vec<String>,
}

impl LogFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read, or if it does not begin with the start of a run.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let unreadable = |error: io::Error| ReadError::Unreadable(error.to_string());
        let file = read_file::open_file(path, OpenOptions::new().read(true), Links::Followed)
            .map_err(unreadable)?;
        Self::read(file)
    }

    /// Reads the log of one run: JSON lines, compressed or not.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(from: impl Read + Send) -> Result<Self, ReadError> {
        Self::read_within(from, LIMITS)
    }

    /// As [`read`](Self::read), with other limits.
    pub(crate) fn read_within(
        from: impl Read + Send,
        limits: LogFileLimits,
    ) -> Result<Self, ReadError> {
        let unreadable = |error: io::Error| ReadError::Unreadable(error.to_string());
        let mut from = BufReader::new(from);
        let is_gzip = from.fill_buf().map_err(unreadable)?.starts_with(&GZIP);
        if is_gzip {
            read_lines(BufReader::new(flate2::bufread::MultiGzDecoder::new(from)), limits)
        } else {
            read_lines(from, limits)
        }
    }

    /// The head of the run.
    pub fn head(&self) -> Option<&Arc<RunStarted>> {
        match &self.events.first()?.kind {
            EventKind::RunStarted(head) => Some(head),
            _ => None,
        }
    }
}

fn read_lines(mut from: impl BufRead, limits: LogFileLimits) -> Result<LogFile, ReadError> {
    let mut log = LogFile { events: Vec::new(), notes: Vec::new() };
    let mut line = Vec::new();
    let mut all = 0;
    for number in 1_u64.. {
        line.clear();
        let read = (&mut from).take(limits.line).read_until(b'\n', &mut line);
        all += line.len() as u64;
        if number > limits.lines || all > limits.all {
            let why = format!(
                "the log is too long: at most {} lines, {} bytes uncompressed",
                limits.lines, limits.all
            );
            return Err(ReadError::Damaged { at: number.saturating_sub(1), why });
        }
        let cut = match read {
            Ok(0) => break,
            Ok(_) if line.len() as u64 == limits.line && line.last() != Some(&b'\n') => {
                let why = format!("its line is longer than {} bytes", limits.line);
                return Err(ReadError::Damaged { at: number.saturating_sub(1), why });
            }
            Ok(_) => line.last() != Some(&b'\n'),
            // A compressed file that was cut off.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
            Err(error) => return Err(ReadError::Unreadable(error.to_string())),
        };
        if !push_line(&mut log, &line, number, cut)? {
            break;
        }
    }
    if log.head().is_none() {
        let is_cut = log.events.is_empty() && !log.notes.is_empty();
        let why = match is_cut {
            true => "the file is cut off in its first line".to_owned(),
            false => "the file does not begin with run.started".to_owned(),
        };
        return Err(ReadError::Damaged { at: 0, why });
    }
    Ok(log)
}

/// Adds the event of a line; returns whether more lines follow.
fn push_line(log: &mut LogFile, line: &[u8], number: u64, cut: bool) -> Result<bool, ReadError> {
    let line = if number == 1 { without_byte_order_mark(line) } else { line };
    let text = match std::str::from_utf8(line) {
        Ok(text) => text.trim(),
        Err(_) if cut => "",
        Err(error) => return Err(damaged(number, &error)),
    };
    if text.is_empty() {
        return Ok(!cut);
    }
    let event = match Event::from_line(text) {
        Ok(event) => event,
        Err(_) if is_outcome(text) => return Ok(!cut),
        Err(_) if cut => {
            log.notes.push(format!("line {number} is cut off and was left out"));
            return Ok(false);
        }
        Err(error) => return Err(damaged(number, &error)),
    };
    let next = log.events.len() as u64;
    if matches!(event.kind, EventKind::RunStarted(_)) && next > 0 {
        let why = "a second run begins here: export runs one by one".to_owned();
        return Err(ReadError::Damaged { at: number.saturating_sub(1), why });
    }
    if event.seq.0 != next && log.notes.is_empty() {
        log.notes.push(format!("line {number} has the number {}, not {next}", event.seq.0));
    }
    log.events.push(Arc::new(Event { seq: Seq(next), ..event }));
    Ok(!cut)
}

fn damaged(line: u64, why: &dyn std::fmt::Display) -> ReadError {
    ReadError::Damaged { at: line.saturating_sub(1), why: why.to_string() }
}

/// Whether a line is the outcome that ends `--format jsonl`; it follows from the events.
fn is_outcome(text: &str) -> bool {
    serde_json::from_str::<Value>(text)
        .is_ok_and(|line| matches!(line["kind"].as_str(), Some("outcome" | "session")))
}
