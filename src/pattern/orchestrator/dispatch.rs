//! Runs the tasks in parallel, at most the concurrency limit at once, which can change meanwhile.
//! Each slot starts the next task of the plan when it is free (`dispatch_parallel` in the
//! orchestrator source document).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::sync::Notify;

use super::policy;
use crate::base::name::ToolName;
use crate::log::bus::Bus;
use crate::log::event::{
    AttemptFailed, Boundary, Command, EventKind, FailureClass, Initiator, Purpose, SpanId,
    StopReason,
};
use crate::log::facts::orchestrator::{OrchestratorFact, Task, WorkerFault};
use crate::run::control::Branch;
use crate::run::{CallerPolicy, LiveControl, RunContext, ToolCallRequest};
use crate::scenario::patterns::orchestrator::{OrchestratorSpec, Worker};

/// The result of a task, or why it has none.
pub(crate) type TaskResult = Result<Arc<Value>, FailedTask>;

/// A task without a result.
pub(crate) struct FailedTask {
    pub reason: StopReason,
    /// The run must stop: the tool was unavailable, and its `allow_partial` is false.
    pub stops_run: bool,
}

/// Dispatches every task and waits for all of them. Returns their results in plan order.
///
/// Which slot takes the next task depends on which one finishes first, and so does which task finds
/// the dispatch budget used up; how the results are aggregated does not.
pub(crate) async fn dispatch(
    cx: &RunContext,
    spec: &OrchestratorSpec,
    limit: &ConcurrencyLimit,
    tasks: &[Task],
) -> Result<Vec<TaskResult>, StopReason> {
    let dispatcher = Dispatcher { cx, spec, limit, dispatches: AtomicU32::new(0) };
    let mut came: Vec<Option<TaskResult>> = tasks.iter().map(|_| None).collect();
    let (mut next, mut stops) = (0, false);
    let mut slots = FuturesUnordered::new();
    loop {
        while next < tasks.len() && limit.open() {
            slots.push(dispatcher.run_in_slot(cx.control().branch(), next, &tasks[next]));
            next += 1;
        }
        if slots.is_empty() {
            break;
        }
        let waits = cx.control().mark_waiting();
        let ended = tokio::select! {
            biased;
            ended = slots.next() => ended,
            () = limit.changed(), if next < tasks.len() => None,
        };
        // This branch counts as active from here on, so a pause never misses a slot that moves from
        // one task to the next.
        drop(waits);
        let Some((branch, place, task)) = ended else { continue };
        let task = task?;
        stops |= task.as_ref().is_err_and(|failed| failed.stops_run);
        came[place] = Some(task);
        if stops {
            if let Some(reason) = first_stop_reason(&came) {
                return Err(reason);
            }
            // The stop reason is certain; wait only for the tasks before it.
            next = tasks.len();
        }
        if next < tasks.len() && !limit.close_surplus() {
            slots.push(dispatcher.run_in_slot(branch, next, &tasks[next]));
            next += 1;
        } else if next >= tasks.len() {
            limit.close();
        }
    }
    came.into_iter().map(|came| came.ok_or(StopReason::InternalError)).collect()
}

/// The reason of the first task that stops the run, once all tasks before it are done.
fn first_stop_reason(came: &[Option<TaskResult>]) -> Option<StopReason> {
    let mut done = came.iter().map_while(Option::as_ref);
    done.find_map(|came| came.as_ref().err().filter(|it| it.stops_run).map(|it| it.reason.clone()))
}

/// What all slots share.
struct Dispatcher<'a> {
    cx: &'a RunContext,
    spec: &'a OrchestratorSpec,
    limit: &'a ConcurrencyLimit,
    dispatches: AtomicU32,
}

