//! A valid scenario: everything that a run needs, with all defaults applied. Templates
//! (`{{input}}`) are filled in already.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::alert::AlertLimits;
use super::limits::{BreakerLimits, BulkheadLimits, RetryBudgetLimits};
use super::live_defaults::UnsetLlmKeys;
use super::model_assignment::ModelAssignment;
use super::prepared::Prepared;
use super::repair::Repairs;
use super::tool::{InjectedFault, ToolCall, ToolSpec};
use super::tuning::Tuning;
use crate::base::name::{AgentName, FlagName, InputName, RoleName, ScenarioName, ToolName};
use crate::base::seeded_random::Latency;
use crate::pattern::orchestrator::spec::OrchestratorSpec;
use crate::pattern::research::spec::ResearchSpec;
use crate::pattern::resilience::spec::ResilienceSpec;
use crate::pattern::team::spec::TeamSpec;
use crate::scenario::condition::Condition;

/// One complete scenario.
#[derive(Debug)]
pub struct Scenario {
    /// The file name without its extension.
    pub name: ScenarioName,
    /// Its file, or the shipped scenario.
    pub origin: ScenarioOrigin,
    /// SHA-256 of the file's bytes in hexadecimal; the user's trust is stored for this hash.
    pub hash: String,
    /// Title in one line, for lists and headers.
    pub title: String,
    /// What the scenario shows, in one sentence.
    pub about: String,
    /// The task of the run, with its inputs filled in.
    pub goal: String,
    /// The inputs of the launch form, in the file's order.
    pub inputs: Vec<ScenarioInput>,
    /// The flags, in the file's order.
    pub flags: Vec<Flag>,
    /// Facts that every role sees, unchanged, with inputs filled in: an object (`shared_context` in
    /// the collaboration source document).
    pub facts: Arc<Value>,
    /// The settings of the pattern.
    pub pattern: PatternSpec,
    /// Settings of the model and its requests.
    pub model: ModelSettings,
    /// The spending limits of a run.
    pub spending: SpendingLimits,
    /// The callers with a model of their own.
    pub model_assignments: Vec<ModelAssignment>,
    /// The gateway's policy for model calls (`[tools.llm]`).
    pub llm: CallPolicy,
    /// Which settings of that policy the file leaves to the defaults of a live model: see
    /// [`Scenario::llm_live`].
    pub llm_unset: UnsetLlmKeys,
    /// Faults that are injected into model calls from the start of a run.
    pub llm_faults: Vec<InjectedFault>,
    /// The tools behind the gateway by name, without `llm`.
    pub tools: BTreeMap<ToolName, ToolSpec>,
    /// When the operator is alerted.
    pub alerts: AlertLimits,
    /// The model's replies in an offline run.
    pub script: Script,
    /// Seed of all random numbers of a run.
    pub seed: u64,
    /// Warnings for all runs, such as a role with two seats.
    pub warnings: Vec<String>,
    /// Warnings for offline runs only: steps, roles or agents without a scripted reply.
    pub offline_warnings: Vec<String>,
    /// Data that the pattern computes once for all runs.
    pub prepared: Prepared,
}

impl Scenario {
    /// The flag with this name, if there is one.
    pub fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags.iter().find(|flag| flag.name.as_str() == name)
    }

    /// The warnings for a live or an offline run. A live run needs no script.
    pub fn run_warnings(&self, live: bool) -> impl Iterator<Item = &String> {
        let silent = if live { &[] } else { &self.offline_warnings[..] };
        self.warnings.iter().chain(silent)
    }
}

/// Where the text of a scenario comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScenarioOrigin {
    /// Shipped inside the program; the path is its path in the repository.
    Shipped(&'static str),
    /// A file of the user.
    File(std::path::PathBuf),
}

impl std::fmt::Display for ScenarioOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Shipped(path) => f.write_str(path),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The settings of the pattern.
#[derive(Debug)]
pub enum PatternSpec {
    /// Collaboration source document: roles with stances, in rounds.
    Collaboration(CollaborationSpec),
    /// Orchestrator source document: a plan of tasks, dispatched in parallel.
    Orchestrator(OrchestratorSpec),
    /// Teams source document: a coordinator and its members, or a swarm.
    Team(TeamSpec),
    /// Cascading failures source document: many agents that call flaky tools.
    Resilience(ResilienceSpec),
    /// Research source document: an answer from sources, with citations.
    Research(ResearchSpec),
}

impl PatternSpec {
    /// The pattern's name in files and on the screen.
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

