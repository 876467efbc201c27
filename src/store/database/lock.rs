//! How long this process waits for another one that holds the lock of the database. The operator
//! reads of it after two seconds, the wait ends after ten, and at once when the program is to end.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::error::StoreError;

/// The operator reads of a wait after this time.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// The longest wait, counted from when the lock was found held: however many steps follow each other
/// meanwhile, they fail together.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The longest wait once the program is to end. Other processes write for some milliseconds.
const LAST_WAIT: Duration = Duration::from_millis(300);

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// How long SQLite itself waits in one attempt.
pub(super) const ATTEMPT: Duration = Duration::from_millis(50);

/// What the operator reads then.
const TEXT: &str = "another program holds the lock of the store; waiting for it, at most 10 s";

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
pub(super) struct LockClock {
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
                    thread::sleep(PAUSE);
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
            tell(TEXT);
        }
        now < end
    }
}

/// An error that may say that another process holds the lock.
pub(super) trait LockError {
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
