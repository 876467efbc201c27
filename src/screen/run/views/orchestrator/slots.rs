//! Pane 4 of an orchestrator: the task slots, the use of the budgets, and the fallbacks used.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::base::time::millis;
use crate::log::world::orchestrator::{Orchestrator, TaskState};
use crate::screen::DrawContext;
use crate::screen::layout::line;
use crate::screen::run::data::RunData;
use crate::screen::text::Pen;
use crate::screen::widgets::bar;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::styled::StyleRole;
use crate::words::tool_sentence::fallback_text;

/// Number of slots drawn one by one; more are shown only as figures.
const MAX_DRAWN_SLOTS: u32 = 12;
/// Width of a name.
const NAME: u16 = 12;
/// Width of a bar.
const BAR: u16 = 12;

/// Draws the used and free slots, with their figures.
pub(super) fn put_slots(cx: &DrawContext, pen: &mut Pen, orchestrator: &Orchestrator) {
    let (used, all) = (orchestrator.running, orchestrator.max_parallel);
    if all <= MAX_DRAWN_SLOTS && used <= MAX_DRAWN_SLOTS {
        let of = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
        let full = cx.theme.style(StyleRole::Running);
        pen.glyphs(Glyph::Running, of(used), full);
        let free = cx.theme.style(StyleRole::Waiting);
        pen.glyphs(Glyph::Waiting, of(all.saturating_sub(used)), free).space(1);
    }
    pen.put(&format!("{used}/{all}"), cx.theme.style(StyleRole::Text));
}

pub(crate) fn render(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let Some(orchestrator) = world.orchestrator() else { return };
    let plan = &*orchestrator.plan;
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let mut nth = 0;
    let mut row = |draw: &mut dyn FnMut(&mut Pen)| {
        if nth < area.height {
            let mut pen = Pen::new(buf, line(area, nth), cx.glyphs);
            pen.space(1);
            draw(&mut pen);
            nth += 1;
        }
    };
    let waiting = orchestrator.count(TaskState::Waiting);
    row(&mut |pen| {
        pen.cell("slots", NAME, dim);
        put_slots(cx, pen, orchestrator);
        pen.space(3).put("queue ", dim).put(&waiting.to_string(), theme.style(StyleRole::Text));
        if world.progress.is_live() {
            pen.space(3).put("+ -", theme.style(StyleRole::Key)).put(" change", dim);
        }
    });
    let dispatches = (orchestrator.dispatches.into(), plan.budget.max_dispatches.into());
    row(&mut |pen| {
        budget(cx, pen, "dispatches", dispatches.0, dispatches.1);
        let retries = world.tools.rows().iter().filter(|row| row.name().as_str() != "llm");
        let retries: u64 = retries.map(|row| row.tally.retries).sum();
        let role = if retries > 0 { StyleRole::Retry } else { StyleRole::Bar };
        pen.space(3).put("retries ", dim).put(&retries.to_string(), theme.style(role));
    });
    let tasks = orchestrator.tasks.len() as u64;
    row(&mut |pen| {
        pen.cell("tasks", NAME, dim);
        pen.put(
            &format!("{} of {tasks} finished", orchestrator.ended()),
            theme.style(StyleRole::Text),
        );
        pen.put(&format!(" (max {})", plan.budget.max_tasks), dim);
    });
    let active = world.progress.active(data.time(cx.now)).as_secs();
    row(&mut |pen| {
        budget(cx, pen, "seconds", active, millis(plan.budget.max_seconds).div_ceil(1000));
        if let Some(text) = format::cost(world, cx.glyphs) {
            pen.space(3).put("cost ", dim).put(&text, theme.style(StyleRole::Bar));
        }
    });
    let degraded = || orchestrator.tasks.iter().filter(|row| row.state == TaskState::Degraded);
    let failed = orchestrator.count(TaskState::Failed);
    if failed > 0 {
        row(&mut |pen| {
            pen.cell("failed", NAME, dim);
            pen.put(&format::count_noun(failed as u64, "task"), theme.style(StyleRole::Failed));
        });
    }
    for task in degraded().take(usize::from(area.height)) {
        row(&mut |pen| {
            pen.cell("degraded", NAME, dim);
            pen.put(task.task.id.as_str(), theme.style(StyleRole::Retry)).space(1);
            if let Some(fallback) = task.fallback {
                pen.put("fallback: ", dim).put(&fallback_text(fallback), dim);
            }
        });
    }
}

fn budget(cx: &DrawContext, pen: &mut Pen, name: &str, used: u64, allowed: u64) {
    pen.cell(name, NAME, cx.theme.style(StyleRole::Dim));
    bar(cx, pen, used, allowed, BAR);
    pen.space(1).put(&format!("{used}/{allowed}"), cx.theme.budget(used, allowed));
}
