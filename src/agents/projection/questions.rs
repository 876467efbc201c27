//! What the rest of the program asks the projection of a team or swarm.

use super::Team;
use crate::agents::facts::SessionHead;
use crate::event::kind::{AgentFact, Purpose};
use crate::event::world::outcome::OutcomeFields;
use crate::event::world::{EventLog, MarkKind, Projection, RunFold};
use crate::event::{BoundaryId, Event, EventKind, Seq, SpanId};

impl Projection for Team {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        self.fold(event, &run.spans, run.pauses());
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn is_degraded(&self) -> bool {
        self.incomplete
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        match AgentFact::of(&event.kind)? {
            AgentFact::HandoffMade { to, .. } => Some(MarkKind::Handoff(to.clone())),
            AgentFact::HandoffRefused { .. } => Some(MarkKind::Refused),
            _ => None,
        }
    }

    fn call_of(&self, event: &Event, _run: &RunFold) -> Option<SpanId> {
        match (&event.kind, AgentFact::of(&event.kind)) {
            (
                _,
                Some(
                    AgentFact::HandoffMade { requested_by, .. }
                    | AgentFact::HandoffRefused { requested_by, .. },
                ),
            ) => Some(*requested_by),
            (EventKind::AnswerComposed { by: Some(by), .. }, _) => self.agent(by)?.last_call,
            _ => None,
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match &event.kind {
            EventKind::Pattern(_) => match AgentFact::of(&event.kind)? {
                AgentFact::HandoffMade { requested_by, .. }
                | AgentFact::HandoffRefused { requested_by, .. } => {
                    run.spans.closed_by(*requested_by)
                }
                AgentFact::ToolCallRefused { .. } => run.spans.closed_by(event.span),
                AgentFact::AnswerPartial { .. } | AgentFact::AnswerIncomplete { .. } => None,
            },
            EventKind::AnswerComposed { by: Some(by), .. } => {
                run.spans.closed_by(self.agent(by)?.last_call?)
            }
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::SwarmTurn { from: Some(from), .. } => log.last_before(event.seq, &|it| {
                    matches!(
                        AgentFact::of(&it.kind),
                        Some(AgentFact::HandoffMade { from: who, .. }) if who == from
                    )
                }),
                Purpose::ModelCall { .. } | Purpose::SwarmTurn { .. } => {
                    run.spans.opened_by(call.parent)
                }
                Purpose::Member { requested_by, .. } | Purpose::Tool { requested_by, .. } => {
                    run.spans.closed_by(*requested_by)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        Err("No breakpoint here: the next speaker is not known yet. s steps to the next boundary.")
    }

    fn session(&self) -> Option<&SessionHead> {
        Some(&self.plan.session)
    }
}
