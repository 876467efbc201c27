//! The phase of a run, which an outcome reports if the run stops there.

use std::fmt;

use crate::base::name::RoleName;

/// The phase of a run. The text is made only when it is needed: most runs are never stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Any other phase, as its text.
    Text(String),
    /// In a round, from 1: `round_2`.
    Round(u32),
    /// At a seat of a round: `round_2:risk_analyst`.
    Seat {
        /// Number of the round, from 1.
        round: u32,
        /// The role of the seat.
        role: RoleName,
    },
    /// Before the answer is composed: `finalize`.
    Finalize,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Round(round) => write!(f, "round_{round}"),
            Self::Seat { round, role } => write!(f, "round_{round}:{role}"),
            Self::Finalize => f.write_str("finalize"),
        }
    }
}

impl From<String> for Phase {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
