//! Pane 1 of an orchestrator: a row for the plan, each task, the join and the report, on one time
//! axis. Rows stay in plan order; only those in view are read.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{line, row_style};
use crate::app::run::table::first_seat;
use crate::app::run::task::waits_for;
use crate::app::run::waterfall::{Axis, Bar, HEAD};
use crate::app::run::{Row, RunPage};
use crate::event::Elapsed;
use crate::event::kind::{FailureClass, OrchestratorPlan};
use crate::event::world::orchestrator::{AttemptEnd, Orchestrator, TaskRow, TaskState};
use crate::event::world::{Stage, World};
use crate::ui::Cx;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::{Role, Sign};

/// Width of a row's duration.
const TOOK: u16 = 7;
/// Width of the mark of a slow row.
const LATE: u16 = 5;
/// Minimum width of the axis.
const LEAST: u16 = 12;

/// The layout of a row.
struct Columns {
    id: u16,
    worker: u16,
    axis: Rect,
    late: bool,
}

impl Columns {
    fn of(area: Rect, orchestrator: &Orchestrator, plan: &OrchestratorPlan) -> Columns {
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
        let right = TOOK + 1 + if late { LATE + 1 } else { 0 };
        let width = area.width.saturating_sub(left + right);
        let axis = Rect { x: area.x + left.min(area.width), width, ..area };
        Columns { id, worker, axis, late }
    }
}

/// Draws the pane.
pub(super) fn render(page: &RunPage, cx: &Cx, area: Rect, buf: &mut Buffer) {
    let world = page.shown();
    let Some((orchestrator, plan)) = world.orchestrator() else { return };
    let places = Columns::of(area, orchestrator, plan);
    let now = page.drawn_to(cx.now);
    let axis = Axis::of(now, places.axis.width);
    if places.axis.width >= LEAST {
        head(cx, area, &places, axis, buf);
    }
    let rows = usize::from(area.height.saturating_sub(HEAD));
    let tasks = orchestrator.tasks.len();
    let count = Row::count(tasks);
    let top = first_seat(page.shown_row().place(tasks), count, rows);
    for nth in 0..rows {
        let Some(row) = Row::at(top + nth, tasks) else { break };
        let at = line(area, HEAD + nth as u16);
        row_style(cx, at, page.waterfall_row() == Some(row), buf);
        one_row(page, cx, at, row, &places, axis, now, buf);
    }
    if count > rows && rows > 0 {
        let text = format!("{}-{} of {count}", top + 1, (top + rows).min(count));
        let width = places.axis.x - area.x;
        Pen::new(buf, line(area, 0), cx.glyphs).space(1).put_within(
            &text,
            width.saturating_sub(1),
            cx.theme.style(Role::Dim),
        );
    }
}

