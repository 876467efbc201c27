//! The first screen: scenarios, runs, and a preview of the selected row.

mod filter;
pub mod history;
pub mod kept;
pub mod preview;
mod runs;
pub mod scenarios;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::filter::ListFilter;
use self::history::{ListedRun, RunList};
use self::preview as previewed;
use self::scenarios::ScenarioLines;
use super::action::Action;
use super::effect::Update;
use super::frame::{Borders, Frame};
use super::layout::{Size, inside};
use super::list::{keep_in_view, moved_index};
use super::text::Pen;
use super::{AppState, DrawContext, frame, list};
use crate::log::event::RunId;
use crate::scenario::catalogue::ScenarioEntry;
use crate::words::styled::StyleRole;

/// Columns from which all panes are shown at once; below, one at a time.
const ALL_PANES_COLS: u16 = 120;
/// The scenario that is selected at first.
const FIRST_SCENARIO: &str = "checkout-launch";

/// A pane of the first screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomePane {
    Scenarios,
    Runs,
    /// Details of the selected row.
    Preview,
}

impl HomePane {
    /// Every pane, by number.
    pub const ALL: [HomePane; 3] = [Self::Scenarios, Self::Runs, Self::Preview];

    /// Its number, from 1.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Scenarios => "Scenarios",
            Self::Runs => "Runs",
            Self::Preview => "Preview",
        }
    }
}

/// State of the first screen. Rows are remembered by name, never by position.
#[derive(Clone, Debug)]
pub struct Home {
    pub focus: HomePane,
    /// The list whose selected row the preview shows.
    pub preview_source: HomePane,
    /// The selected scenario, by its path.
    pub scenario: Option<String>,
    /// Which scenarios are listed.
    pub filter: ListFilter,
    /// The selected run.
    pub run: Option<RunId>,
    /// Whether the scenarios were read; until then the list may be empty.
    pub is_read: bool,
    /// The first line of the list of scenarios in view.
    pub scenarios_top: usize,
    /// The first run in view.
    pub runs_top: usize,
    /// The first item of the preview in view.
    pub preview_top: usize,
}

/// Layout of the panes; a pane that is not shown is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeParts {
    /// The row of pane names, where only one pane is shown.
    pub tabs: Option<Rect>,
    /// The scenarios, border included.
    pub scenarios: Rect,
    /// The runs, border included.
    pub runs: Rect,
    /// The preview, border included.
    pub preview: Rect,
}

impl HomeParts {
    /// Cuts the body into panes. Neighbours share the border between them. The runs take what their
    /// `lines` need, at most half; the scenarios take the rest.
    pub fn split(body: Rect, focus: HomePane, lines: usize) -> Self {
        let none = Rect::new(body.x, body.y, 0, 0);
        if body.width < ALL_PANES_COLS || body.height < 16 {
            let rows = body.height.min(1);
            let tabs = Rect { height: rows, ..body };
            let rest = Rect { y: body.y + rows, height: body.height - rows, ..body };
            let mut parts = Self { tabs: Some(tabs), scenarios: none, runs: none, preview: none };
            match focus {
                HomePane::Scenarios => parts.scenarios = rest,
                HomePane::Runs => parts.runs = rest,
                HomePane::Preview => parts.preview = rest,
            }
            return parts;
        }
        // Borders and heads, or a sentence between borders.
        let wanted = u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(3);
        let runs = wanted.min(body.height / 2);
        let upper = body.height - runs + 1;
        let left = body.width * 3 / 5;
        Self {
            tabs: None,
            scenarios: Rect::new(body.x, body.y, left, upper),
            preview: Rect::new(body.x + left - 1, body.y, body.width - left + 1, upper),
            runs: Rect::new(body.x, body.y + upper - 1, body.width, runs),
        }
    }

    /// The area of a pane.
    pub fn pane(&self, pane: HomePane) -> Rect {
        match pane {
            HomePane::Scenarios => self.scenarios,
            HomePane::Runs => self.runs,
            HomePane::Preview => self.preview,
        }
    }

    /// The rows of a list: its pane without border and column heads.
    pub fn rows(&self, pane: HomePane) -> Rect {
        let inner = inside(self.pane(pane));
        let head = inner.height.min(1);
        match pane {
            HomePane::Preview => inner,
            HomePane::Scenarios | HomePane::Runs => {
                let foot = self.description_area(pane).height;
                Rect { y: inner.y + head, height: inner.height - head - foot, ..inner }
            }
        }
    }

