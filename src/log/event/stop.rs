//! Why a run ended: one type, printed as the exact strings of the source documents. Each reason is
//! one row: identifier, class (which gives the exit code), phrase, advice. What follows the colon
//! (a name or a fault) is a [`ReasonPart`].

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::failure::FailureClass;
use crate::base::name::{AgentName, PersonName, RoleName, ToolName};
use crate::log::facts::collaboration::ContributionFault;
use crate::log::facts::orchestrator::WorkerFault;
use crate::log::facts::plan_fault::PlanFault;
use crate::log::facts::research::{AnswerFault, NoteIssue, NotesFault, StepFault};
use crate::log::facts::router::RouteFault;

pub use super::failure::LlmError;

/// Makes the enum of stop reasons. A row has the variant, its word in logs and outcomes, the class,
/// the phrase for people, and the advice. A row of `parts` has a part after its word and a colon: a
/// name or a fault. Its phrase has `{}` for the part, and the part's own advice, if it has any, is
/// used in place of the row's.
macro_rules! stop_reasons {
    (
        plain { $(
            $(#[doc = $plain_doc:literal])*
            $plain:ident = $plain_word:literal, $plain_class:ident, $plain_phrase:literal,
                $plain_advice:expr;
        )+ }
        parts { $(
            $(#[doc = $doc:literal])*
            $name:ident($part:ty) = $word:literal, $class:ident, $phrase:literal, $advice:expr;
        )+ }
    ) => {
        /// Why a run ended. A stop reason is data, not an error.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum StopReason {
            $(#[doc = concat!("`", $plain_word, "`")] $(#[doc = $plain_doc])* $plain,)+
            $(#[doc = concat!("`", $word, ":…`")] $(#[doc = $doc])* $name($part),)+
            /// `worker_denied:<worker>`, `worker_missing:<worker>`, …, of an orchestrator's task
            Worker(WorkerFault, ToolName),
            /// `tool_error:<tool>:<what>`: a tool that the run needs was not available
            ToolError(ToolName, FailureClass),
            /// A reason this version does not know, read from a file.
            Other(Box<str>),
        }

        /// The rows of the table, for the documents.
        #[cfg(test)]
        pub(crate) const STOP_ROWS: &[StopRow] = &[
            $(StopRow {
                word: $plain_word,
                has_part: false,
                class: StopClass::$plain_class,
                about: concat!($($plain_doc),*),
                phrase: $plain_phrase,
                advice: $plain_advice,
            },)+
            $(StopRow {
                word: $word,
                has_part: true,
                class: StopClass::$class,
                about: concat!($($doc),*),
                phrase: $phrase,
                advice: $advice,
            },)+
        ];

        impl StopReason {
            /// The words of all reasons, without the part after a colon.
            pub(crate) fn words() -> impl Iterator<Item = &'static str> {
                let of_table = [$($plain_word,)+ $($word,)+ "tool_error"];
                of_table.into_iter().chain(WorkerFault::ALL.map(WorkerFault::word))
            }

            /// The class of the row.
            fn row_class(&self) -> StopClass {
                match self {
                    $(Self::$plain => StopClass::$plain_class,)+
                    $(Self::$name(_) => StopClass::$class,)+
                    Self::Worker(..) | Self::ToolError(..) | Self::Other(_) => StopClass::Stopped,
                }
            }

            /// What to do about this stop reason, in one sentence; `None` for a success.
            pub fn advice(&self) -> Option<&'static str> {
                match self {
                    $(Self::$plain => $plain_advice,)+
                    $(Self::$name(part) => part.advice().or($advice),)+
                    Self::Worker(fault, _) => fault.advice(),
                    Self::ToolError(..) => Some("The tool failed: its last error says why."),
                    Self::Other(_) => Some("A reason from another version of roundtable."),
                }
            }

            /// The reason in words, hardly longer than its identifier, since it takes its place in
            /// narrow columns. What to do about it is [`advice`](Self::advice).
            pub(crate) fn phrase(&self) -> Cow<'_, str> {
                match self {
                    $(Self::$plain => $plain_phrase.into(),)+
                    $(Self::$name(part) => format!($phrase, part.phrase()).into(),)+
                    Self::Worker(fault, worker) => fault.phrase(worker).into(),
                    Self::ToolError(tool, class) => format!("{tool}: {}", class.phrase()).into(),
                    Self::Other(text) => (&**text).into(),
                }
            }
        }

        impl fmt::Display for StopReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$plain => f.write_str($plain_word),)+
                    $(Self::$name(part) => write!(f, concat!($word, ":{}"), part),)+
                    Self::Worker(fault, worker) => write!(f, "{}:{worker}", fault.word()),
                    Self::ToolError(tool, class) => write!(f, "tool_error:{tool}:{}", class.word()),
                    Self::Other(text) => f.write_str(text),
                }
            }
        }

        impl From<&str> for StopReason {
            fn from(text: &str) -> Self {
                match text {
                    $($plain_word => return Self::$plain,)+
                    _ => {}
                }
                let known = text.split_once(':').and_then(|(word, rest)| match word {
                    $($word => <$part>::from_text(rest).map(Self::$name),)+
                    "tool_error" => {
                        let (tool, class) = rest.rsplit_once(':')?;
                        Some(Self::ToolError(tool.into(), FailureClass::from_word(class)?))
                    }
                    _ => Some(Self::Worker(WorkerFault::from_word(word)?, rest.into())),
                });
                known.unwrap_or_else(|| Self::Other(text.into()))
            }
        }
    };
}

