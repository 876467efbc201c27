//! The program's own log: a file for the dashboard, standard error for a headless run. What a run
//! does stands in the run's log of facts, not here; keys and prompts stand in neither.

use std::io;
use std::path::Path;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;
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
/// When the file cannot be opened; the program can go on without a log.
pub fn start(sink: Sink<'_>) -> io::Result<LogGuard> {
    let (writer, worker, default) = match sink {
        Sink::File(path) => {
            set_aside(path);
            let (writer, worker) = tracing_appender::non_blocking(private::append(path)?);
            (BoxMakeWriter::new(writer), Some(worker), "info")
        }
        Sink::Stderr => (BoxMakeWriter::new(io::stderr), None, "warn"),
    };
    let filter = EnvFilter::builder()
        .with_default_directive(default.parse().unwrap_or_default())
        .with_env_var(FILTER)
        .from_env_lossy();
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
