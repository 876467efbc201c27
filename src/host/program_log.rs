//! The program's log: a file for the dashboard, standard error for a headless run. Keys and prompts are
//! never logged. Events of runs are logged here, and here alone at their level: `info` for starts
//! and ends of runs, changes by breaker, operator or command line, and warnings; `debug` for calls,
//! attempts, retries and events of patterns; `trace` for the rest.
//!
//! A line has the text of the events pane, shortened. Prompts are never logged, replies and
//! arguments only at `debug` and `trace`. The program's own actions (exports, permissions) are
//! logged where they happen.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use tracing::{Level, enabled};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::base::private_file;
use crate::base::visible::{visible_lines, visible_within};
use crate::log::event::{Event, EventKind, World};
use crate::words::sentence::sentence;

/// The environment variable with the log's filter: `debug`, or `roundtable::net=trace`.
pub const FILTER: &str = "ROUNDTABLE_LOG";

/// At the program's start a log file larger than this is renamed to `.old`: 4 MiB.
const ROTATE_AT: u64 = 4 << 20;

/// Destination of the log.
#[derive(Debug, Clone, Copy)]
pub enum Sink<'a> {
    /// Append to this file.
    File(&'a Path),
    /// Standard error: warnings and errors, unless the filter enables more.
    Stderr,
}

/// Keeps the log's writer alive; writes the remaining lines when dropped.
#[must_use]
pub struct LogGuard {
    _worker: Option<WorkerGuard>,
}

/// Starts the log. A second call has no effect.
///
/// # Errors
/// If the file cannot be opened, or is not a regular file.
pub fn start(sink: Sink<'_>) -> io::Result<LogGuard> {
    let (writer, worker, default) = match sink {
        Sink::File(path) => {
            rotate(path);
            let (writer, worker) = tracing_appender::non_blocking(private_file::append(path)?);
            (BoxMakeWriter::new(move || VisibleLog(writer.clone())), Some(worker), "info")
        }
        Sink::Stderr => (BoxMakeWriter::new(|| VisibleLog(io::stderr())), None, "warn"),
    };
    let said = std::env::var(FILTER).unwrap_or_default();
    let filter = EnvFilter::builder()
        .with_default_directive(default.parse().unwrap_or_default())
        .parse_lossy(scope_bare_level(&said));
    let filter = without_server_messages(filter, &said);
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false)
        .with_target(true)
        .try_init();
    if started.is_err() {
        tracing::debug!("the log was already started");
    }
    Ok(LogGuard { _worker: worker })
}

/// A log in which foreign text is made safe: it may be read on a terminal. An event is one write.
struct VisibleLog<W>(W);

impl<W: io::Write> io::Write for VisibleLog<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(visible_lines(&text).as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Applies a bare level to this program only: messages of libraries below a warning need an
/// explicit filter.
fn scope_bare_level(filter: &str) -> Cow<'_, str> {
    match filter.trim().parse::<LevelFilter>() {
        Ok(level) if level > LevelFilter::WARN => format!("warn,roundtable={level}").into(),
        _ => filter.into(),
    }
}

/// Leaves out what rmcp logs unless the filter names it: it logs each message of an MCP server, which
/// may send them without end, and with the secrets that it was given.
fn without_server_messages(filter: EnvFilter, said: &str) -> EnvFilter {
    match "rmcp=off".parse() {
        Ok(off) if !said.contains("rmcp") => filter.add_directive(off),
        _ => filter,
    }
}

fn rotate(path: &Path) {
    if path.metadata().is_ok_and(|file| file.len() > ROTATE_AT) {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        // If it cannot be renamed, the log keeps growing.
        let _ = std::fs::rename(path, old);
    }
}

/// Target of these lines, for filters such as `ROUNDTABLE_LOG=roundtable::run=debug`.
const TARGET: &str = "roundtable::run";

/// Length limit of a line, in characters.
const MAX_LINE_CHARS: usize = 300;

/// Whether any event would be logged.
pub fn is_on() -> bool {
    enabled!(target: TARGET, Level::INFO)
}

/// Logs an event. `world` already includes it.
pub fn log_event(event: &Event, world: &World) {
    let level = level(&event.kind);
    let wanted = match level {
        Level::INFO => is_on(),
        Level::DEBUG => enabled!(target: TARGET, Level::DEBUG),
        _ => enabled!(target: TARGET, Level::TRACE),
    };
    if !wanted {
        return;
    }
    let run = world.head.as_ref().map_or("-", |head| head.run.as_str());
    let words = sentence(event, world);
    let parts = [words.kind, &words.subject, &words.decided_text()];
    let line: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let line = visible_within(&line.join(" "), MAX_LINE_CHARS);
    let span = event.span.0;
    match level {
        Level::INFO => tracing::info!(target: TARGET, run, span, "{line}"),
        Level::DEBUG => tracing::debug!(target: TARGET, run, span, "{line}"),
        _ => tracing::trace!(target: TARGET, run, span, "{line}"),
    }
}

fn level(kind: &EventKind) -> Level {
    match kind {
        EventKind::RunStarted(_)
        | EventKind::RunClosed(_)
        | EventKind::Pausing { .. }
        | EventKind::Paused { .. }
        | EventKind::Resumed { .. }
        | EventKind::RunResumed { .. }
        | EventKind::RunForked { .. }
        | EventKind::CommandTaken { .. }
        | EventKind::CallInDoubt { .. }
        | EventKind::Stepped { .. }
        | EventKind::BreakpointChanged { .. }
        | EventKind::FlagChanged { .. }
        | EventKind::ConcurrencyChanged { .. }
        | EventKind::BreakerChanged { .. }
        | EventKind::LimitsChanged { .. }
        | EventKind::FaultInjected { .. }
        | EventKind::FaultRemoved { .. }
        | EventKind::Warning { .. }
        | EventKind::SessionRunDropped { .. } => Level::INFO,
        EventKind::Pattern(fact) if fact.get().confirms().is_some() => Level::INFO,
        // The run's own log has the first two; queue events are frequent and say little.
        EventKind::SessionRunStarted { .. }
        | EventKind::SessionRunClosed { .. }
        | EventKind::CallQueued
        | EventKind::CallAdmitted { .. }
        | EventKind::AttemptQueued { .. }
        | EventKind::ResultIgnored { .. }
        | EventKind::Unknown { .. } => Level::TRACE,
        _ => Level::DEBUG,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_level_applies_to_this_program() {
        for (said, filter) in [
            ("", ""),
            ("debug", "warn,roundtable=debug"),
            (" TRACE ", "warn,roundtable=trace"),
            ("warn", "warn"),
            ("off", "off"),
            ("hyper_util=debug,info", "hyper_util=debug,info"),
            ("roundtable::run=debug", "roundtable::run=debug"),
        ] {
            assert_eq!(scope_bare_level(said), filter);
        }
    }

    #[test]
    fn messages_of_servers_need_explicit_filter() {
        for (said, has) in [("", true), ("debug", true), ("info,rmcp=debug", false)] {
            let filter = without_server_messages(EnvFilter::new(scope_bare_level(said)), said);
            assert_eq!(filter.to_string().contains("rmcp=off"), has, "{filter}");
        }
    }

    #[test]
    fn a_large_log_is_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("roundtable.log");
        let file = private_file::append(&log).expect("made");
        file.set_len(ROTATE_AT).expect("grown");
        rotate(&log);
        assert!(log.exists(), "not larger than the bound");
        file.set_len(ROTATE_AT + 1).expect("grown");
        rotate(&log);
        assert!(!log.exists());
        assert!(folder.path().join("roundtable.log.old").exists());
    }
}
