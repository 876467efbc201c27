//! The pattern `observed`: another program, which is only watched. No file has it: `watch` and `listen` make its
//! scenario.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::PatternSpec;
use super::row::{BoundaryForm, LabelledText, LimitField, Spec};
use crate::base::name::ToolName;
use crate::scenario::cel::Condition;
use crate::scenario::people::{Effects, People, ToolApproval};
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::{InjectedFault, ToolSpec};
use crate::scenario::spec::{ModelCaller, OnLimit, SpendingLimits};
use crate::scenario::{Scenario, ScenarioOrigin, load};

/// `pattern = "observed"`.
pub struct ObservedSpec {
    /// The program and its arguments; empty: it was not started here.
    pub command: Vec<String>,
    /// The limits of a program that is guarded; `None`: it is only watched.
    pub guard: Option<GuardLimits>,
    /// What the run reads: the pattern knows its type.
    source: Mutex<Option<Box<dyn Any + Send>>>,
}

impl fmt::Debug for ObservedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedSpec").field("command", &self.command).finish_non_exhaustive()
    }
}

impl ObservedSpec {
    /// What the run reads; `None`: a run reads it already.
    pub(crate) fn source(&self) -> Option<Box<dyn Any + Send>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A program of somebody else.
#[derive(Clone, Debug, Default)]
pub struct ObservedProgram {
    /// Its name, for lists.
    pub name: String,
    /// The program and its arguments; empty: it was not started here.
    pub command: Vec<String>,
    /// The limits of a program that is guarded; `None`: it is only watched.
    pub guard: Option<GuardLimits>,
}

/// What a guarded program may use.
#[derive(Clone, Debug, Default)]
pub struct GuardLimits {
    pub spending: SpendingLimits,
    pub on_limit: OnLimit,
    /// Most calls of models.
    pub max_calls: Option<u64>,
    /// The time in which its calls are sent.
    pub max_time: Option<Duration>,
    /// How often the same request may be sent, or the same tool called with the same result.
    pub repeats: Option<u64>,
    /// Tools that poll: `repeats` does not count their calls.
    pub polling: Vec<String>,
    /// Whether requests that are not read are refused where something has to be counted.
    pub refuses_unread: bool,
    /// How models are protected; the first rule whose name fits counts.
    pub models: Vec<GuardRule>,
    /// How tools are protected; the first rule whose name fits counts.
    pub tools: Vec<ToolRule>,
    /// The people who may be asked, and the rules about calls of tools.
    pub people: Arc<People>,
    /// Conditions: the run pauses before a call for which one of them holds.
    pub pauses: Vec<Arc<Condition>>,
    /// Breakpoints: `call:3`, `model:openai/*`, or `tool:refund`, after a reply that calls the tool.
    pub pause_at: Vec<String>,
}

/// The names in a condition of a pause: provider, model, number of the call, its estimated tokens, its last message, the
/// names of its tools.
pub const PAUSE_NAMES: &[&str] = &["provider", "model", "number", "tokens", "prompt", "tools"];

/// How models or tools with this name are protected.
#[derive(Clone, Debug)]
pub struct GuardRule {
    /// `provider/model`, or the name of a tool; `*` stands for any text.
    pub name: String,
    pub policy: Arc<CallPolicy>,
    pub faults: Vec<InjectedFault>,
}

impl GuardRule {
    /// Whether a model or a tool has this name.
    pub fn fits(&self, model: &str) -> bool {
        let mut parts = self.name.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = model.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = rest.get(at + part.len()..).unwrap_or_default();
        }
        rest.ends_with(last)
    }
}

/// How tools with this name are protected.
#[derive(Clone, Debug)]
pub struct ToolRule {
    pub guard: GuardRule,
    /// What a call does; `None`: not said.
    pub effects: Option<Effects>,
    /// When its calls need approval; `None`: only where a rule says so.
    pub approve: Option<Arc<ToolApproval>>,
}

impl GuardLimits {
    /// The rule for a tool.
    pub fn tool_rule(&self, name: &str) -> Option<&ToolRule> {
        self.tools.iter().find(|rule| rule.guard.fits(name))
    }

    /// Whether a call of a tool may need approval, so that none may be executed unasked.
    pub fn asks_about_tools(&self) -> bool {
        !self.people.rules.is_empty() || self.tools.iter().any(|rule| rule.approve.is_some())
    }
}

/// The scenario of one run of a program that reads this source.
pub(crate) fn scenario(program: &ObservedProgram, source: Box<dyn Any + Send>) -> Option<Scenario> {
    let ObservedProgram { name, command, guard } = program.clone();
    // What all scenarios have, with the usual values.
    let blank = load(BLANK, ScenarioOrigin::Shipped("observed"), &[]).ok()?;
    let goal = match command.is_empty() {
        true => name.clone(),
        false => command.join(" "),
    };
    let limits = guard.clone().unwrap_or_default();
    let (spending, on_limit, people) = (limits.spending, limits.on_limit, limits.people);
    let spec = ObservedSpec { command, guard, source: Mutex::new(Some(source)) };
    Some(Scenario {
        name: name.as_str().into(),
        title: name,
        goal: goal.into(),
        spending,
        on_limit,
        people,
        pattern: PatternSpec::Observed(spec),
        ..blank
    })
}

const BLANK: &str = r#"
title = "observed"
pattern = "team"
goal = "observed"

[team]
root = "observed"

[agents.observed]
description = "observed"
members = ["inner"]
instruction = "observed"

[agents.inner]
description = "inner"
instruction = "inner"

[[script]]
agent = "observed"
text = "observed"

[[script]]
agent = "inner"
text = "inner"
"#;

/// The ids of the boundaries of a guarded program: the number of the call.
pub(super) const BOUNDARY: BoundaryForm = BoundaryForm::Numbered("call");

/// A program may run for years.
const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

impl Spec for ObservedSpec {
    fn name(&self) -> &'static str {
        "observed"
    }

    fn max_time(&self) -> Duration {
        NO_LIMIT
    }

    fn size(&self) -> (u64, &'static str) {
        (1, "program")
    }

    fn limits(&self) -> Vec<LimitField> {
        Vec::new()
    }

    fn preview(&self) -> Vec<LabelledText> {
        vec![LabelledText::new("program", self.command.join(" "))]
    }

    fn check_boundary(&self, at: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let is_named = at.starts_with("model:") || at.starts_with("tool:");
        if self.is_guarded() && (is_named || BOUNDARY.fits(at)) {
            return Ok(());
        }
        Err("another program plays the run: it has no boundaries".to_owned())
    }

    fn is_observed(&self) -> bool {
        true
    }

    fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_program_has_a_scenario() {
        let command = vec!["python".to_owned(), "desk.py".to_owned()];
        let program = ObservedProgram { name: "desk".to_owned(), command, guard: None };
        let scenario = scenario(&program, Box::new(())).expect("a scenario");
        assert_eq!((&*scenario.title, &*scenario.goal), ("desk", "python desk.py"));
        assert_eq!(scenario.run_warnings(false).count(), 0);
    }
}
