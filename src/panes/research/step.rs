//! The progress of research: the steps of the workflow, and the current stage of the funnel.

use crate::event::StopClass;
use crate::event::world::World;
use crate::pattern::research::projection::steps::WorkflowStep;
use crate::pattern::research::projection::{Research, SourceState};
use crate::pattern::research::spec::ResearchStep;

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It completed.
    Done,
    /// It is running.
    Running,
    /// It has not begun.
    Waiting,
    /// The run stopped in it.
    Failed,
    /// The run ended before it, or the operator cancelled the run in it.
    Off,
}

/// The state of every step.
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
                let noting = |row: &&crate::pattern::research::projection::SourceRow| {
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
