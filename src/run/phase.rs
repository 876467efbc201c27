//! Where a run is, for the stop that may come there.

use std::fmt;

use crate::scenario::name::RoleName;

/// Where a run is. Most runs are never stopped, so the text is made only where it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// In these words.
    Text(String),
    /// In a round, from 1: `round_2`.
    Round(u32),
    /// At a seat of a round: `round_2:risk_analyst`.
    Seat {
        /// The round, from 1.
        round: u32,
        /// Who sits there.
        role: RoleName,
    },
    /// Before the result is put together: `finalize`.
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
