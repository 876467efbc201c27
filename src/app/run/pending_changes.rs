//! Pending changes: manual changes of limits, faults and members that no event has confirmed yet.
//! The screen shows confirmed values; another press of a key counts from the pending value.

use crate::agents::facts::roster::MemberChange;
use crate::base::name::{FlagName, ToolName};
use crate::event::kind::LimitChange;
use crate::event::{Command, EventKind};
use crate::scenario::spec::tool::{FaultKind, InjectedFault};

/// One pending change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PendingChange {
    Parallel(u32),
    Limit(ToolName, LimitChange),
    Fault(ToolName, FaultKind, Option<InjectedFault>),
    Member(MemberChange),
    Flag(FlagName, bool),
}

impl PendingChange {
    fn from_command(command: &Command) -> Option<Self> {
        Some(match command {
            Command::SetParallel { max_parallel, .. } => Self::Parallel(*max_parallel),
            Command::SetLimit { tool, change, .. } => Self::Limit(tool.clone(), *change),
            Command::Inject { tool, fault, .. } => {
                Self::Fault(tool.clone(), fault.kind(), Some(*fault))
            }
            Command::RemoveFault { tool, kind, .. } => Self::Fault(tool.clone(), *kind, None),
            Command::Roster(command) => Self::Member(command.member_change()?),
            Command::SetFlag { flag, on, .. } => Self::Flag(flag.clone(), *on),
            _ => return None,
        })
    }

    fn from_event(kind: &EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::ConcurrencyChanged { max_parallel, .. } => Self::Parallel(*max_parallel),
            EventKind::LimitsChanged { tool, change, .. } => Self::Limit(tool.clone(), *change),
            EventKind::FaultInjected { tool, fault, .. } => {
                Self::Fault(tool.clone(), fault.kind(), Some(*fault))
            }
            EventKind::FaultRemoved { tool, fault, .. } => Self::Fault(tool.clone(), *fault, None),
            EventKind::FlagChanged { flag, on, .. } => Self::Flag(flag.clone(), *on),
            EventKind::Pattern(fact) => Self::from_command(&fact.get().confirms()?)?,
            _ => return None,
        })
    }

    /// Whether both change the same thing, whatever the value.
    fn is_about(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Parallel(_), Self::Parallel(_)) => true,
            (Self::Limit(tool, one), Self::Limit(same, other)) => {
                tool == same && std::mem::discriminant(one) == std::mem::discriminant(other)
            }
            (Self::Fault(tool, kind, _), Self::Fault(same, other, _)) => {
                tool == same && kind == other
            }
            (Self::Member(one), Self::Member(other)) => one.is_about_same_member(other),
            (Self::Flag(flag, _), Self::Flag(same, _)) => flag == same,
            _ => false,
        }
    }
}

/// The pending changes, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingChanges {
    changes: Vec<PendingChange>,
}

impl PendingChanges {
    /// Records a command that was sent to the run.
    pub fn record(&mut self, command: &Command) {
        let Some(change) = PendingChange::from_command(command) else { return };
        // The run switches a flag once, at its next boundary, to the position that was set last.
        if matches!(change, PendingChange::Flag(..)) {
            self.changes.retain(|before| !before.is_about(&change));
        }
        self.changes.push(change);
    }

    /// Removes the change that this event confirms; the end of the run removes them all.
    pub fn confirm(&mut self, kind: &EventKind) {
        if matches!(kind, EventKind::RunClosed(_)) {
            self.changes.clear();
        }
        let Some(done) = PendingChange::from_event(kind) else { return };
        if let Some(at) = self.changes.iter().position(|asked| asked.is_about(&done)) {
            self.changes.remove(at);
        }
    }

    /// The pending changes of members, newest first.
    pub fn members(&self) -> impl Iterator<Item = &MemberChange> {
        self.changes.iter().rev().filter_map(|turn| match turn {
            PendingChange::Member(change) => Some(change),
            _ => None,
        })
    }

    /// The pending position of a flag; `now` if none is pending.
    pub fn flag(&self, flag: &FlagName, now: bool) -> bool {
        let asked = self.changes.iter().rev().find_map(|turn| match turn {
            PendingChange::Flag(name, on) if name == flag => Some(*on),
            _ => None,
        });
        asked.unwrap_or(now)
    }

    /// The pending limit on parallel tasks; `now` if none is pending.
    pub fn parallel(&self, now: u32) -> u32 {
        let asked = self.changes.iter().rev().find_map(|turn| match turn {
            PendingChange::Parallel(most) => Some(*most),
            _ => None,
        });
        asked.unwrap_or(now)
    }

    /// The pending value of this limit of a tool; `now` if none is pending.
    pub fn limit(&self, tool: &ToolName, now: LimitChange) -> LimitChange {
        let wanted = PendingChange::Limit(tool.clone(), now);
        let asked = self.changes.iter().rev().find(|turn| turn.is_about(&wanted));
        match asked {
            Some(PendingChange::Limit(_, change)) => *change,
            _ => now,
        }
    }

    /// The pending fault of this kind; `now` if none is pending.
    pub fn fault(
        &self,
        tool: &ToolName,
        kind: FaultKind,
        now: Option<InjectedFault>,
    ) -> Option<InjectedFault> {
        let wanted = PendingChange::Fault(tool.clone(), kind, now);
        let asked = self.changes.iter().rev().find(|turn| turn.is_about(&wanted));
        match asked {
            Some(PendingChange::Fault(.., fault)) => *fault,
            _ => now,
        }
    }
}
