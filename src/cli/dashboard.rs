//! Opens the dashboard: takes over the terminal, runs the loop, prints a summary at the end.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ratatui::layout::Size;
use tokio::sync::mpsc;

use super::args::Global;
use super::exit::{Done, Exit};
use super::launch::{OnStoreFailure, StoreOfCommand};
use super::people::PeopleArg;
use super::plain;
use super::plain::words::word_of;
use super::run::RunArgs;
use super::steer::RunLink;
use super::streams::{StreamStyle, exit_after_write, print_message, refuse};
use super::test::TestFormat;
use super::test::trace::ExpectedRuns;
use super::watch::{ProgramOutput, WatchArgs, Watching, exit_of, interrupt_with, observed_launch};
use super::{build_runtime, builder, launch};
use crate::base::refused::Refused;
use crate::base::visible::{visible, visible_output};
use crate::base::{read_file, time};
use crate::engine::EngineSettings;
use crate::host::day_account::user_engine;
use crate::host::first_start::is_first_start;
use crate::host::models::LiveModels;
use crate::host::traced_runs::traced;
use crate::host::trust::Trust;
use crate::host::{Dirs, models, traced_runs};
use crate::log::bus::LogLimits;
use crate::log::event::{RunId, StopClass, World};
use crate::run::questions::PeopleMode;
use crate::scenario::catalogue::RequestedModel;
use crate::screen::effect::{LaunchRequest, RequestId, RunBeginning};
use crate::screen::keymap::use_words;
use crate::screen::run::RunPage;
use crate::screen::state::DisplaySettings;
use crate::screen::theme::Theme;
use crate::screen::{AppState, Msg, tour};
use crate::terminal::console::{Console, Tty};
use crate::terminal::effects::remote::ShownCluster;
use crate::terminal::effects::{EffectResult, LaunchExtras, Services};
use crate::terminal::event_loop::{DashboardConfig, DashboardExit, TerminalSettings};
use crate::terminal::signals::{EndRequest, ProcessSignal, Watchdog};
use crate::terminal::themes::ThemeChoice;
use crate::terminal::{TerminalFeatures, event_loop, screen_guard, signals};
use crate::watch::child::ProgramSignals;
use crate::watch::hub::StartRun;
use crate::words::format;
use crate::words::patterns::words_of;
use crate::words::styled::StyledLine;
use crate::words::verdict::stop_line;

/// Id of the run that the command line starts; no request of the dashboard has this number.
const FROM_COMMAND_LINE: RequestId = RequestId(u64::MAX);

/// Bytes of events that all active runs together may keep after reading, and how far each run may
/// be ahead of the screen. A page's own data about an event takes about as much again.
const LOG: LogLimits = LogLimits { window: 96 << 20, ahead: 24 << 20 };

/// Bytes of the logs of ended runs that stay in memory although they are in the store: the last runs of a
/// session open at once, older ones are read.
const STORED_BYTES: u64 = 1 << 20;

/// What to do where there can be no dashboard.
const HEADLESS: &str = "use lines of text (roundtable --plain), or run a scenario headless: roundtable run checkout-launch --headless";

/// What the dashboard does when it opens.
#[derive(Default)]
pub struct DashboardArgs<'a> {
    /// A run to start immediately.
    pub run: Option<&'a RunArgs>,
    pub opened: Option<super::kept::OpenedRun>,
    /// A run to watch, of another process or of a cluster.
    pub attached: Option<&'a super::steer::AttachArgs>,
    /// Whether the tour begins at once.
    pub tour: bool,
    /// A program to start and watch.
    pub watched: Option<&'a super::watch::WatchArgs>,
    /// A failure that a test provokes.
    #[cfg(debug_assertions)]
    pub panic: Option<super::args::PanicPlace>,
}

impl<'a> DashboardArgs<'a> {
    /// It opens with a run that starts at once.
    pub fn of_run(run: &'a RunArgs) -> Self {
        Self { run: Some(run), ..Self::default() }
    }
}

