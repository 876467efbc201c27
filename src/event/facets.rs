//! What is true of a kind of fact whatever its fields say: its name, its weight, the span it opens
//! or closes.

use serde_json::Value;

use super::id::SpanId;
use super::kind::{EventKind, ToolLimits};

/// About how many bytes a JSON value takes. It came through a parser that bounds its depth.
pub(crate) fn json_weight(value: &Value) -> usize {
    let held = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(json_weight).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| 64 + name.len() + json_weight(value)).sum()
        }
    };
    std::mem::size_of::<Value>() + held
}

impl EventKind {
    /// The dotted name, as in JSON.
    pub fn name(&self) -> &str {
        match self {
            Self::RunStarted(_) => "run.started",
            Self::RunClosed(_) => "run.closed",
            Self::Pausing { .. } => "pausing",
            Self::Paused { .. } => "paused",
            Self::Resumed { .. } => "resumed",
            Self::Stepped { .. } => "stepped",
            Self::FlagChanged { .. } => "flag.changed",
            Self::BreakpointChanged { .. } => "breakpoint.changed",
            Self::RoundStarted { .. } => "round.started",
            Self::RoundClosed { .. } => "round.closed",
            Self::ContributionAccepted { .. } => "contribution.accepted",
            Self::ContributionRefused { .. } => "contribution.refused",
            Self::PlanAccepted { .. } => "plan.accepted",
            Self::PlanRefused { .. } => "plan.refused",
            Self::TaskStarted { .. } => "task.started",
            Self::TaskDone { .. } => "task.done",
            Self::TaskFailed { .. } => "task.failed",
            Self::ParallelChanged { .. } => "parallel.changed",
            Self::ResultsAggregated { .. } => "results.aggregated",
            Self::AnswerComposed { .. } => "answer.composed",
            Self::CallStarted(_) => "call.started",
            Self::CallAnswered { .. } => "call.answered",
            Self::CallFailed { .. } => "call.failed",
            Self::CallRetried { .. } => "call.retried",
            Self::CallQueued => "call.queued",
            Self::CallAdmitted { .. } => "call.admitted",
            Self::CallDegraded { .. } => "call.degraded",
            Self::AttemptRefused { .. } => "attempt.refused",
            Self::AttemptQueued { .. } => "attempt.queued",
            Self::AttemptStarted { .. } => "attempt.started",
            Self::ClientRetried { .. } => "client.retried",
            Self::AttemptAnswered(_) => "attempt.answered",
            Self::AttemptFailed(_) => "attempt.failed",
            Self::BreakerChanged { .. } => "breaker.changed",
            Self::ResultStale { .. } => "result.stale",
            Self::LimitsChanged { .. } => "limits.changed",
            Self::FaultInjected { .. } => "fault.injected",
            Self::FaultHealed { .. } => "fault.healed",
            Self::ReplyRepaired { .. } => "reply.repaired",
            Self::ConditionFailed { .. } => "condition.failed",
            Self::Warning { .. } => "warning",
            Self::SessionRunStarted { .. } => "session.run_started",
            Self::SessionRunClosed { .. } => "session.run_closed",
            Self::SessionRunForgotten { .. } => "session.run_forgotten",
            Self::Unknown { kind, .. } => kind,
        }
    }

    /// About how many bytes a fact of this kind takes: what memory is bounded by.
    pub fn weight(&self) -> usize {
        let held = match self {
            Self::CallStarted(call) => {
                let said = call.prompt.messages.iter().map(|message| 24 + message.content.len());
                said.sum::<usize>() + call.args.as_deref().map_or(0, json_weight)
            }
            Self::AttemptAnswered(reply) => {
                128 + reply.text.len() + reply.result.as_deref().map_or(0, json_weight)
            }
            Self::AttemptFailed(failed) => {
                128 + failed.text.len() + failed.partial.as_ref().map_or(0, |text| text.len())
            }
            Self::ContributionAccepted { contribution, .. } => {
                contribution.summary.len()
                    + contribution.actions.iter().map(|action| 24 + action.len()).sum::<usize>()
            }
            Self::ContributionRefused { raw, .. } => raw.as_ref().map_or(0, json_weight),
            Self::PlanAccepted { tasks } => tasks
                .iter()
                .flat_map(|task| task.args.values())
                .map(|it| 96 + json_weight(it))
                .sum(),
            Self::PlanRefused { raw, .. } => json_weight(raw),
            Self::ResultsAggregated { aggregate, .. } => json_weight(aggregate),
            Self::LimitsChanged { .. } => std::mem::size_of::<ToolLimits>(),
            Self::RunStarted(head) => {
                let inputs = head.inputs.iter().map(|(name, it)| name.len() + json_weight(it));
                1024 + head.title.len() + head.goal.len() + inputs.sum::<usize>()
            }
            Self::Warning { text } => text.len(),
            Self::ConditionFailed { place, text } => place.len() + text.len(),
            Self::RunClosed(closed) => std::mem::size_of_val(&**closed),
            Self::RoundStarted { seats, .. } => seats.len() * 32,
            Self::AnswerComposed { text } => text.len(),
            Self::Unknown { kind, fields } => {
                let fields = fields.iter().map(|(name, it)| name.len() + json_weight(it));
                kind.len() + fields.sum::<usize>()
            }
            _ => 0,
        };
        std::mem::size_of::<super::Event>() + 32 + held
    }

    /// The parent of the span that this fact opens, if it opens one.
    pub fn opens(&self) -> Option<SpanId> {
        match self {
            Self::RunStarted(_) => Some(SpanId::RUN),
            Self::RoundStarted { parent, .. }
            | Self::TaskStarted { parent, .. }
            | Self::AttemptStarted { parent, .. } => Some(*parent),
            Self::CallStarted(call) => Some(call.parent),
            _ => None,
        }
    }

    /// Whether this fact closes its span.
    pub fn closes(&self) -> bool {
        matches!(
            self,
            Self::RunClosed(_)
                | Self::RoundClosed { .. }
                | Self::TaskDone { .. }
                | Self::TaskFailed { .. }
                | Self::CallAnswered { .. }
                | Self::CallDegraded { .. }
                | Self::CallFailed { .. }
                | Self::AttemptAnswered(_)
                | Self::AttemptFailed(_)
        )
    }
}
