//! The settings of the pattern `collaboration` (collaboration source document).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{FlagName, InputName, RoleName};

/// `pattern = "collaboration"`.
#[derive(Debug)]
pub struct CollaborationSpec {
    /// Limits as in the collaboration source document.
    pub budget: CollaborationBudget,
    /// The roles in speaking order (`TEAM_SEQUENCE` in the source document).
    pub sequence: Vec<RoleName>,
    /// Whether the seats of a round call the model in parallel.
    pub concurrency: Concurrency,
    /// The roles by name, including every name of `sequence`.
    pub roles: BTreeMap<RoleName, RoleSpec>,
    /// System prompt of the launch brief.
    pub finalize_prompt: Arc<str>,
    /// Inputs that are copied to `team_summary`, such as `report_date` and `region`.
    pub summary_inputs: Vec<InputName>,
}

/// Limits of a collaboration run, named as in the collaboration source document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollaborationBudget {
    /// Maximum number of rounds, at least 1.
    pub max_rounds: u32,
    /// Maximum number of contributions.
    pub max_messages: u32,
    /// Time limit of the run; pauses are not counted.
    pub max_seconds: Duration,
    /// Votes for `go` that are needed for a decision, at least 1.
    pub min_go_votes: u32,
}

/// Whether the seats of a round call the model in parallel. The outcome is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// All in parallel: a round takes as long as its slowest seat.
    Parallel,
    /// One seat after another.
    Sequential,
}

/// A role at the table.
#[derive(Debug, Clone)]
pub struct RoleSpec {
    /// Its system prompt, without the required reply format.
    pub prompt: Arc<str>,
    /// The flag that switches it on and off, if any.
    pub role_flag: Option<RoleFlag>,
}

/// The flag of a role, and what happens while it is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFlag {
    /// Name of the flag.
    pub flag: FlagName,
    /// What happens while the flag is off.
    pub when_off: WhenOff,
}

/// What happens to a role whose flag is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenOff {
    /// Its seat stays empty until the flag is on.
    Skip,
    /// The run stops with `agent_denied:<role>` at the role's turn.
    Deny,
}
