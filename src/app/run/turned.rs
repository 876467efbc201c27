//! What was asked of a run's limits and faults and has not come back as a fact yet. What the screen
//! shows as a position is always a fact; the next step of the same key goes on from what was asked.

use crate::event::kind::{LimitChange, RosterChange};
use crate::event::{Command, EventKind};
use crate::scenario::name::{AgentName, ToolName};
use crate::scenario::tool::{Fault, FaultKind};

/// What is turned.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Turn {
    Parallel(u32),
    Limit(ToolName, LimitChange),
    Fault(ToolName, FaultKind, Option<Fault>),
    /// Of a swarm who is to join, or to leave.
    Member(AgentName, AgentName, bool),
}

impl Turn {
    fn asked(command: &Command) -> Option<Self> {
        Some(match command {
            Command::SetParallel { max_parallel, .. } => Self::Parallel(*max_parallel),
            Command::SetLimit { tool, change, .. } => Self::Limit(tool.clone(), *change),
            Command::Inject { tool, fault, .. } => {
                Self::Fault(tool.clone(), fault.kind(), Some(*fault))
            }
            Command::Heal { tool, kind, .. } => Self::Fault(tool.clone(), *kind, None),
            Command::Roster { swarm, change, .. } => Self::member(swarm, change)?,
            _ => return None,
        })
    }

    fn member(swarm: &AgentName, change: &RosterChange) -> Option<Self> {
        let (agent, joins) = match change {
            RosterChange::Add { agent } => (agent, true),
            RosterChange::Remove { agent } => (agent, false),
            RosterChange::Replace { .. } => return None,
        };
        Some(Self::Member(swarm.clone(), agent.clone(), joins))
    }

    fn done(kind: &EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::ParallelChanged { max_parallel, .. } => Self::Parallel(*max_parallel),
            EventKind::LimitsChanged { tool, change, .. } => Self::Limit(tool.clone(), *change),
            EventKind::FaultInjected { tool, fault, .. } => {
                Self::Fault(tool.clone(), fault.kind(), Some(*fault))
            }
            EventKind::FaultHealed { tool, fault, .. } => Self::Fault(tool.clone(), *fault, None),
            EventKind::RosterChanged { swarm, change, .. } => Self::member(swarm, change)?,
            _ => return None,
        })
    }

    /// Whether both turn the same thing, wherever to.
    fn is_about(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Parallel(_), Self::Parallel(_)) => true,
            (Self::Limit(tool, one), Self::Limit(same, other)) => {
                tool == same && std::mem::discriminant(one) == std::mem::discriminant(other)
            }
            (Self::Fault(tool, kind, _), Self::Fault(same, other, _)) => {
                tool == same && kind == other
            }
            (Self::Member(swarm, agent, _), Self::Member(same, other, _)) => {
                swarm == same && agent == other
            }
            _ => false,
        }
    }
}

/// What was asked and is waited for, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turned {
    waiting: Vec<Turn>,
}

impl Turned {
    /// This was asked of the run.
    pub fn ask(&mut self, command: &Command) {
        self.waiting.extend(Turn::asked(command));
    }

    /// A fact of the run has come: what it answers is not waited for any more.
    pub fn landed(&mut self, kind: &EventKind) {
        if matches!(kind, EventKind::RunClosed(_)) {
            self.waiting.clear();
        }
        let Some(done) = Turn::done(kind) else { return };
        if let Some(at) = self.waiting.iter().position(|asked| asked.is_about(&done)) {
            self.waiting.remove(at);
        }
    }

    /// Whether this agent was asked to join a swarm, or to leave it, and has not yet.
    pub fn member(&self, swarm: &AgentName, agent: &AgentName) -> Option<bool> {
        self.waiting.iter().rev().find_map(|turn| match turn {
            Turn::Member(of, who, joins) if of == swarm && who == agent => Some(*joins),
            _ => None,
        })
    }

    /// How many tasks at once were asked for last; `now` where nothing is waited for.
    pub fn parallel(&self, now: u32) -> u32 {
        let asked = self.waiting.iter().rev().find_map(|turn| match turn {
            Turn::Parallel(most) => Some(*most),
            _ => None,
        });
        asked.unwrap_or(now)
    }

    /// What was asked last of this limit of a tool; `now` where nothing is waited for.
    pub fn limit(&self, tool: &ToolName, now: LimitChange) -> LimitChange {
        let wanted = Turn::Limit(tool.clone(), now);
        let asked = self.waiting.iter().rev().find(|turn| turn.is_about(&wanted));
        match asked {
            Some(Turn::Limit(_, change)) => *change,
            _ => now,
        }
    }

    /// The fault of this kind that was asked for last; `now` where nothing is waited for.
    pub fn fault(&self, tool: &ToolName, kind: FaultKind, now: Option<Fault>) -> Option<Fault> {
        let wanted = Turn::Fault(tool.clone(), kind, now);
        let asked = self.waiting.iter().rev().find(|turn| turn.is_about(&wanted));
        match asked {
            Some(Turn::Fault(.., fault)) => *fault,
            _ => now,
        }
    }
}
