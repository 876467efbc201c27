//! The kinds of events of a run. Each event is complete and stays true; together they are enough to
//! replay the run without the engine. The schema has a version ([`SCHEMA_VERSION`]), and changes
//! only add to it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use super::call::{
    BudgetReached, CallStarted, ChatMessage, MessageRole, Prompt, Reply, ReplyRefused, ToolCall,
    ToolOffer, Usage,
};
pub use super::failure::AttemptFailed;
pub use super::failure_class::FailureClass;
pub use super::head::{FlagAt, ModelLabel, ModelPriceHead, PricesHead, RunClosed, RunStarted};
pub use super::patterns::PatternPlan;
pub use super::purpose::{Asks, Purpose, ScriptedCall};
pub use super::tool::{
    BreakerCause, BreakerHead, BreakerStage, BulkheadHead, FallbackKind, LimitChange, RetryLimit,
    SafeModeHead, ToolHead, ToolLimits, format_millis,
};
pub use crate::agents::facts::{
    CallFault, HandoffRefusal, HistoryEntry, LoopGuard, MemberOutput, MissingResult, RosterChange,
    SessionHead,
};
pub use crate::agents::plan::{AgentHead, SwarmHead, TeamPlan};
pub use crate::pattern::collaboration::plan::{CollaborationPlan, RoleFlagHead};
pub use crate::pattern::orchestrator::facts::Task;
pub use crate::pattern::orchestrator::plan::{OrchestratorPlan, WorkerHead};
pub use crate::pattern::research::facts::{
    AnswerCited, AnswerRefused, Denial, DropReason, DroppedSource, FoundSource, KeptSource, Note,
    NoteConflict, NoteId, NoteIssue, NotePair, NoteProblem, NoteRefused, NotesCompared, NotesLimit,
    NotesTruncated, NotesVerified, PageRead, PlannedStep, ReadingEnd, Sentence, SourceNo,
    SourceOutcome, SourcesDeduped, SourcesFound,
};
pub use crate::pattern::research::plan::{ResearchPlan, SourceHead};
pub use crate::pattern::resilience::plan::ResiliencePlan;

use super::contribution::{Conflict, Contribution, Decision};
use super::id::{BoundaryId, RunId, SpanId};
use super::stop::StopReason;
use crate::base::name::{AgentName, FlagName, RoleName, ScenarioName, TaskId, ToolName};
use crate::scenario::spec::tool::{FaultKind, InjectedFault};

/// Version of the event schema.
pub const SCHEMA_VERSION: u32 = 2;

