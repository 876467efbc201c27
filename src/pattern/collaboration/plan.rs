//! The setup of a collaboration, as the head of a log has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::name::{FlagName, InputName, RoleName};
use crate::event::plan::Plan;
use crate::event::redact::TextRedactor;
use crate::event::weight::{ENTRY, texts};

/// Setup of a collaboration: the seats, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct CollaborationPlan {
    /// The role of each seat, in the order of their turns.
    pub sequence: Vec<RoleName>,
    /// The roles that depend on a flag.
    pub role_flags: BTreeMap<RoleName, RoleFlagHead>,
    /// Whether all seats of a round are asked at once (`parallel`) or in order (`sequential`).
    pub parallel: bool,
    /// Max rounds.
    pub max_rounds: u32,
    /// Max contributions.
    pub max_messages: u32,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
    /// Number of `go` votes that a decision for it needs.
    pub min_go_votes: u32,
    /// Inputs that `team_summary` repeats.
    pub summary_inputs: Vec<InputName>,
}

/// The flag that a role depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct RoleFlagHead {
    /// Name of the flag.
    pub flag: FlagName,
    /// Whether the run stops at the role's turn if the flag is off; else the seat is skipped.
    pub deny: bool,
}

impl Plan for CollaborationPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }

    fn weight(&self) -> usize {
        size_of::<Self>()
            + texts(self.sequence.iter().map(|role| role.as_str()))
            + texts(self.summary_inputs.iter().map(|input| input.as_str()))
            + self.role_flags.iter().fold(0, |sum, (role, behind)| {
                sum + ENTRY + role.as_str().len() + behind.flag.as_str().len()
            })
    }

    fn redact(&mut self, by: &mut TextRedactor) {
        let Self {
            sequence,
            role_flags: _,
            parallel: _,
            max_rounds: _,
            max_messages: _,
            max_ms: _,
            min_go_votes: _,
            summary_inputs: _,
        } = self;
        sequence.iter().for_each(|role| by.declare(role.as_str()));
    }
}
