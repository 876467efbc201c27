//! The one thread of this process that writes. It takes everything that waits into one transaction,
//! so runs that write at the same time share the flush to the disk.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::oneshot;

use super::error::StoreError;
use super::waiting_words::{GroupWords, WaitingWords};
use crate::store::AppendError;

/// Most jobs in one transaction: it bounds how long one of them waits for the others.
const MAX_JOBS: usize = 1_024;

/// After this time without work the log of the database is copied into its file.
const IDLE: Duration = Duration::from_secs(1);

/// A change of the database, in a transaction with others. It may run twice, after a failure of the
/// others, so it reports through its return value alone.
pub(super) type Change =
    Box<dyn FnMut(&Connection) -> rusqlite::Result<Result<u64, AppendError>> + Send>;

enum Work {
    Change(Change, Option<GroupWords>),
    /// Add the words that wait to the index.
    Index,
}

struct Job {
    work: Work,
    done: Box<dyn FnOnce(Result<u64, AppendError>) + Send>,
}

/// The sending end of the thread. Dropping it ends the thread, once everything is stored.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub fn start(connection: Connection) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || write(connection, &queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Sends a change; the receiver gets its result once it survives a power failure.
    pub fn send(&self, change: Change) -> oneshot::Receiver<Result<u64, AppendError>> {
        self.send_with(change, None)
    }

    /// Like [`send`](Self::send); if the change is made, the words are added to the index later.
    pub fn send_with(
        &self,
        change: Change,
        words: Option<GroupWords>,
    ) -> oneshot::Receiver<Result<u64, AppendError>> {
        let (done, result) = oneshot::channel();
        self.push(Work::Change(change, words), move |made| {
            let _ = done.send(made);
        });
        result
    }

    fn push(&self, work: Work, done: impl FnOnce(Result<u64, AppendError>) + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            // If the thread has ended, `done` is dropped, and the receiver says so.
            let _ = jobs.send(Job { work, done: Box::new(done) });
        }
    }

    /// Waits until the words of all changes that were sent before are in the index. Words that could
    /// not be added are added with the rest of their run: see `SaidIndex::unindexed`.
    pub fn index(&self) {
        let (done, result) = mpsc::channel();
        self.push(Work::Index, move |_| {
            let _ = done.send(());
        });
        let _ = result.recv();
    }

    /// Makes a change and waits for it. Blocks its thread for as long as the disk needs.
    ///
    /// # Errors
    /// The database's error; [`StoreError::Closed`] if the thread has ended.
    pub fn wait(&self, change: Change) -> Result<Result<u64, AppendError>, StoreError> {
        self.wait_with(change, None)
    }

    /// Like [`wait`](Self::wait); if the change is made, the words are added to the index later.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_with(
        &self,
        mut change: Change,
        words: Option<GroupWords>,
    ) -> Result<Result<u64, AppendError>, StoreError> {
        let (failed, failure) = mpsc::channel();
        let change: Change = Box::new(move |connection| {
            change(connection).or_else(|error| {
                let text = error_text(&error);
                let _ = failed.send(error);
                Ok(Err(AppendError::Unsure(text)))
            })
        });
        let (done, result) = mpsc::channel();
        self.push(Work::Change(change, words), move |made| {
            let _ = done.send(made);
        });
        let made = result.recv().map_err(|_| StoreError::Closed)?;
        match failure.try_recv() {
            Ok(error) => Err(StoreError::Database(error)),
            Err(_) => Ok(made),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(mut connection: Connection, queue: &mpsc::Receiver<Job>) {
    let mut is_clean = true;
    let mut words = WaitingWords::default();
    loop {
        let first = if is_clean {
            queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            queue.recv_timeout(IDLE)
        };
        match first {
            Ok(first) => {
                let mut jobs = vec![first];
                jobs.extend(queue.try_iter().take(MAX_JOBS - 1));
                let is_index = |job: &Job| matches!(job.work, Work::Index);
                let (searches, jobs): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(is_index);
                if !jobs.is_empty() {
                    store(&mut connection, jobs, &mut words);
                }
                if !searches.is_empty() || words.are_due() {
                    words.add_to_index(&mut connection);
                }
                searches.into_iter().for_each(|job| (job.done)(Ok(0)));
                is_clean = false;
            }
            Err(RecvTimeoutError::Timeout) => {
                words.add_to_index(&mut connection);
                checkpoint(&connection);
                is_clean = true;
            }
            Err(RecvTimeoutError::Disconnected) => {
                words.add_to_index(&mut connection);
                break;
            }
        }
    }
}

/// Stores jobs in one transaction. If that fails, each gets a transaction of its own, so that one
/// that cannot be stored does not fail the others.
fn store(connection: &mut Connection, mut jobs: Vec<Job>, words: &mut WaitingWords) {
    match together(connection, &mut jobs) {
        Ok(results) => {
            for (job, result) in jobs.into_iter().zip(results) {
                if let (Work::Change(_, Some(said)), Ok(_)) = (job.work, &result) {
                    words.push(said);
                }
                (job.done)(result);
            }
        }
        Err(error) if jobs.len() == 1 => {
            for job in jobs {
                (job.done)(Err(AppendError::Unsure(error_text(&error))));
            }
        }
        Err(_) => jobs.into_iter().for_each(|job| store(connection, vec![job], words)),
    }
}

fn together(
    connection: &mut Connection,
    jobs: &mut [Job],
) -> rusqlite::Result<Vec<Result<u64, AppendError>>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let make = |job: &mut Job| match &mut job.work {
        Work::Change(change, _) => change(&transaction),
        Work::Index => Ok(Ok(0)),
    };
    let results = jobs.iter_mut().map(make).collect::<Result<Vec<_>, _>>()?;
    transaction.commit()?;
    Ok(results)
}

/// The words for an error that the operator can do something about.
pub(super) fn error_text(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
        Some(ErrorCode::SystemIoFailure) => {
            "the disk cannot be written: it is full, a quota is used up, or it is broken".to_owned()
        }
        Some(ErrorCode::ReadOnly) => "the database cannot be written: it is read-only".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the lock of the database".to_owned()
        }
        _ => error.to_string(),
    }
}

fn checkpoint(connection: &Connection) {
    let copied = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(error) = copied {
        tracing::debug!("the database's log was not copied into its file: {error}");
    }
}
