//! The view of an orchestrator: the selected row of the waterfall, and the scroll position of the
//! details.

use ratatui::layout::Rect;

use super::results::{ResultEntry, RunResults, fields_width, result_rows};
use super::subject::{TaskSubject, call_of, subject_of};
use super::task::task_document;
use super::waterfall::{self, WaterfallRow};
use crate::app::action::Action;
use crate::app::run::data::RunData;
use crate::app::run::inspect::WrappedDocument;
use crate::app::run::layout::{EndedWish, Pane, PaneWish, RowWish, inner_columns, window_start};
use crate::app::run::run_view::{LiveChange, PaneAt, RunView};
use crate::app::run::scroll::Scroll;
use crate::app::run::subject_text::{
    MAX_ROWS, RowShares, Spoken, SubjectText, call_text, outcome_text, rows_scrolled, run_text,
    text_area,
};
use crate::event::kind::Initiator;
use crate::event::world::RunState;
use crate::event::{Command, SpanId};

/// Selection and scroll position in the panes of an orchestrator.
#[derive(Debug, Default)]
pub struct OrchestratorView {
    /// The selected row of the waterfall; `None` follows the run.
    row: Option<WaterfallRow>,
    /// First row in view of the details; `None` follows the newest words of a text.
    scroll: Option<Scroll>,
}

impl OrchestratorView {
    /// The selected row of the waterfall.
    pub fn waterfall_row(&self) -> Option<WaterfallRow> {
        self.row
    }

    /// The first row in view of the details.
    pub fn scroll(&self) -> Option<Scroll> {
        self.scroll
    }

    /// The subject in the world that is shown.
    pub fn subject(&self, run: &RunData) -> TaskSubject {
        let world = run.shown();
        match (world.orchestrator(), &world.progress.stage) {
            (Some(orchestrator), _) => subject_of(self.row, world, orchestrator),
            (None, RunState::Closed) => TaskSubject::Outcome,
            (None, _) => TaskSubject::None,
        }
    }

    /// The row that the waterfall keeps in view.
    pub fn shown_row(&self, run: &RunData) -> WaterfallRow {
        match (self.row, self.subject(run)) {
            (Some(row), _) => row,
            (None, TaskSubject::Task(task)) => WaterfallRow::Task(task),
            (None, TaskSubject::Plan | TaskSubject::None) => WaterfallRow::Plan,
            (None, TaskSubject::Join) => WaterfallRow::Join,
            (None, TaskSubject::Finalize | TaskSubject::Outcome) => WaterfallRow::Report,
        }
    }

    /// The index of the line of the results that is kept in view.
    pub fn shown_result(&self, run: &RunData) -> usize {
        let is_joined = run.shown().orchestrator().is_some_and(|it| it.aggregate.is_some());
        let task = match (self.row, is_joined) {
            (Some(WaterfallRow::Task(task)), _) => task,
            (_, true) => return 0,
            (_, false) => match self.shown_row(run) {
                WaterfallRow::Task(task) => task,
                _ => return 0,
            },
        };
        RunResults::of(run).place_of(task)
    }

    /// Whether the details of the subject are a document rather than a text.
    pub fn shows_document(&self, run: &RunData) -> bool {
        matches!(self.subject(run), TaskSubject::Plan | TaskSubject::Task(_) | TaskSubject::Join)
    }

    /// What is spoken where the subject has no document.
    pub fn spoken<'a>(&self, run: &'a RunData) -> Spoken<'a> {
        let (subject, call) = (self.subject(run), self.subject_call(run));
        let world = run.shown();
        let finalize = world.orchestrator().and_then(|orchestrator| orchestrator.finalize);
        let words = match (subject, &world.progress.answer, finalize) {
            _ if world.orchestrator().is_none() => run_text(run, call),
            (TaskSubject::Outcome, ..) => outcome_text(run, call),
            (TaskSubject::Finalize, Some(answer), _) => SubjectText::complete(answer.as_ref()),
            (TaskSubject::Finalize, None, Some(call)) => call_text(run, call),
            (TaskSubject::Finalize, None, None) => {
                SubjectText::note("The report is waiting for the results.")
            }
            (TaskSubject::None, ..) => SubjectText::note("No call has been made yet."),
            _ => SubjectText::note(""),
        };
        let prompt = match finalize {
            Some(_) => " view the report's prompt",
            None => " view the failed call",
        };
        let is_outcome = subject == TaskSubject::Outcome;
        Spoken { words, call, is_outcome, prompt, scroll: self.scroll }
    }

    /// Selects a row of the waterfall; `None` follows the run.
    fn select_row(&mut self, row: Option<WaterfallRow>) {
        if self.row != row {
            self.row = row;
            self.scroll = None;
        }
    }

    fn scroll_details(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) {
        let Some(area) = at.areas.pane(Pane::Second) else { return };
        if !self.shows_document(run) {
            self.scroll = self.spoken(run).scrolled(by, area);
            return;
        }
        let area = text_area(area);
        // The document as of its last event: a countdown in it must not move lines.
        let document = task_document(run, self.subject(run), run.shown().progress.at);
        let lines = WrappedDocument { document: &document, width: area.width };
        let to = self.scroll.unwrap_or_default().step(by, &lines, usize::from(area.height));
        self.scroll = (to != Scroll::default()).then_some(to);
    }

    fn move_in_waterfall(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        let Some(orchestrator) = run.shown().orchestrator() else { return };
        let tasks = orchestrator.tasks.len();
        let from = self.shown_row(run).index(tasks);
        let height = at.areas.pane(Pane::First).map_or(8, |area| usize::from(area.height));
        let page = height.saturating_sub(2).max(1);
        let last = WaterfallRow::count(tasks) - 1;
        let step = |by: isize| match self.row {
            Some(_) => from.saturating_add_signed(by).min(last),
            // The first step selects what is shown now.
            None => from,
        };
        let far = isize::try_from(page).unwrap_or(1);
        let to = match action {
            Action::Up | Action::Left => step(-1),
            Action::Down | Action::Right => step(1),
            Action::PageUp => step(-far),
            Action::PageDown => step(far),
            Action::Top => 0,
            Action::Bottom => last,
            _ => return,
        };
        self.select_row(WaterfallRow::from_index(to, tasks));
    }
}

