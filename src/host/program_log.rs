//! The program's log: a file for the dashboard, standard error for a headless run. The
//! [`journal`](crate::host::journal) writes the events of runs to it; keys and prompts are never logged.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::base::private_file;
use crate::base::visible::visible_lines;

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

fn rotate(path: &Path) {
    if path.metadata().is_ok_and(|file| file.len() > ROTATE_AT) {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        // If it cannot be renamed, the log keeps growing.
        let _ = std::fs::rename(path, old);
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
