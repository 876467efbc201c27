//! Agents as a scenario declares them (teams source document). A coordinator consults model agents,
//! teams and swarms in the same way, so teams nest; an agent works under the timeout of the agent
//! that it is a member of.

pub(crate) mod boundary;
pub(crate) mod check;
pub(crate) mod script;
pub(crate) mod table;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::name::{AgentName, FlagName, PersonName, ToolName};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::handoff_template::HandoffTemplate;
use crate::scenario::spec::script::PromptTemplate;
use crate::scenario::tools::agent::{OutsideAgent, OutsideCaller};

/// The agents of a scenario by name. An agent in no `members` list may join a swarm.
#[derive(Debug, Clone, Default)]
pub struct AgentsSpec(BTreeMap<AgentName, AgentSpec>);

impl Deref for AgentsSpec {
    type Target = BTreeMap<AgentName, AgentSpec>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl AgentsSpec {
    /// The agents that call a model.
    pub fn model_callers(&self) -> Vec<ModelCaller> {
        let agents = self
            .values()
            .filter(|agent| matches!(agent.kind, AgentKind::Model(_) | AgentKind::Team(_)));
        agents.map(|agent| ModelCaller::Agent(agent.name.clone())).collect()
    }

    /// The callers for which an agent of another program answers.
    pub fn outside(&self) -> Vec<OutsideCaller> {
        let outside = |agent: &AgentSpec| {
            let caller = ModelCaller::Agent(agent.name.clone());
            Some(OutsideCaller { caller, agent: agent.kind.model()?.outside.clone()? })
        };
        self.values().filter_map(outside).collect()
    }

    /// Whether an instruction says the position of this flag.
    pub fn say_flag(&self, flag: &FlagName) -> bool {
        self.values().any(|agent| match &agent.kind {
            AgentKind::Model(model) => model.instruction.says(flag),
            AgentKind::Team(team) => team.coordinator.instruction.says(flag),
            AgentKind::Swarm(_) | AgentKind::Person(_) => false,
        })
    }
}

impl FromIterator<AgentSpec> for AgentsSpec {
    fn from_iter<I: IntoIterator<Item = AgentSpec>>(agents: I) -> Self {
        Self(agents.into_iter().map(|agent| (agent.name.clone(), agent)).collect())
    }
}

/// One agent of a team or swarm.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// The name by which a coordinator calls it and other agents hand over to it.
    pub name: AgentName,
    /// What it does, shown to the agents that may consult it.
    pub description: Arc<str>,
    /// Whether it is a model agent, a team, a swarm or a person.
    pub kind: AgentKind,
}

/// The kinds of agent.
#[derive(Debug, Clone)]
pub enum AgentKind {
    /// A model with an instruction and tools.
    Model(ModelAgent),
    /// A model whose tools are other agents.
    Team(CoordinatorTeam),
    /// Model agents and people that hand over to each other.
    Swarm(Swarm),
    Person(PersonName),
}

impl AgentKind {
    /// The word for this kind in files and on the screen.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Model(_) => "agent",
            Self::Team(_) => "team",
            Self::Swarm(_) => "swarm",
            Self::Person(_) => "person",
        }
    }

    /// The model that it calls, of an agent or of a coordinator.
    pub fn model(&self) -> Option<&ModelAgent> {
        match self {
            Self::Model(model) => Some(model),
            Self::Team(team) => Some(&team.coordinator),
            Self::Swarm(_) | Self::Person(_) => None,
        }
    }

    /// The members' names; empty for a model agent.
    pub fn members(&self) -> &[AgentName] {
        match self {
            Self::Model(_) | Self::Person(_) => &[],
            Self::Team(team) => &team.members,
            Self::Swarm(swarm) => &swarm.members,
        }
    }
}

/// A model with an instruction and tools.
#[derive(Debug, Clone)]
pub struct ModelAgent {
    /// Its system prompt; empty if it has none.
    pub instruction: PromptTemplate,
    /// The tools that it may call, by their names at the gateway.
    pub tools: Vec<ToolName>,
    /// The people that it may ask.
    pub people: Vec<PersonName>,
    /// Maximum number of replies with tool calls; one more stops its loop.
    pub max_tool_rounds: u32,
    /// The agent of another program that answers in place of a model.
    pub outside: Option<Arc<OutsideAgent>>,
}

/// A coordinator and its members (teams source document, "Coordinator Team").
#[derive(Debug, Clone)]
pub struct CoordinatorTeam {
    /// The coordinator; its name is the team's name.
    pub coordinator: ModelAgent,
    /// The agents that it may consult.
    pub members: Vec<AgentName>,
    /// Whether the tool calls of one reply run in parallel.
    pub parallel_tools: bool,
    /// What members see of the conversation, and what is shown of their output.
    pub member_tools: MemberTools,
}

/// Model agents that hand over to each other (teams source document, "Swarm").
#[derive(Debug, Clone)]
pub struct Swarm {
    /// The members at the start of the run.
    pub members: Vec<AgentName>,
    /// The member that starts.
    pub entry: AgentName,
    /// The limits beyond which a handoff is refused.
    pub limits: SwarmLimits,
    /// Refused handoffs after which the run stops; 0 means never.
    pub max_rejections: u32,
    /// Time limit for a member that received a handoff; `None` means no limit.
    pub node_timeout: Option<Duration>,
    /// Whether the next message of a session starts at the agent that gave the last answer.
    pub cross_request_transfer: bool,
    /// Whether members other than the entry see only their own turns.
    pub independent_history: bool,
    /// Template for the input of a handoff's target. `None`: the handoff message or, without one,
    /// the input of the agent that hands over.
    pub handoff_input: Option<HandoffTemplate>,
}

