//! The command line: commands, their arguments and options, and the parsing of values (flags,
//! boundaries, formats). Arguments of `picture`, `test`, kept runs and clusters are with their
//! commands.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "store")]
use super::kept;
use crate::base::name::FlagName;
use crate::log::event::BoundaryId;
use crate::model::endpoint::{SettingOrigin, WithOrigin};
use crate::scenario::config::UiDefaults;
use crate::scenario::patterns::collaboration::Decision;
use crate::scenario::patterns::is_boundary;
use crate::terminal::themes::AUTO;

#[cfg(feature = "nats")]
pub use super::cluster::{AttachArgs, ClusterArgs, OnArgs, RemoteArgs, RunnerArgs};
pub use super::picture::PictureArgs;
pub use super::test::{TestArgs, TestFormat, TestOptions, Vary};

/// Launches runs of multi-agent patterns and shows them live.
#[derive(Debug, Parser)]
#[command(name = "roundtable", version, about, max_term_width = 100)]
#[command(
    after_help = "Without a command the dashboard opens. `roundtable doctor` checks the setup \
                        of this machine; the dashboard's help (?) lists the keys."
)]
pub struct Cli {
    /// The command; `None` opens the dashboard.
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
}

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Run a scenario: in the dashboard, or headless
    Run(Box<RunArgs>),
    /// Check scenario files and report every problem
    Validate(ValidateArgs),
    /// Run scenarios and check what they expect of their runs ([[expect]])
    Test(Box<TestArgs>),
    /// Write a scenario file to start from; without a pattern, list the patterns
    New(NewArgs),
    /// List scenarios, or print one
    Scenarios {
        /// A file of ./scenarios or a shipped scenario, to print its file
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Print JSON
        #[arg(long, conflicts_with = "name")]
        json: bool,
    },
    /// List kept runs; remove, pin or restore some
    #[cfg(feature = "store")]
    Runs(kept::RunsArgs),
    /// Open a kept or exported run in the dashboard, read only
    #[cfg(feature = "store")]
    Open(kept::OpenArgs),
    /// Show a kept or exported run
    #[cfg(feature = "store")]
    Show(kept::ShowArgs),
    /// Continue an interrupted run
    #[cfg(feature = "store")]
    Resume(kept::ResumeArgs),
    /// Start a new run that continues from a boundary of a kept one, with other settings
    #[cfg(feature = "store")]
    Fork(Box<kept::ForkArgs>),
    /// Compare two runs (exit code 1 where more differs than ids and times)
    #[cfg(feature = "store")]
    Diff(kept::DiffArgs),
    /// Write the log of a kept run as JSON lines
    #[cfg(feature = "store")]
    Export(kept::ExportArgs),
    /// Put exported logs into the store
    #[cfg(feature = "store")]
    Import(kept::ImportArgs),
    /// Play runs that are handed over to a cluster
    #[cfg(feature = "nats")]
    Runner(RunnerArgs),
    /// Watch and steer a run that a runner plays, in the dashboard
    #[cfg(feature = "nats")]
    Attach(AttachArgs),
    /// Make, show or serve a cluster: runs past one machine
    #[cfg(feature = "nats")]
    Cluster(ClusterArgs),
    /// Draw the dashboard's screen of a run as an SVG or a text, without a terminal
    Picture(Box<PictureArgs>),
    /// Print the JSON schema of the scenario format, for editors; or of events or outcomes
    Schema(SchemaArgs),
    /// Serve a small demo shop on this machine, for the scenario real-services
    DemoService {
        /// Port on 127.0.0.1; 0: any free port
        #[arg(long, value_name = "N", default_value_t = 7878)]
        port: u16,
    },
    /// Print the settings in force, and where each of them comes from
    Config(ConfigArgs),
    /// Check this machine's setup, or what applies to one scenario, and say what to fix
    Doctor(DoctorArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page of the program, or of one command
    Man(ManArgs),
    /// Print what may follow on a command line, for the scripts of `completions`
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Panic while the dashboard is open, to test that the terminal is restored
    #[cfg(debug_assertions)]
    #[command(hide = true)]
    PanicTest {
        /// Where to panic
        #[arg(value_enum)]
        place: PanicPlace,
    },
}

