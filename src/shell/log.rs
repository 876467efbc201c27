//! The program's own log: a file for the dashboard, standard error for a headless run. What runs do
//! stands there as far as [`journal`](super::journal) tells it; keys and prompts never do.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::private;

/// The variable that filters the log: `ROUNDTABLE_LOG=debug`, `ROUNDTABLE_LOG=roundtable::net=trace`.
pub const FILTER: &str = "ROUNDTABLE_LOG";

/// A log file larger than this is set aside (`.old`) when the program starts: 4 MiB.
const ROTATE_AT: u64 = 4 << 20;

/// Where the log goes.
#[derive(Debug, Clone, Copy)]
pub enum Sink<'a> {
    /// Appended to this file.
    File(&'a Path),
    /// Standard error: warnings and worse, unless the filter says more.
    Stderr,
}

/// Keeps the log going; dropped, it writes what is left.
#[must_use]
pub struct LogGuard {
    _worker: Option<WorkerGuard>,
}

/// Starts the log. A second call changes nothing.
///
/// # Errors
/// When the file cannot be opened, or is no regular file.
pub fn start(sink: Sink<'_>) -> io::Result<LogGuard> {
    let (writer, worker, default) = match sink {
        Sink::File(path) => {
            set_aside(path);
            let (writer, worker) = tracing_appender::non_blocking(private::append(path)?);
            (BoxMakeWriter::new(writer), Some(worker), "info")
        }
        Sink::Stderr => (BoxMakeWriter::new(io::stderr), None, "warn"),
    };
    let said = std::env::var(FILTER).unwrap_or_default();
    let filter = EnvFilter::builder()
        .with_default_directive(default.parse().unwrap_or_default())
        .parse_lossy(of_ours(&said));
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false)
        .with_target(true)
        .try_init();
    if started.is_err() {
        tracing::debug!("a log was started before");
    }
    Ok(LogGuard { _worker: worker })
}

/// A bare level is meant for this program: what its libraries have to say below a warning is asked for
/// by their names.
fn of_ours(filter: &str) -> Cow<'_, str> {
    match filter.trim().parse::<LevelFilter>() {
        Ok(level) if level > LevelFilter::WARN => format!("warn,roundtable={level}").into(),
        _ => filter.into(),
    }
}

fn set_aside(path: &Path) {
    if path.metadata().is_ok_and(|file| file.len() > ROTATE_AT) {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        // A log that cannot be set aside grows on; nothing is lost.
        let _ = std::fs::rename(path, old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_is_that_of_this_program() {
        for (said, filter) in [
            ("", ""),
            ("debug", "warn,roundtable=debug"),
            (" TRACE ", "warn,roundtable=trace"),
            ("warn", "warn"),
            ("off", "off"),
            ("hyper_util=debug,info", "hyper_util=debug,info"),
            ("roundtable::run=debug", "roundtable::run=debug"),
        ] {
            assert_eq!(of_ours(said), filter);
        }
    }

    #[test]
    fn a_large_log_is_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("roundtable.log");
        let file = private::append(&log).expect("made");
        file.set_len(ROTATE_AT).expect("grown");
        set_aside(&log);
        assert!(log.exists(), "not larger than the bound");
        file.set_len(ROTATE_AT + 1).expect("grown");
        set_aside(&log);
        assert!(!log.exists());
        assert!(folder.path().join("roundtable.log.old").exists());
    }
}
