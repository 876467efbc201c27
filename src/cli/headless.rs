//! A run without the dashboard: events go to standard output in one of the formats, the outcome is
//! written however the run ends, and the exit code reports the result.
//!
//! Signals (Ctrl-C; on Unix SIGTERM and SIGHUP) cancel the run. A thread of their own handles them,
//! so a busy runtime does not delay them.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::{BufRead, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use std::{env, fs, io, mem, process, thread};

use clap::Args;
use tokio::sync::mpsc as lines;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::args::{FailOn, PauseArg};
use super::exit::Exit;
use super::output::RunWriter;
use super::people;
use super::people::{PeopleArg, QuestionContext};
use super::streams::{print, print_message, refuse};
use crate::base::refused::Refused;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::engine::{Engine, ForkStart, Launch, Resumption, RunHandle, RunKeeper};
use crate::host::recorded::fork_failure;
use crate::host::{prepare, program_log};
use crate::log::event::{
    AnsweredBy, BoundaryId, Command, Event, EventKind, Initiator, ModelLabel, QuestionAsked,
    QuestionId, StopReason, World,
};
use crate::log::world::questions::QuestionEnd;
use crate::log::world::{Outcome, Projection, SessionOutcome};
use crate::run::questions::PeopleMode;
use crate::terminal::screen_guard;
use crate::words::question;

/// Number of events written before each flush.
const BATCH: usize = 256;

/// Length limit of a failed call's error, in characters.
const ERROR_CHARS: usize = 1_000;

/// Whether a background process plays the run.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct DetachArgs {
    /// Play the run in a background process, and print its id. `attach`, `ctl` and `answer` reach it. With
    /// --on: print the id and do not wait for the run
    #[arg(long)]
    pub detach: bool,
    /// This is the background process.
    #[arg(long, hide = true)]
    pub detached: bool,
}

impl DetachArgs {
    /// Who answers the questions: people elsewhere, unless the command line says otherwise.
    pub fn people(self, named: Option<PeopleArg>) -> Option<PeopleArg> {
        named.or(self.detached.then_some(PeopleArg::Wait))
    }
}

/// Options of a headless run.
#[derive(Default)]
pub struct HeadlessOptions<'a> {
    /// Where the run pauses.
    pub pauses: &'a [PauseArg],
    /// Conditions that make a completed run exit with 1.
    pub fail_on: &'a [FailOn],
    /// Who answers the questions of the run, if the command line says it.
    pub people: Option<PeopleArg>,
    /// This is a background process: it prints only the id of the run, after its start.
    pub is_detached: bool,
    /// The run was interrupted: nothing is decided because nobody can answer here.
    pub is_resumed: bool,
}

/// Who answers the questions of a run, as far as this process has to do with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswersHere {
    /// Lines of standard input.
    Lines,
    /// Nobody: standard error says how others can answer.
    Elsewhere {
        /// Whether other processes reach the run.
        is_reached: bool,
    },
    /// It is not asked.
    Unasked,
}

impl AnswersHere {
    fn of(people: &PeopleMode, drive: &HeadlessOptions<'_>, is_reached: bool) -> Self {
        match people {
            PeopleMode::Ask if !drive.is_detached => Self::Lines,
            PeopleMode::Ask | PeopleMode::Wait if drive.is_resumed => {
                Self::Elsewhere { is_reached }
            }
            _ => Self::Unasked,
        }
    }
}

/// A run of a headless session.
pub enum SessionTurn {
    /// A message, and the launch of the run that answers it.
    Message(Arc<str>, Box<Launch>),
    /// A kept run that is continued.
    Resumed(Box<Launch>, Resumption),
    /// A new run that continues from a boundary of a kept one.
    Forked(Box<Launch>, Box<ForkStart>),
}

impl SessionTurn {
    /// What the run is started with.
    pub fn launch(&mut self) -> &mut Launch {
        match self {
            Self::Message(_, launch) | Self::Resumed(launch, _) | Self::Forked(launch, _) => launch,
        }
    }