/// Opens the dashboard and returns when the operator leaves it.
pub fn open(wanted: DashboardArgs<'_>, global: &Global, theme: ThemeChoice) -> Done {
    let is_plain = global.is_plain();
    can_open(&wanted, is_plain)?;
    if is_plain {
        use_words(word_of);
    }
    let request = match wanted.run.map(request) {
        Some(None) => return Err(Exit::Usage),
        request => request.flatten(),
    };
    let expected = wanted.watched.map_or(Ok(None), WatchArgs::expected)?;
    let proxy = wanted.run.and_then(|args| args.proxy.as_deref());
    let via = models::parse_proxy(proxy).map_err(|why| refuse(&why, Exit::Usage))?;
    let models = LiveModels::new(via);
    let runtime = build_runtime(builder().on_thread_start(lower_priority))?;
    let abilities = TerminalFeatures::detect();
    if abilities.is_dumb && !is_plain {
        let why = Refused::new("this terminal (TERM=dumb) cannot show a dashboard");
        return Err(refuse(&why.help(HEADLESS), Exit::Usage));
    }
    // A locale without Unicode cannot show the glyphs.
    let ascii = global.is_ascii() || abilities.narrow_locale.is_some();
    let animation = global.is_animated();
    let terminal = TerminalSettings {
        depth: abilities.depth,
        title: global.has_title() && abilities.has_title,
        notify: global.configured.notify.unwrap_or_default(),
        is_tmux: abilities.multiplexer == Some("tmux"),
    };
    // The loop has its own runtime, so that the screen stays responsive when the threads of the
    // other one are blocked.
    let own = build_runtime(tokio::runtime::Builder::new_current_thread().enable_time())?;
    let named = wanted.run.filter(|args| args.text.is_none()).map(|args| args.scenario.clone());
    // A pipe can be read only once.
    let named = named.filter(|what| !read_file::is_pipe(Path::new(what)));
    // What is wrong is said before the dashboard opens.
    let attached = wanted.attached.map(|args| runtime.block_on(RunLink::find(args, None)));
    let attached = attached.transpose()?;
    let attached_run = attached.as_ref().map(|(_, run)| run.clone());
    let cluster = match &attached {
        Some((RunLink::Cluster(cluster), run)) => {
            Some(ShownCluster::Attached(cluster.clone(), run.clone(), FROM_COMMAND_LINE))
        }
        _ => super::cluster::configured_cluster().map(ShownCluster::Configured),
    };
    let stored = StoreOfCommand::open(global, OnStoreFailure::Pause);
    let (mut services, answers) = services_of(&stored, models, named, &runtime);
    services.kept = stored.kept();
    let engine = Arc::clone(&services.engine);
    #[cfg(unix)]
    let _server = {
        let _runs_go_on_in = runtime.enter();
        // Before the other processes are found: this run is opened, and not only listed.
        if let Some((RunLink::Process(peer, run), _)) = attached {
            services.attach_peer(peer, run, FROM_COMMAND_LINE);
        }
        let served = launch::serve_peers(&services.engine).ok();
        served.map(|(server, found)| {
            services.follow_peers(found);
            server
        })
    };
    let notices = services.clone();
    stored.tell_waits(move |text| {
        notices.answer(EffectResult::Msg(Msg::Notice(format!("{text}."))));
    });
    let opened = wanted.opened;
    // What is wrong is said before the dashboard opens.
    let watching =
        wanted.watched.map(|args| watch_program(args, expected.clone(), &services, &runtime));
    let watching = watching.transpose().map_err(|(why, exit)| refuse(&why, exit))?;
    let watched = watching.as_ref().map(|(watching, _)| watching.signals());
    let ended = own.block_on(async {
        let watchdog = Watchdog::start(move |code| {
            // Nobody waits for the watched program any more.
            watched.inspect(|signals| signals.kill());
            screen_guard::end_now(code)
        })?;
        // Before the terminal is switched: without a handler a signal would leave it unrestored.
        listen(&services, watchdog.clone())?;
        let mut console = match is_plain {
            true => None,
            false => Some(Tty::take(watchdog.clone(), terminal.title, global.configured.escape)?),
        };
        let theme = match theme {
            ThemeChoice::Auto if abilities.tells_background => {
                let mut asked = console.as_mut();
                Theme::on_background(asked.as_mut().and_then(|it| it.ask_background()).as_deref())
            }
            choice => choice.theme(),
        };
        let settings = DisplaySettings { ascii, animation, theme: theme.name().to_owned() };
        let size = console.as_ref().map_or(plain::SCREEN, |console| {
            let Size { width: cols, height: rows } = console.size();
            crate::screen::layout::Size { cols, rows }
        });
        let mut state = AppState::new(size, settings, Vec::new());
        if let Some(run) = &attached_run {
            state.expect_opening(FROM_COMMAND_LINE, run);
        }
        state.keeps_runs = stored.keeper().is_some();
        if is_first_start() {
            state.welcome(state.keeps_runs);
        }
        state.model = wanted.run.and_then(|args| args.model.as_deref()).map(Arc::from);
        let tour = wanted.tour.then(|| tour::begin(&mut state)).flatten();
        for problem in &stored.problems {
            services.answer(EffectResult::Msg(Msg::Notice(problem.clone())));
        }
        if let Some((request, extra)) = request {
            if wanted.run.is_some_and(|args| args.trust) {
                services.allow_all(&request);
            }
            if is_plain {
                // The first word is about this run.
                state.expect_opening(FROM_COMMAND_LINE, &RunId::new(&*request.scenario.title));
            }
            services.add(request.id, extra);
            services.start(request);
        }
        if let Some(request) = tour {
            services.start(request);
        }
        if let Some(opened) = opened {
            opened.show(&mut services, FROM_COMMAND_LINE);
        }
        if let Some(cluster) = cluster {
            crate::terminal::effects::remote::show(&services, cluster);
        }
        #[cfg(debug_assertions)]
        provoke_failure(wanted.panic, &services);
        match console {
            Some(console) => {
                let opening = DashboardConfig { state, theme, terminal };
                event_loop::run(console, opening, services, answers).await
            }
            None => plain::run(state, services, answers, watchdog).await,
        }
    });
    let program = watching.map(|(watching, output)| (runtime.block_on(watching.end()), output));
    let judged = expected
        .zip(program.as_ref())
        .map(|(expected, ((_, report), _))| runtime.block_on(expected.end(report)));
    if ended.as_ref().is_ok_and(|ended| ended.code != 0) {
        // A signal ends the program: other processes are not waited for.
        stored.end_waits();
    }
    // The runs have ended; a disk that hangs must not hold the operator. The timer needs the runtime.
    let notes = own.block_on(async {
        match engine.leaves_runs() {
            true => Ok(Vec::new()),
            false => tokio::time::timeout(STORE_GRACE, stored.finish()).await,
        }
    });
    stored.end_waits();
    let unsent = own.block_on(traced_runs::finish());
    // Tasks that still wait for a disk or a pager are abandoned.
    own.shutdown_background();
    runtime.shutdown_background();
    Ok(match ended {
        Ok(DashboardExit { code, state, theme }) => {
            let paint = StreamStyle::of_stdout(theme, ascii);
            // Plain mode has printed how its runs ended.
            if !is_plain {
                print_summary(&state, &paint);
            }
            let mut first = stored.warnings();
            if !state.runs.is_empty() {
                // It was shown when the dashboard opened.
                let is_open = stored.keeper().is_some();
                first.extend(stored.problems.into_iter().filter(|_| !is_open));
                first.extend(stored.place);
            }
            let late = || {
                vec!["the store did not answer in time: the end of a run may be missing".to_owned()]
            };
            for note in first.into_iter().chain(notes.unwrap_or_else(|_| late())).chain(unsent) {
                print_message(&visible(&note));
            }
            let Some(((program_code, report), output)) = program else {
                return Ok(Exit::Other(code));
            };
            output.print();
            for note in super::watch::report_notes(&report) {
                print_message(&note);
            }
            let holds = judged.is_none_or(|it| it.print(paint, TestFormat::Text, false));
            exit_of(program_code, holds)
        }
        Err(error) if is_plain => exit_after_write(Err(error), Exit::Ok),
        Err(error) => {
            // As after SIGHUP, which may come later than the end of the input.
            refuse(&Refused::new("the terminal was closed").because(error), Exit::Other(129))
        }
    })
}

