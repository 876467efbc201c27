//! The setup of agents, as the head of a log has it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::spec::{HandoffPiece, HandoffTemplate, MemberTools};
use crate::base::name::{AgentName, ToolName};
use crate::event::redact::TextRedactor;
use crate::event::weight::texts;

/// The agents of a run, and which of them the user talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentsPlan {
    /// The agent that the user talks to; `None`: the pattern calls the agents itself.
    pub root: Option<AgentName>,
    /// Every agent.
    pub agents: Arc<[AgentHead]>,
}

impl AgentsPlan {
    /// The agent with this name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentHead> {
        self.agents.iter().find(|agent| agent.name == *name)
    }

    /// The swarm with this name.
    pub fn swarm(&self, name: &AgentName) -> Option<&SwarmHead> {
        self.agent(name)?.swarm.as_ref()
    }

    /// The swarm that the user talks to.
    pub fn outer_swarm(&self) -> Option<&SwarmHead> {
        self.swarm(self.root.as_ref()?)
    }

    /// The coordinator that the user talks to.
    pub fn coordinator(&self) -> Option<&AgentName> {
        self.root.as_ref().filter(|root| self.swarm(root).is_none())
    }

    /// Whether this is the agent that the user talks to.
    pub fn is_root(&self, name: &AgentName) -> bool {
        self.root.as_ref() == Some(name)
    }
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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

/// Replaces the texts of agents, and declares their names.
pub(crate) fn redact_agents(agents: &mut Arc<[AgentHead]>, by: &mut TextRedactor) {
    for agent in Arc::make_mut(agents) {
        let AgentHead {
            name,
            description,
            kind: _,
            members: _,
            instruction,
            tools,
            max_tool_rounds: _,
            parallel_tools: _,
            member_tools: _,
            swarm,
        } = agent;
        by.declare(name.as_str());
        tools.iter().for_each(|tool| by.declare(tool.as_str()));
        by.text(description);
        by.text(instruction);
        if let Some(swarm) = swarm {
            swarm.redact(by);
        }
    }
}

impl SwarmHead {
    fn redact(&mut self, by: &TextRedactor) {
        let Self {
            entry: _,
            max_handoffs: _,
            repetitive_handoff_window: _,
            repetitive_handoff_min_unique: _,
            max_rejections: _,
            node_timeout_ms: _,
            cross_request_transfer: _,
            independent_history: _,
            handoff_input,
        } = self;
        if let Some(template) = handoff_input {
            for piece in template.pieces_mut() {
                match piece {
                    HandoffPiece::Literal(text) => by.text(text),
                    HandoffPiece::RootInput
                    | HandoffPiece::ParentInput
                    | HandoffPiece::From
                    | HandoffPiece::To
                    | HandoffPiece::Message => {}
                }
            }
        }
    }
}

/// The weight of agents in memory, in bytes.
pub(crate) fn agents_weight(agents: &[AgentHead]) -> usize {
    agents.iter().map(agent).sum()
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