    /// The run that answers the message that was queued in the last one, with the flags as they are now.
    fn queued(text: String, mut launch: Launch, last: &World) -> Result<Self, Refused> {
        let tools = prepare::toolbox(&launch.scenario, &launch.model);
        launch.tools = Some(tools.map_err(|missing| Refused::new(missing.join("; ")))?);
        launch.flags = last.settings.flag_positions();
        Ok(Self::Message(text.into(), Box::new(launch)))
    }
}

/// Executes one run, or the runs of a session one after the other, and at its end a run for the messages
/// that were queued from elsewhere. Before this returns, the outcome is written and every task of the runs
/// is joined.
///
/// A stopped run does not end its session; a cancelled run does. The first interrupt (Ctrl-C,
/// SIGTERM) cancels, the second ends the program immediately with exit code 130. The exit code is
/// that of the first run that failed, unless the operator cancelled.
pub async fn run<W: Write>(
    engine: &Engine,
    turns: Vec<SessionTurn>,
    drive: HeadlessOptions<'_>,
    mut output: RunWriter<W>,
) -> Exit {
    #[cfg(unix)]
    let server = match super::launch::serve_peers(engine) {
        Ok((server, _)) => Some(server),
        Err(why) => {
            if drive.is_detached {
                print_message(&format!("{why:#}"));
            }
            None
        }
    };
    #[cfg(not(unix))]
    let server = None::<()>;
    if drive.is_detached {
        leave_terminal();
    }
    let interrupt = InterruptTarget::of_this_process(engine.keeper(), drive.is_detached);
    let (mut messages, mut turns) = (turns.len(), VecDeque::from(turns));
    let (mut place, mut queued) = (0, Vec::new());
    let mut lines = None;
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut warned = HashSet::new();
    let mut before: Option<RunHandle> = None;
    let mut exit = Exit::Ok;
    while let Some(mut turn) = turns.pop_front() {
        let later = turn.launch().later();
        let here = AnswersHere::of(&turn.launch().people, &drive, server.is_some());
        let mut fork_of = None;
        let (scenario, run) = match turn {
            SessionTurn::Message(text, mut launch) => {
                launch.answer(text, before.as_ref());
                (Arc::clone(&launch.scenario), engine.start(*launch))
            }
            SessionTurn::Forked(launch, fork) => {
                let scenario = Arc::clone(&launch.scenario);
                fork_of = Some((fork.recording.head().run.clone(), fork.at.clone()));
                match engine.reserve_id() {
                    Ok(id) => (scenario, engine.fork_as(id, *launch, *fork)),
                    Err((_, why)) => {
                        let exit = match interrupt.is_cancelled() {
                            true => Exit::Cancelled,
                            false => Exit::Stopped,
                        };
                        let what = "the fork was not started, it cannot be kept";
                        return refuse(&Refused::new(what).because(why), exit);
                    }
                }
            }
            SessionTurn::Resumed(launch, resumption) => {
                let scenario = Arc::clone(&launch.scenario);
                match engine.resume(*launch, resumption) {
                    Ok(run) => (scenario, run),
                    Err(error) => {
                        return refuse(&Refused::new(error.to_string()), Exit::Stopped);
                    }
                }
            }
        };
        // A wait for the store that an interrupt ended: the run is cancelled, even if it was over before.
        let was_cancelled = interrupt.is_cancelled();
        interrupt.watch(&run);
        if drive.is_detached && place == 0 {
            leave_output(&run).await;
        }
        let (world, broken) =
            follow(&run, (&drive, here), &mut output, &mut lines, (place, messages), &mut |text| {
                // Once per session. Warnings about the file already begin with "warning".
                if warned.insert(text.to_owned()) {
                    let of_file = scenario.run_warnings(false).any(|warning| warning == text);
                    let word = if of_file { "" } else { "warning: " };
                    print_message(&format!("{word}{}", visible_within(text, ERROR_CHARS)));
                }
            })
            .await;
        run.wait_until_finished().await;
        interrupt.unwatch(&run);
        if let Err(error) = run.wait_until_live().await {
            let why = match fork_of {
                Some((parent, at)) => fork_failure(&parent, &at, error),
                None => Refused::new(format!("{} cannot be continued", run.id())).because(error),
            };
            return refuse(&why, Exit::Stopped);
        }

        let Some(outcome) = world.outcome() else {
            let why = Refused::new("the run has no outcome; this is a bug in roundtable");
            return refuse(&why, Exit::Stopped);
        };
        if let Some(error) = outcome.error.as_ref().filter(|_| !output.says_errors()) {
            print_message(&visible_within(error, ERROR_CHARS));
        }
        let cancelled = outcome.stop_reason == StopReason::Cancelled;
        if world.session().is_some() {
            queued.extend(world.progress.next_message());
        }
        if turns.is_empty() && !queued.is_empty() && !cancelled {
            match SessionTurn::queued(mem::take(&mut queued).join("\n\n"), later, &world) {
                Ok(turn) => {
                    turns.push_back(turn);
                    messages += 1;
                }
                Err(why) => {
                    refuse(&Refused::new("the queued message is not answered").because(why), exit);
                    exit = Exit::Stopped;
                }
            }
        }
        let last = turns.is_empty();
        let written = match broken {
            Some(why) => Err(why),
            None if messages == 1 => output.outcome(&outcome, &world),
            None => output.end_of_session_run(&outcome, &world),
        };
        if let Err(why) = written {
            return write_error_exit(&why);
        }
        if was_cancelled {
            exit = Exit::Cancelled;
        } else if exit == Exit::Ok || cancelled {
            exit = exit_of(&outcome, &world, &drive);
        }
        outcomes.push(outcome);
        if cancelled {
            if !last {
                print_message(&format!("cancelled after message {} of {messages}", place + 1));
            }
            if !queued.is_empty() {
                print_message("the queued message is not answered: the run was cancelled");
            }
            break;
        }
        before = Some(run);
        place += 1;
    }
    if messages > 1
        && let Err(why) = output.session(&SessionOutcome::new(outcomes, messages))
    {
        return write_error_exit(&why);
    }
    exit
}