/// Draws the times along the axis.
fn head(cx: &Cx, area: Rect, places: &Columns, axis: Axis, buf: &mut Buffer) {
    let dim = cx.theme.style(Role::Dim);
    let fine = axis.step < 1_000_000;
    // In a short run adjacent marks may have the same label.
    let mut before = String::new();
    for at in axis.marks() {
        let x = places.axis.x + axis.column(at, places.axis.width);
        let text = if fine { format::moment(at) } else { format::clock(at.duration()) };
        let here = Rect { x, width: places.axis.right().saturating_sub(x), height: 1, ..area };
        if here.width as usize >= columns(&text) && text != before {
            Pen::new(buf, here, cx.glyphs).put(&text, dim);
            before = text;
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "one row of one pane, all of it context")]
fn one_row(
    page: &RunPage,
    cx: &Cx,
    area: Rect,
    row: Row,
    places: &Columns,
    axis: Axis,
    now: Elapsed,
    buf: &mut Buffer,
) {
    let world = page.shown();
    let Some((orchestrator, _)) = world.orchestrator() else { return };
    let (plain, dim) = (cx.theme.style(Role::Text), cx.theme.style(Role::Dim));
    let sign = sign(cx, world, orchestrator, row);
    let (id, worker) = match row {
        Row::Plan => ("plan", world.models.plan().unwrap_or_default()),
        Row::Join => ("join", ""),
        Row::Report => ("report", world.models.finalize().unwrap_or_default()),
        Row::Task(task) => orchestrator
            .tasks
            .get(task)
            .map_or(("", ""), |row| (row.task.id.as_str(), row.task.worker.as_str())),
    };
    let mut pen = Pen::new(buf, area, cx.glyphs);
    let selected = page.waterfall_row() == Some(row);
    pen.put(if selected { cx.glyphs.of(Glyph::Selected) } else { " " }, cx.theme.style(Role::Key));
    pen.glyph(sign.glyph, sign.style).space(1);
    pen.name(id, places.id, plain).space(1);
    if places.worker > 0 {
        pen.name(worker, places.worker, dim);
    }
    let track = Rect { y: area.y, height: area.height, ..places.axis };
    let bars = page.bars(row);
    let live = world.is_live();
    let end = segments(cx, track, &bars, axis, now, live, buf);
    let note = note(world, orchestrator, row, now);
    if let Some((text, role)) = note {
        let from = if bars.is_empty() { track.x } else { end + 1 };
        let after = Rect { x: from, width: track.right().saturating_sub(from), ..track };
        // If there is no room after the attempts, the note goes before them.
        let first =
            bars.first().map_or(track.x, |bar| track.x + axis.column(bar.opened, track.width));
        let before = Rect { width: (first - track.x).saturating_sub(1), ..track };
        let fits = columns(&text) <= usize::from(after.width) || before.width < after.width;
        let rest = if fits { after } else { before };
        if bars.is_empty() || columns(&text) <= usize::from(rest.width) {
            Pen::new(buf, rest, cx.glyphs).put(&text, cx.theme.style(role));
        }
    }
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.to(track.right() + 1);
    let took = page.row_took(row, now);
    if let Some(took) = took {
        pen.cell(&format::took(took), TOOK, plain);
    }
    if let Some(p95) =
        took.filter(|_| places.late).and_then(|took| late(world, orchestrator, row, took))
    {
        pen.to(track.right() + 1 + TOOK).put(p95, cx.theme.style(Role::Retry));
    }
}

/// The mark of a running task that has exceeded its worker's 95th percentile.
fn late(
    world: &World,
    orchestrator: &Orchestrator,
    row: Row,
    took: Duration,
) -> Option<&'static str> {
    let Row::Task(task) = row else { return None };
    let row = orchestrator.tasks.get(task).filter(|row| !row.is_over())?;
    let p95 = world.tools.get(row.task.worker.as_str())?.latencies.percentile(95)?;
    (took > p95).then_some(">p95")
}

