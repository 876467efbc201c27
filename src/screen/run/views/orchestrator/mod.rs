//! The view of an orchestrator: the selected row of the waterfall, else what runs, is the subject
//! of the page. Its second header row has the phases plan, fan-out, join and report.

mod results;
mod slots;
mod task;
pub mod waterfall;

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use self::results::{ResultEntry, RunResults, fields_width, result_rows};
use self::slots::put_slots;
use self::task::{row_sign, task_document};
use self::waterfall::{WaterfallRow, row_took};
use super::{LiveChange, PaneAt, PaneTitle, TrackRow, View, pane_title};
use crate::base::time;
use crate::log::event::{Command, Initiator, SpanId};
use crate::log::world::orchestrator::{Orchestrator, TaskRow, TaskState};
use crate::log::world::{Projection, RunState, World};
use crate::screen::DrawContext;
use crate::screen::action::Action;
use crate::screen::key_hints::Why;
use crate::screen::layout::below;
use crate::screen::list::{ListPane, moved_index, stepped_index};
use crate::screen::run::data::RunData;
use crate::screen::run::layout::{EndedSize, Pane, PaneSizes, RowSize, inner_columns};
use crate::screen::run::pane_text::{
    MAX_ROWS, PaneText, RowShares, TextPane, call_text, outcome_text, rows_scrolled, run_text,
};
use crate::screen::scroll::Scroll;
use crate::screen::text::Pen;
use crate::screen::theme::StateSign;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

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

    /// The text for a subject without a document.
    pub fn text_pane<'a>(&self, run: &'a RunData) -> TextPane<'a> {
        let (subject, call) = (self.subject(run), self.subject_call(run));
        let world = run.shown();
        let finalize = world.orchestrator().and_then(|orchestrator| orchestrator.finalize);
        let words = match (subject, &world.progress.answer, finalize) {
            _ if world.orchestrator().is_none() => run_text(run, call),
            (TaskSubject::Outcome, ..) => outcome_text(run, call),
            (TaskSubject::Finalize, Some(answer), _) => PaneText::complete(answer.as_ref()),
            (TaskSubject::Finalize, None, Some(call)) => call_text(run, call),
            (TaskSubject::Finalize, None, None) => {
                PaneText::note("No report yet: the results come first.")
            }
            (TaskSubject::None, ..) => {
                PaneText::note("No calls yet: what is selected in the waterfall is shown here.")
            }
            _ => PaneText::note(""),
        };
        let prompt = match finalize {
            Some(_) => " view the report's prompt",
            None => " view the failed call",
        };
        let is_outcome = subject == TaskSubject::Outcome;
        TextPane { words, call, is_outcome, prompt, scroll: self.scroll }
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
            self.scroll = self.text_pane(run).scrolled(by, area);
            return;
        }
        // The document as of its last event: a countdown in it must not move lines.
        let document = task_document(run, self.subject(run), run.shown().progress.at);
        let to = self.scroll.unwrap_or_default().step_in(by, &document, area);
        self.scroll = (to != Scroll::default()).then_some(to);
    }

    /// The rows of the waterfall in pane 1.
    pub(super) fn waterfall_list(&self, run: &RunData, tasks: usize, area: Rect) -> ListPane {
        let shown = self.shown_row(run).index(tasks);
        ListPane::new(below(area, waterfall::HEAD), WaterfallRow::count(tasks), shown)
    }

    fn move_in_waterfall(&mut self, run: &RunData, at: PaneAt<'_>, action: Action) {
        let Some(orchestrator) = run.shown().orchestrator() else { return };
        let tasks = orchestrator.tasks.len();
        let from = self.shown_row(run).index(tasks);
        let height = at.areas.pane(Pane::First).map_or(8, |area| usize::from(area.height));
        let page = height.saturating_sub(2).max(1);
        let count = WaterfallRow::count(tasks);
        let to = match action {
            Action::PageUp | Action::PageDown if self.row.is_none() => Some(from),
            Action::PageUp | Action::PageDown => moved_index(action, Some(from), count, page),
            _ => stepped_index(action, self.row.map(|_| from), from, count),
        };
        let Some(to) = to else { return };
        self.select_row(WaterfallRow::from_index(to, tasks));
    }
}

