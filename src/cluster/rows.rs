//! The list of runs, a row for each, written by its owner; it can be made again from the logs. And
//! the runners that are alive: each writes a key that disappears when the runner ends.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::kv::{Operation, Store, UpdateErrorKind, Watch};
use async_nats::jetstream::stream::Stream;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::Cluster;
use super::names::{LOGS, RUNNERS, RUNS, is_name};
use super::request::RunRequest;
use crate::base::name::PersonName;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time::Day;
use crate::log::event::RunId;
use crate::log::world::run_row::{LastEvent, RunRow, RunStatus};

/// Stream of the list of runs.
const RUNS_STREAM: &str = "KV_RT_RUNS";

/// Rows in one batch of the list.
const BATCH: usize = 16_384;

/// Time after which a server removes a consumer that is not read any more.
const UNREAD: Duration = Duration::from_secs(30);

/// What is wrong where the list of runs is not read or written.
const UNREAD_LIST: &str = "the list of runs cannot be read";
const UNWRITTEN_LIST: &str = "the list of runs cannot be written";

/// How long the next row of a batch may take.
const NEXT: Duration = Duration::from_secs(5);

/// Header of a key that was removed.
const KV_OPERATION: &str = "KV-Operation";

/// Status of a run that was released, because everybody waits for people.
pub const ASKING: &str = "asking";

/// A run of the cluster, as its list has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterRow {
    /// The run.
    pub run: String,
    /// When it was handed over, as Unix time in milliseconds.
    pub started_ms: u64,
    /// Title of the scenario.
    pub title: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the pattern.
    pub pattern: String,
    /// Whether it calls live models.
    pub live: bool,
    /// `waiting` (for a runner), `running`, `asking` (released, because everybody waits for people) or
    /// `ended`.
    pub status: String,
    /// The stop reason of a run that has ended.
    pub reason: Option<String>,
    /// Its result, as `RunRow::result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// `RunRow::waits_for`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<PersonName>,
    /// The runner that owns it.
    pub runner: Option<String>,
    /// How often another runner has taken it over.
    pub takeovers: u32,
    /// Time without pauses in milliseconds.
    pub elapsed_ms: u64,
    /// Tokens used.
    pub tokens: u64,
    /// US dollars, estimated; `None`: unknown.
    pub cost_usd: Option<f64>,
    /// Number of events.
    pub events: u64,
    /// The last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastEvent>,
    /// Who handed it over.
    pub by: String,
    /// The pool of the runners that may play it.
    pub pool: String,
    /// Whether its log is in the archive.
    pub archived: bool,
}

impl ClusterRow {
    /// The row of a run that was handed over and waits for a runner.
    pub fn waiting(request: &RunRequest) -> Self {
        Self {
            run: request.run.to_string(),
            started_ms: request.wall_ms,
            title: request.title.clone(),
            scenario: request.scenario.clone(),
            pattern: request.pattern.clone(),
            live: request.live,
            status: "waiting".to_owned(),
            by: request.by.clone(),
            pool: request.pool.clone(),
            ..Self::default()
        }
    }

    /// The row as the dashboard lists it.
    pub fn to_run_row(&self) -> RunRow {
        let status = match (&*self.status, &self.reason) {
            (_, Some(reason)) => RunStatus::Ended(reason.clone()),
            ("waiting", _) => RunStatus::Waiting,
            _ => RunStatus::Running,
        };
        RunRow {
            started_ms: self.started_ms,
            title: self.title.as_str().into(),
            scenario: self.scenario.as_str().into(),
            pattern: self.pattern.as_str().into(),
            live: self.live,
            status,
            waits_for: self.waits_for.clone(),
            result: self.result.as_deref().map(Into::into),
            elapsed_ms: self.elapsed_ms,
            tokens: self.tokens,
            cost_usd: self.cost_usd,
            events: self.events,
            runner: self.runner.as_deref().map(Into::into),
            last: self.last.clone(),
            ..RunRow::begun(RunId::new(self.run.as_str()))
        }
    }
}

/// A change of the list.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// A run is new, or has changed.
    Row(Box<ClusterRow>),
    /// A run was removed.
    Gone(RunId),
}

/// Follows the list of runs.
pub struct RowFollower {
    watch: Watch,
    prefix: String,
}

impl RowFollower {
    /// Waits for the next change; `None`: the connection was closed. Cancel safe.
    pub async fn next(&mut self) -> Option<RowChange> {
        loop {
            match self.watch.next().await? {
                Ok(entry) => {
                    if let Some(change) = row_change(&self.prefix, &entry) {
                        return Some(change);
                    }
                }
                Err(error) => tracing::debug!("the list of runs: {error}"),
            }
        }
    }
}

/// The run of a key of the list: its last part.
fn run_of_key(key: &str) -> Option<&str> {
    key.rsplit('.').next()
}