    /// Time limit of the whole run; pauses are not counted.
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
    /// Limits as in the collaboration source document.
    pub budget: CollaborationBudget,
    /// The roles in speaking order (`TEAM_SEQUENCE` in the source document).
    pub sequence: Vec<RoleName>,
    /// Whether the seats of a round call the model in parallel.
    pub concurrency: Concurrency,
    /// The roles by name, including every name of `sequence`.
    pub roles: BTreeMap<RoleName, RoleSpec>,
    /// System prompt of the launch brief.
    pub finalize_prompt: Arc<str>,
    /// Inputs that are copied to `team_summary`, such as `report_date` and `region`.
    pub summary_inputs: Vec<InputName>,
}

/// Limits of a collaboration run, named as in the collaboration source document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollaborationBudget {
    /// Maximum number of rounds, at least 1.
    pub max_rounds: u32,
    /// Maximum number of contributions.
    pub max_messages: u32,
    /// Time limit of the run; pauses are not counted.
    pub max_seconds: Duration,
    /// Votes for `go` that are needed for a decision, at least 1.
    pub min_go_votes: u32,
}

/// Whether the seats of a round call the model in parallel. The outcome is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// All in parallel: a round takes as long as its slowest seat.
    Parallel,
    /// One seat after another.
    Sequential,
}

/// A role at the table.
#[derive(Debug, Clone)]
pub struct RoleSpec {
    /// Its system prompt, without the required reply format.
    pub prompt: Arc<str>,
    /// The flag that switches it on and off, if any.
    pub role_flag: Option<RoleFlag>,
}

/// The flag of a role, and what happens while it is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFlag {
    /// Name of the flag.
    pub flag: FlagName,
    /// What happens while the flag is off.
    pub when_off: WhenOff,
}

/// What happens to a role whose flag is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenOff {
    /// Its seat stays empty until the flag is on.
    Skip,
    /// The run stops with `agent_denied:<role>` at the role's turn.
    Deny,
}

/// An input of the scenario, shown in the launch form.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioInput {
    /// Its name in templates and on the command line.
    pub name: InputName,
    /// Its label in the launch form.
    pub label: String,
    /// Its value: the file's, or the one from `--set inputs.NAME=VALUE`.
    pub value: Value,
    /// Which values are allowed.
    pub kind: InputKind,
}

/// The kinds of input.
#[derive(Debug, Clone, PartialEq)]
pub enum InputKind {
    /// Any string.
    Text,
    /// A date as `YYYY-MM-DD`.
    Date,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// One of these strings.
    Choice(Vec<String>),
}

/// A flag of the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its name in the file and on the command line.
    pub name: FlagName,
    /// What it does, shown to the operator.
    pub label: String,
    /// Whether it is on at the start.
    pub default: bool,
}

/// Settings of the model and its requests.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// Whether replies are streamed (`stream`, default true).
    pub stream: bool,
    /// Name of the model, with or without its provider, if the scenario sets one (otherwise
    /// `OPENAI_MODEL`).
    pub name: Option<String>,
    /// The name was set with `--set`, which takes precedence over `--model`.
    pub name_by_override: bool,
    /// Settings that are sent with each request.
    pub tuning: Tuning,
    /// Base URL of the endpoint, if the scenario sets one (otherwise `OPENAI_BASE_URL`).
    pub base_url: Option<String>,
    /// Faults in a reply that are repaired before it is checked.
    pub repair: Repairs,
    /// Maximum number of further attempts after a JSON reply that does not match the required
    /// format.
    pub ask_again: u32,
    /// The price, if known; without one the cost is `null`.
    pub prices: Option<Prices>,
}

/// The spending limits of a run; `None` means no limit.
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
    /// Whether no limit is set.
    pub fn is_none(&self) -> bool {
        self.max_total_tokens.is_none() && self.max_cost_usd.is_none()
    }
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Tokens of the prompt.
    pub prompt_usd_per_million: f64,
    /// Tokens of the reply.
    pub completion_usd_per_million: f64,
}

/// The gateway's policy for one tool (cascading failures source document, checklist: a timeout on
/// every call, retries in one place with backoff and jitter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPolicy {
    /// Timeout of one attempt, until its result is complete. `None`: `OPENAI_TIMEOUT_SECONDS`, else
    /// 60 s.
    pub timeout: Option<Duration>,
    /// Maximum number of attempts of one call, the first included; at least 1.
    pub max_attempts: u32,
    /// Waits before attempt 2, 3, …; the last value repeats. Empty: no wait.
    pub backoff: Arc<[Duration]>,
    /// Equal jitter: half of each wait is fixed, the other half is random from the run's seed.
    pub jitter: bool,
    /// Whether a call may be retried at all.
    pub idempotent: bool,
    /// Which failures are retried.
    pub retry_on: RetryOn,
    /// How many attempts may be retries; `None`: only `max_attempts` limits them.
    pub retry_budget: Option<RetryBudgetLimits>,
    /// When calls are rejected without an attempt; `None`: never.
    pub breaker: Option<BreakerLimits>,
    /// How many attempts may run concurrently; `None`: any number.
    pub bulkhead: Option<BulkheadLimits>,
    /// The fallback for a call that fails.
    pub safe_mode: SafeMode,
}

