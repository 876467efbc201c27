//! Advice for the operator about a run that was stopped.

use super::stop::{LlmError, StopReason};
use crate::pattern::orchestrator::faults::{PlanFault, WorkerFault};
use crate::pattern::research::faults::{AnswerFault, NoteIssue};

impl StopReason {
    /// What to do about this stop reason, in one sentence; `None` for a success.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Success => return None,
            Self::InvalidContribution(_) => {
                "The reply did not match the required format: fix the role's prompt, or set model.repair or model.ask_again."
            }
            Self::AgentDenied(_) => {
                "The role's flag is off and `when_off = \"deny\"`: switch the flag on, or use \"skip\"."
            }
            Self::MaxMessages => "Raise budget.max_messages, or use fewer roles.",
            Self::MaxRoundsReached => {
                "The seats did not agree: raise budget.max_rounds, or see who blocks."
            }
            Self::MaxTokensBudget => {
                "Raise budget.max_total_tokens, or set a smaller model.max_tokens: each call reserves it."
            }
            Self::MaxCostBudget => {
                "Raise budget.max_cost_usd, use a cheaper model, or set a smaller model.max_tokens."
            }
            Self::MaxSeconds => "Raise budget.max_seconds, or find the slow call.",
            Self::LlmTimeout => "The model did not reply in time: raise tools.llm.timeout_s.",
            Self::LlmEmpty => "The model's final text was empty: start the run again.",
            Self::LlmError(LlmError::Auth) => {
                "The endpoint refused the key: the attempt names its variable; check it with `roundtable doctor --live`."
            }
            Self::LlmError(LlmError::RateLimited) => {
                "The endpoint limits the rate of calls: start the run again later."
            }
            Self::LlmError(LlmError::Http(_)) => {
                "The endpoint returned an HTTP error: its text says why."
            }
            Self::LlmError(LlmError::Connection) => {
                "No connection: the attempt names the host; check it with `roundtable doctor --live`."
            }
            Self::LlmError(LlmError::BadResponse) => {
                "The reply was not a chat completion, or was too large: the attempt says which."
            }
            Self::InvalidPlan(PlanFault::ArgsInteger) => {
                "A whole number does not fit into 64 bits: have the planner give it to the worker as a string."
            }
            Self::InvalidPlan(_) => {
                "The plan did not match the required format: fix the planner's prompt, or set model.repair or model.ask_again."
            }
            Self::CriticalTaskFailed => "A required task failed: see its error.",
            Self::TaskTimeout => "The worker timed out: raise task_timeout_seconds.",
            Self::MaxDispatches => "Raise budget.max_dispatches, or see which task was retried.",
            Self::MaxToolRounds => {
                "The agent kept calling tools: raise max_tool_rounds, or fix its instruction."
            }
            Self::Stuck(_) => {
                "The agent kept repeating the same call: read the results it got, then fix its instruction."
            }
            Self::MaxHandoffs => "Raise max_handoffs, or see which agents hand over to each other.",
            Self::RepetitiveHandoff => {
                "Agents kept handing over in a circle: fix their instructions, or relax the loop guard."
            }
            Self::NodeTimeout(_) => {
                "The agent timed out: raise node_timeout_s, or find the slow call."
            }
            Self::InvalidStep(_) => {
                "A step of the plan did not match the required format: fix the planner's prompt, or set model.ask_again."
            }
            Self::InvalidSearchQuery => {
                "The plan's first step has no query: fix the planner's prompt, or set plan = \"rule\"."
            }
            Self::NoSourcesAfterDedupe => {
                "The search found nothing to read: use other words, or check where it searches."
            }
            Self::NoReliableSources => {
                "No source yielded a note: the list of sources gives the reason for each."
            }
            Self::ToolInvalidOutput(_) => {
                "The tool's result does not match its contract: the attempt has the whole result."
            }
            Self::InvalidNotes(_) => {
                "A note did not match the required format: fix the prompt for notes, or set model.ask_again."
            }
            Self::VerificationFailed(NoteIssue::QuoteNotInSource) => {
                "A quote was not found on its page: set misquotes = \"refuse\" to drop such notes."
            }
            Self::VerificationFailed(_) => {
                "A note cannot support an answer: check its quote and claim."
            }
            Self::InvalidAnswer(AnswerFault::CitationUnknown) => {
                "The answer cites a note that does not exist: fix its prompt, or set model.ask_again."
            }
            Self::InvalidAnswer(AnswerFault::TooLong) => {
                "Raise budget.max_answer_chars, or ask for a shorter answer."
            }
            Self::InvalidAnswer(_) => {
                "The answer did not match the required format: fix its prompt, or set model.repair or model.ask_again."
            }
            Self::Worker(WorkerFault::Denied, _) => {
                "The worker's flag is off: switch it on, or keep the worker out of the plan."
            }
            Self::Worker(WorkerFault::Missing, _) => {
                "The worker has no implementation: give it a fixture, http or command table."
            }
            Self::Worker(WorkerFault::BadArgs, _) => {
                "The planner gave arguments that the worker does not accept: fix its prompt."
            }
            Self::Worker(WorkerFault::BadResult, _) => {
                "The worker's result does not match its contract: the attempt says where."
            }
            Self::Worker(WorkerFault::Error, _) | Self::ToolError(..) => {
                "The tool failed: the attempt has the error."
            }
            Self::CircuitOpen(_) => {
                "The breaker was open, so the tool was not called: see what opened it."
            }
            Self::BulkheadFull(_) => {
                "Too many concurrent calls: raise max_in_flight or max_wait_ms."
            }
            Self::ScriptMissing(_) => {
                "The offline script has no matching row: add a [[script]] row whose conditions hold."
            }
            Self::Cancelled => "Cancelled by you.",
            Self::InternalError => "A bug in roundtable: the log file has the details.",
            Self::Other(_) => "A reason from another version of roundtable.",
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
            // A reason knows neither the provider nor whether a screen is shown.
            for word in ["_API_KEY", "_BASE_URL", "inspect", "failed"] {
                assert!(!advice.contains(word), "{error}: {advice}");
            }
            // Without `--live` the doctor contacts no endpoint.
            assert_eq!(advice.contains("doctor"), advice.contains("`roundtable doctor --live`"));
            let asks = matches!(error, LlmError::Auth | LlmError::Connection);
            assert_eq!(advice.contains("doctor"), asks, "{error}: {advice}");
        }
    }
}