    /// The rows below the scenarios that describe the selected one, where its preview is not on the
    /// screen.
    pub fn description_area(&self, pane: HomePane) -> Rect {
        let inner = inside(self.pane(pane));
        let rows = match (pane, self.tabs) {
            (HomePane::Scenarios, Some(_)) if inner.height >= 10 => 3,
            _ => 0,
        };
        Rect { y: inner.bottom() - rows, height: rows, ..inner }
    }

    /// The area of a pane's name among the tabs.
    pub fn tab(&self, pane: HomePane, labels: &[String; 3]) -> Rect {
        let Some(tabs) = self.tabs else { return Rect::default() };
        let mut x = tabs.x + 1;
        for each in HomePane::ALL {
            let width = u16::try_from(labels[each as usize].chars().count()).unwrap_or(u16::MAX);
            let width = width.min(tabs.right().saturating_sub(x));
            if each == pane {
                return Rect { x, width, ..tabs };
            }
            x = x.saturating_add(width + 2).min(tabs.right());
        }
        Rect::default()
    }
}

/// The labels of the tabs, with the number of rows in each list.
pub fn tab_labels(scenarios: usize, runs: usize) -> [String; 3] {
    [format!("1 Scenarios {scenarios}"), format!("2 Runs {runs}"), "3 Preview".to_owned()]
}

impl Home {
    /// The first screen with these scenarios.
    pub fn new(scenarios: &[ScenarioEntry]) -> Self {
        let first = scenarios
            .iter()
            .find(|entry| entry.name.as_str() == FIRST_SCENARIO && entry.loaded.is_ok())
            .or_else(|| scenarios.iter().find(|entry| entry.loaded.is_ok()))
            .or_else(|| scenarios.first());
        Self {
            focus: HomePane::Scenarios,
            preview_source: HomePane::Scenarios,
            scenario: first.map(|entry| entry.path.clone()),
            filter: ListFilter::default(),
            run: None,
            is_read: !scenarios.is_empty(),
            scenarios_top: 0,
            runs_top: 0,
            preview_top: 0,
        }
    }

