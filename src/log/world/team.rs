//! Projection of a team or swarm: its agents, and the place of the run in its session.
//!
//! The fields of a team's or swarm's outcome (teams source document).

use std::sync::Arc;

use serde_json::{Value, json};

use super::agents::AgentsFold;
use super::outcome::{OutcomeFields, to_value};
use super::{EventLog, MarkKind, Projection, RunFold};
use crate::log::event::{BoundaryId, Event, Seq, SpanId};
use crate::log::facts::agents::SessionHead;
use crate::log::facts::agents::TeamPlan;

/// State of a run of a team or swarm.
#[derive(Clone, Debug)]
pub struct Team {
    pub plan: Arc<TeamPlan>,
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
        self.agents.fold(event, run);
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

impl Team {
    /// Adds the fields that the source document defines.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let success = run.progress.closed.as_ref().is_some_and(|closed| closed.reason.is_success());
        let (plan, agents) = (&*self.plan, &self.agents);
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        if success {
            add("answer", run.progress.answer.as_deref().map_or(Value::Null, Value::from));
            add("final_agent", to_value(&agents.answered_by));
            // Added by roundtable: failed calls that the answer does not mention.
            if !agents.missing.is_empty() {
                let missing = agents.missing.iter();
                add(
                    "missing",
                    missing.map(|it| json!({ "of": it.name, "text": it.text })).collect(),
                );
            }
            if !agents.written_calls.is_empty() {
                add("written_calls", agents.written_call_rows());
            }
        } else if let Some((text, _)) = &agents.partial {
            add("partial_answer", (**text).into());
        }
        fields.add("handoffs", &agents.handoff_rows());
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        // A stopped run leaves the session with its previous owner.
        let owner = if success { &agents.answered_by } else { &plan.session.owner };
        add("owner", to_value(owner));
        // Added by roundtable: the number of the session's message, and the previous run.
        add("message", plan.session.message.into());
        if let Some(after) = &plan.session.previous_run {
            add("after", to_value(after));
        }
        fields.add("trace", &agents.turn_rows(run));
        fields.add("history", &agents.transcript_rows());
    }
}
