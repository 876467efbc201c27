//! The setup of agents, as the head of a log has it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::facts::{HistoryEntry, SessionHead};
use super::spec::{HandoffPiece, HandoffTemplate, MemberTools};
use crate::base::name::{AgentName, ToolName};
use crate::event::plan::Plan;
use crate::event::weight::{calls, json_weight, texts};

/// Setup of a team or swarm: its agents, and the message that the run answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamPlan {
    /// The agent that the user talks to.
    pub root: AgentName,
    /// Every agent: the root first, each before its members; agents in no `members` list last.
    pub agents: Vec<AgentHead>,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
    /// The place of the run in its session.
    pub session: SessionHead,
}

impl TeamPlan {
    /// The agent with this name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentHead> {
        self.agents.iter().find(|agent| agent.name == *name)
    }

    /// The swarm with this name.
    pub fn swarm(&self, name: &AgentName) -> Option<&SwarmHead> {
        self.agent(name)?.swarm.as_ref()
    }
}

/// An agent of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHead {
    /// Name of the agent.
    pub name: AgentName,
    /// What it does.
    pub description: String,
    /// `agent`, `team` or `swarm`.
    pub kind: String,
    /// Its members at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<AgentName>,
    /// Its system prompt; may be empty.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub instruction: Arc<str>,
    /// The tools it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolName>,
    /// Max replies with tool calls before its loop is stopped; `None`: it calls no model, or the
    /// log does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_rounds: Option<u32>,
    /// Whether a coordinator's tool calls of one reply run concurrently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel_tools: bool,
    /// What a coordinator's members are given, and how much of their output is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_tools: Option<MemberTools>,
    /// The setup that only a swarm has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swarm: Option<SwarmHead>,
}

/// How a swarm hands over, and its limits; 0 means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwarmHead {
    /// The member that starts.
    pub entry: AgentName,
    /// Max handoffs.
    pub max_handoffs: u32,
    /// Length of the loop guard's window: the number of latest handoff targets to check.
    pub repetitive_handoff_window: u32,
    /// Number of different agents required in that window.
    pub repetitive_handoff_min_unique: u32,
    /// Number of refused handoffs after which the run stops.
    pub max_rejections: u32,
    /// Timeout in milliseconds of a member that was handed over to.
    pub node_timeout_ms: u64,
    /// Whether the next message of a session starts at the agent that owned the last reply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cross_request_transfer: bool,
    /// Whether members other than the entry see only their own turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub independent_history: bool,
    /// Template for the input of the next agent; `None`: the handoff message, or else the default
    /// of the teams source document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_input: Option<HandoffTemplate>,
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

impl Plan for TeamPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }

    fn weight(&self) -> usize {
        size_of::<Self>()
            + self.agents.iter().map(agent).sum::<usize>()
            + self.session.text.len()
            + self.session.history.iter().map(entry).sum::<usize>()
    }
}

fn agent(head: &AgentHead) -> usize {
    let template = head.swarm.as_ref().and_then(|swarm| swarm.handoff_input.as_ref());
    let pieces = template.iter().flat_map(|template| template.pieces());
    let pieces = pieces.map(|piece| match piece {
        HandoffPiece::Literal(text) => size_of_val(piece) + text.len(),
        _ => size_of_val(piece),
    });
    size_of_val(head)
        + pieces.sum::<usize>()
        + head.name.as_str().len()
        + head.description.len()
        + head.instruction.len()
        + texts(head.members.iter().map(|it| it.as_str()))
        + texts(head.tools.iter().map(|it| it.as_str()))
}

fn entry(entry: &HistoryEntry) -> usize {
    let held = match entry {
        HistoryEntry::Input { text, .. } => text.len(),
        HistoryEntry::Reply { text, calls: made, blocks, .. } => {
            text.len() + calls(made) + blocks.as_deref().map_or(0, json_weight)
        }
        HistoryEntry::Result { call, text, .. } => text.len() + calls(std::slice::from_ref(call)),
    };
    size_of_val(entry) + held
}
