//! What the rest of the program asks the projection of a resilience run.

use super::Resilience;
use crate::event::kind::Purpose;
use crate::event::world::load::{CallSlots, ToolLoad};
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::{Projection, RunFold};
use crate::event::{BoundaryId, Event};

impl Projection for Resilience {
    fn apply(&mut self, event: &Event, _run: &RunFold) {
        self.fold(event);
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn tool_of(&self, purpose: &Purpose) -> Option<&str> {
        let Purpose::AgentStep { step, .. } = purpose else { return None };
        self.plan.steps.get(usize::from(*step)).map(|tool| tool.as_str())
    }

    fn tool_load(&self) -> Option<ToolLoad<'_>> {
        let plan = &*self.plan;
        let slots = CallSlots {
            pool: plan.pool,
            in_use: self.in_use,
            peak: self.peak,
            waiting: self.waiting,
            peak_waiting: self.peak_waiting,
        };
        Some(ToolLoad {
            agents: &self.agents,
            turns: plan.turns,
            steps: &plan.steps,
            slots,
            naive_attempts: (!plan.guarded).then_some(plan.naive_attempts),
        })
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        Err("No breakpoint here: agents act in no fixed order.")
    }
}
