//! The kinds of events of a run, and the span that each opens or closes. Each event is complete and
//! stays true; together they are enough to show the run again without the engine. The schema has a
//! version ([`SCHEMA_VERSION`]), and changes only add to it.
//!
//! Notable events are what a reader of a run wants to know. The others are the steps of calls,
//! which the outcome of the call sums up.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::command::Command;
use super::id::{BoundaryId, RunId, SpanId};
use super::stop::StopReason;
use super::{SpanKind, SpanState};
use crate::base::name::{AgentName, FlagName, ScenarioName, ToolName};
use crate::log::facts::PatternFact;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::{FaultKind, InjectedFault};
use crate::scenario::spec::{InDoubt, Price};

pub use super::call::{
    AgentStep, BudgetReached, CallStarted, ChatMessage, MessageRole, Prompt, Reply, ReplyRefused,
    StepState, Usage,
};
pub use super::call_window::WindowCounts;
pub use super::command::Initiator;
pub use super::failure::{AttemptFailed, FailureClass};
pub use super::head::{FlagAt, ModelLabel, ModelPriceHead, PricesHead, RunClosed, RunStarted};
pub use super::purpose::{Asks, Purpose, ScriptedCall};
pub use super::question::{
    Answer, AnsweredBy, QuestionAnswered, QuestionAsked, QuestionId, Subject, ToolNote, Withdrawal,
};
pub use super::tool::{
    BreakerCause, BreakerStage, FallbackKind, LimitChange, ListedTool, RetryLimit, SafeModeHead,
    ToolHead, ToolLimits, format_millis,
};

/// Writes an enum of kinds. Each variant follows its dotted name in JSON, so that the name is
/// written once. `also` has variants that serde skips.
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $kind:literal $variant:ident $({ $($fields_of:tt)* })? $(( $($parts:tt)* ))?
            ),* $(,)?
        }
        also { $($also:tt)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(tag = "kind")]
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $kind)]
                $variant $({ $($fields_of)* })? $(( $($parts)* ))?,
            )*
            $($also)*
        }

        impl $name {
            /// The dotted names of the kinds that all patterns share, as in JSON.
            pub const NAMES: &'static [&'static str] = &[$($kind),*];

            /// The dotted name of a kind that all patterns share.
            pub(crate) fn shared_name(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant { .. } => Some($kind),)*
                    _ => None,
                }
            }
        }

        const _: () = {
            type Kinds = $name;

            /// The same variants, each read straight from a line whose kind is known.
            #[derive(::serde::Deserialize)]
            #[serde(remote = "Kinds")]
            #[allow(clippy::enum_variant_names, reason = "they are the names of the kinds")]
            enum Fields {
                $(
                    #[serde(rename = $kind)]
                    $variant $({ $($fields_of)* })? $(( $($parts)* ))?,
                )*
            }

            impl $name {
                /// Reads the fields of a kind from the line of its event; `None` if it has another name.
                pub(crate) fn read(kind: &str, line: &str) -> Option<::serde_json::Result<Self>> {
                    let is_known = Self::NAMES.contains(&kind);
                    is_known.then(|| Fields::deserialize($crate::log::event::named::Named { kind, line }))
                }
            }
        };
    };
}

/// Version of the event schema.
pub const SCHEMA_VERSION: u32 = 2;

