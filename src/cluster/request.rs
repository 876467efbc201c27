//! A run that somebody hands over to the runners: everything that it is started with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names::is_name;
use crate::base::name::FlagName;
use crate::base::visible::visible;
use crate::event::kind::SCHEMA_VERSION;
use crate::event::launch::LaunchRecord;
use crate::event::{RunId, Seq};
use crate::scenario::Scenario;

/// The pool of runs that name none.
pub const POOL: &str = "default";

/// A run to play. It is the first message of the log of the run, before its first event, so nothing
/// else is needed to play it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// The run.
    pub run: RunId,
    /// Version of the event schema of the program that handed it over.
    pub schema: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// Title of the scenario.
    pub title: String,
    /// Name of the pattern.
    pub pattern: String,
    /// The scenario, and what is scheduled at boundaries.
    pub launch: LaunchRecord,
    /// Whether live models are called.
    pub live: bool,
    /// Positions of flags at the start that differ from those of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<(FlagName, bool)>,
    /// Seed of its random numbers; `None`: the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The message that it answers; `None`: the scenario's goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The run that answered the previous message of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RunId>,
    /// The pool of the runners that may play it.
    pub pool: String,
    /// Who handed it over.
    pub by: String,
    /// When, as Unix time in milliseconds of that machine.
    pub wall_ms: u64,
}

impl RunRequest {
    /// A scripted run of a scenario, for the usual pool. It has no id, and says nothing of who hands it
    /// over, and when.
    pub fn of(scenario: &Scenario) -> Self {
        Self {
            run: RunId::new(""),
            schema: SCHEMA_VERSION,
            scenario: visible(scenario.name.as_str()).into_owned(),
            title: scenario.title.clone(),
            pattern: scenario.pattern.get().name().to_owned(),
            launch: LaunchRecord {
                source: Arc::clone(&scenario.source),
                instant: false,
                model: None,
                flags: Vec::new(),
                pauses: Vec::new(),
                forked: None,
                answered_by: None,
            },
            live: false,
            flags: Vec::new(),
            seed: None,
            message: None,
            after: None,
            pool: POOL.to_owned(),
            by: String::new(),
            wall_ms: 0,
        }
    }

    /// Whether its ids and its pool can be parts of subjects.
    pub(super) fn has_names(&self) -> bool {
        let ids = std::iter::once(&self.run).chain(&self.after).map(RunId::as_str);
        ids.chain([self.pool.as_str()]).all(is_name)
    }

    /// Whether this program can play it: a newer program may have written what this one cannot read.
    pub fn is_playable(&self) -> bool {
        self.schema <= SCHEMA_VERSION
    }
}

/// Who owns a run from here on: a message without events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The runner, by the name that people see.
    pub runner: String,
    /// The same, with a part that no other process has.
    pub owner: String,
    /// Version of the program.
    pub version: String,
    /// The sequence number that the log continues with.
    #[serde(default)]
    pub next: Seq,
}
