//! Projection of an orchestrator: the plan, its tasks with their attempts, the aggregate, and its
//! part of the outcome (orchestrator source document).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::outcome::{OutcomeFields, Replaced, to_value};
use super::spans::Spans;
use super::{EventLog, MarkKind, Projection, RunFold, SpanKind};
use crate::base::name::TaskId;
use crate::log::event::{
    Boundary, BoundaryId, Elapsed, Event, EventKind, FailureClass, FallbackKind, Purpose, Seq,
    SpanId, StopReason,
};
use crate::log::facts::PatternFact;
use crate::log::facts::orchestrator::{OrchestratorFact, OrchestratorPlan, Task};

/// State of an orchestrator run.
#[derive(Clone, Debug)]
pub struct Orchestrator {
    pub plan: Arc<OrchestratorPlan>,
    /// The call that requests the plan, once it is made.
    pub plan_call: Option<SpanId>,
    /// The stop reason and the reply, if the plan was refused.
    pub refused: Option<(StopReason, Value)>,
    /// Details of the refusal, if the reason alone does not explain it.
    pub refused_details: Option<Value>,
    /// The tasks in the order of the plan; copies of the world share ended ones.
    pub tasks: Vec<Arc<TaskRow>>,
    /// The current limit of concurrent tasks.
    pub max_parallel: u32,
    /// Attempts dispatched.
    pub dispatches: u32,
    /// Number of running tasks.
    pub running: u32,
    /// The combined results.
    pub aggregate: Option<Arc<Value>>,
    /// The parts of the aggregate by which the rule of its level holds.
    pub level_decided_by: Arc<[Arc<str>]>,
    /// The task that produced each section of the aggregate, as its index in the plan. `None`: no
    /// task, several tasks, or a task of an earlier section.
    pub section_tasks: Vec<Option<usize>>,
    /// Tasks whose result was replaced by a later one of the same worker.
    pub overwritten: Vec<TaskId>,
    /// The call that writes the report, once it is made.
    pub finalize: Option<SpanId>,
    /// Index of the task of each call, by the call's span.
    calls: BTreeMap<SpanId, usize>,
    /// Index of each task in the plan, by its id. Copies of the world share it: it does not change.
    places: Arc<BTreeMap<TaskId, usize>>,
}

impl Orchestrator {
    pub(crate) fn new(plan: Arc<OrchestratorPlan>) -> Self {
        Self {
            max_parallel: plan.budget.max_parallel,
            plan,
            plan_call: None,
            refused: None,
            refused_details: None,
            tasks: Vec::new(),
            dispatches: 0,
            running: 0,
            aggregate: None,
            level_decided_by: Arc::default(),
            section_tasks: Vec::new(),
            overwritten: Vec::new(),
            finalize: None,
            calls: BTreeMap::new(),
            places: Arc::default(),
        }
    }

    /// Number of tasks in this state.
    pub fn count(&self, state: TaskState) -> usize {
        self.tasks.iter().filter(|row| row.state == state).count()
    }

    /// The task that produced each section: the last one with its value as the result. Where workers
    /// have the same result, it is that of the worker with the section's name.
    fn tasks_of_sections(&self, aggregate: &Value) -> Vec<Option<usize>> {
        let mut taken = BTreeSet::new();
        let mut task_of = |section: &String| {
            let value = aggregate.get(section)?;
            let tasks = self.tasks.iter().enumerate().rev();
            let same: Vec<_> =
                tasks.filter(|(_, row)| row.result.as_deref() == Some(value)).collect();
            let worker = |(_, row): &(usize, &Arc<TaskRow>)| row.task.worker.clone();
            let last = same.first()?;
            let named = same.iter().find(|it| worker(it).as_str() == section);
            let is_one = same.iter().all(|it| worker(it) == worker(last));
            let (task, _) = named.or(is_one.then_some(last))?;
            taken.insert(*task).then_some(*task)
        };
        self.plan.sections.iter().map(&mut task_of).collect()
    }

    /// Number of tasks that have ended.
    pub fn ended(&self) -> usize {
        self.tasks.iter().filter(|row| row.has_ended()).count()
    }

    /// The task with this id, and its index in the plan.
    pub fn task(&self, id: &str) -> Option<(usize, &TaskRow)> {
        let place = *self.places.get(id)?;
        Some((place, self.tasks.get(place)?))
    }

