//! The arguments of the commands about kept runs.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::flag_arg::FlagArg;
use super::run_format::RunFormat;
use crate::event::run_row::StatusFilter;

/// Arguments of `roundtable runs`.
#[derive(Debug, Clone, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// What to do with runs; without it they are listed.
    #[command(subcommand)]
    pub action: Option<RunsAction>,
    /// List the runs of a cluster; without an address that of the configuration
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "URL", num_args = 0..=1, conflicts_with = "grep")]
    pub on: Option<Option<String>>,
    /// Only runs with this status: waiting, running, interrupted, ended, done, stopped, cancelled, or a
    /// stop reason
    #[arg(long)]
    pub status: Option<StatusFilter>,
    /// Only runs of this scenario
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// Only runs in which somebody said this: words (also their beginnings), "phrases"
    #[arg(long, value_name = "WORDS")]
    pub grep: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is done with whole runs.
#[derive(Debug, Clone, Subcommand)]
pub enum RunsAction {
    /// Remove what the configuration does not keep, and what was removed before, for good
    Prune,
    /// Never remove these runs by themselves
    Pin {
        /// Runs: an id, the beginning of one, last, or last~2
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// Take the pin away
        #[arg(long)]
        off: bool,
    },
    /// Remove runs
    Rm {
        /// Runs: an id, the beginning of one, last, or last~2
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Bring back a run that was removed since the last prune
    Restore {
        /// Id of the run
        #[arg(value_name = "RUN")]
        run: String,
    },
}

/// Arguments of `roundtable open`.
#[derive(Debug, Clone, Args)]
pub struct OpenArgs {
    /// A kept run (an id, the beginning of one, last, last~2), or a file of JSON lines
    #[arg(value_name = "RUN|FILE.jsonl[.gz]")]
    pub run: String,
}

/// Arguments of `roundtable show`.
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// A kept run (an id, the beginning of one, last, last~2), or a file of JSON lines
    #[arg(value_name = "RUN|FILE.jsonl[.gz]")]
    pub run: String,
    /// Output format; default: text on a terminal, json elsewhere
    #[arg(long, value_enum)]
    pub format: Option<RunFormat>,
    /// Show a run that another process plays until it has ended
    #[arg(long, short)]
    pub follow: bool,
}

/// Arguments of `roundtable resume`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// An interrupted run: an id, the beginning of one, last, or last~2
    #[arg(value_name = "RUN")]
    pub run: String,
    /// How to play it
    #[command(flatten)]
    pub play: PlayArgs,
}

/// Arguments of `roundtable fork`.
#[derive(Debug, Clone, Args)]
pub struct ForkArgs {
    /// A kept run (an id, the beginning of one, last, last~2) and the boundary to continue from, such
    /// as last@round:2. Without a boundary, those of the run are listed
    #[arg(value_name = "RUN[@BOUNDARY]")]
    pub run: String,
    /// Override a field of the scenario from the boundary on, such as budget.max_rounds=1 or a prompt
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Switch a flag where the fork begins, or at a later boundary: legal_analyst=on@round:3
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
    /// Call live models from the boundary on, as run --live does
    #[arg(long)]
    pub live: bool,
    /// The model to call from the boundary on
    #[arg(long, value_name = "[PROVIDER/]MODEL")]
    pub model: Option<String>,
    /// Answer from the scenario's script from the boundary on
    #[arg(long, conflicts_with_all = ["live", "model"])]
    pub scripted: bool,
    /// Like --scripted, without the latency of scripted replies
    #[arg(long, conflicts_with_all = ["live", "model"])]
    pub instant: bool,
    /// How to play it
    #[command(flatten)]
    pub play: PlayArgs,
}

impl ForkArgs {
    /// Whether the fork is to differ from its parent.
    pub fn changes_something(&self) -> bool {
        let model = self.live || self.model.is_some() || self.scripted || self.instant;
        model || !self.set.is_empty() || !self.flags.is_empty()
    }
}

/// How a recorded run is continued.
#[derive(Debug, Clone, Args)]
pub struct PlayArgs {
    /// Output format; default: text on a terminal, json elsewhere
    #[arg(long, value_enum)]
    pub format: Option<RunFormat>,
    /// Allow without asking what its scenario would do, as `run --trust` does
    #[arg(long)]
    pub trust: bool,
    /// Call the endpoint through this proxy; env: the proxy of HTTPS_PROXY and similar variables
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

/// Arguments of `roundtable diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// A kept run, or a file of JSON lines
    #[arg(value_name = "RUN|FILE")]
    pub left: String,
    /// The run to compare it with
    #[arg(value_name = "RUN|FILE")]
    pub right: String,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: DiffFormat,
}

/// Output format of `roundtable diff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// Both sides, to the first difference and what follows
    Text,
    /// Every difference, with both events
    Json,
}

const REDACT_HELP: &str = "\
Replace every text by its length and digest, such as ‹412 chars digest:1a2b3c4d›: goal, inputs, \
prompts, replies, arguments and results of tools, notes, addresses, errors, the scenario. Names of \
agents, tools, models and flags stay, and so do numbers, times and costs, so the log can be opened, \
shown and compared, but not resumed. Equal texts have equal digests in all logs that you redact: the \
key of the digests stays next to your store";

/// Arguments of `roundtable export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// A kept run: an id, the beginning of one, last, or last~2
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Write to this file: a page if its name ends in .html, compressed if it ends in .gz; default:
    /// standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace every text by its length and digest; names, numbers and times stay
    #[arg(long, long_help = REDACT_HELP)]
    pub redact: bool,
    /// Write one page of HTML: the run as a story, readable without a network
    #[arg(long)]
    pub html: bool,
}

impl ExportArgs {
    /// Whether a page is written: the option says so, or the ending of the file's name.
    pub fn writes_page(&self) -> bool {
        let name = self.output.as_deref().and_then(Path::file_name).unwrap_or_default();
        let name = name.to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        self.html || name.ends_with(".html") || name.ends_with(".htm")
    }
}

/// Arguments of `roundtable import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// Exported logs, compressed or not
    #[arg(required = true, value_name = "FILE.jsonl[.gz]")]
    pub files: Vec<PathBuf>,
}
