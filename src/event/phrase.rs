//! What people read in place of an identifier of a log: on screen, in Markdown and in text output.
//! JSON keeps the identifiers.

use std::borrow::Cow;

use super::contribution::{Conflict, Decision};
use super::failure_class::FailureClass;
use super::kind::{Denial, DropReason, NotesLimit, ReadingEnd};
use super::stop::{
    AnswerFault, ContributionFault, LlmError, NoteIssue, NotesFault, PlanFault, StepFault,
    StopReason, WorkerFault,
};

impl Decision {
    /// The decision in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::GoWithCaution => "go with caution",
            Self::NoGo => "no go",
        }
    }
}

impl Conflict {
    /// The conflict in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::NoContributions => "no contributions",
            Self::GoVsCaution => "go vs caution",
            // Not "block vs go": the others may all say caution.
            Self::BlockingVsNonBlock => "block vs others",
            Self::HighDivergence => "far apart",
        }
    }
}

impl DropReason {
    /// The reason in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid address",
            Self::Duplicate { .. } => "duplicate",
            Self::MaxUrls => "over the URL limit",
        }
    }
}

impl Denial {
    /// The reason in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Policy => "not on the allowlist",
            Self::Execution => "switched off",
        }
    }
}

impl NotesLimit {
    /// The limit in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::NotesPerPage => "limit per page",
            Self::MaxNotes => "limit per run",
        }
    }
}

impl ReadingEnd {
    /// The reason in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::NoMoreSources => "no more sources",
            Self::MaxReadPages => "page limit reached",
            Self::MaxNotes => "note limit reached",
        }
    }
}

impl FailureClass {
    /// The class in words, as short as its identifier.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::RateLimited => "rate limited",
            Self::BadResponse => "bad response",
            Self::TooLarge => "too large",
            Self::ScriptMissing => "not scripted",
            other => other.word(),
        }
    }
}

impl StopReason {
    /// The reason in words, hardly longer than its identifier, since it takes its place in narrow
    /// columns. What to do about it is [`advice`](Self::advice).
    pub(crate) fn phrase(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::Success => "success",
            Self::MaxMessages => "message limit",
            Self::MaxRoundsReached => "round limit",
            Self::MaxSeconds => "time limit",
            Self::MaxTokensBudget => "token budget",
            Self::MaxCostBudget => "cost budget",
            Self::LlmTimeout => "model timed out",
            Self::LlmEmpty => "empty model reply",
            Self::CriticalTaskFailed => "required task failed",
            Self::TaskTimeout => "worker timed out",
            Self::MaxDispatches => "dispatch limit",
            Self::MaxToolRounds => "tool round limit",
            Self::MaxHandoffs => "handoff limit",
            Self::RepetitiveHandoff => "repeated handoffs",
            Self::InvalidSearchQuery => "no search query",
            Self::NoSourcesAfterDedupe => "search found nothing",
            Self::NoReliableSources => "no usable sources",
            Self::Cancelled => "cancelled",
            Self::InternalError => "internal error",
            Self::Other(text) => text,
            Self::InvalidContribution(fault) => {
                return format!("invalid contribution: {}", fault.phrase()).into();
            }
            Self::AgentDenied(role) => return format!("{role} denied").into(),
            Self::LlmError(error) => return format!("model: {}", error.phrase()).into(),
            Self::InvalidPlan(fault) => return format!("invalid plan: {}", fault.phrase()).into(),
            Self::Worker(fault, worker) => {
                return match fault {
                    WorkerFault::Denied => format!("{worker} switched off"),
                    WorkerFault::Missing => format!("{worker} not implemented"),
                    WorkerFault::BadArgs => format!("bad args for {worker}"),
                    WorkerFault::BadResult => format!("bad result of {worker}"),
                    WorkerFault::Error => format!("{worker} failed"),
                }
                .into();
            }
            Self::Stuck(agent) => return format!("{agent} is stuck").into(),
            Self::NodeTimeout(agent) => return format!("{agent} timed out").into(),
            Self::InvalidStep(fault) => return format!("invalid step: {}", fault.phrase()).into(),
            Self::ToolInvalidOutput(tool) => return format!("bad result of {tool}").into(),
            Self::InvalidNotes(fault) => {
                return format!("invalid notes: {}", fault.phrase()).into();
            }
            Self::VerificationFailed(issue) => {
                return format!("verification failed: {}", issue.phrase()).into();
            }
            Self::InvalidAnswer(fault) => {
                return format!("invalid answer: {}", fault.phrase()).into();
            }
            Self::ToolError(tool, class) => return format!("{tool}: {}", class.phrase()).into(),
            Self::CircuitOpen(tool) => return format!("{tool}: breaker open").into(),
            Self::BulkheadFull(tool) => return format!("{tool}: bulkhead full").into(),
            Self::ScriptMissing(step) => return format!("not scripted: {step}").into(),
        })
    }

    /// The phrase, followed by the identifier where the two differ.
    pub(crate) fn phrase_and_id(&self) -> String {
        let (phrase, id) = (self.phrase(), self.to_string());
        if *phrase == id { id } else { format!("{phrase} ({id})") }
    }
}