    fn row(&mut self, index: usize) -> Option<&mut TaskRow> {
        self.tasks.get_mut(index).map(Arc::make_mut)
    }

    fn task_of_call(&mut self, call: SpanId) -> Option<&mut TaskRow> {
        let index = *self.calls.get(&call)?;
        self.row(index)
    }

    /// Removes an ended call from its task, which then waits for no further attempt.
    fn close_call(&mut self, call: SpanId) {
        if let Some(row) = self.task_of_call(call) {
            row.retry_at = None;
        }
        self.calls.remove(&call);
    }

    fn task_of_attempt(&mut self, attempt: SpanId, spans: &Spans) -> Option<&mut TaskRow> {
        self.task_of_call(spans.get(attempt)?.parent)
    }

    fn task_of_span(&mut self, span: SpanId, spans: &Spans) -> Option<&mut TaskRow> {
        match spans.get(span)?.kind {
            SpanKind::Task { index } => self.row(usize::try_from(index).ok()?),
            _ => None,
        }
    }

    fn fold(&mut self, event: &Event, spans: &Spans) {
        match &event.kind {
            EventKind::Pattern(PatternFact::Orchestrator(fact)) => {
                self.fold_fact(event, fact, spans)
            }
            EventKind::PlanRefused { reason, raw, details } => {
                self.refused = Some((reason.clone(), (**raw).clone()));
                self.refused_details = details.as_deref().cloned();
            }
            EventKind::ConcurrencyChanged { max_parallel, .. } => self.max_parallel = *max_parallel,
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Plan => self.plan_call = Some(event.span),
                Purpose::Finalize => self.finalize = Some(event.span),
                Purpose::Task { index, .. } => {
                    let Ok(index) = usize::try_from(*index) else { return };
                    self.calls.insert(event.span, index);
                    if let Some(row) = self.row(index) {
                        row.call = Some(event.span);
                    }
                }
                _ => {}
            },
            EventKind::AttemptStarted { parent, attempt, .. } => {
                let Some(row) = self.task_of_call(*parent) else { return };
                row.state = TaskState::Running;
                row.retry_at = None;
                row.attempts.push(AttemptBar {
                    number: *attempt,
                    span: Some(event.span),
                    opened: event.at,
                    closed: None,
                    end: AttemptEnd::InFlight,
                });
                self.dispatches += 1;
            }
            EventKind::AttemptRefused { attempt, reason, .. } => {
                // Refused before it was dispatched, because the budget or the run had ended.
                let dispatched = !matches!(
                    reason,
                    StopReason::MaxDispatches | StopReason::MaxSeconds | StopReason::Cancelled
                );
                let Some(row) = self.task_of_call(event.span) else { return };
                row.attempts.push(AttemptBar {
                    number: *attempt,
                    span: None,
                    opened: event.at,
                    closed: Some(event.at),
                    end: AttemptEnd::Refused,
                });
                row.state = TaskState::Running;
                row.retry_at = None;
                self.dispatches += u32::from(dispatched);
            }
            EventKind::AttemptAnswered(reply) => {
                let Some(row) = self.task_of_attempt(event.span, spans) else { return };
                close_attempt(row, event, AttemptEnd::Answered);
                row.result.clone_from(&reply.result);
            }
            EventKind::AttemptFailed(failed) => {
                let Some(row) = self.task_of_attempt(event.span, spans) else { return };
                close_attempt(row, event, AttemptEnd::Failed(failed.class));
                row.error = Some(failed.text.as_str().into());
            }
            EventKind::CallRetried { wait_ms, .. } => {
                let Some(row) = self.task_of_call(event.span) else { return };
                row.state = TaskState::Retrying;
                row.retry_at =
                    Some(Elapsed(event.at.0.saturating_add(wait_ms.saturating_mul(1_000))));
            }
            EventKind::CallDegraded { by, reason, value, .. } => {
                let Some(row) = self.task_of_call(event.span) else { return };
                row.fallback = Some(*by);
                row.reason = Some(reason.clone());
                row.result.clone_from(value);
                self.close_call(event.span);
            }
            EventKind::CallFailed { reason: StopReason::Cancelled, .. } => {
                if let Some(row) = self.task_of_call(event.span) {
                    row.state = TaskState::Cancelled;
                    row.reason = Some(StopReason::Cancelled);
                }
                self.close_call(event.span);
            }
            EventKind::CallAnswered { .. } | EventKind::CallFailed { .. } => {
                self.close_call(event.span);
            }
            _ => {}
        }
    }

    fn fold_fact(&mut self, event: &Event, fact: &OrchestratorFact, spans: &Spans) {
        match fact {
            OrchestratorFact::PlanAccepted { tasks } if self.tasks.is_empty() => {
                let row = |task: &Task| Arc::new(TaskRow::new(task.clone(), event.at));
                self.tasks = tasks.iter().map(row).collect();
                // In reverse order, so that the first task with an id wins.
                let ids = tasks.iter().enumerate().rev();
                self.places = Arc::new(ids.map(|(place, task)| (task.id.clone(), place)).collect());
            }
            OrchestratorFact::TaskStarted { index, args_hash, .. } => {
                let Some(row) = usize::try_from(*index).ok().and_then(|it| self.row(it)) else {
                    return;
                };
                row.state = TaskState::Running;
                row.span = Some(event.span);
                row.opened = Some(event.at);
                row.args_hash.clone_from(args_hash);
                self.running += 1;
            }
            OrchestratorFact::TaskDone { attempts } => {
                let Some(row) = self.task_of_span(event.span, spans) else { return };
                row.state =
                    if row.fallback.is_some() { TaskState::Degraded } else { TaskState::Done };
                row.closed = Some(event.at);
                row.attempts_used = *attempts;
                self.running = self.running.saturating_sub(1);
            }
            OrchestratorFact::TaskFailed { attempts, reason } => {
                let Some(row) = self.task_of_span(event.span, spans) else { return };
                row.state = match reason {
                    StopReason::Cancelled => TaskState::Cancelled,
                    _ => TaskState::Failed,
                };
                row.closed = Some(event.at);
                row.attempts_used = *attempts;
                row.reason = Some(reason.clone());
                self.running = self.running.saturating_sub(1);
            }
            OrchestratorFact::ResultsAggregated { aggregate, overwritten, decided_by, .. } => {
                self.level_decided_by =
                    decided_by.iter().map(|name| name.as_str().into()).collect();
                self.section_tasks = self.tasks_of_sections(aggregate);
                self.aggregate = Some(Arc::clone(aggregate));
                self.overwritten.clone_from(overwritten);
            }
            _ => {}
        }
    }
}

