//! A scenario once it has been read and found good: everything that a run needs, nothing optional
//! left to guess. Templates (`{{input}}`) are filled in already.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::TeamSpec;
use super::alert::AlertLimits;
use super::condition::Condition;
use super::live::Unset;
use super::name::{AgentName, FlagName, InputName, RoleName, ScenarioName, ToolName};
use super::orchestrator::OrchestratorSpec;
use super::prepared::Prepared;
use super::repair::Repairs;
use super::research::ResearchSpec;
use super::resilience::{BreakerLimits, BulkheadLimits, RetryBudgetLimits};
use super::seated::Seated;
use super::storm::ResilienceSpec;
use super::tool::{Fault, ToolCall, ToolSpec};
use super::tuning::Tuning;

/// One scenario, complete in itself.
#[derive(Debug)]
pub struct Scenario {
    /// The stem of its file.
    pub name: ScenarioName,
    /// Where it was read from.
    pub origin: Origin,
    /// SHA-256 of the file's bytes in hex: what a person's trust is kept under.
    pub hash: String,
    /// One line for lists and headers.
    pub title: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// What the run is asked, with its inputs filled in.
    pub goal: String,
    /// Asked for in the launch form, in the file's order.
    pub inputs: Vec<Input>,
    /// Switches of this scenario, in the file's order.
    pub flags: Vec<Flag>,
    /// What every role is shown, unchanged (`shared_context` of `000`), with inputs filled in: an
    /// object, shared by all that look at it.
    pub facts: Arc<Value>,
    /// The pattern and what it alone needs.
    pub pattern: PatternSpec,
    /// How the model is asked.
    pub model: ModelSettings,
    /// What a run may spend on its models.
    pub spending: SpendingLimits,
    /// Who has a model of its own.
    pub seated: Vec<Seated>,
    /// The gateway's policy for model calls (`[tools.llm]`).
    pub llm: CallPolicy,
    /// What of it the file leaves to the defaults of a live model: see [`Scenario::llm_live`].
    pub llm_unset: Unset,
    /// Faults that are injected into model calls from the start.
    pub llm_faults: Vec<Fault>,
    /// The tools behind the gateway, by name; `llm` is none of them.
    pub tools: BTreeMap<ToolName, ToolSpec>,
    /// When a person is alerted.
    pub alerts: AlertLimits,
    /// What the model says offline.
    pub script: Script,
    /// Start of every random number of a run.
    pub seed: u64,
    /// Odd but not wrong, such as a role that sits twice.
    pub warnings: Vec<String>,
    /// What offline runs alone lack: steps, roles or agents that have no scripted reply.
    pub silent: Vec<String>,
    /// What its pattern makes of it for all of its runs.
    pub prepared: Prepared,
}

impl Scenario {
    /// The flag of this name, if the scenario has it.
    pub fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags.iter().find(|flag| flag.name.as_str() == name)
    }

    /// What is odd about a run of it: a live one needs no script.
    pub fn warnings_of(&self, live: bool) -> impl Iterator<Item = &String> {
        let silent = if live { &[] } else { &self.silent[..] };
        self.warnings.iter().chain(silent)
    }
}

/// Where a scenario's text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Shipped inside the program, found again under this path of the repository.
    Shipped(&'static str),
    /// A person's file.
    File(std::path::PathBuf),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shipped(path) => f.write_str(path),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The pattern of a scenario, with the part of the file that only this pattern has.
#[derive(Debug)]
pub enum PatternSpec {
    /// Source `000`: roles with stances, in rounds.
    Collaboration(CollaborationSpec),
    /// Source `001`: a plan of tasks, dispatched in parallel.
    Orchestrator(OrchestratorSpec),
    /// Source `002`: a coordinator and its members, or a swarm.
    Team(TeamSpec),
    /// Source `003`: many agents against flaky tools.
    Resilience(ResilienceSpec),
    /// Source `004`: an answer from sources, with citations.
    Research(ResearchSpec),
}

impl PatternSpec {
    /// The pattern's name as the file and the screen say it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Collaboration(_) => "collaboration",
            Self::Orchestrator(_) => "orchestrator",
            Self::Team(spec) if spec.is_swarm() => "swarm",
            Self::Team(_) => "team",
            Self::Resilience(_) => "resilience",
            Self::Research(_) => "research",
        }
    }

    /// Bound of the whole run, pauses not counted.
    pub fn max_seconds(&self) -> Duration {
        match self {
            Self::Collaboration(spec) => spec.budget.max_seconds,
            Self::Orchestrator(spec) => spec.budget.max_seconds,
            Self::Team(spec) => spec.max_seconds,
            Self::Resilience(spec) => spec.max_seconds,
            Self::Research(spec) => spec.budget.max_seconds,
        }
    }
}

