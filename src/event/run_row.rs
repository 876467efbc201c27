//! A kept run without its log: a row of the list of runs.

use std::sync::Arc;

use super::id::RunId;

/// What is known of a run without its log.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// Id of the run.
    pub id: RunId,
    /// Start of the run, as Unix time in milliseconds.
    pub started_ms: u64,
    /// Title of the scenario.
    pub title: Arc<str>,
    /// Name of the scenario.
    pub scenario: Arc<str>,
    /// Name of the pattern.
    pub pattern: Arc<str>,
    /// Whether it called live models.
    pub live: bool,
    /// How far it is.
    pub status: RunStatus,
    /// Time without pauses in milliseconds.
    pub elapsed_ms: u64,
    /// Tokens used.
    pub tokens: u64,
    /// US dollars, estimated; `None`: unknown.
    pub cost_usd: Option<f64>,
    /// Number of stored events.
    pub events: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// Whether it is never removed by itself.
    pub pinned: bool,
    /// Whether its log came from a file: it says what somebody else wrote.
    pub imported: bool,
    /// The run that it was forked from.
    pub parent: Option<RunId>,
    /// The boundary of that run.
    pub forked_at: Option<String>,
    /// The runner of a cluster that plays it, or played it last.
    pub runner: Option<Arc<str>>,
}

impl RunRow {
    /// A run that has just begun.
    pub fn begun(id: RunId) -> Self {
        Self {
            id,
            started_ms: 0,
            title: Arc::default(),
            scenario: Arc::default(),
            pattern: Arc::default(),
            live: false,
            status: RunStatus::Running,
            elapsed_ms: 0,
            tokens: 0,
            cost_usd: None,
            events: 0,
            bytes: 0,
            pinned: false,
            imported: false,
            parent: None,
            forked_at: None,
            runner: None,
        }
    }
}

/// How far a kept run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It waits for a runner of a cluster.
    Waiting,
    /// A process plays it.
    Running,
    /// Its process ended before the run did.
    Interrupted,
    /// It has ended, with this stop reason.
    Ended(String),
}

impl RunRow {
    /// Whether a status that somebody asks for is that of this run: `running`, `interrupted`, `ended`,
    /// `failed` (ended, but neither with success nor cancelled), or a stop reason.
    pub fn has_status(&self, wanted: &str) -> bool {
        match (&self.status, wanted) {
            (RunStatus::Ended(reason), "failed") => reason != "success" && reason != "cancelled",
            (RunStatus::Ended(_), "ended") => true,
            (status, wanted) => status.word() == wanted,
        }
    }
}

impl RunStatus {
    /// The word for the list: `waiting`, `running`, `interrupted`, or the stop reason.
    pub fn word(&self) -> &str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Ended(reason) => reason,
        }
    }
}