/// Draws the attempts of a row on the axis; returns the column after the last one.
fn segments(
    cx: &Cx,
    track: Rect,
    bars: &[Bar],
    axis: Axis,
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
        let from = track.x + axis.column(bar.opened, track.width);
        let to = track.x + axis.column(bar.closed.unwrap_or(now), track.width);
        // Every attempt gets at least one column.
        let from = from.max(after).min(track.right() - 1);
        let to = to.max(from);
        if let Some(before) = before.filter(|before| *before < from) {
            let wait = Rect { x: before, width: from - before, ..track };
            let mut pen = Pen::new(buf, wait, cx.glyphs);
            pen.glyph(Glyph::Retry, cx.theme.style(Role::Retry));
            let left = pen.left();
            pen.glyphs(Glyph::Wait, left, cx.theme.style(Role::Dim));
        }
        let (role, mark) = match bar.end {
            AttemptEnd::Out if live => (Role::Running, None),
            AttemptEnd::Out => (Role::Off, None),
            AttemptEnd::Answered => (Role::Done, None),
            AttemptEnd::Refused => (Role::Refused, Some(Glyph::Refused)),
            AttemptEnd::Failed(FailureClass::Cancelled) => (Role::Off, Some(Glyph::Off)),
            AttemptEnd::Failed(_) => (Role::Failed, Some(Glyph::Failed)),
        };
        let style = cx.theme.style(role);
        let width = to - from + 1;
        let place = Rect { x: from, width, ..track };
        let mut pen = Pen::new(buf, place, cx.glyphs);
        let mut width = width - u16::from(mark.is_some());
        // If the wait was too short for a column, the attempt's first column shows the retry.
        if before == Some(from) && width > 1 {
            pen.glyph(Glyph::Retry, cx.theme.style(Role::Retry));
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

/// The state of a row.
pub(super) fn sign(cx: &Cx, world: &World, orchestrator: &Orchestrator, row: Row) -> Sign {
    let live = world.is_live();
    let of = |glyph, word, role| Sign { glyph, word, style: cx.theme.style(role) };
    let waiting = |live: bool| match live {
        true => of(Glyph::Waiting, "waiting", Role::Waiting),
        false => of(Glyph::Off, "not reached", Role::Off),
    };
    let going = |live: bool, word| match live {
        true => of(Glyph::Running, word, Role::Running),
        false => of(Glyph::Failed, "stopped", Role::Failed),
    };
    match row {
        Row::Plan => match (&orchestrator.refused, orchestrator.plan_call) {
            (Some(_), _) => of(Glyph::Refused, "refused", Role::Refused),
            _ if !orchestrator.tasks.is_empty() => of(Glyph::Done, "accepted", Role::Done),
            (None, Some(_)) => going(live, "planning"),
            (None, None) => waiting(live),
        },
        Row::Task(task) => match orchestrator.tasks.get(task) {
            Some(row) => task_sign(cx, world, row),
            None => waiting(live),
        },
        Row::Join => match orchestrator.aggregate {
            Some(_) => of(Glyph::Done, "joined", Role::Done),
            None => waiting(live),
        },
        Row::Report => match (&world.answer, orchestrator.finalize) {
            (Some(_), _) => of(Glyph::Done, "composed", Role::Done),
            (None, Some(_)) => going(live, "writing"),
            (None, None) => waiting(live),
        },
    }
}

/// The state of a task. After the run's end no task is waiting or running.
pub(super) fn task_sign(cx: &Cx, world: &World, row: &TaskRow) -> Sign {
    match (&world.stage, row.state) {
        (Stage::Closed, TaskState::Waiting) => {
            Sign { word: "not started", ..cx.theme.task(TaskState::Cancelled) }
        }
        (Stage::Closed, TaskState::Running | TaskState::Retrying) => {
            cx.theme.task(TaskState::Cancelled)
        }
        (_, state) => cx.theme.task(state),
    }
}

/// The text on a row's axis: what it waits for, or the reason of its state.
fn note(
    world: &World,
    orchestrator: &Orchestrator,
    row: Row,
    now: Elapsed,
) -> Option<(String, Role)> {
    match row {
        Row::Task(task) => {
            let row = orchestrator.tasks.get(task)?;
            if let Some(waits) = waits_for(world, orchestrator, row, now) {
                let rests = waits.starts_with("rests");
                let text = if rests { waits } else { format!("waiting {waits}") };
                return Some((text, if rests { Role::Paused } else { Role::Dim }));
            }
            match (row.state, row.stand_in, &row.reason) {
                (TaskState::Failed, _, Some(reason)) => Some((reason.to_string(), Role::Failed)),
                (TaskState::Degraded, Some(stand_in), _) => {
                    Some((stand_in.word().replace('_', " "), Role::Retry))
                }
                _ => None,
            }
        }
        Row::Plan => {
            let refused = orchestrator.refused.as_ref()?;
            Some((refused.0.to_string(), Role::Refused))
        }
        Row::Join if orchestrator.aggregate.is_none() && world.is_live() => {
            let open = || orchestrator.tasks.iter().filter(|row| !row.is_over());
            let names: Vec<&str> = open().take(6).map(|row| row.task.id.as_str()).collect();
            let text = match names.as_slice() {
                [] => "waiting for the plan".to_owned(),
                names if open().count() > names.len() => {
                    format!("waiting for {} tasks", open().count())
                }
                names => format!("waiting for {}", names.join(" ")),
            };
            Some((text, Role::Dim))
        }
        Row::Report if orchestrator.finalize.is_none() && world.is_live() => {
            Some(("waiting for the join".to_owned(), Role::Dim))
        }
        Row::Join | Row::Report => None,
    }
}
