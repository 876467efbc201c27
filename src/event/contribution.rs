//! The nouns of pattern `000` that stand in facts: stance, contribution, conflict, decision.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::scenario::name::RoleName;

/// Where a role stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// Start.
    Go,
    /// Start with care.
    Caution,
    /// Do not start.
    Block,
}

impl Stance {
    /// Every stance, the most willing first.
    pub const ALL: [Stance; 3] = [Self::Go, Self::Caution, Self::Block];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Caution => "caution",
            Self::Block => "block",
        }
    }
}

/// A contribution as the gateway takes it: trimmed, rounded, at most three actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Whose.
    pub agent: RoleName,
    /// Where it stands.
    pub stance: Stance,
    /// Why, in its own words.
    pub summary: Arc<str>,
    /// From 0 to 1, rounded to three decimals, ties by the exact binary value.
    pub confidence: f64,
    /// What it asks for, one to three.
    pub actions: Vec<Arc<str>>,
}

/// What keeps a round from being of one mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conflict {
    /// No seat spoke.
    NoContributions,
    /// Some go, some are cautious, none blocks.
    GoVsCaution,
    /// Some block, some do not.
    BlockingVsNonBlock,
    /// All three stances at once.
    HighDivergence,
}

impl Conflict {
    /// Its name in results, prompts and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoContributions => "no_contributions",
            Self::GoVsCaution => "go_vs_caution",
            Self::BlockingVsNonBlock => "blocking_vs_non_block",
            Self::HighDivergence => "high_divergence",
        }
    }
}

/// What the table decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Start.
    Go,
    /// Start with care.
    GoWithCaution,
    /// Do not start.
    NoGo,
}

impl Decision {
    /// Every decision.
    pub const ALL: [Decision; 3] = [Self::Go, Self::GoWithCaution, Self::NoGo];

    /// Its name in results, prompts and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::GoWithCaution => "go_with_caution",
            Self::NoGo => "no_go",
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

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
