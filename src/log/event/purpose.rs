//! What a call is for, and what follows from it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::id::{SourceNo, SpanId};
use crate::base::name::{AgentName, RoleName, TaskId, ToolName};
use crate::log::facts::agents::MemberOutput;
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::script::ScriptStep;

/// What a call is for, and who makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "purpose", rename_all = "snake_case")]
pub enum Purpose {
    /// A model gives a seat's contribution.
    Contribution {
        /// Number of the round, from 1.
        round: u32,
        /// Index of the seat in the sequence, from 0.
        seat: u16,
        /// The role of the seat.
        role: RoleName,
    },
    /// The model makes the orchestrator's plan of tasks, or the steps of research.
    Plan,
    /// A worker does a task.
    Task {
        /// Id of the task.
        task: TaskId,
        /// Index of the task in the plan, from 0.
        index: u32,
    },
    /// An agent of a resilience run calls a tool.
    AgentStep {
        /// Number of the agent, from 1.
        agent: u32,
        /// Number of its turn, from 1.
        turn: u32,
        /// Index of the step within the turn, from 0.
        step: u16,
        /// How often the agent made the same call before and got no result.
        repeat: u32,
    },
    /// An agent of a team calls its model.
    ModelCall {
        /// The agent.
        agent: AgentName,
        /// How often the team has started this agent, this time included.
        turn: u32,
        /// Number of the model call within this turn of the agent, from 1.
        round: u32,
    },
    /// A coordinator consults a member, through the gateway like any tool.
    Member {
        /// The member.
        agent: AgentName,
        /// How often the team has started this member, this time included.
        turn: u32,
        /// The coordinator.
        by: AgentName,
        /// The model call that requested it.
        requested_by: SpanId,
        /// Index of the tool call within that reply, from 0.
        index: u16,
        /// How much of the member's own output is shown while it works.
        member_output: MemberOutput,
    },
    /// A member of a swarm is in control, until it hands over or answers.
    SwarmTurn {
        /// The member.
        agent: AgentName,
        /// How often it has been in control, this time included.
        turn: u32,
        /// The swarm.
        swarm: AgentName,
        /// Number of the swarm's hop, from 1.
        hop: u32,
        /// The agent that handed over; `None`: the swarm began with this member.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<AgentName>,
    },
    /// An agent calls a tool.
    Tool {
        /// The agent.
        agent: AgentName,
        /// Name of the tool.
        tool: ToolName,
        /// The model call that requested it.
        requested_by: SpanId,
        /// Index of the tool call within that reply, from 0.
        index: u16,
    },
    /// A server lists its tools.
    ListTools,
    /// A tool searches for sources.
    Search,
    /// A tool reads a source's page.
    Read {
        /// Number of the source.
        source: SourceNo,
    },
    /// The model takes notes from a page.
    Notes {
        /// Number of the source.
        source: SourceNo,
    },
    /// The model writes the answer from the notes.
    Synthesize,
    /// The model says which route a request is for.
    Classify,
    /// The model writes the answer or the report at the end.
    Finalize,
    /// A watched program calls a model. Its attempts are not known, so the call has none: its reply (`attempt.answered`)
    /// closes it.
    Watched,
    /// A guarded program calls a model. Its requests are the attempts.
    Guarded,
    /// A guarded program executes a tool of its own, and has asked before.
    ProgramTool {
        /// The agent, if the program names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
    },
}

/// What a call asks for its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// A model, whose tokens count.
    Model,
    Tool,
    /// An agent, which makes calls of its own.
    Agent,
}

impl Purpose {
    /// What the call asks: a model, a tool or another agent.
    pub fn asks(&self) -> Asks {
        match self {
            Self::Contribution { .. }
            | Self::Plan
            | Self::ModelCall { .. }
            | Self::Notes { .. }
            | Self::Synthesize
            | Self::Classify
            | Self::Finalize
            | Self::Watched
            | Self::Guarded => Asks::Model,
            Self::Task { .. }
            | Self::AgentStep { .. }
            | Self::Tool { .. }
            | Self::ProgramTool { .. }
            | Self::ListTools
            | Self::Search
            | Self::Read { .. } => Asks::Tool,
            Self::Member { .. } | Self::SwarmTurn { .. } => Asks::Agent,
        }
    }