kinds! {
    /// A kind of event with its fields. In JSON the kind is a dotted name (`round.closed`).
    pub enum EventKind {
        /// First event of every log.
        "run.started" RunStarted(Arc<RunStarted>),
        /// Last event of every log; closes the run's span.
        "run.closed" RunClosed(Box<RunClosed>),
        /// A pause was requested; active branches finish first.
        "pausing" Pausing {
            /// Who requested it.
            by: Initiator,
            /// Whether the run pauses where its next round begins, not at its next boundary.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            at_round: bool,
        },
        /// Every branch waits at a boundary, and the run's clock is stopped.
        "paused" Paused {
            /// The boundaries where branches wait; the first one resumes first.
            #[serde(rename = "boundaries")]
            at: Vec<BoundaryId>,
        },
        /// The run resumes.
        "resumed" Resumed {
            /// Who resumed it.
            by: Initiator,
            /// How long the clock was stopped, in milliseconds.
            paused_ms: u64,
        },
        /// A paused run continues by one step.
        "stepped" Stepped {
            /// Where it pauses again.
            step: StepSize,
            /// The boundary that it passes.
            boundary: BoundaryId,
            /// How long the clock was stopped, in milliseconds.
            paused_ms: u64,
        },
        /// A run that had stopped without its end is continued from its log; follows what was stored.
        "run.resumed" RunResumed {
            /// Who continues it.
            by: Initiator,
            /// Milliseconds since the last stored event, which the clock of the run did not count.
            downtime_ms: u64,
            /// How many stored events were executed again.
            events: u64,
        },
        /// A command was sent from another process or machine. What it does follows when it takes effect.
        "command.taken" CommandTaken {
            /// The command.
            command: Box<Command>,
            /// Who sent it.
            by: String,
            /// Its number among the commands of the cluster: each is taken once.
            place: u64,
        },
        /// A run begins as a fork of another one: what is before this event was executed by that run.
        "run.forked" RunForked {
            /// Who forked it.
            by: Initiator,
            /// The other run.
            parent: RunId,
            /// The boundary that the run continues from.
            #[serde(rename = "boundary")]
            at: BoundaryId,
            /// Prices of the models that it calls from here on.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            prices: Vec<ModelPriceHead>,
        },
        /// A breakpoint was set or removed.
        "breakpoint.changed" BreakpointChanged {
            /// The boundary to pause at.
            #[serde(rename = "boundary")]
            at: BoundaryId,
            /// Whether it is set.
            set: bool,
        },
        /// A flag was switched, effective from this boundary on.
        "flag.changed" FlagChanged {
            /// Name of the flag.
            flag: FlagName,
            /// The new position.
            on: bool,
            /// Who switched it.
            by: Initiator,
            /// Where it took effect.
            boundary: BoundaryId,
        },
        /// The planner's plan was refused; the run stops.
        "plan.refused" PlanRefused {
            /// The stop reason.
            reason: StopReason,
            /// The refused reply.
            raw: Arc<Value>,
            /// Expected and received value, if they explain the refusal.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            details: Option<Arc<Value>>,
        },
        /// The limit of concurrent tasks was changed.
        "concurrency.changed" ConcurrencyChanged {
            /// The new limit.
            max_parallel: u32,
            /// Who changed it.
            by: Initiator,
        },
        /// The final answer was composed.
        "answer.composed" AnswerComposed {
            /// The text, without surrounding white space.
            text: Arc<str>,
            /// The agent whose reply it is, in a team.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            by: Option<AgentName>,
            /// How the reply ended that the text is from; absent: it is whole.
            #[serde(default, skip_serializing_if = "ReplyEnd::is_whole")]
            end: ReplyEnd,
        },
        /// Opens a call's span: a tool or model is called through the gateway.
        "call.started" CallStarted(Box<CallStarted>),
        /// Closes a call's span with a reply or result.
        "call.answered" CallAnswered {
            /// Attempts used.
            attempts: u32,
        },
        /// Closes a call's span with a failure.
        "call.failed" CallFailed {
            /// Attempts made.
            attempts: u32,
            /// The stop reason, if the run cannot continue without it.
            reason: StopReason,
        },
        /// Another attempt follows after a wait.
        "call.retried" CallRetried {
            /// Number of the next attempt.
            attempt: u32,
            /// The wait before it, in milliseconds.
            wait_ms: u64,
            /// Why the previous attempt failed.
            cause: FailureClass,
            /// HTTP status of the previous attempt, if there was one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            status: Option<u16>,
        },
        /// A failed attempt could be retried, but a limit forbids it; belongs to the call's span and
        /// precedes the event that closes it.
        "retry.refused" RetryRefused {
            /// Number of the attempt that is not made.
            attempt: u32,
            /// The limit.
            #[serde(flatten)]
            limit: RetryLimit,
        },
        /// A call waits for one of the call slots that all agents share.
        "call.queued" CallQueued,
        /// A waiting call got its slot.
        "call.admitted" CallAdmitted {
            /// How long it waited, in milliseconds.
            waited_ms: u64,
        },
        /// Closes a call's span with a fallback, because the tool was not available.
        "call.degraded" CallDegraded {
            /// Attempts made.
            attempts: u32,
            /// Why the tool was not available.
            reason: StopReason,
            /// The kind of fallback.
            #[serde(flatten)]
            by: FallbackKind,
            /// The fallback value, if there is one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            value: Option<Arc<Value>>,
        },
        /// An attempt was not made: policy refused it before the tool was called.
        "attempt.refused" AttemptRefused {
            /// Number of the attempt, from 1.
            attempt: u32,
            /// The reason.
            reason: StopReason,
            /// Milliseconds until the tool may be called again, if that is known.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            retry_in_ms: Option<u64>,
        },
        /// An attempt is queued at the tool's bulkhead.
        "attempt.queued" AttemptQueued {
            /// Number of the attempt, from 1.
            attempt: u32,
        },
        /// Opens an attempt's span.
        "attempt.started" AttemptStarted {
            /// The call.
            parent: SpanId,
            /// Number of the attempt, from 1.
            attempt: u32,
            /// Timeout in milliseconds.
            timeout_ms: u64,
            /// Milliseconds that it was queued at the bulkhead.
            #[serde(default, skip_serializing_if = "is_zero")]
            waited_ms: u64,
            /// Whether it is a probe of a half-open breaker.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            probe: bool,
        },
        /// An attempt was in flight when the run stopped, so it is not known whether it took effect; the
        /// run was resumed. Belongs to the attempt's span.
        "call.in_doubt" CallInDoubt {
            /// The tool; `llm` for a model.
            tool: ToolName,
            /// What the run does.
            decision: InDoubt,
            /// Tokens that a model may have used: an estimate of the prompt.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            usage: Option<Usage>,
        },
        /// A person is asked. The branch waits for the answer.
        "question.asked" QuestionAsked(Arc<QuestionAsked>),
        /// A question was answered.
        "question.answered" QuestionAnswered(Arc<QuestionAnswered>),
        /// A question was withdrawn: it needs no answer any more.
        "question.withdrawn" QuestionWithdrawn {
            /// The question.
            id: QuestionId,
            /// Why.
            why: Withdrawal,
        },
        /// An approval that the run remembered was withdrawn: calls are asked about again.
        "approval.withdrawn" ApprovalWithdrawn {
            /// The question whose approval was remembered.
            id: QuestionId,
            /// Who withdrew it.
            by: Initiator,
        },
        /// The client inside a tool retried on its own, within one attempt. This happens only in
        /// naive runs.
        "client.retried" ClientRetried {
            /// Number of the next request, from 2.
            request: u32,
            /// Why the previous request failed.
            cause: FailureClass,
        },
        /// How far an attempt is, in the words of its tool. It has more time now.
        "attempt.progressed" AttemptProgressed {
            /// What it does; may be empty.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            text: String,
            /// How much is done, in the tool's own unit.
            done: f64,
            /// How much there is to do.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            total: Option<f64>,
        },
        /// An agent of another program takes a step, such as a call of one of its tools. The first event with
        /// an id starts the step, the last one ends it. Each extends the timeout of the attempt.
        "agent.step" AgentStep(Arc<AgentStep>),
        /// Closes an attempt's span with a complete reply or result.
        "attempt.answered" AttemptAnswered(Arc<Reply>),
        /// Closes an attempt's span with a failure.
        "attempt.failed" AttemptFailed(Box<AttemptFailed>),
        /// A tool's breaker changed its state.
        "breaker.changed" BreakerChanged {
            /// Name of the tool.
            tool: ToolName,
            /// The new state.
            to: BreakerStage,
            /// The cause of the change.
            cause: BreakerCause,
            /// Milliseconds until it lets a call through again, if it is open.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            open_for_ms: Option<u64>,
            /// Who changed it, if it was changed manually.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            by: Option<Initiator>,
            /// The calls in its window when they opened it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            counted: Option<WindowCounts>,
        },
        /// The tools of an MCP server that the run may call.
        "tools.listed" ToolsListed {
            /// The server, as a tool of the run.
            tool: ToolName,
            /// The tools.
            tools: Vec<ListedTool>,
            /// The tools that it offers and the run does not call, with the reason.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            left_out: Vec<ToolNote>,
        },
        /// The guard of a model that a guarded program calls for the first time: the head of the log has only what is
        /// known at the start.
        "tool.added" ToolAdded {
            /// The model as a tool.
            tool: Box<ToolHead>,
            /// The price of the model, if it is known.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            price: Option<Price>,
        },
        /// A result arrived after the breaker had changed its state; it is ignored.
        "result.ignored" ResultIgnored {
            /// Name of the tool.
            tool: ToolName,
            /// Whether the result was a success.
            success: bool,
        },
        /// A tool's limits were changed, effective from its next attempt on.
        "limits.changed" LimitsChanged {
            /// Name of the tool.
            tool: ToolName,
            /// All of its limits now.
            limits: Box<ToolLimits>,
            /// The change.
            change: LimitChange,
            /// Who changed it.
            by: Initiator,
        },
        /// A fault was injected into a tool, effective from its next attempt on.
        "fault.injected" FaultInjected {
            /// Name of the tool.
            tool: ToolName,
            /// The fault.
            #[serde(flatten)]
            fault: InjectedFault,
            /// Who injected it.
            by: Initiator,
        },
        /// An injected fault was removed.
        "fault.removed" FaultRemoved {
            /// Name of the tool.
            tool: ToolName,
            /// Kind of the fault.
            fault: FaultKind,
            /// Who removed it.
            by: Initiator,
        },
        /// The endpoint refused a parameter; requests leave it out from now on. Published once per
        /// run for each model and parameter.
        "request.adapted" RequestAdapted {
            /// Name of the model.
            model: String,
            /// The parameter that is left out or replaced: `temperature`, `response_format`, …
            parameter: String,
        },
        /// A reply was repaired before it was checked, as the scenario allows. Its attempt keeps the
        /// raw text.
        "reply.repaired" ReplyRepaired {
            /// Kind of the repair, such as `fences`.
            repair: String,
            /// The text that was removed or changed; control characters made visible, length
            /// limited.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            changed: String,
        },
        /// A reply did not match its contract.
        "reply.refused" ReplyRefused(Box<ReplyRefused>),
        /// A model call was not made because it would exceed the run's budget. The run ends.
        "budget.reached" BudgetReached(BudgetReached),
        /// A condition of the scenario could not be evaluated; it counts as false.
        "condition.failed" ConditionFailed {
            /// Place of the condition in the file, such as `script[3].when`.
            place: String,
            /// The error.
            text: String,
        },
        /// A problem that does not stop the run.
        "warning" Warning {
            /// Text of the warning.
            text: String,
        },
        /// In the engine's log: a run was started.
        "session.run_started" SessionRunStarted {
            /// Id of the run.
            run: RunId,
            /// Name of its scenario.
            scenario: ScenarioName,
        },
        /// In the engine's log: a run has ended.
        "session.run_closed" SessionRunClosed {
            /// Id of the run.
            run: RunId,
            /// The stop reason.
            reason: StopReason,
        },
        /// In the engine's log: the events of a finished run were dropped to save memory.
        "session.run_dropped" SessionRunDropped {
            /// Id of the run.
            run: RunId,
            /// How many events it had.
            events: u64,
        },
        /// In an exported log: events at this place were dropped earlier to save memory. It has the
        /// sequence number of the first of them.
        "events.dropped" EventsDropped {
            /// How many events.
            events: u64,
        },
    }
    also {
        /// A fact of one pattern.
        #[serde(skip)]
        Pattern(PatternFact),
        /// An event of a later version: kept and shown as it is, never an error.
        #[serde(skip)]
        Unknown {
            /// Its kind.
            kind: Arc<str>,
            /// Its fields.
            fields: Arc<Map<String, Value>>,
        },
    }
}

