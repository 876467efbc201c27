//! Carries out the effects of the dashboard in the background: starting runs, writing files,
//! reading scenarios, comparing runs, following a cluster. The loop awaits none of them; results
//! arrive through a channel.

pub mod kept_runs;
pub mod models;
#[cfg(unix)]
mod peers;
mod recorded_runs;
pub mod remote;
pub mod scenario_files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use self::kept_runs::KeptRuns;
use self::recorded_runs::LastRecorded;
use super::signals::ProcessSignal;
use crate::base::private_file::TempFile;
use crate::base::refused::Refused;
use crate::base::visible::visible_lines;
use crate::cluster::Cluster;
use crate::cluster::rows::RowChange;
use crate::engine::{Engine, Launch, RunHandle, Schedule};
use crate::host;
use crate::host::models::{LiveCalls, LiveModels, endpoints_of};
#[cfg(unix)]
use crate::host::peers::Peer;
use crate::host::prepare;
use crate::host::prepare::{PrepareError, prepare};
use crate::host::trust::Trust;
use crate::log::bus::{Bus, LogReader};
use crate::log::event::{BoundaryId, Command, QuestionAnswered, QuestionId, RunId};
use crate::log::world::run_row::RunRow;
use crate::run::questions::PeopleMode;
use crate::scenario::catalogue::RequestedModel;
use crate::screen::effect::{Export, LaunchRequest, RecordedSource, RequestId, RunBeginning};
use crate::screen::keymap::key_of;
use crate::screen::run::origin::RemoteRun;
use crate::screen::tour;
use crate::screen::{Action, Effect, Msg};
use crate::terminal;
use crate::words::comparison::runs::ComparedRuns;
use crate::words::format;

/// A result that goes back to the loop.
pub enum EffectResult {
    /// A message for the dashboard.
    Msg(Msg),
    /// A run has started.
    Started {
        /// The request that started it.
        request: RequestId,
        /// Handle of the run.
        run: RunHandle,
        /// Reader of its events, at the first one.
        facts: Box<LogReader>,
        /// The request itself, for the next message of its session.
        launch: Option<Box<LaunchRequest>>,
    },
    /// A run of the cluster is watched.
    Attached {
        /// The request that this answers.
        request: RequestId,
        /// The run.
        run: RunId,
        /// How long ago its clock was zero.
        age: Duration,
        /// Reader of its events, at the first one.
        facts: Box<LogReader>,
        /// What its session continues with; `None`: its pattern has no sessions.
        launch: Option<Box<LaunchRequest>>,
        /// Who plays it.
        remote: Box<RemoteRun>,
    },
    /// A run that is played elsewhere is followed, and not opened.
    Followed {
        /// The run.
        run: RunId,
        /// How long ago its clock was zero.
        age: Duration,
        /// Reader of its events, at the first one.
        facts: Box<LogReader>,
        /// What its session continues with, if that is known.
        launch: Option<Box<LaunchRequest>>,
        /// Who plays it.
        remote: Box<RemoteRun>,
    },
    /// Events of a kept log. Reading continues when the loop has taken it.
    Opened {
        /// The events, as the state takes them.
        msg: Msg,
        /// Its place among those that are not taken yet.
        _room: OwnedSemaphorePermit,
    },
    /// The clock of a watched run is another one from now on: a new owner continues with its own.
    /// It was zero so long ago.
    Clock(RunId, Duration),
    /// Bytes for the terminal that are not part of a frame.
    Bytes(Vec<u8>),
    /// A signal of the system.
    Signal(ProcessSignal),
    /// Open this file in the editor.
    Edit(PathBuf),
    /// Open the arguments of a call in the editor.
    EditArgs(ArgsFile),
    /// For tests: panic in the loop.
    #[cfg(debug_assertions)]
    Panic,
    /// For tests: hang the loop.
    #[cfg(debug_assertions)]
    Stuck,
}

/// The arguments of a call, while they are edited in a file that only the operator can read.
pub struct ArgsFile {
    pub run: RunId,
    pub id: QuestionId,
    /// Removed when this is dropped.
    pub file: TempFile,
}