// Each row: the variant, its word, its class, its phrase, its advice.
stop_reasons! {
    plain {
        Success = "success", Ok, "completed",
            None;
        /// In a collaboration.
        MaxMessages = "max_messages", Budget, "message limit",
            Some("Raise budget.max_messages, or use fewer roles.");
        /// In a collaboration.
        MaxRoundsReached = "max_rounds_reached", Budget, "round limit",
            Some("Fork it from the last round with another flag, input or prompt, or raise budget.max_rounds.");
        MaxSeconds = "max_seconds", Budget, "time limit",
            Some("Raise budget.max_seconds, or find the slow call.");
        /// Added by roundtable: the next model call would exceed `budget.max_total_tokens`.
        MaxTokensBudget = "max_tokens_budget", Budget, "token budget",
            Some("Raise budget.max_total_tokens, or set a smaller model.max_tokens: each call reserves it.");
        /// Added by roundtable: the next model call would exceed `budget.max_cost_usd`.
        MaxCostBudget = "max_cost_budget", Budget, "cost budget",
            Some("Raise budget.max_cost_usd, use a cheaper model, or set a smaller model.max_tokens.");
        /// Added by roundtable: of a guarded program.
        MaxCalls = "max_calls", Budget, "limit of calls",
            Some("Raise --max-calls.");
        /// Added by roundtable: a guarded program repeats itself.
        RepeatsReached = "repeats_reached", Budget, "limit of repeats",
            Some("Raise budget.repeats in the rules, or list a tool that polls under budget.polling.");
        LlmTimeout = "llm_timeout", Unreachable, "model timed out",
            Some("The model did not reply in time: raise tools.llm.timeout_s.");
        LlmEmpty = "llm_empty", Stopped, "empty model reply",
            Some("The model's final text was empty: start the run again.");
        /// In an orchestrator.
        CriticalTaskFailed = "critical_task_failed", Stopped, "required task failed",
            Some("Fix the cause of the failed task, or do not make the task critical.");
        /// Of an orchestrator's task.
        TaskTimeout = "task_timeout", Stopped, "worker timed out",
            Some("The worker timed out: raise budget.task_timeout_seconds.");
        /// In an orchestrator.
        MaxDispatches = "max_dispatches", Budget, "dispatch limit",
            Some("Raise budget.max_dispatches, or see which task was retried.");
        /// In a team or swarm: an agent's loop of tool calls did not end.
        MaxToolRounds = "max_tool_rounds", Stopped, "tool round limit",
            Some("The agent kept calling tools: raise agents.<name>.max_tool_rounds, or fix its instruction.");
        /// In a swarm.
        MaxHandoffs = "max_handoffs", Budget, "handoff limit",
            Some("Raise agents.<swarm>.max_handoffs, or see which agents hand over to each other.");
        /// In a swarm.
        RepetitiveHandoff = "repetitive_handoff", Stopped, "repeated handoffs",
            Some("Agents kept handing over in a circle: fix their instructions, or lower agents.<swarm>.repetitive_handoff_min_unique (0: no loop guard).");
        /// In research.
        InvalidSearchQuery = "invalid_search:query", Stopped, "no search query",
            Some("The plan's first step has no query: fix the planner's prompt, or set research.plan = \"rule\".");
        /// In research.
        NoSourcesAfterDedupe = "no_sources_after_dedupe", Stopped, "search found nothing",
            Some("No answer: the search found nothing. Try other words in the question, or check where it searches.");
        /// In research: no page yielded a note.
        NoReliableSources = "no_reliable_sources", Stopped, "no usable sources",
            Some("No source yielded a note: the list of sources gives the reason for each.");
        /// In a router: neither the classifier's route nor a fallback can be taken.
        NoRoute = "no_route", Stopped, "no route",
            Some("The classifier's route is off or its confidence too low: set router.fallback, or switch the route's flag on.");
        /// Of an observed run: the program ended with an exit code other than 0.
        ProgramFailed = "program_failed", Stopped, "the program failed",
            Some("The program ended with an error: its output says why.");
        /// Of an observed run: its outermost span failed.
        SpanFailed = "span_failed", Stopped, "the outermost span failed",
            Some("The outermost span failed: the transcript and the span have the error.");
        /// Of an observed run: it stopped to ask a person.
        WaitsForInput = "waits_for_input", Stopped, "waits for input",
            Some("The program stopped to ask a person: the next run of its thread continues it.");
        /// Of an observed run: a guardrail stopped it.
        GuardrailTripped = "guardrail_tripped", Stopped, "a guardrail tripped",
            Some("A guardrail refused the input or the output: its span says why.");
        /// Of an observed run: the program ended well and reported no span.
        NothingReported = "nothing_reported", Stopped, "nothing was reported",
            Some("No agent was reported. These are seen: LangChain, LangGraph, OpenAI Agents, CrewAI, Pydantic AI, ADK, Agent Framework, Strands, and programs that send OpenTelemetry over HTTP: docs/watch.md.");
        /// The operator ended the run.
        Cancelled = "cancelled", Cancelled, "cancelled",
            Some("Cancelled by you.");
        /// More than 100 questions of the run were open.
        TooManyQuestions = "too_many_questions", Stopped, "too many questions",
            Some("100 questions are open: answer them with rules ([[approve]]), or start fewer calls at once.");
        /// The run could not be stored, so no more paid calls were made.
        StoreFailed = "store_failed", Stopped, "cannot be stored",
            Some("The run's log could not be stored: make room on the disk, or run with --no-store.");
        /// A bug in roundtable, caught; the log file has the details.
        InternalError = "internal_error", Stopped, "internal error",
            Some("A bug in roundtable: the log file has the details.");
    }
    parts {
        /// In a collaboration.
        InvalidContribution(ContributionFault) = "invalid_contribution", Stopped, "invalid contribution: {}",
            Some("The reply did not match the required format: fix the role's prompt, or set model.repair or model.ask_again.");
        /// In a collaboration.
        AgentDenied(RoleName) = "agent_denied", Stopped, "{} denied",
            Some("The role's flag is off and `when_off = \"deny\"`: switch the flag on, or use \"skip\".");
        LlmError(LlmError) = "llm_error", Unreachable, "model: {}",
            Some("The model call failed: its last error says why.");
        /// In an orchestrator or research run.
        InvalidPlan(PlanFault) = "invalid_plan", Stopped, "invalid plan: {}",
            Some("The plan did not match the required format: fix the planner's prompt, or set model.repair or model.ask_again.");
        /// In a team or swarm: an agent repeated a tool call with the same arguments.
        Stuck(AgentName) = "stuck", Stopped, "{} is stuck",
            Some("The agent kept repeating the same call: read the results it got, then fix its instruction.");
        /// In a swarm.
        NodeTimeout(AgentName) = "node_timeout", Stopped, "{} timed out",
            Some("The agent timed out: raise agents.<swarm>.node_timeout_s, or find the slow call.");
        /// In research.
        InvalidStep(StepFault) = "invalid_step", Stopped, "invalid step: {}",
            Some("A step of the plan did not match the required format: fix the planner's prompt, or set model.ask_again.");
        /// In research: a result that does not match the tool's contract.
        ToolInvalidOutput(ToolName) = "tool_invalid_output", Stopped, "bad result of {}",
            Some("The tool's result does not match its contract: the attempt has the whole result.");
        /// In research.
        InvalidNotes(NotesFault) = "invalid_notes", Stopped, "invalid notes: {}",
            Some("A note did not match the required format: fix the prompt for notes, or set model.ask_again.");
        /// In research.
        VerificationFailed(NoteIssue) = "verification_failed", Stopped, "verification failed: {}",
            Some("A note cannot support an answer: check its quote and claim.");
        /// In research.
        InvalidAnswer(AnswerFault) = "invalid_answer", Stopped, "invalid answer: {}",
            Some("The answer did not match the required format: fix its prompt, or set model.repair or model.ask_again.");
        /// In a router.
        InvalidRoute(RouteFault) = "invalid_route", Stopped, "invalid route: {}",
            Some("The classification did not match the required format: fix router.prompt, or set model.repair or model.ask_again.");
        /// In a router: a route that the scenario does not have.
        RouteDenied(Box<str>) = "route_denied", Stopped, "unknown route {}",
            Some("The classifier named a route that is not in [router.routes]: fix router.prompt, or set model.ask_again.");
        /// Of a resumed run: the tool was called when the run stopped, and is not idempotent.
        InDoubt(ToolName) = "in_doubt", Stopped, "{}: call in doubt",
            Some("The call may have taken effect before the run stopped: check it, then fork before it; in_doubt = \"ask\" asks a person next time.");
        /// Of a call: a person, a rule or nobody has approved it.
        ApprovalDenied(ToolName) = "approval_denied", Stopped, "{}: not approved",
            Some("The call was not approved: the question has the reason.");
        /// A question had no answer, and its `otherwise` is `stop`.
        NoAnswer(PersonName) = "no_answer", Waiting, "no answer from {}",
            Some("Nobody answered: fork the run before the question, or set `otherwise`.");
        CircuitOpen(ToolName) = "circuit_open", Stopped, "{}: breaker open",
            Some("The breaker was open, so the tool was not called: see what opened it.");
        BulkheadFull(ToolName) = "bulkhead_full", Stopped, "{}: bulkhead full",
            Some("Too many concurrent calls: raise tools.<name>.bulkhead.max_in_flight or max_wait_ms.");
        RateReached(ToolName) = "rate_reached", Stopped, "{}: rate reached",
            Some("Too many attempts in a minute: raise tools.<name>.rate, or give calls more time.");
        /// An offline run whose script has no row for this role, agent or step.
        ScriptMissing(Box<str>) = "script_missing", Stopped, "not scripted: {}",
            Some("The offline script has no matching row: add a [[script]] row whose conditions hold.");
    }
}

