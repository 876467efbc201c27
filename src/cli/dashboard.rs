//! Opens the dashboard: takes over the terminal, runs the loop, prints a summary at the end.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ratatui::layout::Size;

use super::args::{Global, RunArgs};
use super::exit::Exit;
use super::paint::Paint;
use super::run::{self, say};
use crate::app::State;
use crate::app::effect::{LaunchRequest, ModelWanted, RequestId};
use crate::app::run::told::rounds_told;
use crate::app::state::{self, Settings};
use crate::bus::Bounds;
use crate::engine::{Engine, EngineSettings};
use crate::event::visible::visible;
use crate::event::{StopClass, World};
use crate::regular;
use crate::shell::consent;
use crate::shell::console::{Console, Tty};
use crate::shell::dirs::Dirs;
use crate::shell::effects::{Answer, Extra, Services};
use crate::shell::models::{self, LiveModels};
use crate::shell::run::{Ending, Opening};
use crate::shell::signals::{self, Told};
use crate::shell::trust::Trust;
use crate::shell::tty::Abilities;
use crate::shell::warden::{Ask, Warden};
use crate::shell::{self, screen};
use crate::ui::format;
use crate::ui::theme::Theme;

/// Id of the run that the command line starts; no request of the dashboard has this number.
const FROM_COMMAND_LINE: RequestId = RequestId(u64::MAX);

/// Bytes of events that all active runs together may keep after reading, and how far each run may
/// be ahead of the screen. A page's own data about an event takes about as much again.
const LOG: Bounds = Bounds { window: 96 << 20, ahead: 24 << 20 };

/// What the dashboard does when it opens.
#[derive(Default)]
pub struct Wanted<'a> {
    /// A run to start immediately.
    pub run: Option<&'a RunArgs>,
    /// A failure that a test provokes.
    #[cfg(debug_assertions)]
    pub panic: Option<super::args::PanicPlace>,
}

/// Opens the dashboard and returns when the operator leaves it.
pub fn open(wanted: &Wanted<'_>, global: &Global, theme: Theme) -> Exit {
    if !screen::is_interactive() {
        say("the dashboard needs a terminal; without one, run a scenario headless:");
        say("  roundtable run checkout-launch --headless");
        return Exit::Usage;
    }
    let request = match wanted.run.map(request) {
        Some(None) => return Exit::Usage,
        request => request.flatten(),
    };
    let proxy = wanted.run.and_then(|args| args.proxy.as_deref());
    let models = match models::via(proxy) {
        Ok(via) => LiveModels::new(via),
        Err(why) => {
            say(&format!("--proxy: {why}"));
            return Exit::Usage;
        }
    };
    let runtime = match super::started(super::builder().on_thread_start(give_way)) {
        Ok(runtime) => runtime,
        Err(exit) => return exit,
    };
    let abilities = Abilities::look();
    if abilities.is_dumb {
        say("this terminal (TERM=dumb) cannot show a dashboard; run a scenario headless:");
        say("  roundtable run checkout-launch --headless");
        return Exit::Usage;
    }
    let paint = Paint::on(&io::stdout(), theme.clone(), global.is_ascii());
    let settings = Settings {
        // A locale without Unicode cannot show the glyphs.
        ascii: global.is_ascii() || abilities.narrow_locale.is_some(),
        animation: global.is_animated(),
        theme: theme.name().to_owned(),
    };
    // The loop has its own runtime, so that the screen stays responsive when the threads of the
    // other one are blocked.
    let own = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(own) => own,
        Err(error) => {
            say(&format!("cannot start: {error}"));
            return Exit::Stopped;
        }
    };
    let named = wanted.run.map(|args| args.scenario.clone());
    // A pipe can be read only once.
    let named = named.filter(|what| !regular::is_pipe(Path::new(what)));
    let (services, answers) = {
        let _runs_go_on_in = runtime.enter();
        let trust = Trust::kept_in(Dirs::find().map(|dirs| dirs.trusted()));
        let folder = std::env::current_dir().unwrap_or_default();
        let engine = Engine::new(EngineSettings { log: LOG, ..EngineSettings::default() });
        Services::new(engine, models, trust, named, folder)
    };
    let ended = own.block_on(async {
        let warden = Warden::start(|code| screen::end_now(code))?;
        // Before the terminal is switched: without a handler a signal would leave it unrestored.
        listen(&services, warden.clone())?;
        let console = Tty::take(warden)?;
        let Size { width: cols, height: rows } = console.size();
        let mut state = State::new(state::Size { cols, rows }, settings, Vec::new());
        state.model = wanted.run.and_then(|args| args.model.as_deref()).map(Arc::from);
        let opening = Opening { state, theme: theme.at(abilities.depth) };
        if let Some((request, extra)) = request {
            if wanted.run.is_some_and(|args| args.trust) {
                services.allow(&consent::digest(&request.scenario), &request.scenario.title);
            }
            services.add(request.id, extra);
            services.start(request);
        }
        #[cfg(debug_assertions)]
        break_something(wanted.panic, &services);
        shell::run::run(console, opening, services, answers).await
    });
    // Tasks that still wait for a disk or a pager are abandoned.
    own.shutdown_background();
    runtime.shutdown_background();
    match ended {
        Ok(Ending { code, state }) => {
            summarise(&state, &paint);
            Exit::Other(code)
        }
        Err(error) => {
            say(&format!("the terminal was closed: {error}"));
            Exit::Stopped
        }
    }
}