    /// The agent of the call: the one that speaks, is consulted, is in control or calls a tool.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::ModelCall { agent, .. }
            | Self::Member { agent, .. }
            | Self::SwarmTurn { agent, .. }
            | Self::Tool { agent, .. } => Some(agent),
            Self::ProgramTool { agent } => agent.as_ref(),
            Self::Contribution { .. }
            | Self::Plan
            | Self::Task { .. }
            | Self::AgentStep { .. }
            | Self::ListTools
            | Self::Search
            | Self::Read { .. }
            | Self::Notes { .. }
            | Self::Synthesize
            | Self::Classify
            | Self::Finalize
            | Self::Watched
            | Self::Guarded => None,
        }
    }

    /// The agent that is called: a member that is consulted, or that is in control. `None` for calls
    /// of models and of other tools.
    pub(crate) fn called_agent(&self) -> Option<&AgentName> {
        match self {
            Self::Member { agent, .. } | Self::SwarmTurn { agent, .. } => Some(agent),
            _ => None,
        }
    }

    /// The step of the pattern that the call does; `None` for calls of roles, agents and tools.
    pub(crate) fn step(&self) -> Option<ScriptStep> {
        Some(match self {
            Self::Plan => ScriptStep::Plan,
            Self::Notes { .. } => ScriptStep::Notes,
            Self::Synthesize => ScriptStep::Synthesize,
            Self::Classify => ScriptStep::Classify,
            Self::Finalize => ScriptStep::Finalize,
            _ => return None,
        })
    }

    /// The name that rows of a script use for this call: the role or agent, or the step (`plan`,
    /// `notes`, `synthesize`, `classify`, `finalize`). `None` for calls of tools.
    pub fn script_step(&self) -> Option<&str> {
        match self {
            Self::Contribution { role, .. } => Some(role.as_str()),
            Self::ModelCall { agent, .. } => Some(agent.as_str()),
            _ => self.step().map(ScriptStep::word),
        }
    }

    /// The caller whose model is called; `None` if the call is not to a model.
    pub fn caller(&self) -> Option<ModelCaller> {
        match self {
            Self::Contribution { role, .. } => Some(ModelCaller::Role(role.clone())),
            Self::ModelCall { agent, .. } => Some(ModelCaller::Agent(agent.clone())),
            _ => self.step().map(ModelCaller::Step),
        }
    }

    /// Whether this caller's model is called.
    pub(crate) fn is_called_by(&self, caller: &ModelCaller) -> bool {
        match (caller, self) {
            (ModelCaller::Role(own), Self::Contribution { role, .. }) => own == role,
            (ModelCaller::Agent(own), Self::ModelCall { agent, .. }) => own == agent,
            (ModelCaller::Step(own), _) => self.step() == Some(*own),
            _ => false,
        }
    }

    /// Whether it repeats a call that got no result: such a call counts as an attempt, not as a new
    /// call.
    pub(crate) fn is_repeat(&self) -> bool {
        matches!(self, Self::AgentStep { repeat: 1.., .. })
    }

    /// The role of a seat that is asked.
    pub fn role(&self) -> Option<&RoleName> {
        match self {
            Self::Contribution { role, .. } => Some(role),
            _ => None,
        }
    }

    /// The number of the round in which a seat is asked.
    pub fn round(&self) -> Option<u32> {
        match self {
            Self::Contribution { round, .. } => Some(*round),
            _ => None,
        }
    }

    /// The task that a worker does.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Task { task, .. } => Some(task),
            _ => None,
        }
    }

    /// Who speaks or acts: the role of the seat, or the agent.
    pub fn speaker(&self) -> Option<&str> {
        let agent = || self.agent().map(|agent| agent.as_str());
        self.role().map(|role| role.as_str()).or_else(agent)
    }

    /// The seat, agent, task or step that the call is made for, for the screen.
    pub fn label(&self) -> Cow<'_, str> {
        match self {
            Self::Contribution { role, .. } => Cow::Borrowed(role.as_str()),
            Self::Plan => Cow::Borrowed("plan"),
            Self::Task { task, .. } => Cow::Borrowed(task.as_str()),
            Self::AgentStep { agent, .. } => Cow::Owned(format!("agent {agent}")),
            Self::ListTools => Cow::Borrowed("list tools"),
            Self::Search => Cow::Borrowed("search"),
            Self::Read { source } | Self::Notes { source } => Cow::Owned(source.to_string()),
            Self::Synthesize => Cow::Borrowed("synthesize"),
            Self::Classify => Cow::Borrowed("classify"),
            Self::Finalize => Cow::Borrowed("finalize"),
            Self::Watched | Self::Guarded => Cow::Borrowed("model"),
            Self::ProgramTool { agent } => {
                Cow::Borrowed(agent.as_ref().map_or("program", |agent| agent.as_str()))
            }
            Self::ModelCall { agent, .. }
            | Self::Member { agent, .. }
            | Self::SwarmTurn { agent, .. }
            | Self::Tool { agent, .. } => Cow::Borrowed(agent.as_str()),
        }
    }

    /// What a row of a script has to name to answer this call; `None` for calls of tools and
    /// agents.
    pub fn script(&self) -> Option<ScriptedCall<'_>> {
        match self {
            Self::Contribution { role, round, .. } => {
                Some(ScriptedCall::Role { role, round: *round })
            }
            Self::ModelCall { agent, turn, round } => {
                Some(ScriptedCall::Agent { agent, turn: *turn, round: *round })
            }
            _ => self.step().map(ScriptedCall::Step),
        }
    }

    /// The call in the words of a script, for a message about a missing row; `message` is the
    /// number of the message in its session.
    pub(crate) fn script_label(&self, message: u32) -> String {
        match self {
            Self::Contribution { round, role, .. } => format!("{role} in round {round}"),
            Self::Task { task, .. } => format!("task {task}"),
            Self::ModelCall { agent, turn, round } => {
                format!("{agent} (message {message}, turn {turn}, round {round})")
            }
            Self::Notes { source } => format!("the notes step (source {source})"),
            Self::Plan | Self::Synthesize | Self::Classify | Self::Finalize => {
                format!("the {} step", self.label())
            }
            Self::ListTools | Self::Search | Self::Read { .. } => "a tool".to_owned(),
            Self::AgentStep { .. }
            | Self::Member { .. }
            | Self::SwarmTurn { .. }
            | Self::Tool { .. }
            | Self::ProgramTool { .. }
            | Self::Watched
            | Self::Guarded => self.label().into_owned(),
        }
    }
}

/// What a row of a script has to name to answer a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptedCall<'p> {
    Step(ScriptStep),
    /// A role, in a round.
    Role {
        role: &'p RoleName,
        /// Number of the round, from 1.
        round: u32,
    },
    /// An agent, in one of its turns.
    Agent {
        agent: &'p AgentName,
        /// Number of its turn, from 1.
        turn: u32,
        /// Number of the model call within the turn, from 1.
        round: u32,
    },
}