/// Length of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepSize {
    /// To the next boundary.
    Boundary,
    /// To the next round.
    Round,
}

/// Skips fields whose value is 0.
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<PatternFact> for EventKind {
    fn from(fact: PatternFact) -> Self {
        Self::Pattern(fact)
    }
}

impl EventKind {
    /// The dotted name, as in JSON.
    pub fn name(&self) -> &str {
        match self {
            Self::Pattern(fact) => fact.get().name(),
            Self::Unknown { kind, .. } => kind,
            shared => shared.shared_name().unwrap_or_default(),
        }
    }

    /// The fact of a pattern, if the event is one.
    pub fn pattern(&self) -> Option<&PatternFact> {
        match self {
            Self::Pattern(fact) => Some(fact),
            _ => None,
        }
    }

    /// The parent and the kind of the span that this event opens; `None` if it opens none.
    pub fn opens(&self) -> Option<(SpanId, SpanKind)> {
        match self {
            Self::RunStarted(_) => Some((SpanId::RUN, SpanKind::Run)),
            Self::CallStarted(call) => Some((call.parent, SpanKind::Call(call.purpose.clone()))),
            Self::AttemptStarted { parent, attempt, .. } => {
                Some((*parent, SpanKind::Attempt(*attempt)))
            }
            Self::Pattern(fact) => fact.opens(),
            _ => None,
        }
    }

