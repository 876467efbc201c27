//! The one thread of this process that writes. It takes everything that waits into one transaction,
//! so runs that write at the same time share the flush to the disk.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::oneshot;

use super::error::StoreError;
use crate::store::AppendError;

/// Most jobs in one transaction: it bounds how long one of them waits for the others.
const MAX_JOBS: usize = 1_024;

/// After this time without work the log of the database is copied into its file.
const IDLE: Duration = Duration::from_secs(1);

/// A change of the database, in a transaction with others. It may run twice, after a failure of the
/// others, so it reports through its return value alone.
pub(super) type Change =
    Box<dyn FnMut(&Connection) -> rusqlite::Result<Result<u64, AppendError>> + Send>;

struct Job {
    change: Change,
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
        let (done, result) = oneshot::channel();
        self.push(change, move |made| {
            let _ = done.send(made);
        });
        result
    }

    fn push(&self, change: Change, done: impl FnOnce(Result<u64, AppendError>) + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            // If the thread has ended, `done` is dropped, and the receiver says so.
            let _ = jobs.send(Job { change, done: Box::new(done) });
        }
    }

    /// Makes a change and waits for it. Blocks its thread for as long as the disk needs.
    ///
    /// # Errors
    /// The database's error; [`StoreError::Closed`] if the thread has ended.
    pub fn wait(&self, mut change: Change) -> Result<Result<u64, AppendError>, StoreError> {
        let (failed, failure) = mpsc::channel();
        let change: Change = Box::new(move |connection| {
            change(connection).or_else(|error| {
                let text = error_text(&error);
                let _ = failed.send(error);
                Ok(Err(AppendError::Unsure(text)))
            })
        });
        let (done, result) = mpsc::channel();
        self.push(change, move |made| {
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
                store(&mut connection, jobs);
                is_clean = false;
            }
            Err(RecvTimeoutError::Timeout) => {
                checkpoint(&connection);
                is_clean = true;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
}

/// Stores jobs in one transaction. If that fails, each gets a transaction of its own, so that one
/// that cannot be stored does not fail the others.
fn store(connection: &mut Connection, mut jobs: Vec<Job>) {
    match together(connection, &mut jobs) {
        Ok(results) => {
            for (job, result) in jobs.into_iter().zip(results) {
                (job.done)(result);
            }
        }
        Err(error) if jobs.len() == 1 => {
            for job in jobs {
                (job.done)(Err(AppendError::Unsure(error_text(&error))));
            }
        }
        Err(_) => jobs.into_iter().for_each(|job| store(connection, vec![job])),
    }
}

fn together(
    connection: &mut Connection,
    jobs: &mut [Job],
) -> rusqlite::Result<Vec<Result<u64, AppendError>>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let results =
        jobs.iter_mut().map(|job| (job.change)(&transaction)).collect::<Result<Vec<_>, _>>()?;
    transaction.commit()?;
    Ok(results)
}

/// The words for an error that the operator can do something about.
pub(super) fn error_text(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
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
