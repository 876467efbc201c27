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
    pub(crate) fn least_width(&self) -> u16 {
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
        const LEAST: u16 = 6;
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
        if room >= LEAST && tasks > 0 {
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
