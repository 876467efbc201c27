//! What a good scenario says, as plain data with all defaults applied and inputs filled in: inputs,
//! flags, models and their settings, prices, limits, alerts, expectations, repairs. It keeps the
//! texts that it was read from. Nothing here reads a file, and nothing here runs.

pub mod handoff_template;
pub mod policy;
pub mod script;
pub mod tool;

use crate::base::worded;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::policy::{BreakerCounts, CallPolicy, RetryBudgetLimits, UnsetLlmKeys};
use self::script::{Script, ScriptStep};
use self::tool::{InjectedFault, ToolSpec};
use super::cel::Condition;
use super::patterns::PatternSpec;
use super::people::People;
use crate::base::name::{AgentName, FlagName, InputName, RoleName, ScenarioName, ToolName};
use crate::base::sha256_of_text;
use crate::scenario::tools::mcp::{McpServerSpec, split_name};

/// One complete scenario.
#[derive(Debug)]
pub struct Scenario {
    /// The file name without its extension.
    pub name: ScenarioName,
    /// Its file, or the shipped scenario.
    pub origin: ScenarioOrigin,
    /// SHA-256 of the file's bytes in hexadecimal; the user's trust is stored for this hash.
    pub hash: String,
    /// The text that it was read from.
    pub source: Arc<SourceText>,
    /// Title in one line, for lists and headers.
    pub title: String,
    /// What the scenario shows, in one sentence.
    pub about: String,
    /// The task of the run, with its inputs filled in.
    pub goal: Arc<str>,
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
    /// What happens at them.
    pub on_limit: OnLimit,
    /// The callers with a model of their own.
    pub model_assignments: Vec<ModelAssignment>,
    /// The gateway's policy for model calls (`[tools.llm]`).
    pub llm: Arc<CallPolicy>,
    /// Faults that are injected into model calls from the start of a run.
    pub llm_faults: Vec<InjectedFault>,
    /// The tools behind the gateway by name, without `llm`.
    pub tools: BTreeMap<ToolName, ToolSpec>,
    /// When the operator is alerted.
    pub alerts: AlertLimits,
    /// The model's replies in an offline run.
    pub script: Script,
    /// What has to hold when a run has ended.
    pub expectations: Vec<Expectation>,
    /// Seed of all random numbers of a run.
    pub seed: u64,
    /// What a resumed run does with a call in doubt, if its tool is not idempotent; `None`: it asks
    /// the operator if one can answer, and stops otherwise.
    pub in_doubt: Option<InDoubt>,
    /// The people who may be asked, and the rules about calls of tools.
    pub people: Arc<People>,
    /// What the reader of the file warned of.
    pub warnings: ScenarioWarnings,
    /// Data that is computed once for all runs.
    pub prepared: Prepared,
}

impl Scenario {
    /// The tool with this name; for a tool of an MCP server without an entry, the entry of the server.
    pub(crate) fn tool(&self, name: &ToolName) -> Option<&ToolSpec> {
        self.tools.get(name).or_else(|| self.tools.get(split_name(name.as_str())?.0))
    }

    /// The MCP servers that it declares.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Arc<McpServerSpec>> {
        let tools = self.tools.iter();
        let named = tools.filter_map(|(name, spec)| Some((name, spec.kind.as_ref()?.mcp()?)));
        named.filter(|(name, spec)| name.as_str() == spec.server.name).map(|(_, spec)| &spec.server)
    }

    /// The scenario of its file alone, as it would run without overrides; `None`: it needs them.
    pub(crate) fn without_overrides(&self) -> Option<Self> {
        crate::scenario::check_again(&self.source, self.origin.clone(), &[]).scenario
    }

    /// The flag with this name, if there is one.
    pub fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags.iter().find(|flag| flag.name.as_str() == name)
    }

    /// The warnings for a live or an offline run. A live run needs no script.
    pub fn run_warnings(&self, live: bool) -> impl Iterator<Item = &String> {
        let own = if live { &self.warnings.live } else { &self.warnings.offline };
        self.warnings.every_run.iter().chain(own)
    }
}

/// Warnings about a valid scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScenarioWarnings {
    /// For all runs, such as a role with two seats.
    pub every_run: Vec<String>,
    /// For offline runs only: steps, roles or agents without a scripted reply.
    pub offline: Vec<String>,
    /// For live runs only: flags that nothing in them reads.
    pub live: Vec<String>,
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
    Integer,
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
    /// format; `None`: the file does not say it. The head of a run says what is in force.
    pub ask_again: Option<u32>,
    /// The price, if known; without one the cost is `null`.
    pub prices: Option<Prices>,
    /// Which settings of the gateway's policy for its calls the file leaves to the defaults of a live
    /// model: see [`Scenario::llm_live`].
    pub unset_keys: UnsetLlmKeys,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Tokens of the prompt.
    pub prompt_usd_per_million: f64,
    /// Tokens of the reply.
    pub completion_usd_per_million: f64,
}