/// Options of the command line that the launch form does not have.
#[derive(Debug, Clone, Default)]
pub struct LaunchExtras {
    /// Changes and pauses at boundaries.
    pub schedule: Schedule,
    /// The duration of each pause that ends automatically.
    pub timed_pauses: Vec<(BoundaryId, Duration)>,
    /// Who answers its questions, if not the operator.
    pub people: Option<PeopleMode>,
}

/// The state that the effects of one program share. A clone refers to the same state.
#[derive(Clone)]
pub struct Services {
    /// Runs the scenarios.
    pub engine: Arc<Engine>,
    /// The live models.
    pub models: LiveModels,
    /// The permissions that the operator has given.
    pub trust: Trust,
    /// A scenario that the command line named, listed before the others.
    pub named: Option<String>,
    /// The folder for exported files.
    pub folder: PathBuf,
    /// The kept runs.
    pub kept: KeptRuns,
    /// The runs of the cluster.
    pub remote: RemoteRuns,
    /// The runs of other processes of this user that are followed, with their processes.
    #[cfg(unix)]
    peers: Arc<Mutex<BTreeMap<RunId, Peer>>>,
    /// Lines for the program that is watched.
    pub program_input: Arc<OnceLock<mpsc::UnboundedSender<String>>>,
    /// The runtime of the runs, which is not the loop's.
    pub runtime: Handle,
    extras: Arc<Mutex<BTreeMap<RequestId, LaunchExtras>>>,
    /// The recorded run that was read last.
    pub(crate) recorded: LastRecorded,
    /// The requests whose logs are not read further.
    pub(super) stopped: Arc<Mutex<BTreeSet<RequestId>>>,
    /// Places for the chunks of kept logs that the loop has not taken yet.
    pub(super) room: Arc<Semaphore>,
    answers: mpsc::UnboundedSender<EffectResult>,
}

/// Most chunks of kept logs that the loop has not taken yet.
const WAITING_CHUNKS: usize = 16;

