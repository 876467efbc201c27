//! What a person can do about a run that was stopped.

use super::plan_fault::{PlanFault, WorkerTrouble};
use super::research_fault::{AnswerFault, NoteIssue};
use super::stop::{LlmError, StopReason};

impl StopReason {
    /// What a person can do about it, in one sentence; `None` for a success.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Success => return None,
            Self::InvalidContribution(_) => {
                "The reply broke its contract: fix the role's prompt, or set model.repair or model.ask_again."
            }
            Self::AgentDenied(_) => {
                "The role's flag is off and `when_off = \"deny\"`: turn the flag on, or use \"skip\"."
            }
            Self::MaxMessages => "Raise budget.max_messages, or seat fewer roles.",
            Self::MaxRoundsReached => {
                "The table did not agree: raise budget.max_rounds, or look at who blocks."
            }
            Self::MaxTokensBudget => {
                "Raise budget.max_total_tokens, or set a smaller model.max_tokens: each call reserves it."
            }
            Self::MaxCostBudget => {
                "Raise budget.max_cost_usd, use a cheaper model, or set a smaller model.max_tokens."
            }
            Self::MaxSeconds => "Raise budget.max_seconds, or look at which call was slow.",
            Self::LlmTimeout => "The model did not answer in time: raise tools.llm.timeout_s.",
            Self::LlmEmpty => "The model gave an empty final text: start the run again.",
            Self::LlmError(LlmError::Auth) => {
                "The endpoint refused the key: the attempt names its variable, `roundtable doctor --live` checks it."
            }
            Self::LlmError(LlmError::RateLimited) => {
                "The endpoint limits the rate of calls: start the run again later."
            }
            Self::LlmError(LlmError::Http(_)) => {
                "The endpoint answered with an HTTP error: its text says why."
            }
            Self::LlmError(LlmError::Connection) => {
                "No connection: the attempt names the host, `roundtable doctor --live` asks it."
            }
            Self::LlmError(LlmError::BadResponse) => {
                "The answer was no chat completion, or too large for one: the attempt says which."
            }
            Self::InvalidPlan(PlanFault::ArgsInteger) => {
                "A whole number beyond 64 bits would reach the worker changed: have the planner give it as a text."
            }
            Self::InvalidPlan(_) => {
                "The plan broke its contract: fix the planner's prompt, or set model.repair or model.ask_again."
            }
            Self::CriticalTaskFailed => {
                "A task that the report needs failed: the task says of what."
            }
            Self::TaskTimeout => "The worker did not answer in time: raise task_timeout_seconds.",
            Self::MaxDispatches => {
                "Raise budget.max_dispatches, or look at which task was retried."
            }
            Self::MaxToolRounds => {
                "The agent kept calling tools: raise max_tool_rounds, or fix its instruction."
            }
            Self::Stuck(_) => {
                "The agent made the same call again and again: read what it was told, then fix its instruction."
            }
            Self::MaxHandoffs => "Raise max_handoffs, or look at who hands over to whom.",
            Self::RepetitiveHandoff => {
                "A few agents handed over in a circle: fix their instructions, or widen the window."
            }
            Self::NodeTimeout(_) => {
                "The agent did not come to an end in time: raise node_timeout_s, or look at what was slow."
            }
            Self::InvalidStep(_) => {
                "A step of the plan broke its contract: fix the planner's prompt, or set model.ask_again."
            }
            Self::InvalidSearchQuery => {
                "The plan's first step has no query: fix the planner's prompt, or plan by rule."
            }
            Self::NoSourcesAfterDedupe => {
                "The search found nothing to read: ask other words, or look where it searches."
            }
            Self::NoReliableSources => {
                "No source gave a note: each says beside it why it fell out."
            }
            Self::ToolInvalidOutput(_) => {
                "The tool's answer is not its contract: the attempt has it, whole."
            }
            Self::InvalidNotes(_) => {
                "A note broke its contract: fix the prompt of the notes, or set model.ask_again."
            }
            Self::VerificationFailed(NoteIssue::QuoteNotInSource) => {
                "A quote does not stand in its page: the note is made up, or set misquotes = \"refuse\"."
            }
            Self::VerificationFailed(_) => {
                "A note is no ground for an answer: see its quote and claim."
            }
            Self::InvalidAnswer(AnswerFault::CitationUnknown) => {
                "The answer cites a note that does not exist: fix its prompt, or set model.ask_again."
            }
            Self::InvalidAnswer(AnswerFault::TooLong) => {
                "Raise budget.max_answer_chars, or ask for a shorter answer."
            }
            Self::InvalidAnswer(_) => {
                "The answer broke its contract: fix its prompt, or set model.repair or model.ask_again."
            }
            Self::Worker(WorkerTrouble::Denied, _) => {
                "The worker's flag is off: turn it on, or keep the worker out of the plan."
            }
            Self::Worker(WorkerTrouble::Missing, _) => {
                "Nothing stands behind the worker: give it a fixture, http or command table."
            }
            Self::Worker(WorkerTrouble::BadArgs, _) => {
                "The planner gave arguments that the worker does not take: fix its prompt."
            }
            Self::Worker(WorkerTrouble::BadResult, _) => {
                "The worker's answer breaks its contract: the attempt says where."
            }
            Self::Worker(WorkerTrouble::Error, _) | Self::ToolError(..) => {
                "The tool failed: the attempt says how."
            }
            Self::CircuitOpen(_) => {
                "The breaker was open, so the tool was not asked: see what opened it."
            }
            Self::BulkheadFull(_) => "Too many calls at once: raise max_in_flight or max_wait_ms.",
            Self::ScriptMissing(_) => {
                "Offline the script answers: add a [[script]] row for it whose conditions hold."
            }
            Self::Cancelled => "Ended by a person.",
            Self::InternalError => "A bug of ours: the log file has the details.",
            Self::Other(_) => "Written by another version of roundtable.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_about_an_endpoint_holds_for_every_provider_and_every_status() {
        for error in [
            LlmError::Auth,
            LlmError::RateLimited,
            LlmError::Http(400),
            LlmError::Http(503),
            LlmError::Connection,
            LlmError::BadResponse,
        ] {
            let advice = StopReason::LlmError(error.clone()).advice().expect("there is some");
            // A reason knows neither the provider nor whether anybody looks at a screen.
            for word in ["_API_KEY", "_BASE_URL", "inspect", "failed"] {
                assert!(!advice.contains(word), "{error}: {advice}");
            }
            // Without `--live` the doctor asks nobody.
            assert_eq!(advice.contains("doctor"), advice.contains("`roundtable doctor --live`"));
            let asks = matches!(error, LlmError::Auth | LlmError::Connection);
            assert_eq!(advice.contains("doctor"), asks, "{error}: {advice}");
        }
    }
}
