//! Why a run ended: one type, printed as the exact strings of the sources.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::visible::{REASON_CHARS, visible_within};
use crate::scenario::name::{RoleName, ToolName};

/// Why a run ended. A stop reason is data, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// `success`
    Success,
    /// `invalid_contribution:<fault>`, pattern `000`
    InvalidContribution(ContributionFault),
    /// `agent_denied:<role>`, pattern `000`
    AgentDenied(RoleName),
    /// `max_messages`, pattern `000`
    MaxMessages,
    /// `max_rounds_reached`, pattern `000`
    MaxRoundsReached,
    /// `max_seconds`
    MaxSeconds,
    /// `llm_timeout`
    LlmTimeout,
    /// `llm_empty`
    LlmEmpty,
    /// `llm_error:<what>`
    LlmError(LlmError),
    /// `circuit_open:<tool>`
    CircuitOpen(ToolName),
    /// `bulkhead_full:<tool>`
    BulkheadFull(ToolName),
    /// `cancelled`: a person ended it
    Cancelled,
    /// `internal_error`: a bug of ours, contained; the log says more
    InternalError,
    /// A reason this version does not know, read from a file.
    Other(Box<str>),
}

/// What was wrong with a contribution (`000`, `validate_contribution` and `accept`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContributionFault {
    /// `not_object`
    NotObject,
    /// `missing_keys`
    MissingKeys,
    /// `agent`
    Agent,
    /// `agent_not_allowed:<name>`, the name made visible and bounded
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
    /// `agent_not_allowed` for a name that a model gave.
    pub fn agent_not_allowed(name: &str) -> Self {
        Self::AgentNotAllowed(visible_within(name, REASON_CHARS).into())
    }
}

/// How a model call failed for good, other than by time-out or an empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LlmError {
    /// `auth`: 401 or 403
    Auth,
    /// `rate_limited`: 429 after the retries
    RateLimited,
    /// `http_<status>`
    Http(u16),
    /// `connection`: refused, reset, not resolved, TLS
    Connection,
    /// `bad_response`: a body that is no chat completion
    BadResponse,
}

/// The class of a stop reason: what the exit code tells a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopClass {
    /// `success`: exit code 0
    Ok,
    /// The run was stopped by its policy: 1
    Stopped,
    /// A budget or the deadline ended it: 4
    Budget,
    /// The model or a tool could not be reached: 6
    Unreachable,
    /// A person ended it: 130
    Cancelled,
}

impl StopReason {
    /// Whether the run came to its end.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success)
    }

    /// Its class (decisions, "Exit codes").
    pub fn class(&self) -> StopClass {
        match self {
            Self::Success => StopClass::Ok,
            Self::MaxMessages | Self::MaxRoundsReached | Self::MaxSeconds => StopClass::Budget,
            Self::LlmTimeout | Self::LlmError(_) => StopClass::Unreachable,
            Self::CircuitOpen(tool) if tool.as_str() == "llm" => StopClass::Unreachable,
            Self::Cancelled => StopClass::Cancelled,
            Self::InvalidContribution(_)
            | Self::AgentDenied(_)
            | Self::LlmEmpty
            | Self::CircuitOpen(_)
            | Self::BulkheadFull(_)
            | Self::InternalError
            | Self::Other(_) => StopClass::Stopped,
        }
    }

    /// What a person can do about it, in one sentence; `None` for a success.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Success => return None,
            Self::InvalidContribution(_) => {
                "The reply broke the contract: read what it said, then mend the role's prompt."
            }
            Self::AgentDenied(_) => {
                "The role's flag is off and `when_off = \"deny\"`: turn the flag on, or use \"skip\"."
            }
            Self::MaxMessages => "Raise budget.max_messages, or seat fewer roles.",
            Self::MaxRoundsReached => {
                "The table did not agree: raise budget.max_rounds, or look at who blocks."
            }
            Self::MaxSeconds => "Raise budget.max_seconds, or look at which call was slow.",
            Self::LlmTimeout => "The model did not answer in time: raise tools.llm.timeout_s.",
            Self::LlmEmpty => "The model gave an empty final text: start the run again.",
            Self::LlmError(LlmError::Auth) => {
                "The endpoint refused the key: check OPENAI_API_KEY with `roundtable doctor`."
            }
            Self::LlmError(LlmError::RateLimited) => {
                "The endpoint's rate limit: wait, or raise tools.llm.retries."
            }
            Self::LlmError(LlmError::Http(_)) => {
                "The endpoint failed: inspect the attempt for what it said."
            }
            Self::LlmError(LlmError::Connection) => {
                "No connection: check OPENAI_BASE_URL with `roundtable doctor`."
            }
            Self::LlmError(LlmError::BadResponse) => {
                "The answer was no chat completion, or too large for one: the attempt says which."
            }
            Self::CircuitOpen(_) => "The breaker is open: wait until it probes again.",
            Self::BulkheadFull(_) => "Too many calls at once: raise max_in_flight or max_wait_ms.",
            Self::Cancelled => "Ended by a person.",
            Self::InternalError => "A bug of ours: the log file has the details.",
            Self::Other(_) => "Written by another version of roundtable.",
        })
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
            Self::MaxSeconds => f.write_str("max_seconds"),
            Self::LlmTimeout => f.write_str("llm_timeout"),
            Self::LlmEmpty => f.write_str("llm_empty"),
            Self::LlmError(error) => write!(f, "llm_error:{error}"),
            Self::CircuitOpen(tool) => write!(f, "circuit_open:{tool}"),
            Self::BulkheadFull(tool) => write!(f, "bulkhead_full:{tool}"),
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

impl From<&str> for StopReason {
    fn from(text: &str) -> Self {
        let other = || Self::Other(text.into());
        match text.split_once(':') {
            None => match text {
                "success" => Self::Success,
                "max_messages" => Self::MaxMessages,
                "max_rounds_reached" => Self::MaxRoundsReached,
                "max_seconds" => Self::MaxSeconds,
                "llm_timeout" => Self::LlmTimeout,
                "llm_empty" => Self::LlmEmpty,
                "cancelled" => Self::Cancelled,
                "internal_error" => Self::InternalError,
                _ => other(),
            },
            Some(("agent_denied", role)) => Self::AgentDenied(role.into()),
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
            Some(_) => other(),
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
        ] {
            let reason = StopReason::from(text);
            assert!(!matches!(reason, StopReason::Other(_)), "{text} is known");
            assert_eq!(reason.to_string(), text);
        }
        assert_eq!(StopReason::from("invalid_plan:kind").to_string(), "invalid_plan:kind");
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