impl Projection for Orchestrator {
    fn apply(&mut self, event: &Event, run: &RunFold) {
        self.fold(event, &run.spans);
    }

    fn outcome(&self, run: &RunFold, fields: &mut OutcomeFields) {
        self.outcome_fields(run, fields);
    }

    fn limits_tasks(&self) -> bool {
        true
    }

    fn replaced(&self) -> Option<Vec<Replaced>> {
        let rows = self.tasks.iter().filter(|row| row.is_replaced()).map(|row| Replaced {
            tool: row.task.worker.clone(),
            task_id: Some(row.task.id.clone()),
            by: row.fallback.unwrap_or(FallbackKind::Omitted),
            times: None,
            reason: row.reason.clone(),
        });
        Some(rows.collect())
    }

    fn is_degraded(&self) -> bool {
        self.tasks.iter().any(|row| row.is_replaced())
    }

    fn mark(&self, event: &Event) -> Option<MarkKind> {
        let failed =
            matches!(OrchestratorFact::of(&event.kind), Some(OrchestratorFact::TaskFailed { .. }));
        failed.then_some(MarkKind::Failed)
    }

    fn call_of(&self, event: &Event, run: &RunFold) -> Option<SpanId> {
        match (&event.kind, run.spans.get(event.span).map(|span| &span.kind)) {
            (EventKind::AnswerComposed { .. }, _) => self.finalize,
            (_, Some(SpanKind::Task { index })) => {
                self.tasks.get(usize::try_from(*index).ok()?)?.call
            }
            _ => None,
        }
    }

    fn cause_of(&self, event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
        match &event.kind {
            EventKind::Pattern(_) => cause_of_fact(event, run, log),
            EventKind::AnswerComposed { .. } => run.spans.opened_by(self.finalize?),
            EventKind::CallStarted(call) => match &call.purpose {
                Purpose::Task { .. } => run.spans.opened_by(call.parent),
                Purpose::Finalize => last_fact(event.seq, log, |fact| {
                    matches!(fact, OrchestratorFact::ResultsAggregated { .. })
                }),
                _ => None,
            },
            _ => None,
        }
    }

