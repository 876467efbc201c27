//! The comparison of two runs on the whole screen: the places where they differ, and the selected
//! one in full.

pub mod drawing;

use ratatui::layout::Rect;

use super::action::Action;
use super::effect::{Effect, RequestId, Update};
use super::keymap::key_of;
use super::launch::{chosen_run, source};
use super::layout::{Size, hits, inside, padded};
use super::list::{keep_in_view, moved_index};
use super::notice::NoticeKind;
use super::state::{ActiveScreen, AppState};
use super::windows::Overlay;
use crate::log::event::RunId;
use crate::log::world::run_row::RunStatus;
use crate::words::comparison::ComparisonRow;
use crate::words::comparison::runs::{ComparedRun, ComparedRuns};
use crate::words::measure::wrap_within;

/// Columns from which the texts of both runs are side by side.
const BESIDE_COLS: u16 = 120;
/// Rows of the figures of both runs, border included.
const RUN_ROWS: u16 = 8;
/// Maximum rows of one text.
const MAX_TEXT_ROWS: usize = 2_000;
/// Columns before a text, for the mark of the place where the texts part.
pub const MARK_COLS: u16 = 2;
/// Columns of the name of a side, where the texts are below each other.
pub const SIDE_COLS: u16 = 6;

/// The run that is marked to be compared, and the comparison that is awaited.
#[derive(Debug, Default)]
pub struct RunsToCompare {
    /// The run that is marked on the first screen.
    pub marked: Option<RunId>,
    /// The notice about the marked run.
    pub said: String,
    pub awaited: Option<AwaitedComparison>,
}

/// A comparison that the shell works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedComparison {
    /// The request that its answer will name.
    pub request: RequestId,
    /// The left and the right run.
    pub runs: [RunId; 2],
    /// Whether each was still running when it was requested.
    pub live: [bool; 2],
}

/// A line of the selected difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceLine {
    /// The name of the value that differs.
    Name(String),
    Same(String),
    /// A row of the texts of the left and the right run, side by side; `first`: the texts part
    /// here. `None`: that run has no such value.
    Beside {
        texts: [Option<String>; 2],
        /// Whether it is their first row.
        first: bool,
    },
    /// A row of the text of one run.
    One {
        right: bool,
        /// The text; `None`: the run has no such value.
        text: Option<String>,
        /// Whether it is its first row.
        first: bool,
    },
    /// A note of the program about the texts.
    Note(&'static str),
}

/// The parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparisonParts {
    /// The row that names both runs.
    pub title: Rect,
    /// The row below it.
    pub note: Rect,
    /// The figures of both runs, border included.
    pub runs: Rect,
    /// The list of places, border included; empty while a difference is shown in full.
    pub list: Rect,
    /// The selected difference, border included.
    pub detail: Rect,
}

impl ComparisonParts {
    /// Cuts the screen into its parts. Neighbours share the border between them.
    pub fn split(size: Size, rows: usize, full: bool) -> Self {
        let area = Rect { height: size.rows.saturating_sub(2), ..size.area() };
        let below = |y: u16, height: u16| Rect { y, height, ..area }.intersection(area);
        let rest = below(area.y + 1 + RUN_ROWS, area.height.saturating_sub(1 + RUN_ROWS));
        let wanted = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2);
        let list = match full {
            true => 0,
            // A key gives the selected difference the whole height.
            false => wanted.min(rest.height / 5 * 3).max(3),
        };
        let shared = list.saturating_sub(1);
        Self {
            title: below(0, 1),
            note: below(1, 1),
            runs: below(2, RUN_ROWS),
            list: below(rest.y, list),
            detail: below(rest.y + shared, rest.height.saturating_sub(shared)),
        }
    }

    /// The rows of the selected difference.
    pub fn detail_rows(&self) -> Rect {
        padded(self.detail)
    }
}

/// The comparison of two runs.
#[derive(Debug)]
pub struct ComparisonView {
    pub compared: Box<ComparedRuns>,
    /// Whether each run was still running when it was read.
    pub live: [bool; 2],
    pub selected: usize,
    /// The first row in view.
    pub top: usize,
    /// Whether the selected difference has the place of the list too.
    pub full: bool,
    /// The lines of the selected difference, for the size of the screen.
    pub lines: Vec<DifferenceLine>,
    /// The first of these lines in view.
    pub lines_top: usize,
    /// What `lines` was made for.
    made_for: Option<(usize, u16)>,
}

