//! Runs the tasks in parallel, at most the concurrency limit at once. Each lane starts the next
//! task of the plan when it is free (`dispatch_parallel` in the orchestrator source document).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;

use super::policy;
use crate::event::kind::{AttemptFailed, FailureClass, Purpose, Task};
use crate::event::stop::WorkerTrouble;
use crate::event::{Boundary, EventKind, SpanId, StopReason};
use crate::run::gate::Branch;
use crate::run::{Caller, RunContext, ToolAsk};
use crate::scenario::name::ToolName;
use crate::scenario::orchestrator::{OrchestratorSpec, Worker};

/// The result of a task, or why it has none.
pub(super) type Came = Result<Arc<Value>, Failed>;

/// A task without a result.
pub(super) struct Failed {
    /// The reason.
    pub reason: StopReason,
    /// The run must stop: the tool was unavailable, and its `allow_partial` is false.
    pub stops: bool,
}

/// Dispatches every task and waits for all of them. Returns their results in plan order.
///
/// Which lane takes the next task depends on which one finishes first, and so does which task finds
/// the dispatch budget used up; how the results are aggregated does not.
///
/// # Errors
/// Why the run stops: it was cancelled, it ran out of time, or a required tool is unavailable. If
/// several required tools are unavailable, the reason of the first task in plan order counts, once
/// all tasks before it are done.
pub(super) async fn dispatch(
    cx: &RunContext,
    spec: &OrchestratorSpec,
    tasks: &[Task],
) -> Result<Vec<Came>, StopReason> {
    let floor = Floor { cx, spec, dispatches: AtomicU32::new(0) };
    let mut came: Vec<Option<Came>> = tasks.iter().map(|_| None).collect();
    let (mut next, mut stops) = (0, false);
    let mut lanes = FuturesUnordered::new();
    loop {
        while next < tasks.len() && cx.lanes().open() {
            lanes.push(floor.lane(cx.gate().branch(), next, &tasks[next]));
            next += 1;
        }
        if lanes.is_empty() {
            break;
        }
        let waits = cx.gate().only_waits();
        let ended = tokio::select! {
            biased;
            ended = lanes.next() => ended,
            () = cx.lanes().changed(), if next < tasks.len() => None,
        };
        // This branch counts as active from here on, so the gate always sees a lane that moves from
        // one task to the next.
        drop(waits);
        let Some((branch, place, task)) = ended else { continue };
        let task = task?;
        stops |= task.as_ref().is_err_and(|failed| failed.stops);
        came[place] = Some(task);
        if stops {
            if let Some(reason) = stopping(&came) {
                return Err(reason);
            }
            // The stop reason is certain; wait only for the tasks before it.
            next = tasks.len();
        }
        if next < tasks.len() && !cx.lanes().close_surplus() {
            lanes.push(floor.lane(branch, next, &tasks[next]));
            next += 1;
        } else if next >= tasks.len() {
            cx.lanes().close();
        }
    }
    came.into_iter().map(|came| came.ok_or(StopReason::InternalError)).collect()
}

/// The reason of the first task that stops the run, once all tasks before it are done.
fn stopping(came: &[Option<Came>]) -> Option<StopReason> {
    let mut done = came.iter().map_while(Option::as_ref);
    done.find_map(|came| came.as_ref().err().filter(|it| it.stops).map(|it| it.reason.clone()))
}

/// What all lanes share.
struct Floor<'a> {
    cx: &'a RunContext,
    spec: &'a OrchestratorSpec,
    dispatches: AtomicU32,
}

