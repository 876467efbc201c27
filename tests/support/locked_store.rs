//! Another program that holds the lock of a store, as a backup or a database browser does.

use std::time::Duration;

use rusqlite::Connection;

use super::binary::Home;

/// How long it waits for the program itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// The lock; it is free again when this is dropped.
pub struct StoreLock(Connection);

impl StoreLock {
    /// Takes the lock that who writes needs.
    pub fn of(home: &Home) -> Self {
        let path = home.path().join("state/roundtable/runs.db");
        let other = Connection::open(path).expect("opens");
        other.busy_timeout(PATIENCE).expect("set");
        other.execute_batch("BEGIN IMMEDIATE").expect("locked");
        Self(other)
    }

    /// Takes the lock that even readers need, as a database browser does in its exclusive mode.
    pub fn exclusive(home: &Home) -> Self {
        let Self(other) = Self::of(home);
        other
            .execute_batch("ROLLBACK; PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE")
            .expect("locked");
        other.execute_batch("UPDATE run SET epoch = epoch + 1").expect("written");
        Self(other)
    }

    pub fn release(self) {
        self.0.execute_batch("ROLLBACK").expect("free");
    }
}
