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

    pub fn release(self) {
        self.0.execute_batch("ROLLBACK").expect("free");
    }
}
