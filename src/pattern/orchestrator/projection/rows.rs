//! The tasks of an orchestrator with their attempts.

use std::sync::Arc;

use serde_json::Value;

use crate::event::kind::{FailureClass, FallbackKind};
use crate::event::{Elapsed, Event, SpanId, StopReason};
use crate::pattern::orchestrator::facts::Task;

/// A task of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// The task as planned.
    pub task: Task,
    /// Its progress.
    pub state: TaskState,
    /// Its span, once it has started.
    pub span: Option<SpanId>,
    /// Hash of its arguments; empty before it starts.
    pub args_hash: String,
    /// When the plan was accepted: from then on it waits for a slot.
    pub planned: Elapsed,
    /// When it started.
    pub opened: Option<Elapsed>,
    /// When it ended.
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
    /// It has a result.
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
    /// When it started.
    pub opened: Elapsed,
    /// When it ended.
    pub closed: Option<Elapsed>,
    /// How it ended.
    pub end: AttemptEnd,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// It is in flight.
    InFlight,
    /// It got a result.
    Answered,
    /// It failed.
    Failed(FailureClass),
    /// Policy refused it, so it was not made.
    Refused,
}

impl TaskRow {
    pub(super) fn new(task: Task, planned: Elapsed) -> Self {
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

pub(super) fn close_attempt(row: &mut TaskRow, event: &Event, end: AttemptEnd) {
    if let Some(bar) = row.attempts.iter_mut().rev().find(|bar| bar.span == Some(event.span)) {
        bar.closed = Some(event.at);
        bar.end = end;
    }
}
