//! A valid scenario: everything that a run needs, with all defaults applied. Templates
//! (`{{input}}`) are filled in already.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::alert::AlertLimits;
use super::expectation::Expectation;
use super::in_doubt::InDoubt;
use super::model_assignment::ModelAssignment;
use super::policy::{CallPolicy, UnsetLlmKeys};
use super::prepared::Prepared;
use super::repair::Repairs;
use super::script::Script;
use super::source_text::SourceText;
use super::spending_limits::SpendingLimits;
use super::tool::{InjectedFault, ToolSpec};
use super::tuning::Tuning;
use crate::base::name::{FlagName, InputName, ScenarioName, ToolName};
use crate::scenario::patterns::PatternSpec;

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
    /// where somebody can answer, and stops otherwise.
    pub in_doubt: Option<InDoubt>,
    /// What the reader of the file warned of.
    pub warnings: ScenarioWarnings,
    /// Data that is computed once for all runs.
    pub prepared: Prepared,
}

impl Scenario {
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