/// Writes a run's events as they arrive, until its log ends.
async fn follow<W: Write>(
    run: &RunHandle,
    (drive, here): (&HeadlessOptions<'_>, AnswersHere),
    output: &mut RunWriter<W>,
    lines: &mut Option<StdinLines>,
    (place, messages): (usize, usize),
    warn: &mut impl FnMut(&str),
) -> (World, Option<io::Error>) {
    let mut reader = run.first_reader();
    // Without the dashboard nothing else ends a pause in which the run was interrupted.
    tokio::spawn(resume_when_live(run.clone()));
    let rests = drive.pauses.iter().filter_map(|pause| Some((pause.at.clone(), pause.length?)));
    let rests: Vec<_> = rests.collect();
    if !rests.is_empty() {
        tokio::spawn(prepare::resume_timed_pauses(run.clone(), reader.clone(), rests));
    }
    // A detached run is resumed from elsewhere.
    let hand = drive.pauses.iter().filter(|pause| pause.length.is_none() && !drive.is_detached);
    let hand: Vec<&BoundaryId> = hand.map(|pause| &pause.at).collect();
    let mut world = World::new();
    let mut batch = Vec::new();
    let mut broken: Option<io::Error> = None;
    let open = AskedQuestions::default();
    // It reads lines until the run has ended, and leaves the others to the next run of a session.
    let mut answering = JoinSet::new();
    while reader.next_batch(&mut batch, BATCH).await > 0 {
        let (mut written, taken) = (Ok(()), batch.len());
        for event in batch.drain(..) {
            world.apply(&event);
            program_log::log_event(&event, &world);
            if messages > 1 && matches!(event.kind, EventKind::RunStarted(_)) {
                report_message_start(&world, place + 1, messages);
            }
            if let EventKind::Warning { text } = &event.kind {
                warn(text);
            }
            if is_unanswered_by_default(&event, &world, drive) {
                warn(NOBODY_ANSWERS);
            }
            if here != AnswersHere::Unasked {
                open.lock().unwrap_or_else(PoisonError::into_inner).follow(&event.kind, &world);
            }
            if let Some(at) = manual_pause_at(&event, &hand) {
                let lines = lines.get_or_insert_with(stdin_lines);
                tokio::spawn(resume_on_line(run.clone(), at, lines.clone()));
            }
            if broken.is_none() && written.is_ok() {
                written = output.event(&event, &world);
            }
        }
        if broken.is_none() {
            written = written.and_then(|()| output.flush());
        }
        if let Err(why) = written {
            broken = Some(why);
        }
        if open.lock().unwrap_or_else(PoisonError::into_inner).has_new() {
            tokio::spawn(print_when_live(run.clone(), (messages > 1, here), Arc::clone(&open)));
            if here == AnswersHere::Lines && answering.is_empty() {
                let lines = lines.get_or_insert_with(stdin_lines);
                answering.spawn(answer_with_lines(
                    run.clone(),
                    (messages > 1, drive.is_resumed),
                    Arc::clone(&open),
                    lines.clone(),
                ));
            }
        }
        world.forget_old(taken);
        if broken.is_some() {
            // No reader is left: cancel, to spend no more on the run.
            run.send(Command::Cancel);
        }
    }
    (world, broken)
}

/// What to do about questions of a live run.
const NOBODY_ANSWERS: &str = "nobody answered a question: `--people ask` asks you on standard input, \
                              `--people wait` leaves questions open for `roundtable answer`";

/// Whether nobody answered a question, because the command line does not say who answers in a live run.
fn is_unanswered_by_default(event: &Event, world: &World, drive: &HeadlessOptions<'_>) -> bool {
    let is_live =
        || matches!(world.head.as_ref().map(|head| &head.model), Some(ModelLabel::Live { .. }));
    let is_unanswered = matches!(&event.kind, EventKind::QuestionAnswered(answered)
        if answered.by == AnsweredBy::Nobody);
    is_unanswered && drive.people.is_none() && is_live()
}

/// Ends the pause of a run that was resumed. A run that was started is live already.
async fn resume_when_live(run: RunHandle) {
    if run.was_resumed() && run.wait_until_live().await.is_ok() {
        run.send(Command::Resume { by: Initiator::Schedule });
    }
}

/// Reports which message of a session begins, and which agent starts.
pub(super) fn report_message_start(world: &World, message: usize, of: usize) {
    if let Some(session) = world.projection().and_then(Projection::session) {
        let text = visible_within(&session.text, REASON_CHARS);
        print_message(&format!(
            "message {message} of {of}, {} starts: {text}",
            session.first_agent
        ));
    }
}

/// The exit code of a run that has ended.
pub(super) fn exit_of(outcome: &Outcome, world: &World, drive: &HeadlessOptions<'_>) -> Exit {
    let decision = world.projection().and_then(Projection::decision);
    let failed = drive.fail_on.iter().any(|fail_on| match fail_on {
        FailOn::Decision(wanted) => decision == Some(*wanted),
        FailOn::Degraded => outcome.degraded,
    });
    match Exit::from(outcome.stop_reason.class()) {
        Exit::Ok if failed => Exit::Stopped,
        exit => exit,
    }
}

fn write_error_exit(why: &io::Error) -> Exit {
    match why.kind() {
        io::ErrorKind::BrokenPipe => Exit::CutOff,
        _ => refuse(&Refused::new(format!("cannot write the outcome: {why}")), Exit::Stopped),
    }
}

/// The boundary at which the run now waits for the operator.
fn manual_pause_at(event: &Event, hand: &[&BoundaryId]) -> Option<BoundaryId> {
    match &event.kind {
        EventKind::Paused { at } => at.iter().find(|at| hand.contains(at)).cloned(),
        _ => None,
    }
}

/// Lines of standard input as they arrive; closed at its end. The thread that reads them is
/// abandoned: a read from a terminal cannot be cancelled.
type StdinLines = Arc<tokio::sync::Mutex<lines::Receiver<String>>>;

/// The questions of a run, as far as its events were read.
#[derive(Default)]
pub(super) struct OpenQuestions {
    asked: BTreeMap<QuestionId, KnownQuestion>,
    /// How the others ended, for lines that come too late.
    ended: BTreeMap<QuestionId, String>,
}

type AskedQuestions = Arc<Mutex<OpenQuestions>>;

/// A question that is open.
struct KnownQuestion {
    asked: Arc<QuestionAsked>,
    context: QuestionContext,
    printed: bool,
}

impl OpenQuestions {
    /// Processes an event; `world` includes it.
    pub(super) fn follow(&mut self, kind: &EventKind, world: &World) {
        match kind {
            EventKind::QuestionAsked(asked) if !asked.by_rule => {
                let (id, context) = (asked.id, QuestionContext::of(world, asked));
                let asked = Arc::clone(asked);
                self.asked.insert(id, KnownQuestion { asked, context, printed: false });
            }
            EventKind::QuestionAnswered(answered) => {
                self.end(answered.id, &QuestionEnd::Answered(Arc::clone(answered)));
            }
            EventKind::QuestionWithdrawn { id, why } => {
                self.end(*id, &QuestionEnd::Withdrawn(*why));
            }
            _ => {}
        }
    }

    fn end(&mut self, id: QuestionId, end: &QuestionEnd) {
        if let Some(known) = self.asked.remove(&id) {
            self.ended.insert(id, question::closed_text(&known.asked, end));
        }
    }

    /// Those that are open.
    pub(super) fn open(&self) -> Vec<&QuestionAsked> {
        self.asked.values().map(|known| &*known.asked).collect()
    }

    /// A question that is open.
    pub(super) fn get(&self, id: QuestionId) -> Result<Arc<QuestionAsked>, String> {
        match (self.asked.get(&id), self.ended.get(&id)) {
            (Some(known), _) => Ok(Arc::clone(&known.asked)),
            (None, Some(how)) => Err(format!("{id} is not open any more: {how}")),
            (None, None) => Err(format!("{id} is not open")),
        }
    }

    /// What a question that is open does not say itself.
    pub(super) fn context_of(&self, id: QuestionId) -> QuestionContext {
        self.asked.get(&id).map(|known| known.context.clone()).unwrap_or_default()
    }

    /// How a question ended.
    pub(super) fn end_of(&self, id: QuestionId) -> Option<&str> {
        self.ended.get(&id).map(String::as_str)
    }

    /// Whether one was not printed.
    fn has_new(&self) -> bool {
        self.asked.values().any(|known| !known.printed)
    }
}

/// Prints the questions that are open, once the run is live.
async fn print_when_live(
    run: RunHandle,
    (of_session, here): (bool, AnswersHere),
    open: AskedQuestions,
) {
    if run.wait_until_live().await.is_ok() {
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        for known in open.asked.values_mut() {
            if !mem::replace(&mut known.printed, true) {
                match here {
                    AnswersHere::Elsewhere { is_reached } => {
                        people::print_waiting(&known.asked, &known.context, run.id(), is_reached);
                    }
                    _ => people::print_question(
                        &known.asked,
                        &known.context,
                        of_session.then(|| run.id()),
                    ),
                }
            }
        }
    }
}

/// Answers the questions of a run with lines of standard input. At its end nobody answers any more; the
/// questions of a run that was resumed stay open for others.
async fn answer_with_lines(
    run: RunHandle,
    (of_session, is_resumed): (bool, bool),
    asked: AskedQuestions,
    lines: StdinLines,
) {
    let mut lines = lines.lock().await;
    while let Some(line) = lines.recv().await {
        let known = |id| asked.lock().unwrap_or_else(PoisonError::into_inner).get(id);
        let line = line.trim();
        if !line.is_empty()
            && let Err(why) = people::answer_with_line(line, &run, of_session, known)
        {
            print_message(&visible_within(&why, ERROR_CHARS));
        }
    }
    match is_resumed {
        true => print_message(&format!(
            "standard input has ended: questions stay open until their deadline, `roundtable answer {}` \
             answers them",
            run.id()
        )),
        false => run.nobody_answers(),
    }
}

/// Longest line of standard input, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

fn stdin_lines() -> StdinLines {
    let (line, read) = lines::channel(1);
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut bytes = Vec::new();
        while matches!(stdin.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes), Ok(1..)) {
            // What is left of a line that is too long is no answer.
            if !bytes.ends_with(b"\n") && stdin.skip_until(b'\n').is_err() {
                return;
            }
            let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
            if line.blocking_send(text).is_err() {
                return;
            }
            bytes.clear();
        }
    });
    Arc::new(tokio::sync::Mutex::new(read))
}

