//! What a person (or the command line) asks of a run. A command is data; it becomes an event when
//! it takes effect.

use serde::{Deserialize, Serialize};

use super::id::BoundaryId;
use super::kind::By;
use crate::scenario::name::FlagName;

/// A command to one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Rest at the next boundary.
    Pause {
        /// Who asks.
        by: By,
    },
    /// Go on.
    Resume {
        /// Who asks.
        by: By,
    },
    /// Go past one boundary, then rest; a running run rests at its next one.
    Step,
    /// Go on to the next round, then rest.
    StepRound,
    /// Turn a flag; it takes effect at the next boundary.
    SetFlag {
        /// Which.
        flag: FlagName,
        /// Its position.
        on: bool,
        /// Who asks.
        by: By,
    },
    /// Rest at this boundary when it comes.
    Break {
        /// Where.
        at: BoundaryId,
        /// Whether the breakpoint is set or taken away.
        set: bool,
    },
    /// End the run now; what is in flight is cancelled.
    Cancel,
}