impl Services {
    /// New services, and the channel from which the loop reads their results. Runs are executed in
    /// the runtime in which this is called; the loop may have another.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(
        engine: Engine,
        models: LiveModels,
        trust: Trust,
        named: Option<String>,
        folder: PathBuf,
    ) -> (Self, mpsc::UnboundedReceiver<EffectResult>) {
        let (answers, read) = mpsc::unbounded_channel();
        let (engine, extras, runtime) = (Arc::new(engine), Arc::default(), Handle::current());
        let (kept, remote) = (KeptRuns::default(), RemoteRuns::default());
        let recorded = LastRecorded::default();
        let services = Self {
            engine,
            models,
            trust,
            named,
            folder,
            kept,
            remote,
            #[cfg(unix)]
            peers: Arc::default(),
            program_input: Arc::default(),
            runtime,
            extras,
            recorded,
            stopped: Arc::default(),
            room: Arc::new(Semaphore::new(WAITING_CHUNKS)),
            answers,
        };
        (services, read)
    }

    /// Sends a result to the loop.
    pub fn answer(&self, answer: EffectResult) {
        // The loop is only gone when the program ends.
        let _ = self.answers.send(answer);
    }

    pub(super) fn send_msg(&self, msg: Msg) {
        self.answer(EffectResult::Msg(msg));
    }

    pub(crate) fn failed(&self, what: &'static str, why: impl fmt::Display) {
        self.send_msg(Msg::EffectFailed { what, text: format!("{why:#}") });
    }

    /// Executes blocking work, such as disk access, outside the loop.
    pub(super) fn in_background(&self, work: impl FnOnce(Self) + Send + 'static) {
        let services = self.clone();
        self.runtime.spawn_blocking(move || work(services));
    }

    /// Adds the command line's options to a request.
    pub fn add(&self, request: RequestId, extra: LaunchExtras) {
        self.extras.lock().unwrap_or_else(PoisonError::into_inner).insert(request, extra);
    }

    /// Starts a run, or asks for permission first.
    pub fn start(&self, request: LaunchRequest) {
        self.in_background(move |services| services.start_now(request));
    }

    pub(super) fn start_now(&self, request: LaunchRequest) {
        let LaunchRequest { id, scenario, model, .. } = &request;
        let stop = |why: Refused| self.not_started(*id, &why);
        let session = match request.begins.clone() {
            RunBeginning::Fork(fork) => return self.fork_now(request, &fork),
            RunBeginning::Resume(run) => return self.resume_now(request, &run),
            RunBeginning::New | RunBeginning::Tour => None,
            RunBeginning::FollowUp(follows) => match self.engine.run(&follows.run) {
                Some(run) => match run.follow_up(Arc::clone(&follows.text)) {
                    Some(session) => Some(session),
                    None => {
                        return stop(Refused::new(format!("{} is still running", follows.run)));
                    }
                },
                None if self.remote.log(&follows.run).is_some() => {
                    return self.hand_over_now(request, &follows);
                }
                None => {
                    let what = "was dropped to bound memory, and so was its session";
                    let why = Refused::new(format!("{} {what}", follows.run));
                    let key = key_of(Action::NewRun);
                    return stop(why.help(format!("{key} starts a new run")));
                }
            },
        };
        let prepared = match prepare(&self.models, &self.trust, scenario, model, 1, |_| false) {
            Ok(prepared) => prepared,
            Err(PrepareError::Endpoint(why)) => return stop(why),
            Err(PrepareError::Tools(missing)) => return stop(Refused::new(missing.join("; "))),
            Err(PrepareError::Permission(consent)) => {
                self.send_msg(Msg::Untrusted { request: Box::new(request), consent });
                return;
            }
        };
        for note in prepared.notes() {
            self.send_msg(Msg::Notice(note));
        }
        let extra = {
            let mut extras = self.extras.lock().unwrap_or_else(PoisonError::into_inner);
            extras.remove(id).unwrap_or_default()
        };
        let mut launch = Launch {
            tools: prepared.toolboxes.into_iter().next(),
            scenario: Arc::clone(scenario),
            model: prepared.model,
            flags: request.flags.clone(),
            schedule: extra.schedule,
            seed: request.seed,
            requested_model: request.model.name(),
            session,
            people: extra.people.unwrap_or(PeopleMode::Wait),
        };
        let run = match request.begins {
            RunBeginning::Tour => {
                launch.schedule.breaks = tour::breakpoints();
                self.engine.start_unkept(launch)
            }
            _ => self.engine.start(launch),
        };
        let facts = run.first_reader();
        if !extra.timed_pauses.is_empty() {
            let reader = facts.clone();
            self.runtime.spawn(prepare::resume_timed_pauses(
                run.clone(),
                reader,
                extra.timed_pauses,
            ));
        }
        let id = *id;
        let facts = Box::new(facts);
        self.answer(EffectResult::Started {
            request: id,
            run,
            facts,
            launch: Some(Box::new(request)),
        });
    }

    /// Writes the arguments of a call into a file and opens it in the editor.
    fn edit_args(&self, run: RunId, id: QuestionId, text: String) {
        self.in_background(move |services| {
            let path = std::env::temp_dir().join("roundtable-arguments.json");
            match TempFile::write_next_to(&path, text.as_bytes()) {
                Ok(file) => services.answer(EffectResult::EditArgs(ArgsFile { run, id, file })),
                Err(error) => {
                    let why = Refused::new("cannot write the arguments").because(error);
                    services.failed("editor", why.help("set TMPDIR to a writable folder"));
                }
            }
        });
    }

    /// Saves the operator's permission under these digests.
    pub fn allow(&self, digests: &[String], title: &str) {
        if let Err(error) = self.trust.allow(digests, title) {
            let text = format!("allowed for now, but not saved: {error}");
            self.failed("trust", text);
        }
    }

    /// Allows all that a run of this request needs: `--trust`.
    pub fn allow_all(&self, request: &LaunchRequest) {
        let endpoints = match &request.model {
            RequestedModel::Scripted { .. } => None,
            RequestedModel::Live(model) => endpoints_of(&request.scenario, model.as_deref()).ok(),
        };
        let calls = endpoints.as_ref().map(LiveCalls::Here);
        if let Some(consent) = self.trust.needed_consent(&request.scenario, calls) {
            self.allow(&consent.digests, &request.scenario.title);
        }
    }

    /// Copies a text to the clipboard; the notice of the copy is shown already. Control characters are
    /// escaped: a shell would execute them when the text is pasted.
    pub fn copy(&self, text: String) {
        self.in_background(move |services| {
            let text = visible_lines(&text).into_owned();
            let size = format::bytes(text.len() as u64);
            let key = key_of(Action::Export);
            if let Some(why) = terminal::why_no_clipboard(|name| std::env::var(name).ok()) {
                let text = format!("Not copied: {why}; {key} exports the run to files.");
                return services.send_msg(Msg::Notice(text));
            }
            if terminal::through_tmux(&text) {
                if terminal::tmux_keeps_copies() {
                    let text = "Copied to tmux's buffer alone: its set-clipboard is off.";
                    services.send_msg(Msg::Notice(text.to_owned()));
                }
                return;
            }
            let is_long = text.len() > terminal::MAX_OSC52_BYTES;
            services.answer(EffectResult::Bytes(terminal::osc52(&text)));
            if is_long {
                let text = format!(
                    "Copied {size}; many terminals accept less: {key} exports it to a file."
                );
                services.send_msg(Msg::Notice(text));
            }
        });
    }

    /// Exports files into the folder. An existing file is not overwritten: the new one gets a
    /// number. `by` is the action that asks for it.
    pub fn export(&self, files: Vec<Export>, by: Action) {
        self.in_background(move |services| services.export_now(files, by));
    }

    fn export_now(&self, files: Vec<Export>, by: Action) {
        let mut written: Vec<PathBuf> = Vec::new();
        let lacks: u64 = files.iter().map(|export| export.contents.dropped_events()).sum();
        for Export { file, contents } in files {
            match write_numbered(&self.folder, &file, &contents.into_text()) {
                Ok(path) => {
                    let file = path.display();
                    tracing::info!(target: "roundtable::files", %file, "written");
                    written.push(path);
                }
                Err(error) => {
                    let help = write_advice(error.kind(), by);
                    let why = Refused::new(format!("cannot write {file}")).because(error);
                    self.failed("export", why.help(help));
                }
            }
        }
        let Some((first, rest)) = written.split_first() else { return };
        let mut text = format!("exported {}", first.display());
        for (nth, path) in rest.iter().enumerate() {
            // All are in the folder of the first one.
            let name = path.file_name().unwrap_or_default().display();
            text.push_str(&format!("{} {name}", if nth == 0 { " and" } else { "," }));
        }
        if lacks > 0 {
            let events = format::exact(lacks);
            text.push_str(&format!("; without {events} earlier events, dropped to bound memory"));
        }
        self.send_msg(Msg::Notice(text));
    }
}

