//! The setup of a collaboration, as the head of a log has it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::name::{FlagName, InputName, RoleName};
use crate::event::contribution::Decision;
use crate::event::plan::Plan;
use crate::event::redact::TextRedactor;
use crate::event::weight::{ENTRY, texts};
use crate::pattern::collaboration::facts::DecidedBy;
use crate::pattern::collaboration::spec::Share;

/// Setup of a collaboration: the seats, and the limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// What a seat reads of what the others said; in logs of earlier versions their stances.
    #[serde(default, skip_serializing_if = "Share::is_stances")]
    pub share: Share,
    /// Whether the rules of a live run hold: a contribution without `agent` counts as that of the
    /// seat that was asked, the other seats finish their replies when one stops the run, and a run
    /// without a decision gets its brief.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live_rules: bool,
    /// The rows that decide a round; none: those of the source document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decide: Vec<DecideRowHead>,
    /// The weights of the roles that have another one than 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<RoleName, f64>,
    /// The roles whose block is `no_go`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub vetoes: BTreeSet<RoleName>,
}

/// A row that may decide a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct DecideRowHead {
    /// Its condition.
    pub when: String,
    /// The decision if the condition holds.
    pub decision: Decision,
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

impl CollaborationPlan {
    /// The row that decided; `None`: no row did.
    pub(crate) fn row_of(&self, by: &DecidedBy) -> Option<&DecideRowHead> {
        let DecidedBy::Row(number) = by else { return None };
        self.decide.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }
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
            + self.decide.iter().fold(0, |sum, row| sum + ENTRY + row.when.len())
            + texts(self.weights.keys().chain(&self.vetoes).map(|role| role.as_str()))
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
            share: _,
            live_rules: _,
            decide,
            weights: _,
            vetoes: _,
        } = self;
        decide.iter_mut().for_each(|row| by.text(&mut row.when));
        sequence.iter().for_each(|role| by.declare(role.as_str()));
    }
}
