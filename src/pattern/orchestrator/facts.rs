//! The parts of events about an orchestrator's plan.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::name::{TaskId, ToolName};

/// A task of an accepted plan. Other fields of the model's reply are dropped
/// (`validate_orchestration_plan` in the orchestrator source document).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