/// `pattern = "collaboration"`.
#[derive(Debug)]
pub struct CollaborationSpec {
    /// Limits of `000`.
    pub budget: Budget,
    /// Who speaks, in this order; what the source calls `TEAM_SEQUENCE`.
    pub sequence: Vec<RoleName>,
    /// Whether the seats of a round are asked at once.
    pub concurrency: Concurrency,
    /// The roles by name: every name of `sequence` is here.
    pub roles: BTreeMap<RoleName, Role>,
    /// System prompt of the launch brief.
    pub finalize_prompt: Arc<str>,
    /// Inputs that `team_summary` repeats, such as `report_date` and `region`.
    pub summary_inputs: Vec<InputName>,
}

/// Limits of a collaboration run, named as in `000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Rounds at most, at least 1.
    pub max_rounds: u32,
    /// Contributions at most.
    pub max_messages: u32,
    /// Seconds of the whole run, pauses not counted.
    pub max_seconds: Duration,
    /// Votes for `go` that decide, at least 1.
    pub min_go_votes: u32,
}

/// How the seats of one round are asked. The outcome is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// All at once: a round takes as long as its slowest seat.
    Parallel,
    /// One after another.
    Sequential,
}

/// A role at the table.
#[derive(Debug, Clone)]
pub struct Role {
    /// Its system prompt, the reply contract not yet added.
    pub prompt: Arc<str>,
    /// The flag it sits behind, if any.
    pub behind: Option<Behind>,
}

/// What a flag does to a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The flag.
    pub flag: FlagName,
    /// What happens while it is off.
    pub when_off: WhenOff,
}

/// What happens to a role whose flag is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenOff {
    /// It leaves its seat empty until the flag is on.
    Skip,
    /// The run stops with `agent_denied:<role>` when its turn comes.
    Deny,
}

/// An input of the scenario, shown in the launch form.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Its name in templates and on the command line.
    pub name: InputName,
    /// What the form says beside it.
    pub label: String,
    /// Its value (the file's, or what `--set inputs.NAME=VALUE` said).
    pub value: Value,
    /// What may be given.
    pub kind: InputKind,
}

/// What an input may be.
#[derive(Debug, Clone, PartialEq)]
pub enum InputKind {
    /// Any text.
    Text,
    /// A day as `YYYY-MM-DD`.
    Date,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// One of these.
    Choice(Vec<String>),
}

/// A switch of the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its name.
    pub name: FlagName,
    /// What it does, for people.
    pub label: String,
    /// Its position at the start.
    pub default: bool,
}

/// How the model is asked.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// Whether replies are streamed (`stream`, default true).
    pub stream: bool,
    /// The model's name, where the scenario sets one (else `OPENAI_MODEL`); with or without its
    /// provider's.
    pub name: Option<String>,
    /// `--set` gave the name, which goes before `--model`.
    pub name_by_override: bool,
    /// What is sent with each request beside what is asked.
    pub tuning: Tuning,
    /// The endpoint, where the scenario sets one (else `OPENAI_BASE_URL`).
    pub base_url: Option<String>,
    /// What may be repaired in a reply before it is judged.
    pub repair: Repairs,
    /// How often the model is told what is wrong with a JSON reply, and asked again.
    pub ask_again: u32,
    /// Prices, where known: without them the cost is `null`.
    pub prices: Option<Prices>,
}

/// What a run may spend on its models; `None`: any amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SpendingLimits {
    /// Tokens, of prompts and replies together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// US dollars, estimated from prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
}

impl SpendingLimits {
    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        self.max_total_tokens.is_none() && self.max_cost_usd.is_none()
    }
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Tokens of the prompt.
    pub prompt_usd_per_million: f64,
    /// Tokens of the reply.
    pub completion_usd_per_million: f64,
}

/// The gateway's policy for one tool (source `003`, checklist: time-out on every call, retries in
/// one place with back-off and jitter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPolicy {
    /// Bound of one attempt, the whole of it; `None` leaves it to `OPENAI_TIMEOUT_SECONDS`, then 60 s.
    pub timeout: Option<Duration>,
    /// Attempts of one call, the first included; at least 1.
    pub max_attempts: u32,
    /// Waits before attempt 2, 3, …; the last repeats. Empty: none.
    pub backoff: Arc<[Duration]>,
    /// Equal jitter: half the wait is certain, the other half drawn by the run's seed.
    pub jitter: bool,
    /// Whether a call may be repeated at all.
    pub idempotent: bool,
    /// Which failures are followed by another attempt.
    pub retry_on: RetryOn,
    /// How many attempts may be repeats; `None`: as many as `max_attempts` says.
    pub retry_budget: Option<RetryBudgetLimits>,
    /// When the tool is no longer asked; `None`: always asked.
    pub breaker: Option<BreakerLimits>,
    /// How many attempts may be out at once; `None`: any number.
    pub bulkhead: Option<BulkheadLimits>,
    /// What stands in for the tool when it cannot be had.
    pub safe_mode: SafeMode,
}

