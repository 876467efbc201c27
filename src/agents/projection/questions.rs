//! What is asked of the agents of a run about one event: its call and its cause.

use super::state::AgentsFold;
use crate::agents::facts::AgentFact;
use crate::event::kind::Purpose;
use crate::event::world::{EventLog, MarkKind, RunFold};
use crate::event::{Event, EventKind, Seq, SpanId};

impl AgentsFold {
    /// What the scrubber marks at a fact of agents.
    pub(crate) fn mark(&self, event: &Event) -> Option<MarkKind> {
        match AgentFact::of(&event.kind)? {
            AgentFact::HandoffMade { to, .. } => Some(MarkKind::Handoff(to.clone())),
            AgentFact::HandoffRefused { .. } => Some(MarkKind::Refused),
            _ => None,
        }
    }

    /// The call that an event is about, if it is not the call of its span.
    pub(crate) fn call_of(&self, event: &Event) -> Option<SpanId> {
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

    /// The event that caused this one.
    pub(crate) fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match &event.kind {
            EventKind::Pattern(_) => match AgentFact::of(&event.kind)? {
                AgentFact::HandoffMade { requested_by, .. }
                | AgentFact::HandoffRefused { requested_by, .. } => {
                    run.spans.closed_by(*requested_by)
                }
                AgentFact::ToolCallRefused { .. } | AgentFact::ToolCallWritten { .. } => {
                    run.spans.closed_by(event.span)
                }
                AgentFact::AnswerPartial { .. }
                | AgentFact::AnswerIncomplete { .. }
                | AgentFact::RosterChanged { .. } => None,
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
}
