//! Arguments of the reporting commands, `config` and `doctor`.

use clap::{Args, ValueEnum};

/// Arguments of `roundtable config`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Print only the path of the configuration file, whether it exists or not
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub path: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The same as --json, spelled as in `run`
    #[arg(long, value_enum, hide = true, conflicts_with = "json")]
    pub format: Option<ConfigFormat>,
}

/// Output format of `roundtable config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigFormat {
    /// Human-readable
    Text,
    /// JSON, for programs
    Json,
}

/// Arguments of `roundtable doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// A scenario, as for `run`: prints the live model of each role, agent and step, where it was
    /// chosen, and what is missing
    #[arg(value_name = "FILE|NAME|-")]
    pub scenario: Option<String>,
    /// Check the cluster: server, JetStream, streams, permissions, runners
    #[cfg(feature = "nats")]
    #[arg(long, conflicts_with_all = ["scenario", "live"])]
    pub cluster: bool,
    /// Address of the cluster's server, such as nats://10.0.0.5; without it that of the configuration
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "URL", requires = "cluster")]
    pub on: Option<String>,
    /// Also request each endpoint's list of models (one free network request each)
    #[arg(long)]
    pub live: bool,
    /// Report what applies with this model, as for `run --model`
    #[arg(long, value_name = "[PROVIDER/]MODEL", requires = "scenario")]
    pub model: Option<String>,
    /// Override a field of the scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "scenario")]
    pub set: Vec<String>,
    /// Use this proxy; env: the proxy of HTTPS_PROXY and similar variables
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

#[cfg(feature = "nats")]
impl DoctorArgs {
    /// Whether the cluster is checked, and its address if the command line has one.
    pub fn cluster_url(&self) -> Option<Option<&str>> {
        self.cluster.then_some(self.on.as_deref())
    }
}
