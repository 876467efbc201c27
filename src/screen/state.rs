//! The state of the dashboard: screens, overlays, runs, settings.

use std::sync::Arc;
use std::time::Duration;

use super::comparison::RunsToCompare;
use super::effect::RequestId;
use super::home::Home;
use super::home::history::{History, ListedRun, RunList};
use super::keymap::Context;
use super::layout::{Size, too_small};
use super::notice::{NoticeKind, Notices};
use super::questions::{InboxState, next_minute};
use super::run::RunPage;
use super::run::views::tools::retries::comparison_of;
use super::strip::FirstScreen;
use super::tour::Tour;
use super::windows::Overlay;
use super::windows::flags::PendingFlags;
use crate::log::event::{Elapsed, ModelLabel, RunId};
use crate::log::world::run_row::RunStatus;
use crate::log::world::{RunState, World};
use crate::scenario::catalogue::{ScenarioEntry, sort_in_groups};

const SECOND: Duration = Duration::from_secs(1);
/// Time that a second Ctrl-C has to follow the first within, to quit.
pub(super) const INTERRUPT_WINDOW: Duration = Duration::from_secs(3);

/// The whole state of the dashboard.
#[derive(Debug)]
pub struct AppState {
    /// Time since the start of the program, as of the last message.
    pub now: Duration,
    /// Size of the terminal.
    pub terminal: Size,
    /// The size in which pages and windows are drawn: that of the terminal without the rows of the strip.
    pub size: Size,
    /// The screen that is shown.
    pub screen: ActiveScreen,
    /// Windows over the screen, the topmost last.
    pub overlays: Vec<Overlay>,
    /// State of the first screen.
    pub home: Home,
    /// The runs since the program started, in the order of their start.
    pub runs: Vec<RunPage>,
    /// Kept runs that were opened, the one that was shown last at the end.
    pub opened: Vec<RunPage>,
    /// The kept runs, and the filter and sort of the list of runs.
    pub history: History,
    /// Finished runs whose logs were dropped to bound memory, with their numbers of events.
    pub dropped_runs: Vec<(RunId, u64)>,
    /// Ended runs whose pages are to be removed from memory: the store has their logs. A page stays while it
    /// is shown, and until the list has the row of its run.
    pub(super) removable: Vec<RunId>,
    /// Totals of the runs whose pages were removed.
    pub(crate) removed: SessionTotals,
    /// The scenarios on the list.
    pub scenarios: Vec<ScenarioEntry>,
    /// Display settings.
    pub settings: DisplaySettings,
    /// Notices for the status row.
    pub notices: Notices,
    /// Runs that were requested and have not started yet.
    pub starting: Vec<PendingStart>,
    /// The run that is marked to be compared, and the comparison that is awaited.
    pub to_compare: RunsToCompare,
    /// The model that the command line names: the first value of the launch form's model field.
    pub model: Option<Arc<str>>,
    /// Flag changes that are pending, and those that can be undone.
    pub pending_flags: PendingFlags,
    /// Marks, drafts and sent answers of questions.
    pub inbox: InboxState,
    /// Whether the operator has asked to read the scenarios again.
    pub(super) is_rescanning: bool,
    /// The tour, while it is on.
    pub tour: Option<Tour>,
    /// Whether the runs of this program are kept.
    pub keeps_runs: bool,
    /// The tour before, also one that was left before its end.
    pub(super) left_tour: Option<Tour>,
    /// The lines for a new user on the first screen, until something was done.
    pub first_screen: Option<FirstScreen>,
    pub(crate) requests: u64,
    pub(super) interrupted_at: Option<Duration>,
    pub(super) last_click: Option<(Duration, u16, u16)>,
    pub(super) paused_for_suspend: Vec<RunId>,
}

/// The screen that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActiveScreen {
    /// Scenarios and runs.
    Home,
    Run(RunId),
}

/// The place that the operator looks at: a screen, or a window over it. Messages belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScreenPlace {
    screen: ActiveScreen,
    overlay: Option<std::mem::Discriminant<Overlay>>,
    is_inspecting: bool,
}

impl ScreenPlace {
    /// The first screen.
    pub(super) const HOME: Self =
        Self { screen: ActiveScreen::Home, overlay: None, is_inspecting: false };
}

