//! The second header row of research: the steps of the workflow, and the current stage of the
//! funnel.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::log::event::{BoundaryId, StopClass};
use crate::log::world::research::rows::WorkflowStep;
use crate::log::world::research::{Research, SourceState};
use crate::log::world::{RunState as RunStage, World};
use crate::scenario::patterns::research::ResearchStep;
use crate::screen::DrawContext;
use crate::screen::run::data::RunData;
use crate::screen::text::Pen;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It completed.
    Done,
    Running,
    /// It has not begun.
    Waiting,
    /// The run stopped in it.
    Failed,
    /// The run ended before it, or the operator cancelled the run in it.
    Off,
}

pub fn step_states(world: &World, research: &Research) -> [(WorkflowStep, StepState); 6] {
    let current = WorkflowStep::current(world, research);
    let stopped = world.progress.closed.as_ref().map(|closed| closed.reason.class());
    let mut before = true;
    WorkflowStep::ALL.map(|stage| {
        if Some(stage) == current {
            before = false;
            let state = match (world.progress.is_live(), stopped) {
                (true, _) => StepState::Running,
                (false, Some(StopClass::Cancelled)) => StepState::Off,
                (false, _) => StepState::Failed,
            };
            return (stage, state);
        }
        let after = if world.progress.is_live() { StepState::Waiting } else { StepState::Off };
        (stage, if before { StepState::Done } else { after })
    })
}

/// The stages of the funnel, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FunnelStage {
    /// Sources found by the search.
    Found,
    /// Sources kept after duplicates were removed.
    Deduped,
    /// Sources that passed both allowlists.
    Allowed,
    /// Pages that were read.
    Read,
    /// Notes taken from the pages.
    Notes,
    /// Notes that the answer cites.
    Cited,
}

impl FunnelStage {
    /// The current stage, or the one in which the run stopped; `None` if the run completed.
    pub fn current(world: &World, research: &Research) -> Option<FunnelStage> {
        Some(match WorkflowStep::current(world, research)? {
            WorkflowStep::Plan | WorkflowStep::Step(ResearchStep::Search) => Self::Found,
            WorkflowStep::Step(ResearchStep::Dedupe) => Self::Deduped,
            WorkflowStep::Step(ResearchStep::ReadExtract) => {
                let noting = |row: &&crate::log::world::research::SourceRow| {
                    row.state == SourceState::Noting
                };
                match research.kept().find(noting) {
                    Some(_) => Self::Notes,
                    None if !world.progress.is_live() && research.pages_read() > 0 => Self::Notes,
                    None if research.kept().any(|row| row.read_call.is_some()) => Self::Read,
                    None => Self::Allowed,
                }
            }
            WorkflowStep::Step(ResearchStep::Verify) => Self::Notes,
            WorkflowStep::Step(ResearchStep::Synthesize) => Self::Cited,
        })
    }
}

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
                text.push_str(&format!(
                    " {}/{}",
                    research.pages_read(),
                    plan.budget.max_read_pages
                ));
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
