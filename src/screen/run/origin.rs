//! What a page knows of its run apart from the events: the kept run that it shows, the session's
//! request and next message, the runner that plays it.

use std::sync::Arc;
use std::time::Duration;

use super::RunPage;
use crate::base::time::millis;
use crate::log::event::Elapsed;
use crate::log::world::RunState;
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::screen::effect::{LaunchRequest, RequestId};

/// A kept run, or one in an exported log, and whether all of its events are here.
#[derive(Clone, Debug)]
pub struct KeptRun {
    pub row: RunRow,
    /// Whether its log is an exported one. Such a run is not in the store, even if one there has its id.
    pub is_file: bool,
    pub request: RequestId,
    /// Whether all of the log has been read.
    pub is_read: bool,
    /// When the program started, as Unix time in milliseconds.
    began_ms: u64,
}

impl KeptRun {
    /// A kept run whose events are not here yet. `wall_ms` is the time as Unix time in
    /// milliseconds, `now` the time since the start of the program.
    pub fn new(row: RunRow, request: RequestId, wall_ms: u64, now: Duration) -> Self {
        let began_ms = wall_ms.saturating_sub(millis(now));
        Self { row, is_file: false, request, is_read: false, began_ms }
    }

    /// How long ago it started, in milliseconds.
    pub fn age_ms(&self, now: Duration) -> u64 {
        self.began_ms.saturating_add(millis(now)).saturating_sub(self.row.started_ms)
    }

    /// Whether another process plays it.
    pub fn is_elsewhere(&self) -> bool {
        self.row.status == RunStatus::Running
    }

    /// Whether its process ended before it did.
    pub fn is_interrupted(&self) -> bool {
        self.row.status == RunStatus::Interrupted
    }
}

/// The page of a kept run. It is empty until the events are read.
pub(crate) fn kept_page(kept: KeptRun) -> RunPage {
    let mut page = RunPage::new(kept.row.id.clone(), Duration::ZERO);
    page.run.kept = Some(Box::new(kept));
    page
}

/// All of the kept log has been read. A run that has not ended in it was interrupted.
pub(crate) fn end_reading(page: &mut RunPage) {
    let Some(kept) = &mut page.run.kept else { return };
    kept.is_read = true;
    let progress = &mut page.run.world.progress;
    kept.row.status = match &progress.closed {
        Some(closed) => RunStatus::Ended(closed.reason.to_string()),
        None => {
            progress.stage = RunState::Closed;
            RunStatus::Interrupted
        }
    };
}

/// The next message of a run's session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NextMessage {
    #[default]
    None,
    /// Typed and not sent.
    Draft(String),
    /// Sent once the run has ended.
    Waiting(Arc<str>),
}

/// How a run's session continues.
#[derive(Debug, Default)]
pub struct RunSession {
    /// The request that started the run, if known.
    pub launch: Option<Box<LaunchRequest>>,
    pub next: NextMessage,
}

/// Maximum number of lost connections that are marked on the scrubber: the last ones.
const MAX_AWAY: usize = 8;

/// The events that happened while the connection was lost: their number, and the times of the first and
/// the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwayTime {
    /// When the first of them happened.
    pub from: Elapsed,
    pub until: Elapsed,
    pub events: u64,
}

/// A run that a runner of a cluster plays, or another process of this user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteRun {
    /// Number of the process; `None`: a runner plays it.
    pub pid: Option<u32>,
    /// The runner that owns it; empty: it was released, because everybody waits for people.
    pub runner: String,
    /// Its number as an owner: each takeover has a higher one.
    pub epoch: u64,
    /// How often another runner has taken it over.
    pub takeovers: u32,
    /// How much later than the quickest group the last group arrived here, in milliseconds.
    pub lag_ms: u64,
    /// Whether the cluster is reached.
    pub is_reached: bool,
    /// The events of each time without a connection, the earliest first.
    pub away: Vec<AwayTime>,
}

/// Measures how late groups arrive. The clocks of the server and of this machine may differ: the quickest
/// group says by how much.
#[derive(Clone, Copy, Debug, Default)]
pub struct LagMeter {
    /// The smallest time from a server's clock to this one's, in milliseconds.
    least: Option<i64>,
}

impl LagMeter {
    /// A group that was stored then, by the clock of the server, has arrived now; both as Unix time in
    /// milliseconds. Returns how late it is.
    pub fn arrived(&mut self, stored_ms: u64, now_ms: u64) -> u64 {
        let took = now_ms.cast_signed().saturating_sub(stored_ms.cast_signed());
        let least = self.least.map_or(took, |least| least.min(took));
        self.least = Some(least);
        took.saturating_sub(least).unsigned_abs()
    }
}

/// A log that is this late is shown as slow, in milliseconds.
const SLOW_MS: u64 = 2_000;

impl RemoteRun {
    /// Records the events that happened while the cluster was not reached.
    pub fn note_away(&mut self, away: AwayTime) {
        if self.away.len() >= MAX_AWAY {
            self.away.remove(0);
        }
        self.away.push(away);
    }

    /// Who plays the run; `None`: it was released.
    pub fn player(&self) -> Option<String> {
        match self.pid {
            Some(pid) => Some(format!("process {pid}")),
            None => (!self.runner.is_empty()).then(|| format!("runner {}", self.runner)),
        }
    }

    /// How the runner owns the run, in a few words: its epoch, and how often it was taken over.
    pub fn ownership(&self) -> String {
        match self.takeovers {
            0 => format!("#{}", self.epoch),
            times => format!("#{}, taken over {times}x", self.epoch),
        }
    }

    /// The problem of the connection, if it has one.
    pub fn trouble(&self) -> Option<String> {
        if !self.is_reached && self.pid.is_some() {
            return Some("interrupted: its process ended before the run did".to_owned());
        }
        if !self.is_reached {
            return Some("the cluster is not reached: what follows comes later".to_owned());
        }
        let seconds = self.lag_ms / 1_000;
        (self.lag_ms >= SLOW_MS).then(|| format!("the log of the run is slow: {seconds}s late"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_clock_causes_no_lag() {
        for clock in [0, 1_000_000, 2_000_000] {
            let mut meter = LagMeter::default();
            assert_eq!(meter.arrived(1_000_000, clock + 30), 0);
            assert_eq!(meter.arrived(1_000_500, clock + 520), 0, "quicker than the first");
            assert_eq!(meter.arrived(1_001_000, clock + 4_020), 3_000);
            assert_eq!(meter.arrived(1_005_000, clock + 5_025), 5);
        }
    }

    #[test]
    fn reports_late_log_and_lost_link() {
        let run =
            RemoteRun { runner: "a-1".into(), epoch: 7, is_reached: true, ..Default::default() };
        assert_eq!(run.ownership(), "#7");
        assert_eq!(run.trouble(), None);
        let taken = RemoteRun { takeovers: 2, lag_ms: 2_400, ..run.clone() };
        assert_eq!(taken.ownership(), "#7, taken over 2x");
        assert_eq!(taken.trouble().as_deref(), Some("the log of the run is slow: 2s late"));
        let lost = RemoteRun { is_reached: false, ..run };
        assert!(lost.trouble().expect("said").contains("not reached"));
    }
}
