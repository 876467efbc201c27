//! The parts of events about teams and swarms (teams source document): handoffs and why they are
//! refused, the history of a session, the members of a swarm.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::name::AgentName;
use crate::event::call::ToolCall;

/// How much of a member's own output is shown while it works (`stream_inner`, `inner_text`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberOutput {
    /// Only its final reply.
    #[default]
    Hidden,
    /// Progress and tool calls, but no text.
    Progress,
    /// Everything.
    Text,
}

/// The counts of a swarm's loop guard after a handoff was requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopGuard {
    /// Handoffs requested so far; refused ones count.
    pub handoffs: u32,
    /// Number of targets in the window of the latest handoffs.
    pub window: u32,
    /// Number of different agents among them.
    pub distinct_agents: u32,
}

/// Why a swarm's limits refuse a handoff. The member gets this text as the result of its call,
/// followed by what it can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffRefusal {
    /// The limit of handoffs was exceeded.
    MaxHandoffs(u32),
    /// Too few different targets in the window.
    Repetitive,
}

impl fmt::Display for HandoffRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxHandoffs(most) => write!(f, "max handoffs exceeded: {most}"),
            Self::Repetitive => f.write_str("repetitive handoff detected"),
        }
    }
}

/// Why a tool call of a model is not carried out. The model gets the reason, and what it can call
/// instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFault {
    /// There is no tool with this name.
    UnknownTool,
    /// The arguments are not a JSON object, or do not fit the tool.
    BadArguments,
    /// There is no such agent to hand over to.
    UnknownAgent,
    /// The agent tried to hand over to itself.
    HandoffToSelf,
    /// An earlier call of the same reply has handed over already.
    SecondHandoff,
}

/// A failed call whose result is missing in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingResult {
    /// The member or tool that was called.
    pub name: String,
    /// The error that its caller got, such as `error: llm_error:auth: …`; limited in length.
    pub text: String,
}

/// A change of a swarm's members while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "roster", rename_all = "snake_case")]
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

/// One entry of a team's own history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum HistoryEntry {
    /// The input of an agent: the user's message, or that of a handoff.
    Input {
        /// The agent.
        to: AgentName,
        /// The agent that handed over; `None`: the user, or the caller of the team.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<AgentName>,
        /// The text.
        text: Arc<str>,
    },
    /// The reply of an agent.
    Reply {
        /// The agent.
        by: AgentName,
        /// Text of the reply.
        text: Arc<str>,
        /// The tool calls of the reply.
        #[serde(default, skip_serializing_if = "no_calls")]
        calls: Arc<[ToolCall]>,
        /// The provider's own parts of the reply, if there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocks: Option<Arc<Value>>,
    },
    /// The result of a tool call.
    Result {
        /// The agent that made the call.
        by: AgentName,
        /// The call.
        call: ToolCall,
        /// Text of the result, as the model got it.
        text: Arc<str>,
    },
}

fn no_calls(calls: &Arc<[ToolCall]>) -> bool {
    calls.is_empty()
}

/// The place of a run in its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHead {
    /// Number of the message that this run answers, from 1.
    pub message: u32,
    /// The message.
    pub text: Arc<str>,
    /// The run that answered the previous message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_run: Option<crate::event::id::RunId>,
    /// The team's history of the previous messages.
    #[serde(default, skip_serializing_if = "is_empty_history")]
    pub history: Arc<[HistoryEntry]>,
    /// The agent that owned the last reply; if the swarm says so, the run starts there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentName>,
    /// The agent that starts.
    pub first_agent: AgentName,
}

fn is_empty_history(history: &Arc<[HistoryEntry]>) -> bool {
    history.is_empty()
}
