//! Where the logs of runs are kept: the trait [`RunLog`], its implementations ([`database`] in
//! SQLite, [`memory`], [`file`] for an exported `.jsonl`), and the [`recorder`] that stores a run
//! while it runs. This module knows nothing of engines and screens: it reads a [`Bus`](crate::Bus)
//! like any other reader.

pub mod database;
pub mod file;
mod group;
#[cfg(test)]
pub mod memory;
pub mod recorder;
pub mod said;
#[cfg(test)]
mod tests;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::event::{RunId, Seq};

pub use self::group::EventGroup;

/// Durable, ordered logs, one for each run. A log grows at its end only, by groups of consecutive
/// events.
pub trait RunLog: Send + Sync {
    /// Appends a group to the log of a run. `expect` is the sequence number that the log has to
    /// continue with. Returns the number of the next event after the group; when this returns, the
    /// group survives a power failure. A log that is written elsewhere may begin at once, so the caller
    /// can do something else before it awaits the result, and append the next group meanwhile: it is
    /// refused if this one was not stored.
    ///
    /// # Errors
    /// See `AppendError`.
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        expect: Seq,
        group: &EventGroup,
    ) -> BoxFuture<'a, Result<Seq, AppendError>>;

    /// Whether what is said is indexed: only then groups get the words of their events.
    fn has_index(&self) -> bool {
        false
    }

    /// The sequence number that the log of a run continues with.
    ///
    /// # Errors
    /// `AppendError::Gone` if there is no such run, `AppendError::Unsure` if it cannot be read.
    fn next<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Seq, AppendError>>;

    /// The groups of a log from the one that has the event `from`, up to the present end.
    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>>;

    /// Like [`read`](Self::read), then the groups that are appended later, by whichever process,
    /// until the run has ended.
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
