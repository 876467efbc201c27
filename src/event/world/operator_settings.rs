//! What the operator has set in a run: flags, breakpoints and the pause at the next round.

use std::collections::BTreeSet;

use crate::base::name::FlagName;
use crate::event::kind::{FlagAt, Initiator};
use crate::event::{BoundaryId, Elapsed};

/// What the operator has set in a run.
#[derive(Clone, Debug, Default)]
pub struct OperatorSettings {
    /// The flags, in the scenario's order.
    pub flags: Vec<FlagNow>,
    /// Boundaries at which the run will pause.
    pub breakpoints: BTreeSet<BoundaryId>,
    /// Whether the last step was one to the next round, where the run will pause.
    pub pauses_at_next_round: bool,
}

/// A flag and its current position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagNow {
    /// Name of the flag.
    pub name: FlagName,
    /// What the flag does, for display.
    pub label: String,
    /// The current position.
    pub on: bool,
    /// The position at the start.
    pub at_start: bool,
    /// The last change: its time, its boundary, and who made it.
    pub changed: Option<(Elapsed, BoundaryId, Initiator)>,
}

impl OperatorSettings {
    /// Sets the flags at the start of the run.
    pub(super) fn set_flags(&mut self, flags: &[FlagAt]) {
        let now = flags.iter().map(|flag| FlagNow {
            name: flag.name.clone(),
            label: flag.label.clone(),
            on: flag.on,
            at_start: flag.on,
            changed: None,
        });
        self.flags = now.collect();
    }

    /// Switches a flag.
    pub(super) fn switch(
        &mut self,
        flag: &FlagName,
        on: bool,
        changed: (Elapsed, BoundaryId, Initiator),
    ) {
        if let Some(row) = self.flags.iter_mut().find(|row| row.name == *flag) {
            row.on = on;
            row.changed = Some(changed);
        }
    }
}