impl ComparisonView {
    /// A view with the first difference selected.
    pub fn new(compared: Box<ComparedRuns>, live: [bool; 2], size: Size) -> Self {
        let rows = &compared.rows;
        let first = rows.iter().position(|row| matches!(row, ComparisonRow::Difference(_)));
        let other = rows.iter().position(|row| matches!(row, ComparisonRow::Setup(_)));
        let mut view = Self {
            selected: first.or(other).unwrap_or_default(),
            compared,
            live,
            top: 0,
            full: false,
            lines: Vec::new(),
            lines_top: 0,
            made_for: None,
        };
        view.arrange(size);
        view
    }

    /// The parts of the screen at this size.
    pub fn parts(&self, size: Size) -> ComparisonParts {
        ComparisonParts::split(size, self.compared.rows.len(), self.full)
    }

    /// How far the left and the right run are.
    pub fn statuses(&self) -> [RunStatus; 2] {
        let [left, right] = &self.compared.runs;
        [left.status(self.live[0]), right.status(self.live[1])]
    }

    /// Handles a movement, or the key that shows a difference in full; returns whether it was one.
    pub fn on_action(&mut self, action: Action, size: Size) -> bool {
        let parts = self.parts(size);
        if action == Action::Inspect {
            self.full = !self.full && !self.lines.is_empty();
        } else if self.full {
            let page = usize::from(parts.detail_rows().height).max(1);
            let last = self.lines.len().saturating_sub(page);
            match moved_index(action, Some(self.lines_top), last + 1, page) {
                Some(top) => self.lines_top = top,
                None => return false,
            }
        } else {
            let page = usize::from(inside(parts.list).height).max(1);
            let rows = self.compared.rows.len();
            match moved_index(action, Some(self.selected), rows, page) {
                Some(to) => self.select_near(to),
                None => return false,
            }
        }
        self.arrange(size);
        true
    }

    /// Selects the row on a cell of the list; returns whether there is one.
    pub fn select_cell(&mut self, col: u16, row: u16, size: Size) -> bool {
        let list = inside(self.parts(size).list);
        if !hits(list, col, row) {
            return false;
        }
        let at = self.top + usize::from(row - list.y);
        let is_difference = self.can_select(at);
        if is_difference {
            self.selected = at;
            self.arrange(size);
        }
        is_difference
    }

    fn can_select(&self, at: usize) -> bool {
        matches!(
            self.compared.rows.get(at),
            Some(ComparisonRow::Setup(_) | ComparisonRow::Difference(_))
        )
    }

    /// Selects this row, or where it is one of equal events, the next one in the same direction.
    fn select_near(&mut self, to: usize) {
        let (before, behind) = (to.checked_sub(1), Some(to + 1));
        let further = if to < self.selected { [before, behind] } else { [behind, before] };
        let rows = [Some(to), further[0], further[1]];
        if let Some(at) = rows.into_iter().flatten().find(|at| self.can_select(*at)) {
            self.selected = at;
        }
    }

    /// Keeps the selection in view and the lines of the difference up to date.
    pub fn arrange(&mut self, size: Size) {
        let parts = self.parts(size);
        if self.made_for != Some((self.selected, size.cols)) {
            self.made_for = Some((self.selected, size.cols));
            self.lines = self.selected_lines(parts.detail_rows().width);
            self.lines_top = 0;
        }
        let rows = usize::from(inside(parts.list).height);
        if rows > 0 {
            // The row above the first difference in view says how much is equal before it.
            let above = self.selected.saturating_sub(1);
            let len = self.compared.rows.len();
            self.top = keep_in_view(self.top, above, rows, len);
            self.top = keep_in_view(self.top, self.selected, rows, len);
        }
        let page = usize::from(parts.detail_rows().height);
        self.lines_top = self.lines_top.min(self.lines.len().saturating_sub(page));
    }

    fn selected_lines(&self, width: u16) -> Vec<DifferenceLine> {
        let compared = &self.compared.comparison;
        let mut lines = DifferenceTexts { width, found: Vec::new() };
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match self.compared.rows.get(self.selected) {
            Some(ComparisonRow::Setup(at)) => {
                if let Some(it) = compared.setup.get(*at) {
                    let pairs = it.left.chars().zip(it.right.chars());
                    let same = pairs.take_while(|(a, b)| a == b).count();
                    lines.add(&it.what, same, [text(&it.left), text(&it.right)]);
                }
            }
            Some(ComparisonRow::Difference(at)) => {
                let Some(it) = compared.differences.get(*at) else { return Vec::new() };
                for field in &it.fields {
                    lines.add(&field.name, field.same, [text(&field.left), text(&field.right)]);
                }
                for (name, value) in
                    it.left.iter().filter(|_| it.right.is_none()).flat_map(|it| it.texts())
                {
                    lines.add(&name, 0, [Some(value), None]);
                }
                for (name, value) in
                    it.right.iter().filter(|_| it.left.is_none()).flat_map(|it| it.texts())
                {
                    lines.add(&name, 0, [None, Some(value)]);
                }
            }
            Some(ComparisonRow::Equal(_)) | None => {}
        }
        lines.found
    }
}

