//! The facts of an orchestrator (its plan, the tasks, the combined results), its setup in the head
//! of a log, and the faults of its workers in the words of its source document.

use crate::base::worded;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Fact, FactAbout, PatternPlan, Plan, facts};
use crate::base::name::{FlagName, TaskId, ToolName};
use crate::base::time::millis;
use crate::log::event::id::SpanId;
use crate::log::event::stop::StopReason;
use crate::log::event::{SpanKind, SpanState};
use crate::scenario::patterns::orchestrator::OrchestratorBudget;

facts! {
    /// A fact of an orchestrator.
    pub enum OrchestratorFact in Orchestrator {
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

    fn critical_tasks(&self) -> Option<Vec<u32>> {
        let Self::PlanAccepted { tasks } = self else { return None };
        Some(
            (0..).zip(&**tasks).filter(|(_, task)| task.critical).map(|(index, _)| index).collect(),
        )
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

/// A task of an accepted plan. Other fields of the model's reply are dropped
/// (`validate_orchestration_plan` in the orchestrator source document).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// Setup of an orchestrator: its workers, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OrchestratorPlan {
    /// The available workers, in the scenario's order.
    pub workers: Vec<WorkerHead>,
    /// The limits.
    #[serde(flatten)]
    pub budget: OrchestratorBudget,
    /// The sections of the aggregate.
    pub sections: Vec<String>,
    /// Name of the aggregate's level, such as `health`.
    pub level: String,
}

/// A worker that may be planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkerHead {
    /// Name of the worker.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// The flag that removes it from the execution list when off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

impl Plan for OrchestratorPlan {
    fn max_ms(&self) -> u64 {
        millis(self.budget.max_seconds)
    }
}

/// Why a worker did not do its task (`_call_once` in the orchestrator source document).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerFault {
    /// `worker_denied`: it is not on the execution list
    Denied,
    /// `worker_missing`: it has no implementation
    Missing,
    /// `worker_bad_args`: it does not take these arguments
    BadArgs,
    /// `worker_bad_result`: its result does not match its contract
    BadResult,
    /// `worker_error`: any other failure
    Error,
}

worded! { WorkerFault + ALL {
    Denied = "worker_denied", Missing = "worker_missing", BadArgs = "worker_bad_args",
    BadResult = "worker_bad_result", Error = "worker_error",
} }

impl WorkerFault {
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.word() == word)
    }

    /// The fault in words, with the worker's name.
    pub(crate) fn phrase(self, worker: &ToolName) -> String {
        match self {
            Self::Denied => format!("{worker} switched off"),
            Self::Missing => format!("{worker} not implemented"),
            Self::BadArgs => format!("bad args for {worker}"),
            Self::BadResult => format!("bad result of {worker}"),
            Self::Error => format!("{worker} failed"),
        }
    }

    pub(crate) fn advice(self) -> Option<&'static str> {
        Some(match self {
            Self::Denied => {
                "The worker's flag is off: switch it on, or keep the worker out of the plan."
            }
            Self::Missing => {
                "The worker has no implementation: give it a fixture, http or command table."
            }
            Self::BadArgs => {
                "The planner gave arguments that the worker does not accept: fix its prompt."
            }
            Self::BadResult => {
                "The worker's result does not match its contract: the attempt says where."
            }
            Self::Error => "The tool failed: its last error says why.",
        })
    }
}
