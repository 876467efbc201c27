//! Why a run ended: one type, printed as the exact strings of the source documents.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::failure_class::FailureClass;
use crate::base::name::{AgentName, RoleName, ToolName};
use crate::base::visible::{REASON_CHARS, visible_within};
pub use crate::pattern::orchestrator::faults::{PlanFault, WorkerFault};
pub use crate::pattern::research::faults::{AnswerFault, NoteIssue, NotesFault, StepFault};

/// Why a run ended. A stop reason is data, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// `success`
    Success,
    /// `invalid_contribution:<fault>`, in a collaboration
    InvalidContribution(ContributionFault),
    /// `agent_denied:<role>`, in a collaboration
    AgentDenied(RoleName),
    /// `max_messages`, in a collaboration
    MaxMessages,
    /// `max_rounds_reached`, in a collaboration
    MaxRoundsReached,
    /// `max_seconds`
    MaxSeconds,
    /// `max_tokens_budget`, added by roundtable: the next model call would exceed
    /// `budget.max_total_tokens`
    MaxTokensBudget,
    /// `max_cost_budget`, added by roundtable: the next model call would exceed
    /// `budget.max_cost_usd`
    MaxCostBudget,
    /// `llm_timeout`
    LlmTimeout,
    /// `llm_empty`
    LlmEmpty,
    /// `llm_error:<what>`
    LlmError(LlmError),
    /// `invalid_plan:<fault>`, in an orchestrator or research run
    InvalidPlan(PlanFault),
    /// `critical_task_failed`, in an orchestrator
    CriticalTaskFailed,
    /// `task_timeout`, of an orchestrator's task
    TaskTimeout,
    /// `max_dispatches`, in an orchestrator
    MaxDispatches,
    /// `worker_denied:<worker>`, `worker_missing:<worker>`, …, of an orchestrator's task
    Worker(WorkerFault, ToolName),
    /// `max_tool_rounds`, in a team or swarm: an agent's loop of tool calls did not end
    MaxToolRounds,
    /// `stuck:<agent>`, in a team or swarm: an agent repeated a tool call with the same arguments
    Stuck(AgentName),
    /// `max_handoffs`, in a swarm
    MaxHandoffs,
    /// `repetitive_handoff`, in a swarm
    RepetitiveHandoff,
    /// `node_timeout:<agent>`, in a swarm
    NodeTimeout(AgentName),
    /// `invalid_step:<fault>`, in research
    InvalidStep(StepFault),
    /// `invalid_search:query`, in research
    InvalidSearchQuery,
    /// `no_sources_after_dedupe`, in research
    NoSourcesAfterDedupe,
    /// `no_reliable_sources`, in research: no page yielded a note
    NoReliableSources,
    /// `tool_invalid_output:<tool>`, in research: a result that does not match the tool's contract
    ToolInvalidOutput(ToolName),
    /// `invalid_notes:<fault>`, in research
    InvalidNotes(NotesFault),
    /// `verification_failed:<issue>`, in research
    VerificationFailed(NoteIssue),
    /// `invalid_answer:<fault>`, in research
    InvalidAnswer(AnswerFault),
    /// `tool_error:<tool>:<what>`: a tool that the run needs was not available
    ToolError(ToolName, FailureClass),
    /// `circuit_open:<tool>`
    CircuitOpen(ToolName),
    /// `bulkhead_full:<tool>`
    BulkheadFull(ToolName),
    /// `script_missing:<step>`: an offline run whose script has no row for this role, agent or step
    ScriptMissing(Box<str>),
    /// `cancelled`: the operator ended the run
    Cancelled,
    /// `internal_error`: a bug in roundtable, caught; the log file has the details
    InternalError,
    /// A reason this version does not know, read from a file.
    Other(Box<str>),
}

/// What is wrong with a contribution (`validate_contribution` and `accept` in the collaboration
/// source document).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContributionFault {
    /// `not_object`
    NotObject,
    /// `missing_keys`
    MissingKeys,
    /// `agent`
    Agent,
    /// `agent_not_allowed:<name>`, the name made visible and limited in length
    AgentNotAllowed(Box<str>),
    /// `stance`
    Stance,
    /// `summary`
    Summary,
    /// `confidence_type`
    ConfidenceType,
    /// `confidence_range`
    ConfidenceRange,
    /// `actions`
    Actions,
    /// `action_item`
    ActionItem,
    /// `agent_mismatch:<expected role>`
    AgentMismatch(RoleName),
}

