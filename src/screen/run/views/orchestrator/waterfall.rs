//! Pane 1 of an orchestrator: a row for the plan, each task, the join and the report, on one time
//! axis. Rows stay in plan order; only those in view are read.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::OrchestratorView;
use super::task::{TaskWait, row_sign, task_wait};
use crate::base::time;
use crate::base::time::millis;
use crate::log::event::{Elapsed, FailureClass, SpanId};
use crate::log::facts::orchestrator::OrchestratorPlan;
use crate::log::world::orchestrator::{AttemptEnd, Orchestrator, TaskState};
use crate::log::world::{SpanKind, SpanState, World};
use crate::scenario::spec::script::ScriptStep;
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::text::Pen;
use crate::screen::{DrawContext, list};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::patterns::orchestrator::task_cause;
use crate::words::styled::StyleRole;

/// Rows of the pane above the waterfall: the axis.
pub const HEAD: u16 = 1;
/// Rows besides tasks: the plan above them, the join and the report below.
const EXTRA_ROWS: usize = 3;
/// Possible ends of the axis of a run that is running, as multiples of a power of ten milliseconds:
/// with so few of them, bars keep their place for long.
const LIVE_ENDS: [u64; 3] = [2, 5, 10];
/// The end of the axis of a run that has just begun, in microseconds.
const FIRST_END: u64 = 1_000_000;
/// Possible intervals between two marks of the axis, in milliseconds.
const STEPS: [u64; 20] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 43_200_000,
];
/// Minimum columns between two marks of the axis.
const MIN_MARK_COLUMNS: u64 = 9;

/// A row of the waterfall. A run accepts one plan, so a task keeps its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaterfallRow {
    /// The model call for the plan.
    Plan,
    /// A task, by its index in the plan, from 0.
    Task(usize),
    /// The join: the results combined.
    Join,
    /// The model call for the report.
    Report,
}

impl WaterfallRow {
    /// The row with this index, from 0, in a waterfall of `tasks` tasks.
    pub fn from_index(place: usize, tasks: usize) -> Option<WaterfallRow> {
        match place {
            0 => Some(Self::Plan),
            _ if place <= tasks => Some(Self::Task(place - 1)),
            _ if place == tasks + 1 => Some(Self::Join),
            _ if place == tasks + 2 => Some(Self::Report),
            _ => None,
        }
    }

    /// The index of the row, from 0.
    pub fn index(self, tasks: usize) -> usize {
        match self {
            Self::Plan => 0,
            Self::Task(task) => task + 1,
            Self::Join => tasks + 1,
            Self::Report => tasks + 2,
        }
    }

    /// Number of rows for this many tasks.
    pub fn count(tasks: usize) -> usize {
        tasks + EXTRA_ROWS
    }
}

/// An attempt as a bar in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub opened: Elapsed,
    /// When it ended; `None` while it runs.
    pub closed: Option<Elapsed>,
    pub end: AttemptEnd,
}

/// The time axis of a waterfall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Microseconds from the first column to the end of the last.
    pub end: u64,
    /// Microseconds between two marks.
    pub step: u64,
}

impl Axis {
    /// The axis of a run up to `now`, in its own time, on this many columns. That of a run that is
    /// still running ends later, so that its bars keep their place for long.
    pub fn covering(now: Duration, columns: u16, is_live: bool) -> Axis {
        let columns = u64::from(columns.max(1));
        let micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1);
        let micros = if is_live { live_end(micros) } else { micros };
        let step = STEPS
            .into_iter()
            .map(|ms| ms * 1_000)
            .find(|step| {
                let end = micros.div_ceil(*step) * step;
                u128::from(*step) * u128::from(columns)
                    >= u128::from(end) * u128::from(MIN_MARK_COLUMNS)
            })
            .unwrap_or(micros);
        Axis { end: micros.div_ceil(step).saturating_mul(step).max(1), step }
    }

    /// The column of a moment of the run's own time.
    pub fn column(&self, at: Duration, columns: u16) -> u16 {
        let micros = at.as_micros().min(u128::from(self.end));
        let nth = micros * u128::from(columns) / u128::from(self.end);
        u16::try_from(nth).unwrap_or(u16::MAX).min(columns.saturating_sub(1))
    }

    /// The moments with a mark.
    pub fn marks(&self) -> impl Iterator<Item = Duration> {
        let (end, step) = (self.end, self.step.max(1));
        (0..end / step).map(move |nth| Duration::from_micros(nth * step))
    }
}

