//! The calls of agents in the fold: hops of swarms, consultations, and how they end.

use std::sync::Arc;

use serde_json::Value;

use super::lines::{CallResult, depth};
use super::rows::{HopKind, HopRow, HopState, LineKind};
use super::state::{AgentsFold, OpenModelCall, SwarmCounts};
use crate::event::kind::{CallStarted, FallbackKind, Purpose};
use crate::event::world::pauses::Pauses;
use crate::event::world::spans::{SpanKind, Spans};
use crate::event::{Event, SpanId, StopReason, result_text};

impl AgentsFold {
    pub(super) fn call(&mut self, event: &Event, call: &CallStarted, spans: &Spans) {
        self.count_in_tree(event.span, call, spans);
        let (team, from, kind) = match &call.purpose {
            Purpose::ModelCall { agent, .. } => {
                self.model_calls
                    .insert(event.span, OpenModelCall { agent: agent.clone(), attempt: None });
                if let Some(row) = self.row(agent) {
                    row.calls += 1;
                    row.last_call = Some(event.span);
                }
                return;
            }
            // The pattern itself calls the agent that answers.
            Purpose::Member { by, .. } if self.plan.agent(by).is_none() => {
                (by, None, HopKind::Start)
            }
            Purpose::Member { by, .. } => (by, Some(by), HopKind::Consult),
            Purpose::SwarmTurn { swarm, from: Some(from), .. } => {
                (swarm, Some(from), HopKind::Handoff)
            }
            Purpose::SwarmTurn { swarm, from: None, .. } => {
                // A swarm starts with new counts each time it is put to work.
                self.update_counts(swarm, call.parent, |limits| *limits = SwarmCounts::default());
                (swarm, None, HopKind::Start)
            }
            _ => return,
        };
        let Some(to) = call.purpose.agent() else { return };
        let passing =
            self.pending_handoffs.remove(&call.parent).filter(|_| kind == HopKind::Handoff);
        let message = match &call.args {
            Some(args) => args.get("request").and_then(Value::as_str).map(Arc::from),
            None => passing.as_ref().and_then(|it| it.message.clone()),
        };
        let said = match &call.purpose {
            Purpose::Member { requested_by: said, .. } => Some(*said),
            _ => passing.map(|it| it.said),
        };
        // A swarm inside a team is consulted by its caller, and starts its first member.
        let nested = kind == HopKind::Start && call.parent != SpanId::RUN;
        let passer = if nested { Some(team) } else { from };
        self.edge(passer, to, nested || kind == HopKind::Consult).count += 1;
        self.begins(to, event.at);
        if kind != HopKind::Consult && call.parent == SpanId::RUN {
            self.in_control = Some(to.clone());
        }
        let row = HopRow {
            at: event.at,
            until: None,
            kind,
            from: from.cloned(),
            to: to.clone(),
            team: team.clone(),
            message,
            context_tokens: None,
            state: HopState::Running,
            span: event.span,
            requested_by: said,
            depth: depth(call.parent, spans),
            in_control: self.in_control.clone(),
            seq: event.seq,
        };
        let at = self.add_hop(row);
        self.open.insert(event.span, at);
    }

    pub(super) fn ends(
        &mut self,
        event: &Event,
        ended: &CallEnd<'_>,
        spans: &Spans,
        rests: &Pauses,
    ) {
        let last = self.last_errors.remove(&event.span);
        if let Some(say) = self.model_calls.remove(&event.span) {
            self.update_speaking(&say.agent);
            return;
        }
        let purpose = match spans.get(event.span).map(|span| &span.kind) {
            Some(SpanKind::Call(purpose)) => purpose,
            _ => return,
        };
        if let Some(place) = self.open.remove(&event.span)
            && let Some(row) = self.hops.get_mut(place)
        {
            row.until = Some(event.at);
            match *ended {
                CallEnd::Failed(reason) => row.state = HopState::Failed(reason.clone()),
                CallEnd::Degraded { by, reason, .. } => {
                    row.state = HopState::Degraded { by, reason: reason.clone() };
                }
                CallEnd::Answered if row.state == HopState::Running => row.state = HopState::Done,
                CallEnd::Answered => {}
            }
            let (to, from) = (row.to.clone(), row.at);
            let failed = match ended {
                CallEnd::Answered => None,
                CallEnd::Degraded { reason, .. } | CallEnd::Failed(reason) => Some(*reason),
            };
            self.over(&to, from, event.at, failed, rests);
        }
        let came = match ended {
            CallEnd::Answered => return,
            CallEnd::Degraded { value, .. } => CallResult::Text(result_text::value_text(value)),
            CallEnd::Failed(reason) => CallResult::Failed(reason, last),
        };
        match (purpose, came) {
            // The fallback for a member of a swarm is the swarm's answer.
            (Purpose::SwarmTurn { agent, .. }, CallResult::Text(text)) if !text.is_empty() => {
                self.add_line(event, event.span, agent, LineKind::Said(text), spans);
            }
            (_, came) => self.add_result(event, event.span, purpose, came, spans),
        }
    }
}

/// How a call ended.
pub(super) enum CallEnd<'e> {
    Answered,
    Degraded { by: FallbackKind, reason: &'e StopReason, value: &'e Value },
    Failed(&'e StopReason),
}
