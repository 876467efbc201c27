//! The command line: the commands, the options of all of them, and the values that several take
//! (flags, boundaries, formats). The arguments of a command are in its file, those of the smallest
//! are here.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::acp::AcpArgs;
use super::cluster::{ClusterArgs, RunnerArgs};
use super::complete::{CompleteArgs, CompletionsArgs};
use super::config::ConfigArgs;
use super::doctor::DoctorArgs;
use super::guard::GuardArgs;
use super::kept;
use super::man::ManArgs;
use super::mcp::McpArgs;
use super::new::NewArgs;
use super::picture::PictureArgs;
use super::run::RunArgs;
use super::steer::{AnswerArgs, AttachArgs, CtlArgs};
use super::streams::stdout_is_terminal;
use super::test::TestArgs;
use super::tools::ToolsArgs;
use super::validate::SchemaArgs;
use super::validate::ValidateArgs;
use super::watch::{ListenArgs, WatchArgs};
use crate::base::name::FlagName;
use crate::log::event::BoundaryId;
use crate::model::endpoint::{SettingOrigin, WithOrigin};
use crate::scenario::config::UiDefaults;
use crate::scenario::patterns::collaboration::Decision;
use crate::scenario::patterns::is_boundary;
use crate::terminal::themes::AUTO;

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
    /// Take the tour: six keys of the dashboard, each explained in a running scenario
    Tour,
    /// Check scenario files and report every problem
    Validate(ValidateArgs),
    /// Run scenarios and check what they expect of their runs ([[expect]])
    Test(Box<TestArgs>),
    /// List the tools that MCP servers offer, with what was seen and allowed of them
    Tools(ToolsArgs),
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
    Runs(kept::RunsArgs),
    /// Open a kept or exported run in the dashboard
    Open(kept::OpenArgs),
    /// Show a kept or exported run
    Show(kept::ShowArgs),
    /// Continue an interrupted run
    Resume(kept::ResumeArgs),
    /// Start a new run that continues from a boundary of a kept one, with other settings
    Fork(Box<kept::ForkArgs>),
    /// Compare two runs (exit code 1 where more differs than ids and times)
    Diff(kept::DiffArgs),
    /// Write the log of a kept run as JSON lines
    Export(kept::ExportArgs),
    /// Put exported logs into the store
    Import(kept::ImportArgs),
    /// Play runs that are handed over to a cluster
    Runner(RunnerArgs),
    /// Watch and steer a run that another process or a runner plays, in the dashboard
    Attach(AttachArgs),
    /// Steer a run that another process or a runner plays: pause, step, flag, fault, limit, cancel
    Ctl(CtlArgs),
    /// Answer a question of a run that another process or a runner plays
    Answer(AnswerArgs),
    /// Make, show or serve a cluster: runs past one machine
    Cluster(ClusterArgs),
    /// Start a program and watch what its agents do: LangGraph, OpenAI Agents, CrewAI, Pydantic AI,
    /// OpenTelemetry
    Watch(WatchArgs),
    /// Start a program and send its model calls through roundtable, which shows every attempt and keeps limits
    Guard(GuardArgs),
    /// Watch programs that are started elsewhere
    Listen(ListenArgs),
    /// Serve scenarios and runs to MCP clients, such as editors and coding agents, on standard input and
    /// output
    Mcp(McpArgs),
    /// Serve a scenario as an agent to ACP clients, such as Zed, JetBrains, Neovim and Toad, on standard input and
    /// output
    Acp(AcpArgs),
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

/// A value of `--pause-at BOUNDARY[=DURATION]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseArg {
    /// The boundary before which the run pauses.
    pub at: BoundaryId,
    /// How long the pause is; `None`: until the operator resumes the run.
    pub length: Option<Duration>,
}

impl PauseArg {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
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
    Decision(Decision),
    /// A fallback replaced a result, a result was left out, or a reply that was used is not whole.
    Degraded,
}

impl FailOn {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
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
    /// The dashboard as lines of text, for screen readers and terminals that only print; by itself where TERM is dumb (--plain=false: not)
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
    pub plain: Option<bool>,
    /// The colours of the dashboard: auto (as the terminal's background is), dark, light, colour-blind or mono, or a theme file
    #[arg(long, global = true, value_name = "NAME|FILE", help_heading = "Display")]
    pub theme: Option<String>,
    /// Write the log to this file (filter: ROUNDTABLE_LOG=debug)
    #[arg(long, global = true, value_name = "FILE", help_heading = "Display")]
    pub log_file: Option<PathBuf>,
    /// Do not keep runs in the store (see `roundtable runs`)
    #[arg(long, global = true)]
    pub no_store: bool,
    /// Send the spans of runs to a receiver of OpenTelemetry, over OTLP; default of URL: that of the configuration, else http://127.0.0.1:4318
    #[arg(
        long,
        global = true,
        help_heading = "Traces",
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub otlp: Option<String>,
    /// Send the texts of runs too: prompts, replies, arguments, results and errors
    #[arg(long, global = true, help_heading = "Traces")]
    pub otlp_content: bool,
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

    /// Whether the dashboard is lines of text.
    pub fn is_plain(&self) -> bool {
        self.plain_from().value
    }

    /// Whether a run may be steered where it is started: plain mode by an option or the configuration needs no terminal.
    pub(super) fn can_be_interactive(&self) -> bool {
        let is_asked = self.plain.or(self.configured.plain).unwrap_or_default();
        is_asked || stdout_is_terminal()
    }

    /// [`is_plain`](Self::is_plain) with its origin.
    pub fn plain_from(&self) -> WithOrigin<bool> {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match (self.plain, self.configured.plain, is_dumb) {
            (None, None, true) => WithOrigin { value: true, origin: SettingOrigin::Shell },
            (here, configured, _) => first_set(here, configured, false),
        }
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
