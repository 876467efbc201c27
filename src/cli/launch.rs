//! What several commands share that read scenarios or start runs: reads and checks scenarios, asks
//! for permission, opens the store. All checks are done before anything starts.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::args::{FailOn, FlagArg, Global, RunFormat};
use super::exit::Exit;
use super::people::PeopleArg;
use super::run::RunArgs;
use super::streams::{StreamStyle, print_message, print_on_stderr, refuse};
use crate::base::name::FlagName;
use crate::base::refused::Refused;
use crate::base::time::now_ms;
use crate::base::visible::visible;
use crate::engine::{Engine, EngineSettings, Launch, ModelChoice, RunKeeper, Schedule, Toolbox};
use crate::host::models::{Endpoints, LiveModels};
#[cfg(unix)]
use crate::host::peers::{FoundPeers, PeerFolder, PeerServer};
use crate::host::prepare::{PrepareError, prepare};
use crate::host::run_store::{StoreFailure, StoreKeeper, StoredRuns, retention};
use crate::host::trust::Trust;
use crate::host::{Dirs, catalogue, models};
use crate::log::bus::LogLimits;
use crate::log::event::BoundaryId;
use crate::run::Session;
use crate::run::questions::PeopleMode;
use crate::scenario;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::read::closest_name;
use crate::scenario::source::SourceError;
use crate::scenario::spec::ScenarioOrigin;
use crate::scenario::{Consent, ConsentAbout, Override, Problems, STDIN, Scenario, ScenarioSource};
use crate::screen::form::quoted;
use crate::screen::theme::Theme;
use crate::store::database::writer::LockWaits;
use crate::terminal::effects::kept_runs::KeptRuns;

/// Bytes of events that a run may be ahead of its reader, such as a pipe.
const MAX_AHEAD: u64 = 16 << 20;

/// Parses the values of `--set`. `None`: the errors have already been printed.
pub(crate) fn overrides(set: &[String]) -> Option<Vec<Override>> {
    let mut overrides = Vec::new();
    for text in set {
        match text.parse::<Override>() {
            Ok(set) => overrides.push(set),
            Err(error) => print_message(&format!("--set {}: {error}", visible(text))),
        }
    }
    (overrides.len() == set.len()).then_some(overrides)
}

/// Why a scenario cannot be run.
pub(crate) struct CannotRun {
    /// The problems of its file, with colours where the terminal has them, and without.
    problems: Option<(String, String)>,
    /// Other errors.
    why: Vec<Refused>,
    /// Lines that are never cut: what the operator must allow, and what tools lack.
    lines: Vec<String>,
    /// The operator has to allow it.
    pub needs_permission: bool,
    /// The exit code.
    exit: Exit,
}

impl CannotRun {
    /// The problems of a file.
    pub fn of_problems(problems: &Problems) -> Self {
        let colour = StreamStyle::of_stderr(Theme::default(), false).colour();
        let problems = Some((problems.pretty(colour), problems.pretty(false)));
        Self { problems, ..Self::because(Vec::new()) }
    }

    /// Errors that are no problems of a file.
    pub fn because(why: Vec<Refused>) -> Self {
        Self { problems: None, why, lines: Vec::new(), needs_permission: false, exit: Exit::Usage }
    }

    /// Prints why, each after `who` if that is not empty, and returns the exit code.
    pub fn print(&self, who: &str) -> Exit {
        if let Some((problems, _)) = &self.problems {
            print_on_stderr(problems, true);
        }
        let who = if who.is_empty() { String::new() } else { format!("{}: ", visible(who)) };
        for why in &self.why {
            print_message(&format!("{who}{}", why.lines().join("\n  ")));
        }
        for line in &self.lines {
            print_message(&format!("{who}{}", visible(line)));
        }
        self.exit
    }

