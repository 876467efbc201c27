//! The commands about clusters and their arguments: make a cluster, show it, play its runs, hand a
//! run over, list its runs. Finds a cluster and connects to it.

mod batch;
mod run;
mod serve;
mod status;
mod transfer;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::kept;
use super::kept::RunsArgs;
use super::streams::{StreamStyle, print_message, refuse};
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::cluster::address::ClusterAddress;
use crate::cluster::archive::RunArchive;
use crate::cluster::rows::RunRows;
use crate::cluster::runner::grants::Grant;
use crate::cluster::{Cluster, ConnectError, names};
use crate::host::config;
use crate::log::event::RunId;
use crate::log::world::run_row::RunRow;
use crate::screen::theme::Theme;

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
pub async fn cluster(args: &ClusterArgs, paint: &StreamStyle) -> Exit {
    match &args.action {
        ClusterAction::Init { on, replicas, dry_run } => {
            status::init(on, *replicas, *dry_run, paint).await
        }
        ClusterAction::Status { on, json } => status::status(on, *json, paint).await,
        ClusterAction::Pull { on, runs } => transfer::pull(on, runs).await,
        ClusterAction::Push { on, runs } => transfer::push(on, runs).await,
        ClusterAction::Serve { port, data } => serve::serve(*port, data.as_deref()).await,
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
pub async fn list_runs(args: &RunsArgs, theme: Theme, ascii: bool) -> Exit {
    if args.action.is_some() {
        let why = Refused::new("prune, pin, rm and restore are for runs of this machine");
        return refuse(&why.help("leave out --on"), Exit::Usage);
    }
    let cluster = match connect(args.on.as_ref().and_then(|on| on.as_deref())).await {
        Ok(cluster) => cluster,
        Err(exit) => return exit,
    };
    match RunRows(&cluster).all().await {
        Ok(rows) => {
            let rows: Vec<RunRow> = rows.iter().map(|row| row.to_run_row()).collect();
            kept::print_rows(&rows, args, theme, ascii)
        }
        Err(why) => refuse(&why, Exit::Stopped),
    }
}
