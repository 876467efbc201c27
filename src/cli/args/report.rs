//! The commands that report: what is in force, and what is found.

use clap::{Args, ValueEnum};

/// `roundtable config`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// Print the path of the configuration file alone, whether it exists or not
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub path: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// The same as --json, spelled as `run` does it
    #[arg(long, value_enum, hide = true, conflicts_with = "json")]
    pub format: Option<ConfigFormat>,
}

/// How the configuration is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// `roundtable doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// A scenario, as `run` takes it: which model each of its roles, agents and steps would ask live,
    /// where that was chosen, and what is missing
    #[arg(value_name = "FILE|NAME|-")]
    pub scenario: Option<String>,
    /// Also ask each endpoint for its models (one network request each, which costs nothing)
    #[arg(long)]
    pub live: bool,
    /// Say what applies when this model is asked for, as `run --model` does
    #[arg(long, value_name = "[PROVIDER/]MODEL", requires = "scenario")]
    pub model: Option<String>,
    /// Override a field of the scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "scenario")]
    pub set: Vec<String>,
    /// Go through this proxy; env: through what HTTPS_PROXY and its like name
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}
