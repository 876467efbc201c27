//! The arguments of the commands about clusters.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cluster::names;
use crate::runner::grants::Grant;

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
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::duration)]
    pub takeover_after: Duration,
    /// When the runner is stopped: how long to wait for the next boundary of each run before it is
    /// returned to the queue
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::duration)]
    pub drain: Duration,
    /// Put the log of a run into the archive so long after its end
    #[arg(long, value_name = "DURATION", default_value = "60m", value_parser = super::duration)]
    pub archive_after: Duration,
    /// Call the endpoint of live models through this proxy; env: the proxy of HTTPS_PROXY
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

/// Arguments of `roundtable attach`.
#[derive(Debug, Clone, Args)]
pub struct AttachArgs {
    /// Id of the run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The cluster.
    #[command(flatten)]
    pub on: OnArgs,
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
    /// Print the id of the run and do not wait for it
    #[arg(long, requires = "on")]
    pub detach: bool,
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