/// Default of `max_attempts`.
const MAX_ATTEMPTS: u32 = 4;
/// Waits in milliseconds before attempt 2, 3, …; the last value repeats.
const BACKOFF_MS: [u64; 5] = [500, 1_000, 2_000, 4_000, 8_000];
/// Retries per minute that each caller of the model may always make.
const RETRIES_PER_CALLER: u32 = 2;

impl Scenario {
    /// The gateway's policy for calls of a live model: [`Scenario::llm`], with the defaults of a
    /// live model for keys that the file does not set.
    pub fn llm_live(&self) -> Arc<CallPolicy> {
        self.prepared.live_policy(|| self.with_live_defaults())
    }

    fn with_live_defaults(&self) -> CallPolicy {
        let UnsetLlmKeys { max_attempts, backoff, retry_min, breaker_counts } =
            self.model.unset_keys;
        let mut policy = CallPolicy::clone(&self.llm);
        if max_attempts {
            policy.max_attempts = MAX_ATTEMPTS;
        }
        if backoff {
            policy.backoff = BACKOFF_MS.map(Duration::from_millis).into();
        }
        if let Some(budget) = &mut policy.retry_budget
            && retry_min
        {
            let callers =
                u32::try_from(self.pattern.get().model_callers().len()).unwrap_or(u32::MAX);
            let floor = RETRIES_PER_CALLER.saturating_mul(callers);
            budget.min = floor.max(RetryBudgetLimits::default().min);
        }
        if let Some(breaker) = &mut policy.breaker
            && breaker_counts
        {
            breaker.counts = BreakerCounts::Calls;
        }
        policy
    }
}

/// Data that is computed once per scenario and used in each run. A scenario is not changed once a run was
/// started with it.
#[derive(Default)]
pub struct Prepared {
    /// Of the pattern, such as texts that every call sends. A scenario has one pattern, so one value
    /// is enough; the pattern chooses its type.
    pattern: OnceLock<Arc<dyn Any + Send + Sync>>,
    live_policy: OnceLock<Arc<CallPolicy>>,
}

impl Prepared {
    /// The policy for calls of a live model, which is made if it is not stored yet.
    fn live_policy(&self, make: impl FnOnce() -> CallPolicy) -> Arc<CallPolicy> {
        Arc::clone(self.live_policy.get_or_init(|| Arc::new(make())))
    }

    /// The stored value, or a new one, which is then stored. A value of another type than the first
    /// is never stored.
    pub fn get<T: Any + Send + Sync>(&self, make: impl Fn() -> T) -> Arc<T> {
        let kept = Arc::clone(self.pattern.get_or_init(|| Arc::new(make())));
        kept.downcast().unwrap_or_else(|_| Arc::new(make()))
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

/// The text that a scenario was read from, with the changes made to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourceText {
    /// The text of the file.
    pub text: Arc<str>,
    /// The overrides, as on the command line (`budget.max_rounds=1`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Path of the user's file; `None`: the scenario was shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The texts of the prompt files, by their paths as the scenario writes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_files: BTreeMap<String, Arc<str>>,
}

impl SourceText {
    /// SHA-256 of the file and its prompt files, in hexadecimal. The overrides are not part of it,
    /// but a prompt file that one of them names is.
    pub(crate) fn digest(&self) -> String {
        self.digest_with_prompts(sha256_of_text(&self.text))
    }

    /// A digest of the rest, extended to the prompt files.
    pub(crate) fn digest_with_prompts(&self, rest: String) -> String {
        if self.prompt_files.is_empty() {
            return rest;
        }
        // Digests have one length, so no two scenarios give the same list of them.
        let parts = self.prompt_files.iter().flat_map(|(path, text)| [&**path, &**text]);
        let digests = parts.map(sha256_of_text);
        sha256_of_text(&[rest].into_iter().chain(digests).collect::<String>())
    }
}

/// The spending limits of a run; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// What happens at a spending limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLimit {
    /// The run stops.
    #[default]
    Stop,
    /// The operator is asked whether to extend it.
    Ask,
}

/// Thresholds of one scenario, the same for each of its tools. `None`: no alert.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AlertLimits {
    /// Breaker openings of a tool within a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker_opens_per_minute: Option<u32>,
    /// Share of a tool's attempts of the last minute that failed, from 0 to 1. Only attempts that
    /// the breaker judges count; rejections do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// 95th percentile of the duration of a tool's latest calls, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<u64>,
}

/// What a resumed run does with a call whose attempt was in flight when the run stopped, so that
/// it is not known whether it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InDoubt {
    /// The attempt is made again.
    Retry,
    /// The operator is asked whether the attempt is made again.
    Ask,
    /// The run stops.
    Stop,
}

/// A condition that has to hold when a run has ended (`[[expect]]`).
#[derive(Debug)]
pub struct Expectation {
    pub that: Condition,
    /// What it means, in one sentence; `None`: the file does not say it.
    pub message: Option<String>,
    /// Its line in the file, from 1.
    pub line: usize,
}

/// Default limit of a reply's tokens: the Messages API requires one and gets this, and a call to
/// any other API reserves it from a token budget.
pub const REPLY_TOKENS: u32 = 4_096;