/// A run that was requested and has not started yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingStart {
    /// What happens to it: "starting", or "opening" a run that is played elsewhere.
    pub doing: &'static str,
    /// The request that its answer will name.
    pub request: RequestId,
    pub title: String,
    /// Whether its screen opens when it starts; false once the operator has done something else.
    pub open: bool,
}

/// Totals of runs of this session.
#[derive(Clone, Debug, Default)]
pub struct SessionTotals {
    pub runs: usize,
    pub calls: u64,
    /// Tokens of requests and replies.
    pub tokens: u64,
    /// Number of replies with estimated tokens.
    pub estimated: u64,
    live_cost_usd: f64,
    has_unknown_cost: bool,
}

impl SessionTotals {
    fn add(&mut self, world: &World) {
        let (tally, usage) = (&world.tally, world.tally.usage);
        self.runs += 1;
        self.calls += tally.calls;
        let tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        self.tokens = self.tokens.saturating_add(tokens);
        self.estimated += tally.estimated;
        let model = world.head.as_ref().map(|head| &head.model);
        if matches!(model, Some(ModelLabel::Live { .. })) {
            match world.cost_usd() {
                Some(cost) => self.live_cost_usd += cost,
                None => self.has_unknown_cost = true,
            }
        }
    }

    /// Estimated cost of the live runs in US dollars; `None`: nothing, or that of one of them is unknown.
    pub fn cost_usd(&self) -> Option<f64> {
        (!self.has_unknown_cost && self.live_cost_usd > 0.0).then_some(self.live_cost_usd)
    }
}

/// How the dashboard is displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplaySettings {
    /// Draw ASCII glyphs only.
    pub ascii: bool,
    /// Allow decorative motion, such as a spinner.
    pub animation: bool,
    /// Name of the theme.
    pub theme: String,
}

impl Default for DisplaySettings {
    fn default() -> Self {
        Self { ascii: false, animation: true, theme: "dark".to_owned() }
    }
}

impl AppState {
    /// A run that is played elsewhere is about to open: its screen opens then.
    pub fn expect_opening(&mut self, request: RequestId, run: &RunId) {
        let title = run.to_string();
        self.starting.push(PendingStart { doing: "opening", request, title, open: true });
    }

    /// A dashboard that shows its first screen.
    pub fn new(size: Size, settings: DisplaySettings, mut scenarios: Vec<ScenarioEntry>) -> Self {
        sort_in_groups(&mut scenarios);
        let home = Home::new(&scenarios);
        Self {
            now: Duration::ZERO,
            terminal: size,
            size,
            screen: ActiveScreen::Home,
            overlays: Vec::new(),
            home,
            runs: Vec::new(),
            opened: Vec::new(),
            history: History::default(),
            dropped_runs: Vec::new(),
            removable: Vec::new(),
            removed: SessionTotals::default(),
            scenarios,
            settings,
            notices: Notices::default(),
            starting: Vec::new(),
            to_compare: RunsToCompare::default(),
            model: None,
            pending_flags: PendingFlags::default(),
            inbox: InboxState::default(),
            is_rescanning: false,
            tour: None,
            first_screen: None,
            keeps_runs: false,
            left_tour: None,
            requests: 0,
            interrupted_at: None,
            last_click: None,
            paused_for_suspend: Vec::new(),
        }
    }

    /// Totals of all runs of this session.
    pub fn totals(&self) -> SessionTotals {
        let mut totals = self.removed.clone();
        self.runs.iter().for_each(|page| totals.add(page.world()));
        totals
    }

    /// Number of runs of this session that only the store has.
    pub fn removed_count(&self) -> usize {
        self.removed.runs
    }

    /// Removes the pages of ended runs that the store has and that are not shown. The list has their rows.
    pub(super) fn remove_stored_pages(&mut self) {
        let shown = self.visible_run().map(|page| page.id().clone());
        let is_kept = |id: &RunId| {
            let row = self.history.row(id);
            row.is_some_and(|row| matches!(row.status, RunStatus::Ended(_)))
        };
        let goes = |id: &RunId| shown.as_ref() != Some(id) && is_kept(id);
        let (gone, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.removable).into_iter().partition(goes);
        self.removable = later;
        if gone.is_empty() {
            return;
        }
        let pages = std::mem::take(&mut self.runs).into_iter();
        let (old, runs): (Vec<_>, Vec<_>) = pages.partition(|page| gone.contains(page.id()));
        old.iter().for_each(|page| self.removed.add(page.world()));
        self.runs = runs;
        self.history.arrange(&self.runs);
    }

