//! The pattern and its limits as a run was started with them: the part of the log's head that each
//! pattern has of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::team::SessionHead;
use crate::scenario::agent::{HandoffTemplate, MemberTools};
use crate::scenario::name::{AgentName, FlagName, InputName, RoleName, ToolName};
use crate::scenario::research::{DoneBy, Misquotes};

/// The pattern and its limits, as the run was started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "pattern", rename_all = "snake_case")]
pub enum PatternPlan {
    /// Source `000`.
    Collaboration(CollaborationPlan),
    /// Source `001`.
    Orchestrator(OrchestratorPlan),
    /// Source `002`: a coordinator and its members.
    Team(TeamPlan),
    /// Source `002`: a swarm.
    Swarm(TeamPlan),
    /// Source `003`.
    Resilience(ResiliencePlan),
    /// Source `004`.
    Research(ResearchPlan),
}

impl PatternPlan {
    /// The pattern's name.
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

    /// Milliseconds of the whole run, pauses not counted.
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

/// Source `000`: who sits, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollaborationPlan {
    /// Who speaks, in this order.
    pub sequence: Vec<RoleName>,
    /// The roles behind a flag.
    pub behind: BTreeMap<RoleName, BehindFlag>,
    /// `parallel` or `sequential`.
    pub parallel: bool,
    /// Rounds at most.
    pub max_rounds: u32,
    /// Contributions at most.
    pub max_messages: u32,
    /// Milliseconds of the whole run, pauses not counted.
    pub max_ms: u64,
    /// Votes for `go` that decide.
    pub min_go_votes: u32,
    /// Inputs that `team_summary` repeats.
    pub summary_inputs: Vec<InputName>,
}

/// The flag a role sits behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BehindFlag {
    /// Which.
    pub flag: FlagName,
    /// Whether the run stops when its turn comes and the flag is off.
    pub deny: bool,
}

/// Source `001`: the catalogue, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrchestratorPlan {
    /// The workers that may be planned, in the scenario's order.
    pub workers: Vec<WorkerHead>,
    /// Tasks of a plan at most.
    pub max_tasks: u32,
    /// Tasks at once at most, at the start.
    pub max_parallel: u32,
    /// Attempts beyond the first of a task.
    pub max_retries_per_task: u32,
    /// Attempts of all tasks at most.
    pub max_dispatches: u32,
    /// Milliseconds of one attempt.
    pub task_timeout_ms: u64,
    /// Milliseconds of the whole run, pauses not counted.
    pub max_ms: u64,
    /// The sections of the aggregate.
    pub sections: Vec<String>,
    /// The name of its level, such as `health`.
    pub level: String,
}

/// A worker that may be planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerHead {
    /// Its name.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// The flag that takes it off the execution list when off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

/// Source `003`: who asks how often, and through what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResiliencePlan {
    /// Agents that run at once.
    pub agents: u32,
    /// Turns of each.
    pub turns: u32,
    /// What each asks in a turn.
    pub steps: Vec<ToolName>,
    /// Call slots that all agents share.
    pub pool: u32,
    /// Whether calls go through the tools' policies.
    pub guarded: bool,
    /// Attempts that one step comes to at most where they do not: client x tool x agent.
    pub naive_attempts: u32,
    /// Milliseconds of the whole run, pauses not counted.
    pub max_ms: u64,
}

/// Source `004`: what is asked, which sources may be read, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResearchPlan {
    /// What is to be found out.
    pub question: String,
    /// The day that it is asked about, `YYYY-MM-DD`: what ages are counted from.
    pub as_of: String,
    /// Domains that may ever be read.
    pub allowed_domains_policy: Vec<String>,
    /// Domains that are switched on, those behind a flag among them.
    pub allowed_domains_execution: Vec<String>,
    /// What the scenario says of domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceHead>,
    /// Who makes the plan.
    pub plan_by: DoneBy,
    /// Who takes notes.
    pub notes_by: DoneBy,
    /// Who puts the answer together.
    pub answer_by: DoneBy,
    /// What is done with a quote that is not in its page.
    pub misquotes: Misquotes,
    /// Domains that a claim needs.
    pub min_independent_sources: u32,
    /// Days after which a page is too old; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
    /// Steps of a plan at most.
    pub max_steps: u32,
    /// Sources that are kept at most.
    pub max_urls: u32,
    /// Pages that are read at most.
    pub max_read_pages: u32,
    /// Notes that are taken at most.
    pub max_notes: u32,
    /// Characters of the answer at most.
    pub max_answer_chars: u32,
    /// Milliseconds of the whole run, pauses not counted.
    pub max_ms: u64,
}

impl ResearchPlan {
    /// What the scenario says of a domain, if anything.
    pub fn source(&self, domain: &str) -> Option<&SourceHead> {
        self.sources.iter().find(|source| source.domain == domain)
    }
}

/// What the scenario says of a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceHead {
    /// The domain.
    pub domain: String,
    /// How far it is trusted, from 0 to 1.
    pub trust: f64,
    /// The flag that takes it off the execution allowlist when off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<FlagName>,
}

/// Source `002`: the agents, and where the run stands in its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamPlan {
    /// The agent that the person talks to.
    pub root: AgentName,
    /// Every agent, the root first, each before its members; last those that are nobody's member.
    pub agents: Vec<AgentHead>,
    /// Milliseconds of the whole run, pauses not counted.
    pub max_ms: u64,
    /// Where the run stands in its session.
    pub session: SessionHead,
}

impl TeamPlan {
    /// The agent of this name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentHead> {
        self.agents.iter().find(|agent| agent.name == *name)
    }

    /// The swarm of this name.
    pub fn swarm(&self, name: &AgentName) -> Option<&SwarmHead> {
        self.agent(name)?.swarm.as_ref()
    }
}

/// An agent of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHead {
    /// Its name.
    pub name: AgentName,
    /// What it does.
    pub description: String,
    /// `agent`, `team` or `swarm`.
    pub kind: String,
    /// Its members at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<AgentName>,
    /// Its system prompt; empty: it has none.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub instruction: Arc<str>,
    /// The tools it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolName>,
    /// Replies with tool calls that are carried out before its loop is stopped; `None`: it does not
    /// speak, or the log does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_rounds: Option<u32>,
    /// Whether a coordinator's calls of one reply run at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel_tools: bool,
    /// What a coordinator's members see, and what is seen of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_tools: Option<MemberTools>,
    /// What a swarm alone has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swarm: Option<SwarmHead>,
}

/// How a swarm hands over, and its limits; 0 is off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwarmHead {
    /// Who starts.
    pub entry: AgentName,
    /// Hand-offs at most.
    pub max_handoffs: u32,
    /// How many of the last targets are looked at.
    pub repetitive_handoff_window: u32,
    /// How many different names must be among them.
    pub repetitive_handoff_min_unique: u32,
    /// Refused hand-offs after which the run stops.
    pub max_rejections: u32,
    /// Milliseconds of a member's run that a hand-off started.
    pub node_timeout_ms: u64,
    /// Whether the next message of a session starts at the agent that owned the last reply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cross_request_transfer: bool,
    /// Whether members other than the entry see only their own turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub independent_history: bool,
    /// What the target of a hand-off is given; `None`: the message, or else the source's own input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_input: Option<HandoffTemplate>,
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}
