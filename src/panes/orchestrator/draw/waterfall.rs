//! Pane 1 of an orchestrator: a row for the plan, each task, the join and the report, on one time
//! axis. Rows stay in plan order; only those in view are read.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::sign::row_sign;
use crate::app::layout::line;
use crate::app::run::data::RunData;
use crate::app::run::layout::window_start;
use crate::event::Elapsed;
use crate::event::kind::FailureClass;
use crate::event::world::World;
use crate::narrate::glyph::Glyph;
use crate::panes::orchestrator::task::{TaskWait, task_wait};
use crate::panes::orchestrator::view::OrchestratorView;
use crate::panes::orchestrator::waterfall::{Axis, Bar, HEAD, WaterfallRow, bars, row_took};
use crate::pattern::orchestrator::plan::OrchestratorPlan;
use crate::pattern::orchestrator::projection::{AttemptEnd, Orchestrator, TaskState};
use crate::pattern::orchestrator::words::results::task_cause;
use crate::scenario::spec::script::ScriptStep;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::table;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Width of a row's duration.
const TOOK: u16 = 7;
/// Width of the mark of a slow row.
const SLOW_MARK: u16 = 5;
/// Minimum width of the axis.
const LEAST: u16 = 12;

/// Fewest columns of a note that is cut.
const LEAST_NOTE: u16 = 12;

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
        let room = area.width.saturating_sub(fixed + LEAST);
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

/// Draws the pane.
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
    if places.axis.width >= LEAST {
        head(cx, area, &places, axis, buf);
    }
    let rows = usize::from(area.height.saturating_sub(HEAD));
    let tasks = orchestrator.tasks.len();
    let count = WaterfallRow::count(tasks);
    let top = window_start(view.shown_row(data).index(tasks), count, rows);
    for nth in 0..rows {
        let Some(row) = WaterfallRow::from_index(top + nth, tasks) else { break };
        let at = line(area, HEAD + nth as u16);
        one_row(view, data, cx, at, row, &places, axis, now, buf);
    }
    if count > rows && rows > 0 {
        let text = table::range(top, rows, count);
        let width = places.axis.x - area.x;
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put_within(
            &text,
            width.saturating_sub(1),
            cx.theme.style(StyleRole::Dim),
        );
    }
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
    let mut pen = table::row_or_blank(cx, area, selected, buf);
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
        let cut = Some(wider).filter(|place| place.width >= LEAST_NOTE);
        let place = [after, before].into_iter().find(fits);
        if let Some(rest) = place.or(bars.is_empty().then_some(line)).or(cut) {
            Pen::new(buf, rest, cx.glyphs).put_within(&text, rest.width, cx.theme.style(role));
        }
    }
    let took = row_took(data, row, now);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    if let Some(took) = took {
        let text = format::duration_text(took);
        // A timeout beyond the axis is named next to the time that has passed.
        let limit = timeout.filter(|(at, _)| !on_axis(*at)).map(|(_, after)| after);
        let limited = limit.map(|after| format!("{text} of {}", format::duration_text(after)));
        let from = |text: &str| {
            let width = columns(text) as u16;
            (track.right() + 1).min(area.right().saturating_sub(width))
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
            let own = orchestrator.plan.task_timeout_ms;
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
                    TaskWait::Slot { .. } | TaskWait::Retry { .. } => {
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