/// A row of the table of stop reasons.
#[cfg(test)]
pub(crate) struct StopRow {
    pub word: &'static str,
    pub has_part: bool,
    pub class: StopClass,
    pub about: &'static str,
    pub phrase: &'static str,
    pub advice: Option<&'static str>,
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
    /// It waits for a person who did not answer: exit code 3
    Waiting,
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
            // The model's own breaker.
            Self::CircuitOpen(tool) if tool.as_str() == "llm" => StopClass::Unreachable,
            other => other.row_class(),
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for StopReason {
    fn inline_schema() -> bool {
        false
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StopReason".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "Why something stopped: a reason, or a reason and what it is about after a \
                            colon, such as llm_error:connection. Later versions may have more.",
        })
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::from(text.as_str()))
    }
}

/// A part of a stop reason, behind its word and a colon.
pub(crate) trait ReasonPart: fmt::Display + Sized {
    /// Reads it as it is displayed; `None`: this version does not know it.
    fn from_text(text: &str) -> Option<Self>;

    /// The part in words.
    fn phrase(&self) -> Cow<'_, str>;

    /// What to do about it, if it needs advice of its own.
    fn advice(&self) -> Option<&'static str> {
        None
    }
}

/// Names: any text is one, and it is its own phrase.
macro_rules! names {
    ($($name:ty)+) => {$(
        impl ReasonPart for $name {
            fn from_text(text: &str) -> Option<Self> {
                Some(text.into())
            }

            fn phrase(&self) -> Cow<'_, str> {
                self.to_string().into()
            }
        }
    )+};
}

names! { AgentName PersonName RoleName ToolName }

impl ReasonPart for Box<str> {
    fn from_text(text: &str) -> Option<Self> {
        Some(text.into())
    }

    fn phrase(&self) -> Cow<'_, str> {
        (&**self).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::visible::REASON_CHARS;

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
            "approval_denied:refund",
            "no_answer:manager",
            "too_many_questions",
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
    fn endpoint_advice_fits_every_provider() {
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

    #[test]
    fn model_given_name_is_bounded_visible() {
        let fault = ContributionFault::agent_not_allowed(&format!("\u{1b}[2J{}", "x".repeat(900)));
        let text = StopReason::InvalidContribution(fault).to_string();
        let name = text.strip_prefix("invalid_contribution:agent_not_allowed:").expect("prefix");
        assert_eq!(name.chars().count(), REASON_CHARS);
        assert!(name.starts_with("␛[2J"));
    }
}
