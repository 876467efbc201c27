//! Projection of a team or swarm: its agents, and the place of the run in its session.

use std::sync::Arc;

use crate::agents::facts::SessionHead;
use crate::agents::projection::AgentsFold;
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::{EventLog, MarkKind, Projection, RunFold};
use crate::event::{BoundaryId, Event, Seq, SpanId};
use crate::pattern::team::plan::TeamPlan;

/// State of a run of a team or swarm.
#[derive(Clone, Debug)]
pub struct Team {
    /// The setup of the run.
    pub plan: Arc<TeamPlan>,
    /// The agents.
    pub agents: AgentsFold,
}

impl Team {
    /// The state at the start of a run.
    pub fn new(plan: Arc<TeamPlan>) -> Self {
        Self { agents: AgentsFold::new(plan.agents_plan(), &plan.session.text), plan }
    }
}

impl Projection for Team {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        self.agents.fold(event, &run.spans, run.progress.pauses());
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn is_degraded(&self) -> bool {
        self.agents.is_degraded()
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        self.agents.mark(event)
    }

    fn call_of(&self, event: &Event, _run: &RunFold) -> Option<SpanId> {
        self.agents.call_of(event)
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        self.agents.cause_of(event, run, log)
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        Err("No breakpoint here: the next speaker is not known yet.")
    }

    fn agents(&self) -> Option<&AgentsFold> {
        Some(&self.agents)
    }

    fn session(&self) -> Option<&SessionHead> {
        Some(&self.plan.session)
    }
}
