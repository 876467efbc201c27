//! The parts of events about a collaboration: stance, contribution, conflict, decision.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::name::RoleName;
pub use crate::pattern::collaboration::spec::Decision;
use crate::scenario::spec::script::ReplyEnd;

/// The vote of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum Stance {
    /// Start.
    Go,
    /// Start with care.
    Caution,
    /// Do not start.
    Block,
}

impl Stance {
    /// Every stance, from the most willing to the least.
    pub const ALL: [Stance; 3] = [Self::Go, Self::Caution, Self::Block];

    /// The word in JSON and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Caution => "caution",
            Self::Block => "block",
        }
    }
}

/// An accepted contribution: trimmed, rounded, with at most three actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct Contribution {
    /// The role that gave it.
    pub agent: RoleName,
    /// The vote.
    pub stance: Stance,
    /// The reason for the vote, in the role's own words.
    pub summary: Arc<str>,
    /// From 0 to 1, rounded to three decimals, ties by the exact binary value.
    pub confidence: f64,
    /// Actions that the role requests, one to three.
    pub actions: Vec<Arc<str>>,
    /// How the reply ended that it is from; absent: it is whole. The writer of the brief reads it too.
    #[serde(default, skip_serializing_if = "ReplyEnd::is_whole")]
    pub end: ReplyEnd,
}

/// A disagreement within a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum Conflict {
    /// No seat gave a contribution.
    NoContributions,
    /// Some say go, some caution, none block.
    GoVsCaution,
    /// Some say block, some do not.
    BlockingVsNonBlock,
    /// All three stances occur.
    HighDivergence,
}

impl Conflict {
    /// The word in results, prompts and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoContributions => "no_contributions",
            Self::GoVsCaution => "go_vs_caution",
            Self::BlockingVsNonBlock => "blocking_vs_non_block",
            Self::HighDivergence => "high_divergence",
        }
    }
}

impl fmt::Display for Stance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
