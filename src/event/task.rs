//! The nouns of an orchestrator's plan that stand in facts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::scenario::name::{TaskId, ToolName};

/// A task of an accepted plan: the fields of the contract, others dropped (`001`,
/// `validate_orchestration_plan`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id, white space around it trimmed.
    pub id: TaskId,
    /// Who does it.
    pub worker: ToolName,
    /// What the worker is given, beside the request's id.
    pub args: Arc<Map<String, Value>>,
    /// Whether the run cannot do without it.
    pub critical: bool,
}