/// The failures that tests can provoke.
#[cfg(debug_assertions)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PanicPlace {
    /// A panic in the dashboard's loop.
    Loop,
    /// A panic in a background task.
    Task,
    /// The process aborts, without a panic.
    Abort,
    /// The dashboard's loop hangs, without a panic.
    Stuck,
    /// Every worker thread of the runtime is blocked, without a panic.
    Workers,
    /// Every worker thread is blocked, in a headless run.
    Headless,
}

/// Arguments of `roundtable run`.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// A scenario: a file, the name of a shipped one (see `roundtable scenarios`), or - for
    /// standard input (headless)
    #[arg(value_name = "FILE|NAME|-")]
    pub scenario: String,
    /// Run without the dashboard (implied by --format, --fail-on and --message, and when standard
    /// output is not a terminal)
    #[arg(long)]
    pub headless: bool,
    /// Output format of a headless run; default: text on a terminal, json elsewhere
    #[arg(long, value_enum)]
    pub format: Option<RunFormat>,
    /// Call live models, found by OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY,
    /// OPENROUTER_API_KEY or OLLAMA_HOST in the environment or a .env file; the scenario and the
    /// configuration set the details (see `roundtable doctor SCENARIO`). The cost shown is an
    /// estimate from list prices
    #[arg(long, conflicts_with = "instant")]
    pub live: bool,
    /// The model of a live run, such as gpt-4.1-mini or anthropic/claude-haiku-4-5; replaces those
    /// that the scenario names
    #[arg(long, value_name = "[PROVIDER/]MODEL", requires = "live")]
    pub model: Option<String>,
    /// Skip the latency of scripted replies; effects that need time, such as a timeout or a flaky
    /// period, do not happen then
    #[arg(long)]
    pub instant: bool,
    /// Answer the model calls from a recorded run: each gets the reply that the run got for the same
    /// prompt. The first prompt that is not the same stops the run and is named. Headless
    #[cfg(feature = "store")]
    #[arg(long, value_name = "RUN|FILE.jsonl[.gz]", conflicts_with_all = ["live", "messages"])]
    pub replay: Option<String>,
    /// Override a field of the scenario, such as budget.max_rounds=1 or inputs.region=EU
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Switch a flag at the start, or at a boundary: legal_analyst=on@round:2. Boundaries are
    /// round:2, message:2:risk_analyst; plan, dispatch:1:t2 (attempt 1 of task t2); turn:3:7 (turn
    /// 3 of agent 7); ask:1:pm (round 1 of agent pm), ask:1:pm/devs.2 (the second time pm consults
    /// devs), handoff:3:billing (instead of ask:1 of the agent that takes over); search, dedupe,
    /// read_extract, source:2 (before the second source), verify, synthesize; finalize
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
    /// Pause at a boundary (as for --flag): round:2 (until a line arrives on standard input) or
    /// round:2=2s (for 2 seconds)
    #[arg(long, value_name = "BOUNDARY[=DURATION]", value_parser = PauseArg::parse)]
    pub pause_at: Vec<PauseArg>,
    /// Exit with 1 when the run decides one of these: go, go_with_caution, no_go (collaboration);
    /// or when a fallback was used, a result left out or a reply cut: degraded (every pattern).
    /// Headless
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = FailOn::parse)]
    pub fail_on: Vec<FailOn>,
    /// The message that a team or swarm answers; replaces the scenario's goal and follow-ups. Give
    /// it several times for a session: one run per message, each with the history so far. Headless
    #[arg(long = "message", value_name = "TEXT")]
    pub messages: Vec<String>,
    /// Seed of the run's random numbers
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Many runs, and a table of those that pass. Headless
    #[command(flatten)]
    pub repeat: TestOptions,
    /// A runner plays the run, not this process. Headless
    #[cfg(feature = "nats")]
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Allow without asking that a scenario that was not shipped calls an endpoint, runs a program,
    /// sends an environment variable or reaches local networks
    #[arg(long)]
    pub trust: bool,
    /// Call the endpoint through this proxy; env: the proxy of HTTPS_PROXY and similar variables
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