/// Section 5's defaults, from source `003`.
impl Default for CallPolicy {
    fn default() -> Self {
        Self {
            timeout: None,
            max_attempts: 2,
            backoff: [250, 750].map(Duration::from_millis).into(),
            jitter: true,
            idempotent: true,
            retry_on: RetryOn::Transient,
            retry_budget: Some(RetryBudgetLimits::default()),
            breaker: Some(BreakerLimits::default()),
            bulkhead: Some(BulkheadLimits::default()),
            safe_mode: SafeMode::OFF,
        }
    }
}

/// Which failures are followed by another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    /// Those that may pass: time-out, connection trouble, 5xx, 429 (spec section 5).
    Transient,
    /// Only a time-out, as the orchestrator of source `001` does for its workers.
    Timeout,
}

/// What stands in for a tool that cannot be had (source `003`: "safe mode").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeMode {
    /// Whether anything may stand in for it.
    pub enabled: bool,
    /// Whether the run may go on without it; where not, it stops with the tool's reason.
    pub allow_partial: bool,
    /// How old its last good value may be; `None`: it is not kept.
    pub cache_ttl: Option<Duration>,
    /// The value the scenario declares for it.
    pub fallback: Option<Arc<Value>>,
}

impl SafeMode {
    /// Nothing stands in for the tool, and the run may go on without it.
    pub const OFF: Self =
        Self { enabled: false, allow_partial: true, cache_ttl: None, fallback: None };
}

/// What the model says offline: the first row whose conditions hold.
#[derive(Debug, Default)]
pub struct Script {
    /// The rows in the file's order.
    pub rows: Vec<ScriptRow>,
}

/// One `[[script]]` of a scenario.
#[derive(Debug)]
pub struct ScriptRow {
    /// Only this role; `None`: any.
    pub role: Option<RoleName>,
    /// Only this agent of a team; `None`: any.
    pub agent: Option<AgentName>,
    /// Only for this message of a session, from 1.
    pub message: Option<u32>,
    /// Only the nth time that its team has asked this agent, from 1.
    pub turn: Option<u32>,
    /// Only this step; `None`: a role's contribution, or what an agent says.
    pub step: Option<ScriptStep>,
    /// Only in this round: of a table, or of an agent's tool calls.
    pub round: Option<u32>,
    /// Only for this attempt of a call, from 1.
    pub attempt: Option<u32>,
    /// Only the nth time that the model is asked again because its reply was refused, from 1; 0: the
    /// first time that it is asked.
    pub again: Option<u32>,
    /// Only when this holds for what the role is shown.
    pub when: Option<Condition>,
    /// How long the answer takes.
    pub latency: Latency,
    /// What goes wrong first, if anything.
    pub fault: Option<ScriptFault>,
    /// The text that the model gives: `reply` as JSON, `raw` and `text` as they are. Use
    /// [`ScriptRow::answer_by`].
    pub answer: Arc<str>,
    /// The tools that the model calls.
    pub calls: Arc<[ToolCall]>,
    /// The answer is a `reply` that names no `agent`, and the row is for any role.
    pub unsigned: bool,
}

impl ScriptRow {
    /// The text that the model gives for a role: a `reply` without `agent` has the role's name.
    pub fn answer_by(&self, role: Option<&RoleName>) -> Arc<str> {
        let Some(role) = role.filter(|_| self.unsigned) else { return Arc::clone(&self.answer) };
        let agent = Value::from(role.as_str());
        match self.answer.strip_prefix('{') {
            Some("}") => format!("{{\"agent\":{agent}}}").into(),
            Some(rest) => format!("{{\"agent\":{agent},{rest}").into(),
            None => Arc::clone(&self.answer),
        }
    }
}

/// A step of a pattern that is no role's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptStep {
    /// The orchestrator's plan of tasks, or the steps of research.
    Plan,
    /// The notes of a page.
    Notes,
    /// The answer that notes are put together to.
    Synthesize,
    /// The text at the end.
    Finalize,
}

/// A seeded draw between two bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latency {
    /// At least.
    pub min: Duration,
    /// At most.
    pub max: Duration,
}

/// What goes wrong in the first `times` attempts of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFault {
    /// How it fails.
    pub kind: ScriptFaultKind,
    /// How many attempts of a call fail, from the first.
    pub times: u32,
}

/// How a scripted attempt fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptFaultKind {
    /// The endpoint answers with this HTTP status.
    Status {
        /// Such as 503.
        status: u16,
        /// What its `Retry-After` says, if it has one.
        retry_after: Option<Duration>,
    },
    /// Nothing comes until the time-out.
    Hang,
    /// The connection is refused.
    Refused,
    /// The connection breaks half-way through the reply.
    Reset,
    /// A body that is no chat completion.
    BadResponse,
}