/// The run that the command line starts. `None`: the error has already been printed.
fn request(args: &RunArgs) -> Option<(LaunchRequest, Extra)> {
    let scenario = run::read(args)?;
    if args.live {
        // Checked before anything starts; the dashboard asks whether the scenario is trusted.
        models::endpoints_of(&scenario, args.model.as_deref())
            .map_err(|why| say(&visible(&why)))
            .ok()?;
    }
    let model = match args.live {
        true => ModelWanted::Live(args.model.as_deref().map(Arc::from)),
        false => ModelWanted::Scripted { instant: args.instant },
    };
    let (flags, schedule) = run::schedule(args);
    let rests = args.pause_at.iter().filter_map(|pause| Some((pause.at.clone(), pause.rest?)));
    let extra = Extra { schedule, rests: rests.collect() };
    let scenario = Arc::clone(&scenario);
    let (id, seed) = (FROM_COMMAND_LINE, args.seed);
    let request = LaunchRequest { id, scenario, model, flags, seed, follows: None };
    Some((request, extra))
}

fn listen(services: &Services, warden: Warden) -> io::Result<()> {
    let services = services.clone();
    signals::listen(move |told| {
        let tell = || services.answer(Answer::Told(told));
        match told {
            // It may be meant for the pager: a single one does not end a responsive dashboard.
            Told::End(signals::INTERRUPTED) => warden.asked(Ask::Interrupt, tell),
            Told::End(code) => warden.asked(Ask::End(code), tell),
            Told::Stop | Told::Back | Told::Resized => tell(),
        }
    })
}

#[cfg(debug_assertions)]
fn break_something(place: Option<super::args::PanicPlace>, services: &Services) {
    use super::args::PanicPlace;
    match place {
        None => {}
        Some(PanicPlace::Loop) => services.answer(Answer::Panic),
        #[allow(clippy::panic, reason = "tests check the state it leaves behind")]
        Some(PanicPlace::Task) => {
            services.runtime.spawn(async { panic!("a panic of the tests, in a task") });
        }
        Some(PanicPlace::Abort) => {
            services.runtime.spawn(async { std::process::abort() });
        }
        Some(PanicPlace::Stuck) => services.answer(Answer::Stuck),
        Some(PanicPlace::Workers) => block_workers(&services.runtime),
        // Handled in `cli::dispatch`: it has no dashboard.
        Some(PanicPlace::Headless) => {}
    }
}

/// How much nicer the threads of runs are than the loop's thread.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// Lowers the priority of a thread of runs, so that keys are answered quickly under load. Only on
/// Linux: elsewhere niceness applies to a whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICER) {
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
fn summarise(state: &State, paint: &Paint) {
    let lines: String = state.runs.iter().map(|page| line(page.world(), paint) + "\n").collect();
    if !lines.is_empty() {
        // The terminal may be closed or stalled; then there is no summary.
        let _ = screen::write_last(lines.as_bytes());
    }
}

fn line(world: &World, paint: &Paint) -> String {
    let Some(head) = &world.head else { return String::new() };
    let sign = paint.sign(paint.theme().run(world));
    let mut line = format!("{sign}  {}  {}", head.run, head.scenario);
    // For a completed or cancelled run the sign's word is enough.
    let said = |class| matches!(class, StopClass::Ok | StopClass::Cancelled);
    if let Some(closed) = world.closed.as_ref().filter(|closed| !said(closed.reason.class())) {
        line = format!("{line}  {}", closed.reason);
    }
    if let Some((table, _)) = world.collaboration() {
        let rounds = match world.is_live() {
            true => format::things(table.rounds.len() as u64, "round"),
            false => rounds_told(table),
        };
        line = format!("{line}  {rounds}");
        if let Some(decision) = table.decision() {
            line = format!("{line}  {}", paint.sign(paint.theme().decision(decision)));
        }
    }
    let time = format::took(world.active(world.at));
    format!("{line}  {time}")
}