impl ContributionFault {
    /// `agent_not_allowed`, for a name that a model gave.
    pub fn agent_not_allowed(name: &str) -> Self {
        Self::AgentNotAllowed(visible_within(name, REASON_CHARS).into())
    }
}

/// Why a model call failed, other than a timeout or an empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LlmError {
    /// `auth`: 401 or 403
    Auth,
    /// `rate_limited`: 429 after the retries
    RateLimited,
    /// `http_<status>`
    Http(u16),
    /// `connection`: refused, reset, host name not resolved, TLS
    Connection,
    /// `bad_response`: a body that is not a chat completion
    BadResponse,
}

/// Class of a stop reason: it decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopClass {
    /// `success`: exit code 0
    Ok,
    /// Stopped by its policy: exit code 1
    Stopped,
    /// Ended by a budget or the deadline: exit code 4
    Budget,
    /// The model or a tool could not be reached: exit code 6
    Unreachable,
    /// Cancelled by the operator: exit code 130
    Cancelled,
}

impl StopReason {
    /// Whether the run completed.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success)
    }

    /// The class (docs/rules/decisions.md, "Exit codes").
    pub fn class(&self) -> StopClass {
        match self {
            Self::Success => StopClass::Ok,
            Self::MaxMessages
            | Self::MaxRoundsReached
            | Self::MaxDispatches
            | Self::MaxHandoffs
            | Self::MaxTokensBudget
            | Self::MaxCostBudget
            | Self::MaxSeconds => StopClass::Budget,
            Self::LlmTimeout | Self::LlmError(_) => StopClass::Unreachable,
            Self::CircuitOpen(tool) if tool.as_str() == "llm" => StopClass::Unreachable,
            Self::Cancelled => StopClass::Cancelled,
            Self::InvalidContribution(_)
            | Self::AgentDenied(_)
            | Self::LlmEmpty
            | Self::InvalidPlan(_)
            | Self::CriticalTaskFailed
            | Self::TaskTimeout
            | Self::MaxToolRounds
            | Self::Stuck(_)
            | Self::RepetitiveHandoff
            | Self::NodeTimeout(_)
            | Self::Worker(..)
            | Self::InvalidStep(_)
            | Self::InvalidSearchQuery
            | Self::NoSourcesAfterDedupe
            | Self::NoReliableSources
            | Self::ToolInvalidOutput(_)
            | Self::InvalidNotes(_)
            | Self::VerificationFailed(_)
            | Self::InvalidAnswer(_)
            | Self::ToolError(..)
            | Self::CircuitOpen(_)
            | Self::BulkheadFull(_)
            | Self::ScriptMissing(_)
            | Self::InternalError
            | Self::Other(_) => StopClass::Stopped,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::InvalidContribution(fault) => write!(f, "invalid_contribution:{fault}"),
            Self::AgentDenied(role) => write!(f, "agent_denied:{role}"),
            Self::MaxMessages => f.write_str("max_messages"),
            Self::MaxRoundsReached => f.write_str("max_rounds_reached"),
            Self::MaxTokensBudget => f.write_str("max_tokens_budget"),
            Self::MaxCostBudget => f.write_str("max_cost_budget"),
            Self::MaxSeconds => f.write_str("max_seconds"),
            Self::LlmTimeout => f.write_str("llm_timeout"),
            Self::LlmEmpty => f.write_str("llm_empty"),
            Self::LlmError(error) => write!(f, "llm_error:{error}"),
            Self::InvalidPlan(fault) => write!(f, "invalid_plan:{fault}"),
            Self::CriticalTaskFailed => f.write_str("critical_task_failed"),
            Self::TaskTimeout => f.write_str("task_timeout"),
            Self::MaxDispatches => f.write_str("max_dispatches"),
            Self::MaxToolRounds => f.write_str("max_tool_rounds"),
            Self::Stuck(agent) => write!(f, "stuck:{agent}"),
            Self::MaxHandoffs => f.write_str("max_handoffs"),
            Self::RepetitiveHandoff => f.write_str("repetitive_handoff"),
            Self::NodeTimeout(agent) => write!(f, "node_timeout:{agent}"),
            Self::Worker(trouble, worker) => write!(f, "{}:{worker}", trouble.word()),
            Self::InvalidStep(fault) => write!(f, "invalid_step:{fault}"),
            Self::InvalidSearchQuery => f.write_str("invalid_search:query"),
            Self::NoSourcesAfterDedupe => f.write_str("no_sources_after_dedupe"),
            Self::NoReliableSources => f.write_str("no_reliable_sources"),
            Self::ToolInvalidOutput(tool) => write!(f, "tool_invalid_output:{tool}"),
            Self::InvalidNotes(fault) => write!(f, "invalid_notes:{fault}"),
            Self::VerificationFailed(issue) => write!(f, "verification_failed:{issue}"),
            Self::InvalidAnswer(fault) => write!(f, "invalid_answer:{fault}"),
            Self::ToolError(tool, class) => write!(f, "tool_error:{tool}:{}", class.word()),
            Self::CircuitOpen(tool) => write!(f, "circuit_open:{tool}"),
            Self::BulkheadFull(tool) => write!(f, "bulkhead_full:{tool}"),
            Self::ScriptMissing(step) => write!(f, "script_missing:{step}"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::InternalError => f.write_str("internal_error"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for ContributionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotObject => f.write_str("not_object"),
            Self::MissingKeys => f.write_str("missing_keys"),
            Self::Agent => f.write_str("agent"),
            Self::AgentNotAllowed(name) => write!(f, "agent_not_allowed:{name}"),
            Self::Stance => f.write_str("stance"),
            Self::Summary => f.write_str("summary"),
            Self::ConfidenceType => f.write_str("confidence_type"),
            Self::ConfidenceRange => f.write_str("confidence_range"),
            Self::Actions => f.write_str("actions"),
            Self::ActionItem => f.write_str("action_item"),
            Self::AgentMismatch(role) => write!(f, "agent_mismatch:{role}"),
        }
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auth => f.write_str("auth"),
            Self::RateLimited => f.write_str("rate_limited"),
            Self::Http(status) => write!(f, "http_{status}"),
            Self::Connection => f.write_str("connection"),
            Self::BadResponse => f.write_str("bad_response"),
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::from(text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_reads_back_as_itself() {
        for text in [
            "success",
            "max_messages",
            "max_rounds_reached",
            "max_seconds",
            "llm_timeout",
            "llm_empty",
            "cancelled",
            "internal_error",
            "agent_denied:legal_analyst",
            "circuit_open:llm",
            "bulkhead_full:llm",
            "script_missing:risk_analyst",
            "script_missing:finalize",
            "llm_error:auth",
            "llm_error:rate_limited",
            "llm_error:http_503",
            "llm_error:connection",
            "llm_error:bad_response",
            "invalid_contribution:not_object",
            "invalid_contribution:missing_keys",
            "invalid_contribution:agent",
            "invalid_contribution:agent_not_allowed:x:y",
            "invalid_contribution:agent_mismatch:risk_analyst",
            "invalid_contribution:stance",
            "invalid_contribution:summary",
            "invalid_contribution:confidence_type",
            "invalid_contribution:confidence_range",
            "invalid_contribution:actions",
            "invalid_contribution:action_item",
            "invalid_plan:non_json",
            "invalid_plan:kind",
            "invalid_plan:tasks",
            "invalid_plan:max_tasks",
            "invalid_plan:task_shape",
            "invalid_plan:missing_keys",
            "invalid_plan:task_id",
            "invalid_plan:duplicate_task_id",
            "invalid_plan:worker",
            "invalid_plan:worker_not_allowed:a:b",
            "invalid_plan:args",
            "invalid_plan:critical",
            "invalid_plan:args_integer",
            "critical_task_failed",
            "task_timeout",
            "max_dispatches",
            "worker_denied:inventory_worker",
            "worker_missing:x",
            "worker_bad_args:x",
            "worker_bad_result:x",
            "worker_error:x",
            "tool_error:vendor:bad_response",
            "invalid_plan:steps",
            "invalid_plan:too_many_steps",
            "invalid_plan:step_sequence",
            "invalid_step:not_object",
            "invalid_search:query",
            "no_sources_after_dedupe",
            "no_reliable_sources",
            "tool_invalid_output:search_sources",
            "invalid_notes:too_many",
            "verification_failed:quote_not_in_source",
            "invalid_answer:citation_unknown",
        ] {
            let reason = StopReason::from(text);
            assert!(!matches!(reason, StopReason::Other(_)), "{text} is known");
            assert_eq!(reason.to_string(), text);
        }
        assert_eq!(StopReason::from("invalid_search:query").to_string(), "invalid_search:query");
    }

    #[test]
    fn a_name_given_by_a_model_is_bounded_and_made_visible() {
        let fault = ContributionFault::agent_not_allowed(&format!("\u{1b}[2J{}", "x".repeat(900)));
        let text = StopReason::InvalidContribution(fault).to_string();
        let name = text.strip_prefix("invalid_contribution:agent_not_allowed:").expect("prefix");
        assert_eq!(name.chars().count(), REASON_CHARS);
        assert!(name.starts_with("␛[2J"));
    }
}