/// Most rows of the slots and budgets.
const SLOTS: u16 = 7;

impl RunView for OrchestratorView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Waterfall", "Task", "Results", "Slots"]
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        matches!(self.subject(run), TaskSubject::Outcome)
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Waterfall", "Task", "Results", "Slots and budgets"]
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneWish {
        let inner = inner_columns(page);
        let ended = run.shown().orchestrator().filter(|_| run.shown().progress.closed.is_some());
        let ended = ended.map(|orchestrator| {
            let left = inner.saturating_mul(58) / 100;
            let words = outcome_text(run, orchestrator.finalize);
            let width = (inner - left).saturating_sub(2);
            let picture = waterfall::HEAD + WaterfallRow::count(orchestrator.tasks.len()) as u16;
            let outcome = RowShares::outcome_rows(width, &words);
            let most = usize::from(MAX_ROWS);
            let results = result_rows(&RunResults::of(run), 0, fields_width(left), most).len();
            let rows = (picture + results as u16).max(outcome + SLOTS);
            EndedWish { left, picture, outcome, rows }
        });
        // Time runs to the right, so width shows more of it.
        PaneWish {
            rows: RowWish::Content(6),
            first: page.width.saturating_mul(65) / 100,
            third: inner.saturating_mul(55) / 100,
            ended,
        }
    }

    fn on_move(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        let text = at.pane == Pane::Second;
        match (rows_scrolled(action, at.area()).filter(|_| text), action) {
            (Some(by), _) => self.scroll_details(run, at, by),
            (None, Action::Left) if text => self.move_in_waterfall(run, at, Action::Up),
            (None, Action::Right) if text => self.move_in_waterfall(run, at, Action::Down),
            (None, _) => self.move_in_waterfall(run, at, action),
        }
    }

    fn on_wheel(&mut self, run: &RunData, at: PaneAt<'_>, by: isize) -> bool {
        match at.pane {
            Pane::Second => self.scroll_details(run, at, by),
            Pane::First | Pane::Third => {
                let action = if by < 0 { Action::Up } else { Action::Down };
                for _ in 0..by.unsigned_abs() {
                    self.move_in_waterfall(run, at, action);
                }
            }
            Pane::Fourth | Pane::Events => return false,
        }
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, _col: u16, row: u16) {
        let Some(area) = at.area() else { return };
        let line = usize::from(row - area.y);
        match at.pane {
            Pane::First => {
                let tasks = run.shown().orchestrator().map_or(0, |it| it.tasks.len());
                let rows = area.height.saturating_sub(waterfall::HEAD);
                let (shown, count) = (self.shown_row(run).index(tasks), WaterfallRow::count(tasks));
                let top = window_start(shown, count, usize::from(rows));
                if let Some(row) = line
                    .checked_sub(usize::from(waterfall::HEAD))
                    .and_then(|line| WaterfallRow::from_index(top + line, tasks))
                {
                    self.select_row(Some(row));
                }
            }
            Pane::Third => {
                let (results, shown) = (RunResults::of(run), self.shown_result(run));
                let width = fields_width(area.width);
                let rows = result_rows(&results, shown, width, usize::from(area.height));
                if let Some((_, ResultEntry::Task(task, ..), _)) = rows.get(line) {
                    self.select_row(Some(WaterfallRow::Task(*task)));
                }
            }
            Pane::Second | Pane::Fourth | Pane::Events => {}
        }
    }

    // A row is selected as a tool is, so one key lets both go.
    fn clear_selection(&mut self, _with_tool: bool) -> bool {
        let any = self.row.is_some();
        self.select_row(None);
        any
    }

    fn reset_scroll(&mut self) -> bool {
        self.scroll.take().is_some()
    }

    fn subject_call(&self, run: &RunData) -> Option<SpanId> {
        call_of(self.subject(run), run.shown().orchestrator()?)
    }

    fn text(&self, run: &RunData, _focus: Pane) -> Option<String> {
        let document = task_document(run, self.subject(run), run.shown().progress.at);
        Some(match document.lines.is_empty() {
            false => document.to_plain(),
            true => self.spoken(run).to_text(),
        })
    }

    fn command(&self, run: &RunData, action: Action) -> LiveChange {
        let up = action == Action::More;
        if !up && action != Action::Less {
            return LiveChange::NotHere;
        }
        let Some(orchestrator) = run.world().orchestrator() else { return LiveChange::NotHere };
        let now = run.pending_changes().parallel(orchestrator.max_parallel);
        let to = if up { now.saturating_add(1) } else { now.saturating_sub(1).max(1) };
        match to == now {
            true => LiveChange::AtLimit,
            false => {
                LiveChange::Send(Command::SetParallel { max_parallel: to, by: Initiator::You })
            }
        }
    }

    fn offers(&self, run: &RunData, _focus: Pane, action: Action) -> bool {
        matches!(action, Action::More | Action::Less) && run.world().orchestrator().is_some()
    }
}
