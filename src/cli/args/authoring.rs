//! Arguments of the commands for writing scenarios.

use clap::Args;

use super::FlagArg;

/// Arguments of `roundtable new`.
#[derive(Debug, Clone, Default, Args)]
pub struct NewArgs {
    /// What the scenario does: see `roundtable new`
    pub pattern: Option<String>,
    /// The file to write; - for standard output. Default: scenarios/my-PATTERN.toml, which the
    /// dashboard lists. A file that exists is not replaced
    pub file: Option<String>,
    /// Copy this shipped scenario instead: roundtable new --from NAME [FILE]
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
}

/// Arguments of `roundtable schema`.
#[derive(Debug, Clone, Default, Args)]
pub struct SchemaArgs {
    /// The schema of events: the lines of `run --format jsonl`
    #[arg(long, conflicts_with = "outcome")]
    pub events: bool,
    /// The schema of the outcome that `run --format json` prints
    #[arg(long)]
    pub outcome: bool,
}

/// Arguments of `roundtable validate`.
#[derive(Debug, Clone, Default, Args)]
pub struct ValidateArgs {
    /// Files, folders (their *.toml), names of scenarios, or - for standard input
    #[arg(required = true, value_name = "FILE|FOLDER|NAME|-")]
    pub scenarios: Vec<String>,
    /// Override a field of each scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Check that each scenario has this flag and boundary, as `run --flag` does
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
}
