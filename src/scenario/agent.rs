//! Agents as a scenario declares them (source `002`): model agents, coordinator teams, swarms. All
//! three are agents to whoever holds them, so teams nest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::name::{AgentName, ToolName};

/// `pattern = "team"` or `pattern = "swarm"`: the agent that a person talks to, and those it works
/// with.
#[derive(Debug)]
pub struct TeamSpec {
    /// The agent that a person talks to: a coordinator team or a swarm.
    pub root: AgentName,
    /// Every agent by name; those that are nobody's member may join a swarm.
    pub agents: BTreeMap<AgentName, AgentSpec>,
    /// What the session goes on with once the goal is answered.
    pub follow_ups: Vec<Arc<str>>,
    /// Bound of each run of the session, pauses not counted.
    pub max_seconds: Duration,
}

impl TeamSpec {
    /// The agent of this name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentSpec> {
        self.agents.get(name)
    }

    /// Whether the root is a swarm.
    pub fn is_swarm(&self) -> bool {
        self.agent(&self.root).is_some_and(|root| matches!(root.kind, AgentKind::Swarm(_)))
    }
}

/// An agent.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// Its name: what a coordinator calls it by, and what it is handed over to by.
    pub name: AgentName,
    /// What it does, for the agents that may ask it.
    pub description: Arc<str>,
    /// What it is.
    pub kind: AgentKind,
}

/// What an agent is.
#[derive(Debug, Clone)]
pub enum AgentKind {
    /// A model with an instruction and tools.
    Model(ModelAgent),
    /// A model whose tools are other agents.
    Team(CoordinatorTeam),
    /// Model agents that hand over to each other.
    Swarm(Swarm),
}

impl AgentKind {
    /// Its word in files and on the screen.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Model(_) => "agent",
            Self::Team(_) => "team",
            Self::Swarm(_) => "swarm",
        }
    }

    /// The members' names; none of a model agent.
    pub fn members(&self) -> &[AgentName] {
        match self {
            Self::Model(_) => &[],
            Self::Team(team) => &team.members,
            Self::Swarm(swarm) => &swarm.members,
        }
    }
}

/// A model with an instruction and tools.
#[derive(Debug, Clone)]
pub struct ModelAgent {
    /// Its system prompt; empty: it has none.
    pub instruction: Arc<str>,
    /// The tools it may call, by their name at the gateway.
    pub tools: Vec<ToolName>,
    /// Replies with tool calls that are carried out before its loop is stopped.
    pub max_tool_rounds: u32,
}

/// A coordinator and its members (source `002`, "Coordinator Team").
#[derive(Debug, Clone)]
pub struct CoordinatorTeam {
    /// The coordinator; its name is the team's.
    pub coordinator: ModelAgent,
    /// Whom it may consult.
    pub members: Vec<AgentName>,
    /// Whether the calls of one reply run at once.
    pub parallel_tools: bool,
    /// What members see, and what is seen of them.
    pub member_tools: MemberTools,
}

/// What members see, and what is seen of them (source `002`, `MemberToolConfig`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberTools {
    /// Whether a member's own output is shown live inside the coordinator's.
    pub stream_inner: bool,
    /// How much of it.
    pub inner_text: InnerText,
    /// What a member sees of the coordinator's history.
    pub history_scope: HistoryScope,
    /// Whether the run ends with the members' replies, not with one more of the coordinator's.
    pub skip_summarization: bool,
}

/// How much of a member's output is shown inside the coordinator's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InnerText {
    /// All of it.
    #[default]
    Include,
    /// Progress and tool calls, no prose.
    Exclude,
}

/// What a member sees of the coordinator's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryScope {
    /// The user's input, the coordinator's messages, earlier members' results.
    #[default]
    ParentBranch,
    /// Only what it is asked.
    Isolated,
}

/// Model agents that hand over to each other (source `002`, "Swarm").
#[derive(Debug, Clone)]
pub struct Swarm {
    /// Its members at the start.
    pub members: Vec<AgentName>,
    /// Who starts.
    pub entry: AgentName,
    /// When a hand-off is refused.
    pub limits: SwarmLimits,
    /// Refused hand-offs after which the run stops; 0: never.
    pub max_rejections: u32,
    /// Bound of a member's run that a hand-off started; `None`: none.
    pub node_timeout: Option<Duration>,
    /// Whether the next message of a session starts at the agent that owned the last reply.
    pub cross_request_transfer: bool,
    /// Whether members other than the entry see only their own turns.
    pub independent_history: bool,
    /// What the target of a hand-off is given; `None`: the message, or else the source's own input.
    pub handoff_input: Option<HandoffTemplate>,
}

/// What the target of a hand-off is given, in pieces: what an input or an agent says is never read
/// as part of the template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HandoffTemplate(Vec<HandoffPiece>);

/// A piece of a [`HandoffTemplate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffPiece {
    /// A text as it stands.
    Literal(String),
    /// `{root_input}`: what the swarm was given.
    RootInput,
    /// `{parent_input}`: what the one that hands over was given.
    ParentInput,
    /// `{from}`: who hands over.
    From,
    /// `{to}`: to whom.
    To,
    /// `{message}`: what is said with it, or nothing.
    Message,
}

impl HandoffPiece {
    /// What a template may name.
    pub const NAMES: [&str; 5] = ["root_input", "parent_input", "from", "to", "message"];

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "root_input" => Self::RootInput,
            "parent_input" => Self::ParentInput,
            "from" => Self::From,
            "to" => Self::To,
            "message" => Self::Message,
            _ => return None,
        })
    }
}