/// The row of a run. The key says which run it is, whatever the row says; what cannot be read,
/// or names what cannot be part of a subject, is left out.
fn read_row(run: &str, bytes: &[u8]) -> Option<ClusterRow> {
    let row: ClusterRow = serde_json::from_slice(bytes).ok()?;
    // The row of a run that was copied here names no pool.
    let has_pool = row.pool.is_empty() || is_name(&row.pool);
    (is_name(run) && has_pool).then(|| ClusterRow { run: run.to_owned(), ..row })
}

fn row_change(prefix: &str, entry: &async_nats::jetstream::kv::Entry) -> Option<RowChange> {
    let run = run_of_key(entry.key.strip_prefix(prefix)?)?;
    match entry.operation {
        Operation::Put => read_row(run, &entry.value).map(|row| RowChange::Row(Box::new(row))),
        Operation::Delete | Operation::Purge => Some(RowChange::Gone(RunId::new(run))),
    }
}

/// The rows with these subjects, in no order. Its consumer gets this name, so that the request for it has
/// the subjects in it, and a login can be limited to its namespace.
async fn read_rows(
    stream: &Stream<()>,
    name: &str,
    of: String,
) -> Result<Vec<ClusterRow>, Refused> {
    let config = pull::Config {
        name: Some(name.to_owned()),
        filter_subject: of,
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::None,
        memory_storage: true,
        num_replicas: 1,
        inactive_threshold: UNREAD,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.or_refuse(UNREAD_LIST)?;
    let mut rows = HashMap::new();
    let mut more = consumer.cached_info().num_pending > 0;
    while more {
        let batch = consumer.fetch().max_messages(BATCH).messages().await;
        let mut batch = batch.or_refuse(UNREAD_LIST)?;
        more = false;
        // A request that was lost is not sent again.
        while let Some(message) = timeout(NEXT, batch.next())
            .await
            .map_err(|_| Refused::new(UNREAD_LIST).because("the cluster does not answer"))?
        {
            let message = message.or_refuse(UNREAD_LIST)?;
            more = message.info().is_ok_and(|info| info.pending > 0);
            let Some(run) = run_of_key(&message.subject) else { continue };
            // A later message of a key is its present row.
            let removed = message.headers.as_ref().is_some_and(|it| it.get(KV_OPERATION).is_some());
            match read_row(run, &message.payload).filter(|_| !removed) {
                Some(row) => drop(rows.insert(row.run.clone(), row)),
                None => drop(rows.remove(run)),
            }
        }
    }
    Ok(rows.into_values().collect())
}

/// The list of runs of a cluster.
#[derive(Clone, Copy)]
pub struct RunRows<'a>(pub &'a Cluster);

