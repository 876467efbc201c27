//! The facts of teams and swarms (teams source document): handoffs and why they are refused,
//! changes of members, the texts of a session, and the setup of agents in the head of a log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Fact, FactAbout, Plan, facts};
use crate::base::name::{AgentName, PersonName, ToolName};
use crate::log::event::Command;
use crate::log::event::command::Initiator;
use crate::log::event::id::SpanId;
use crate::scenario::patterns::agents::MemberTools;
use crate::scenario::spec::handoff_template::HandoffTemplate;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::ToolCall;

facts! {
    /// A fact of agents that work together.
    pub enum AgentFact in Agents {
        /// The best text that a swarm had when it was stopped; belongs to the swarm's span.
        "answer.partial" AnswerPartial {
            /// The text.
            text: Arc<str>,
            /// The agent that gave it.
            by: AgentName,
        },
        /// A team answered with its members' replies (`skip_summarization`) although other calls of
        /// the same reply had failed; belongs to the team's span.
        "answer.incomplete" AnswerIncomplete {
            /// The failed calls, in order.
            missing: Arc<[MissingResult]>,
        },
        /// A member of a swarm hands over; belongs to the swarm's span.
        "handoff.made" HandoffMade {
            /// The swarm.
            swarm: AgentName,
            /// The member that hands over.
            from: AgentName,
            /// The member that takes over.
            to: AgentName,
            /// The message for the member that takes over.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            message: Option<Arc<str>>,
            /// The swarm's counts after this handoff.
            guard: LoopGuard,
            /// The model call that requested it.
            requested_by: SpanId,
        },
        /// A handoff was refused by the limits of the swarm; belongs to the swarm's span.
        "handoff.refused" HandoffRefused {
            /// The swarm.
            swarm: AgentName,
            /// The member that wanted to hand over.
            from: AgentName,
            /// The member that would have taken over.
            to: AgentName,
            /// The reason.
            reason: HandoffRefusal,
            /// The swarm's counts after this request.
            guard: LoopGuard,
            /// Refusals so far, this one included.
            rejections: u32,
            /// The model call that requested it.
            requested_by: SpanId,
        },
        /// A tool call of a model was not carried out, and the model gets the reason as its result;
        /// belongs to the span of the model call.
        "tool_call.refused" ToolCallRefused {
            /// The agent whose model made the call.
            agent: AgentName,
            /// Index of the tool call within the reply, from 0.
            index: u16,
            /// Name of the tool, as the model gave it.
            tool: String,
            /// The reason.
            reason: CallFault,
            /// The text that the model gets as the result.
            text: String,
        },
        /// The whole reply of an agent that has tools is a tool call written as text, so nothing was
        /// called; belongs to the span of the model call.
        "tool_call.written" ToolCallWritten {
            /// The agent that wrote the call.
            agent: AgentName,
            /// The beginning of the reply; control characters made visible, length limited. Its
            /// attempt has the whole reply.
            preview: String,
            /// Whether the model receives a message about it and is called again. Otherwise the text
            /// is the agent's answer.
            told: bool,
        },
        /// Members joined or left a running swarm.
        "roster.changed" RosterChanged {
            /// The swarm.
            swarm: AgentName,
            /// Its members now.
            members: Arc<[AgentName]>,
            /// The change.
            #[serde(flatten)]
            change: RosterChange,
            /// Who changed it.
            by: Initiator,
        },
    }
}

