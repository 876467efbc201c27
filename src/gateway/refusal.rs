//! Why the guard of a tool refuses an attempt.

use std::time::Duration;

use crate::base::name::ToolName;
use crate::event::StopReason;

/// Why an attempt was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardRefusal {
    /// The breaker is open.
    CircuitOpen {
        /// Time until a new attempt makes sense, if time decides that.
        retry_in: Option<Duration>,
    },
    /// The bulkhead is full.
    BulkheadFull,
}

impl GuardRefusal {
    /// The stop reason of a run that cannot continue without this tool.
    pub fn stop_reason(self, tool: &ToolName) -> StopReason {
        match self {
            Self::CircuitOpen { .. } => StopReason::CircuitOpen(tool.clone()),
            Self::BulkheadFull => StopReason::BulkheadFull(tool.clone()),
        }
    }

    /// Time until a new attempt makes sense, if time decides that.
    pub fn retry_in(self) -> Option<Duration> {
        match self {
            Self::CircuitOpen { retry_in } => retry_in,
            Self::BulkheadFull => None,
        }
    }
}
