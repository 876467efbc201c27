//! The steps of the workflow, and the one that a run is at.

use super::Research;
use crate::event::world::RunFold;
use crate::event::{Boundary, BoundaryId};
use crate::pattern::research::spec::ResearchStep;

/// A step of the workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowStep {
    /// Making the plan.
    Plan,
    /// One of the steps of the plan.
    Step(ResearchStep),
}

impl WorkflowStep {
    /// Every step, in order.
    pub const ALL: [WorkflowStep; 6] = [
        Self::Plan,
        Self::Step(ResearchStep::Search),
        Self::Step(ResearchStep::Dedupe),
        Self::Step(ResearchStep::ReadExtract),
        Self::Step(ResearchStep::Verify),
        Self::Step(ResearchStep::Synthesize),
    ];

    /// The name of the step on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Step(ResearchStep::ReadExtract) => "read",
            Self::Step(step) => step.word(),
        }
    }

    /// The boundary before the step, where a run can pause.
    pub fn boundary(self) -> BoundaryId {
        match self {
            Self::Plan => Boundary::Plan.id(),
            Self::Step(step) => Boundary::Step(step.word()).id(),
        }
    }

    fn is_done(self, run: &RunFold, research: &Research) -> bool {
        match self {
            Self::Plan => research.steps.is_some(),
            Self::Step(ResearchStep::Search) => research.query.is_some(),
            Self::Step(ResearchStep::Dedupe) => research.kept.is_some(),
            Self::Step(ResearchStep::ReadExtract) => research.reading_end.is_some(),
            Self::Step(ResearchStep::Verify) => {
                research.verified.as_ref().is_some_and(|verified| verified.issues.is_empty())
            }
            Self::Step(ResearchStep::Synthesize) => run.progress.answer.is_some(),
        }
    }

    /// The current step, or the one in which the run stopped; `None` if all are done.
    pub fn current(run: &RunFold, research: &Research) -> Option<WorkflowStep> {
        let phase = run.progress.closed.as_ref().and_then(|closed| closed.phase.as_deref());
        let of =
            |phase: &str| Self::ALL.into_iter().find(|stage| stage.boundary().as_str() == phase);
        if let Some(stage) = phase.and_then(of) {
            return Some(stage);
        }
        Self::ALL.into_iter().find(|stage| !stage.is_done(run, research))
    }
}
