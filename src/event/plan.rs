//! The setup of each pattern, with its limits, as the head of a run's log has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agents::facts::SessionHead;
use crate::agents::spec::{HandoffTemplate, MemberTools};
use crate::base::name::{AgentName, FlagName, InputName, RoleName, ToolName};
use crate::pattern::research::spec::{MisquotePolicy, StepExecutor};

/// The pattern of a run, with its limits at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "pattern", rename_all = "snake_case")]
pub enum PatternPlan {
    /// Seats vote in rounds (collaboration source document).
    Collaboration(Arc<CollaborationPlan>),
    /// A planner and its workers (orchestrator source document).
    Orchestrator(Arc<OrchestratorPlan>),
    /// A coordinator and its members (teams source document).
    Team(Arc<TeamPlan>),
    /// Agents that hand over to each other (teams source document).
    Swarm(Arc<TeamPlan>),
    /// Agents that put load on tools (cascading failures source document).
    Resilience(Arc<ResiliencePlan>),
    /// Search, read, take notes, verify, answer (research source document).
    Research(Arc<ResearchPlan>),
}

impl PatternPlan {
    /// Name of the pattern.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Collaboration(_) => "collaboration",
            Self::Orchestrator(_) => "orchestrator",
            Self::Team(_) => "team",
            Self::Swarm(_) => "swarm",
            Self::Resilience(_) => "resilience",
            Self::Research(_) => "research",
        }
    }

    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub fn max_ms(&self) -> u64 {
        match self {
            Self::Collaboration(plan) => plan.max_ms,
            Self::Orchestrator(plan) => plan.max_ms,
            Self::Team(plan) | Self::Swarm(plan) => plan.max_ms,
            Self::Resilience(plan) => plan.max_ms,
            Self::Research(plan) => plan.max_ms,
        }
    }
}

/// Setup of a collaboration: the seats, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollaborationPlan {
    /// The role of each seat, in the order of their turns.
    pub sequence: Vec<RoleName>,
    /// The roles that depend on a flag.
    pub role_flags: BTreeMap<RoleName, RoleFlagHead>,
    /// Whether all seats of a round are asked at once (`parallel`) or in order (`sequential`).
    pub parallel: bool,
    /// Max rounds.
    pub max_rounds: u32,
    /// Max contributions.
    pub max_messages: u32,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
    /// Number of `go` votes that a decision for it needs.
    pub min_go_votes: u32,
    /// Inputs that `team_summary` repeats.
    pub summary_inputs: Vec<InputName>,
}

/// The flag that a role depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleFlagHead {
    /// Name of the flag.
    pub flag: FlagName,
    /// Whether the run stops at the role's turn if the flag is off; else the seat is skipped.
    pub deny: bool,
}

/// Setup of an orchestrator: its workers, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrchestratorPlan {
    /// The available workers, in the scenario's order.
    pub workers: Vec<WorkerHead>,
    /// Max tasks of a plan.
    pub max_tasks: u32,
    /// Concurrency limit of tasks at the start.
    pub max_parallel: u32,
    /// Max attempts of a task after the first.
    pub max_retries_per_task: u32,
    /// Max attempts of all tasks together.
    pub max_dispatches: u32,
    /// Timeout of one attempt in milliseconds.
    pub task_timeout_ms: u64,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
    /// The sections of the aggregate.
    pub sections: Vec<String>,
    /// Name of the aggregate's level, such as `health`.
    pub level: String,
}

/// A worker that may be planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerHead {
    /// Name of the worker.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// The flag that removes it from the execution list when off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

/// Setup of a resilience run: who calls which tools how often, and through what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResiliencePlan {
    /// Number of agents, which run concurrently.
    pub agents: u32,
    /// Turns of each agent.
    pub turns: u32,
    /// The tools that an agent calls in each turn, in order.
    pub steps: Vec<ToolName>,
    /// Call slots that all agents share.
    pub pool: u32,
    /// Whether calls go through the tools' policies.
    pub guarded: bool,
    /// Max attempts of one step if they do not: client x tool x agent.
    pub naive_attempts: u32,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
}

/// Setup of a research run: the question, the allowed sources, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResearchPlan {
    /// The question.
    pub question: String,
    /// The day that ages are counted from, `YYYY-MM-DD`.
    pub as_of: String,
    /// Domains that may ever be read.
    pub allowed_domains_policy: Vec<String>,
    /// Domains that are switched on, including those that depend on a flag.
    pub allowed_domains_execution: Vec<String>,
    /// The scenario's rules for domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceHead>,
    /// What makes the plan.
    pub plan_by: StepExecutor,
    /// What takes the notes.
    pub notes_by: StepExecutor,
    /// What writes the answer.
    pub answer_by: StepExecutor,
    /// What to do with a note whose quote is not on its page.
    pub misquotes: MisquotePolicy,
    /// Number of domains that have to support a claim.
    pub min_independent_sources: u32,
    /// Max age of a page in days; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
    /// Max steps of a plan.
    pub max_steps: u32,
    /// Max sources to keep.
    pub max_urls: u32,
    /// Max pages to read.
    pub max_read_pages: u32,
    /// Max notes to take.
    pub max_notes: u32,
    /// Max characters of the answer.
    pub max_answer_chars: u32,
    /// Time limit of the whole run in milliseconds, pauses not counted.
    pub max_ms: u64,
}

impl ResearchPlan {
    /// The scenario's rules for a domain, if there are any.
    pub fn source(&self, domain: &str) -> Option<&SourceHead> {
        self.sources.iter().find(|source| source.domain == domain)
    }
}

/// The scenario's rules for a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceHead {
    /// The domain.
    pub domain: String,
    /// How much it is trusted, from 0 to 1.
    pub trust: f64,
    /// The flag that removes it from the execution allowlist when off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

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