impl ContributionFault {
    fn phrase(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::NotObject => "not an object",
            Self::MissingKeys => "keys missing",
            Self::Agent => "bad agent",
            Self::AgentNotAllowed(name) => return format!("unknown agent {name}").into(),
            Self::Stance => "bad stance",
            Self::Summary => "bad summary",
            Self::ConfidenceType => "confidence is not a number",
            Self::ConfidenceRange => "confidence out of range",
            Self::Actions => "bad actions",
            Self::ActionItem => "bad action",
            Self::AgentMismatch(role) => return format!("expected agent {role}").into(),
        })
    }
}

impl LlmError {
    fn phrase(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Auth => "key refused",
            Self::RateLimited => "rate limited",
            Self::Http(status) => return format!("HTTP {status}").into(),
            Self::Connection => "no connection",
            Self::BadResponse => "bad response",
        })
    }
}

impl PlanFault {
    fn phrase(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::NonJson => "not JSON",
            Self::Kind => "bad kind",
            Self::Tasks => "bad tasks",
            Self::MaxTasks => "too many tasks",
            Self::TaskShape => "bad task",
            Self::MissingKeys => "keys missing",
            Self::TaskId => "bad task id",
            Self::DuplicateTaskId => "duplicate task id",
            Self::Worker => "bad worker",
            Self::WorkerNotAllowed(name) => return format!("unknown worker {name}").into(),
            Self::Args => "bad arguments",
            Self::Critical => "bad value of critical",
            Self::ArgsInteger => "whole number beyond 64 bits",
            Self::Steps => "bad steps",
            Self::TooManySteps => "too many steps",
            Self::StepSequence => "wrong order of steps",
        })
    }
}

impl StepFault {
    fn phrase(self) -> &'static str {
        match self {
            Self::NotObject => "not an object",
            Self::Id => "bad id",
            Self::Action => "bad action",
            Self::Args => "bad arguments",
        }
    }
}

impl NotesFault {
    fn phrase(self) -> &'static str {
        match self {
            Self::Empty => "none",
            Self::TooMany => "too many",
            Self::Item => "bad note",
            Self::Id => "bad id",
            Self::Url => "bad address",
            Self::Claim => "bad claim",
            Self::Quote => "bad quote",
        }
    }
}

impl NoteIssue {
    /// The issue in words.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::QuoteTooShort => "quote too short",
            Self::ClaimMissing => "claim missing",
            Self::QuoteNotInSource => "quote not on page",
            Self::ClaimTooLong => "claim too long",
            Self::QuoteTooLong => "quote too long",
        }
    }
}

impl AnswerFault {
    fn phrase(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too long",
            Self::Citations => "bad citations",
            Self::CitationUnknown => "unknown citation",
        }
    }
}

/// Why a source was skipped, in words; its identifier may come from a tool of the scenario.
pub(crate) fn skip_phrase(reason: &str) -> Cow<'_, str> {
    match reason.strip_prefix("http_") {
        Some(status) => format!("HTTP {status}").into(),
        None if reason.contains('_') => reason.replace('_', " ").into(),
        None => reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_phrase_is_an_identifier() {
        let phrases = Decision::ALL.map(Decision::phrase).into_iter();
        for phrase in phrases.chain(FailureClass::ALL.map(FailureClass::phrase)) {
            assert!(!phrase.contains('_'), "{phrase}");
        }
        assert_eq!(skip_phrase("http_404"), "HTTP 404");
        assert_eq!(skip_phrase("robots_disallowed"), "robots disallowed");
    }

    #[test]
    fn a_name_in_a_phrase_keeps_its_spelling() {
        for (id, phrase) in [
            ("max_rounds_reached", "round limit"),
            ("agent_denied:legal_analyst", "legal_analyst denied"),
            ("llm_error:http_503", "model: HTTP 503"),
            ("tool_error:vendor_api:rate_limited", "vendor_api: rate limited"),
            (
                "invalid_contribution:agent_mismatch:risk_analyst",
                "invalid contribution: expected agent risk_analyst",
            ),
            ("from_a_later_version", "from_a_later_version"),
        ] {
            assert_eq!(StopReason::from(id).phrase(), phrase);
        }
        assert_eq!(StopReason::Cancelled.phrase_and_id(), "cancelled");
        assert_eq!(StopReason::LlmTimeout.phrase_and_id(), "model timed out (llm_timeout)");
    }
}