    fn tool_of(&self, purpose: &Purpose) -> Option<&str> {
        let Purpose::Task { index, .. } = purpose else { return None };
        let row = self.tasks.get(usize::try_from(*index).ok()?)?;
        Some(row.task.worker.as_str())
    }

    fn next_breakpoint(&self, _run: &RunFold) -> Result<BoundaryId, &'static str> {
        // The only boundaries that come exactly once.
        let planned = self.plan_call.is_some();
        Ok(if planned { Boundary::Finalize } else { Boundary::Plan }.id())
    }
}

/// The last fact before `seq` that matches.
fn last_fact(seq: Seq, log: &dyn EventLog, so: fn(&OrchestratorFact) -> bool) -> Option<Seq> {
    log.last_before(seq, &|event| OrchestratorFact::of(&event.kind).is_some_and(so))
}

fn cause_of_fact(event: &Event, run: &RunFold, log: &dyn EventLog) -> Option<Seq> {
    let before = |so| last_fact(event.seq, log, so);
    match OrchestratorFact::of(&event.kind)? {
        OrchestratorFact::PlanAccepted { .. } => run.spans.closed_by(event.span),
        OrchestratorFact::TaskStarted { .. } => {
            before(|fact| matches!(fact, OrchestratorFact::PlanAccepted { .. }))
        }
        OrchestratorFact::TaskDone { .. } | OrchestratorFact::TaskFailed { .. } => {
            run.spans.last_child(event.span)?.closed_by
        }
        OrchestratorFact::ResultsAggregated { .. } => before(|fact| {
            matches!(fact, OrchestratorFact::TaskDone { .. } | OrchestratorFact::TaskFailed { .. })
        }),
    }
}

/// A task of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// The task as planned.
    pub task: Task,
    pub state: TaskState,
    /// Its span, once it has started.
    pub span: Option<SpanId>,
    /// Hash of its arguments; empty before it starts.
    pub args_hash: String,
    /// When the plan was accepted: from then on it waits for a slot.
    pub planned: Elapsed,
    pub opened: Option<Elapsed>,
    pub closed: Option<Elapsed>,
    /// Its call, once it is made.
    pub call: Option<SpanId>,
    /// Its attempts in order, refused ones included.
    pub attempts: Vec<AttemptBar>,
    /// When the wait for the next attempt ends, while it waits.
    pub retry_at: Option<Elapsed>,
    /// Attempts used, counted as in the orchestrator source document: refused ones included.
    pub attempts_used: u32,
    /// Why it failed, or why a fallback was used.
    pub reason: Option<StopReason>,
    /// Error of its last failed attempt; limited in length, without secrets.
    pub error: Option<Arc<str>>,
    /// Its result or the fallback value.
    pub result: Option<Arc<Value>>,
    /// The kind of fallback, if one was used.
    pub fallback: Option<FallbackKind>,
}

/// Progress of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It waits for the concurrency limit.
    Waiting,
    /// An attempt is in flight or about to start.
    Running,
    /// It waits for the next attempt.
    Retrying,
    Done,
    /// It has a fallback instead of a result.
    Degraded,
    /// It has no result.
    Failed,
    /// The run was stopped during the task.
    Cancelled,
}

/// An attempt as a segment of the waterfall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptBar {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Its span; `None` if it was refused.
    pub span: Option<SpanId>,
    pub opened: Elapsed,
    pub closed: Option<Elapsed>,
    pub end: AttemptEnd,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    InFlight,
    /// It got a result.
    Answered,
    Failed(FailureClass),
    /// Policy refused it, so it was not made.
    Refused,
}

impl TaskRow {
    pub(crate) fn new(task: Task, planned: Elapsed) -> Self {
        Self {
            task,
            planned,
            state: TaskState::Waiting,
            span: None,
            args_hash: String::new(),
            opened: None,
            closed: None,
            call: None,
            attempts: Vec::new(),
            retry_at: None,
            attempts_used: 0,
            reason: None,
            error: None,
            result: None,
            fallback: None,
        }
    }