impl Fact for AgentFact {
    fn name(&self) -> &'static str {
        self.name()
    }

    fn about(&self) -> FactAbout<'_> {
        match self {
            Self::HandoffMade { from: agent, .. } | Self::AnswerPartial { by: agent, .. } => {
                FactAbout { agent: Some(agent.as_str()), ..FactAbout::default() }
            }
            Self::HandoffRefused { from, reason, .. } => FactAbout {
                agent: Some(from.as_str()),
                reason: Some(reason.to_string()),
                ..FactAbout::default()
            },
            Self::RosterChanged { change, .. } => {
                FactAbout { agent: change.agent().map(AgentName::as_str), ..FactAbout::default() }
            }
            Self::ToolCallRefused { .. }
            | Self::ToolCallWritten { .. }
            | Self::AnswerIncomplete { .. } => FactAbout::default(),
        }
    }

    fn message(&self) -> Option<&str> {
        match self {
            Self::HandoffMade { message, .. } => message.as_deref(),
            _ => None,
        }
    }

    fn confirms(&self) -> Option<Command> {
        match self {
            Self::RosterChanged { swarm, change, by, .. } => {
                let (swarm, change) = (swarm.clone(), change.clone());
                Some(Command::Roster(RosterCommand { swarm, change, by: *by }))
            }
            _ => None,
        }
    }

    fn shows_reply(&self) -> bool {
        matches!(
            self,
            Self::HandoffMade { .. }
                | Self::HandoffRefused { .. }
                | Self::ToolCallRefused { .. }
                | Self::ToolCallWritten { .. }
        )
    }
}

/// How much of a member's own output is shown while it works (`stream_inner`, `inner_text`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MissingResult {
    /// The member or tool that was called.
    pub name: String,
    /// The error that its caller got, such as `error: llm_error:auth: …`; limited in length.
    pub text: String,
}

/// One entry of a team's own history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
        /// How the reply ended; absent: it is whole.
        #[serde(default, skip_serializing_if = "ReplyEnd::is_whole")]
        end: ReplyEnd,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionHead {
    /// Number of the message that this run answers, from 1.
    pub message: u32,
    /// The message.
    pub text: Arc<str>,
    /// The run that answered the previous message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_run: Option<crate::log::event::id::RunId>,
    /// The run that answered the first message; none: this one, or the log is of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_run: Option<crate::log::event::id::RunId>,
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

/// The command to change the members of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RosterCommand {
    /// Name of the swarm.
    pub swarm: AgentName,
    /// Who joins or leaves.
    pub change: RosterChange,
    /// Who sent the command.
    pub by: Initiator,
}

impl RosterCommand {
    /// What the sender of the command does, in words.
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
    pub swarm: AgentName,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

impl RosterChange {
    /// The agent that joins or leaves.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Add { agent } | Self::Remove { agent } => Some(agent),
            Self::Replace { .. } => None,
        }
    }
}

/// The agents of a run, and which of them the user talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentsPlan {
    /// The agent that the user talks to; `None`: the pattern calls the agents itself.
    pub root: Option<AgentName>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentHead {
    /// Name of the agent.
    pub name: AgentName,
    /// What it does.
    pub description: String,
    /// `agent`, `team`, `swarm` or `person`.
    pub kind: String,
    /// The person who is this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonName>,
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

impl AgentHead {
    /// An agent of which only the name is known.
    pub(crate) fn unknown(name: AgentName) -> Self {
        Self {
            name,
            description: String::new(),
            kind: "agent".to_owned(),
            person: None,
            members: Vec::new(),
            instruction: Arc::default(),
            tools: Vec::new(),
            max_tool_rounds: None,
            parallel_tools: false,
            member_tools: None,
            swarm: None,
        }
    }
}

/// How a swarm hands over, and its limits; 0 means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// Setup of a team or swarm: its agents, and the message that the run answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TeamPlan {
    /// The agent that the user talks to.
    pub root: AgentName,
    /// Every agent: the root first, each before its members; agents in no `members` list last.
    pub agents: Arc<[AgentHead]>,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
    /// The place of the run in its session.
    pub session: SessionHead,
}

impl TeamPlan {
    /// Its agents, with the root.
    pub(crate) fn agents_plan(&self) -> AgentsPlan {
        AgentsPlan { root: Some(self.root.clone()), agents: Arc::clone(&self.agents) }
    }
}

impl Plan for TeamPlan {
    fn max_ms(&self) -> u64 {
        self.max_ms
    }

    fn session(&self) -> Option<&SessionHead> {
        Some(&self.session)
    }
}
