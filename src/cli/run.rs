//! `roundtable run`: its arguments, and the run without the dashboard: once, as a session, many
//! times, or handed over to a cluster.

use clap::Args;

use super::args::{FailOn, FlagArg, Global, PauseArg, RunFormat};
use super::cluster;
use super::cluster::RemoteArgs;
use super::exit::Exit;
use super::headless::{DetachArgs, HeadlessOptions, SessionTurn};
use super::launch::{
    FOLLOWED, OnStoreFailure, PreparedSessions, StoreOfCommand, engine_settings, print_notes,
    read_scenario,
};
use super::output::RunWriter;
use super::people::PeopleArg;
use super::streams::{StreamStyle, refuse, stderr_is_terminal};
use super::test::TestOptions;
use super::{headless, run_to_end, streams, test};
use crate::base::refused::Refused;
use crate::host::day_account::user_engine;
use crate::host::traced_runs::traced;
use crate::scenario::STDIN;
use crate::screen::theme::Theme;

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
    /// Who answers the questions of the run [default: the script of an offline run, nobody in a live
    /// one; wait with --detach and --on; the dashboard asks you]
    #[arg(long, value_enum, value_name = "WHO")]
    pub people: Option<PeopleArg>,
    /// Seed of the run's random numbers
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// A background process plays the run. Headless
    #[command(flatten)]
    pub detach: DetachArgs,
    /// Many runs, and a table of those that pass. Headless
    #[command(flatten)]
    pub repeat: TestOptions,
    /// A runner plays the run, not this process. Headless
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Allow without asking what the run does outside of this program: calls an address, runs a program, reads a
    /// folder, sends an environment variable. A shipped scenario asks only for values that you give it
    #[arg(long)]
    pub trust: bool,
    /// With --replay: use the answers of people in a file or an imported log; without it they are listed,
    /// unless --people says who answers
    #[arg(long, requires = "replay")]
    pub trust_answers: bool,
    /// Call the endpoint through this proxy; env: the proxy of HTTPS_PROXY and similar variables
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
    /// The text of the scenario, where a command makes it; `scenario` is then its name
    #[arg(skip)]
    pub text: Option<String>,
}

impl RunArgs {
    /// Whether a runner of a cluster plays the run.
    pub fn is_remote(&self) -> bool {
        self.remote.on.is_some()
    }
}

/// Whether to run without the dashboard: `--headless`, an option that only headless runs have, or
/// no terminal.
pub fn is_headless(args: &RunArgs, global: &Global) -> bool {
    let only_headless = args.replay.is_some()
        || args.is_remote()
        || args.detach.detach
        || args.detach.detached
        || args.repeat.times.is_some()
        || args.repeat.needs_times().is_some()
        || args.format.is_some()
        || !args.fail_on.is_empty()
        || !args.messages.is_empty();
    // Standard input cannot be both the scenario and the dashboard's keyboard.
    let piped = args.scenario == STDIN;
    args.headless || only_headless || piped || !global.can_be_interactive()
}

/// Runs `roundtable run` without the dashboard.
pub fn run(args: &RunArgs, global: &Global, theme: Theme) -> Exit {
    if let Some(option) = args.repeat.needs_times() {
        let why = Refused::new(format!("{option} needs --times"));
        return refuse(&why.help("add --times N, or use roundtable test"), Exit::Usage);
    }
    if args.remote.on.is_some() {
        return run_to_end(cluster::run_remote(args, global, theme));
    }
    if args.detach.detach {
        return match not_detached(args) {
            Some(why) => refuse(&why, Exit::Usage),
            None => headless::detach(),
        };
    }
    if args.repeat.times.is_some() {
        return test::repeat(args, global, theme);
    }
    run_to_end(play(args, global, theme))
}

/// Why no background process can play the run.
fn not_detached(args: &RunArgs) -> Option<Refused> {
    let refused = |why| Some(Refused::new(format!("--detach: {why}")).help("leave out --detach"));
    if args.scenario == STDIN {
        return refused("standard input is not there any more when the scenario is read");
    }
    if args.repeat.times.is_some() {
        return refused("many runs are played at once");
    }
    let is_printed = args.format.is_some() || !args.fail_on.is_empty();
    headless::not_detached(args.people, is_printed)
}

/// Plays the runs of this process, without the dashboard.
pub async fn play(args: &RunArgs, global: &Global, theme: Theme) -> Exit {
    let Some(scenario) = read_scenario(args) else { return Exit::Usage };
    if let Err(exit) = streams::check_stdout() {
        return exit;
    }
    let mut sessions = match PreparedSessions::prepare(&scenario, args, 1) {
        Ok(sessions) => sessions,
        Err(why) => return why.print(""),
    };
    let usual = if streams::stdout_is_terminal() { RunFormat::Text } else { RunFormat::Json };
    let format = args.format.unwrap_or(usual);
    let paint = StreamStyle::of_stdout(theme, global.is_ascii());
    let stored = StoreOfCommand::open(global, OnStoreFailure::Stop);
    print_notes(&stored.problems);
    // A log of a pipeline needs to know only what is wrong.
    if stderr_is_terminal() {
        print_notes(stored.place.as_slice());
    }
    let engine = user_engine(engine_settings(FOLLOWED), traced(stored.keeper()));
    let drive = HeadlessOptions {
        pauses: &args.pause_at,
        fail_on: &args.fail_on,
        people: args.people,
        is_detached: args.detach.detached,
        is_resumed: false,
    };
    let turns = sessions.next_session(args.seed).into_iter();
    let turns = turns.map(|(text, launch)| SessionTurn::Message(text, Box::new(launch)));
    let output = RunWriter::new(format, paint, streams::stdout_data());
    let exit = headless::run(&engine, turns.collect(), drive, output).await;
    print_notes(&stored.finish().await);
    exit
}
