//! The nouns of teams and swarms that stand in facts (source `002`): hand-offs and why they are
//! refused, what a session remembers, who is in a swarm.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::ToolCall;
use crate::scenario::name::AgentName;

/// What is shown of a member's own output while it works (`stream_inner`, `inner_text`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inner {
    /// Nothing: only its final reply.
    #[default]
    Hidden,
    /// Progress and tool calls, no prose.
    Progress,
    /// All of it.
    Text,
}

/// How a swarm's limits stand after a hand-off was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopGuard {
    /// Hand-offs asked for so far; refused ones count.
    pub handoffs: u32,
    /// Targets in the window of the last ones.
    pub window: u32,
    /// Different names among them.
    pub distinct: u32,
}

/// Why a hand-off is refused by a swarm's limits. The member is told its text, and then what it can
/// do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffRefusal {
    /// More than so many.
    MaxHandoffs(u32),
    /// Too few different targets among the last ones.
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

/// Why a tool call of a model is not carried out; it is told so, with what it can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFault {
    /// There is no tool of this name.
    UnknownTool,
    /// The arguments are no JSON object, or not those that the tool takes.
    BadArguments,
    /// Nobody of this name can be handed over to.
    UnknownAgent,
    /// It handed over to itself.
    ToItself,
    /// An earlier call of the same reply handed over already.
    SecondHandoff,
}

/// A call that failed and whose result an answer is without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What was called: a member or a tool.
    pub of: String,
    /// What its caller was told, such as `error: llm_error:auth: …`; bounded.
    pub text: String,
}

/// How a swarm's members change while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "roster", rename_all = "snake_case")]
pub enum RosterChange {
    /// One joins.
    Add {
        /// Who.
        agent: AgentName,
    },
    /// One leaves.
    Remove {
        /// Who.
        agent: AgentName,
    },
    /// All others leave, and these join.
    Replace {
        /// Who is a member from now on.
        members: Vec<AgentName>,
    },
}

/// One thing that was said in a team's own branch of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// What an agent was given: a person's message, or that of a hand-off.
    Input {
        /// Whose turn begins.
        to: AgentName,
        /// Who handed over; `None`: the person, or whoever asked the team.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<AgentName>,
        /// What it is given.
        text: Arc<str>,
    },
    /// What an agent said.
    Said {
        /// Who.
        by: AgentName,
        /// Its text.
        text: Arc<str>,
        /// The tools that it called.
        #[serde(default, skip_serializing_if = "no_calls")]
        calls: Arc<[ToolCall]>,
        /// The reply's blocks, where there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocks: Option<Arc<Value>>,
    },
    /// What a call came to.
    Result {
        /// Who had called.
        by: AgentName,
        /// What.
        call: ToolCall,
        /// What it was told.
        text: Arc<str>,
    },
}

fn no_calls(calls: &Arc<[ToolCall]>) -> bool {
    calls.is_empty()
}

/// Where a run stands in its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHead {
    /// Which of the session's messages this run answers, from 1.
    pub message: u32,
    /// The message.
    pub text: Arc<str>,
    /// The run that answered the message before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<super::id::RunId>,
    /// What the team remembers of the messages before.
    #[serde(default, skip_serializing_if = "nothing")]
    pub history: Arc<[Entry]>,
    /// Who owned the last reply; the run starts there where the swarm says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentName>,
    /// Who starts.
    pub starts: AgentName,
}

fn nothing(history: &Arc<[Entry]>) -> bool {
    history.is_empty()
}
