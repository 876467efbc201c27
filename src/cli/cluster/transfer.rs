//! `roundtable cluster pull` and `push`: copies of runs that have ended, from a cluster into the store of
//! this machine and back. What was pulled can be shown, compared, forked and exported as any kept run.

use super::OnArgs;
use super::connect_on;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::visible::visible;
use crate::cli::exit::Exit;
use crate::cli::streams::{print_message, refuse};
use crate::cli::{kept, streams};
use crate::cluster::archive::RunArchive;
use crate::cluster::rows::{ClusterRow, RunRows};
use crate::cluster::{Cluster, names};
use crate::host::kept_runs::import_log;
use crate::log::event::kind::RunStarted;
use crate::log::event::{Event, EventKind, RunId, Seq};
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::store::RunLog as _;
use crate::store::database::Database;
use crate::store::file::LogFile;

/// Runs `roundtable cluster pull`: prints the id that each run has in the store.
pub(crate) async fn pull(on: &OnArgs, runs: &[String]) -> Exit {
    let (database, cluster) = match both(on).await {
        Ok(both) => both,
        Err(exit) => return exit,
    };
    each(runs, async |name| pull_one(&database, &cluster, name).await).await
}

/// Runs `roundtable cluster push`: prints the id of each run.
pub(crate) async fn push(on: &OnArgs, runs: &[String]) -> Exit {
    let (database, cluster) = match both(on).await {
        Ok(both) => both,
        Err(exit) => return exit,
    };
    each(runs, async |name| {
        let row = kept::find(&database, name).map_err(CopyError::Said)?;
        push_one(&database, &cluster, row).await
    })
    .await
}

/// Why a run was not copied.
enum CopyError {
    /// It was printed already.
    Said(Exit),
    Why(Refused),
}

impl From<Refused> for CopyError {
    fn from(why: Refused) -> Self {
        Self::Why(why)
    }
}

/// What is wrong with a log that is not copied.
const UNREAD: &str = "its log cannot be read";

async fn both(on: &OnArgs) -> Result<(Database, Cluster), Exit> {
    let database = kept::open()?;
    connect_on(on).await.map(|cluster| (database, cluster))
}

/// Copies each run, and prints its id or what is wrong.
async fn each(runs: &[String], copy: impl AsyncFn(&str) -> Result<RunId, CopyError>) -> Exit {
    let mut exit = Exit::Ok;
    for name in runs {
        exit = match copy(name).await {
            Ok(id) => streams::print(&format!("{id}\n"), exit),
            Err(CopyError::Said(failed)) => failed,
            Err(CopyError::Why(why)) => {
                let why = Refused { what: format!("{name}: {}", why.what), ..why };
                refuse(&why, Exit::Stopped)
            }
        };
    }
    exit
}

async fn pull_one(database: &Database, cluster: &Cluster, name: &str) -> Result<RunId, CopyError> {
    if !names::is_name(name) {
        return Err(Refused::new("this is not an id of a run").into());
    }
    let run = RunId::new(name);
    let log = RunArchive(cluster).whole_log(&run).await.or_refuse(UNREAD)?;
    let log = log.or_refuse("the cluster has no events of such a run")?;
    let log = LogFile::read(log.lines()).or_refuse(UNREAD)?;
    for note in &log.notes {
        print_message(&visible(&format!("{name}: {note}")));
    }
    if !log.events.last().is_some_and(|event| has_ended(event)) {
        let why = Refused::new("it has not ended");
        return Err(why.help(format!("`roundtable attach {name}` watches it")).into());
    }
    let here = database.run(name).map_err(Refused::from)?;
    if here.is_some_and(|here| log.head().is_some_and(|head| is_copy(&here, head))) {
        return Ok(run);
    }
    Ok(import_log(database, &log).or_refuse("it cannot be kept")?)
}

/// Whether a kept run is the same one, pulled or pushed before.
fn is_copy(kept: &RunRow, head: &RunStarted) -> bool {
    let row = crate::host::run_store::row_of(head);
    matches!(kept.status, RunStatus::Ended(_))
        && (kept.started_ms, &kept.scenario, &kept.title)
            == (row.started_ms, &row.scenario, &row.title)
}

fn has_ended(event: &Event) -> bool {
    matches!(event.kind, EventKind::RunClosed(_))
}

async fn push_one(database: &Database, cluster: &Cluster, row: RunRow) -> Result<RunId, CopyError> {
    use futures::StreamExt as _;
    let RunStatus::Ended(reason) = &row.status else {
        return Err(Refused::new("it has not ended").into());
    };
    let unknown = "it is not known whether the cluster has it";
    let last = cluster.last_entry(&row.id).await.or_refuse(unknown)?;
    let archived = RunArchive(cluster).lines(&row.id).await.or_refuse(unknown)?;
    if last.is_some() || archived.is_some() {
        return Err(Refused::new("the cluster has a run with this id").into());
    }
    let mut lines = Vec::new();
    let groups: Vec<_> = database.read(&row.id, Seq(0)).collect().await;
    for group in groups {
        lines.extend_from_slice(group.or_refuse(UNREAD)?.lines());
    }
    RunArchive(cluster).put(&row.id, &lines).await?;
    let listed = ClusterRow {
        run: row.id.to_string(),
        started_ms: row.started_ms,
        title: row.title.to_string(),
        scenario: row.scenario.to_string(),
        pattern: row.pattern.to_string(),
        live: row.live,
        status: "ended".to_owned(),
        reason: Some(reason.clone()),
        result: row.result.as_deref().map(str::to_owned),
        elapsed_ms: row.elapsed_ms,
        tokens: row.tokens,
        cost_usd: row.cost_usd,
        events: row.events,
        by: names::user_name(),
        archived: true,
        ..ClusterRow::default()
    };
    RunRows(cluster).put(&listed).await?;
    Ok(row.id)
}