    /// The page of a run.
    pub fn run(&self, id: &RunId) -> Option<&RunPage> {
        self.runs.iter().chain(&self.opened).find(|page| page.id() == id)
    }

    /// The page of a run, for changes.
    pub fn run_mut(&mut self, id: &RunId) -> Option<&mut RunPage> {
        self.runs.iter_mut().chain(&mut self.opened).find(|page| page.id() == id)
    }

    /// The list of runs on the first screen.
    pub fn listed(&self) -> RunList<'_> {
        RunList { runs: &self.runs, history: &self.history }
    }

    /// The selected run of that list.
    pub fn selected_run(&self) -> Option<ListedRun<'_>> {
        self.home.selected_run(self.listed())
    }

    /// Whether an exported log of this run is open.
    pub(super) fn opened_file(&self, run: &RunId) -> bool {
        let mut opened = self.opened.iter().filter(|page| page.id() == run);
        opened.any(|page| page.kept.as_deref().is_some_and(|kept| kept.is_file))
    }

    /// Shows a kept run that was opened before; `false` if it was not, or has been dropped.
    pub(super) fn show_opened(&mut self, run: &RunId) -> bool {
        let Some(at) = self.opened.iter().position(|page| page.id() == run) else { return false };
        let page = self.opened.remove(at);
        self.opened.push(page);
        self.screen = ActiveScreen::Run(run.clone());
        true
    }

    /// Gives the runs of one scenario each other's figures, so that a guarded and a naive run can
    /// be compared. Returns whether the run on the screen received some.
    pub(super) fn share_comparison(&mut self, run: &RunId) -> bool {
        let Some(page) = self.run(run) else { return false };
        let Some(this) = comparison_of(page) else { return false };
        let scenario = |page: &RunPage| page.world().head.as_ref().map(|it| it.scenario.clone());
        let wanted = scenario(page);
        let mut latest = None;
        for page in self.runs.iter_mut().filter(|page| scenario(page) == wanted) {
            match comparison_of(page) {
                Some(other) if other.guarded != this.guarded => {
                    page.views.tools.set_comparison(Some(this.clone()));
                    latest = Some(other);
                }
                _ => {}
            }
        }
        let is_compared = latest.is_some();
        if let Some(page) = self.run_mut(run).filter(|_| is_compared) {
            page.views.tools.set_comparison(latest);
        }
        is_compared && self.visible_run().is_some()
    }

    /// The run on the screen; only its live text is sent.
    pub fn visible_run(&self) -> Option<&RunPage> {
        match &self.screen {
            ActiveScreen::Home => None,
            ActiveScreen::Run(id) => self.run(id),
        }
    }

    /// The run that a command goes to: the one on the screen, else the selected one.
    pub fn target_run(&self) -> Option<&RunPage> {
        match &self.screen {
            ActiveScreen::Run(id) => self.run(id),
            ActiveScreen::Home => match self.selected_run()? {
                ListedRun::Session(page) => Some(page),
                ListedRun::Kept(_) => None,
            },
        }
    }

    /// Whether a run that has ended is on the screen, and nothing over it.
    pub(crate) fn shows_ended_run(&self) -> bool {
        let shown = self.visible_run();
        let has_ended = shown.is_some_and(|page| page.world().progress.stage == RunState::Closed);
        has_ended && self.overlays.is_empty()
    }

    /// The live runs.
    pub fn live_runs(&self) -> impl Iterator<Item = &RunPage> {
        self.runs.iter().filter(|page| page.world().progress.is_live())
    }

    /// The live runs that end with this program: those of a cluster continue on their runners.
    pub fn own_live_runs(&self) -> impl Iterator<Item = &RunPage> {
        self.live_runs().filter(|page| page.remote.is_none())
    }

    /// Whether a run can be left at the end of the program, to be continued later. What a program of others
    /// does is not continued here, and the run of a tour is not kept.
    pub fn is_left(&self, page: &RunPage) -> bool {
        let is_own = page.remote.is_none() && page.world().observed().is_none();
        let is_kept = self.keeps_runs && is_own && page.world().progress.is_live();
        is_kept && !self.tour.iter().chain(&self.left_tour).any(|tour| tour.has_run(page.id()))
    }

    /// The rows that an open drawer takes at the lower edge; the page of a run gets the others.
    pub fn docked_rows(&self) -> u16 {
        let rows = |overlay: &Overlay| {
            let world = self.run(overlay.run()?)?.world();
            let parts = match overlay {
                Overlay::Flags(drawer) => drawer.parts(self.size, world),
                Overlay::Faults(drawer) => drawer.parts(self.size, world),
                Overlay::Members(drawer) => drawer.parts(self.size, world),
                Overlay::Card(card) => return Some(card.height(self)),
                _ => return None,
            };
            Some(parts.window.height)
        };
        self.overlays.iter().filter_map(rows).max().unwrap_or(0)
    }

    /// The rows that the strip has.
    pub fn strip_rows(&self) -> u16 {
        self.terminal.rows.saturating_sub(self.size.rows)
    }

    /// Tells a new user what to do, until something was done. `waits_for_rows`: kept runs are looked for, and
    /// a user who has some is not new.
    pub fn welcome(&mut self, waits_for_rows: bool) {
        self.first_screen = Some(FirstScreen { waits_for_rows });
        super::strip::settle(self);
    }

    /// What the operator looks at.
    pub(crate) fn place(&self) -> ScreenPlace {
        ScreenPlace {
            screen: self.screen.clone(),
            overlay: self.overlays.last().map(std::mem::discriminant),
            is_inspecting: self.visible_run().is_some_and(|page| page.inspector().is_some()),
        }
    }

    /// The runs that were interrupted and have not been shown yet, as the first screen says it in the room
    /// that it has; `None` elsewhere.
    pub fn interrupted_lines(&self) -> Option<[String; 3]> {
        let is_home = self.place() == ScreenPlace::HOME;
        self.history.interrupted_lines().filter(|_| is_home)
    }

    /// The focused context, as the binding table knows it.
    pub fn context(&self) -> Context {
        match self.overlays.last() {
            Some(overlay) => overlay.context(),
            None => self.screen_context(),
        }
    }

    /// The focused context of the screen, overlays ignored.
    pub fn screen_context(&self) -> Context {
        match self.visible_run() {
            Some(page) => page.context(),
            None if self.history.filter.is_typing() || self.home.filter.is_typing() => {
                Context::Filter
            }
            None => Context::Home,
        }
    }

    /// The elapsed time of a run, pauses included.
    pub fn elapsed(&self, page: &RunPage) -> Elapsed {
        Elapsed::from_duration(self.now.saturating_sub(page.zero()))
    }

    pub(crate) fn notify(&mut self, kind: NoticeKind, text: impl Into<String>) {
        self.notices.add(self.now, kind, text.into());
    }

    pub(crate) fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    /// How long until the next [`Msg::Tick`](crate::screen::Msg::Tick) is needed; `None` while nothing
    /// moves by itself. On the first screen only clocks move, once a second; a run's page decides
    /// for itself.
    pub fn next_tick(&self) -> Option<Duration> {
        let runs = match self.visible_run() {
            _ if too_small(self.size.area()) => None,
            Some(page) => page.next_tick(self.now, self.settings.animation),
            None => self.runs.iter().filter_map(|page| self.next_second(page)).min(),
        };
        let interrupted =
            self.interrupted_at.map(|at| (at + INTERRUPT_WINDOW).saturating_sub(self.now));
        let waits = next_minute(self).filter(|_| !too_small(self.size.area()));
        let notices = self.notices.next_expiry(self.now);
        [runs, waits, notices, interrupted].into_iter().flatten().min()
    }

    /// How long until the clock of a run shows another second; `None` while the clock is stopped.
    fn next_second(&self, page: &RunPage) -> Option<Duration> {
        let world = page.world();
        if world.progress.stopped_since().is_some() {
            return None;
        }
        match world.progress.stage {
            RunState::Running | RunState::Pausing { since: None, .. } => {
                let clock = world.progress.active(self.elapsed(page));
                let into = Duration::from_nanos(clock.subsec_nanos().into());
                Some(SECOND.saturating_sub(into).max(Duration::from_millis(1)))
            }
            RunState::Empty
            | RunState::Pausing { .. }
            | RunState::Paused { .. }
            | RunState::Closed => None,
        }
    }
}

/// The page of the run on the screen, for changes.
pub(super) fn visible_run_mut(state: &mut AppState) -> Option<&mut RunPage> {
    let ActiveScreen::Run(id) = &state.screen else { return None };
    let id = id.clone();
    state.run_mut(&id)
}