    /// Whether its result was replaced by a fallback or omitted.
    pub fn is_replaced(&self) -> bool {
        match self.state {
            TaskState::Degraded => true,
            TaskState::Failed => !self.task.critical || self.fallback.is_some(),
            _ => false,
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        !matches!(self.state, TaskState::Waiting | TaskState::Running | TaskState::Retrying)
    }
}

fn close_attempt(row: &mut TaskRow, event: &Event, end: AttemptEnd) {
    if let Some(bar) = row.attempts.iter_mut().rev().find(|bar| bar.span == Some(event.span)) {
        bar.closed = Some(event.at);
        bar.end = end;
    }
}

impl Orchestrator {
    /// Adds the fields that the source document defines.
    pub(super) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let Some(closed) = &run.progress.closed else { return };
        let success = closed.reason.is_success();
        let phase = closed.phase.as_deref();
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        // Ended tasks are reported for every stop reason.
        let over = || self.tasks.iter().filter(|row| has_ended(row));
        if success {
            add("answer", run.progress.answer.as_deref().map_or(Value::Null, Value::from));
        }
        if let Some(details) = &self.refused_details {
            add("details", details.clone());
        }
        if let Some((_, raw)) = &self.refused {
            add("raw_plan", raw.clone());
        }
        if !self.tasks.is_empty() && (success || phase == Some("dispatch")) {
            let plan: Vec<_> = self.tasks.iter().map(|row| &row.task).collect();
            add("plan", to_value(&plan));
        }
        if closed.reason == StopReason::CriticalTaskFailed {
            let failed = over().filter(|row| row.state == TaskState::Failed && row.task.critical);
            add("failed_critical", failed.map(|row| history_entry(row)).collect());
        }
        if let Some(aggregate) = &self.aggregate {
            add("aggregate", (**aggregate).clone());
        }
        let trace = over().map(|row| {
            let reason = row.reason.as_ref().filter(|_| row.state == TaskState::Failed);
            let mut line = json!({
                "task_id": row.task.id,
                "worker": row.task.worker,
                "status": status(row),
                "attempts_used": row.attempts_used,
                "retried": row.attempts_used > 1,
                "args_hash": row.args_hash,
                "stop_reason": reason,
                "critical": row.task.critical,
            });
            add_own_fields(row, &mut line);
            line
        });
        add("trace", trace.collect());
        add("history", over().map(|row| history_entry(row)).collect());
        // Added by roundtable: the tasks that the stop left unfinished.
        let left = self.tasks.iter().filter(|row| !has_ended(row)).map(|row| unfinished(row));
        let left: Vec<Value> = left.collect();
        if !left.is_empty() && !success && phase == Some("dispatch") {
            add("unfinished", Value::Array(left));
        }
    }
}

/// A task that was running, or had not started, when the run was stopped.
fn unfinished(row: &TaskRow) -> Value {
    json!({
        "task_id": row.task.id,
        "worker": row.task.worker,
        "attempts_used": row.attempts.len(),
    })
}

/// Whether a task has a result, a fallback or a failure.
fn has_ended(row: &TaskRow) -> bool {
    matches!(row.state, TaskState::Done | TaskState::Degraded | TaskState::Failed)
}

fn status(row: &TaskRow) -> &'static str {
    if row.state == TaskState::Failed { "failed" } else { "done" }
}

/// A task as an entry of `history` in the orchestrator source document.
fn history_entry(row: &TaskRow) -> Value {
    let mut item = json!({
        "task_id": row.task.id,
        "worker": row.task.worker,
        "critical": row.task.critical,
        "status": status(row),
        "attempts_used": row.attempts_used,
        "retried": row.attempts_used > 1,
        "args_hash": row.args_hash,
    });
    if row.state == TaskState::Failed {
        item["stop_reason"] = to_value(&row.reason);
    } else {
        item["observation"] = json!({
            "status": "done",
            "worker": row.task.worker,
            "result": row.result,
        });
    }
    add_own_fields(row, &mut item);
    item
}

/// Fields that roundtable adds: the error of a failed task's last attempt, and the kind of
/// fallback, if one was used.
fn add_own_fields(row: &TaskRow, line: &mut Value) {
    if let Some(error) = &row.error
        && row.state == TaskState::Failed
    {
        line["error"] = (**error).into();
    }
    if let Some(by) = &row.fallback
        && row.state == TaskState::Degraded
    {
        line["fallback"] = by.word().into();
    }
}