    pub fn selected_scenario<'a>(
        &self,
        scenarios: &'a [ScenarioEntry],
    ) -> Option<&'a ScenarioEntry> {
        let path = self.scenario.as_ref()?;
        scenarios.iter().find(|entry| entry.path == *path)
    }

    fn index_of_selected(&self, scenarios: &[ScenarioEntry]) -> Option<usize> {
        scenarios.iter().position(|entry| Some(&entry.path) == self.scenario.as_ref())
    }

    /// The lines of the list of scenarios.
    pub fn lines(&self, scenarios: &[ScenarioEntry]) -> ScenarioLines {
        ScenarioLines::new(scenarios, self.filter.text())
    }

    pub fn selected_run<'a>(&self, runs: RunList<'a>) -> Option<ListedRun<'a>> {
        runs.get(runs.position(self.run.as_ref()?)?)
    }

    pub fn focus(&mut self, pane: HomePane) {
        self.focus = pane;
        if pane != HomePane::Preview {
            if self.preview_source != pane {
                self.preview_top = 0;
            }
            self.preview_source = pane;
        }
    }

    pub fn select_scenario(&mut self, entry: &ScenarioEntry) {
        if self.scenario.as_ref() != Some(&entry.path) {
            self.scenario = Some(entry.path.clone());
            self.preview_top = 0;
        }
    }

    pub fn select_run(&mut self, id: &RunId) {
        if self.run.as_ref() != Some(id) {
            self.run = Some(id.clone());
            self.preview_top = 0;
        }
    }

    /// Handles a movement; `items` is the number of preview items. Returns whether it was one.
    pub fn on_move(
        &mut self,
        action: Action,
        scenarios: &[ScenarioEntry],
        runs: RunList<'_>,
        items: usize,
        size: Size,
    ) -> bool {
        let page = self.rows(self.focus, runs, size).max(1);
        match action {
            Action::NextPane => self.focus(self.neighbour_pane(1)),
            Action::PrevPane => self.focus(self.neighbour_pane(HomePane::ALL.len() - 1)),
            Action::Pane(number) => {
                let Some(pane) = HomePane::ALL.iter().find(|pane| pane.number() == number) else {
                    return false;
                };
                self.focus(*pane);
            }
            Action::Left if self.focus == HomePane::Preview => self.focus(self.preview_source),
            Action::Right if self.focus != HomePane::Preview => self.focus(HomePane::Preview),
            Action::Up
            | Action::Down
            | Action::Top
            | Action::Bottom
            | Action::PageUp
            | Action::PageDown => match self.focus {
                HomePane::Scenarios => {
                    let listed = self.lines(scenarios).entries();
                    let at = self.index_of_selected(scenarios);
                    let at = at.and_then(|at| listed.iter().position(|index| *index == at));
                    if let Some(entry) = moved_index(action, at, listed.len(), page)
                        .and_then(|at| scenarios.get(*listed.get(at)?))
                    {
                        self.select_scenario(entry);
                    }
                }
                HomePane::Runs => {
                    let at = self.run.as_ref().and_then(|id| runs.position(id));
                    if let Some(run) =
                        moved_index(action, at, runs.len(), page).and_then(|at| runs.get(at))
                    {
                        self.select_run(run.id());
                    }
                }
                HomePane::Preview => {
                    if let Some(top) = moved_index(action, Some(self.preview_top), items, page) {
                        self.preview_top = top;
                    }
                }
            },
            _ => return false,
        }
        true
    }

    /// The rows of a list that are in view.
    fn rows(&self, pane: HomePane, runs: RunList<'_>, size: Size) -> usize {
        let parts = HomeParts::split(size.body(), self.focus, runs.all_lines());
        usize::from(parts.rows(pane).height)
    }

    fn neighbour_pane(&self, steps: usize) -> HomePane {
        HomePane::ALL[(self.focus as usize + steps) % HomePane::ALL.len()]
    }

    /// Scrolls a pane by one row; the selection does not change. `items` is the number of preview items.
    pub fn scroll(
        &mut self,
        pane: HomePane,
        up: bool,
        scenarios: &[ScenarioEntry],
        runs: RunList<'_>,
        (items, size): (usize, Size),
    ) {
        let rows = self.rows(pane, runs, size);
        let (top, last) = match pane {
            HomePane::Scenarios => {
                let lines = self.lines(scenarios).count();
                (&mut self.scenarios_top, lines.saturating_sub(rows))
            }
            HomePane::Runs => (&mut self.runs_top, runs.lines().saturating_sub(rows)),
            HomePane::Preview => (&mut self.preview_top, items.saturating_sub(1)),
        };
        *top = if up { top.saturating_sub(1) } else { (*top + 1).min(last) };
    }

    /// Keeps the selection in view, and the scroll positions within their lists.
    pub fn arrange(
        &mut self,
        scenarios: &[ScenarioEntry],
        runs: RunList<'_>,
        items: usize,
        size: Size,
    ) {
        let lines = self.lines(scenarios);
        let selected = self.index_of_selected(scenarios);
        if selected.and_then(|index| lines.line_of(index)).is_none() {
            let first = lines.entries().first().and_then(|index| scenarios.get(*index));
            let filtered = first.map(|entry| entry.path.clone());
            let is_on = self.filter.is_on();
            self.scenario = if is_on { filtered } else { Self::new(scenarios).scenario };
        }
        let mut selected = self.run.as_ref().and_then(|id| runs.position(id));
        if selected.is_none() {
            // The last run of this session, else the newest kept one.
            selected = Some(runs.session_count().saturating_sub(1));
            self.run = selected.and_then(|at| runs.get(at)).map(|run| run.id().clone());
        }
        let [scenario_rows, run_rows] =
            [HomePane::Scenarios, HomePane::Runs].map(|pane| self.rows(pane, runs, size));
        let at = self.index_of_selected(scenarios);
        if scenario_rows > 0 {
            let line = at.and_then(|at| lines.line_of(at)).unwrap_or(0);
            let top = keep_in_view(self.scenarios_top, line, scenario_rows, lines.count());
            self.scenarios_top =
                if top == line && scenario_rows > 1 { lines.first_with(line) } else { top };
        }
        if run_rows > 0 {
            let line = runs.line(selected.unwrap_or(0));
            self.runs_top = keep_in_view(self.runs_top, line, run_rows, runs.lines());
        }
        self.preview_top = self.preview_top.min(items.saturating_sub(1));
    }
}