/// Settings of a model's requests. By default nothing is set, and nothing is sent: the provider's
/// own defaults apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuning {
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of one reply. The Messages API needs one: 4,096 where nothing is set.
    pub max_tokens: Option<u32>,
    /// How much a model reasons, in the provider's own words (`low`, `medium`, `high`).
    pub reasoning_effort: Option<String>,
    /// How JSON is requested; `None`: the strictest way that the endpoint supports.
    pub json: Option<JsonMode>,
    /// More keys of the request's body. They replace ours, except `messages`, `model`, `stream`,
    /// `system` and `tools`.
    pub extra: Map<String, Value>,
}

/// A way of requesting JSON. Each way includes the weaker ones: a reply without a contract has no
/// schema and is requested as an object at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JsonMode {
    /// Only in the prompt.
    Text,
    JsonObject,
    /// With the contract's JSON schema.
    JsonSchema,
}

/// Keys of a body that [`Tuning::extra`] may not replace: they hold the request itself.
pub const RESERVED: [&str; 5] = ["messages", "model", "stream", "system", "tools"];

impl Tuning {
    /// The keys of [`Tuning::extra`] that are sent, with their values.
    pub fn extra(&self) -> impl Iterator<Item = (&str, &Value)> {
        let extra = self.extra.iter().map(|(key, value)| (key.as_str(), value));
        extra.filter(|(key, _)| !RESERVED.contains(key))
    }

    /// Whether [`Tuning::extra`] has this key.
    pub fn has_extra(&self, key: &str) -> bool {
        !self.extra.is_empty() && !RESERVED.contains(&key) && self.extra.contains_key(key)
    }
}

/// The price of one model: US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of the prompt.
    pub input: f64,
    /// Tokens of the reply, reasoning included.
    pub output: f64,
    /// Tokens of the prompt that are read from the provider's cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Tokens of the prompt that are written to the provider's cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// A price without separate prices of cached tokens.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cached: None, cache_write: None }
    }
}

/// A role, an agent or a step that calls a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelCaller {
    /// A role of a collaboration.
    Role(RoleName),
    /// An agent of a team or swarm.
    Agent(AgentName),
    Step(ScriptStep),
}

/// The model of one caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAssignment {
    pub caller: ModelCaller,
    /// Name of the model, with or without its provider before a `/`.
    pub model: String,
    /// The key that sets it: `roles.risk_analyst.model`.
    pub place: String,
    /// Set with `--set`, which takes precedence over `--model`.
    pub by_override: bool,
}

/// One kind of repair. Each repair is logged as an event, and the raw reply is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Removes a Markdown code fence around the object.
    Fences,
    /// Removes text before and after the single object of a reply.
    Preface,
    /// Removes `<think>…</think>` before the reply.
    Think,
    /// Accepts other spellings of names and stances: `"GO"`, `"Demand Analyst"` for
    /// `demand_analyst`.
    Case,
    /// Accepts numbers in quotes (`"0.8"`), and reads 11 to 100 as per cent where a number from 0
    /// to 1 is required.
    Numbers,
    /// Removes a comma after the last value of an object or a list.
    Commas,
    /// Accepts a list with one object as that object.
    List,
    /// Accepts an object inside the only key of another one, such as `{"response": {…}}`.
    Wrapper,
    /// Accepts JSON that is written as a text inside JSON: `"{\"agent\": …}"`.
    Encoded,
}

worded! { Repair + ALL {
    Fences = "fences", Preface = "preface", Think = "think", Case = "case", Numbers = "numbers",
    Commas = "commas", List = "list", Wrapper = "wrapper", Encoded = "encoded",
} }

impl Repair {
    /// The repair in words, from its word in an event; an unknown word as it is.
    pub(crate) fn phrase(word: &str) -> &str {
        match Self::ALL.into_iter().find(|repair| repair.word() == word) {
            Some(Self::Fences) => "code fence removed",
            Some(Self::Preface) => "text around the JSON removed",
            Some(Self::Think) => "thinking removed",
            Some(Self::Case) => "spelling changed",
            Some(Self::Numbers) => "number changed",
            Some(Self::Commas) => "comma removed",
            Some(Self::List) => "list around the object removed",
            Some(Self::Wrapper) => "object around the object removed",
            Some(Self::Encoded) => "text read as JSON",
            None if word == FILLED_AGENT => "agent filled in",
            None => word,
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The word in events for the key `agent` of a contribution, which a live run fills in where it is
/// missing. It is not a setting.
pub const FILLED_AGENT: &str = "agent";

/// The repairs that a scenario allows; none by default, as in the source documents.
pub type Repairs = BTreeSet<Repair>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_first_value_of_each_type() {
        let prepared = Prepared::default();
        let first = prepared.get(|| 1_u32);
        assert!(Arc::ptr_eq(&first, &prepared.get(|| 2_u32)));
        assert_eq!(*prepared.get(|| "of another type"), "of another type");
        assert_eq!(*prepared.get(|| 3_u32), 1);
    }
}