/// The defaults of docs/rules/patterns.md, *Tool gateway*, from the cascading failures source
/// document.
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

/// Which failures are retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    /// Transient ones: timeout, connection errors, 5xx, 429 (docs/rules/patterns.md, *Tool
    /// gateway*).
    Transient,
    /// Only a timeout, as in the orchestrator source document for its workers.
    Timeout,
}

/// The fallback for a call that fails (cascading failures source document: "safe mode").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeMode {
    /// Whether a fallback is used.
    pub enabled: bool,
    /// Whether the run may continue without a result; if not, it stops with the tool's reason.
    pub allow_partial: bool,
    /// Maximum age of the cached last good value; `None`: it is not cached.
    pub cache_ttl: Option<Duration>,
    /// The default value that the scenario declares.
    pub fallback: Option<Arc<Value>>,
}

impl SafeMode {
    /// No fallback; the run may continue without a result.
    pub const OFF: Self =
        Self { enabled: false, allow_partial: true, cache_ttl: None, fallback: None };
}

/// The model's replies in an offline run: the first row whose conditions hold is used.
#[derive(Debug, Default)]
pub struct Script {
    /// The rows in the file's order.
    pub rows: Vec<ScriptRow>,
}

/// One `[[script]]` of a scenario.
#[derive(Debug)]
pub struct ScriptRow {
    /// Only for this role; `None`: any.
    pub role: Option<RoleName>,
    /// Only for this agent of a team; `None`: any.
    pub agent: Option<AgentName>,
    /// Only for this message of a session, from 1.
    pub message: Option<u32>,
    /// Only for the nth turn of the agent, from 1.
    pub turn: Option<u32>,
    /// Only for this step; `None`: a role's contribution, or an agent's reply.
    pub step: Option<ScriptStep>,
    /// Only in this round: of a collaboration, or of an agent's tool calls.
    pub round: Option<u32>,
    /// Only for this attempt of a call, from 1.
    pub attempt: Option<u32>,
    /// Only for the nth repeat after a reply that did not match the required format, from 1; 0 is
    /// the first attempt.
    pub again: Option<u32>,
    /// Only if this condition holds.
    pub when: Option<Condition>,
    /// How long the reply takes.
    pub latency: Latency,
    /// A failure before the reply, if any.
    pub fault: Option<ScriptFault>,
    /// The reply: `reply` as JSON, `raw` and `text` unchanged. Use [`ScriptRow::reply_for`].
    pub reply_text: Arc<str>,
    /// The tools that the model calls in this reply.
    pub calls: Arc<[ToolCall]>,
    /// The row is for any role, and its `reply` has no `agent`.
    pub lacks_agent: bool,
}

impl ScriptRow {
    /// The reply for a role: if a `reply` has no `agent`, the role's name is added.
    pub fn reply_for(&self, role: Option<&RoleName>) -> Arc<str> {
        let Some(role) = role.filter(|_| self.lacks_agent) else {
            return Arc::clone(&self.reply_text);
        };
        let agent = Value::from(role.as_str());
        match self.reply_text.strip_prefix('{') {
            Some("}") => format!("{{\"agent\":{agent}}}").into(),
            Some(rest) => format!("{{\"agent\":{agent},{rest}").into(),
            None => Arc::clone(&self.reply_text),
        }
    }
}

/// A step of a pattern that is not a role's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptStep {
    /// The plan: tasks of an orchestrator, or steps of research.
    Plan,
    /// The notes on a page.
    Notes,
    /// The answer of research, written from the notes.
    Synthesize,
    /// The launch brief or report at the end.
    Finalize,
}

/// A failure of the first `times` attempts of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFault {
    /// The kind of failure.
    pub kind: ScriptFaultKind,
    /// How many attempts of a call fail, from the first on.
    pub times: u32,
}

/// The failures of a scripted attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptFaultKind {
    /// The endpoint returns this HTTP status.
    Status {
        /// The status, such as 503.
        status: u16,
        /// The value of its `Retry-After` header, if any.
        retry_after: Option<Duration>,
    },
    /// No response until the timeout.
    Hang,
    /// The connection is refused.
    Refused,
    /// The connection breaks in the middle of the reply.
    Reset,
    /// A response body that is not a chat completion.
    BadResponse,
}
