//! The facts of teams and swarms (teams source document): handoffs and why they are refused, the
//! history of a session, the members of a swarm.

mod redact;
pub mod roster;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::roster::{RosterChange, RosterCommand};
use crate::base::name::AgentName;
use crate::event::Command;
use crate::event::call::{ReplyEnd, ToolCall};
use crate::event::fact::{Fact, FactAbout};
use crate::event::fact_enum::facts;
use crate::event::id::SpanId;
use crate::event::initiator::Initiator;
use crate::event::redact::TextRedactor;
use crate::event::weight::texts;

facts! {
    /// A fact of agents that work together.
    pub enum AgentFact in Agents read as AgentFactFields of "AgentFact" {
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

    fn weight(&self) -> usize {
        match self {
            Self::AnswerPartial { text, .. } => text.len(),
            Self::HandoffRefused { .. } => 0,
            Self::AnswerIncomplete { missing } => {
                missing.iter().map(|it| size_of_val(it) + it.name.len() + it.text.len()).sum()
            }
            Self::HandoffMade { message, .. } => message.as_ref().map_or(0, |text| text.len()),
            Self::ToolCallRefused { tool, text, .. } => tool.len() + text.len(),
            Self::ToolCallWritten { preview, .. } => preview.len(),
            Self::RosterChanged { members, .. } => texts(members.iter().map(|it| it.as_str())),
        }
    }

    fn redact(&mut self, by: &mut TextRedactor) {
        match self {
            Self::AnswerPartial { text, by: _ } => by.text(text),
            Self::AnswerIncomplete { missing } => {
                for MissingResult { name, text } in Arc::make_mut(missing) {
                    by.name(name);
                    by.text(text);
                }
            }
            Self::HandoffMade { swarm: _, from: _, to: _, message, guard: _, requested_by: _ } => {
                by.some(message);
            }
            Self::HandoffRefused {
                swarm: _,
                from: _,
                to: _,
                reason: _,
                guard: _,
                rejections: _,
                requested_by: _,
            }
            | Self::RosterChanged { swarm: _, members: _, change: _, by: _ } => {}
            Self::ToolCallRefused { agent: _, index: _, tool, reason: _, text } => {
                by.name(tool);
                by.text(text);
            }
            Self::ToolCallWritten { agent: _, preview, told: _ } => by.text(preview),
        }
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct MissingResult {
    /// The member or tool that was called.
    pub name: String,
    /// The error that its caller got, such as `error: llm_error:auth: …`; limited in length.
    pub text: String,
}

/// One entry of a team's own history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
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
