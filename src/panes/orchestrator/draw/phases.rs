//! The second header row of an orchestrator: the phases plan, fan-out, join and report.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::sign::row_sign;
use super::slots::slots;
use crate::app::run::data::RunData;
use crate::event::world::{Projection, RunState};
use crate::narrate::glyph::Glyph;
use crate::panes::orchestrator::waterfall::{WaterfallRow, row_took};
use crate::pattern::orchestrator::projection::{Orchestrator, TaskState};
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::{StateSign, StyleRole};

/// Width of the slots and the queue at the right end of the row.
pub(crate) fn aside_width(orchestrator: &Orchestrator) -> u16 {
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
    slots(cx, &mut pen, orchestrator);
    let waiting = orchestrator.count(TaskState::Waiting).to_string();
    pen.space(3).put("queue ", dim).put(&waiting, cx.theme.style(StyleRole::Text));
}

/// Draws the phases.
pub(crate) fn render(
    data: &RunData,
    cx: &DrawContext,
    area: Rect,
    orchestrator: &Orchestrator,
    buf: &mut Buffer,
) {
    /// Minimum width of the bar.
    const LEAST: u16 = 6;
    let world = data.shown();
    let now = data.drawn_to(cx.now);
    let theme = cx.theme;
    let dim = theme.style(StyleRole::Dim);
    let tasks = orchestrator.tasks.len();
    let over = orchestrator.ended();
    let took = |row| row_took(data, row, now).map(format::duration_text);
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
    let count = if tasks > 0 { format!(" {over}/{tasks}") } else { String::new() };
    let fan_text = format!("fan-out {}{count}", cx.glyphs.symbol(fan.glyph));
    let gap = format!(" {} ", cx.glyphs.symbol(Glyph::Horizontal).repeat(2));
    let width = |pieces: &[(String, StateSign); 3]| {
        let words: usize = pieces.iter().map(|(text, _)| columns(text)).sum();
        u16::try_from(words + columns(&fan_text) + 3 * columns(&gap)).unwrap_or(u16::MAX)
    };
    // Durations are left out before names are shortened.
    let timed = pieces(true);
    let shown = if width(&timed) <= area.width { timed } else { pieces(false) };
    let fixed = width(&shown);
    let [plan, join, report] = shown;
    let room = area.width.saturating_sub(fixed + 1).min(48);
    let mut pen = Pen::new(buf, area, cx.glyphs);
    pen.put(&plan.0, plan.1.style).put(&gap, dim).put(&fan_text, fan.style);
    if room >= LEAST && tasks > 0 {
        pen.space(1);
        let width = room - 1;
        let full = (usize::from(width) * over / tasks).min(usize::from(width)) as u16;
        let tip = u16::from(full < width);
        let done = over == tasks;
        let role = match (done, world.progress.is_live()) {
            (true, _) => StyleRole::Track,
            (false, true) => StyleRole::TrackNow,
            (false, false) => StyleRole::Failed,
        };
        let style = theme.style(role);
        pen.glyphs(Glyph::TrackFull, full, style).glyphs(Glyph::TrackTip, tip, style);
        pen.glyphs(Glyph::TrackEmpty, width - full - tip, theme.style(StyleRole::TrackEmpty));
    }
    pen.put(&gap, dim).put(&join.0, join.1.style);
    pen.put(&gap, dim).put(&report.0, report.1.style);
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