async fn resume_on_line(run: RunHandle, at: BoundaryId, lines: StdinLines) {
    let place = visible_within(&at.display_name(), REASON_CHARS);
    print_message(&format!("paused before {place}; Enter resumes"));
    let by = match lines.lock().await.recv().await {
        Some(_) => Initiator::You,
        None => Initiator::Schedule,
    };
    run.send(Command::Resume { by });
}

/// How long to wait until standard error accepts a line.
const STDERR_TIMEOUT: Duration = Duration::from_millis(100);

/// The current runs, which an interrupt cancels.
#[derive(Default)]
pub struct InterruptTarget {
    /// What keeps the runs: an interrupt ends its waits.
    keeper: Option<Arc<dyn RunKeeper>>,
    runs: Mutex<Vec<RunHandle>>,
    /// Set by the interrupt; later runs are cancelled at their start.
    cancelled: AtomicBool,
}

impl InterruptTarget {
    /// From now on the first interrupt cancels the current runs; the second ends the program
    /// immediately with exit code 130. On systems other than Unix call it within a runtime.
    /// `survives`: SIGHUP is no interrupt.
    pub fn of_this_process(keeper: Option<Arc<dyn RunKeeper>>, survives: bool) -> Arc<Self> {
        let target = Arc::new(Self { keeper, ..Self::default() });
        let it = Arc::clone(&target);
        if let Err(error) = on_signals(move || it.stop(), Exit::Cancelled.code(), survives) {
            tracing::warn!("signals end the program immediately: {error}");
        }
        target
    }