/// A value of `--pause-at BOUNDARY[=DURATION]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseArg {
    /// The boundary before which the run pauses.
    pub at: BoundaryId,
    /// How long the pause is; `None`: until the operator resumes the run.
    pub length: Option<Duration>,
}

impl PauseArg {
    fn parse(text: &str) -> Result<Self, String> {
        // A task's name may contain `=`, so the duration follows the last one.
        match text.rsplit_once('=') {
            Some((at, rest)) => Ok(Self { at: boundary(at)?, length: Some(duration(rest)?) }),
            None => Ok(Self { at: boundary(text)?, length: None }),
        }
    }
}

/// The longest pause that the command line accepts.
const MAX_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses a duration such as `250ms`, `2s`, `1.5s` or `2m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let say = || format!("`{text}` is not a duration: use 250ms, 2s, 1.5s or 2m");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match text.get(digits.len()..) {
        Some("ms") => 0.001,
        Some("s") => 1.0,
        Some("m") => 60.0,
        _ => return Err(say()),
    };
    let number: f64 = digits.parse().map_err(|_| say())?;
    let duration = Duration::try_from_secs_f64(number * seconds).map_err(|_| say())?;
    match duration <= MAX_PAUSE {
        true => Ok(duration),
        false => Err(format!("`{text}` is longer than a day")),
    }
}

/// A value of `--fail-on WHAT`: a condition that makes a completed run exit with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// The run made this decision.
    Decision(Decision),
    /// A fallback replaced a result, a result was left out, or a reply that was used is not whole.
    Degraded,
}

impl FailOn {
    fn parse(text: &str) -> Result<Self, String> {
        let word = text.trim();
        if word == "degraded" {
            return Ok(Self::Degraded);
        }
        let decision = Decision::ALL.into_iter().find(|decision| decision.word() == word);
        decision.map(Self::Decision).ok_or_else(|| {
            format!("`{text}` is unknown: use go, go_with_caution, no_go or degraded")
        })
    }
}

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Draw with ASCII characters only (--ascii=false overrides the configuration)
    #[arg(
        long,
        global = true,
        help_heading = "Display",
        value_name = "true|false",
        hide_possible_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub ascii: Option<bool>,
    /// Switch off moving spinners and sparklines (--no-animation=false switches them on)
    #[arg(
        long,
        global = true,
        help_heading = "Display",
        value_name = "true|false",
        hide_possible_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub no_animation: Option<bool>,
    /// The colours of the dashboard: auto (as the terminal's background is), dark, light, colour-blind or mono, or a theme file
    #[arg(long, global = true, value_name = "NAME|FILE", help_heading = "Display")]
    pub theme: Option<String>,
    /// Write the log to this file (filter: ROUNDTABLE_LOG=debug)
    #[arg(long, global = true, value_name = "FILE", help_heading = "Display")]
    pub log_file: Option<PathBuf>,
    /// Do not keep runs in the store (see `roundtable runs`)
    #[arg(long, global = true)]
    pub no_store: bool,
    /// Display settings of the configuration file; the command line overrides them.
    #[arg(skip)]
    pub configured: UiDefaults,
    /// The theme that ROUNDTABLE_THEME names, if it is in force.
    #[arg(skip)]
    pub theme_variable: Option<String>,
}

impl Global {
    /// Whether output is limited to ASCII characters.
    pub fn is_ascii(&self) -> bool {
        self.ascii_from().value
    }

    /// Whether spinners and sparklines move.
    pub fn is_animated(&self) -> bool {
        self.animation_from().value
    }

    /// Whether the terminal's title says what the runs do.
    pub fn has_title(&self) -> bool {
        self.title_from().value
    }

    /// [`has_title`](Self::has_title) with its origin.
    pub fn title_from(&self) -> WithOrigin<bool> {
        first_set(None, self.configured.title, true)
    }

    /// The name of the theme, with its origin.
    pub fn theme_from(&self) -> WithOrigin<String> {
        let configured = self.configured.theme.as_ref().map(|theme| &theme.name);
        let (value, origin) = match (&self.theme, &self.theme_variable, configured) {
            (Some(name), ..) => (name.as_str(), SettingOrigin::CommandLine),
            (None, Some(name), _) => (name.as_str(), SettingOrigin::Shell),
            (None, None, Some(name)) => (name.as_str(), SettingOrigin::Config),
            (None, None, None) => (AUTO, SettingOrigin::Default),
        };
        WithOrigin { value: value.to_owned(), origin }
    }

    /// [`is_ascii`](Self::is_ascii) with its origin.
    pub fn ascii_from(&self) -> WithOrigin<bool> {
        first_set(self.ascii, self.configured.ascii, false)
    }

    /// [`is_animated`](Self::is_animated) with its origin.
    pub fn animation_from(&self) -> WithOrigin<bool> {
        first_set(self.no_animation.map(|still| !still), self.configured.animation, true)
    }
}

fn first_set(here: Option<bool>, configured: Option<bool>, otherwise: bool) -> WithOrigin<bool> {
    match (here, configured) {
        (Some(value), _) => WithOrigin { value, origin: SettingOrigin::CommandLine },
        (None, Some(value)) => WithOrigin { value, origin: SettingOrigin::Config },
        (None, None) => WithOrigin { value: otherwise, origin: SettingOrigin::Default },
    }
}

/// A value of `--flag NAME=on|off[@BOUNDARY]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagArg {
    /// Name of the flag, as the scenario spells it.
    pub name: FlagName,
    /// Whether the flag is switched on.
    pub on: bool,
    /// The boundary at which it is switched; `None`: before the run starts.
    pub at: Option<BoundaryId>,
}

