//! Who caused an event.

use serde::{Deserialize, Serialize};

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
    /// Somebody at another machine; `command.taken` says who.
    Remote,
    /// The runner that plays the run: it hands the run over, or has taken it over.
    Runner,
}

impl Initiator {
    /// Whether the program itself pauses a run, for as long as something else lasts. The clock of the run
    /// stops at once then.
    pub(crate) fn is_program(self) -> bool {
        matches!(self, Self::Suspend | Self::Store | Self::Runner)
    }
}
