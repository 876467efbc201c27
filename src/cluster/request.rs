//! A run that is handed over to the runners: everything that it is started with, how it gets to the
//! queue, and the claim of its owner, a message that is stored only if the log still ends with what
//! the claimer has read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::Cluster;
use super::archive::RunArchive;
use super::entry::headers;
use super::names::{LOGS, is_name};
use super::rows::{ClusterRow, RunRows};
use super::stream::Published;
use crate::base::name::FlagName;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::seeded_random::random_u64;
use crate::base::sha256_of_text;
use crate::base::visible::visible;
use crate::log::event::head::{LaunchRecord, PeopleChoice};
use crate::log::event::{RunId, SCHEMA_VERSION, Seq};
use crate::scenario::Scenario;
use crate::store::ReadError;

/// The pool of runs that name none.
pub const POOL: &str = "default";

/// A run to play. It is the first message of the log of the run, before its first event, so nothing
/// else is needed to play it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    pub run: RunId,
    /// Version of the event schema of the program that handed it over.
    pub schema: u32,
    pub scenario: String,
    pub title: String,
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
    /// Who answers its questions.
    #[serde(default)]
    pub people: PeopleChoice,
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
                answerers: None,
                answered_by: None,
            },
            live: false,
            flags: Vec::new(),
            seed: None,
            message: None,
            after: None,
            pool: POOL.to_owned(),
            people: PeopleChoice::Wait,
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

/// That nobody owns a run until it is queued again: a message without events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The pool of the runners that may play it.
    pub pool: String,
    /// The sequence number that the log continues with.
    pub next: Seq,
    /// The last command that the run has taken.
    pub taken: u64,
    /// The next deadline of its questions, as Unix time in milliseconds: it is queued then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
}

impl Cluster {
    /// Stores the request under a new id, lists the run, and adds it to the queue, in this order: what
    /// is missing after a failure can be made from the request.
    ///
    /// # Errors
    /// The cluster does not store it.
    pub async fn hand_over(&self, mut request: RunRequest) -> Result<RunRequest, Refused> {
        /// Ids that this process has made.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let seed = request.wall_ms ^ u64::from(std::process::id()).rotate_left(32);
        loop {
            let number = random_u64(seed, "run", MADE.fetch_add(1, Ordering::Relaxed), "id");
            request.run = RunId::new(format!("r-{:08x}", number & 0xffff_ffff));
            let begun = begin_run(self, &request).await;
            if begun.or_refuse("the run cannot be handed over")? {
                break;
            }
        }
        self.list_and_queue(request).await
    }

    /// Hands over the run that answers the next message of a session. Of several calls after the same run one
    /// has effect.
    pub(super) async fn hand_over_next(
        &self,
        request: RunRequest,
        after: &RunId,
    ) -> Result<(), Refused> {
        let hash = sha256_of_text(&format!("{}.{after}.next", self.namespace()));
        let run = RunId::new(format!("r-{}", hash.get(..8).unwrap_or_default()));
        let request = RunRequest { run, after: Some(after.clone()), ..request };
        // What is missing after a failure is made from the request.
        match begin_run(self, &request).await.or_refuse("the run cannot be handed over")? {
            true => self.list_and_queue(request).await.map(drop),
            false => Ok(()),
        }
    }

    async fn list_and_queue(&self, request: RunRequest) -> Result<RunRequest, Refused> {
        let listed = RunRows(self).put(&ClusterRow::waiting(&request)).await;
        let queued = match listed {
            Ok(()) => self.enqueue(&request.pool, &request.run, None).await,
            Err(why) => Err(why),
        };
        match queued {
            Ok(()) => Ok(request),
            Err(why) => {
                let what = format!("{} is stored, but it may not be listed or queued", request.run);
                let help = "it may be played: see `roundtable runs --on`";
                Err(Refused::new(what).because(why).help(help))
            }
        }
    }
}

/// Begins the log of a run with its request; `false`: there is or was a run of this id.
pub(super) async fn begin_run(cluster: &Cluster, request: &RunRequest) -> Result<bool, ReadError> {
    // The log of an archived run is not in the stream any more.
    if RunArchive(cluster).has_archived(&request.run).await? {
        return Ok(false);
    }
    cluster.request_run(request).await
}

/// Whether a run was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It was. The number of the claim in the stream is the epoch of the owner.
    Yes(u64),
    /// The log has continued meanwhile: somebody else owns the run.
    No,
}

impl Cluster {
    /// Begins the log of a run with its request; `false`: there is a log of this id.
    ///
    /// # Errors
    /// The server does not store it.
    pub async fn request_run(&self, request: &RunRequest) -> Result<bool, ReadError> {
        let payload = serde_json::to_vec(request).map_err(|error| unreadable(&error))?;
        let headers = headers("request", Seq(0), 0, &request.by);
        let subject = self.namespace().log(&request.run);
        match self.store(subject, headers, payload, Some(0)).await {
            Published::Stored(_) => Ok(true),
            Published::WrongLast => Ok(false),
            Published::AskAgain => Err(ReadError::Unreadable("the cluster is busy".to_owned())),
            Published::Refused(why) | Published::NoLeader(why) | Published::NoAnswer(why) => {
                Err(ReadError::Unreadable(why))
            }
        }
    }

    /// Claims a run at the end of its log: `after` is its last message, `claim.next` its next event.
    ///
    /// # Errors
    /// It is not certain whether the claim is stored.
    pub async fn claim_run(
        &self,
        run: &RunId,
        claim: &Claim,
        after: u64,
    ) -> Result<Claimed, ReadError> {
        let payload = serde_json::to_vec(claim).map_err(|error| unreadable(&error))?;
        let subject = self.namespace().log(run);
        loop {
            let headers = headers("claim", claim.next, 0, &claim.owner);
            match self.store(subject.clone(), headers, payload.clone(), Some(after)).await {
                Published::Stored(epoch) => return Ok(Claimed::Yes(epoch)),
                Published::WrongLast => return Ok(Claimed::No),
                Published::AskAgain => tokio::time::sleep(super::log::BUSY).await,
                Published::Refused(why) | Published::NoLeader(why) => {
                    return Err(ReadError::Unreadable(why));
                }
                Published::NoAnswer(why) => {
                    // It may be stored: the end of the log says it.
                    tracing::debug!(%run, "no answer to a claim in {LOGS}: {why}");
                    match self.last_entry(run).await? {
                        Some(last) if last.owner == claim.owner => {
                            return Ok(Claimed::Yes(last.place));
                        }
                        Some(last) if last.place == after => {}
                        _ => return Ok(Claimed::No),
                    }
                }
            }
        }
    }
}

fn unreadable(error: &dyn std::error::Error) -> ReadError {
    ReadError::Unreadable(error.to_string())
}