/// The end of the axis of a running run, in microseconds.
fn live_end(micros: u64) -> u64 {
    let mut ten = FIRST_END / 10;
    loop {
        let ends = LIVE_ENDS.into_iter().map(|times| ten.saturating_mul(times));
        if let Some(end) = ends.filter(|end| *end >= FIRST_END).find(|end| *end >= micros) {
            return end;
        }
        ten = ten.saturating_mul(10);
    }
}

/// The attempts of a row's call, in order.
pub fn bars(run: &RunData, row: WaterfallRow) -> Vec<Bar> {
    let world = run.shown();
    let Some(plan) = world.orchestrator() else { return Vec::new() };
    let of_call = |call: Option<SpanId>| {
        let attempts = call.map(|call| world.spans.children(call)).into_iter().flatten();
        let bar = |span: &crate::log::world::Span| Bar {
            opened: span.opened,
            closed: span.closed,
            end: match span.state {
                SpanState::Open => AttemptEnd::InFlight,
                SpanState::Done => AttemptEnd::Answered,
                SpanState::Failed(class) => AttemptEnd::Failed(class.unwrap_or(FailureClass::Tool)),
                SpanState::Denied => AttemptEnd::Failed(FailureClass::Denied),
            },
        };
        attempts.filter(|span| matches!(span.kind, SpanKind::Attempt(_))).map(bar).collect()
    };
    match row {
        WaterfallRow::Plan => of_call(plan.plan_call),
        WaterfallRow::Report => of_call(plan.finalize),
        WaterfallRow::Join => Vec::new(),
        WaterfallRow::Task(task) => {
            let bars = plan.tasks.get(task).map(|row| row.attempts.iter());
            let bar = |it: &crate::log::world::orchestrator::AttemptBar| Bar {
                opened: it.opened,
                closed: it.closed,
                end: it.end,
            };
            bars.into_iter().flatten().map(bar).collect()
        }
    }
}

/// How long a row has taken up to `now`, without pauses; `None` before it begins.
pub fn row_took(run: &RunData, row: WaterfallRow, now: Elapsed) -> Option<Duration> {
    let world = run.shown();
    let plan = world.orchestrator()?;
    let of_call = |call: Option<SpanId>| {
        let span = world.spans.get(call?)?;
        Some(world.progress.active_between(span.opened, span.closed.unwrap_or(now)))
    };
    match row {
        WaterfallRow::Plan => of_call(plan.plan_call),
        WaterfallRow::Report => of_call(plan.finalize),
        WaterfallRow::Join => None,
        WaterfallRow::Task(task) => {
            let row = plan.tasks.get(task)?;
            Some(world.progress.active_between(row.opened?, row.closed.unwrap_or(now)))
        }
    }
}

/// Width of a row's duration.
const TOOK: u16 = 7;
/// Width of the mark of a slow row.
const SLOW_MARK: u16 = 5;
/// Minimum width of the axis.
const MIN_AXIS: u16 = 12;

/// Minimum width of a note that is cut.
const MIN_NOTE: u16 = 12;

/// The layout of a row.
struct WaterfallColumns {
    id: u16,
    worker: u16,
    axis: Rect,
    late: bool,
}

impl WaterfallColumns {
    fn for_area(
        area: Rect,
        orchestrator: &Orchestrator,
        plan: &OrchestratorPlan,
    ) -> WaterfallColumns {
        let longest = |lens: &mut dyn Iterator<Item = usize>| {
            u16::try_from(lens.max().unwrap_or(0)).unwrap_or(u16::MAX)
        };
        let id = longest(&mut orchestrator.tasks.iter().map(|row| row.task.id.as_str().len()));
        let worker = longest(&mut plan.workers.iter().map(|worker| worker.name.as_str().len()));
        let id = id.clamp(6, 14).min(area.width / 4);
        // Selection, state, blank; a blank after each name; the duration after the axis.
        let fixed = 3 + id + 1 + TOOK + 1;
        let room = area.width.saturating_sub(fixed + MIN_AXIS);
        let worker = worker.min(20).min(room / 2);
        let worker = if worker < 5 { 0 } else { worker };
        let late = area.width > fixed + worker + 40;
        let left = 3 + id + 1 + if worker > 0 { worker + 1 } else { 0 };
        let right = TOOK + 1 + if late { SLOW_MARK + 1 } else { 0 };
        let width = area.width.saturating_sub(left + right);
        let axis = Rect { x: area.x + left.min(area.width), width, ..area };
        WaterfallColumns { id, worker, axis, late }
    }
}