/// Keeps the lists of the first screen valid after any change of their contents.
pub(super) fn arrange_home(state: &mut AppState) {
    let items = preview::items(state).lines.len();
    let runs = RunList { runs: &state.runs, history: &state.history };
    state.home.arrange(&state.scenarios, runs, items, state.size);
}

/// The filter of the list on the first screen that has the focus, or had it last.
pub(super) fn home_filter(state: &mut AppState) -> &mut ListFilter {
    match state.home.preview_source {
        HomePane::Runs => &mut state.history.filter,
        HomePane::Scenarios | HomePane::Preview => &mut state.home.filter,
    }
}

/// Lists what passes the filter, if it has changed.
pub(super) fn when_filtered(state: &mut AppState, changed: bool) -> Update {
    if changed {
        state.history.arrange(&state.runs);
        arrange_home(state);
    }
    Update::when(changed)
}

/// Draws the first screen.
pub fn render(state: &AppState, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let home = &state.home;
    let parts = HomeParts::split(area, home.focus, state.listed().all_lines());
    if parts.tabs.is_some() {
        let labels = tab_labels(state.scenarios.len(), state.listed().len());
        for pane in HomePane::ALL {
            let role = if pane == home.focus { StyleRole::Selected } else { StyleRole::Dim };
            let style = cx.theme.style(role);
            let row = parts.tab(pane, &labels);
            Pen::new(buf, row, cx.glyphs).put(&labels[pane as usize], style);
        }
    }
    let shown = || HomePane::ALL.into_iter().filter(|pane| !parts.pane(*pane).is_empty());
    let mut borders = Borders::new(area);
    for pane in shown().filter(|pane| *pane != home.focus) {
        borders.frame(parts.pane(pane), StyleRole::Border);
    }
    // The style of the focused frame is laid over that of the lines which it shares.
    borders.paint(cx, buf);
    borders.frame(parts.pane(home.focus), StyleRole::BorderFocus);
    borders.paint(cx, buf);
    for pane in shown() {
        let title = match pane {
            HomePane::Preview => previewed::title(state),
            pane => pane.title().to_owned(),
        };
        let foot = hidden(state, &parts, pane);
        let number = Some(pane.number());
        let frame = Frame { number, title: &title, foot: &foot, focused: pane == home.focus };
        frame::label(frame, cx, parts.pane(pane), buf);
        let inner = inside(parts.pane(pane));
        match pane {
            HomePane::Scenarios => {
                let border = title_room(parts.pane(pane), &foot);
                scenarios::filter_line(state, cx, border, taken(&title), buf);
                scenarios::render(state, cx, parts.rows(pane), buf);
                scenarios::about(state, cx, parts.description_area(pane), buf);
            }
            HomePane::Runs => {
                let border = title_room(parts.pane(pane), &foot);
                runs::title(state, cx, border, taken(&title), buf);
                runs::render(state, cx, parts.rows(pane), buf);
            }
            HomePane::Preview => {
                preview::render(&previewed::items(state).lines, state, cx, inner, buf)
            }
        }
    }
}

/// Columns of a pane's border that its number and title take.
fn taken(title: &str) -> u16 {
    u16::try_from(title.len()).unwrap_or(u16::MAX).saturating_add(6)
}

/// The border of a pane without the range in view at its right end.
fn title_room(pane: Rect, range: &str) -> Rect {
    let range = u16::try_from(range.len()).unwrap_or(u16::MAX);
    let taken = if range > 0 { range + 2 } else { 0 };
    Rect { width: pane.width.saturating_sub(taken), ..pane }
}

/// The range of a list's rows that are in view; empty if all are.
fn hidden(state: &AppState, parts: &HomeParts, pane: HomePane) -> String {
    let rows = usize::from(parts.rows(pane).height);
    match pane {
        HomePane::Scenarios => {
            let lines = state.home.lines(&state.scenarios);
            let top = state.home.scenarios_top;
            let first = lines.entries_above(top);
            let shown = lines.entries_above(top + rows) - first;
            let is_whole = lines.count() <= rows;
            if is_whole { String::new() } else { list::range(first, shown, lines.entries().len()) }
        }
        HomePane::Runs => {
            let len = state.listed().lines();
            if len > rows { list::range(state.home.runs_top, rows, len) } else { String::new() }
        }
        HomePane::Preview => String::new(),
    }
}