/// A kind of event with its fields. In JSON the kind is a dotted name (`round.closed`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum EventKind {
    /// First event of every log.
    #[serde(rename = "run.started")]
    RunStarted(Arc<RunStarted>),
    /// Last event of every log; closes the run's span.
    #[serde(rename = "run.closed")]
    RunClosed(Box<RunClosed>),

    /// A pause was requested; active branches finish first.
    #[serde(rename = "pausing")]
    Pausing {
        /// Who requested it.
        by: Initiator,
    },
    /// Every branch waits at a boundary, and the run's clock is stopped.
    #[serde(rename = "paused")]
    Paused {
        /// The boundaries where branches wait; the first one resumes first. (In JSON `at_us` is
        /// the time of the event.)
        #[serde(rename = "boundaries")]
        at: Vec<BoundaryId>,
    },
    /// The run resumes.
    #[serde(rename = "resumed")]
    Resumed {
        /// Who resumed it.
        by: Initiator,
        /// How long the clock was stopped, in milliseconds.
        paused_ms: u64,
    },
    /// A paused run continues by one step.
    #[serde(rename = "stepped")]
    Stepped {
        /// Where it pauses again.
        step: StepSize,
        /// The boundary that it passes.
        boundary: BoundaryId,
        /// How long the clock was stopped, in milliseconds.
        paused_ms: u64,
    },
    /// A breakpoint was set or removed.
    #[serde(rename = "breakpoint.changed")]
    BreakpointChanged {
        /// The boundary to pause at.
        #[serde(rename = "boundary")]
        at: BoundaryId,
        /// Whether it is set.
        set: bool,
    },
    /// A flag was switched, effective from this boundary on.
    #[serde(rename = "flag.changed")]
    FlagChanged {
        /// Name of the flag.
        flag: FlagName,
        /// The new position.
        on: bool,
        /// Who switched it.
        by: Initiator,
        /// Where it took effect.
        boundary: BoundaryId,
    },

    /// Opens a round's span.
    #[serde(rename = "round.started")]
    RoundStarted {
        /// The span it belongs to.
        parent: SpanId,
        /// Number of the round, from 1.
        round: u32,
        /// Every seat of the sequence, also those that are not asked.
        seats: Vec<SeatPlan>,
    },
    /// Closes a round's span: every seat has answered and the policy has decided.
    #[serde(rename = "round.closed")]
    RoundClosed {
        /// Number of the round, from 1.
        round: u32,
        /// Result of `detect_conflicts`.
        conflicts: Vec<Conflict>,
        /// Result of `decide_round_outcome`; `None`: no decision.
        decision: Option<Decision>,
    },
    /// A contribution was accepted.
    #[serde(rename = "contribution.accepted")]
    ContributionAccepted {
        /// Number of the round, from 1.
        round: u32,
        /// Index of the seat in the sequence, from 0.
        seat: u16,
        /// The contribution as it counts.
        contribution: Arc<Contribution>,
        /// Number of keys outside the contract, which were dropped.
        extra_keys: u32,
        /// Number of actions after the third, which were dropped.
        extra_actions: u32,
        /// Messages that the run has used, this one included.
        messages: u32,
    },
    /// A seat or its contribution was refused; the run stops.
    #[serde(rename = "contribution.refused")]
    ContributionRefused {
        /// Number of the round, from 1.
        round: u32,
        /// Index of the seat in the sequence, from 0.
        seat: u16,
        /// The role of the seat.
        role: RoleName,
        /// The stop reason.
        reason: StopReason,
        /// The refused reply; `None` if the model was not called.
        raw: Option<Arc<Value>>,
    },
    /// The planner's plan was accepted.
    #[serde(rename = "plan.accepted")]
    PlanAccepted {
        /// Its tasks in order.
        tasks: Arc<[Task]>,
    },
    /// The planner's plan was refused; the run stops.
    #[serde(rename = "plan.refused")]
    PlanRefused {
        /// The stop reason.
        reason: StopReason,
        /// The refused reply.
        raw: Arc<Value>,
        /// Expected and received value, if they explain the refusal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Arc<Value>>,
    },
    /// Opens a task's span: the task got a slot of the concurrency limit.
    #[serde(rename = "task.started")]
    TaskStarted {
        /// The span it belongs to.
        parent: SpanId,
        /// Id of the task.
        task: TaskId,
        /// Index of the task in the plan, from 0.
        index: u32,
        /// Name of the worker.
        worker: ToolName,
        /// Hash of its arguments, computed as in the orchestrator source document.
        args_hash: String,
    },
    /// Closes a task's span with a result or a fallback.
    #[serde(rename = "task.done")]
    TaskDone {
        /// Attempts used.
        attempts: u32,
    },
    /// Closes a task's span without a result.
    #[serde(rename = "task.failed")]
    TaskFailed {
        /// Attempts used, refused ones included.
        attempts: u32,
        /// The reason.
        reason: StopReason,
    },
    /// The limit of concurrent tasks was changed.
    #[serde(rename = "concurrency.changed")]
    ConcurrencyChanged {
        /// The new limit.
        max_parallel: u32,
        /// Who changed it.
        by: Initiator,
    },
    /// The results of a plan were combined by the scenario's rules.
    #[serde(rename = "results.aggregated")]
    ResultsAggregated {
        /// The aggregate.
        aggregate: Arc<Value>,
        /// Tasks whose result was replaced by a later one of the same worker.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        overwritten: Vec<TaskId>,
    },
    /// The steps of a research plan were accepted.
    #[serde(rename = "steps.accepted")]
    StepsAccepted {
        /// The steps in order.
        steps: Arc<[PlannedStep]>,
    },
    /// A search returned its results.
    #[serde(rename = "sources.found")]
    SourcesFound(Box<SourcesFound>),
    /// Sources with the same page were merged.
    #[serde(rename = "sources.deduped")]
    SourcesDeduped(Box<SourcesDeduped>),
    /// Opens a source's span: its check begins.
    #[serde(rename = "source.started")]
    SourceStarted {
        /// The span it belongs to.
        parent: SpanId,
        /// Number of the source.
        source: SourceNo,
    },
    /// A source's page was read; belongs to the source's span.
    #[serde(rename = "page.read")]
    PageRead(Box<PageRead>),
    /// A note was accepted; belongs to its source's span.
    #[serde(rename = "note.taken")]
    NoteTaken {
        /// Number of the source.
        source: SourceNo,
        /// The note.
        note: Arc<Note>,
    },
    /// A note was refused; belongs to its source's span.
    #[serde(rename = "note.refused")]
    NoteRefused(Box<NoteRefused>),
    /// A model proposed more notes on a page than the limit; belongs to the source's span.
    #[serde(rename = "notes.truncated")]
    NotesTruncated(NotesTruncated),
    /// Closes a source's span.
    #[serde(rename = "source.closed")]
    SourceClosed(Box<SourceOutcome>),
    /// No more sources are read.
    #[serde(rename = "reading.closed")]
    ReadingClosed {
        /// The reason.
        reason: ReadingEnd,
    },
    /// The notes were compared with each other.
    #[serde(rename = "notes.compared")]
    NotesCompared(Box<NotesCompared>),
    /// The notes were verified.
    #[serde(rename = "notes.verified")]
    NotesVerified(Box<NotesVerified>),
    /// An answer was accepted; its text follows in `answer.composed`.
    #[serde(rename = "answer.cited")]
    AnswerCited(Box<AnswerCited>),
    /// An answer was refused; the run stops.
    #[serde(rename = "answer.refused")]
    AnswerRefused(Box<AnswerRefused>),
    /// The final answer was composed.
    #[serde(rename = "answer.composed")]
    AnswerComposed {
        /// The text, without surrounding white space.
        text: Arc<str>,
        /// The agent whose reply it is, in a team.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentName>,
    },
    /// The best text that a swarm had when it was stopped; belongs to the swarm's span.
    #[serde(rename = "answer.partial")]
    AnswerPartial {
        /// The text.
        text: Arc<str>,
        /// The agent that gave it.
        by: AgentName,
    },
    /// A team answered with its members' replies (`skip_summarization`) although other calls of the
    /// same reply had failed; belongs to the team's span.
    #[serde(rename = "answer.incomplete")]
    AnswerIncomplete {
        /// The failed calls, in order.
        missing: Arc<[MissingResult]>,
    },
    /// A member of a swarm hands over; belongs to the swarm's span.
    #[serde(rename = "handoff.made")]
    HandoffMade {
        /// The swarm.
        swarm: AgentName,
        /// The member that hands over.
        from: AgentName,
        /// The member that takes over.
        to: AgentName,
        /// The message for the member that takes over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
        /// The swarm's counts after this handoff.
        guard: LoopGuard,
        /// The model call that requested it.
        requested_by: SpanId,
    },
    /// A handoff was refused by the limits of the swarm; belongs to the swarm's span.
    #[serde(rename = "handoff.refused")]
    HandoffRefused {
        /// The swarm.
        swarm: AgentName,
        /// The member that wanted to hand over.
        from: AgentName,
        /// The member that would have taken over.
        to: AgentName,
        /// The reason.
        reason: HandoffRefusal,
        /// The swarm's counts after this request.
        guard: LoopGuard,
        /// Refusals so far, this one included.
        rejections: u32,
        /// The model call that requested it.
        requested_by: SpanId,
    },
    /// A tool call of a model was not carried out, and the model gets the reason as its result;
    /// belongs to the span of the model call.
    #[serde(rename = "tool_call.refused")]
    ToolCallRefused {
        /// The agent whose model made the call.
        agent: AgentName,
        /// Index of the tool call within the reply, from 0.
        index: u16,
        /// Name of the tool, as the model gave it.
        tool: String,
        /// The reason.
        reason: CallFault,
        /// The text that the model gets as the result.
        text: String,
    },
    /// Members joined or left a running swarm.
    #[serde(rename = "roster.changed")]
    RosterChanged {
        /// The swarm.
        swarm: AgentName,
        /// Its members now.
        members: Arc<[AgentName]>,
        /// The change.
        #[serde(flatten)]
        change: RosterChange,
        /// Who changed it.
        by: Initiator,
    },

    /// Opens a call's span: a tool or model is called through the gateway.
    #[serde(rename = "call.started")]
    CallStarted(Box<CallStarted>),
    /// Closes a call's span with a reply or result.
    #[serde(rename = "call.answered")]
    CallAnswered {
        /// Attempts used.
        attempts: u32,
    },
    /// Closes a call's span with a failure.
    #[serde(rename = "call.failed")]
    CallFailed {
        /// Attempts made.
        attempts: u32,
        /// The stop reason, if the run cannot continue without it.
        reason: StopReason,
    },
    /// Another attempt follows after a wait.
    #[serde(rename = "call.retried")]
    CallRetried {
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
    #[serde(rename = "retry.refused")]
    RetryRefused {
        /// Number of the attempt that is not made.
        attempt: u32,
        /// The limit.
        #[serde(flatten)]
        limit: RetryLimit,
    },
    /// A call waits for one of the call slots that all agents share.
    #[serde(rename = "call.queued")]
    CallQueued,
    /// A waiting call got its slot.
    #[serde(rename = "call.admitted")]
    CallAdmitted {
        /// How long it waited, in milliseconds.
        waited_ms: u64,
    },
    /// Closes a call's span with a fallback, because the tool was not available.
    #[serde(rename = "call.degraded")]
    CallDegraded {
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
    #[serde(rename = "attempt.refused")]
    AttemptRefused {
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The reason.
        reason: StopReason,
        /// Milliseconds until the tool may be called again, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
    },
    /// An attempt is queued at the tool's bulkhead.
    #[serde(rename = "attempt.queued")]
    AttemptQueued {
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// Opens an attempt's span.
    #[serde(rename = "attempt.started")]
    AttemptStarted {
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
    /// The client inside a tool retried on its own, within one attempt. This happens only in naive
    /// runs.
    #[serde(rename = "client.retried")]
    ClientRetried {
        /// Number of the next request, from 2.
        request: u32,
        /// Why the previous request failed.
        cause: FailureClass,
    },
    /// Closes an attempt's span with a complete reply or result.
    #[serde(rename = "attempt.answered")]
    AttemptAnswered(Box<Reply>),
    /// Closes an attempt's span with a failure.
    #[serde(rename = "attempt.failed")]
    AttemptFailed(Box<AttemptFailed>),

    /// A tool's breaker changed its state.
    #[serde(rename = "breaker.changed")]
    BreakerChanged {
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
    },
    /// A result arrived after the breaker had changed its state; it is ignored.
    #[serde(rename = "result.ignored")]
    ResultIgnored {
        /// Name of the tool.
        tool: ToolName,
        /// Whether the result was a success.
        success: bool,
    },
    /// A tool's limits were changed, effective from its next attempt on.
    #[serde(rename = "limits.changed")]
    LimitsChanged {
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
    #[serde(rename = "fault.injected")]
    FaultInjected {
        /// Name of the tool.
        tool: ToolName,
        /// The fault.
        #[serde(flatten)]
        fault: InjectedFault,
        /// Who injected it.
        by: Initiator,
    },
    /// An injected fault was removed.
    #[serde(rename = "fault.removed")]
    FaultRemoved {
        /// Name of the tool.
        tool: ToolName,
        /// Kind of the fault.
        fault: FaultKind,
        /// Who removed it.
        by: Initiator,
    },

    /// The endpoint refused a parameter; requests leave it out from now on. Published once per run
    /// for each model and parameter.
    #[serde(rename = "request.adapted")]
    RequestAdapted {
        /// Name of the model.
        model: String,
        /// The parameter that is left out or replaced: `temperature`, `response_format`, …
        parameter: String,
    },
    /// A reply was repaired before it was checked, as the scenario allows. Its attempt keeps the
    /// raw text.
    #[serde(rename = "reply.repaired")]
    ReplyRepaired {
        /// Kind of the repair, such as `fences`.
        repair: String,
        /// The text that was removed or changed; control characters made visible, length limited.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        changed: String,
    },
    /// A reply did not match its contract.
    #[serde(rename = "reply.refused")]
    ReplyRefused(Box<ReplyRefused>),
    /// A model call was not made because it would exceed the run's budget. The run ends.
    #[serde(rename = "budget.reached")]
    BudgetReached(BudgetReached),
    /// A condition of the scenario could not be evaluated; it counts as false.
    #[serde(rename = "condition.failed")]
    ConditionFailed {
        /// Place of the condition in the file, such as `script[3].when`.
        place: String,
        /// The error.
        text: String,
    },
    /// A problem that does not stop the run.
    #[serde(rename = "warning")]
    Warning {
        /// Text of the warning.
        text: String,
    },

    /// In the engine's log: a run was started.
    #[serde(rename = "session.run_started")]
    SessionRunStarted {
        /// Id of the run.
        run: RunId,
        /// Name of its scenario.
        scenario: ScenarioName,
    },
    /// In the engine's log: a run has ended.
    #[serde(rename = "session.run_closed")]
    SessionRunClosed {
        /// Id of the run.
        run: RunId,
        /// The stop reason.
        reason: StopReason,
    },
    /// In the engine's log: the events of a finished run were dropped to save memory.
    #[serde(rename = "session.run_dropped")]
    SessionRunDropped {
        /// Id of the run.
        run: RunId,
        /// How many events it had.
        events: u64,
    },

    /// In an exported log: events at this place were dropped earlier to save memory. It has the
    /// sequence number of the first of them.
    #[serde(rename = "events.dropped")]
    EventsDropped {
        /// How many events.
        events: u64,
    },

    /// An event of a later version: kept and shown as it is, never an error.
    #[serde(skip)]
    Unknown {
        /// Its kind.
        kind: Arc<str>,
        /// Its fields.
        fields: Arc<Map<String, Value>>,
    },
}

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initiator {
    /// The operator, at the dashboard.
    You,
    /// The command line (`--flag NAME=on@round:2`, `--pause-at`).
    Schedule,
    /// A breakpoint.
    Breakpoint,
    /// Suspension of the process (Ctrl-Z).
    Suspend,
}

/// Length of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSize {
    /// To the next boundary.
    Boundary,
    /// To the next round.
    Round,
}

/// A seat at the start of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatPlan {
    /// The role of the seat.
    pub role: RoleName,
    /// Whether it will be asked.
    pub status: SeatStatus,
}

/// Whether a seat is asked in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeatStatus {
    /// It is asked.
    Asked,
    /// Its flag is off, and the seat is skipped.
    Skipped,
    /// Its flag is off, and the run stops at its turn (`agent_denied`).
    Denied,
    /// The message budget is used up before its turn, and the run stops there (`max_messages`).
    OverBudget,
    /// The run will stop before its turn.
    NotReached,
}

/// Skips fields whose value is 0.
fn is_zero(number: &u64) -> bool {
    *number == 0
}