/// The limits of handoffs (teams source document, `SwarmConfig`). 0 switches a limit off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwarmLimits {
    /// Maximum number of handoffs.
    pub max_handoffs: u32,
    /// How many of the latest targets the loop guard checks.
    pub repetitive_handoff_window: u32,
    /// How many different names must be among those targets.
    pub repetitive_handoff_min_unique: u32,
}

impl SwarmLimits {
    /// The defaults of the source document.
    pub const SOURCE_DEFAULTS: Self =
        Self { max_handoffs: 20, repetitive_handoff_window: 8, repetitive_handoff_min_unique: 3 };
}

impl Default for SwarmLimits {
    fn default() -> Self {
        Self::SOURCE_DEFAULTS
    }
}

/// How many teams may be nested.
pub const MAX_DEPTH: usize = 16;

/// Default of `max_tool_rounds`.
pub const MAX_TOOL_ROUNDS: u32 = 16;
/// Default of `max_rejections`.
pub const MAX_REJECTIONS: u32 = 3;

/// What is wrong with the names of a team. The source document fixes the texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// The team has no members.
    #[error("members is empty")]
    NoMembers,
    /// A member's name is empty.
    #[error("member name is empty")]
    EmptyMember,
    /// A member has the coordinator's name.
    #[error("member name {0:?} conflicts with coordinator")]
    Coordinator(String),
    /// Two members have the same name.
    #[error("duplicate member name {0:?}")]
    Duplicate(String),
    /// The name cannot be the name of a tool in a model's request.
    #[error("member name {0:?} does not match ^[a-zA-Z0-9_-]+$")]
    InvalidName(String),
    /// The name of the entry is empty.
    #[error("entry member name is empty")]
    EmptyEntry,
    /// The entry is not a member of the swarm.
    #[error("entry member {0:?} not found")]
    NoSuchEntry(String),
}

/// Checks the names of a team: against the coordinator's name if there is one, and of a swarm the
/// name of its entry.
///
/// # Errors
/// The first fault, in the order of the source document.
pub fn check_names(
    coordinator: Option<&str>,
    entry: Option<&str>,
    members: &[&str],
) -> Result<(), RosterError> {
    if members.is_empty() {
        return Err(RosterError::NoMembers);
    }
    for place in 0..members.len() {
        check_member(coordinator, members, place)?;
    }
    match entry {
        Some(entry) => check_entry(entry, members),
        None => Ok(()),
    }
}

/// Checks the name of one member.
pub(super) fn check_member(
    coordinator: Option<&str>,
    members: &[&str],
    place: usize,
) -> Result<(), RosterError> {
    let name = members[place];
    if name.is_empty() {
        return Err(RosterError::EmptyMember);
    }
    if coordinator == Some(name) {
        return Err(RosterError::Coordinator(name.to_owned()));
    }
    if !is_agent_name(name) {
        return Err(RosterError::InvalidName(name.to_owned()));
    }
    if members[..place].contains(&name) {
        return Err(RosterError::Duplicate(name.to_owned()));
    }
    Ok(())
}

/// Checks that the entry is one of the members.
pub(super) fn check_entry(entry: &str, members: &[&str]) -> Result<(), RosterError> {
    if entry.is_empty() {
        Err(RosterError::EmptyEntry)
    } else if !members.contains(&entry) {
        Err(RosterError::NoSuchEntry(entry.to_owned()))
    } else {
        Ok(())
    }
}

/// Whether a model API accepts this as the name of a tool: `^[a-zA-Z0-9_-]+$`.
pub fn is_agent_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

impl AgentSpec {
    /// The members of a swarm that work under its `node_timeout`, with that timeout. The entry is
    /// not one of them: the timeout begins with a handoff.
    pub fn member_timeouts(&self) -> impl Iterator<Item = (&AgentName, Duration)> {
        let swarm = match &self.kind {
            AgentKind::Swarm(swarm) => Some(swarm),
            AgentKind::Model(_) | AgentKind::Team(_) | AgentKind::Person(_) => None,
        };
        let limited = swarm.and_then(|swarm| Some((swarm, swarm.node_timeout?)));
        limited.into_iter().flat_map(|(swarm, timeout)| {
            let members = swarm.members.iter().filter(|member| **member != swarm.entry);
            members.map(move |member| (member, timeout))
        })
    }
}

/// What members see of the conversation, and what is shown of their output (teams source document,
/// `MemberToolConfig`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
pub struct MemberTools {
    /// Whether a member's output is streamed inside the coordinator's.
    pub stream_inner: bool,
    /// Which parts of that output are shown.
    pub inner_text: InnerText,
    /// What a member sees of the coordinator's history.
    pub history_scope: HistoryScope,
    /// Whether the run ends with the members' replies, without a final reply of the coordinator.
    pub skip_summarization: bool,
}

/// Which parts of a member's output are shown inside the coordinator's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum InnerText {
    /// The whole output.
    #[default]
    Include,
    /// Progress and tool calls only.
    Exclude,
}

/// What a member sees of the coordinator's history.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HistoryScope {
    /// The user's input, the coordinator's messages, earlier members' results.
    #[default]
    ParentBranch,
    /// Only the request.
    Isolated,
}