    /// The same as a text without colours.
    pub fn text(&self) -> String {
        let problems = self.problems.iter().map(|(_, plain)| plain.trim_end());
        let lines = problems.map(str::to_owned);
        let lines = lines.chain(self.why.iter().map(|why| format!("{why:#}")));
        let lines = lines.chain(self.lines.iter().cloned());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Reads a run's scenario with its overrides. `None`: the errors have already been printed.
/// Warnings are not: the run emits them as events.
pub fn read_scenario(args: &RunArgs) -> Option<Arc<Scenario>> {
    let source = match &args.text {
        Some(text) => {
            let origin = ScenarioOrigin::File((&args.scenario).into());
            ScenarioSource { text: text.clone(), origin }
        }
        None => ScenarioSource::find(&args.scenario)
            .map_err(|error| refuse(&error.into(), Exit::Usage))
            .ok()?,
    };
    read_source(source, args).map_err(|why| why.print("")).ok()
}

/// The same as [`read_scenario`], of a file that has been found. Errors of `--set` are printed, others are
/// only returned.
pub(super) fn read_source(
    source: ScenarioSource,
    args: &RunArgs,
) -> Result<Arc<Scenario>, CannotRun> {
    let overrides = overrides(&args.set).ok_or_else(|| CannotRun::because(Vec::new()))?;
    let checked = scenario::check(&source.text, source.origin, &overrides);
    // A replay takes the replies of a recorded run.
    let problems = checked.problems.for_run(args.live || has_replies(args));
    match checked.scenario.filter(|_| problems.errors() == 0) {
        Some(scenario) => match check_args(&scenario, args) {
            wrong if wrong.is_empty() => Ok(Arc::new(scenario)),
            wrong => Err(CannotRun::because(wrong)),
        },
        None => Err(CannotRun::of_problems(&problems)),
    }
}

/// Whether a recorded run has the replies of the models.
fn has_replies(args: &RunArgs) -> bool {
    args.replay.is_some()
}

/// What is wrong with the arguments: flags, boundaries or decisions that the scenario does not have.
fn check_args(scenario: &Scenario, args: &RunArgs) -> Vec<Refused> {
    let mut wrong = Vec::new();
    let spec = scenario.pattern.get();
    let name = spec.name();
    let answers = spec.agents().is_some();
    if !answers && !args.messages.is_empty() {
        let what = format!("--message: the pattern {name} takes no messages");
        wrong.push(Refused::new(what).help("team and swarm take messages"));
    }
    if args.format == Some(RunFormat::Markdown) && !spec.cites() {
        let what = format!("--format markdown: only research has it, not the pattern {name}");
        wrong.push(Refused::new(what).help("use text"));
    }
    if args.messages.iter().any(|text| text.trim().is_empty()) {
        wrong.push(Refused::new("--message: the text is empty"));
    }
    for fail_on in &args.fail_on {
        if let (false, FailOn::Decision(decision)) = (spec.decides(), fail_on) {
            let word = decision.word();
            let what = format!("--fail-on {word}: the pattern {name} makes no decision");
            wrong.push(Refused::new(what).help("use degraded"));
        }
    }
    if matches!(args.people, Some(PeopleArg::Ask | PeopleArg::Wait)) && args.repeat.times.is_some()
    {
        let why = Refused::new("--people: nobody answers many runs at once");
        wrong.push(why.help("use --people script or nobody with --times"));
    }
    if args.people == Some(PeopleArg::Ask) && args.remote.on.is_some() {
        let why = Refused::new("--people ask: a runner has no standard input to ask on");
        wrong.push(why.help("use --people wait, and `roundtable answer` or `attach`"));
    }
    if args.people == Some(PeopleArg::Ask) {
        let input = "standard input answers the questions";
        if args.scenario == STDIN {
            let why = Refused::new(format!("--people ask: {input}, so it cannot be the scenario"));
            wrong.push(why.help("give the scenario as a file"));
        }
        if args.pause_at.iter().any(|pause| pause.length.is_none()) {
            let why = Refused::new(format!("--people ask: {input}, so it cannot end a pause"));
            wrong.push(why.help("give each pause a duration, such as --pause-at round:2=10s"));
        }
    }
    let rests = args.pause_at.iter().filter_map(|pause| boundary_error(scenario, &pause.at));
    wrong.extend(flag_errors(scenario, &args.flags).into_iter().chain(rests));
    wrong
}

/// The errors of `--flag`: unknown flags, and boundaries that are never reached.
pub(super) fn flag_errors(scenario: &Scenario, flags: &[FlagArg]) -> Vec<Refused> {
    let unknown = flags.iter().filter(|flag| scenario.flag(flag.name.as_str()).is_none());
    let unknown = unknown.map(|flag| {
        let names: Vec<&str> = scenario.flags.iter().map(|flag| flag.name.as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let why = Refused::new(format!("--flag {}: no such flag", flag.name));
        why.help(format!("the scenario has: {known}"))
    });
    let never = flags.iter().filter_map(|flag| boundary_error(scenario, flag.at.as_ref()?));
    unknown.chain(never).collect()
}

fn boundary_error(scenario: &Scenario, at: &BoundaryId) -> Option<Refused> {
    let reached = scenario.pattern.get().check_boundary(at.as_str(), &scenario.tools);
    reached.err().map(|why| Refused::new(format!("{}: {why}", at.as_str())))
}

/// The flags at the start, and the changes and pauses at boundaries.
pub fn schedule(args: &RunArgs) -> (Vec<(FlagName, bool)>, Schedule) {
    let (later, start): (Vec<_>, Vec<_>) = args.flags.iter().partition(|flag| flag.at.is_some());
    let start = start.into_iter().map(|flag| (flag.name.clone(), flag.on)).collect();
    let later =
        later.into_iter().filter_map(|flag| Some((flag.at.clone()?, flag.name.clone(), flag.on)));
    let schedule = Schedule {
        flags: later.collect(),
        breaks: args.pause_at.iter().map(|pause| pause.at.clone()).collect(),
        start_paused: false,
    };
    (start, schedule)
}

/// The messages of a headless session, one run each: those of the command line, else the scenario's
/// goal and follow-ups.
pub(crate) fn messages(scenario: &Scenario, args: &RunArgs) -> Vec<Arc<str>> {
    if !args.messages.is_empty() {
        return args.messages.iter().map(|text| text.as_str().into()).collect();
    }
    let follow_ups = scenario.pattern.get().follow_ups();
    std::iter::once(Arc::clone(&scenario.goal)).chain(follow_ups.iter().cloned()).collect()
}

/// Bytes of events that headless runs keep after reading, for others who follow them.
pub(crate) const FOLLOWED: u64 = 16 << 20;

/// Settings of an engine for headless runs: each event is folded and written once. `window`: bytes of
/// events that they keep then; 0 where nobody else follows them.
pub(crate) fn engine_settings(window: u64) -> EngineSettings {
    let log = LogLimits { window, ahead: MAX_AHEAD };
    EngineSettings { log, ..EngineSettings::default() }
}

/// The runs of a command, ready to start: one for each message, and all of them so often.
pub(crate) struct PreparedSessions<'a> {
    scenario: &'a Arc<Scenario>,
    args: &'a RunArgs,
    messages: Vec<Arc<str>>,
    model: ModelChoice,
    toolboxes: std::vec::IntoIter<Toolbox>,
    session: Option<Session>,
    /// The answers of the recorded run, in a session that uses them again.
    recorded: Option<PeopleMode>,
}

impl<'a> PreparedSessions<'a> {
    /// Prepares the runs of so many sessions.
    ///
    /// # Errors
    /// They cannot be made; of a recording the message has been printed.
    pub fn prepare(
        scenario: &'a Arc<Scenario>,
        args: &'a RunArgs,
        sessions: usize,
    ) -> Result<Self, CannotRun> {
        let messages = messages(scenario, args);
        if let Some(name) = &args.replay {
            let recorded = super::kept::replayed(name)
                .map_err(|exit| CannotRun { exit, ..CannotRun::because(Vec::new()) })?;
            let answers = &recorded.from_elsewhere;
            if args.people.is_none() && !args.trust_answers && !answers.is_empty() {
                let lines = needed_for_answers(answers);
                return Err(CannotRun { lines, ..CannotRun::because(Vec::new()) });
            }
            // A log is the answer to one message.
            let messages = vec![Arc::clone(&scenario.goal)];
            let (_, toolboxes) = prepare_runs(scenario, args, sessions)?;
            let (model, session) = (recorded.model_choice(), recorded.session());
            let toolboxes = toolboxes.into_iter();
            let people = Some(recorded.people());
            return Ok(Self {
                scenario,
                args,
                messages,
                model,
                toolboxes,
                session,
                recorded: people,
            });
        }
        let runs = sessions * messages.len();
        let (model, toolboxes) = prepare_runs(scenario, args, runs)?;
        let toolboxes = toolboxes.into_iter();
        Ok(Self { scenario, args, messages, model, toolboxes, session: None, recorded: None })
    }

    /// The runs of the next session, each with its message. A seed replaces that of the scenario.
    pub fn next_session(&mut self, seed: Option<u64>) -> Vec<(Arc<str>, Launch)> {
        let launches = self.messages.iter().map(|text| {
            let (flags, schedule) = schedule(self.args);
            let launch = Launch {
                scenario: Arc::clone(self.scenario),
                model: self.model.clone(),
                tools: self.toolboxes.next(),
                flags,
                schedule,
                seed,
                requested_model: self.args.model.as_deref().map(Arc::from),
                session: self.session.clone(),
                people: match &self.recorded {
                    Some(recorded) if self.args.people.is_none() => recorded.clone(),
                    _ => PeopleArg::mode(self.args.detach.people(self.args.people), self.args.live),
                },
            };
            (Arc::clone(text), launch)
        });
        launches.collect()
    }
}

/// The runs of one session for a client of this process, each with its message.
pub(super) fn prepare_session(
    source: ScenarioSource,
    args: &RunArgs,
) -> Result<Vec<(Arc<str>, Launch)>, Refused> {
    // A client names what it starts by a name of its list, the operator by the file.
    let named = match &source.origin {
        ScenarioOrigin::Shipped(path) => Path::new(path).file_stem().and_then(OsStr::to_str),
        ScenarioOrigin::File(_) => None,
    };
    let named = quoted(named.unwrap_or(&args.scenario));
    let cannot = |why: CannotRun| {
        let refused = Refused::new(why.text());
        match why.needs_permission {
            true => {
                // The goal is the prompt of the client: no permission depends on it.
                let is_goal = |set: &&String| {
                    ["goal=", "research.question="].iter().any(|goal| set.starts_with(goal))
                };
                let set = args.set.iter().filter(|set| !is_goal(set));
                let set: String = set.map(|set| format!(" --set {}", quoted(set))).collect();
                let live = if args.live { " --live" } else { "" };
                refused.help(format!(
                    "the operator runs it once in a terminal: roundtable run {named}{set} --trust{live}"
                ))
            }
            false => refused,
        }
    };
    let scenario = read_source(source, args).map_err(cannot)?;
    let mut sessions = PreparedSessions::prepare(&scenario, args, 1).map_err(cannot)?;
    Ok(sessions.next_session(args.seed))
}

/// The value of `--set` that gives a field of the scenario this text, with its braces as they are.
pub(super) fn text_override(path: &str, text: &str) -> String {
    format!("{path}={}", toml::Value::String(text.replace("{{", "\\{{")))
}

pub(super) fn print_notes(notes: &[String]) {
    notes.iter().for_each(|note| print_message(&visible(note)));
}

/// The model and one toolbox for each run.
fn prepare_runs(
    scenario: &Scenario,
    args: &RunArgs,
    runs: usize,
) -> Result<(ModelChoice, Vec<Toolbox>), CannotRun> {
    let via =
        models::parse_proxy(args.proxy.as_deref()).map_err(|why| CannotRun::because(vec![why]))?;
    let wanted = match args.live {
        false => RequestedModel::Scripted { instant: args.instant },
        true => RequestedModel::Live(args.model.as_deref().map(Arc::from)),
    };
    let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
    let allow = |consent: &Consent| args.trust && save_permission(&trust, consent, scenario);
    match prepare(&LiveModels::new(via), &trust, scenario, &wanted, runs, allow) {
        Ok(prepared) => {
            for note in prepared.notes() {
                print_message(&visible(&note));
            }
            for endpoint in prepared.endpoints.iter().flat_map(Endpoints::distinct) {
                let (model, host) = (&endpoint.model().value, endpoint.host());
                let key = models::key_origin(endpoint);
                print_message(&visible(&format!("calling {model} at {host} (API key: {key})")));
            }
            Ok((prepared.model, prepared.toolboxes))
        }
        Err(error) => {
            let needs_permission = matches!(error, PrepareError::Permission(_));
            let lines = match error {
                PrepareError::Endpoint(why) => return Err(CannotRun::because(vec![why])),
                PrepareError::Permission(consent) => {
                    needed_permission(scenario, &consent, args.live)
                }
                PrepareError::Tools(missing) => missing,
            };
            Err(CannotRun { lines, needs_permission, ..CannotRun::because(Vec::new()) })
        }
    }
}

/// Gives the permission and saves it; says so if it holds for this run only.
pub(super) fn save_permission(trust: &Trust, consent: &Consent, scenario: &Scenario) -> bool {
    if let Err(error) = trust.allow(&consent.digests, &scenario.title) {
        let why = Refused::new("--trust applies to this run only; it cannot be saved");
        refuse(&why.because(error), Exit::Usage);
    }
    true
}

/// What the scenario would do, and how to allow it.
pub(super) fn needed_permission(scenario: &Scenario, consent: &Consent, live: bool) -> Vec<String> {
    if consent.about == ConsentAbout::Answers {
        return needed_for_answers(&consent.would);
    }
    let live = if live { "live, " } else { "" };
    let first = match consent.is_of_file {
        true => format!("this scenario was not shipped with roundtable; {live}it would"),
        false => format!("with the values that you give to {}, {live}it would", scenario.name),
    };
    let would = consent.would.iter().map(|line| format!("  {line}"));
    let last = format!("review it, then allow it with --trust: it holds for {}", consent.scope);
    let command = allowing_command(std::env::args().skip(1));
    let command = command.map(|command| format!("  {command}"));
    let lines = std::iter::once(first).chain(would).chain(consent.not_kept.clone()).chain([last]);
    lines.chain(command).collect()
}

/// The command of this process with `--trust`; `None`: it does not take that.
fn allowing_command(args: impl Iterator<Item = String>) -> Option<String> {
    let mut words: Vec<String> = args.collect();
    if !["run", "test", "tools", "fork", "resume"].contains(&words.first()?.as_str()) {
        return None;
    }
    // The address of a proxy may have a password.
    while let Some(at) = words.iter().position(|word| word.starts_with("--proxy")) {
        let count = if words.get(at).is_some_and(|word| word.contains('=')) { 1 } else { 2 };
        words.drain(at..words.len().min(at + count));
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    Some(format!("roundtable {} --trust", words.join(" ")))
}

/// The answers of a log from elsewhere, and how they count.
fn needed_for_answers(answers: &[String]) -> Vec<String> {
    let first = "the log came from elsewhere, and answers in it would count:".to_owned();
    let answers = answers.iter().map(|line| format!("  {line}"));
    let last = "check them, then use them with --trust-answers".to_owned();
    std::iter::once(first).chain(answers).chain([last]).collect()
}

/// The scenarios that an argument names (for a folder its files, by name), or errors. `before`: the
/// arguments before it.
pub fn sources_named(what: &str, before: &[String]) -> Vec<Result<ScenarioSource, Refused>> {
    if what == STDIN && before.iter().any(|other| other == what) {
        let what = "- is given twice: standard input can be read only once";
        return vec![Err(Refused::new(what))];
    }
    let folder = Path::new(what);
    match ScenarioSource::find(what) {
        Ok(source) => vec![Ok(source)],
        Err(_) if folder.is_dir() => {
            let mut files = catalogue::files(folder);
            files.sort();
            match files.is_empty() {
                true => vec![Err(Refused::new(format!("no .toml file in {what}")))],
                false => files.iter().map(|file| Ok(ScenarioSource::read(file)?)).collect(),
            }
        }
        Err(SourceError::NotFound { what, help: None }) => {
            let parent = folder.parent().unwrap_or(Path::new(""));
            let help = similar_folder(&what, parent).map(|name| format!("{name}/"));
            vec![Err(SourceError::NotFound { what, help }.into())]
        }
        Err(error) => vec![Err(error.into())],
    }
}

/// A folder in the parent with a name like this one.
fn similar_folder(what: &str, parent: &Path) -> Option<String> {
    /// Most entries of the parent.
    const ENTRIES: usize = 500;
    let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten().take(ENTRIES);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|entry| parent.join(entry.file_name()).display().to_string()).collect();
    names.sort();
    closest_name(what, names.iter().map(String::as_str)).map(str::to_owned)
}

/// Lets other processes of this user see and steer the runs of an engine, until the server is dropped. Must
/// be called within a runtime.
///
/// # Errors
/// No socket can be made. The runs are played, and other processes do not see them.
#[cfg(unix)]
pub fn serve_peers(engine: &Engine) -> Result<(PeerServer, FoundPeers), Refused> {
    let served = PeerFolder::open().and_then(|folder| PeerServer::start(engine, &folder));
    served.inspect_err(|why| tracing::info!("{why:#}"))
}

/// What happens to a live run that cannot be stored any more. A scripted run continues unstored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// It pauses until it can be stored.
    Pause,
    /// It stops before its next paid call.
    Stop,
}

/// The store of a command; none with `--no-store`, or if it cannot be opened.
pub struct StoreOfCommand {
    runs: Option<Arc<crate::host::run_store::StoredRuns>>,
    /// Problems, one sentence each.
    pub problems: Vec<String>,
    /// Where runs are kept; only where the store was created just now.
    pub place: Option<String>,
}

/// Removed runs can be brought back for this long, in milliseconds.
const UNDO_MS: u64 = 24 * 3_600_000;

impl StoreOfCommand {
    /// Opens the store, unless the command line or the configuration says that runs are not kept.
    pub fn open(global: &Global, on_failure: OnStoreFailure) -> Self {
        let (mut problems, mut place) = (Vec::new(), None);
        if global.no_store || !crate::host::config::user_config().store.keep {
            return Self { runs: None, problems, place };
        }
        let runs = match crate::host::run_store::open_store(LockWaits::new(print_message)) {
            Ok((database, is_new)) => {
                if is_new {
                    let path = database.path().display();
                    place = Some(format!("runs are kept in {path}; --no-store turns it off"));
                }
                if !database.is_local() {
                    problems.push(
                        "the store is on a network file system, where it is slower".to_owned(),
                    );
                }
                let failure = match on_failure {
                    OnStoreFailure::Pause => StoreFailure::Pause,
                    OnStoreFailure::Stop => StoreFailure::Stop,
                };
                Some(StoredRuns::new(database, failure))
            }
            Err(why) => {
                problems.push(format!("{why:#}"));
                None
            }
        };
        Self { runs, problems, place }
    }