impl Dispatcher<'_> {
    /// Runs one task in a slot. Returns the slot's branch with the result, so that the slot can
    /// take the next task without ceasing to be an active branch in between.
    async fn run_in_slot(
        &self,
        branch: Branch,
        place: usize,
        task: &Task,
    ) -> (Branch, usize, Result<TaskResult, StopReason>) {
        let came = self.run_task(place, task).await;
        (branch, place, came)
    }

    async fn run_task(&self, place: usize, task: &Task) -> Result<TaskResult, StopReason> {
        // Nothing of a task happens before its boundary is passed: a paused run does not start it.
        self.cx.boundary(Boundary::Dispatch { task: task.id.clone(), attempt: 1 }).await?;
        let index = u32::try_from(place).unwrap_or(u32::MAX);
        let span = self.cx.open_span(OrchestratorFact::TaskStarted {
            parent: SpanId::RUN,
            task: task.id.clone(),
            index,
            worker: task.worker.clone(),
            args_hash: policy::args_hash(&task.args),
        });
        let mut open = OpenTask { cx: self.cx, span, open: true };
        let asked = self
            .cx
            .call_tool(ToolCallRequest {
                parent: span,
                of_program: None,
                tool: &task.worker,
                purpose: Purpose::Task { task: task.id.clone(), index },
                path: format!("task:{}", task.id),
                args: Arc::clone(&task.args),
                request_id: Some(format!("{}:{}", self.cx.id(), task.id)),
                caller: &TaskCaller { dispatcher: self, task },
                why: None,
                client_retries: 0,
            })
            .await;
        match asked {
            Ok(answered) => {
                open.close(OrchestratorFact::TaskDone { attempts: answered.attempts });
                Ok(Ok(answered.reply.result.clone().unwrap_or_default()))
            }
            Err(failed) => {
                let (attempts, reason) = (failed.attempts, failed.reason);
                if matches!(reason, StopReason::Cancelled | StopReason::MaxSeconds) {
                    return Err(reason);
                }
                open.close(OrchestratorFact::TaskFailed { attempts, reason: reason.clone() });
                let stops = failed.unavailable && self.cx.requires(&task.worker);
                Ok(Err(FailedTask { reason, stops_run: stops }))
            }
        }
    }

    fn worker(&self, name: &ToolName) -> Option<&Worker> {
        self.spec.worker(name.as_str())
    }
}

/// An open task span, closed as cancelled if the task is dropped before it ends.
struct OpenTask<'a> {
    cx: &'a RunContext,
    span: SpanId,
    open: bool,
}

impl OpenTask<'_> {
    fn close(&mut self, how: OrchestratorFact) {
        self.open = false;
        self.cx.publish(self.span, how);
    }
}

impl Drop for OpenTask<'_> {
    fn drop(&mut self) {
        if self.open {
            self.close(OrchestratorFact::TaskFailed { attempts: 0, reason: StopReason::Cancelled });
        }
    }
}

/// The orchestrator's own policy before each attempt (`_consume_dispatch_budget`, then
/// `_call_once`, in the orchestrator source document).
struct TaskCaller<'a> {
    dispatcher: &'a Dispatcher<'a>,
    task: &'a Task,
}

impl TaskCaller<'_> {
    fn check_flag(&self) -> Result<(), StopReason> {
        let Dispatcher { cx, .. } = self.dispatcher;
        let name = &self.task.worker;
        let flag = self.dispatcher.worker(name).and_then(|worker| worker.flag.as_ref());
        match flag.is_some_and(|flag| !cx.flag(flag)) {
            true => Err(StopReason::Worker(WorkerFault::Denied, name.clone())),
            false => Ok(()),
        }
    }

    async fn check_attempt(&self, attempt: u32) -> Result<(), StopReason> {
        let Dispatcher { cx, spec, dispatches, .. } = self.dispatcher;
        let task = self.task;
        if attempt > 1 {
            cx.boundary(Boundary::Dispatch { task: task.id.clone(), attempt }).await?;
        }
        if dispatches.fetch_add(1, Ordering::AcqRel) >= spec.budget.max_dispatches {
            return Err(StopReason::MaxDispatches);
        }
        let trouble = |trouble| Err(StopReason::Worker(trouble, task.worker.clone()));
        let Some(worker) = self.dispatcher.worker(&task.worker) else {
            return trouble(WorkerFault::Missing);
        };
        self.check_flag()?;
        if cx.tools().get(&task.worker).is_none_or(|tool| tool.is_missing()) {
            return trouble(WorkerFault::Missing);
        }
        if !policy::accepts_args(&worker.args, &task.args) {
            return trouble(WorkerFault::BadArgs);
        }
        Ok(())
    }
}