    /// Adds a run. Whichever of this and [`cancel`](Self::cancel) comes second sees the other's
    /// effect.
    pub fn watch(&self, run: &RunHandle) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run.clone());
        if self.is_cancelled() {
            run.send(Command::Cancel);
        }
    }

    /// Removes a run that has ended.
    pub fn unwatch(&self, run: &RunHandle) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|other| other.id() != run.id());
    }

    /// Whether an interrupt has come.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Handles the first interrupt.
    fn stop(&self) {
        // On another thread: standard error may stall, and this thread must handle the next signal.
        let (sent, said) = mpsc::channel();
        let tell = move || {
            print_message("cancelling; interrupt again to end immediately");
            let _ = sent.send(());
        };
        match thread::Builder::new().spawn(tell) {
            Ok(_) => drop(said.recv_timeout(STDERR_TIMEOUT)),
            Err(error) => tracing::debug!("cannot report the cancellation: {error}"),
        }
        self.cancel();
    }

    /// Cancels the current runs, and those that start later.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        if let Some(keeper) = &self.keeper {
            keeper.end_waits();
        }
        for run in &*self.runs.lock().unwrap_or_else(PoisonError::into_inner) {
            run.send(Command::Cancel);
        }
    }
}

/// Calls `first` at the first signal; at the second, ends the program immediately with this exit
/// code. Must be called within a runtime on systems other than Unix.
///
/// # Errors
/// The system's error; then the signals keep their default effect.
pub fn on_stop(first: impl FnOnce() + Send + 'static, code: u8) -> io::Result<()> {
    on_signals(first, code, false)
}

