//! What a person (or the command line) asks of a run. A command is data; it becomes an event when
//! it takes effect.

use serde::{Deserialize, Serialize};

use super::id::BoundaryId;
use super::kind::{By, RosterChange};
use super::tool::LimitChange;
use crate::scenario::name::{AgentName, FlagName, ToolName};
use crate::scenario::tool::{Fault, FaultKind};

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
    /// Change how many tasks go at once; it takes effect at once, and tasks that are out go on.
    SetParallel {
        /// How many, at least 1.
        max_parallel: u32,
        /// Who asks.
        by: By,
    },
    /// Change a limit of a tool; it takes effect on its next attempt, and counts are kept.
    SetLimit {
        /// Which tool.
        tool: ToolName,
        /// What.
        change: LimitChange,
        /// Who asks.
        by: By,
    },
    /// Move a tool's breaker by hand.
    Breaker {
        /// Which tool.
        tool: ToolName,
        /// Where to.
        hand: BreakerHand,
        /// Who asks.
        by: By,
    },
    /// Inject a fault into a tool, in place of one of the same kind.
    Inject {
        /// Which tool.
        tool: ToolName,
        /// What.
        fault: Fault,
        /// Who asks.
        by: By,
    },
    /// Take an injected fault away.
    Heal {
        /// Which tool.
        tool: ToolName,
        /// Which kind.
        kind: FaultKind,
        /// Who asks.
        by: By,
    },
    /// Change who is in a swarm; everyone's list of whom to hand over to follows at once.
    Roster {
        /// Which swarm.
        swarm: AgentName,
        /// How.
        change: RosterChange,
        /// Who asks.
        by: By,
    },
    /// End the run now; what is in flight is cancelled.
    Cancel,
}

/// What a person does to a breaker by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerHand {
    /// Opens it now; it cools down as if failures had opened it.
    Trip,
    /// Opens it until it is reset.
    Hold,
    /// Lets everything through, whatever fails.
    Disable,
    /// Closes it with a clean count.
    Reset,
}
