//! The one thread of this process that writes. It takes everything that waits into one transaction,
//! so runs that write at the same time share the flush to the disk.
//!
//! While another process holds the lock of the database, it waits: the operator reads of it after
//! two seconds, and the wait ends after ten, or at once when the program is to end.

use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::rows::{RunCourse, update_change};
use super::text_index::{GroupWords, WaitingWords};
use super::{Database, StoreError};
use crate::log::event::{Event, EventKind, RunId, Seq};
use crate::log::world::run_row::RunRow;
use crate::store::{AppendError, EventGroup};

/// Most jobs in one transaction: it bounds how long one of them waits for the others.
const MAX_JOBS: usize = 1_024;

/// Bytes of a file that is always written again when runs were removed, since that takes less than a second:
/// 64 MiB.
const SMALL_FILE: i64 = 64 << 20;

/// After this time without work the log of the database is copied into its file.
const IDLE: Duration = Duration::from_secs(1);

/// A change of the database, in a transaction with others. It may run several times, after a failure
/// of the others or of the commit, so it reports through its return value alone.
pub(crate) type Change =
    Box<dyn FnMut(&Connection) -> rusqlite::Result<Result<u64, AppendError>> + Send>;

/// The result of a change. `Ok`: its value is stored, and survives a power failure.
pub(crate) type Changed = Result<u64, StoreError>;

enum Work {
    Change {
        change: Change,
        /// The words that are added to the index later, if the change is made.
        words: Option<GroupWords>,
        /// Whether it waits for another process that holds the lock.
        waits: bool,
    },
    /// Add the words that wait to the index.
    Index,
    /// The same, then copy the log of the database into its file.
    Checkpoint,
    /// Overwrite what removed runs have left.
    Purge { whole: bool },
}

struct Job {
    work: Work,
    done: Box<dyn FnOnce(Changed) + Send>,
}