pub(crate) fn render(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(orchestrator) = world.orchestrator() else { return };
    let plan = &*orchestrator.plan;
    let places = WaterfallColumns::for_area(area, orchestrator, plan);
    let now = data.drawn_to(cx.now);
    // The axis is that of the whole run, wherever the playhead is: bars do not move under it.
    let run = &data.world().progress;
    let end = run.run_time(data.head_time(cx.now));
    let axis = Axis::covering(end, places.axis.width, run.is_live());
    if places.axis.width >= MIN_AXIS {
        head(cx, area, &places, axis, buf);
    }
    let tasks = orchestrator.tasks.len();
    let list = view.waterfall_list(data, tasks, area);
    for (index, at) in list.rows() {
        let Some(row) = WaterfallRow::from_index(index, tasks) else { break };
        one_row(view, data, cx, at, row, &places, axis, now, buf);
    }
    let width = places.axis.x.saturating_sub(area.x + 1);
    let dim = cx.theme.style(StyleRole::Dim);
    Pen::new(buf, line(area, 0), cx.glyphs).space(1).put_within(&list.range_text(), width, dim);
}

/// Draws the times along the axis.
fn head(cx: &DrawContext, area: Rect, places: &WaterfallColumns, axis: Axis, buf: &mut Buffer) {
    let dim = cx.theme.style(StyleRole::Dim);
    let apart = Duration::from_micros(axis.step);
    // In a short run adjacent marks may have the same label.
    let mut before = String::new();
    for at in axis.marks() {
        let x = places.axis.x + axis.column(at, places.axis.width);
        let text = format::axis_time(at, apart);
        let here = Rect { x, width: places.axis.right().saturating_sub(x), height: 1, ..area };
        if here.width as usize >= columns(&text) && text != before {
            Pen::new(buf, here, cx.glyphs).put(&text, dim);
            before = text;
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "one row of one pane, all of it context")]
fn one_row(
    view: &OrchestratorView,
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    row: WaterfallRow,
    places: &WaterfallColumns,
    axis: Axis,
    now: Elapsed,
    buf: &mut Buffer,
) {
    let world = data.shown();
    let Some(orchestrator) = world.orchestrator() else { return };
    let (plain, dim) = (cx.theme.style(StyleRole::Text), cx.theme.style(StyleRole::Dim));
    let sign = row_sign(cx, world, orchestrator, row);
    let (id, worker) = match row {
        WaterfallRow::Plan => ("plan", world.models.for_step(ScriptStep::Plan).unwrap_or_default()),
        WaterfallRow::Join => ("join", ""),
        WaterfallRow::Report => {
            ("report", world.models.for_step(ScriptStep::Finalize).unwrap_or_default())
        }
        WaterfallRow::Task(task) => orchestrator
            .tasks
            .get(task)
            .map_or(("", ""), |row| (row.task.id.as_str(), row.task.worker.as_str())),
    };
    let selected = view.waterfall_row() == Some(row);
    let mut pen = list::row_or_blank(cx, area, selected, buf);
    pen.glyph(sign.glyph, sign.style).space(1);
    pen.name(id, places.id, plain).space(1);
    if places.worker > 0 {
        pen.name(worker, places.worker, dim);
    }
    let track = Rect { y: area.y, height: area.height, ..places.axis };
    let bars = bars(data, row);
    let column = |at: Elapsed| axis.column(world.progress.run_time(at), track.width);
    let queued = queued(orchestrator, row, now).map(|(from, to)| (column(from), column(to)));
    queue_line(cx, track, queued, buf);
    person_waits(cx, world, track, row_span(orchestrator, row), &column, now, buf);
    let end = segments(cx, track, &bars, &column, now, world.progress.is_live(), buf);
    let timeout = timeout_of(world, orchestrator, row, &bars);
    let on_axis = |at: Elapsed| world.progress.run_time(at).as_micros() <= u128::from(axis.end);
    if let Some((at, _)) = timeout.filter(|(at, _)| on_axis(*at)) {
        let x = track.x + column(at);
        if x >= end && x < track.right() {
            let place = Rect { x, width: 1, ..track };
            Pen::new(buf, place, cx.glyphs).glyph(Glyph::Timeout, dim);
        }
    }
    if let Some((text, role)) = row_note(world, orchestrator, row, now) {
        let queue_end = queued.map_or(track.x, |(_, to)| track.x + to + 1);
        let from = if bars.is_empty() { queue_end } else { end + 1 };
        let after = Rect { x: from, width: track.right().saturating_sub(from), ..track };
        // If there is no room after the attempts, the note goes before them, and that of a task that
        // only waits over its line.
        let opened = bars.first().map(|bar| column(bar.opened));
        let first = track.x + queued.map(|(from, _)| from).or(opened).unwrap_or(0);
        let before = Rect { width: (first - track.x).saturating_sub(1), ..track };
        let line = Rect { x: first, width: track.right().saturating_sub(first), ..track };
        let fits = |place: &Rect| columns(&text) <= usize::from(place.width);
        // A text that is cut has the wider of the two places.
        let wider = if after.width >= before.width { after } else { before };
        let cut = Some(wider).filter(|place| place.width >= MIN_NOTE);
        let place = [after, before].into_iter().find(fits);
        if let Some(rest) = place.or(bars.is_empty().then_some(line)).or(cut) {
            Pen::new(buf, rest, cx.glyphs).put_within(&text, rest.width, cx.theme.style(role));
        }
    }
    let took = row_took(data, row, now);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    if let Some(took) = took {
        let text = time::duration_text(took);
        // A timeout beyond the axis is named next to the time that has passed.
        let limit = timeout.filter(|(at, _)| !on_axis(*at)).map(|(_, after)| after);
        let limited = limit.map(|after| format!("{text} of {}", time::duration_text(after)));
        let from = |text: &str| {
            let width = columns(text) as u16;
            (track.right() + 1).min(area.right().saturating_sub(width + 1))
        };
        match limited.filter(|text| from(text) > end) {
            Some(text) => pen.advance_to(from(&text)).put(&text, plain),
            None => pen.advance_to(track.right() + 1).cell(&text, TOOK, plain),
        };
    }
    if let Some(p95) =
        took.filter(|_| places.late).and_then(|took| slow_mark(world, orchestrator, row, took))
    {
        pen.advance_to(track.right() + 1 + TOOK).put(p95, cx.theme.style(StyleRole::Retry));
    }
}

/// When the running attempt of a row will time out, and after how long; `None`: none runs.
fn timeout_of(
    world: &World,
    orchestrator: &Orchestrator,
    row: WaterfallRow,
    bars: &[Bar],
) -> Option<(Elapsed, Duration)> {
    let bar = bars.last().filter(|bar| bar.end == AttemptEnd::InFlight)?;
    let of_tool = |name: &str| world.tools.get(name).map(|tool| tool.head.limits.timeout_ms);
    let ms = match row {
        WaterfallRow::Plan | WaterfallRow::Report => of_tool("llm")?,
        WaterfallRow::Task(task) => {
            let worker = orchestrator.tasks.get(task)?.task.worker.as_str();
            let own = millis(orchestrator.plan.budget.task_timeout);
            of_tool(worker).map_or(own, |tool| tool.min(own))
        }
        WaterfallRow::Join => return None,
    };
    let after = Duration::from_millis(ms);
    let is_live = world.progress.is_live() && ms > 0;
    is_live.then(|| (Elapsed(bar.opened.0.saturating_add(ms.saturating_mul(1_000))), after))
}

/// The mark of a running task that has exceeded its worker's 95th percentile.
fn slow_mark(
    world: &World,
    orchestrator: &Orchestrator,
    row: WaterfallRow,
    took: Duration,
) -> Option<&'static str> {
    let WaterfallRow::Task(task) = row else { return None };
    let row = orchestrator.tasks.get(task).filter(|row| !row.has_ended())?;
    let p95 = world.tools.get(row.task.worker.as_str())?.latencies.percentile(95)?;
    (took > p95).then_some(">p95")
}

