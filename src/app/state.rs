//! What the dashboard knows and shows: screens, overlays, the runs of the session.

use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Rect;

use super::effect::RequestId;
pub use super::entry::{Broken, Entry, LiveOffer};
use super::flags::Asked;
use super::home::Home;
use super::keymap::Context;
use super::layout::{Parts, too_small};
use super::notice::{NoticeKind, Notices};
use super::overlay::Overlay;
use super::run::RunPage;
use crate::event::world::Stage;
use crate::event::{Elapsed, RunId};

const SECOND: Duration = Duration::from_secs(1);
/// How long the first Ctrl-C waits for the second.
pub(super) const TWICE: Duration = Duration::from_secs(3);

/// The whole state of the dashboard.
#[derive(Debug)]
pub struct State {
    /// Time since the start of the program, as the last message said.
    pub now: Duration,
    /// The terminal.
    pub size: Size,
    /// What fills the screen.
    pub screen: Screen,
    /// What lies over it, the top one last.
    pub overlays: Vec<Overlay>,
    /// The first screen.
    pub home: Home,
    /// The runs of this session in the order they were started.
    pub runs: Vec<RunPage>,
    /// What was dropped of finished runs to bound memory: runs and their facts.
    pub forgotten: Vec<(RunId, u64)>,
    /// The scenarios that there are.
    pub scenarios: Vec<Entry>,
    /// How it is shown.
    pub settings: Settings,
    /// News for the status row.
    pub notices: Notices,
    /// Runs that were asked for and have not started yet.
    pub starting: Vec<Starting>,
    /// The model that the command line names: what the model field of the launch form begins with.
    pub model: Option<Arc<str>>,
    /// Flags that were asked for and have not landed yet, and what can be taken back.
    pub asked: Asked,
    pub(super) requests: u64,
    pub(super) interrupted: Option<Duration>,
    pub(super) clicked: Option<(Duration, u16, u16)>,
    pub(super) suspended: Vec<RunId>,
}

/// The terminal's size in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

impl Size {
    /// The whole screen.
    pub fn area(self) -> Rect {
        Rect::new(0, 0, self.cols, self.rows)
    }
    /// What header, status and keys leave of it.
    pub fn body(self) -> Rect {
        Parts::of(self.area()).body
    }
}

/// What fills the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Screen {
    /// Scenarios and runs.
    Home,
    /// One run.
    Run(RunId),
}

/// A run that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starting {
    /// Which request.
    pub request: RequestId,
    /// The scenario's title.
    pub title: String,
    /// Whether its screen opens when it has started: nobody has gone elsewhere since.
    pub open: bool,
}

/// How the dashboard is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Glyphs are plain ASCII.
    pub ascii: bool,
    /// Things may move that carry no news, such as a spinner.
    pub animation: bool,
    /// The theme's name.
    pub theme: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { ascii: false, animation: true, theme: "dark".to_owned() }
    }
}

impl State {
    /// A dashboard that shows its first screen.
    pub fn new(size: Size, settings: Settings, scenarios: Vec<Entry>) -> Self {
        let home = Home::new(&scenarios);
        Self {
            now: Duration::ZERO,
            size,
            screen: Screen::Home,
            overlays: Vec::new(),
            home,
            runs: Vec::new(),
            forgotten: Vec::new(),
            scenarios,
            settings,
            notices: Notices::default(),
            starting: Vec::new(),
            model: None,
            asked: Asked::default(),
            requests: 0,
            interrupted: None,
            clicked: None,
            suspended: Vec::new(),
        }
    }

    /// The page of a run.
    pub fn run(&self, id: &RunId) -> Option<&RunPage> {
        self.runs.iter().find(|page| page.id() == id)
    }

    /// The page of a run, to change.
    pub fn run_mut(&mut self, id: &RunId) -> Option<&mut RunPage> {
        self.runs.iter_mut().find(|page| page.id() == id)
    }

    /// Tells the runs of one scenario of each other, where a guarded one and a naive one are to be
    /// seen side by side. Whether the run on the screen was told something.
    pub(super) fn compare(&mut self, run: &RunId) -> bool {
        let Some(page) = self.run(run) else { return false };
        let Some(this) = page.as_beside() else { return false };
        let scenario = |page: &RunPage| page.world().head.as_ref().map(|it| it.scenario.clone());
        let wanted = scenario(page);
        let mut latest = None;
        for page in self.runs.iter_mut().filter(|page| scenario(page) == wanted) {
            match page.as_beside() {
                Some(other) if other.guarded != this.guarded => {
                    page.set_beside(Some(this.clone()));
                    latest = Some(other);
                }
                _ => {}
            }
        }
        let told = latest.is_some();
        if let Some(page) = self.run_mut(run).filter(|_| told) {
            page.set_beside(latest);
        }
        told && self.watched().is_some()
    }

    /// The run on the screen: the one whose live text is wanted.
    pub fn watched(&self) -> Option<&RunPage> {
        match &self.screen {
            Screen::Home => None,
            Screen::Run(id) => self.run(id),
        }
    }

    /// The run that a command is meant for: the one on the screen, else the one selected.
    pub fn subject(&self) -> Option<&RunPage> {
        match &self.screen {
            Screen::Run(id) => self.run(id),
            Screen::Home => self.home.selected_run(&self.runs),
        }
    }

    /// The runs that are live.
    pub fn live_runs(&self) -> impl Iterator<Item = &RunPage> {
        self.runs.iter().filter(|page| page.world().is_live())
    }

    /// What is focused, as the binding table knows it.
    pub fn context(&self) -> Context {
        match self.overlays.last() {
            Some(overlay) => overlay.context(),
            None => self.screen_context(),
        }
    }

    /// What is focused when nothing lies over the screen.
    pub fn screen_context(&self) -> Context {
        match self.watched() {
            Some(page) => page.context(),
            None => Context::Home,
        }
    }

    /// The time of a run now, pauses included.
    pub fn elapsed(&self, page: &RunPage) -> Elapsed {
        Elapsed::of(self.now.saturating_sub(page.zero()))
    }

    pub(super) fn say(&mut self, kind: NoticeKind, text: impl Into<String>) {
        self.notices.say(self.now, kind, text.into());
    }

    pub(super) fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    /// How long until the next [`Msg::Tick`](super::Msg::Tick) is needed; `None` while nothing
    /// moves by itself. On the first screen only clocks move, once a second; a run's own screen
    /// says for itself.
    pub fn next_tick(&self) -> Option<Duration> {
        let runs = match self.watched() {
            _ if too_small(self.size.area()) => None,
            Some(page) => page.next_tick(self.now, self.settings.animation),
            None => self.runs.iter().filter_map(|page| self.next_second(page)).min(),
        };
        let interrupted = self.interrupted.map(|at| (at + TWICE).saturating_sub(self.now));
        [runs, self.notices.next_expiry(self.now), interrupted].into_iter().flatten().min()
    }

    /// How long until the clock of a run shows another second; `None` while it stands.
    fn next_second(&self, page: &RunPage) -> Option<Duration> {
        let world = page.world();
        match world.stage {
            Stage::Running | Stage::Pausing { .. } => {
                let clock = world.active(self.elapsed(page));
                let into = Duration::from_nanos(clock.subsec_nanos().into());
                Some(SECOND.saturating_sub(into).max(Duration::from_millis(1)))
            }
            Stage::Empty | Stage::Paused { .. } | Stage::Closed => None,
        }
    }
}