impl FlagArg {
    pub fn parse(text: &str) -> Result<Self, String> {
        let say = || format!("expected NAME=on, NAME=off or NAME=on@round:2, found `{text}`");
        let (name, rest) = text.split_once('=').ok_or_else(say)?;
        let (position, at) = match rest.split_once('@') {
            Some((position, at)) => (position, Some(boundary(at)?)),
            None => (rest, None),
        };
        let on = match position {
            "on" | "true" => true,
            "off" | "false" => false,
            _ => return Err(say()),
        };
        if name.is_empty() {
            return Err(say());
        }
        Ok(Self { name: FlagName::from(name), on, at })
    }
}

impl fmt::Display for FlagArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = if self.on { "on" } else { "off" };
        write!(f, "{}={position}", self.name)?;
        match &self.at {
            Some(at) => write!(f, "@{at}"),
            None => Ok(()),
        }
    }
}

/// Parses a boundary of any pattern, spelled as [`Boundary::id`](crate::log::event::Boundary::id) does.
/// Whether the scenario's pattern has it is checked later, when the scenario is read.
pub(crate) fn boundary(text: &str) -> Result<BoundaryId, String> {
    if is_boundary(text) {
        Ok(BoundaryId::new(text))
    } else {
        Err(format!(
            "`{text}` is not a boundary: use round:2, message:2:risk_analyst, plan, dispatch:1:t2, \
             turn:3:7, ask:1:pm, handoff:3:billing, source:2, verify or finalize"
        ))
    }
}

/// Output format of a headless run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// Only the outcome object; for several messages one object for the whole session
    Json,
    /// One line for each event, then the outcome object
    Jsonl,
    /// Human-readable progress
    Text,
    /// The answer of a research run with footnotes, refused notes and contradictions
    Markdown,
    /// Text in a group, with an annotation where a run was stopped, for GitHub Actions
    Github,
}

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

/// Arguments of `roundtable completions`.
#[derive(Debug, Clone, Copy, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: ShellName,
}

/// A shell that has completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShellName {
    /// In ~/.bashrc: eval "$(roundtable completions bash)"
    Bash,
    /// As _roundtable in a folder of fpath
    Zsh,
    /// As ~/.config/fish/completions/roundtable.fish
    Fish,
}

/// Arguments of `roundtable complete`.
#[derive(Debug, Clone, Default, Args)]
pub struct CompleteArgs {
    /// The words of the command line behind the program's name; the last one is completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}

/// Arguments of `roundtable man`.
#[derive(Debug, Clone, Default, Args)]
pub struct ManArgs {
    /// The command; for a command of a command both words, such as runs pin
    pub command: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::base::name::AgentName;
    use crate::log::event::Boundary;