/// Wraps texts into lines.
struct DifferenceTexts {
    width: u16,
    found: Vec<DifferenceLine>,
}

impl DifferenceTexts {
    /// Adds a value; the first `same` characters of its texts are equal.
    fn add(&mut self, name: &str, same: usize, texts: [Option<String>; 2]) {
        self.found.push(DifferenceLine::Name(name.to_owned()));
        let [left, right] = &texts;
        let before: String = match (left, right) {
            (Some(left), Some(_)) => left.chars().take(same).collect(),
            _ => String::new(),
        };
        // The place is marked at the start of the word in which they part.
        let before = match before.rfind(char::is_whitespace) {
            Some(at) => before.get(..at + 1).unwrap_or_default(),
            None if same < 3 => "",
            None => before.as_str(),
        };
        let beside = self.width + 4 >= BESIDE_COLS;
        let width = usize::from(self.width.saturating_sub(MARK_COLS)).max(1);
        if !before.trim().is_empty() {
            let (rows, _) = wrap_within(before.trim_end(), width, MAX_TEXT_ROWS);
            self.found.extend(rows.into_iter().map(DifferenceLine::Same));
        }
        let width = match beside {
            true => usize::from((self.width / 2).saturating_sub(MARK_COLS + 1)).max(1),
            false => usize::from(self.width.saturating_sub(MARK_COLS + SIDE_COLS)).max(1),
        };
        let mut is_cut = false;
        let mut rows = |text: Option<&String>| -> Option<Vec<String>> {
            let text = text?.strip_prefix(before)?;
            let (rows, cut) = wrap_within(text, width, MAX_TEXT_ROWS);
            is_cut |= cut;
            Some(rows)
        };
        let sides = [rows(left.as_ref()), rows(right.as_ref())];
        if beside {
            let most = sides.iter().flatten().map(Vec::len).max().unwrap_or_default().max(1);
            for at in 0..most {
                let text = |side: &Option<Vec<String>>| match side {
                    Some(rows) => Some(rows.get(at).cloned().unwrap_or_default()),
                    None => (at > 0).then(String::new),
                };
                let texts = [text(&sides[0]), text(&sides[1])];
                self.found.push(DifferenceLine::Beside { texts, first: at == 0 });
            }
        } else {
            for (side, right) in sides.into_iter().zip([false, true]) {
                let rows: Vec<Option<String>> = match side {
                    Some(rows) if rows.is_empty() => vec![Some(String::new())],
                    Some(rows) => rows.into_iter().map(Some).collect(),
                    None => vec![None],
                };
                let one = |(at, text)| DifferenceLine::One { right, text, first: at == 0 };
                self.found.extend(rows.into_iter().enumerate().map(one));
            }
        }
        if is_cut {
            self.found.push(DifferenceLine::Note("The rest of this text is not shown."));
        }
    }
}

/// The run that a run was forked from.
pub(super) fn parent_of(state: &AppState, run: &RunId) -> Option<RunId> {
    let page = state.run(run).and_then(|page| page.world().head.as_ref());
    let forked = page.and_then(|head| head.launch.as_ref()?.forked.as_ref());
    let row = || state.history.row(run).and_then(|row| row.parent.as_ref());
    forked.map(|forked| &forked.parent).or_else(row).cloned()
}

/// Marks the chosen run, or compares it: with the marked one, with its parent where it is on the screen
/// or marked already.
pub(crate) fn compare(state: &mut AppState) -> Update {
    let said = match (chosen_run(state), state.to_compare.marked.clone()) {
        (None, _) => "No run is selected: select one in pane 2.".to_owned(),
        (Some((run, _)), Some(marked)) if marked != run => {
            clear_mark(state);
            return request(state, marked, run);
        }
        (Some((run, _)), marked) => {
            let on_page = matches!(state.screen, ActiveScreen::Run(_));
            match parent_of(state, &run) {
                Some(parent) if on_page || marked.is_some() => {
                    clear_mark(state);
                    return request(state, parent, run);
                }
                _ if marked.is_some() => {
                    clear_mark(state);
                    format!("{run} is no longer marked.")
                }
                parent => {
                    state.to_compare.marked = Some(run.clone());
                    let key = key_of(Action::Compare);
                    match parent {
                        Some(parent) => format!(
                            "{run} marked: {key} on another run compares them, {key} again compares \
                             it with its parent {parent}."
                        ),
                        None => format!("{run} marked: {key} on another run compares the two."),
                    }
                }
            }
        }
    };
    if state.to_compare.marked.is_some() {
        state.to_compare.said = said.clone();
    }
    state.notify(NoticeKind::Info, said);
    Update::redraw()
}

