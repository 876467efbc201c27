//! What can happen in a run. Facts only: each is complete, stays true, and is enough to show the
//! run again without the engine. The schema is versioned ([`SCHEMA_VERSION`]) and additive.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use super::call::{
    AttemptFailed, BudgetReached, CallStarted, ChatMessage, FailureClass, Prompt, Purpose, Reply,
    ReplyRefused, Speaker, ToolCall, ToolOffer, Usage,
};
pub use super::head::{FlagAt, ModelLabel, ModelPriceHead, PricesHead, RunClosed, RunStarted};
pub use super::plan::{
    AgentHead, BehindFlag, CollaborationPlan, OrchestratorPlan, PatternPlan, ResearchPlan,
    ResiliencePlan, SourceHead, SwarmHead, TeamPlan, WorkerHead,
};
pub use super::research::{
    AnswerCited, AnswerRefused, Denial, DropReason, Dropped, Found, IssueOf, Kept, Note,
    NoteConflict, NoteId, NoteIssue, NotePair, NoteRefused, NotesCompared, NotesCut, NotesLimit,
    NotesVerified, PageRead, PlannedStep, ReadingEnd, Sentence, SourceCame, SourceNo,
    SourcesDeduped, SourcesFound,
};
pub use super::task::Task;
pub use super::team::{
    CallFault, Entry, HandoffRefusal, Inner, LoopGuard, Missing, RosterChange, SessionHead,
};
pub use super::tool::{
    BreakerHead, BreakerStage, BreakerWhy, BulkheadHead, LimitChange, RetryLimit, SafeModeHead,
    StandIn, ToolHead, ToolLimits, seconds,
};

use super::contribution::{Conflict, Contribution, Decision};
use super::id::{BoundaryId, RunId, SpanId};
use super::stop::StopReason;
use crate::scenario::name::{AgentName, FlagName, RoleName, ScenarioName, TaskId, ToolName};
use crate::scenario::tool::{Fault, FaultKind};

/// Version of the schema of facts.
pub const SCHEMA_VERSION: u32 = 1;

