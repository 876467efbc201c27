//! A kept run without its log: a row of the list of runs.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::name::PersonName;
use crate::log::event::id::RunId;
use crate::log::event::stop::StopReason;

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
    /// Who its open questions ask, one for each, the first question first; empty for a run that has ended.
    pub waits_for: Vec<PersonName>,
    /// Its result: the word of a decision, a level, a route, or who answered; of a run that was stopped, what was
    /// wrong with the reply or the call that stopped it.
    pub result: Option<Arc<str>>,
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
    /// Whether it is never removed automatically.
    pub pinned: bool,
    /// Whether its log came from a file: another person or program wrote it.
    pub imported: bool,
    /// The run that it was forked from.
    pub parent: Option<RunId>,
    /// The boundary of that run.
    pub forked_at: Option<String>,
    /// The runner of a cluster that plays it, or played it last.
    pub runner: Option<Arc<str>>,
    /// The last event of a run of a cluster, as far as the list says.
    pub last: Option<LastEvent>,
}

/// The last event of a run that is played elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEvent {
    pub kind: Arc<str>,
    /// When it was published, as Unix time in milliseconds of that machine.
    pub at_ms: u64,
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
            waits_for: Vec::new(),
            result: None,
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
            last: None,
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

/// A status by which runs are listed: a word of [`StatusFilter::WORDS`], or a stop reason with or
/// without the part after its colon. Case does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusFilter(String);

impl StatusFilter {
    /// The words besides stop reasons. Lists show most of them.
    pub const WORDS: [&str; 9] = [
        "waiting",
        "running",
        "elsewhere",
        "interrupted",
        "ended",
        "done",
        "stopped",
        "failed",
        "cancelled",
    ];

    /// The filter of any word; [`FromStr`] refuses unknown ones.
    pub fn new(word: &str) -> Self {
        Self(word.trim().to_lowercase())
    }

    /// Whether a run with this status is listed.
    pub fn has(&self, status: &RunStatus) -> bool {
        match (status, self.0.as_str()) {
            (RunStatus::Ended(_), "ended") => true,
            (RunStatus::Ended(reason), "done") => reason == "success",
            (RunStatus::Ended(reason), "stopped" | "failed") => {
                reason != "success" && reason != "cancelled"
            }
            (RunStatus::Running, "elsewhere") => true,
            (status, wanted) => {
                let rest = status.word().to_lowercase();
                rest.strip_prefix(wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            }
        }
    }
}

impl FromStr for StatusFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let filter = Self::new(text);
        let word = filter.0.split(':').next().unwrap_or_default();
        if Self::WORDS.contains(&&*filter.0) || StopReason::words().any(|known| known == word) {
            return Ok(filter);
        }
        Err(format!("it is one of {}, or a stop reason", Self::WORDS.join(", ")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_matches_words_of_lists() {
        let ended = |reason: &str| RunStatus::Ended(reason.to_owned());
        let table = [
            ("DONE", ended("success"), true),
            ("done", ended("max_rounds_reached"), false),
            ("STOPPED", ended("max_rounds_reached"), true),
            ("failed", ended("llm_timeout"), true),
            ("stopped", ended("cancelled"), false),
            ("Cancelled", ended("cancelled"), true),
            ("ended", ended("success"), true),
            ("ended", RunStatus::Running, false),
            ("running", RunStatus::Running, true),
            ("ELSEWHERE", RunStatus::Running, true),
            ("waiting", RunStatus::Waiting, true),
            ("interrupted", RunStatus::Interrupted, true),
            ("success", ended("success"), true),
            ("llm_error", ended("llm_error:http_500"), true),
            ("llm_error:http_500", ended("llm_error:http_500"), true),
            ("llm_error:http_503", ended("llm_error:http_500"), false),
            ("worker_denied:sales_worker", ended("worker_denied:sales_worker"), true),
        ];
        for (word, status, expected) in table {
            let filter: StatusFilter = word.parse().unwrap_or_else(|_| panic!("{word}"));
            assert_eq!(filter.has(&status), expected, "{word} {status:?}");
        }
        for unknown in ["nonsense", "", "don", "max_rounds"] {
            assert!(unknown.parse::<StatusFilter>().is_err(), "{unknown}");
        }
    }
}
