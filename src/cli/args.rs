//! The command line: commands, their arguments, and the parsing of values.

mod authoring;
#[cfg(feature = "nats")]
mod cluster;
mod display;
mod flag_arg;
#[cfg(feature = "store")]
pub mod kept;
mod picture;
mod report;
mod run_format;
mod shells;
mod test;

use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::event::BoundaryId;
use crate::event::contribution::Decision;

use self::flag_arg::boundary;
pub use authoring::{NewArgs, SchemaArgs, ValidateArgs};
#[cfg(feature = "nats")]
pub use cluster::{AttachArgs, ClusterAction, ClusterArgs, OnArgs, RemoteArgs, RunnerArgs};
pub use display::Global;
pub use flag_arg::FlagArg;
pub use picture::{Moment, PictureArgs};
pub use report::{ConfigArgs, ConfigFormat, DoctorArgs};
pub use run_format::RunFormat;
pub use shells::{CompleteArgs, CompletionsArgs, ManArgs, ShellName};
pub use test::{ReportArg, TestArgs, TestFormat, TestOptions, Vary};

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
    /// Continue a kept run whose process ended before it did
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
fn duration(text: &str) -> Result<Duration, String> {
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::base::name::AgentName;
    use crate::event::Boundary;

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
    fn a_flag_may_wait_for_a_boundary() {
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
    fn every_boundary_that_a_run_has_can_be_named() {
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
    fn what_fails_a_run_is_a_decision_of_the_source_or_degraded() {
        let args = run(&["--fail-on", "no_go,go_with_caution,degraded"]).expect("parses");
        let decisions = [Decision::NoGo, Decision::GoWithCaution].map(FailOn::Decision);
        assert_eq!(args.fail_on, [decisions[0], decisions[1], FailOn::Degraded]);
        assert!(run(&["--fail-on", "maybe"]).is_err());
        assert!(run(&["--live", "--instant"]).is_err(), "a live model has no script to hurry");
    }
}
