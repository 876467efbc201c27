//! What the rest of the program asks a scenario's pattern.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use super::model_assignment::ModelCaller;
use super::policy::CallPolicy;
use super::tool::ToolSpec;
use crate::agents::spec::AgentsSpec;
use crate::base::name::{AgentName, FlagName, ToolName};

/// A pattern's part of a good scenario.
pub trait Spec: Debug + Send + Sync {
    /// The pattern's name in files and on the screen.
    fn name(&self) -> &'static str;

    /// Time limit of the whole run; pauses are not counted.
    fn max_time(&self) -> Duration;

    /// Who or what takes part: how many, and the noun for one of them.
    fn size(&self) -> (u64, &'static str);

    /// The limits that the launch form shows, in its order.
    fn limits(&self) -> Vec<LimitField>;

    /// What the preview of the scenario says about the pattern.
    fn preview(&self) -> Vec<LabelledText>;

    /// Checks that a run can reach the boundary with this id.
    ///
    /// # Errors
    /// Why it is never reached, and which boundaries are.
    fn check_boundary(&self, at: &str, tools: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String>;

    /// The callers of a live model. A role with two seats is listed twice.
    fn model_callers(&self) -> Vec<ModelCaller>;

    /// Its agents, if it is made of agents.
    fn agents(&self) -> Option<&AgentsSpec> {
        None
    }

    /// The agent that only the user talks to: no other agent may consult it.
    fn root(&self) -> Option<&AgentName> {
        None
    }

    /// Messages that follow the goal in the session, in order.
    fn follow_ups(&self) -> &[Arc<str>] {
        &[]
    }

    /// Whether something in a live run reads this flag. Patterns that ask for JSON say the positions
    /// of all flags in their requests.
    fn reads_flag(&self, flag: &FlagName) -> bool {
        let _ = flag;
        true
    }

    /// Whether a run ends with a decision.
    fn decides(&self) -> bool {
        false
    }

    /// Whether its answer cites sources.
    fn cites(&self) -> bool {
        false
    }

    /// Timeout of one attempt of a tool that sets none; `None`: the default for all tools.
    fn attempt_time(&self, _tool: &ToolName) -> Option<Duration> {
        None
    }

    /// The policy of a tool in a run, from the one that the file gives it.
    fn tool_policy(&self, policy: &CallPolicy) -> CallPolicy {
        policy.clone()
    }
}

/// A limit in the launch form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitField {
    /// Its path in a scenario, as `--set` takes it.
    pub path: &'static str,
    /// Its label in the form.
    pub label: &'static str,
    /// Its value in the scenario.
    pub value: u64,
}

impl LimitField {
    /// A limit with this value.
    pub fn new(path: &'static str, label: &'static str, value: impl Into<u64>) -> Self {
        Self { path, label, value: value.into() }
    }

    /// The time limit of the run, which every pattern has.
    pub fn max_seconds(time: Duration) -> Self {
        Self::new("budget.max_seconds", "Max seconds", time.as_secs())
    }
}

/// A line of the preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledText {
    /// Its label; empty where it continues the line before it.
    pub label: &'static str,
    /// Its text.
    pub text: String,
    /// Whether it is of minor interest.
    pub minor: bool,
}

impl LabelledText {
    /// A line with a label.
    pub fn new(label: &'static str, text: impl Into<String>) -> Self {
        Self { label, text: text.into(), minor: false }
    }

    /// Lines of which only the first has the label.
    pub fn list(
        label: &'static str,
        texts: impl Iterator<Item = String>,
    ) -> impl Iterator<Item = Self> {
        texts.enumerate().map(move |(at, text)| Self::new(if at == 0 { label } else { "" }, text))
    }
}
