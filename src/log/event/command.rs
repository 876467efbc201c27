//! Commands: what the operator or the command line wants a run to do, and who caused an event. A
//! command is data; it becomes an event when it takes effect.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::BoundaryId;
use super::question::{QuestionAnswered, QuestionId};
use super::tool::LimitChange;
use crate::base::name::{FlagName, ToolName};
use crate::log::facts::agents::RosterCommand;
use crate::scenario::spec::tool::{FaultKind, InjectedFault};

/// A command to one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Pause at the next boundary.
    Pause {
        /// Who sent the command.
        by: Initiator,
    },
    /// Resume.
    Resume {
        /// Who sent the command.
        by: Initiator,
    },
    /// Pass one boundary, then pause. A running run pauses at its next boundary.
    Step,
    /// Continue to the next round, then pause.
    StepRound,
    /// Switch a flag; takes effect at the next boundary.
    SetFlag {
        /// Name of the flag.
        flag: FlagName,
        /// The new position.
        on: bool,
        /// Who sent the command.
        by: Initiator,
    },
    /// Set or remove a breakpoint.
    Break {
        /// The boundary to pause at.
        at: BoundaryId,
        /// Whether the breakpoint is set or removed.
        set: bool,
    },
    /// Change the limit of concurrent tasks. Takes effect immediately; running tasks continue.
    SetParallel {
        /// The new limit, at least 1.
        max_parallel: u32,
        /// Who sent the command.
        by: Initiator,
    },
    /// Change a limit of a tool. Takes effect on its next attempt; counts are kept.
    SetLimit {
        /// Name of the tool.
        tool: ToolName,
        /// The limit and its new value.
        change: LimitChange,
        /// Who sent the command.
        by: Initiator,
    },
    /// Override a tool's breaker manually.
    Breaker {
        /// Name of the tool.
        tool: ToolName,
        /// What to do with the breaker.
        #[serde(rename = "hand")]
        action: BreakerOverride,
        /// Who sent the command.
        by: Initiator,
    },
    /// Inject a fault into a tool; replaces one of the same kind.
    Inject {
        /// Name of the tool.
        tool: ToolName,
        /// The fault.
        fault: InjectedFault,
        /// Who sent the command.
        by: Initiator,
    },
    /// Remove an injected fault.
    RemoveFault {
        /// Name of the tool.
        tool: ToolName,
        /// Kind of the fault.
        kind: FaultKind,
        /// Who sent the command.
        by: Initiator,
    },
    /// Change the members of a swarm. Every member's list of handoff targets follows at once.
    Roster(RosterCommand),
    /// Answer a question. The first answer counts.
    Answer(Box<QuestionAnswered>),
    /// Withdraw an approval that the run remembers.
    WithdrawApproval {
        /// The question whose approval is remembered.
        id: QuestionId,
        /// Who sent the command.
        by: Initiator,
    },
    /// Queue a message of the session: a new run answers it when this one has ended. Teams and swarms
    /// take messages.
    Message {
        /// The text.
        text: Arc<str>,
        /// Who sent the command.
        by: Initiator,
    },
    /// End the run now; calls in flight are cancelled.
    Cancel,
}

impl Command {
    /// The same command from another sender.
    pub(crate) fn sent_by(mut self, sender: Initiator) -> Self {
        match &mut self {
            Self::Pause { by }
            | Self::Resume { by }
            | Self::SetFlag { by, .. }
            | Self::SetParallel { by, .. }
            | Self::SetLimit { by, .. }
            | Self::Breaker { by, .. }
            | Self::Inject { by, .. }
            | Self::RemoveFault { by, .. }
            | Self::WithdrawApproval { by, .. }
            | Self::Message { by, .. } => *by = sender,
            Self::Roster(roster) => roster.by = sender,
            Self::Step | Self::StepRound | Self::Break { .. } | Self::Answer(_) | Self::Cancel => {}
        }
        self
    }
}

/// A manual override of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerOverride {
    /// Open it now; it cools down as if failures had opened it.
    Trip,
    /// Open it until it is reset.
    Hold,
    /// Let everything through, even if calls fail.
    Disable,
    /// Close it and set its counts to zero.
    Reset,
}

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Initiator {
    /// The operator, at the dashboard.
    You,
    /// The command line (`--flag NAME=on@round:2`, `--pause-at`).
    Schedule,
    /// A breakpoint.
    Breakpoint,
    /// Suspension of the process (Ctrl-Z).
    Suspend,
    /// The store of runs, while it cannot be written.
    Store,
    /// Somebody at another process or machine; `command.taken` says who.
    Remote,
    /// The runner that plays the run: it hands the run over, or has taken it over.
    Runner,
    /// A question to which nobody has answered in time.
    Question,
}

impl Initiator {
    /// Who or what caused it, for display.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::You => "by you",
            Self::Schedule => "by the command line",
            Self::Breakpoint => "by a breakpoint",
            Self::Suspend => "by a suspension",
            Self::Store => "by the store",
            Self::Remote => "from elsewhere",
            Self::Runner => "by the runner",
            Self::Question => "because nobody answered",
        }
    }

    /// Whether the program itself pauses a run, for as long as something else lasts. The clock of the run
    /// stops at once then.
    pub(crate) fn is_program(self) -> bool {
        matches!(self, Self::Suspend | Self::Store | Self::Runner)
    }

    /// Whether a pause lasts as long as its reason: it does not replace one by the operator, and its end
    /// does not end one.
    pub(crate) fn is_reason(self) -> bool {
        self.is_program() || self == Self::Question
    }
}