impl HandoffTemplate {
    /// The template of a text; what is in braces and no name of it stands as it is.
    pub fn of(text: &str) -> Self {
        let mut template = Self::default();
        template.text(text);
        template
    }

    /// Goes on with a text that is read as a template.
    pub fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, after) = rest.split_at(open);
            self.literal(before);
            // A brace within braces names nothing: the next one may.
            let next = after[1..].find(['{', '}']).map(|at| at + 1);
            let close = next.filter(|at| after[*at..].starts_with('}'));
            let named = close.and_then(|close| {
                Some((HandoffPiece::named(&after[1..close])?, &after[close + 1..]))
            });
            rest = match named {
                Some((piece, after)) => {
                    self.0.push(piece);
                    after
                }
                None => {
                    self.literal("{");
                    &after[1..]
                }
            };
        }
        self.literal(rest);
    }

    /// Goes on with a text as it stands.
    pub fn literal(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(HandoffPiece::Literal(last)) => last.push_str(text),
            _ => self.0.push(HandoffPiece::Literal(text.to_owned())),
        }
    }

    /// Its pieces in order; no two texts stand side by side.
    pub fn pieces(&self) -> &[HandoffPiece] {
        &self.0
    }

    /// What the target of this hand-off is given.
    pub fn fill(
        &self,
        root: &str,
        parent: &str,
        from: &AgentName,
        to: &AgentName,
        message: Option<&str>,
    ) -> String {
        let filled = self.0.iter().map(|piece| match piece {
            HandoffPiece::Literal(text) => text,
            HandoffPiece::RootInput => root,
            HandoffPiece::ParentInput => parent,
            HandoffPiece::From => from.as_str(),
            HandoffPiece::To => to.as_str(),
            HandoffPiece::Message => message.unwrap_or_default(),
        });
        filled.collect()
    }
}

/// When a hand-off is refused (source `002`, `SwarmConfig`). 0 turns a limit off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwarmLimits {
    /// Hand-offs at most.
    pub max_handoffs: u32,
    /// How many of the last targets are looked at.
    pub repetitive_handoff_window: u32,
    /// How many different names must be among them.
    pub repetitive_handoff_min_unique: u32,
}

impl SwarmLimits {
    /// The source's own, where the scenario says nothing.
    pub const USUAL: Self =
        Self { max_handoffs: 20, repetitive_handoff_window: 8, repetitive_handoff_min_unique: 3 };
}

impl Default for SwarmLimits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// The tool by which a member of a swarm hands over: no agent and no tool has its name.
pub const TRANSFER: &str = "transfer_to_agent";
/// How many teams may stand within one another.
pub const MAX_DEPTH: usize = 16;

/// Replies with tool calls of one agent's loop, where the scenario says nothing.
pub const MAX_TOOL_ROUNDS: u32 = 16;
/// Refused hand-offs after which a swarm stops, where the scenario says nothing.
pub const MAX_REJECTIONS: u32 = 3;

/// What is wrong with the names of a team. The texts are the specification's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterFault {
    /// A team of nobody.
    #[error("members is empty")]
    NoMembers,
    /// A member without a name.
    #[error("member name is empty")]
    EmptyMember,
    /// A member that is called as the coordinator is.
    #[error("member name {0:?} conflicts with coordinator")]
    Coordinator(String),
    /// Two members of one name.
    #[error("duplicate member name {0:?}")]
    Duplicate(String),
    /// A name that models would not take for a tool's.
    #[error("member name {0:?} does not match ^[a-zA-Z0-9_-]+$")]
    Strange(String),
    /// A swarm that starts nowhere.
    #[error("entry member name is empty")]
    EmptyEntry,
    /// A swarm that starts at a stranger.
    #[error("entry member {0:?} not found")]
    NoSuchEntry(String),
}

/// Whether these names make a team: of a coordinator where there is one, of a swarm where there is
/// an entry.
///
/// # Errors
/// The first thing that is wrong, in the order of the source.
pub fn check_names(
    coordinator: Option<&str>,
    entry: Option<&str>,
    members: &[&str],
) -> Result<(), RosterFault> {
    if members.is_empty() {
        return Err(RosterFault::NoMembers);
    }
    for place in 0..members.len() {
        check_member(coordinator, members, place)?;
    }
    match entry {
        Some(entry) => check_entry(entry, members),
        None => Ok(()),
    }
}

/// Whether the name at this place among the members may stand there, whatever the others are.
///
/// # Errors
/// The first thing that is wrong with it, in the order of the source.
pub(super) fn check_member(
    coordinator: Option<&str>,
    members: &[&str],
    place: usize,
) -> Result<(), RosterFault> {
    let name = members[place];
    if name.is_empty() {
        return Err(RosterFault::EmptyMember);
    }
    if coordinator == Some(name) {
        return Err(RosterFault::Coordinator(name.to_owned()));
    }
    if !is_agent_name(name) {
        return Err(RosterFault::Strange(name.to_owned()));
    }
    if members[..place].contains(&name) {
        return Err(RosterFault::Duplicate(name.to_owned()));
    }
    Ok(())
}

/// Whether a swarm of these members can start at this one.
///
/// # Errors
/// It has no name, or is none of them.
pub(super) fn check_entry(entry: &str, members: &[&str]) -> Result<(), RosterFault> {
    if entry.is_empty() {
        Err(RosterFault::EmptyEntry)
    } else if !members.contains(&entry) {
        Err(RosterFault::NoSuchEntry(entry.to_owned()))
    } else {
        Ok(())
    }
}

/// Whether models take this for the name of a tool: `^[a-zA-Z0-9_-]+$`.
pub fn is_agent_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