/// The time in which a task waited for a slot, up to `now`.
fn queued(
    orchestrator: &Orchestrator,
    row: WaterfallRow,
    now: Elapsed,
) -> Option<(Elapsed, Elapsed)> {
    let WaterfallRow::Task(task) = row else { return None };
    let row = orchestrator.tasks.get(task)?;
    let until = row.opened.or(row.closed).unwrap_or(now);
    (until > row.planned).then_some((row.planned, until))
}

/// Draws the time that a task waited for a slot as a thin line, up to the column of its start.
fn queue_line(cx: &DrawContext, track: Rect, queued: Option<(u16, u16)>, buf: &mut Buffer) {
    let Some((from, to)) = queued.filter(|(from, to)| from < to) else { return };
    let place = Rect { x: track.x + from, width: to - from, ..track };
    let mut pen = Pen::new(buf, place, cx.glyphs);
    pen.glyphs(Glyph::Wait, place.width, cx.theme.style(StyleRole::Dim));
}

/// The span of a task's row.
fn row_span(orchestrator: &Orchestrator, row: WaterfallRow) -> Option<SpanId> {
    let WaterfallRow::Task(task) = row else { return None };
    orchestrator.tasks.get(task)?.span
}

/// Draws the times in which a row waited for people, in a pattern that no attempt has.
fn person_waits(
    cx: &DrawContext,
    world: &World,
    track: Rect,
    span: Option<SpanId>,
    column: &dyn Fn(Elapsed) -> u16,
    now: Elapsed,
    buf: &mut Buffer,
) {
    for (from, until) in span.map(|span| world.waits_within(span)).unwrap_or_default() {
        let (from, to) = (column(from), column(until.unwrap_or(now)));
        let last = track.width.saturating_sub(1);
        let (from, to) = (from.min(last), to.min(last));
        let place = Rect { x: track.x + from, width: to - from + 1, ..track }.intersection(track);
        let style = cx.theme.waiting_style();
        Pen::new(buf, place, cx.glyphs).glyphs(Glyph::NeedsYou, place.width, style);
    }
}