impl Floor<'_> {
    /// Runs one task in a lane. Returns the lane's branch with the result, so that the lane can
    /// take the next task without leaving the gate in between.
    async fn lane(
        &self,
        branch: Branch,
        place: usize,
        task: &Task,
    ) -> (Branch, usize, Result<Came, StopReason>) {
        let came = self.task(place, task).await;
        (branch, place, came)
    }

    async fn task(&self, place: usize, task: &Task) -> Result<Came, StopReason> {
        // Nothing of a task happens before its boundary is passed: a paused run does not start it.
        self.cx.boundary(Boundary::Dispatch { task: task.id.clone(), attempt: 1 }).await?;
        let index = u32::try_from(place).unwrap_or(u32::MAX);
        let span = self.cx.open(EventKind::TaskStarted {
            parent: SpanId::RUN,
            task: task.id.clone(),
            index,
            worker: task.worker.clone(),
            args_hash: policy::args_hash(&task.args),
        });
        let mut open = OpenTask { cx: self.cx, span, open: true };
        let asked = self
            .cx
            .ask_tool(ToolAsk {
                parent: span,
                tool: &task.worker,
                purpose: Purpose::Task { task: task.id.clone(), index },
                path: format!("task:{}", task.id),
                args: Arc::clone(&task.args),
                request_id: Some(format!("{}:{}", self.cx.id(), task.id)),
                caller: &Dispatched { floor: self, task },
                client_retries: 0,
            })
            .await;
        match asked {
            Ok(answered) => {
                open.close(EventKind::TaskDone { attempts: answered.attempts });
                Ok(Ok(answered.reply.result.unwrap_or_default()))
            }
            Err(failed) => {
                let (attempts, reason) = (failed.attempts, failed.reason);
                if matches!(reason, StopReason::Cancelled | StopReason::MaxSeconds) {
                    return Err(reason);
                }
                open.close(EventKind::TaskFailed { attempts, reason: reason.clone() });
                let stops = failed.unavailable && self.cx.needs(&task.worker);
                Ok(Err(Failed { reason, stops }))
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
    fn close(&mut self, how: EventKind) {
        self.open = false;
        self.cx.publish(self.span, how);
    }
}

impl Drop for OpenTask<'_> {
    fn drop(&mut self) {
        if self.open {
            self.close(EventKind::TaskFailed { attempts: 0, reason: StopReason::Cancelled });
        }
    }
}

/// The orchestrator's own policy before each attempt (`_consume_dispatch_budget`, then
/// `_call_once`, in the orchestrator source document).
struct Dispatched<'a> {
    floor: &'a Floor<'a>,
    task: &'a Task,
}

impl Dispatched<'_> {
    async fn may(&self, attempt: u32) -> Result<(), StopReason> {
        let Floor { cx, spec, dispatches, .. } = self.floor;
        let task = self.task;
        if attempt > 1 {
            cx.boundary(Boundary::Dispatch { task: task.id.clone(), attempt }).await?;
        }
        if dispatches.fetch_add(1, Ordering::AcqRel) >= spec.budget.max_dispatches {
            return Err(StopReason::MaxDispatches);
        }
        let trouble = |trouble| Err(StopReason::Worker(trouble, task.worker.clone()));
        let Some(worker) = self.floor.worker(&task.worker) else {
            return trouble(WorkerTrouble::Missing);
        };
        if worker.flag.as_ref().is_some_and(|flag| !cx.flag(flag)) {
            return trouble(WorkerTrouble::Denied);
        }
        if cx.belt().get(&task.worker).is_none_or(|tool| tool.tool.is_none()) {
            return trouble(WorkerTrouble::Missing);
        }
        if !policy::takes(&worker.args, &task.args) {
            return trouble(WorkerTrouble::BadArgs);
        }
        Ok(())
    }
}

impl Caller for Dispatched<'_> {
    fn admit(&self, attempt: u32) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        Some(self.may(attempt).boxed())
    }

    fn reason(&self, tool: &ToolName, failure: &AttemptFailed) -> StopReason {
        let trouble = match failure.class {
            FailureClass::Timeout => return StopReason::TaskTimeout,
            FailureClass::Cancelled => return StopReason::Cancelled,
            FailureClass::BadResponse | FailureClass::TooLarge => WorkerTrouble::BadResult,
            _ => WorkerTrouble::Error,
        };
        StopReason::Worker(trouble, tool.clone())
    }
}
