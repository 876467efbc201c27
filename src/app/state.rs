//! What the dashboard knows and shows: screens, overlays, the runs of the session.

use std::sync::Arc;
use std::time::Duration;

use super::keymap::Context;
use super::run::RunPage;
use crate::event::RunId;
use crate::scenario::Scenario;
use crate::scenario::name::ScenarioName;

/// The whole state of the dashboard.
#[derive(Debug)]
pub struct State {
    /// Time since the start of the program, as the last message said.
    pub now: Duration,
    /// The terminal.
    pub size: Size,
    /// What fills the screen.
    pub screen: Screen,
    /// The runs of this session in the order they were started.
    pub runs: Vec<RunPage>,
    /// The scenarios that there are.
    pub scenarios: Vec<Entry>,
    /// How it is shown.
    pub settings: Settings,
    /// The last news, for the status row.
    pub notice: Option<Notice>,
}

/// The terminal's size in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// What fills the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Screen {
    /// Scenarios and runs.
    Home,
    /// One run.
    Run(RunId),
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

/// A line of news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// When it came, since the start of the program.
    pub at: Duration,
    /// What kind of news.
    pub kind: NoticeKind,
    /// What.
    pub text: String,
}

/// What kind of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// Good to know.
    Info,
    /// Something failed.
    Error,
}

/// A scenario file that was found.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The stem of its file.
    pub name: ScenarioName,
    /// Its path as a command line says it.
    pub path: String,
    /// Its text; empty where it could not be read.
    pub text: Arc<str>,
    /// The scenario, or what is wrong with it, a line each.
    pub loaded: Result<Arc<Scenario>, Vec<String>>,
    /// Whether it can be run live.
    pub live: LiveOffer,
}

/// Whether a scenario can be run against an endpoint, as the shell found it. No key is ever here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveOffer {
    /// It can.
    Ready {
        /// The endpoint's host.
        host: String,
        /// The model's name.
        model: String,
        /// Where the key comes from, such as `environment` or `.env`.
        key_from: String,
    },
    /// It cannot, and what to set.
    Missing {
        /// For people.
        why: String,
    },
}

impl State {
    /// A dashboard that shows its first screen.
    pub fn new(size: Size, settings: Settings, scenarios: Vec<Entry>) -> Self {
        Self {
            now: Duration::ZERO,
            size,
            screen: Screen::Home,
            runs: Vec::new(),
            scenarios,
            settings,
            notice: None,
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

    /// The run on the screen: the one whose live text is wanted.
    pub fn watched(&self) -> Option<&RunPage> {
        match &self.screen {
            Screen::Home => None,
            Screen::Run(id) => self.run(id),
        }
    }

    /// What is focused, as the binding table knows it.
    pub fn context(&self) -> Context {
        match self.watched() {
            Some(page) => page.context(),
            None => Context::Home,
        }
    }

    /// When the next [`Msg::Tick`](super::Msg::Tick) is needed; `None` while nothing moves by
    /// itself.
    pub fn next_tick(&self) -> Option<Duration> {
        None
    }
}
