//! Parses a stop reason from its text.

use super::failure_class::FailureClass;
use super::stop::{ContributionFault, LlmError, StopReason};
use crate::pattern::orchestrator::faults::{PlanFault, WorkerFault};
use crate::pattern::research::faults::{AnswerFault, NoteIssue, NotesFault, StepFault};

impl From<&str> for StopReason {
    fn from(text: &str) -> Self {
        let other = || Self::Other(text.into());
        match text.split_once(':') {
            None => match text {
                "success" => Self::Success,
                "max_messages" => Self::MaxMessages,
                "max_rounds_reached" => Self::MaxRoundsReached,
                "max_tokens_budget" => Self::MaxTokensBudget,
                "max_cost_budget" => Self::MaxCostBudget,
                "max_seconds" => Self::MaxSeconds,
                "llm_timeout" => Self::LlmTimeout,
                "llm_empty" => Self::LlmEmpty,
                "critical_task_failed" => Self::CriticalTaskFailed,
                "task_timeout" => Self::TaskTimeout,
                "max_dispatches" => Self::MaxDispatches,
                "max_tool_rounds" => Self::MaxToolRounds,
                "max_handoffs" => Self::MaxHandoffs,
                "no_sources_after_dedupe" => Self::NoSourcesAfterDedupe,
                "no_reliable_sources" => Self::NoReliableSources,
                "repetitive_handoff" => Self::RepetitiveHandoff,
                "cancelled" => Self::Cancelled,
                "internal_error" => Self::InternalError,
                _ => other(),
            },
            Some(("agent_denied", role)) => Self::AgentDenied(role.into()),
            Some(("invalid_plan", fault)) => {
                PlanFault::from_word(fault).map_or_else(other, Self::InvalidPlan)
            }
            Some(("invalid_step", fault)) => {
                StepFault::of(fault).map_or_else(other, Self::InvalidStep)
            }
            Some(("invalid_search", "query")) => Self::InvalidSearchQuery,
            Some(("tool_invalid_output", tool)) => Self::ToolInvalidOutput(tool.into()),
            Some(("invalid_notes", fault)) => {
                NotesFault::of(fault).map_or_else(other, Self::InvalidNotes)
            }
            Some(("verification_failed", issue)) => {
                NoteIssue::of(issue).map_or_else(other, Self::VerificationFailed)
            }
            Some(("invalid_answer", fault)) => {
                AnswerFault::of(fault).map_or_else(other, Self::InvalidAnswer)
            }
            Some(("tool_error", what)) => match what.rsplit_once(':') {
                Some((tool, class)) => match FailureClass::from_word(class) {
                    Some(class) => Self::ToolError(tool.into(), class),
                    None => other(),
                },
                None => other(),
            },
            Some(("stuck", agent)) => Self::Stuck(agent.into()),
            Some(("node_timeout", agent)) => Self::NodeTimeout(agent.into()),
            Some(("script_missing", step)) => Self::ScriptMissing(step.into()),
            Some(("circuit_open", tool)) => Self::CircuitOpen(tool.into()),
            Some(("bulkhead_full", tool)) => Self::BulkheadFull(tool.into()),
            Some(("llm_error", what)) => match what {
                "auth" => Self::LlmError(LlmError::Auth),
                "rate_limited" => Self::LlmError(LlmError::RateLimited),
                "connection" => Self::LlmError(LlmError::Connection),
                "bad_response" => Self::LlmError(LlmError::BadResponse),
                _ => match what.strip_prefix("http_").and_then(|status| status.parse().ok()) {
                    Some(status) => Self::LlmError(LlmError::Http(status)),
                    None => other(),
                },
            },
            Some(("invalid_contribution", fault)) => {
                Self::InvalidContribution(match fault.split_once(':') {
                    Some(("agent_not_allowed", name)) => {
                        ContributionFault::AgentNotAllowed(name.into())
                    }
                    Some(("agent_mismatch", role)) => ContributionFault::AgentMismatch(role.into()),
                    Some(_) => return other(),
                    None => match fault {
                        "not_object" => ContributionFault::NotObject,
                        "missing_keys" => ContributionFault::MissingKeys,
                        "agent" => ContributionFault::Agent,
                        "stance" => ContributionFault::Stance,
                        "summary" => ContributionFault::Summary,
                        "confidence_type" => ContributionFault::ConfidenceType,
                        "confidence_range" => ContributionFault::ConfidenceRange,
                        "actions" => ContributionFault::Actions,
                        "action_item" => ContributionFault::ActionItem,
                        _ => return other(),
                    },
                })
            }
            Some((word, worker)) => match WorkerFault::from_word(word) {
                Some(trouble) => Self::Worker(trouble, worker.into()),
                None => other(),
            },
        }
    }
}
