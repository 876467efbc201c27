//! The commands about clusters and their arguments: make a cluster, show it, play its runs, hand a
//! run over, list its runs, copy ended runs between it and the store of this machine (`pull`, `push`).

mod batch;
mod run;
mod serve;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::exit::{Done, Exit};
use super::kept::RunsArgs;
use super::streams::{StreamStyle, print_message, refuse};
use super::{kept, streams};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::visible::visible;
use crate::cluster::address::ClusterAddress;
use crate::cluster::archive::RunArchive;
use crate::cluster::layout::{ClusterLayout, LayoutPart, Presence};
use crate::cluster::rows::{ClusterRow, RunRows, RunnerRow};
use crate::cluster::runner::grants::Grant;
use crate::cluster::{Cluster, ConnectError, names};
use crate::host::config;
use crate::host::kept_runs::import_log;
use crate::log::event::{Event, EventKind, RunId, RunStarted, Seq};
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::screen::theme::Theme;
use crate::store::RunLog as _;
use crate::store::database::Database;
use crate::store::file::LogFile;
use crate::words::format;
use crate::words::styled::StyleRole;

pub use self::run::run_remote;
pub use self::serve::runner;

/// Where the runs of other machines are.
#[derive(Debug, Clone, Default, Args)]
pub struct OnArgs {
    /// Address of the NATS server, such as nats://10.0.0.5; without it that of the configuration
    #[arg(long, value_name = "URL")]
    pub on: Option<String>,
}

/// Arguments of `roundtable runner`.
#[derive(Debug, Clone, Args)]
pub struct RunnerArgs {
    /// The cluster.
    #[command(flatten)]
    pub on: OnArgs,
    /// Play the runs of this pool
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = name)]
    pub pool: String,
    /// How many runs to play at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub slots: u32,
    /// What scenarios may do on this machine: live, command, http, env, private-net, folder. Live
    /// models are called only for runs with budget.max_cost_usd
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = grant)]
    pub allow: Vec<Grant>,
    /// Name of the runner; default: the name of this machine and the number of the process
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: Option<String>,
    /// Another runner takes a run over when its owner has not answered for this time
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::args::duration)]
    pub takeover_after: Duration,
    /// When the runner is stopped: how long to wait for the next boundary of each run before it is
    /// returned to the queue
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::args::duration)]
    pub drain: Duration,
    /// Put the log of a run into the archive so long after its end
    #[arg(long, value_name = "DURATION", default_value = "60m", value_parser = super::args::duration)]
    pub archive_after: Duration,
    /// Call the endpoint of live models through this proxy; env: the proxy of HTTPS_PROXY
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

/// Arguments of `roundtable cluster`.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ClusterAction,
}