/// Draws the attempts of a row on the axis; returns the column after the last one.
fn segments(
    cx: &DrawContext,
    track: Rect,
    bars: &[Bar],
    column: &dyn Fn(Elapsed) -> u16,
    now: Elapsed,
    live: bool,
    buf: &mut Buffer,
) -> u16 {
    let mut before: Option<u16> = None;
    let mut after = track.x;
    if track.width == 0 {
        return after;
    }
    for bar in bars {
        let from = track.x + column(bar.opened);
        let to = track.x + column(bar.closed.unwrap_or(now));
        // Every attempt gets at least one column.
        let from = from.max(after).min(track.right() - 1);
        let to = to.max(from);
        if let Some(before) = before.filter(|before| *before < from) {
            let wait = Rect { x: before, width: from - before, ..track };
            let mut pen = Pen::new(buf, wait, cx.glyphs);
            pen.glyph(Glyph::Retry, cx.theme.style(StyleRole::Retry));
            let left = pen.left();
            pen.glyphs(Glyph::Wait, left, cx.theme.style(StyleRole::Dim));
        }
        let (role, mark) = match bar.end {
            AttemptEnd::InFlight if live => (StyleRole::Running, None),
            AttemptEnd::InFlight => (StyleRole::Off, None),
            AttemptEnd::Answered => (StyleRole::Done, None),
            AttemptEnd::Refused => (StyleRole::Refused, Some(Glyph::Refused)),
            AttemptEnd::Failed(FailureClass::Cancelled) => (StyleRole::Off, Some(Glyph::Off)),
            AttemptEnd::Failed(_) => (StyleRole::Failed, Some(Glyph::Failed)),
        };
        let style = cx.theme.style(role);
        let width = to - from + 1;
        let place = Rect { x: from, width, ..track };
        let mut pen = Pen::new(buf, place, cx.glyphs);
        let mut width = width - u16::from(mark.is_some());
        // If the wait was too short for a column, the attempt's first column shows the retry.
        if before == Some(from) && width > 1 {
            pen.glyph(Glyph::Retry, cx.theme.style(StyleRole::Retry));
            width -= 1;
        }
        pen.glyphs(Glyph::Segment, width, style);
        if let Some(mark) = mark {
            pen.glyph(mark, style);
        }
        after = to + 1;
        before = Some(after);
    }
    after
}

