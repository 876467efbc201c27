//! The dashboard, from taking the terminal to the lines that it leaves behind.

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

/// The run that the command line asks for: no request of the dashboard has this number.
const FROM_COMMAND_LINE: RequestId = RequestId(u64::MAX);

/// What the runs that go on may hold together of what was read, in bytes, and how far each may be
/// ahead of the screen. What the page makes of a fact takes about as much again.
const LOG: Bounds = Bounds { window: 96 << 20, ahead: 24 << 20 };

/// What the dashboard is opened for.
#[derive(Default)]
pub struct Wanted<'a> {
    /// A run to start at once.
    pub run: Option<&'a RunArgs>,
    /// What the tests want to see break.
    #[cfg(debug_assertions)]
    pub panic: Option<super::args::PanicPlace>,
}

/// Opens the dashboard and returns when it is left.
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
        // A locale without Unicode has no glyphs for us.
        ascii: global.is_ascii() || abilities.narrow_locale.is_some(),
        animation: global.is_animated(),
        theme: theme.name().to_owned(),
    };
    // The loop has a runtime to itself: whatever holds up the threads of the other one, it is drawn and
    // answers.
    let own = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(own) => own,
        Err(error) => {
            say(&format!("cannot start: {error}"));
            return Exit::Stopped;
        }
    };
    let named = wanted.run.map(|args| args.scenario.clone());
    // What came through a pipe comes only once.
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
        // Before the terminal is taken: a signal would leave it as it is.
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
    // What still waits for a disk or a pager is left behind.
    own.shutdown_background();
    runtime.shutdown_background();
    match ended {
        Ok(Ending { code, state }) => {
            summarise(&state, &paint);
            Exit::Other(code)
        }
        Err(error) => {
            say(&format!("the terminal is gone: {error}"));
            Exit::Stopped
        }
    }
}

/// The run of the command line. What is wrong with it has been said when this gives nothing.
fn request(args: &RunArgs) -> Option<(LaunchRequest, Extra)> {
    let scenario = run::read(args)?;
    if args.live {
        // Found before anything starts; the dashboard asks whether the scenario is trusted.
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
            // It may be the pager's: one of them ends nothing that answers.
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
        #[allow(clippy::panic, reason = "the tests look at what it leaves behind")]
        Some(PanicPlace::Task) => {
            services.runtime.spawn(async { panic!("a panic of the tests, in a task") });
        }
        Some(PanicPlace::Abort) => {
            services.runtime.spawn(async { std::process::abort() });
        }
        Some(PanicPlace::Stuck) => services.answer(Answer::Stuck),
        Some(PanicPlace::Workers) => block_workers(&services.runtime),
        // It has no dashboard.
        Some(PanicPlace::Headless) => {}
    }
}

/// How much the niceness of the threads of runs is raised above that of the loop.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// The threads of runs give way to the loop: a key is answered soon, however busy they are. Elsewhere
/// than on Linux only a whole process can.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICER) {
        tracing::debug!("the threads of runs do not give way to the screen: {error}");
    }
}

/// Takes every thread of a runtime away from it, for good.
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

/// A line for each run of the session, on the normal screen.
fn summarise(state: &State, paint: &Paint) {
    let lines: String = state.runs.iter().map(|page| line(page.world(), paint) + "\n").collect();
    if !lines.is_empty() {
        // A terminal that is gone, or stalls, reads no summary.
        let _ = screen::write_last(lines.as_bytes());
    }
}

fn line(world: &World, paint: &Paint) -> String {
    let Some(head) = &world.head else { return String::new() };
    let sign = paint.sign(paint.theme().run(world));
    let mut line = format!("{sign}  {}  {}", head.run, head.scenario);
    // The sign's word says it all for a run that came to its end, or that a person ended.
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