/// What is done with a cluster.
#[derive(Debug, Clone, Subcommand)]
pub enum ClusterAction {
    /// Make the streams and buckets that runs need; what is there already stays as it is
    Init {
        /// The cluster.
        #[command(flatten)]
        on: OnArgs,
        /// How many servers keep each message: 1, 3 or 5
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = replicas)]
        replicas: usize,
        /// Only say what would be made
        #[arg(long)]
        dry_run: bool,
    },
    /// Show what the cluster has: streams, runners, runs that wait
    Status {
        /// The cluster.
        #[command(flatten)]
        on: OnArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy runs of the cluster that have ended into the store of this machine
    Pull {
        /// The cluster.
        #[command(flatten)]
        on: OnArgs,
        /// Ids of runs of the cluster
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Copy kept runs of this machine that have ended into the cluster
    Push {
        /// The cluster.
        #[command(flatten)]
        on: OnArgs,
        /// Runs: an id, the beginning of one, last, or last~2
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Start a NATS server on this machine (nats-server has to be installed), and make what runs need
    Serve {
        /// Port on 127.0.0.1
        #[arg(long, value_name = "N", default_value_t = 4222)]
        port: u16,
        /// Folder of its data; default: in the folder of this program's state
        #[arg(long, value_name = "FOLDER")]
        data: Option<PathBuf>,
    },
}

/// Options of `run` for runs that a runner plays.
#[derive(Debug, Clone, Default, Args)]
pub struct RemoteArgs {
    /// Hand the run over to the runners of a cluster and follow it; without an address that of the
    /// configuration
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub on: Option<Option<String>>,
    /// The pool of the runners that may play the run
    #[arg(long, value_name = "NAME", requires = "on", value_parser = name)]
    pub pool: Option<String>,
}

fn name(text: &str) -> Result<String, String> {
    match names::is_name(text) {
        true => Ok(text.to_owned()),
        false => Err("use at most 64 letters, digits, - and _".to_owned()),
    }
}

fn grant(text: &str) -> Result<Grant, String> {
    let word = text.trim();
    Grant::ALL.into_iter().find(|grant| grant.word() == word).ok_or_else(|| {
        let words: Vec<&str> = Grant::ALL.iter().map(|grant| grant.word()).collect();
        format!("`{text}` is unknown: use {}", words.join(", "))
    })
}

fn replicas(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(replicas @ (1 | 3 | 5)) => Ok(replicas),
        _ => Err("use 1, 3 or 5".to_owned()),
    }
}

/// Runs `roundtable cluster`.
pub async fn cluster(args: &ClusterArgs, paint: &StreamStyle) -> Done {
    match &args.action {
        ClusterAction::Init { on, replicas, dry_run } => init(on, *replicas, *dry_run, paint).await,
        ClusterAction::Status { on, json } => status(on, *json, paint).await,
        ClusterAction::Pull { on, runs } => pull(on, runs).await,
        ClusterAction::Push { on, runs } => push(on, runs).await,
        ClusterAction::Serve { port, data } => Ok(serve::serve(*port, data.as_deref()).await),
    }
}

/// The address of the cluster; on an error the message has been printed.
fn address(url: Option<&str>) -> Result<ClusterAddress, Exit> {
    let env = |name: &str| std::env::var(name).ok();
    ClusterAddress::find(url, &config::user_config().cluster, env)
        .map_err(|why| refuse(&why, Exit::Usage))
}

/// The cluster of the configuration; none: it names none, or what it says is wrong, which was printed.
pub fn configured_cluster() -> Option<ClusterAddress> {
    config::user_config().cluster.url.as_ref()?;
    address(None).ok()
}

/// The cluster, and its run with this id.
pub fn attached(run: &str, on: &OnArgs) -> Result<(ClusterAddress, RunId), Exit> {
    if !names::is_name(run) {
        print_message(&format!("{} is not an id of a run", visible(run)));
        return Err(Exit::Usage);
    }
    address(on.on.as_deref()).map(|address| (address, RunId::new(run)))
}

/// Connects to the cluster that has a run; on an error the message has been printed.
pub async fn reach_run(address: &ClusterAddress, run: &RunId) -> Result<Cluster, Exit> {
    let cluster = connect_to(address).await?;
    match RunArchive(&cluster).has_run(run).await {
        Ok(true) => Ok(cluster),
        Ok(false) => {
            let why = Refused::new(format!("{run} is not a run of this cluster"));
            let help = format!("`roundtable runs --on {}` lists them", cluster.servers());
            Err(refuse(&why.help(help), Exit::Usage))
        }
        Err(error) => {
            let why = Refused::new(format!("{run} cannot be read")).because(error);
            Err(refuse(&why, Exit::Stopped))
        }
    }
}

/// Connects to a cluster; on an error the message has been printed.
pub(crate) async fn connect(url: Option<&str>) -> Result<Cluster, Exit> {
    connect_to(&address(url)?).await
}

async fn connect_to(address: &ClusterAddress) -> Result<Cluster, Exit> {
    Cluster::connect(address, "roundtable").await.map_err(|error| {
        let exit = match error {
            ConnectError::Unreachable { .. } => Exit::Unreachable,
            ConnectError::Credentials { .. } => Exit::Usage,
            _ => Exit::Stopped,
        };
        refuse(&error.into(), exit)
    })
}

pub(super) async fn connect_on(on: &OnArgs) -> Result<Cluster, Exit> {
    connect(on.on.as_deref()).await
}

/// Lists the runs of a cluster, the newest first.
pub async fn list_runs(args: &RunsArgs, theme: Theme, ascii: bool) -> Done {
    if args.action.is_some() {
        let why = Refused::new("prune, pin, rm and restore are for runs of this machine");
        return Err(refuse(&why.help("leave out --on"), Exit::Usage));
    }
    let cluster = connect(args.on.as_ref().and_then(|on| on.as_deref())).await?;
    Ok(match RunRows(&cluster).all().await {
        Ok(rows) => {
            let rows: Vec<RunRow> = rows.iter().map(|row| row.to_run_row()).collect();
            kept::print_rows(&rows, args, theme, ascii)
        }
        Err(why) => refuse(&why, Exit::Stopped),
    })
}

/// Runs `roundtable cluster init`.
async fn init(on: &OnArgs, replicas: usize, dry_run: bool, paint: &StreamStyle) -> Done {
    let cluster = connect_on(on).await?;
    let before =
        ClusterLayout(&cluster).parts().await.map_err(|why| refuse(&why, Exit::Stopped))?;
    if !dry_run && let Err(why) = ClusterLayout(&cluster).make(replicas).await {
        return Err(refuse(&why, Exit::Stopped));
    }
    let mut text = String::new();
    for part in &before {
        let has_replicas = part.replicas.is_none_or(|found| found == replicas);
        let (done, role) = match (part.presence, dry_run) {
            (Presence::Ready, _) if has_replicas => ("is there", StyleRole::Dim),
            (Presence::Missing, false) => ("made", StyleRole::Done),
            (Presence::Missing, true) => ("would be made", StyleRole::NeedsYou),
            (_, false) => ("changed", StyleRole::Done),
            (_, true) => ("would be changed", StyleRole::NeedsYou),
        };
        let done = paint.role(role, &format!("{done:<16}"));
        let _ = writeln!(text, "{:<11} {done} {}", part.name, part.purpose);
    }
    Ok(streams::print(&text, Exit::Ok))
}

/// Runs `roundtable cluster status`.
async fn status(on: &OnArgs, json: bool, paint: &StreamStyle) -> Done {
    let cluster = connect_on(on).await?;
    let parts = ClusterLayout(&cluster).parts().await.map_err(|why| refuse(&why, Exit::Stopped))?;
    let is_ready = parts.iter().all(|part| part.presence == Presence::Ready);
    let runners = match is_ready {
        true => cluster.runners().await,
        false => Ok(Vec::new()),
    };
    let runners = runners.map_err(|why| refuse(&why, Exit::Stopped))?;
    let exit = if is_ready { Exit::Ok } else { Exit::Stopped };
    if json {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| {
                json!({
                    "name": part.name, "purpose": part.purpose, "ready": part.presence == Presence::Ready,
                    "replicas": part.replicas, "messages": part.messages, "bytes": part.bytes,
                })
            })
            .collect();
        let all = json!({
            "servers": cluster.servers(), "version": cluster.version(),
            "namespace": cluster.namespace().to_string(), "parts": parts, "runners": runners,
        });
        return Ok(streams::print(&format!("{all:#}\n"), exit));
    }
    Ok(streams::print(&text(&cluster.version(), cluster.servers(), &parts, &runners, paint), exit))
}