impl RunRows<'_> {
    async fn store(&self) -> Result<Store, Refused> {
        let store = self.0.context().get_key_value(RUNS).await;
        store.or_refuse("the cluster has no list of runs")
    }

    /// Key of a run that was handed over at this time.
    fn key(&self, run: &RunId, started_ms: u64) -> String {
        let day = Day::from_unix_ms(started_ms).to_string().replace('-', "");
        self.0.namespace().row(&day, run)
    }

    /// Writes the row of a run, whatever it was before.
    ///
    /// # Errors
    /// The server does not store it.
    pub async fn put(&self, row: &ClusterRow) -> Result<(), Refused> {
        self.write(row, None).await.map(drop)
    }

    /// Writes the row of a run, if the row that it has is of this revision (0: it has none; `None`: of any).
    /// Returns the revision of the new row; `None`: it was not written, because the run has another row.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn write(&self, row: &ClusterRow, over: Option<u64>) -> Result<Option<u64>, Refused> {
        let bytes = serde_json::to_vec(row).or_refuse(UNWRITTEN_LIST)?;
        let key = self.key(&RunId::new(row.run.as_str()), row.started_ms);
        let store = self.store().await?;
        match over {
            None => store.put(key, bytes.into()).await.map(Some).or_refuse(UNWRITTEN_LIST),
            Some(revision) => match store.update(key, bytes.into(), revision).await {
                Ok(revision) => Ok(Some(revision)),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
                Err(error) => Err(error).or_refuse(UNWRITTEN_LIST),
            },
        }
    }

    /// The revision of the row of a run that was handed over at this time (0: it has none), and the row,
    /// if it can be read.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn read(
        &self,
        run: &RunId,
        started_ms: u64,
    ) -> Result<(u64, Option<ClusterRow>), Refused> {
        let entry = self.store().await?.entry(self.key(run, started_ms)).await;
        let entry = entry.or_refuse(UNREAD_LIST)?;
        Ok(entry.map_or((0, None), |entry| (entry.revision, read_row(run.as_str(), &entry.value))))
    }

    /// The rows of all runs, the newest first. Read in large batches of a consumer: direct requests take
    /// twice as long, and a watcher takes each row one by one.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn all(&self) -> Result<Vec<ClusterRow>, Refused> {
        let stream = self.0.context().get_stream_no_info(RUNS_STREAM).await;
        let stream = stream.or_refuse(UNREAD_LIST)?;
        // Servers do not answer what a login may not do.
        let name = self.0.client().new_inbox().replace('.', "-");
        let api = |request: &str| format!("$JS.API.CONSUMER.{request}.{RUNS_STREAM}.{name}");
        let rows_of = format!("$KV.{RUNS}.{}", self.0.namespace().keys());
        let created = format!("{}.{rows_of}", api("CREATE"));
        let mut rows = tokio::select! {
            rows = read_rows(&stream, &name, rows_of) => rows?,
            why = self.0.until_denied(&created) => return Err(why).or_refuse(UNREAD_LIST),
            why = self.0.until_denied(&api("MSG.NEXT")) => return Err(why).or_refuse(UNREAD_LIST),
        };
        // A login that may not do this leaves it to the server, which removes it later.
        let _ = self.0.client().publish(api("DELETE"), Default::default()).await;
        rows.sort_unstable_by(|a, b| (b.started_ms, &b.run).cmp(&(a.started_ms, &a.run)));
        Ok(rows)
    }

    /// The runs that have a log in the stream, in the list or not.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn logged(&self) -> Result<BTreeSet<RunId>, Refused> {
        let unread = "the stream of logs cannot be read";
        let stream = self.0.context().get_stream_no_info(LOGS).await;
        let stream = stream.or_refuse(unread)?;
        let logs = self.0.namespace().log(&RunId::new("*"));
        let subjects = stream.info_with_subjects(logs).await;
        let mut subjects = subjects.or_refuse(unread)?;
        let mut runs = BTreeSet::new();
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject.or_refuse(unread)?;
            let run = subject.rsplit('.').next().filter(|run| is_name(run));
            runs.extend(run.map(RunId::new));
        }
        Ok(runs)
    }

    /// The rows of all runs, then each change.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn follow(&self) -> Result<RowFollower, Refused> {
        let store = self.store().await?;
        let keys = self.0.namespace().keys();
        let watch = store.watch_with_history(&keys).await.or_refuse(UNREAD_LIST)?;
        Ok(RowFollower { watch, prefix: format!("{}.", self.0.namespace()) })
    }
}

/// A runner that is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunnerRow {
    pub name: String,
    /// The pool that it plays runs of.
    pub pool: String,
    /// How many runs it plays at a time.
    pub slots: u32,
    /// How many it plays now.
    pub busy: u32,
    /// Version of the program.
    pub version: String,
    /// What it allows scenarios to do.
    pub allows: Vec<String>,
    /// Whether it takes no more runs.
    pub draining: bool,
    /// When it began, as Unix time in milliseconds of its machine.
    pub since_ms: u64,
    /// Milliseconds without a sign of life after which its runs are taken over; 0: not known.
    pub takeover_ms: u64,
}

impl RunnerRow {
    /// Whether both play runs of one pool with different takeover times. The queue of a pool has one time: a
    /// runner that gives a sign of life less often than it would lose its runs.
    pub fn disagrees(&self, other: &Self) -> bool {
        let is_known = self.takeover_ms > 0 && other.takeover_ms > 0;
        let are_two = self.pool == other.pool && self.name != other.name;
        are_two && is_known && self.takeover_ms != other.takeover_ms
    }
}

impl Cluster {
    /// Says that a runner is alive.
    ///
    /// # Errors
    /// The server does not store it.
    pub async fn put_runner(&self, row: &RunnerRow) -> Result<(), Refused> {
        let unwritten = "the list of runners cannot be written";
        let bytes = serde_json::to_vec(row).or_refuse(unwritten)?;
        let store = self.context().get_key_value(RUNNERS).await.or_refuse(unwritten)?;
        let key = self.namespace().runner(&row.name);
        store.put(key, bytes.into()).await.or_refuse(unwritten)?;
        Ok(())
    }

    /// A runner has ended.
    pub async fn remove_runner(&self, name: &str) {
        if let Ok(store) = self.context().get_key_value(RUNNERS).await {
            let _ = store.purge(self.namespace().runner(name)).await;
        }
    }

    /// The runners that are alive, by name.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn runners(&self) -> Result<Vec<RunnerRow>, Refused> {
        let unread = "the list of runners cannot be read";
        let store = self.context().get_key_value(RUNNERS).await.or_refuse(unread)?;
        let mut keys = store.keys().await.or_refuse(unread)?;
        let prefix = format!("{}.", self.namespace());
        let mut found = Vec::new();
        while let Some(Ok(key)) = keys.next().await {
            if !key.starts_with(&prefix) {
                continue;
            }
            let Ok(Some(bytes)) = store.get(key).await else { continue };
            found.extend(serde_json::from_slice::<RunnerRow>(&bytes).ok());
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}
