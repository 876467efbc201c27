//! Changes of the members of a swarm while it runs.

use serde::{Deserialize, Serialize};

use crate::base::name::AgentName;
use crate::event::initiator::Initiator;

/// The command to change the members of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct RosterCommand {
    /// Name of the swarm.
    pub swarm: AgentName,
    /// Who joins or leaves.
    pub change: RosterChange,
    /// Who sent the command.
    pub by: Initiator,
}

impl RosterCommand {
    /// What somebody does who sends it.
    pub fn in_words(&self) -> String {
        let swarm = &self.swarm;
        match &self.change {
            RosterChange::Add { agent } => format!("adds {agent} to {swarm}"),
            RosterChange::Remove { agent } => format!("removes {agent} from {swarm}"),
            RosterChange::Replace { .. } => format!("replaces the members of {swarm}"),
        }
    }

    /// The member that joins or leaves; `None` if all members are replaced.
    pub fn member_change(&self) -> Option<MemberChange> {
        let (agent, joins) = match &self.change {
            RosterChange::Add { agent } => (agent, true),
            RosterChange::Remove { agent } => (agent, false),
            RosterChange::Replace { .. } => return None,
        };
        Some(MemberChange { swarm: self.swarm.clone(), agent: agent.clone(), joins })
    }
}

/// A member that joins or leaves a swarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// The swarm.
    pub swarm: AgentName,
    /// The member.
    pub agent: AgentName,
    /// Whether it joins (`true`) or leaves.
    pub joins: bool,
}

impl MemberChange {
    /// Whether both are about the same member of the same swarm.
    pub fn is_about_same_member(&self, other: &Self) -> bool {
        self.swarm == other.swarm && self.agent == other.agent
    }
}

/// A change of a swarm's members while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "roster", rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub enum RosterChange {
    /// A member joins.
    Add {
        /// The agent.
        agent: AgentName,
    },
    /// A member leaves.
    Remove {
        /// The agent.
        agent: AgentName,
    },
    /// These agents replace all members.
    Replace {
        /// The new members.
        members: Vec<AgentName>,
    },
}

impl RosterChange {
    /// The agent that joins or leaves.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Add { agent } | Self::Remove { agent } => Some(agent),
            Self::Replace { .. } => None,
        }
    }
}
