//! Properties of an event's kind that do not depend on its fields: its name, and the span it opens
//! or closes.

use super::id::SpanId;
use super::kind::EventKind;

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
            Self::ConcurrencyChanged { .. } => "concurrency.changed",
            Self::ResultsAggregated { .. } => "results.aggregated",
            Self::StepsAccepted { .. } => "steps.accepted",
            Self::SourcesFound(_) => "sources.found",
            Self::SourcesDeduped(_) => "sources.deduped",
            Self::SourceStarted { .. } => "source.started",
            Self::PageRead(_) => "page.read",
            Self::NoteTaken { .. } => "note.taken",
            Self::NoteRefused(_) => "note.refused",
            Self::NotesTruncated(_) => "notes.truncated",
            Self::SourceClosed(_) => "source.closed",
            Self::ReadingClosed { .. } => "reading.closed",
            Self::NotesCompared(_) => "notes.compared",
            Self::NotesVerified(_) => "notes.verified",
            Self::AnswerCited(_) => "answer.cited",
            Self::AnswerRefused(_) => "answer.refused",
            Self::AnswerComposed { .. } => "answer.composed",
            Self::AnswerPartial { .. } => "answer.partial",
            Self::AnswerIncomplete { .. } => "answer.incomplete",
            Self::HandoffMade { .. } => "handoff.made",
            Self::HandoffRefused { .. } => "handoff.refused",
            Self::ToolCallRefused { .. } => "tool_call.refused",
            Self::RosterChanged { .. } => "roster.changed",
            Self::CallStarted(_) => "call.started",
            Self::CallAnswered { .. } => "call.answered",
            Self::CallFailed { .. } => "call.failed",
            Self::CallRetried { .. } => "call.retried",
            Self::RetryRefused { .. } => "retry.refused",
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
            Self::ResultIgnored { .. } => "result.ignored",
            Self::LimitsChanged { .. } => "limits.changed",
            Self::FaultInjected { .. } => "fault.injected",
            Self::FaultRemoved { .. } => "fault.removed",
            Self::RequestAdapted { .. } => "request.adapted",
            Self::ReplyRepaired { .. } => "reply.repaired",
            Self::ReplyRefused(_) => "reply.refused",
            Self::BudgetReached(_) => "budget.reached",
            Self::ConditionFailed { .. } => "condition.failed",
            Self::Warning { .. } => "warning",
            Self::SessionRunStarted { .. } => "session.run_started",
            Self::SessionRunClosed { .. } => "session.run_closed",
            Self::SessionRunDropped { .. } => "session.run_dropped",
            Self::EventsDropped { .. } => "events.dropped",
            Self::Unknown { kind, .. } => kind,
        }
    }

    /// The parent of the span that this event opens; `None` if it opens none.
    pub fn opens(&self) -> Option<SpanId> {
        match self {
            Self::RunStarted(_) => Some(SpanId::RUN),
            Self::RoundStarted { parent, .. }
            | Self::TaskStarted { parent, .. }
            | Self::SourceStarted { parent, .. }
            | Self::AttemptStarted { parent, .. } => Some(*parent),
            Self::CallStarted(call) => Some(call.parent),
            _ => None,
        }
    }

    /// Whether this event closes its span.
    pub fn closes(&self) -> bool {
        matches!(
            self,
            Self::RunClosed(_)
                | Self::RoundClosed { .. }
                | Self::TaskDone { .. }
                | Self::TaskFailed { .. }
                | Self::SourceClosed(_)
                | Self::CallAnswered { .. }
                | Self::CallDegraded { .. }
                | Self::CallFailed { .. }
                | Self::AttemptAnswered(_)
                | Self::AttemptFailed(_)
        )
    }
}