/// The text on a row's axis: what it waits for, or the reason of its state.
fn row_note(
    world: &World,
    orchestrator: &Orchestrator,
    row: WaterfallRow,
    now: Elapsed,
) -> Option<(String, StyleRole)> {
    match row {
        WaterfallRow::Task(task) => {
            let row = orchestrator.tasks.get(task)?;
            if let Some(wait) = task_wait(world, orchestrator, row, now) {
                return Some(match wait {
                    TaskWait::Paused { .. } => (wait.to_string(), StyleRole::Paused),
                    TaskWait::Slot { .. } | TaskWait::Held | TaskWait::Retry { .. } => {
                        (format!("waiting {wait}"), StyleRole::Dim)
                    }
                });
            }
            match (row.state, row.fallback) {
                (TaskState::Failed, _) => {
                    let cause = task_cause(row)?;
                    // The row has the worker's name already.
                    let own = cause.strip_prefix(row.task.worker.as_str());
                    let own = own.map_or(&*cause, str::trim_start).to_owned();
                    Some((own, StyleRole::Failed))
                }
                (TaskState::Degraded, Some(fallback)) => {
                    Some((fallback.word().to_owned(), StyleRole::Retry))
                }
                _ => None,
            }
        }
        WaterfallRow::Plan => {
            let refused = orchestrator.refused.as_ref()?;
            Some((refused.0.phrase().into_owned(), StyleRole::Refused))
        }
        WaterfallRow::Join if orchestrator.aggregate.is_none() && world.progress.is_live() => {
            let open = || orchestrator.tasks.iter().filter(|row| !row.has_ended());
            let names: Vec<&str> = open().take(6).map(|row| row.task.id.as_str()).collect();
            let text = match names.as_slice() {
                [] => "waiting for the plan".to_owned(),
                names if open().count() > names.len() => {
                    format!("waiting for {} tasks", open().count())
                }
                names => format!("waiting for {}", names.join(" ")),
            };
            Some((text, StyleRole::Dim))
        }
        WaterfallRow::Report if orchestrator.finalize.is_none() && world.progress.is_live() => {
            Some(("waiting for the join".to_owned(), StyleRole::Dim))
        }
        WaterfallRow::Join | WaterfallRow::Report => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_one_row() {
        for tasks in [0, 1, 7] {
            for place in 0..WaterfallRow::count(tasks) {
                assert_eq!(
                    WaterfallRow::from_index(place, tasks).map(|row| row.index(tasks)),
                    Some(place)
                );
            }
            assert_eq!(WaterfallRow::from_index(WaterfallRow::count(tasks), tasks), None);
        }
    }

    #[test]
    fn axis_grows_in_whole_steps() {
        for (columns, is_live) in
            [1, 10, 30, 48, 120].into_iter().flat_map(|n| [(n, true), (n, false)])
        {
            let mut before = 0;
            for ms in [1, 40, 260, 999, 1_000, 4_999, 12_345, 61_000, 900_000, 90_000_000] {
                let now = Duration::from_millis(ms);
                let axis = Axis::covering(now, columns, is_live);
                assert!(
                    u128::from(axis.end) >= now.as_micros() && axis.end.is_multiple_of(axis.step)
                );
                assert!(axis.end >= before, "it never shrinks");
                before = axis.end;
                assert!(axis.column(now, columns) < columns);
                assert!(axis.marks().count() as u64 <= u64::from(columns) / MIN_MARK_COLUMNS + 1);
            }
        }
    }

    #[test]
    fn running_bars_rarely_move() {
        // A run of 90 s, looked at ten times a second.
        let looks = (1..900).map(|nth| Duration::from_millis(nth * 100));
        let mut ends: Vec<u64> = looks.map(|now| Axis::covering(now, 60, true).end).collect();
        ends.dedup();
        let seconds: Vec<u64> = ends.into_iter().map(|end| end / 1_000_000).collect();
        assert_eq!(seconds, [1, 2, 5, 10, 20, 50, 100]);
    }
}