/// As [`on_stop`]; `survives`: SIGHUP is ignored.
#[cfg(unix)]
fn on_signals(first: impl FnOnce() + Send + 'static, code: u8, survives: bool) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut first = Some(first);
    crate::terminal::signals::handle_each(&[SIGINT, SIGTERM, SIGHUP], move |signal| {
        if signal == SIGHUP && survives {
            return;
        }
        match first.take() {
            Some(first) => first(),
            None => screen_guard::exit_now(code),
        }
    })
}

/// Why no background process can play a run; `is_printed`: the command line asks for its output.
pub fn not_detached(people: Option<PeopleArg>, is_printed: bool) -> Option<Refused> {
    let why = match people {
        Some(PeopleArg::Ask) => "nobody can answer on standard input",
        _ if is_printed => "the output of the run is not printed, and its exit code is not known",
        _ => return None,
    };
    Some(Refused::new(format!("--detach: {why}")).help("leave out --detach"))
}

/// Starts this command again in the background, and prints the id of its run after the start of the run.
#[cfg(unix)]
pub fn detach() -> Exit {
    let refused = |why: io::Error| {
        refuse(&Refused::new("the run was not detached").because(why), Exit::Stopped)
    };
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(why) => return refused(why),
    };
    let args = env::args_os().skip(1).map(|arg| match arg == "--detach" {
        true => "--detached".into(),
        false => arg,
    });
    // It reports errors before the start of the run on standard error.
    let started = process::Command::new(program)
        .args(args)
        .stdin(process::Stdio::null())
        .stdout(process::Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(why) => return refused(why),
    };
    let mut id = String::new();
    if let Some(out) = child.stdout.take()
        && let Err(why) = io::BufReader::new(out).read_line(&mut id)
    {
        return refused(why);
    }
    if !id.is_empty() {
        return print(&id, Exit::Ok);
    }
    match child.wait() {
        Ok(status) => Exit::Other(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1)),
        Err(why) => refused(why),
    }
}

