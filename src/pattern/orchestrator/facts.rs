//! The facts of an orchestrator: its plan, the tasks, the combined results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::name::{TaskId, ToolName};
use crate::event::fact::{Fact, FactAbout};
use crate::event::fact_enum::facts;
use crate::event::id::SpanId;
use crate::event::patterns::PatternPlan;
use crate::event::redact::TextRedactor;
use crate::event::span::{SpanKind, SpanState};
use crate::event::stop::StopReason;
use crate::event::weight::{entries, json_weight, texts};

facts! {
    /// A fact of an orchestrator.
    pub enum OrchestratorFact in Orchestrator read as OrchestratorFactFields of "OrchestratorFact" {
        /// The planner's plan was accepted.
        "plan.accepted" PlanAccepted {
            /// Its tasks in order.
            tasks: Arc<[Task]>,
        },
        /// Opens a task's span: the task got a slot of the concurrency limit.
        "task.started" TaskStarted {
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
        "task.done" TaskDone {
            /// Attempts used.
            attempts: u32,
        },
        /// Closes a task's span without a result.
        "task.failed" TaskFailed {
            /// Attempts used, refused ones included.
            attempts: u32,
            /// The reason.
            reason: StopReason,
        },
        /// The results of a plan were combined by the scenario's rules.
        "results.aggregated" ResultsAggregated {
            /// The aggregate.
            aggregate: Arc<Value>,
            /// Tasks whose result was replaced by a later one of the same worker.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            overwritten: Vec<TaskId>,
            /// The rule that gave the level, from 0; absent where no rule matched.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            rule: Option<u32>,
            /// The parts of the aggregate by which that rule holds, such as
            /// `inventory.out_of_stock_skus`.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            decided_by: Vec<String>,
        },
    }
}

impl Fact for OrchestratorFact {
    fn name(&self) -> &'static str {
        self.name()
    }

    fn weight(&self) -> usize {
        match self {
            Self::PlanAccepted { tasks } => tasks.iter().map(task_weight).sum(),
            Self::TaskStarted { task, worker, args_hash, .. } => {
                task.as_str().len() + worker.as_str().len() + args_hash.len()
            }
            Self::TaskDone { .. } => 0,
            Self::TaskFailed { reason, .. } => reason.weight(),
            Self::ResultsAggregated { aggregate, overwritten, rule: _, decided_by } => {
                json_weight(aggregate)
                    + texts(overwritten.iter().map(|task| task.as_str()))
                    + texts(decided_by.iter().map(String::as_str))
            }
        }
    }

    fn opens(&self) -> Option<(SpanId, SpanKind)> {
        match self {
            Self::TaskStarted { parent, index, .. } => {
                Some((*parent, SpanKind::Task { index: *index }))
            }
            _ => None,
        }
    }

    fn closes(&self) -> Option<SpanState> {
        match self {
            Self::TaskDone { .. } => Some(SpanState::Done),
            Self::TaskFailed { .. } => Some(SpanState::Failed(None)),
            _ => None,
        }
    }

    fn result(&self, plan: &PatternPlan) -> Option<String> {
        match (self, plan) {
            (Self::ResultsAggregated { aggregate, .. }, PatternPlan::Orchestrator(plan)) => {
                aggregate.get(&plan.level)?.as_str().map(str::to_owned)
            }
            _ => None,
        }
    }

    fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::PlanAccepted { tasks } => {
                for Task { id, worker: _, args, critical: _ } in Arc::make_mut(tasks) {
                    by.task(id);
                    by.fields(Arc::make_mut(args));
                }
            }
            // The hash has no key, so short arguments could be found by trying them.
            Self::TaskStarted { parent: _, task, index: _, worker: _, args_hash } => {
                by.task(task);
                by.text(args_hash);
            }
            Self::TaskDone { attempts: _ } => {}
            Self::TaskFailed { attempts: _, reason } => reason.redact(by),
            Self::ResultsAggregated { aggregate, overwritten, rule: _, decided_by } => {
                decided_by.iter_mut().for_each(|name| by.text(name));
                by.value(Arc::make_mut(aggregate));
                overwritten.iter_mut().for_each(|task| by.task(task));
            }
        }
    }

    fn about(&self) -> FactAbout<'_> {
        match self {
            Self::TaskFailed { attempts, reason } => FactAbout {
                attempt: Some(*attempts),
                reason: Some(reason.to_string()),
                ..FactAbout::default()
            },
            _ => FactAbout::default(),
        }
    }

    fn is_cancellation(&self) -> bool {
        matches!(self, Self::TaskFailed { reason: StopReason::Cancelled, .. })
    }

    fn shows_reply(&self) -> bool {
        matches!(self, Self::TaskDone { .. } | Self::TaskFailed { .. })
    }
}

fn task_weight(task: &Task) -> usize {
    let names = task.id.as_str().len() + task.worker.as_str().len();
    size_of::<Task>() + names + entries(&*task.args)
}

/// A task of an accepted plan. Other fields of the model's reply are dropped
/// (`validate_orchestration_plan` in the orchestrator source document).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct Task {
    /// Id of the task, without surrounding white space.
    pub id: TaskId,
    /// Name of the worker.
    pub worker: ToolName,
    /// The worker's arguments, without the request id.
    pub args: Arc<Map<String, Value>>,
    /// Whether the run stops if this task fails.
    pub critical: bool,
}