/// Whether there is a screen for what is wanted.
fn can_open(wanted: &DashboardArgs<'_>, is_plain: bool) -> Result<(), Exit> {
    if is_plain && wanted.tour {
        let why = Refused::new("the tour explains keys, and plain mode has words in place of keys");
        let why = why.help("start `roundtable --plain` and type help");
        return Err(refuse(&why, Exit::Usage));
    }
    if !is_plain && !screen_guard::is_interactive() {
        let what = if wanted.tour { "the tour" } else { "the dashboard" };
        let why = Refused::new(format!("{what} needs a terminal"));
        return Err(refuse(&why.help(HEADLESS), Exit::Usage));
    }
    Ok(())
}

/// The engine and what the effects of the screen need besides. `named`: the scenario of the command line.
fn services_of(
    stored: &StoreOfCommand,
    models: LiveModels,
    named: Option<String>,
    runtime: &tokio::runtime::Runtime,
) -> (Services, mpsc::UnboundedReceiver<EffectResult>) {
    let _runs_go_on_in = runtime.enter();
    let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
    let folder = std::env::current_dir().unwrap_or_default();
    let keeper = stored.keeper();
    let usual = EngineSettings::default();
    let stored_bytes = if keeper.is_some() { STORED_BYTES } else { usual.stored_bytes };
    let settings = EngineSettings { log: LOG, stored_bytes, ..usual };
    Services::new(user_engine(settings, traced(keeper)), models, trust, named, folder)
}