/// The sending end of the thread. Dropping it ends the thread, once everything is stored.
pub(crate) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. `path` is that of the database.
    pub fn start(connection: Connection, path: &Path, waits: &LockWaits) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let thread_of_writes = WriterThread {
            connection,
            file: OpenFile::at(path)?,
            lock: LockClock::new(waits),
            words: WaitingWords::default(),
        };
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || thread_of_writes.serve(&queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Sends a change; the receiver gets its result. If the change is made, the words are added to the
    /// index later.
    pub fn send(&self, change: Change, words: Option<GroupWords>) -> oneshot::Receiver<Changed> {
        let (done, result) = oneshot::channel();
        self.push(Work::Change { change, words, waits: true }, move |made| {
            let _ = done.send(made);
        });
        result
    }

    fn push(&self, work: Work, done: impl FnOnce(Changed) + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            // If the thread has ended, `done` is dropped, and the receiver says so.
            let _ = jobs.send(Job { work, done: Box::new(done) });
        }
    }

    /// Waits until the words of all changes that were sent before are in the index. Words that could
    /// not be added are added with the rest of their run: see `RunTextIndex::unindexed`.
    pub fn index(&self) {
        let _ = self.finish(Work::Index);
    }

    /// Copies the log of the database into its file, so that the file alone has every run. If another
    /// process reads or writes at that moment, the copy is made later.
    pub fn checkpoint(&self) {
        let _ = self.finish(Work::Checkpoint);
    }

    /// Overwrites what removed runs have left: see [`Database::purge`].
    ///
    /// # Errors
    /// It was not done, or not all of it.
    pub fn purge(&self, whole: bool) -> Changed {
        self.finish(Work::Purge { whole })
    }

    /// Makes a change and waits for it. Blocks its thread for as long as the disk needs, and as long as
    /// the lock is waited for.
    ///
    /// # Errors
    /// It was not stored.
    pub fn wait(&self, change: Change) -> Changed {
        self.finish(Work::Change { change, words: None, waits: true })
    }

    /// Like [`wait`](Self::wait), but does not wait for another process that holds the lock.
    ///
    /// # Errors
    /// It was not stored.
    pub fn try_now(&self, change: Change) -> Changed {
        self.finish(Work::Change { change, words: None, waits: false })
    }

    /// Like [`wait`](Self::wait); if the change is made, the words are added to the index later.
    ///
    /// # Errors
    /// It was not stored.
    pub fn wait_with(&self, change: Change, words: Option<GroupWords>) -> Changed {
        self.finish(Work::Change { change, words, waits: true })
    }

    fn finish(&self, work: Work) -> Changed {
        let (done, result) = mpsc::channel();
        self.push(work, move |made| {
            let _ = done.send(made);
        });
        result.recv().unwrap_or(Err(StoreError::Closed))
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

struct WriterThread {
    connection: Connection,
    file: OpenFile,
    lock: LockClock,
    words: WaitingWords,
}

impl WriterThread {
    fn serve(mut self, queue: &mpsc::Receiver<Job>) {
        let (mut is_clean, mut has_written) = (true, false);
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
                    let is_change = |job: &Job| matches!(job.work, Work::Change { .. });
                    let (jobs, others): (Vec<Job>, Vec<Job>) =
                        jobs.into_iter().partition(is_change);
                    (is_clean, has_written) = (false, has_written || !jobs.is_empty());
                    if !jobs.is_empty() {
                        self.store(jobs);
                    }
                    if !others.is_empty() || self.words.are_due() {
                        self.add_words();
                    }
                    if others.iter().any(|job| matches!(job.work, Work::Checkpoint)) {
                        self.checkpoint("TRUNCATE");
                    }
                    for job in others {
                        let done = match job.work {
                            Work::Purge { whole } => self.purge(whole),
                            _ => Ok(0),
                        };
                        (job.done)(done);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.add_words();
                    self.checkpoint("PASSIVE");
                    is_clean = true;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.add_words();
                    if has_written {
                        self.checkpoint("TRUNCATE");
                    }
                    break;
                }
            }
        }
    }

    /// Stores jobs in one transaction. If that fails for a reason that may be one job's, each gets a
    /// transaction of its own, so that one that cannot be stored does not fail the others.
    fn store(&mut self, mut jobs: Vec<Job>) {
        match self.together(&mut jobs) {
            Ok(results) => {
                for (job, result) in jobs.into_iter().zip(results) {
                    if let (Work::Change { words: Some(said), .. }, Ok(_)) = (job.work, &result) {
                        self.words.push(said);
                    }
                    (job.done)(result.map_err(StoreError::from));
                }
            }
            Err(error) if jobs.len() == 1 || error.fails_all() => {
                tracing::debug!("{} changes were not stored: {error}", jobs.len());
                jobs.into_iter().for_each(|job| (job.done)(Err(error.clone())));
            }
            Err(_) => jobs.into_iter().for_each(|job| self.store(vec![job])),
        }
    }

    fn together(&mut self, jobs: &mut [Job]) -> Result<Vec<Result<u64, AppendError>>, StoreError> {
        let waits = jobs.iter().any(|job| matches!(job.work, Work::Change { waits: true, .. }));
        let Self { connection, file, lock, .. } = self;
        let mut step = || {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let make = |job: &mut Job| match &mut job.work {
                Work::Change { change, .. } => change(&transaction),
                Work::Index | Work::Checkpoint | Work::Purge { .. } => Ok(Ok(0)),
            };
            let results = jobs.iter_mut().map(make).collect::<Result<Vec<_>, _>>()?;
            file.check()?;
            transaction.commit()?;
            Ok(results)
        };
        if waits { lock.wait(step) } else { step() }
    }

    /// Adds the words that wait to the index. Words that are not added are read from the log by the next
    /// search, so nothing waits for the lock here.
    fn add_words(&mut self) {
        let words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        if let Err(error) = words.write(&mut self.connection) {
            tracing::debug!("words were not added to the index: {error}");
        }
    }

    /// Overwrites what removed runs have left. The index of words keeps those of removed rows until its parts
    /// are merged; a page of SQLite may keep a copy of a row that was moved, until the file is written again.
    fn purge(&self, whole: bool) -> Changed {
        let number = |name: &str| -> rusqlite::Result<i64> {
            self.connection.pragma_query_value(None, name, |row| row.get(0))
        };
        self.lock.wait(|| {
            self.file.check()?;
            self.connection.execute_batch("INSERT INTO said (said) VALUES ('optimize')")?;
            let bytes = number("page_count")?.saturating_mul(number("page_size")?);
            let is_old = number("auto_vacuum")? == 0;
            let sql = match whole || is_old || bytes <= SMALL_FILE {
                true => "PRAGMA auto_vacuum = INCREMENTAL; VACUUM",
                false => "PRAGMA incremental_vacuum",
            };
            self.connection.execute_batch(sql)?;
            Ok::<_, StoreError>(())
        })?;
        self.checkpoint("TRUNCATE");
        Ok(0)
    }

    /// Copies the log of the database into its file. What is in the log is stored already, so a
    /// failure loses nothing.
    fn checkpoint(&self, mode: &str) {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let copied = self.connection.query_row(&sql, [], |row| row.get::<_, i64>(0));
        match copied {
            Ok(0) => {}
            Ok(_) => tracing::debug!("another process uses the database: its log was not copied"),
            Err(error) => {
                tracing::debug!("the database's log was not copied into its file: {error}");
            }
        }
    }
}

