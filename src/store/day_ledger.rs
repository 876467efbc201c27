//! The spending of each day, of all runs of the user. It is a small database next to the runs, and is used even if no
//! run is kept. A call reserves its largest cost in one transaction before it is made, so that parallel processes cannot
//! reserve the same room. The reservations of a killed process stay, and count as spent.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::database::writer::{LockClock, LockWaits};
use super::database::{StoreError, is_on_network};
use crate::base::private_file;
use crate::run::spending::{Amount, DayAccount, DayRefusal, exceeded};
use crate::scenario::spec::SpendingLimits;

/// How long a transaction waits for the lock of the database.
const LOCKED: Duration = Duration::from_secs(5);

/// How long calls wait for reserved room while no call ends: the process that reserved it may have been killed.
const SILENT: Duration = Duration::from_secs(30);

/// `settled` counts the calls that have ended.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS day (
        date TEXT PRIMARY KEY,
        tokens INTEGER NOT NULL DEFAULT 0,
        usd REAL NOT NULL DEFAULT 0,
        reserved_tokens INTEGER NOT NULL DEFAULT 0,
        reserved_usd REAL NOT NULL DEFAULT 0,
        settled INTEGER NOT NULL DEFAULT 0
    ) STRICT;";

/// The account of a user, with the limits of a day.
#[derive(Debug)]
pub struct DayLedger {
    limits: SpendingLimits,
    connection: Mutex<Connection>,
    /// The number of ended calls that a waiting call has seen, and since when it has not changed.
    waits_since: Mutex<Option<(i64, Instant)>>,
}

/// The spent and the reserved amount of a day.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DaySpent {
    pub spent: Amount,
    pub reserved: Amount,
    settled: i64,
}

impl DayLedger {
    /// Opens the file; creates it (mode 0600) if it is missing.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn open(path: &Path, limits: SpendingLimits) -> Result<Self, String> {
        let open = || {
            drop(private_file::append(path)?);
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(LOCKED)?;
            let mode = if is_on_network(path) { "DELETE" } else { "WAL" };
            // SQLite itself does not wait where two processes turn a new file into one with a WAL.
            let opening = LockClock::new(&LockWaits::default());
            let set =
                || connection.pragma_update(None, "journal_mode", mode).map_err(StoreError::from);
            opening.wait(set)?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            opening.wait(|| connection.execute_batch(TABLE).map_err(StoreError::from))?;
            Ok(connection)
        };
        let connection = open().map_err(|error: Box<dyn std::error::Error>| error.to_string())?;
        Ok(Self { limits, connection: Mutex::new(connection), waits_since: Mutex::default() })
    }

    /// The spent and the reserved amount of today.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn today(&self) -> Result<DaySpent, String> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let date = today(&connection).map_err(|error| error.to_string())?;
        spent_on(&connection, &date).map_err(|error| error.to_string())
    }

    fn try_reserve(&self, amount: Amount) -> rusqlite::Result<Result<String, DayRefusal>> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let date = today(&change)?;
        let known = spent_on(&change, &date)?;
        if let Some(reached) = exceeded(self.limits, known.spent.and(known.reserved), amount, true)
        {
            let may_fit = exceeded(self.limits, known.spent, amount, true).is_none();
            let may_fit = may_fit && self.is_worth_waiting(known.settled);
            return Ok(Err(DayRefusal::Full { reached, may_fit }));
        }
        change.execute(
            "INSERT INTO day (date, reserved_tokens, reserved_usd) VALUES (?1, ?2, ?3)
             ON CONFLICT (date) DO UPDATE SET
                reserved_tokens = reserved_tokens + ?2, reserved_usd = reserved_usd + ?3",
            params![date, count(amount.tokens), amount.usd],
        )?;
        change.commit()?;
        Ok(Ok(date))
    }

    /// Whether a waiting call may still get room: a call has ended lately, or the wait is short.
    fn is_worth_waiting(&self, settled: i64) -> bool {
        let mut waits = self.waits_since.lock().unwrap_or_else(PoisonError::into_inner);
        match *waits {
            Some((known, since)) if known == settled => since.elapsed() < SILENT,
            _ => {
                *waits = Some((settled, Instant::now()));
                true
            }
        }
    }
}

impl DayAccount for DayLedger {
    fn limits(&self) -> SpendingLimits {
        self.limits
    }

    fn reserve(&self, amount: Amount) -> Result<String, DayRefusal> {
        let failed = |error: rusqlite::Error| {
            DayRefusal::Failed(format!("the spending of today cannot be written: {error}"))
        };
        self.try_reserve(amount).map_err(failed).flatten()
    }

    fn settle(&self, date: &str, reserved: Amount, used: Amount) {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = connection.execute(
            "UPDATE day SET
                reserved_tokens = max(0, reserved_tokens - ?2), reserved_usd = max(0.0, reserved_usd - ?3),
                tokens = tokens + ?4, usd = usd + ?5, settled = settled + 1
             WHERE date = ?1",
            params![date, count(reserved.tokens), reserved.usd, count(used.tokens), used.usd],
        );
        if let Err(error) = settled {
            // Its reservation stays, and counts as spent.
            tracing::warn!("the spending of a call is not written: {error}");
        }
    }
}

/// The date of this machine's time zone.
fn today(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT date('now', 'localtime')", [], |row| row.get(0))
}

fn spent_on(connection: &Connection, date: &str) -> rusqlite::Result<DaySpent> {
    let mut found = connection.prepare_cached(
        "SELECT tokens, usd, reserved_tokens, reserved_usd, settled FROM day WHERE date = ?1",
    )?;
    let amount = |tokens: i64, usd| Amount { tokens: u64::try_from(tokens).unwrap_or(0), usd };
    let row = found.query_row([date], |row| {
        Ok(DaySpent {
            spent: amount(row.get(0)?, row.get(1)?),
            reserved: amount(row.get(2)?, row.get(3)?),
            settled: row.get(4)?,
        })
    });
    match row {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(DaySpent::default()),
        row => row,
    }
}

fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
