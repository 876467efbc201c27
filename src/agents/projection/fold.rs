//! The fold of the agents of a run: what each event changes.

use std::sync::Arc;

use crate::agents::facts::AgentFact;
use crate::agents::projection::calls::CallEnd;
use crate::agents::projection::lines::depth;
use crate::agents::projection::rows::{HopKind, HopRow, HopState, LineKind};
use crate::agents::projection::state::{AgentsFold, PendingHandoff};
use crate::event::world::pauses::Pauses;
use crate::event::world::spans::Spans;
use crate::event::{Elapsed, Event, EventKind, SpanId};

impl AgentsFold {
    /// Processes one event.
    pub(crate) fn fold(&mut self, event: &Event, spans: &Spans, rests: &Pauses) {
        match &event.kind {
            EventKind::Pattern(_) => {
                if let Some(fact) = AgentFact::of(&event.kind) {
                    self.fold_fact(event, fact, spans);
                }
            }
            EventKind::CallStarted(call) => self.call(event, call, spans),
            EventKind::AttemptStarted { parent, .. } => self.set_attempt(*parent, Some(event.span)),
            EventKind::AttemptAnswered(reply) => {
                self.swarm_counts.remove(&event.span);
                self.answered(event, reply, spans);
            }
            EventKind::AttemptFailed(failed) => {
                self.swarm_counts.remove(&event.span);
                let Some(call) = spans.get(event.span).map(|span| span.parent) else { return };
                self.set_attempt(call, None);
                self.last_errors.insert(call, failed.text.as_str().into());
            }
            // This attempt was never made, so the call has no last error now.
            EventKind::AttemptRefused { .. } => {
                self.last_errors.remove(&event.span);
            }
            EventKind::CallAnswered { .. } => self.ends(event, &CallEnd::Answered, spans, rests),
            EventKind::CallDegraded { reason, by, value: Some(value), .. } => {
                let ended = CallEnd::Degraded { by: *by, reason, value };
                self.ends(event, &ended, spans, rests);
            }
            EventKind::CallDegraded { reason, .. } | EventKind::CallFailed { reason, .. } => {
                self.ends(event, &CallEnd::Failed(reason), spans, rests);
            }
            EventKind::AnswerComposed { by: Some(by), .. } => self.answered_by = Some(by.clone()),
            EventKind::RunClosed(closed) => {
                let failed = (!closed.reason.is_success()).then_some(&closed.reason);
                if let Some(root) = self.plan.root.clone() {
                    self.over(&root, Elapsed(0), event.at, failed, rests);
                }
            }
            _ => {}
        }
    }

    fn fold_fact(&mut self, event: &Event, fact: &AgentFact, spans: &Spans) {
        match fact {
            AgentFact::HandoffMade { swarm, from, to, message, guard, requested_by: said } => {
                let passing = PendingHandoff { message: message.clone(), said: *said };
                self.pending_handoffs.insert(event.span, passing);
                self.update_counts(swarm, event.span, |limits| limits.guard = *guard);
                let what = LineKind::HandedOver { to: to.clone(), message: message.clone() };
                self.add_line(event, *said, from, what, spans);
            }
            AgentFact::RosterChanged { swarm, members, .. } => {
                if let Some(row) = self.swarms.iter_mut().find(|row| row.name == *swarm) {
                    row.members = Arc::clone(members);
                }
            }
            AgentFact::HandoffRefused {
                swarm,
                from,
                to,
                reason: why,
                guard,
                rejections,
                requested_by: said,
            } => {
                self.update_counts(swarm, event.span, |limits| {
                    (limits.guard, limits.rejections) = (*guard, *rejections);
                    limits.refused = Some(*why);
                });
                self.edge(Some(from), to, false).refused += 1;
                self.add_hop(HopRow {
                    at: event.at,
                    until: Some(event.at),
                    kind: HopKind::Handoff,
                    from: Some(from.clone()),
                    to: to.clone(),
                    team: swarm.clone(),
                    message: None,
                    context_tokens: None,
                    state: HopState::Refused(*why),
                    span: *said,
                    requested_by: Some(*said),
                    depth: depth(*said, spans),
                    in_control: self.in_control.clone(),
                    seq: event.seq,
                });
                self.add_line(
                    event,
                    *said,
                    from,
                    LineKind::Refused { to: to.clone(), why: *why },
                    spans,
                );
            }
            AgentFact::ToolCallRefused { agent, tool, text, .. } => {
                let what = LineKind::NotCalled { tool: tool.clone(), text: text.clone() };
                self.add_line(event, event.span, agent, what, spans);
            }
            AgentFact::ToolCallWritten { agent, preview, told } => {
                let what = LineKind::Written { told: *told };
                self.add_line(event, event.span, agent, what, spans);
                if !told {
                    self.written_calls.push((agent.clone(), preview.clone()));
                }
            }
            AgentFact::AnswerPartial { text, by } if event.span == SpanId::RUN => {
                self.partial = Some((Arc::clone(text), by.clone()));
            }
            AgentFact::AnswerIncomplete { missing } => {
                self.incomplete = true;
                if event.span == SpanId::RUN {
                    self.missing = Arc::clone(missing);
                }
            }
            _ => {}
        }
    }
}
