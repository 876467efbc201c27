//! The second header row of research: its steps.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::run::data::RunData;
use crate::event::BoundaryId;
use crate::event::world::RunState as RunStage;
use crate::narrate::glyph::Glyph;
use crate::panes::research::step::{StepState, step_states};
use crate::pattern::research::projection::steps::WorkflowStep;
use crate::pattern::research::spec::ResearchStep;
use crate::ui::cx::DrawContext;
use crate::ui::text::{Pen, columns};
use crate::ui::theme::StyleRole;

/// Draws the row.
pub(crate) fn render(data: &RunData, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let world = data.shown();
    let Some(research) = world.research() else { return };
    let plan = &*research.plan;
    let paused = matches!(world.progress.stage, RunStage::Paused { .. });
    let rests = |at: &BoundaryId| world.settings.breakpoints.contains(at);
    let pieces: Vec<(String, StyleRole)> = step_states(world, research)
        .into_iter()
        .map(|(stage, state)| {
            let (glyph, role) = match state {
                StepState::Done => (Glyph::Done, StyleRole::Done),
                StepState::Running if paused => (Glyph::Paused, StyleRole::Paused),
                StepState::Running => (Glyph::Running, StyleRole::Running),
                StepState::Waiting => (Glyph::Waiting, StyleRole::Waiting),
                StepState::Failed => (Glyph::Failed, StyleRole::Failed),
                StepState::Off => (Glyph::Off, StyleRole::Off),
            };
            let mut text = format!("{} {}", stage.name(), cx.glyphs.symbol(glyph));
            if state == StepState::Waiting && rests(&stage.boundary()) {
                text.push_str(&format!(" {}", cx.glyphs.symbol(Glyph::Breakpoint)));
            }
            if stage == WorkflowStep::Step(ResearchStep::ReadExtract) && research.kept.is_some() {
                text.push_str(&format!(" {}/{}", research.pages_read(), plan.max_read_pages));
            }
            (text, role)
        })
        .collect();
    let line = cx.glyphs.symbol(Glyph::Horizontal);
    let words: usize = pieces.iter().map(|(text, _)| columns(text)).sum();
    // The connecting lines fill the row.
    let gaps = pieces.len().saturating_sub(1).max(1);
    let room = usize::from(area.width).saturating_sub(words) / gaps;
    let long = room.saturating_sub(2).clamp(1, 12);
    let gap = match room {
        0..=2 => " ".to_owned(),
        _ => format!(" {} ", line.repeat(long)),
    };
    let mut pen = Pen::new(buf, area, cx.glyphs);
    for (nth, (text, role)) in pieces.iter().enumerate() {
        if nth > 0 {
            pen.put(&gap, cx.theme.style(StyleRole::Dim));
        }
        pen.put(text, cx.theme.style(*role));
    }
}