/// The file of the database. It may be removed while it is open: SQLite would then write to a file
/// that no path names.
struct OpenFile {
    path: PathBuf,
    #[cfg(unix)]
    id: (u64, u64),
}

impl OpenFile {
    fn at(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            #[cfg(unix)]
            id: file_id(path)?,
        })
    }

    /// Whether the path still names the file.
    #[cfg(unix)]
    fn check(&self) -> Result<(), StoreError> {
        match file_id(&self.path) {
            Ok(id) if id == self.id => Ok(()),
            _ => Err(StoreError::Gone),
        }
    }

    /// Other systems do not remove an open file.
    #[cfg(not(unix))]
    fn check(&self) -> Result<(), StoreError> {
        if self.path.exists() { Ok(()) } else { Err(StoreError::Gone) }
    }
}

/// Device and inode of a file.
#[cfg(unix)]
fn file_id(path: &Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// The operator reads of a wait after this time.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// The longest wait, counted from when the lock was found held. Steps that follow each other
/// meanwhile fail together.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The longest wait once the program is to end. Other processes write for some milliseconds.
const LAST_WAIT: Duration = Duration::from_millis(300);

/// Time between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// How long SQLite itself waits in one attempt.
pub(super) const LOCK_ATTEMPT: Duration = Duration::from_millis(50);

/// What the operator reads then.
const LOCK_TEXT: &str = "another program holds the lock of the store; waiting for it, at most 10 s";

type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// The waits of a process for locks of its database: who reports them, and whether they end now. Clones
/// are the same.
#[derive(Clone)]
pub struct LockWaits(Arc<Mutex<Waiter>>);

struct Waiter {
    tell: Tell,
    /// When the program was to end.
    cancelled: Option<Instant>,
}

impl Default for LockWaits {
    /// Without a report.
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl LockWaits {
    /// Waits that are reported to this.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Mutex::new(Waiter { tell: Arc::new(tell), cancelled: None })))
    }

    /// Reports them to another one from now on.
    pub fn tell(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tell = Arc::new(tell);
    }

    /// Ends the waits: the program is to end.
    pub fn cancel(&self) {
        let mut waiter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiter.cancelled.get_or_insert_with(Instant::now);
    }
}

/// How long a lock has been held, for one side of the database: its writer or its readers.
pub(crate) struct LockClock {
    waits: LockWaits,
    held: Mutex<Option<Held>>,
}

struct Held {
    /// When the lock was first found held, and when it was last.
    since: Instant,
    last: Instant,
    is_told: bool,
}

impl LockClock {
    pub fn new(waits: &LockWaits) -> Self {
        Self { waits: waits.clone(), held: Mutex::default() }
    }

    /// Repeats a step while another process holds the lock.
    ///
    /// # Errors
    /// Those of the step, also that the lock is held for too long.
    pub fn wait<T, E: LockError>(&self, mut step: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        loop {
            match step() {
                Err(error) if error.is_locked() => {
                    if !self.may_wait() {
                        return Err(error);
                    }
                    thread::sleep(LOCK_PAUSE);
                }
                result => {
                    *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    return result;
                }
            }
        }
    }

    fn may_wait(&self) -> bool {
        let now = Instant::now();
        let mut held_by_this = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // What was found long ago was another wait.
        let known = held_by_this.take().filter(|held| now - held.last < LONGEST_WAIT);
        let held =
            held_by_this.insert(known.unwrap_or(Held { since: now, last: now, is_told: false }));
        held.last = now;
        let waiter = self.waits.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = held.since + LONGEST_WAIT;
        let end = waiter.cancelled.map_or(end, |at| end.min(held.since.max(at) + LAST_WAIT));
        let is_long = !held.is_told && now >= held.since + TOLD_AFTER && now < end;
        held.is_told |= is_long;
        let tell = is_long.then(|| Arc::clone(&waiter.tell));
        // Without the locks: standard error may stall.
        drop((waiter, held_by_this));
        if let Some(tell) = tell {
            tell(LOCK_TEXT);
        }
        now < end
    }
}

/// An error that may say that another process holds the lock.
pub(crate) trait LockError {
    /// Whether it says so.
    fn is_locked(&self) -> bool;
}

impl LockError for StoreError {
    fn is_locked(&self) -> bool {
        *self == Self::Locked
    }
}

impl LockError for super::OpenError {
    fn is_locked(&self) -> bool {
        matches!(self, Self::Store(StoreError::Locked))
    }
}

impl Database {
    /// An id for an imported run: its own, or that with a number where it is taken. Blocks.
    ///
    /// # Errors
    /// The database's error.
    pub fn free_id(&self, wanted: &RunId) -> Result<RunId, StoreError> {
        let mut id = wanted.clone();
        let mut number = 1_u32;
        while !self.reserve(&id, 0)? {
            number += 1;
            id = RunId::new(format!("{wanted}-{number}"));
        }
        Ok(id)
    }

    /// Stores a whole log under the row's id, which was [reserved](Self::reserve). Blocks.
    ///
    /// # Errors
    /// Why it was not stored; nothing of it is then.
    pub fn import(
        &self,
        row: &RunRow,
        course: &RunCourse,
        events: &[Arc<Event>],
    ) -> Result<(), StoreError> {
        let hash = events.iter().find_map(|event| match &event.kind {
            EventKind::RunStarted(head) => Some(head.scenario_hash()),
            _ => None,
        });
        if !self.begin(row, hash.as_deref().unwrap_or_default())? {
            return Err(StoreError::Refused(AppendError::Fenced));
        }
        // Half an import is not a run: it is hidden until all of it is there.
        let holder = Some(self.owner().name().to_owned());
        self.delete_at(&row.id, holder, Some(0))?;
        let store = |group: &EventGroup| {
            let change = self.append_change(&row.id, group.first(), group);
            let words = GroupWords::of(&row.id, group);
            self.writer().wait_with(change, words).map(Seq)
        };
        let mut group = EventGroup::starting_at(Seq(0));
        for event in events {
            group.push(event, &row.id).map_err(|error| AppendError::Unsure(error.to_string()))?;
            if group.is_full() {
                group = EventGroup::starting_at(store(&group)?);
            }
        }
        if !group.is_empty() {
            store(&group)?;
        }
        self.writer().wait(update_change(&row.id, course))?;
        let shown = self.change(row.id.clone(), |connection, run| {
            connection
                .prepare_cached("UPDATE run SET owner = NULL, deleted = NULL WHERE id = ?1")?
                .execute([run.as_str()])
                .map(|rows| rows as u64)
        });
        match shown? {
            1 => Ok(()),
            _ => Err(StoreError::Refused(AppendError::Gone)),
        }
    }
}