impl CallerPolicy for TaskCaller<'_> {
    fn before_attempt(&self, attempt: u32) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        Some(self.check_attempt(attempt).boxed())
    }

    fn wait_begins(&self) {
        self.dispatcher.limit.lend();
    }

    fn wait_ends(&self) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        let Dispatcher { cx, limit, .. } = self.dispatcher;
        let back = async move {
            {
                // Only other tasks can free a slot.
                let _waits = cx.control().mark_waiting();
                limit.take_back().await;
            }
            // The flag may have been switched off meanwhile.
            self.check_flag()
        };
        Some(back.boxed())
    }

    fn stop_reason(&self, tool: &ToolName, failure: &AttemptFailed) -> StopReason {
        let trouble = match failure.class {
            FailureClass::Timeout => return StopReason::TaskTimeout,
            FailureClass::Cancelled => return StopReason::Cancelled,
            FailureClass::BadResponse | FailureClass::TooLarge => WorkerFault::BadResult,
            _ => WorkerFault::Error,
        };
        StopReason::Worker(trouble, tool.clone())
    }
}

/// The limit of concurrent tasks. Each slot does one task after another; a slot above a lowered
/// limit closes after its task.
pub struct ConcurrencyLimit {
    bus: Bus,
    state: Mutex<ConcurrencyState>,
    changed: Notify,
    /// Signals that a slot is free for a task that has waited for a person.
    freed: Notify,
}

struct ConcurrencyState {
    max: u32,
    open: u32,
    /// Number of tasks that have waited for a person and want their slot back.
    returning: u32,
    /// Whether the limit can be changed: the run has not ended.
    live: bool,
}

/// Largest limit, as in the scenario format.
const MAX_LIMIT: u32 = 1_024;

impl ConcurrencyLimit {
    /// `most` is the limit at the start.
    pub fn new(bus: Bus, most: u32) -> Self {
        let max = most.clamp(1, MAX_LIMIT);
        let state = Mutex::new(ConcurrencyState { max, open: 0, returning: 0, live: true });
        Self { bus, state, changed: Notify::new(), freed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, ConcurrencyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the limit. Running tasks continue.
    fn set(&self, most: u32, by: Initiator) {
        let mut state = self.lock();
        let max_parallel = most.clamp(1, MAX_LIMIT);
        if state.live && max_parallel != state.max {
            state.max = max_parallel;
            self.bus.publish(SpanId::RUN, EventKind::ConcurrencyChanged { max_parallel, by });
            drop(state);
            self.changed.notify_one();
            self.freed.notify_one();
        }
    }

    /// Frees a slot whose task waits for a person.
    fn lend(&self) {
        self.close();
        self.changed.notify_one();
    }

    /// Waits until a task that has waited for a person has a slot again.
    async fn take_back(&self) {
        self.lock().returning += 1;
        loop {
            let freed = self.freed.notified();
            {
                let mut state = self.lock();
                if state.open < state.max {
                    (state.open, state.returning) = (state.open + 1, state.returning - 1);
                    return;
                }
            }
            freed.await;
        }
    }

    /// Opens one more slot if the limit allows it.
    pub fn open(&self) -> bool {
        let mut state = self.lock();
        let may = state.open + state.returning < state.max;
        state.open += u32::from(may);
        may
    }

    /// Closes a slot that has finished its task if there are more than the limit, or if a task wants its
    /// slot back; returns whether it did.
    pub fn close_surplus(&self) -> bool {
        let mut state = self.lock();
        let surplus = state.open > state.max || state.returning > 0;
        state.open -= u32::from(surplus);
        drop(state);
        if surplus {
            self.freed.notify_one();
        }
        surplus
    }

    /// Closes a slot.
    pub fn close(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
        drop(state);
        self.freed.notify_one();
    }

    /// Waits until the limit has changed since the last call.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl LiveControl for ConcurrencyLimit {
    fn take(&self, command: Command) -> Option<Command> {
        match command {
            Command::SetParallel { max_parallel, by } => {
                self.set(max_parallel, by);
                None
            }
            other => Some(other),
        }
    }

    fn end(&self) {
        self.lock().live = false;
    }
}