    /// The state in which this event closes its span; `None` if it closes none.
    pub fn closes(&self) -> Option<SpanState> {
        match self {
            Self::CallAnswered { .. } | Self::AttemptAnswered(_) => Some(SpanState::Done),
            Self::CallFailed { reason: StopReason::ApprovalDenied(_), .. } => {
                Some(SpanState::Denied)
            }
            Self::CallFailed { .. } | Self::CallDegraded { .. } => Some(SpanState::Failed(None)),
            Self::AttemptFailed(failed) => Some(SpanState::Failed(Some(failed.class))),
            Self::RunClosed(closed) if closed.reason.is_success() => Some(SpanState::Done),
            Self::RunClosed(_) => Some(SpanState::Failed(None)),
            Self::Pattern(fact) => fact.closes(),
            _ => None,
        }
    }
}

impl EventKind {
    pub(crate) fn is_notable(&self) -> bool {
        // A consultation is a hop of the run, and no other event reports it.
        if let Self::CallStarted(call) = self {
            return matches!(call.purpose, Purpose::Member { .. });
        }
        if let Self::Pattern(fact) = self {
            return fact.get().is_notable();
        }
        !matches!(
            self,
            Self::CallAnswered { .. }
                | Self::CallQueued
                | Self::CallAdmitted { .. }
                | Self::AttemptRefused { .. }
                | Self::AttemptQueued { .. }
                | Self::AttemptStarted { .. }
                | Self::AttemptAnswered(_)
                | Self::AttemptFailed(_)
                | Self::ClientRetried { .. }
                | Self::AttemptProgressed { .. }
                | Self::AgentStep(_)
                | Self::ResultIgnored { .. }
                | Self::ToolAdded { .. }
                | Self::SessionRunStarted { .. }
                | Self::SessionRunClosed { .. }
        )
    }
}