/// The advice for a file that could not be written.
fn write_advice(kind: io::ErrorKind, by: Action) -> String {
    let to_do = match kind {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            return "start roundtable in a writable folder".to_owned();
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free disk space",
        io::ErrorKind::FileTooLarge => "raise ulimit -f",
        io::ErrorKind::AlreadyExists => "remove numbered files",
        _ => "check the folder that roundtable was started in",
    };
    format!("{to_do}, then press {} again", key_of(by))
}

/// Largest number that is appended to a file name.
const MAX_FILE_NUMBER: u32 = 1000;

fn write_numbered(folder: &Path, file: &str, contents: &str) -> io::Result<PathBuf> {
    // The name contains a run's id or a scenario's name, which may hold any character.
    let name: String = file
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .collect();
    let (stem, end) = name.rsplit_once('.').unwrap_or((&name, "txt"));
    // Written completely before it gets its name: a full disk leaves no partial file.
    let written = TempFile::write_next_to(&folder.join(&name), contents.as_bytes())?;
    for number in 1..MAX_FILE_NUMBER {
        let name = match number {
            1 => format!("{stem}.{end}"),
            _ => format!("{stem}-{number}.{end}"),
        };
        let path = folder.join(name);
        match written.rename_to(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// An effect on the terminal, which only the loop can carry out.
pub(crate) enum TerminalEffect {
    /// Show a text in the pager.
    Page(String),
    /// Export a picture of the screen.
    Picture,
    /// Suspend the program.
    Suspend,
    /// Draw with the next theme.
    NextTheme,
    /// Redraw the whole screen.
    Redraw,
    /// Quit the program.
    Quit {
        /// The exit code.
        code: u8,
    },
}

/// Carries out an effect; returns one on the terminal.
pub(crate) fn execute(services: &Services, effect: Effect) -> Option<TerminalEffect> {
    match effect {
        Effect::Start(request) => services.start(*request),
        Effect::ReadFork(source) => services.read_fork(source),
        Effect::Restart(source) => services.restart(source),
        Effect::Compare { request, runs } => compare(services, request, *runs),
        Effect::Resume { request, run } => services.resume(request, run),
        Effect::Trust { digests, title } => services.allow(&digests, &title),
        Effect::Command { run, command } => command_run(services, &run, command),
        Effect::Answer { run, id, digest, answer, remember } => {
            let answered = QuestionAnswered::new(id, digest, host::this_person(), answer);
            let answered = QuestionAnswered { remember, ..answered };
            command_run(services, &run, Command::Answer(Box::new(answered)));
        }
        Effect::EditArgs { run, id, text } => services.edit_args(run, id, text),
        Effect::Input(line) => {
            let sent = services.program_input.get().map(|input| input.send(line));
            if !matches!(sent, Some(Ok(()))) {
                services.failed("input", "the program reads no more lines");
            }
        }
        #[cfg(unix)]
        Effect::Suggest { run, id } if self::peers::suggest_peer(services, &run, id) => {}
        Effect::Suggest { run, id } => {
            let answer = services.engine.run(&run).and_then(|it| it.suggested_answer(id));
            services.send_msg(Msg::Suggested { run, id, answer });
        }
        Effect::Attach { request, run } => services.attach(run, Some(request)),
        Effect::Copy(text) => services.copy(text),
        Effect::Export(files) => services.export(files, Action::Export),
        Effect::Rescan => scenario_files::rescan(services),
        Effect::NewScenario { pattern } => scenario_files::write_template(services, pattern),
        Effect::Edit(origin) => scenario_files::edit(services, origin),
        Effect::ListKept => services.list_kept(),
        Effect::OpenKept { request, run, follows } => services.open_kept(run, request, follows),
        Effect::StopReading(request) => services.stop_reading(request),
        Effect::SearchSaid { request, query } => services.search_said(request, query),
        Effect::PinKept { run, pinned } => services.pin_kept(run, pinned),
        Effect::RemoveKept(run) => services.remove_kept(run),
        Effect::RestoreKept(run) => services.restore_kept(run),
        Effect::FindLive(query) => services.find_live(*query),
        Effect::ListModels { query, place } => services.list_models(*query, place),
        Effect::FindOllama { form } => services.find_ollama(form),
        Effect::Page(text) => return Some(TerminalEffect::Page(text)),
        Effect::Picture => return Some(TerminalEffect::Picture),
        Effect::Suspend => return Some(TerminalEffect::Suspend),
        Effect::NextTheme => return Some(TerminalEffect::NextTheme),
        Effect::Redraw => return Some(TerminalEffect::Redraw),
        Effect::LeaveRuns => services.engine.leave_runs(),
        Effect::Quit { code } => return Some(TerminalEffect::Quit { code }),
    }
    None
}

/// Sends a command to a run: here, in another process, or on a runner of the cluster.
fn command_run(services: &Services, run: &RunId, command: Command) {
    match services.engine.run(run) {
        Some(run) => run.send(command),
        #[cfg(unix)]
        None if self::peers::command_peer(services, run, &command) => {}
        None if self::remote::command_remote(services, run, command) => {}
        None => tracing::debug!("{run} was dropped; command ignored"),
    }
}

/// Reads two runs and compares them.
pub(crate) fn compare(services: &Services, request: RequestId, runs: [RecordedSource; 2]) {
    services.in_background(move |services| {
        let result = compared(&services, runs).map(Box::new).map_err(|why| format!("{why:#}"));
        services.send_msg(Msg::Compared { request, result });
    });
}

fn compared(
    services: &Services,
    [left, right]: [RecordedSource; 2],
) -> Result<ComparedRuns, Refused> {
    let (left, right) = (services.read_recorded(left)?, services.read_recorded(right)?);
    Ok(ComparedRuns::of(left.events(), right.events()))
}

/// The cluster that the dashboard shows, and its watched runs.
#[derive(Clone, Default)]
pub struct RemoteRuns {
    pub(crate) cluster: Arc<OnceLock<Cluster>>,
    pub(crate) watched: Arc<Mutex<BTreeMap<RunId, Bus>>>,
    /// The runs that are followed, each with the request that it is opened for.
    pub(crate) followed: Arc<Mutex<BTreeMap<RunId, Option<RequestId>>>>,
    pub(crate) rows: Arc<Mutex<BTreeMap<String, ListedRow>>>,
}

/// A run in the list of the cluster.
pub(crate) struct ListedRow {
    row: RunRow,
    /// The pool of the runners that may play it.
    pool: String,
}

impl RemoteRuns {
    /// The log of a run that is watched.
    pub fn log(&self, run: &RunId) -> Option<Bus> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }

    /// Whether the cluster has this run.
    pub(crate) fn has(&self, run: &RunId) -> bool {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.contains_key(run.as_str()) || self.log(run).is_some()
    }

    /// The pool of the runners that may play a run.
    pub(crate) fn pool(&self, run: &RunId) -> Option<String> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.get(run.as_str()).map(|listed| listed.pool.clone()).filter(|pool| !pool.is_empty())
    }

    /// Takes a change of the list of runs.
    pub(crate) fn take(&self, change: RowChange) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            RowChange::Row(row) => {
                let listed = ListedRow { row: row.to_run_row(), pool: row.pool };
                rows.insert(row.run, listed);
            }
            RowChange::Gone(run) => drop(rows.remove(run.as_str())),
        }
    }

    /// The request that a followed run is opened for.
    fn opened_for(&self, run: &RunId) -> Option<RequestId> {
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner).get(run)?
    }

    /// The runs that wait for people.
    pub(crate) fn asking(&self) -> Vec<RunId> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let asking = rows.values().filter(|listed| !listed.row.waits_for.is_empty());
        asking.map(|listed| listed.row.id.clone()).collect()
    }

    /// The rows of its runs, the newest first.
    pub fn rows(&self) -> Vec<RunRow> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.values().map(|listed| listed.row.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineSettings;
    use crate::net::ProxyMode;
    use crate::scenario::{Scenario, ScenarioOrigin, load, shipped};
    use crate::screen::effect::{Contents, RequestId};

    /// A foreign scenario with a program that needs an unset variable.
    fn foreign() -> Scenario {
        let shipped = shipped().iter().find(|one| one.name == "real-services").expect("shipped");
        let (program, needs) = ("program = \"sh\"\n", "env = { A = { env = \"RT_NEVER_SET\" } }\n");
        let text = shipped.text.replace(program, &format!("{program}{needs}"));
        load(&text, ScenarioOrigin::File("foreign.toml".into()), &[]).expect("a good scenario")
    }

    #[tokio::test]
    async fn foreign_file_asks_and_reports_missing() {
        let engine = Engine::new(EngineSettings::default());
        let (models, trust) = (LiveModels::new(ProxyMode::Direct), Trust::saved_in(None));
        let (services, mut answers) = Services::new(engine, models, trust, None, PathBuf::new());
        let scenario = Arc::new(foreign());
        let model = RequestedModel::Scripted { instant: true };
        let (id, flags) = (RequestId(7), Vec::new());
        let request = LaunchRequest {
            id,
            scenario: Arc::clone(&scenario),
            model,
            flags,
            seed: None,
            begins: RunBeginning::New,
        };
        services.start_now(request.clone());
        let Some(EffectResult::Msg(Msg::Untrusted { consent, .. })) = answers.recv().await else {
            panic!("it is not asked");
        };
        let would = &consent.would;
        for line in ["run sh -c df", "pass $RT_NEVER_SET to it as A", "call 127.0.0.1:7878"] {
            assert!(would.iter().any(|said| said.trim().starts_with(line)), "{line}: {would:?}");
        }
        services.allow(&consent.digests, &scenario.title);
        services.start_now(request);
        let Some(EffectResult::Msg(Msg::StartFailed { text, .. })) = answers.recv().await else {
            panic!("it is started");
        };
        let says = "the tool disk_worker: A comes from $RT_NEVER_SET, which is not set: set it and \
                start again";
        assert_eq!(text, says);
        assert!(services.engine.runs().is_empty());
    }

    /// Services that export into this folder, and their results.
    fn writing_to(folder: &Path) -> (Services, mpsc::UnboundedReceiver<EffectResult>) {
        let engine = Engine::new(EngineSettings::default());
        let (models, trust) = (LiveModels::new(ProxyMode::Direct), Trust::saved_in(None));
        Services::new(engine, models, trust, None, folder.to_path_buf())
    }

    fn report(text: &str) -> Vec<Export> {
        let file = |file: &str, text: &str| Export {
            file: file.to_owned(),
            contents: Contents::Text(text.to_owned()),
        };
        vec![file("r-b7c0.md", text), file("r-b7c0.jsonl", "{}\n")]
    }

    #[tokio::test]
    async fn writes_private_files_with_one_notice() {
        let folder = tempfile::tempdir().expect("a folder");
        let (services, mut answers) = writing_to(folder.path());
        let at = |name: &str| folder.path().join(name);
        for (text, names) in [
            ("first", ["r-b7c0.md", "r-b7c0.jsonl"]),
            ("second", ["r-b7c0-2.md", "r-b7c0-2.jsonl"]),
        ] {
            services.export(report(text), Action::Export);
            let Some(EffectResult::Msg(Msg::Notice(said))) = answers.recv().await else {
                panic!("it is not said")
            };
            let [first, other] = names;
            assert_eq!(said, format!("exported {} and {other}", at(first).display()));
        }
        let read = |name: &str| std::fs::read_to_string(at(name)).expect("reads");
        assert_eq!([read("r-b7c0.md"), read("r-b7c0-2.md")], ["first", "second"]);
        assert_eq!(std::fs::read_dir(folder.path()).expect("reads").count(), 4);
        assert!(answers.try_recv().is_err(), "one notice for each time");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(at("r-b7c0.md")).expect("is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn failed_write_gives_advice() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a file");
        std::fs::write(&file, "").expect("written");
        let (services, mut answers) = writing_to(&file.join("beneath"));
        services.export(report("text"), Action::Export);
        for name in ["r-b7c0.md", "r-b7c0.jsonl"] {
            let Some(EffectResult::Msg(Msg::EffectFailed { what, text })) = answers.recv().await
            else {
                panic!("it is not said")
            };
            assert_eq!(what, "export");
            assert!(text.starts_with(&format!("cannot write {name}: ")), "{text}");
            assert!(text.ends_with("that roundtable was started in, then press e again"), "{text}");
        }
        drop(services);
        assert!(answers.recv().await.is_none(), "nothing was written");
    }

    #[tokio::test]
    async fn a_damaged_row_is_noted_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs.db");
        let database = crate::store::database::Database::open(&path).expect("a store");
        let sql = "INSERT INTO run (id, started, next) VALUES ('r-1', -1, 1), ('r-2', 1, 1)";
        rusqlite::Connection::open(&path).expect("opens").execute(sql, []).expect("written");
        let (mut services, mut answers) = writing_to(folder.path());
        services.kept = super::kept_runs::KeptRuns::new(Some(database));
        for is_first in [true, false] {
            services.list_kept();
            if is_first {
                let Some(EffectResult::Msg(Msg::EffectFailed { text, .. })) = answers.recv().await
                else {
                    panic!("it is not noted");
                };
                assert!(text.contains("r-1: its row cannot be read"), "{text}");
            }
            let Some(EffectResult::Msg(Msg::Kept { rows, .. })) = answers.recv().await else {
                panic!("no list");
            };
            assert_eq!(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["r-2"]);
        }
    }

    #[test]
    fn keeps_existing_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |text| write_numbered(folder.path(), "r-7f3a/../x.json", text).expect("written");
        let (first, second) = (write("one"), write("two"));
        assert_eq!(first, folder.path().join("r-7f3a_.._x.json"), "no way out of the folder");
        assert_eq!(second, folder.path().join("r-7f3a_.._x-2.json"));
        assert_eq!(std::fs::read_to_string(first).expect("reads"), "one");
    }
}