/// Takes the mark and its notice away; returns whether there was one.
pub(super) fn clear_mark(state: &mut AppState) -> bool {
    let said = std::mem::take(&mut state.to_compare.said);
    state.notices.remove_text(&said);
    state.to_compare.marked.take().is_some()
}

/// Whether a run is still running.
fn is_live(state: &AppState, run: &RunId) -> bool {
    match state.run(run) {
        Some(page) if page.kept.is_none() => page.world().progress.is_live(),
        _ => state.history.row(run).is_some_and(|row| row.status == RunStatus::Running),
    }
}

/// Asks the shell to compare two runs.
pub(super) fn request(state: &mut AppState, left: RunId, right: RunId) -> Update {
    let request = state.next_request();
    let live = [is_live(state, &left), is_live(state, &right)];
    let sources = [source(state, left.clone(), request), source(state, right.clone(), request)];
    state.to_compare.awaited = Some(AwaitedComparison { request, runs: [left, right], live });
    Update::effect(Effect::Compare { request, runs: Box::new(sources) })
}

/// Updates the figures of live runs in the open comparison. Each of them that has ended is compared
/// again, now whole.
pub(super) fn follow_live(state: &mut AppState) -> Update {
    let Some(Overlay::Comparison(view)) = state.overlays.last() else { return Update::idle() };
    let figures = [0, 1].map(|side| {
        let run = RunId::new(view.compared.runs[side].run.as_str());
        let page = state.run(&run).filter(|page| view.live[side] && page.kept.is_none())?;
        let progress = &page.world().progress;
        let at = match progress.is_live() {
            true => state.elapsed(page).max(progress.at),
            false => progress.at,
        };
        Some((ComparedRun::of_world(page.world(), at), progress.is_live()))
    });
    let Some(Overlay::Comparison(view)) = state.overlays.last_mut() else { return Update::idle() };
    let was_live = view.live;
    for (side, figures) in figures.into_iter().enumerate() {
        if let Some((figures, is_live)) = figures {
            view.compared.runs[side] = figures;
            view.live[side] = is_live;
        }
    }
    let [left, right] = [0, 1].map(|side| RunId::new(view.compared.runs[side].run.as_str()));
    match (was_live, view.live) {
        ([false, false], _) => Update::idle(),
        (was, now) if was == now => Update::redraw(),
        _ => Update { redraw: true, ..request(state, left, right) },
    }
}

/// The shell has compared two runs, or cannot.
pub(super) fn on_compared(
    state: &mut AppState,
    request: RequestId,
    result: Result<Box<ComparedRuns>, String>,
) -> Update {
    // If the operator does something else meanwhile, the comparison does not open.
    let is_wanted = |it: &mut AwaitedComparison| it.request == request;
    let Some(awaited) = state.to_compare.awaited.take_if(is_wanted) else {
        return Update::idle();
    };
    match result {
        Ok(compared) => {
            let is_open = match state.overlays.last() {
                None => true,
                Some(Overlay::Comparison(view)) => {
                    let is_same = |(run, id): (&ComparedRun, &RunId)| run.run == id.as_str();
                    view.compared.runs.iter().zip(&awaited.runs).all(is_same)
                }
                Some(_) => false,
            };
            if is_open {
                let view = ComparisonView::new(compared, awaited.live, state.size);
                state.overlays.clear();
                state.overlays.push(Overlay::Comparison(Box::new(view)));
            }
        }
        Err(why) => {
            let [left, right] = &awaited.runs;
            let text = format!("{left} and {right} cannot be compared: {why}");
            state.notify(NoticeKind::Error, text);
        }
    }
    Update::redraw()
}

/// Carries out an action in the comparison.
pub(crate) fn on_action(state: &mut AppState, action: Action) -> Update {
    let size = state.size;
    let Some(Overlay::Comparison(view)) = state.overlays.last_mut() else { return Update::idle() };
    match action {
        Action::Cancel | Action::Back if view.full => {
            view.full = false;
            view.arrange(size);
            Update::redraw()
        }
        Action::Cancel | Action::Back => {
            state.overlays.pop();
            Update::redraw()
        }
        Action::Copy => {
            let text = view.compared.text.clone();
            state.notify(NoticeKind::Info, "Copied the comparison as text.");
            Update::effect(Effect::Copy(text))
        }
        action => Update::when(view.on_action(action, size)),
    }
}