/// Starts a program and shows its runs: the first one at once, later ones where a run that has ended is on the
/// screen.
fn watch_program(
    args: &WatchArgs,
    expected: Option<Arc<ExpectedRuns>>,
    services: &Services,
    runtime: &tokio::runtime::Runtime,
) -> Result<(Watching, ProgramOutput), (Refused, Exit)> {
    let output = ProgramOutput::default();
    let signals: Arc<OnceLock<ProgramSignals>> = Arc::default();
    let (started, to, known) = (AtomicBool::new(false), services.clone(), Arc::clone(&signals));
    let start: StartRun = Box::new(move |scenario| {
        let run = to.engine.start(observed_launch(scenario, PeopleMode::Wait));
        expected.iter().for_each(|expected| expected.follow(&run, &to.runtime));
        let facts = Box::new(run.first_reader());
        let request = match started.swap(true, Ordering::Relaxed) {
            false => FROM_COMMAND_LINE,
            true => RequestId::UNASKED,
        };
        to.answer(EffectResult::Started { request, run: run.clone(), facts, launch: None });
        to.runtime.spawn(interrupt_with(run.clone(), Arc::clone(&known)));
        Some(run)
    });
    let sinks = [output.sink(), output.sink()];
    let watching = runtime.block_on(Watching::begin(args, true, start, sinks))?;
    let _ = signals.set(watching.signals());
    let _ = services.program_input.set(watching.input.clone());
    Ok((watching, output))
}

/// The run that the command line starts. `None`: the error has already been printed.
fn request(args: &RunArgs) -> Option<(LaunchRequest, LaunchExtras)> {
    let scenario = launch::read_scenario(args)?;
    if args.live {
        // Checked before anything starts; the dashboard asks whether the scenario is trusted.
        models::endpoints_of(&scenario, args.model.as_deref())
            .map_err(|why| refuse(&why, Exit::Usage))
            .ok()?;
    }
    let model = match args.live {
        true => RequestedModel::Live(args.model.as_deref().map(Arc::from)),
        false => RequestedModel::Scripted { instant: args.instant },
    };
    let (flags, schedule) = launch::schedule(args);
    let rests = args.pause_at.iter().filter_map(|pause| Some((pause.at.clone(), pause.length?)));
    let people = args.people.map(|who| PeopleArg::mode(Some(who), args.live));
    let extra = LaunchExtras { schedule, timed_pauses: rests.collect(), people };
    let scenario = Arc::clone(&scenario);
    let (id, seed) = (FROM_COMMAND_LINE, args.seed);
    let request = LaunchRequest { id, scenario, model, flags, seed, begins: RunBeginning::New };
    Some((request, extra))
}