fn text(
    version: &str,
    servers: &str,
    parts: &[LayoutPart],
    runners: &[RunnerRow],
    paint: &StreamStyle,
) -> String {
    let mut text = format!("NATS {} at {servers}\n\n", visible(version));
    for part in parts {
        let (word, role) = match part.presence {
            Presence::Ready => ("ready", StyleRole::Done),
            Presence::Differs => ("differs", StyleRole::NeedsYou),
            Presence::Missing => ("missing", StyleRole::Failed),
        };
        let word = paint.role(role, &format!("{word:<8}"));
        let size = match part.replicas {
            Some(1) => format!("{} messages, {}", part.messages, format::bytes(part.bytes)),
            Some(replicas) => {
                let size = format::bytes(part.bytes);
                format!("{} messages, {size}, {replicas} replicas", part.messages)
            }
            None => "run `roundtable cluster init`".to_owned(),
        };
        let _ = writeln!(text, "{:<11} {word} {:<36} {size}", part.name, part.purpose);
    }
    text.push('\n');
    if runners.is_empty() {
        text.push_str("no runner is alive; start one with `roundtable runner`\n");
    }
    for runner in runners {
        let allows = match runner.allows.is_empty() {
            true => "allows nothing".to_owned(),
            false => format!("allows {}", visible(&runner.allows.join(", "))),
        };
        let state = if runner.draining { ", stopping" } else { "" };
        let _ = writeln!(
            text,
            "{:<24} pool {:<12} {} of {} slots, {allows}{state}",
            visible(&runner.name),
            visible(&runner.pool),
            runner.busy,
            runner.slots,
        );
    }
    text
}

/// Runs `roundtable cluster pull`: prints the id that each run has in the store.
async fn pull(on: &OnArgs, runs: &[String]) -> Done {
    let (database, cluster) = both(on).await?;
    Ok(each(runs, async |name| pull_one(&database, &cluster, name).await).await)
}

/// Runs `roundtable cluster push`: prints the id of each run.
async fn push(on: &OnArgs, runs: &[String]) -> Done {
    let (database, cluster) = both(on).await?;
    Ok(each(runs, async |name| {
        let row = kept::find(&database, name).map_err(CopyError::Said)?;
        push_one(&database, &cluster, row).await
    })
    .await)
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