/// Maximum rows of the slots and budgets.
const SLOTS: u16 = 7;

impl View for OrchestratorView {
    fn tabs(&self) -> [&'static str; 4] {
        ["Waterfall", "Task", "Results", "Slots"]
    }

    fn shows_outcome(&self, run: &RunData) -> bool {
        matches!(self.subject(run), TaskSubject::Outcome)
    }

    fn titles(&self) -> [&'static str; 4] {
        ["Waterfall", "Task", "Results", "Slots and budgets"]
    }

    fn layout(&self, run: &RunData, page: Rect) -> PaneSizes {
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
            EndedSize { left, picture, outcome, rows }
        });
        // Time runs to the right, so width shows more of it.
        PaneSizes {
            rows: RowSize::Content(6),
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
                for _ in 0..by.unsigned_abs() {
                    self.move_in_waterfall(run, at, Action::of_wheel(by));
                }
            }
            Pane::Fourth | Pane::Events => return false,
        }
        true
    }

    fn on_click(&mut self, run: &RunData, at: PaneAt<'_>, _col: u16, row: u16) {
        let Some(area) = at.area() else { return };
        match at.pane {
            Pane::First => {
                let tasks = run.shown().orchestrator().map_or(0, |it| it.tasks.len());
                if let Some(at) = self.waterfall_list(run, tasks, area).row_at(row) {
                    self.select_row(WaterfallRow::from_index(at, tasks));
                }
            }
            Pane::Third => {
                let (results, shown) = (RunResults::of(run), self.shown_result(run));
                let width = fields_width(area.width);
                let rows = result_rows(&results, shown, width, usize::from(area.height));
                let clicked = rows.get(usize::from(row - area.y));
                if let Some((_, ResultEntry::Task(task, ..), _)) = clicked {
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
            true => self.text_pane(run).to_text(),
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

    fn available(&self, run: &RunData, _focus: Pane, action: Action) -> Result<(), Why> {
        let is_limit = matches!(action, Action::More | Action::Less);
        Why::unless(is_limit && run.world().orchestrator().is_some())
    }

    fn pane(&self, data: &RunData, pane: Pane, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        match pane {
            Pane::First => waterfall::render(self, data, cx, area, buf),
            Pane::Second => task::render(self, data, cx, area, buf),
            Pane::Third => results::render(self, data, cx, area, buf),
            Pane::Fourth => slots::render(data, cx, area, buf),
            Pane::Events => {}
        }
    }

    fn title(&self, data: &RunData, pane: Pane, cx: &DrawContext, _inside: Rect) -> PaneTitle {
        match pane {
            Pane::Second => PaneTitle::with_sign(task::title(self, data, cx)),
            _ => PaneTitle::plain(pane_title(self.titles(), pane)),
        }
    }

    fn track(&self, data: &RunData, cx: &DrawContext, row: TrackRow, buf: &mut Buffer) {
        let TrackRow { area: row, free } = row;
        let Some(orchestrator) = data.shown().orchestrator() else { return };
        let phases = Phases::of(data, cx, orchestrator);
        let width = aside_width(orchestrator);
        let all = row.width + free.unwrap_or(0);
        let beside = all.saturating_sub(width + 3);
        if free.is_some() && phases.least_width() <= beside {
            phases.draw(cx, Rect { width: row.width.min(beside), ..row }, buf);
            let aside = Rect { x: row.x + all - width, width, ..row };
            self::aside(cx, aside, orchestrator, buf);
        } else {
            phases.draw(cx, Rect { width: all, ..row }, buf);
        }
    }

    fn track_columns(&self, _data: &RunData) -> (u16, u16) {
        (48, 48)
    }
}

/// The subject of the task pane, of the prompt and of the inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSubject {
    Plan,
    /// A task, by its index in the plan.
    Task(usize),
    /// The join: the results combined.
    Join,
    /// The model call for the report.
    Finalize,
    Outcome,
    /// None: no call has been made yet.
    None,
}

/// The subject of the page while this row is selected, or none.
fn subject_of(row: Option<WaterfallRow>, world: &World, plan: &Orchestrator) -> TaskSubject {
    match row {
        Some(WaterfallRow::Plan) => TaskSubject::Plan,
        Some(WaterfallRow::Task(task)) if task < plan.tasks.len() => TaskSubject::Task(task),
        Some(WaterfallRow::Join) => TaskSubject::Join,
        Some(WaterfallRow::Report) => match world.progress.stage {
            RunState::Closed => TaskSubject::Outcome,
            _ => TaskSubject::Finalize,
        },
        Some(WaterfallRow::Task(_)) | None => followed_subject(world, plan),
    }
}

/// The model call of a subject, if there is one.
pub(crate) fn call_of(subject: TaskSubject, plan: &Orchestrator) -> Option<SpanId> {
    match subject {
        TaskSubject::Plan => plan.plan_call,
        TaskSubject::Task(task) => plan.tasks.get(task)?.call,
        TaskSubject::Finalize => plan.finalize,
        TaskSubject::Outcome => plan.finalize.or_else(|| {
            let failed = |critical: bool| {
                let of = |row: &&Arc<TaskRow>| {
                    row.state == TaskState::Failed && row.task.critical == critical
                };
                plan.tasks.iter().find(of)?.call
            };
            failed(true).or_else(|| failed(false)).or(plan.plan_call)
        }),
        TaskSubject::Join | TaskSubject::None => None,
    }
}

fn followed_subject(world: &World, plan: &Orchestrator) -> TaskSubject {
    if world.progress.stage == RunState::Closed {
        return TaskSubject::Outcome;
    }
    if plan.finalize.is_some() {
        return TaskSubject::Finalize;
    }
    if plan.aggregate.is_some() {
        return TaskSubject::Join;
    }
    if plan.tasks.is_empty() {
        return if plan.plan_call.is_some() { TaskSubject::Plan } else { TaskSubject::None };
    }
    let first = |state: TaskState| plan.tasks.iter().position(|row| row.state == state);
    first(TaskState::Running)
        .or_else(|| first(TaskState::Retrying))
        .or_else(|| first(TaskState::Waiting))
        .map_or(TaskSubject::Join, TaskSubject::Task)
}

/// Width of the slots and the queue at the right end of the row.
fn aside_width(orchestrator: &Orchestrator) -> u16 {
    let waiting = orchestrator.count(TaskState::Waiting);
    let all = orchestrator.max_parallel.max(orchestrator.running);
    let drawn = if all <= 12 { all as usize + 1 } else { 0 };
    let figures = format!("{}/{}", orchestrator.running, orchestrator.max_parallel);
    u16::try_from(6 + drawn + figures.len() + 9 + waiting.to_string().len()).unwrap_or(u16::MAX)
}

/// Draws the slots and the queue.
pub(crate) fn aside(cx: &DrawContext, area: Rect, orchestrator: &Orchestrator, buf: &mut Buffer) {
    let dim = cx.theme.style(StyleRole::Dim);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.put("slots ", dim);
    put_slots(cx, &mut pen, orchestrator);
    let waiting = orchestrator.count(TaskState::Waiting).to_string();
    pen.space(3).put("queue ", dim).put(&waiting, cx.theme.style(StyleRole::Text));
}

/// The phases as they are now.
pub(crate) struct Phases {
    /// Plan, join and report, with their durations.
    timed: [(String, StateSign); 3],
    /// The same without durations.
    untimed: [(String, StateSign); 3],
    fan: (String, StateSign),
    /// Tasks that have ended, of all.
    tasks: (usize, usize),
    is_live: bool,
    gap: String,
}

impl Phases {
    pub(crate) fn of(data: &RunData, cx: &DrawContext, orchestrator: &Orchestrator) -> Self {
        let world = data.shown();
        let now = data.drawn_to(cx.now);
        let tasks = (orchestrator.ended(), orchestrator.tasks.len());
        let took = |row| row_took(data, row, now).map(time::duration_text);
        let rests = |id: &str| world.settings.breakpoints.iter().any(|at| at.as_str() == id);
        let piece = |row: WaterfallRow, name: &str, at: &str, timed: bool| {
            let sign = row_sign(cx, world, orchestrator, row);
            let mut text = format!("{name} {}", cx.glyphs.symbol(sign.glyph));
            if rests(at) && !matches!(sign.glyph, Glyph::Done) {
                text.push_str(&format!(" {}", cx.glyphs.symbol(Glyph::Breakpoint)));
            }
            if let Some(took) = took(row).filter(|_| timed) {
                text.push_str(&format!(" {took}"));
            }
            (text, sign)
        };
        let pieces = |timed: bool| {
            [
                piece(WaterfallRow::Plan, "plan", "plan", timed),
                piece(WaterfallRow::Join, "join", "", timed),
                piece(WaterfallRow::Report, "report", "finalize", timed),
            ]
        };
        let fan = fan_sign(cx, data, orchestrator);
        let count = if tasks.1 > 0 { format!(" {}/{}", tasks.0, tasks.1) } else { String::new() };
        Self {
            timed: pieces(true),
            untimed: pieces(false),
            fan: (format!("fan-out {}{count}", cx.glyphs.symbol(fan.glyph)), fan),
            tasks,
            is_live: world.progress.is_live(),
            gap: format!(" {} ", cx.glyphs.symbol(Glyph::Horizontal).repeat(2)),
        }
    }

    /// Columns without the bar and the durations.
    fn least_width(&self) -> u16 {
        self.width(&self.untimed)
    }

    fn width(&self, pieces: &[(String, StateSign); 3]) -> u16 {
        let words: usize = pieces.iter().map(|(text, _)| columns(text)).sum();
        let all = words + columns(&self.fan.0) + 3 * columns(&self.gap);
        u16::try_from(all).unwrap_or(u16::MAX)
    }

    /// Draws the phases, with a bar for the tasks where there is room.
    pub(crate) fn draw(&self, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
        /// Minimum width of the bar.
        const MIN_BAR: u16 = 6;
        let theme = cx.theme;
        let dim = theme.style(StyleRole::Dim);
        // Durations are left out before names are shortened.
        let fits = self.width(&self.timed) <= area.width;
        let shown = if fits { &self.timed } else { &self.untimed };
        let room = area.width.saturating_sub(self.width(shown) + 1).min(48);
        let [plan, join, report] = shown;
        let gap = &self.gap;
        let mut pen = Pen::new(buf, area, cx.glyphs);
        pen.put(&plan.0, plan.1.style).put(gap, dim).put(&self.fan.0, self.fan.1.style);
        let (over, tasks) = self.tasks;
        if room >= MIN_BAR && tasks > 0 {
            pen.space(1);
            let width = room - 1;
            let full = (usize::from(width) * over / tasks).min(usize::from(width)) as u16;
            let tip = u16::from(full < width);
            let role = match (over == tasks, self.is_live) {
                (true, _) => StyleRole::Track,
                (false, true) => StyleRole::TrackNow,
                (false, false) => StyleRole::Failed,
            };
            let style = theme.style(role);
            pen.glyphs(Glyph::TrackFull, full, style).glyphs(Glyph::TrackTip, tip, style);
            pen.glyphs(Glyph::TrackEmpty, width - full - tip, theme.style(StyleRole::TrackEmpty));
        }
        pen.put(gap, dim).put(&join.0, join.1.style);
        pen.put(gap, dim).put(&report.0, report.1.style);
    }
}

/// The state of all tasks together.
fn fan_sign(cx: &DrawContext, data: &RunData, orchestrator: &Orchestrator) -> StateSign {
    let world = data.shown();
    let of = |glyph, word, role| StateSign { glyph, word, style: cx.theme.style(role) };
    let tasks = orchestrator.tasks.len();
    match (&world.progress.stage, tasks > 0 && orchestrator.ended() == tasks) {
        _ if tasks == 0 && world.progress.is_live() => {
            of(Glyph::Waiting, "waiting", StyleRole::Waiting)
        }
        _ if tasks == 0 => of(Glyph::Off, "not reached", StyleRole::Off),
        (_, true) if orchestrator.is_degraded() => of(Glyph::Alert, "degraded", StyleRole::Retry),
        (_, true) => of(Glyph::Done, "done", StyleRole::Done),
        (RunState::Closed, false) => of(Glyph::Failed, "stopped", StyleRole::Failed),
        (RunState::Paused { .. }, false) => of(Glyph::Paused, "paused", StyleRole::Paused),
        (_, false) => of(Glyph::Running, "running", StyleRole::Running),
    }
}