fn listen(services: &Services, watchdog: Watchdog) -> io::Result<()> {
    let services = services.clone();
    signals::listen(move |signal| {
        let tell = || services.answer(EffectResult::Signal(signal));
        match signal {
            // It may be meant for the pager: a single one does not end a responsive dashboard.
            ProcessSignal::End(signals::INTERRUPTED) => {
                watchdog.request_end(EndRequest::Interrupt, tell)
            }
            ProcessSignal::End(code) => watchdog.request_end(EndRequest::End(code), tell),
            ProcessSignal::Suspend | ProcessSignal::Resumed | ProcessSignal::Resized => tell(),
        }
    })
}

#[cfg(debug_assertions)]
fn provoke_failure(place: Option<super::args::PanicPlace>, services: &Services) {
    use super::args::PanicPlace;
    match place {
        None => {}
        Some(PanicPlace::Loop) => services.answer(EffectResult::Panic),
        #[allow(clippy::panic, reason = "tests check the state it leaves behind")]
        Some(PanicPlace::Task) => {
            services.runtime.spawn(async { panic!("a panic of the tests, in a task") });
        }
        Some(PanicPlace::Abort) => {
            services.runtime.spawn(async { std::process::abort() });
        }
        Some(PanicPlace::Stuck) => services.answer(EffectResult::Stuck),
        Some(PanicPlace::Workers) => block_workers(&services.runtime),
        // Handled in `cli::dispatch`: it has no dashboard.
        Some(PanicPlace::Headless) => {}
    }
}

/// How long the end of the program waits for the store.
const STORE_GRACE: Duration = Duration::from_secs(2);

/// How much nicer the threads of runs are than the loop's thread.
#[cfg(target_os = "linux")]
const NICENESS_STEP: i32 = 5;

/// Lowers the priority of a thread of runs, so that keys are answered quickly under load. Only on
/// Linux: elsewhere niceness applies to a whole process.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS_STEP) {
        tracing::debug!("cannot lower the priority of the threads of runs: {error}");
    }
}

/// Blocks every worker thread of a runtime forever.
#[cfg(debug_assertions)]
pub fn block_workers(runtime: &tokio::runtime::Handle) {
    for _ in 0..runtime.metrics().num_workers() {
        runtime.spawn(async {
            loop {
                std::thread::park();
            }
        });
    }
}

/// Prints one line for each run of the session on the normal screen.
fn print_summary(state: &AppState, paint: &StreamStyle) {
    // A run of another terminal is in the summary of that terminal.
    let is_theirs = |page: &RunPage| page.remote.as_deref().is_some_and(|it| it.pid.is_some());
    let pages = state.runs.iter().filter(|page| !is_theirs(page));
    let line = |page: &RunPage| summary_line(page.world(), state.is_left(page), paint) + "\n";
    let lines: String = pages.map(line).collect();
    let earlier = match state.removed_count() as u64 {
        0 => String::new(),
        left => format!("{} before: roundtable runs\n", format::count_noun(left, "run")),
    };
    let lines = earlier + &lines;
    if !lines.is_empty() {
        // The terminal may be closed or stalled; then there is no summary.
        let _ = screen_guard::write_last(visible_output(&lines, paint.colour()).as_bytes());
    }
}

fn summary_line(world: &World, is_left: bool, paint: &StreamStyle) -> String {
    let Some(head) = &world.head else { return String::new() };
    let sign = paint.sign(paint.theme().run(world));
    let mut line = format!("{sign}  {}  {}", head.run, head.scenario);
    // For a completed or cancelled run the sign's word is enough.
    let said = |class| matches!(class, StopClass::Ok | StopClass::Cancelled);
    if let Some(closed) =
        world.progress.closed.as_ref().filter(|closed| !said(closed.reason.class()))
    {
        line = format!("{line}  {}", visible(&stop_line(world, closed)));
    }
    let totals = words_of(world).map(|words| words.summary(world)).unwrap_or_default();
    line.push_str(&paint.line(&StyledLine { parts: totals, label: None }));
    let time = time::duration_text(world.progress.active(world.progress.at));
    let left = if is_left { format!("  roundtable resume {}", head.run) } else { String::new() };
    format!("{line}  {time}{left}")
}
