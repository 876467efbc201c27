//! Projection of an orchestrator: the plan, its tasks with their attempts, the aggregate.

mod questions;
mod rows;

pub use rows::{AttemptBar, AttemptEnd, TaskRow, TaskState};

use rows::close_attempt;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::base::name::TaskId;
use crate::event::kind::Purpose;
use crate::event::patterns::PatternFact;
use crate::event::world::spans::{SpanKind, Spans};
use crate::event::{Elapsed, Event, EventKind, SpanId, StopReason};
use crate::pattern::orchestrator::facts::{OrchestratorFact, Task};
use crate::pattern::orchestrator::plan::OrchestratorPlan;

/// State of an orchestrator run.
#[derive(Clone, Debug)]
pub struct Orchestrator {
    /// The setup of the run.
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
    /// task, several, or one that stands for an earlier section.
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
            max_parallel: plan.max_parallel,
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
