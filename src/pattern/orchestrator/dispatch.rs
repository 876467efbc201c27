//! Tasks side by side: so many lanes at once, each doing one task after another in plan order
//! (`001`, `dispatch_parallel`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;

use super::policy;
use crate::event::kind::{AttemptFailed, FailureClass, Purpose, Task};
use crate::event::stop::WorkerTrouble;
use crate::event::{Boundary, EventKind, SpanId, StopReason};
use crate::run::{Caller, RunContext, ToolAsk};
use crate::scenario::name::ToolName;
use crate::scenario::orchestrator::{OrchestratorSpec, Worker};

/// What a task came to: its result, or why it has none.
pub(super) type Came = Result<Arc<Value>, StopReason>;

/// Dispatches every task and waits for all. What each came to, in plan order.
///
/// # Errors
/// Why the run stops: it was cancelled, its time is up, or it may not go on without a tool that it
/// cannot have.
pub(super) async fn dispatch(
    cx: &RunContext,
    spec: &OrchestratorSpec,
    tasks: &[Task],
) -> Result<Vec<Came>, StopReason> {
    let floor = Floor {
        cx,
        spec,
        tasks,
        next: AtomicUsize::new(0),
        dispatches: AtomicU32::new(0),
        came: Mutex::default(),
    };
    let mut lanes = FuturesUnordered::new();
    loop {
        while floor.has_more() && cx.lanes().open() {
            let branch = cx.gate().branch();
            let floor = &floor;
            lanes.push(async move {
                let _branch = branch;
                floor.lane().await
            });
        }
        if lanes.is_empty() {
            break;
        }
        let waits = cx.gate().only_waits();
        let ended = tokio::select! {
            biased;
            ended = lanes.next() => ended,
            () = cx.lanes().changed(), if floor.has_more() => None,
        };
        drop(waits);
        if let Some(Err(reason)) = ended {
            return Err(reason);
        }
    }
    drop(lanes);
    let mut came = floor.came.into_inner().unwrap_or_else(PoisonError::into_inner);
    (0..tasks.len()).map(|place| came.remove(&place).ok_or(StopReason::InternalError)).collect()
}

/// What all lanes have in common.
struct Floor<'a> {
    cx: &'a RunContext,
    spec: &'a OrchestratorSpec,
    tasks: &'a [Task],
    next: AtomicUsize,
    dispatches: AtomicU32,
    came: Mutex<BTreeMap<usize, Came>>,
}

impl Floor<'_> {
    fn has_more(&self) -> bool {
        self.next.load(Ordering::Acquire) < self.tasks.len()
    }

    /// One task after another, until there are no more or this lane is one too many.
    async fn lane(&self) -> Result<(), StopReason> {
        loop {
            let place = self.next.fetch_add(1, Ordering::AcqRel);
            let Some(task) = self.tasks.get(place) else { break };
            let came = self.task(place, task).await?;
            self.came.lock().unwrap_or_else(PoisonError::into_inner).insert(place, came);
            if self.cx.lanes().close_surplus() {
                return Ok(());
            }
        }
        self.cx.lanes().close();
        Ok(())
    }

    async fn task(&self, place: usize, task: &Task) -> Result<Came, StopReason> {
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
                let tool = self.cx.belt().get(&task.worker);
                let partial = tool.is_none_or(|tool| tool.guard.policy().0.safe_mode.allow_partial);
                if partial { Ok(Err(reason)) } else { Err(reason) }
            }
        }
    }

    fn worker(&self, name: &ToolName) -> Option<&Worker> {
        self.spec.worker(name.as_str())
    }
}

/// A task that closes its span when it is dropped in the middle.
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

/// The orchestrator's own policy before each attempt (`001`, `_consume_dispatch_budget` and
/// `_call_once`, in this order).
struct Dispatched<'a> {
    floor: &'a Floor<'a>,
    task: &'a Task,
}

impl Dispatched<'_> {
    async fn may(&self, attempt: u32) -> Result<(), StopReason> {
        let Floor { cx, spec, dispatches, .. } = self.floor;
        let task = self.task;
        cx.boundary(Boundary::Dispatch { task: task.id.clone(), attempt }).await?;
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