/// One kind of fact with its fields. In JSON the kind is a dotted name (`round.closed`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum EventKind {
    /// The first fact of every log.
    #[serde(rename = "run.started")]
    RunStarted(Arc<RunStarted>),
    /// The last fact of every log; closes the run's span.
    #[serde(rename = "run.closed")]
    RunClosed(Box<RunClosed>),

    /// Someone asked for a pause; branches still on their way finish first.
    #[serde(rename = "pausing")]
    Pausing {
        /// Who asked.
        by: By,
    },
    /// Every branch stands at a boundary, and the run's clock with them.
    #[serde(rename = "paused")]
    Paused {
        /// Where the branches stand, the first to go on first. (`at` is each fact's own time.)
        #[serde(rename = "boundaries")]
        at: Vec<BoundaryId>,
    },
    /// The run goes on.
    #[serde(rename = "resumed")]
    Resumed {
        /// Who let it.
        by: By,
        /// How long the clock stood, in milliseconds.
        paused_ms: u64,
    },
    /// A paused run was let go one step.
    #[serde(rename = "stepped")]
    Stepped {
        /// How far it goes before it rests again.
        step: Step,
        /// The boundary it was let past.
        boundary: BoundaryId,
        /// How long the clock stood, in milliseconds.
        paused_ms: u64,
    },
    /// A breakpoint was set or taken away.
    #[serde(rename = "breakpoint.changed")]
    BreakpointChanged {
        /// Where the run will rest.
        #[serde(rename = "boundary")]
        at: BoundaryId,
        /// Whether it is set.
        set: bool,
    },
    /// A flag has another position from this boundary on.
    #[serde(rename = "flag.changed")]
    FlagChanged {
        /// Which.
        flag: FlagName,
        /// Its position now.
        on: bool,
        /// Who switched it.
        by: By,
        /// Where it took effect.
        boundary: BoundaryId,
    },

    /// Opens a round's span.
    #[serde(rename = "round.started")]
    RoundStarted {
        /// The span it stands in.
        parent: SpanId,
        /// From 1.
        round: u32,
        /// Every seat of the sequence, taken or not.
        seats: Vec<SeatPlan>,
    },
    /// Closes a round's span: every seat is in and the policy has decided.
    #[serde(rename = "round.closed")]
    RoundClosed {
        /// From 1.
        round: u32,
        /// What `detect_conflicts` found.
        conflicts: Vec<Conflict>,
        /// What `decide_round_outcome` said; `None`: another round.
        decision: Option<Decision>,
    },
    /// The gateway took a contribution.
    #[serde(rename = "contribution.accepted")]
    ContributionAccepted {
        /// From 1.
        round: u32,
        /// Which seat of the sequence, from 0.
        seat: u16,
        /// The contribution as it counts.
        contribution: Arc<Contribution>,
        /// Keys beyond the contract that were dropped.
        extra_keys: u32,
        /// Actions beyond the third that were dropped.
        extra_actions: u32,
        /// How many messages the run has used, this one included.
        messages: u32,
    },
    /// The gateway refused a seat or what it said; the run stops.
    #[serde(rename = "contribution.refused")]
    ContributionRefused {
        /// From 1.
        round: u32,
        /// Which seat of the sequence, from 0.
        seat: u16,
        /// Whose.
        role: RoleName,
        /// Why.
        reason: StopReason,
        /// What the model gave; `None` where it was not asked.
        raw: Option<Arc<Value>>,
    },
    /// The policy took the planner's plan.
    #[serde(rename = "plan.accepted")]
    PlanAccepted {
        /// Its tasks in order.
        tasks: Arc<[Task]>,
    },
    /// The policy refused the planner's plan; the run stops.
    #[serde(rename = "plan.refused")]
    PlanRefused {
        /// Why.
        reason: StopReason,
        /// What the model gave.
        raw: Arc<Value>,
        /// What was wanted and what came, where that is all there is to say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Arc<Value>>,
    },
    /// Opens a task's span: one of the places at once is its.
    #[serde(rename = "task.started")]
    TaskStarted {
        /// The span it stands in.
        parent: SpanId,
        /// Which.
        task: TaskId,
        /// Which of the plan, from 0.
        index: u32,
        /// Who does it.
        worker: ToolName,
        /// Its arguments, hashed as the source does.
        args_hash: String,
    },
    /// Closes a task's span: its result is there, or what stood in for it.
    #[serde(rename = "task.done")]
    TaskDone {
        /// Attempts used.
        attempts: u32,
    },
    /// Closes a task's span without a result.
    #[serde(rename = "task.failed")]
    TaskFailed {
        /// Attempts used; one that was refused counts.
        attempts: u32,
        /// Why.
        reason: StopReason,
    },
    /// More or fewer tasks go at once from now on.
    #[serde(rename = "parallel.changed")]
    ParallelChanged {
        /// How many.
        max_parallel: u32,
        /// Who changed it.
        by: By,
    },
    /// The results of a plan, put together by the scenario's rules.
    #[serde(rename = "results.aggregated")]
    ResultsAggregated {
        /// The aggregate.
        aggregate: Arc<Value>,
        /// Tasks whose result was replaced by a later one of the same worker.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        overwritten: Vec<TaskId>,
    },
    /// The policy took the steps of a plan of research.
    #[serde(rename = "steps.accepted")]
    StepsAccepted {
        /// The steps in order.
        steps: Arc<[PlannedStep]>,
    },
    /// A search answered.
    #[serde(rename = "sources.found")]
    SourcesFound(Box<SourcesFound>),
    /// Sources of the same page became one.
    #[serde(rename = "sources.deduped")]
    SourcesDeduped(Box<SourcesDeduped>),
    /// Opens a source's span: it is looked at.
    #[serde(rename = "source.started")]
    SourceStarted {
        /// The span it stands in.
        parent: SpanId,
        /// Which.
        source: SourceNo,
    },
    /// A source's page was read; the fact stands in the source's span.
    #[serde(rename = "page.read")]
    PageRead(Box<PageRead>),
    /// A note was taken; the fact stands in its source's span.
    #[serde(rename = "note.taken")]
    NoteTaken {
        /// Of which source.
        source: SourceNo,
        /// The note.
        note: Arc<Note>,
    },
    /// A note was refused; the fact stands in its source's span.
    #[serde(rename = "note.refused")]
    NoteRefused(Box<NoteRefused>),
    /// A model proposed more notes of a page than may be taken; the fact stands in the source's span.
    #[serde(rename = "notes.cut")]
    NotesCut(NotesCut),
    /// Closes a source's span.
    #[serde(rename = "source.closed")]
    SourceClosed(Box<SourceCame>),
    /// No further source is looked at.
    #[serde(rename = "reading.closed")]
    ReadingClosed {
        /// Why.
        why: ReadingEnd,
    },
    /// The notes were held against one another.
    #[serde(rename = "notes.compared")]
    NotesCompared(Box<NotesCompared>),
    /// The notes were verified.
    #[serde(rename = "notes.verified")]
    NotesVerified(Box<NotesVerified>),
    /// The policy took an answer; its text comes with `answer.composed`.
    #[serde(rename = "answer.cited")]
    AnswerCited(Box<AnswerCited>),
    /// The policy refused an answer; the run stops.
    #[serde(rename = "answer.refused")]
    AnswerRefused(Box<AnswerRefused>),
    /// The result's text, put together at the end.
    #[serde(rename = "answer.composed")]
    AnswerComposed {
        /// White space around it trimmed.
        text: Arc<str>,
        /// The agent whose reply it is, in a team.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentName>,
    },
    /// The best text that a swarm had when it was stopped; the fact stands in the swarm's span.
    #[serde(rename = "answer.partial")]
    AnswerPartial {
        /// The text.
        text: Arc<str>,
        /// Who had said it.
        by: AgentName,
    },
    /// A team answered with its members' replies (`skip_summarization`) although calls beside them
    /// had failed; the fact stands in the team's span.
    #[serde(rename = "answer.incomplete")]
    AnswerIncomplete {
        /// The calls that failed, in their order.
        missing: Arc<[Missing]>,
    },
    /// A member of a swarm hands over; the fact stands in the swarm's span.
    #[serde(rename = "handoff.made")]
    HandoffMade {
        /// The swarm.
        swarm: AgentName,
        /// Who hands over.
        from: AgentName,
        /// To whom.
        to: AgentName,
        /// What it says to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
        /// How the limits stand now.
        guard: LoopGuard,
        /// The call of the model that asked for it.
        said: SpanId,
    },
    /// The limits of a swarm refuse a hand-off; the fact stands in the swarm's span.
    #[serde(rename = "handoff.refused")]
    HandoffRefused {
        /// The swarm.
        swarm: AgentName,
        /// Who wanted to hand over.
        from: AgentName,
        /// To whom.
        to: AgentName,
        /// Why not.
        why: HandoffRefusal,
        /// How the limits stand now.
        guard: LoopGuard,
        /// Refusals so far, this one included.
        rejections: u32,
        /// The call of the model that asked for it.
        said: SpanId,
    },
    /// A tool call of a model is not carried out, and the model is told why; the fact stands in the
    /// span of the call that asked for it.
    #[serde(rename = "tool_call.refused")]
    ToolCallRefused {
        /// Who called.
        agent: AgentName,
        /// Which of the reply's tool calls, from 0.
        index: u16,
        /// What it called.
        tool: String,
        /// Why not.
        why: CallFault,
        /// What it is told.
        text: String,
    },
    /// Members joined or left a running swarm.
    #[serde(rename = "roster.changed")]
    RosterChanged {
        /// Which.
        swarm: AgentName,
        /// Its members now.
        members: Arc<[AgentName]>,
        /// What changed.
        #[serde(flatten)]
        change: RosterChange,
        /// Who changed it.
        by: By,
    },

    /// Opens a call's span: something is asked of a tool or model through the gateway.
    #[serde(rename = "call.started")]
    CallStarted(Box<CallStarted>),
    /// Closes a call's span with an answer.
    #[serde(rename = "call.answered")]
    CallAnswered {
        /// Attempts it took.
        attempts: u32,
    },
    /// Closes a call's span for good.
    #[serde(rename = "call.failed")]
    CallFailed {
        /// Attempts made.
        attempts: u32,
        /// The reason it gives a run that cannot do without it.
        reason: StopReason,
    },
    /// Another attempt follows after a wait.
    #[serde(rename = "call.retried")]
    CallRetried {
        /// The number of the attempt that follows.
        attempt: u32,
        /// The wait before it, in milliseconds.
        wait_ms: u64,
        /// What the last one failed of.
        after: FailureClass,
        /// Its HTTP status, if it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// A failed attempt is followed by no other, though what it failed of may pass: a limit is in the
    /// way. The fact stands in the call's span, before the one that closes it.
    #[serde(rename = "retry.refused")]
    RetryRefused {
        /// The number of the attempt that does not follow.
        attempt: u32,
        /// Which limit.
        #[serde(flatten)]
        limit: RetryLimit,
    },
    /// A call waits for one of the slots that all calls of the run share.
    #[serde(rename = "call.queued")]
    CallQueued,
    /// A call that waited has its slot.
    #[serde(rename = "call.admitted")]
    CallAdmitted {
        /// How long it waited, in milliseconds.
        waited_ms: u64,
    },
    /// Closes a call's span: the tool could not be had, and something stands in for it.
    #[serde(rename = "call.degraded")]
    CallDegraded {
        /// Attempts made.
        attempts: u32,
        /// Why the tool could not be had.
        reason: StopReason,
        /// What stands in for it.
        #[serde(flatten)]
        by: StandIn,
        /// The value, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Arc<Value>>,
    },
    /// An attempt was not made: policy refused it before the tool was asked.
    #[serde(rename = "attempt.refused")]
    AttemptRefused {
        /// From 1.
        attempt: u32,
        /// Why.
        reason: StopReason,
        /// Milliseconds until the tool may be asked again, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
    },
    /// An attempt stands in line at the tool's bulkhead.
    #[serde(rename = "attempt.queued")]
    AttemptQueued {
        /// From 1.
        attempt: u32,
    },
    /// Opens an attempt's span.
    #[serde(rename = "attempt.started")]
    AttemptStarted {
        /// The call.
        parent: SpanId,
        /// From 1.
        attempt: u32,
        /// Its bound in milliseconds.
        timeout_ms: u64,
        /// Milliseconds that it stood in line at the bulkhead.
        #[serde(default, skip_serializing_if = "is_zero")]
        waited_ms: u64,
        /// Whether a half-open breaker lets it through as a probe.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        probe: bool,
    },
    /// The client inside a tool asked again by itself, within one attempt: what a guarded gateway
    /// has no room for.
    #[serde(rename = "client.retried")]
    ClientRetried {
        /// The number of the request that follows, from 2.
        request: u32,
        /// What the last one failed of.
        after: FailureClass,
    },
    /// Closes an attempt's span with a reply; it holds the whole text.
    #[serde(rename = "attempt.answered")]
    AttemptAnswered(Box<Reply>),
    /// Closes an attempt's span with a failure.
    #[serde(rename = "attempt.failed")]
    AttemptFailed(Box<AttemptFailed>),

    /// A tool's breaker has moved.
    #[serde(rename = "breaker.changed")]
    BreakerChanged {
        /// Which tool's.
        tool: ToolName,
        /// How it stands now.
        to: BreakerStage,
        /// Why.
        why: BreakerWhy,
        /// Milliseconds until it lets a call through again, where it is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        open_for_ms: Option<u64>,
        /// Who moved it, where it was moved by hand.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A result came after the breaker had moved on: it changes nothing.
    #[serde(rename = "result.stale")]
    ResultStale {
        /// Which tool's.
        tool: ToolName,
        /// Whether it was a good one.
        ok: bool,
    },
    /// A tool's limits are others from its next attempt on.
    #[serde(rename = "limits.changed")]
    LimitsChanged {
        /// Which tool's.
        tool: ToolName,
        /// All of its limits now.
        limits: Box<ToolLimits>,
        /// What was changed.
        change: LimitChange,
        /// Who changed it.
        by: By,
    },
    /// A fault is injected into a tool from its next attempt on.
    #[serde(rename = "fault.injected")]
    FaultInjected {
        /// Which tool.
        tool: ToolName,
        /// What.
        #[serde(flatten)]
        fault: Fault,
        /// Who injects it.
        by: By,
    },
    /// An injected fault is taken away.
    #[serde(rename = "fault.healed")]
    FaultHealed {
        /// Which tool's.
        tool: ToolName,
        /// Which kind.
        fault: FaultKind,
        /// Who took it away.
        by: By,
    },

    /// The endpoint refused a parameter; requests are sent without it from now on. Published once a
    /// run for each model and parameter.
    #[serde(rename = "request.adapted")]
    RequestAdapted {
        /// The model's name.
        model: String,
        /// What is left out or replaced: `temperature`, `response_format`, …
        parameter: String,
    },
    /// A reply was repaired before it was judged, as the scenario allows. The raw text is kept with its
    /// attempt.
    #[serde(rename = "reply.repaired")]
    ReplyRepaired {
        /// What was done, such as `fences`.
        repair: String,
        /// What was taken off or changed; made visible, and bounded.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        what: String,
    },
    /// A reply was refused.
    #[serde(rename = "reply.refused")]
    ReplyRefused(Box<ReplyRefused>),
    /// A call of a model was not made, because it would go beyond what the run may spend. The run ends.
    #[serde(rename = "budget.reached")]
    BudgetReached(BudgetReached),
    /// A condition of the scenario could not be evaluated; it counts as false.
    #[serde(rename = "condition.failed")]
    ConditionFailed {
        /// Where it stands, such as `script[3].when`.
        place: String,
        /// What went wrong.
        text: String,
    },
    /// Something a person should know that stops nothing.
    #[serde(rename = "warning")]
    Warning {
        /// What.
        text: String,
    },

    /// In the session's log: a run was started.
    #[serde(rename = "session.run_started")]
    SessionRunStarted {
        /// Which.
        run: RunId,
        /// Of which scenario.
        scenario: ScenarioName,
    },
    /// In the session's log: a run has ended.
    #[serde(rename = "session.run_closed")]
    SessionRunClosed {
        /// Which.
        run: RunId,
        /// Why.
        reason: StopReason,
    },
    /// In the session's log: the facts of a finished run were dropped to bound memory.
    #[serde(rename = "session.run_forgotten")]
    SessionRunForgotten {
        /// Which.
        run: RunId,
        /// How many facts it had.
        facts: u64,
    },

    /// In a log that was written from memory: the facts that stood here were dropped to bound it. It
    /// has the place of the first of them.
    #[serde(rename = "facts.dropped")]
    FactsDropped {
        /// How many.
        facts: u64,
    },

    /// A fact of a later version: kept and shown as such, never an error.
    #[serde(skip)]
    Unknown {
        /// Its kind.
        kind: Arc<str>,
        /// Its fields.
        fields: Arc<Map<String, Value>>,
    },
}

/// Who made something happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A person at the dashboard.
    You,
    /// The command line (`--flag NAME=on@round:2`, `--pause-at`).
    Schedule,
    /// A breakpoint.
    Breakpoint,
    /// The process was suspended (Ctrl-Z).
    Suspend,
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// To the next boundary.
    Boundary,
    /// To the next round.
    Round,
}

/// A seat as a round finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatPlan {
    /// Who.
    pub role: RoleName,
    /// Whether it is asked.
    pub asked: Asked,
}

/// Whether a seat is asked in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Yes.
    Yes,
    /// Its flag is off, and it leaves its seat empty.
    Off,
    /// Its flag is off, and the run stops here (`agent_denied`).
    Denied,
    /// The messages are spent by its turn, and the run stops here (`max_messages`).
    Unaffordable,
    /// The run is sure to stop before its turn.
    NotReached,
}

/// For fields that are left out where they say nothing.
fn is_zero(number: &u64) -> bool {
    *number == 0
}