    fn run(args: &[&str]) -> Result<RunArgs, clap::Error> {
        let words = ["roundtable", "run", "checkout-launch"].iter().chain(args);
        match Cli::try_parse_from(words)?.command {
            Some(CliCommand::Run(run)) => Ok(*run),
            other => panic!("no run: {other:?}"),
        }
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flag_accepts_boundary() {
        let args = run(&["--flag", "a=on", "--flag", "b=off@round:2", "--flag", "c=on@finalize"]);
        let flags = args.expect("parses").flags;
        assert_eq!(flags[0], FlagArg { name: "a".into(), on: true, at: None });
        assert_eq!(flags[1].at, Some(BoundaryId::new("round:2")));
        assert!(!flags[1].on);
        assert_eq!(flags[2].at, Some(BoundaryId::new("finalize")));
        for wrong in
            ["a", "a=", "a=maybe", "=on", "a=on@", "a=on@round", "a=on@round:0", "a=on@x:1"]
        {
            assert!(run(&["--flag", wrong]).is_err(), "{wrong} is refused");
        }
    }

    #[test]
    fn accepts_every_run_boundary() {
        let (task, role) = ("t:2=a".into(), "risk".into());
        let billing = AgentName::from("billing");
        let all = [
            Boundary::Round(2),
            Boundary::Message { round: 2, role, nth: 2 },
            Boundary::Plan,
            Boundary::Dispatch { task, attempt: 1 },
            Boundary::Turn { agent: 7, turn: 3 },
            Boundary::Ask { path: "pm".into(), round: 1, outer: true },
            Boundary::Ask { path: "pm/dev_team.1".into(), round: 2, outer: false },
            Boundary::Handoff { path: "desk".into(), handoff: 3, to: billing.clone(), outer: true },
            Boundary::Handoff { path: "pm/desk.1".into(), handoff: 3, to: billing, outer: false },
            Boundary::Finalize,
        ];
        for id in all.iter().map(Boundary::id) {
            assert_eq!(boundary(id.as_str()), Ok(id.clone()));
            let pause = PauseArg::parse(&format!("{id}=1s"));
            assert_eq!(pause, Ok(PauseArg { at: id, length: Some(Duration::from_secs(1)) }));
        }
        for wrong in [
            "",
            "plan:1",
            "plans",
            "round",
            "round:02",
            "round:+2",
            "round:2:x",
            "message:2",
            "message:2:",
            "dispatch:1",
            "dispatch:0:t2",
            "dispatch:t2:1",
            "turn:3",
            "turn:3:0",
            "turn:3:7:1",
            "ask:pm",
            "ask:0:pm",
            "handoff:1",
            "finalize:1",
        ] {
            assert!(boundary(wrong).is_err(), "{wrong} is refused");
        }
    }

    #[test]
    fn a_pause_may_end_by_itself() {
        let args = run(&["--pause-at", "round:2", "--pause-at", "message:1:risk=1.5s"]);
        let pauses = args.expect("parses").pause_at;
        assert_eq!(pauses[0], PauseArg { at: BoundaryId::new("round:2"), length: None });
        assert_eq!(pauses[1].length, Some(Duration::from_millis(1500)));
        for (text, millis) in [("250ms", 250), ("2s", 2000), ("2m", 120_000), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)));
        }
        for wrong in ["", "2", "s", "-1s", "1h", "infs", "nans", "1e99s"] {
            assert!(duration(wrong).is_err(), "{wrong} is refused");
        }
    }

    #[test]
    fn fail_on_accepts_decisions_and_degraded() {
        let args = run(&["--fail-on", "no_go,go_with_caution,degraded"]).expect("parses");
        let decisions = [Decision::NoGo, Decision::GoWithCaution].map(FailOn::Decision);
        assert_eq!(args.fail_on, [decisions[0], decisions[1], FailOn::Degraded]);
        assert!(run(&["--fail-on", "maybe"]).is_err());
        assert!(run(&["--live", "--instant"]).is_err(), "a live model has no script to hurry");
    }
}