#[cfg(not(unix))]
pub fn detach() -> Exit {
    refuse(&Refused::new("--detach needs Unix, or --on and a cluster"), Exit::Usage)
}

/// Leaves the terminal: its end does not end this process.
fn leave_terminal() {
    #[cfg(unix)]
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!("the process keeps its terminal: {error}");
    }
}

/// Timeout for the head of a detached run to be stored, before its id is printed.
const HEAD_STORED: Duration = Duration::from_secs(15);

/// Prints the id of a run, then closes the output: the terminal may be closed.
async fn leave_output(run: &RunHandle) {
    let _ = timeout(HEAD_STORED, run.bus().wait_until_stored()).await;
    let _ = print(&format!("{}\n", run.id()), Exit::Ok);
    #[cfg(unix)]
    if let Ok(nothing) = fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
}

#[cfg(not(unix))]
fn on_signals(first: impl FnOnce() + Send + 'static, code: u8, _: bool) -> io::Result<()> {
    tokio::spawn(async move {
        let mut first = Some(first);
        // If Ctrl-C cannot be handled, it ends the program by default.
        while tokio::signal::ctrl_c().await.is_ok() {
            match first.take() {
                Some(first) => first(),
                None => screen_guard::exit_now(code),
            }
        }
    });
    Ok(())
}
