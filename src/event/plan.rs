//! The pattern and its limits as a run was started with them: the part of the log's head that each
//! pattern has of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scenario::name::{FlagName, InputName, RoleName};

/// The pattern and its limits, as the run was started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "pattern", rename_all = "snake_case")]
pub enum PatternPlan {
    /// Source `000`.
    Collaboration(CollaborationPlan),
}

impl PatternPlan {
    /// The pattern's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Collaboration(_) => "collaboration",
        }
    }
}

/// Source `000`: who sits, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollaborationPlan {
    /// Who speaks, in this order.
    pub sequence: Vec<RoleName>,
    /// The roles behind a flag.
    pub behind: BTreeMap<RoleName, BehindFlag>,
    /// `parallel` or `sequential`.
    pub parallel: bool,
    /// Rounds at most.
    pub max_rounds: u32,
    /// Contributions at most.
    pub max_messages: u32,
    /// Milliseconds of the whole run, pauses not counted.
    pub max_ms: u64,
    /// Votes for `go` that decide.
    pub min_go_votes: u32,
    /// Inputs that `team_summary` repeats.
    pub summary_inputs: Vec<InputName>,
}

/// The flag a role sits behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BehindFlag {
    /// Which.
    pub flag: FlagName,
    /// Whether the run stops when its turn comes and the flag is off.
    pub deny: bool,
}