    /// What keeps the runs of an engine.
    pub fn keeper(&self) -> Option<Arc<dyn RunKeeper>> {
        let runs = Arc::clone(self.runs.as_ref()?);
        Some(Arc::new(StoreKeeper(runs)))
    }

    /// The runs that are kept there.
    pub fn kept(&self) -> KeptRuns {
        KeptRuns::new(self.runs.as_ref().map(|runs| runs.database().clone()))
    }

    /// Tells this one, instead of standard error, when the store is locked by another process.
    pub fn tell_waits(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        if let Some(runs) = &self.runs {
            runs.database().waits().tell(tell);
        }
    }

    /// Ends all waits for other processes.
    pub fn end_waits(&self) {
        if let Some(runs) = &self.runs {
            runs.database().waits().cancel();
        }
    }

    /// Why runs that continued are not kept; a command without the dashboard has printed it before.
    pub fn warnings(&self) -> Vec<String> {
        self.runs.as_ref().map(|runs| runs.take_warnings()).unwrap_or_default()
    }

    /// Waits until every run is stored, then removes what the configuration does not keep.
    /// Returns what went wrong, and what was removed.
    pub async fn finish(&self) -> Vec<String> {
        let Some(runs) = &self.runs else { return Vec::new() };
        runs.finish().await;
        let mut notes = runs.take_notes();
        let (keep, now) = (retention(&crate::host::config::user_config().store), now_ms());
        let database = runs.database().clone();
        let pruned = spawn_blocking(move || {
            let pruned = database.prune(keep, now, now.saturating_sub(UNDO_MS));
            let is_unpurged = || database.is_unpurged().unwrap_or(false);
            let is_due = pruned.as_ref().is_ok_and(|it| it.runs > 0 || is_unpurged());
            let purged = if is_due { database.purge(false) } else { Ok(()) };
            database.checkpoint();
            (pruned, purged)
        });
        let Ok((pruned, purged)) = pruned.await else { return notes };
        if let Err(error) = purged {
            let again = "`roundtable runs prune` tries again";
            notes
                .push(format!("texts of removed runs may still be in the store: {error}; {again}"));
        }
        match pruned {
            Ok(pruned) if pruned.runs > 0 => {
                let runs = crate::words::format::count_noun(pruned.runs, "old run");
                let size = crate::words::format::bytes(pruned.bytes);
                notes.push(format!("removed {runs} ({size}) from the store"));
            }
            Ok(_) => {}
            Err(error) => notes.push(format!("old runs were not removed: {error}")),
        }
        notes
    }
}
