//! What the file format asks of a pattern before there is a scenario ([`PatternRow`]), what the
//! rest of the program asks of its settings ([`Spec`]), and the forms of the ids of boundaries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::base::name::{AgentName, FlagName, PersonName, ToolName};
use crate::scenario::check::script;
use crate::scenario::patterns::agents::{AgentKind, AgentsSpec};
use crate::scenario::read::ReadContext;
use crate::scenario::read::format::{Pattern, ScenarioFile, ScriptTable};
use crate::scenario::read::shape::{FreeTable, NonBlankString, Positioned};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::TextSpan;
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::tool::ToolSpec;
use crate::scenario::tools::agent::OutsideCaller;

/// What a pattern's part of a file may contain, and how it is checked.
pub(crate) struct PatternRow {
    pub pattern: Pattern,
    /// The word for it in files, and the name of its required table.
    pub name: &'static str,
    pub tables: &'static [&'static str],
    /// Those of its other tables that a file must have.
    pub required: &'static [&'static str],
    /// Its keys of `[budget]`, apart from those of all patterns: `max_seconds`, `max_total_tokens`
    /// and `max_cost_usd`.
    pub budget: &'static [&'static str],
    /// The place of a limit that does not belong in `[budget]`; `None` if the key is not one.
    pub misplaced_limit: fn(key: &str) -> Option<String>,
    /// The fields of its outcome, apart from those of all patterns.
    pub outcome: &'static [OutcomeField],
    /// The ids of its boundaries.
    pub boundaries: &'static [BoundaryForm],
    /// Who replies in the rows of the script.
    pub speakers: Speakers,
    /// Names that the conditions of rows without a step may use.
    pub reply_names: &'static [&'static str],
    /// The steps that the model does, each with the names that its conditions may use.
    pub steps: &'static [(ScriptStep, &'static [&'static str])],
    /// Steps that the pattern does not have, each with an error of its own and its help.
    pub refused_steps: &'static [(ScriptStep, &'static str, &'static str)],
    /// Whether the condition of a row is also checked if its step is unknown.
    pub checks_unknown_steps: bool,
    pub check_reply: fn(&ScriptTable, &Positioned<FreeTable>, &ScenarioFile, &mut ReadContext),
    /// Why no call matches a row of the script: the position and the reason.
    pub unreachable: fn(&ScriptTable, &ScenarioFile) -> Option<(TextSpan, String)>,
    /// Reports who has no reply in the script.
    pub report_silent: fn(&ScenarioFile, &mut ReadContext),
    /// The keys that give a caller a model of its own, in the order of the file.
    pub models: for<'f> fn(&'f ScenarioFile) -> Vec<ModelKey<'f>>,
    /// The tools that its own tables declare.
    pub own_tools: fn(&ScenarioFile, &TemplateScope<'_>, &mut ReadContext) -> Vec<ToolSpec>,
    /// The arguments of a tool's calls, if the pattern fixes them.
    pub tool_args: fn(tool: &str) -> Option<&'static [&'static str]>,
    /// Maximum number of attempts of a call that a run may make in spite of the tool's policy;
    /// `None` if the file does not say it.
    pub most_attempts: fn(&ScenarioFile) -> Option<u32>,
    /// How the pattern uses a tool of `[tools]`.
    pub tool_use: fn(&ScenarioFile, tool: &str) -> ToolUse,
    /// Checks its tools together.
    pub check_tools: fn(&BTreeMap<ToolName, ToolSpec>, &ScenarioFile, &mut ReadContext),
    /// The prompts that a step of the model has if the file has none.
    pub default_prompts: &'static [DefaultPrompt],
}

/// A field that a pattern adds to an outcome: for the check of expectations, and the schema of outcomes.
pub(crate) struct OutcomeField {
    pub name: &'static str,
    /// The words for its JSON types, with `|` between them; `any` for all.
    pub types: &'static str,
    /// What it says, and when it is there.
    pub about: &'static str,
}

impl OutcomeField {
    /// A field.
    pub const fn new(name: &'static str, types: &'static str, about: &'static str) -> Self {
        Self { name, types, about }
    }
}

/// The prompt of a step that the model does, if the file has none.
pub(crate) struct DefaultPrompt {
    /// The key of the pattern's table that says who does the step.
    pub step: &'static str,
    /// The key of the prompt in the same table.
    pub key: &'static str,
    pub text: &'static str,
}

/// Who replies in the rows of a script.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speakers {
    /// Roles; a row without a step is a contribution.
    Roles,
    /// Agents; their replies have no step.
    Agents,
    /// Only steps: every row names one. The text says that the pattern has no roles.
    Steps(&'static str),
    /// The pattern does not call the model.
    Nobody,
}

/// How a pattern uses a tool.
pub(crate) enum ToolUse {
    /// It is called, and checked by the pattern.
    Checked,
    Called,
    /// A model calls it if its description fits.
    Offered,
    /// It is never called; with a help text.
    Never(String),
}

/// A key that gives a caller a model of its own.
pub(crate) struct ModelKey<'f> {
    pub caller: ModelCaller,
    /// Its path in the file.
    pub place: String,
    pub model: &'f Option<NonBlankString>,
}

impl<'f> ModelKey<'f> {
    /// The key of a caller at a path of the file.
    pub fn new(
        caller: ModelCaller,
        place: impl Into<String>,
        model: &'f Option<NonBlankString>,
    ) -> Self {
        Self { caller, place: place.into(), model }
    }
}

impl PatternRow {
    /// A pattern with nothing of its own.
    pub const fn new(pattern: Pattern, name: &'static str) -> Self {
        Self {
            pattern,
            name,
            tables: &[],
            required: &[],
            budget: &[],
            misplaced_limit: |_| None,
            outcome: &[],
            boundaries: &[],
            speakers: Speakers::Nobody,
            reply_names: &[],
            steps: &[],
            refused_steps: &[],
            checks_unknown_steps: true,
            check_reply: |_, _, _, _| {},
            unreachable: script::unreachable,
            report_silent: |_, _| {},
            models: |_| Vec::new(),
            own_tools: |_, _, _| Vec::new(),
            tool_args: |_| None,
            most_attempts: |_| Some(0),
            tool_use: |_, _| ToolUse::Never(String::new()),
            check_tools: |_, _, _| {},
            default_prompts: &[],
        }
    }

    /// Whether a file with this pattern may have this table.
    pub fn has(&self, table: &str) -> bool {
        self.name == table || self.tables.contains(&table)
    }

    /// Whether the model does this step.
    pub fn has_step(&self, step: ScriptStep) -> bool {
        self.steps.iter().any(|(own, _)| *own == step)
    }

    /// Whether agents reply in the script.
    pub fn has_agents(&self) -> bool {
        self.speakers == Speakers::Agents
    }
}

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
    fn check_boundary(&self, at: &str, tools: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String>;

    /// The callers of a live model. A role with two seats is listed twice.
    fn model_callers(&self) -> Vec<ModelCaller>;

    /// Its agents, if it is made of agents.
    fn agents(&self) -> Option<&AgentsSpec> {
        None
    }

    /// The callers of a model for which an agent of another program answers.
    fn outside_callers(&self) -> Vec<OutsideCaller> {
        self.agents().map(AgentsSpec::outside).unwrap_or_default()
    }

    /// The callers that call a model in a live run: no agent of another program answers for them.
    fn callers_of_models(&self) -> Vec<ModelCaller> {
        let outside = self.outside_callers();
        let mut callers = self.model_callers();
        callers.retain(|caller| outside.iter().all(|it| it.caller != *caller));
        callers
    }

    /// The people who have a seat, or whom its agents may ask.
    fn called_people(&self) -> BTreeSet<PersonName> {
        let agents = self.agents().into_iter().flat_map(|agents| agents.values());
        let people = agents.flat_map(|agent| match &agent.kind {
            AgentKind::Model(model) => &model.people[..],
            AgentKind::Team(team) => &team.coordinator.people[..],
            AgentKind::Swarm(_) | AgentKind::Person(_) => &[],
        });
        people.cloned().collect()
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

    /// Whether another program plays its runs, with models of its own.
    fn is_observed(&self) -> bool {
        false
    }

    /// Whether the model calls of that program go through the proxy.
    fn is_guarded(&self) -> bool {
        false
    }

    /// Whether its answer cites sources.
    fn cites(&self) -> bool {
        false
    }

    /// The hosts whose pages it reads from the web.
    fn page_hosts(&self) -> &[String] {
        &[]
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

/// A form of ids. Each begins with its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundaryForm {
    /// The word alone: `plan`.
    Word(&'static str),
    /// The word and a number: `round:2`.
    Numbered(&'static str),
    /// The word, a number and a name: `message:2:risk_analyst`.
    Named(&'static str),
    /// The word and two numbers: `turn:3:7`.
    Pair(&'static str),
}

impl BoundaryForm {
    /// Whether the text is an id of this form.
    pub fn fits(self, text: &str) -> bool {
        let mut parts = text.splitn(3, ':');
        match (self, parts.next(), parts.next(), parts.next()) {
            (Self::Word(word), Some(own), None, None) => own == word,
            (Self::Numbered(word), Some(own), Some(nth), None) => own == word && is_number(nth),
            (Self::Named(word), Some(own), Some(nth), Some(name)) => {
                own == word && is_number(nth) && !name.is_empty()
            }
            (Self::Pair(word), Some(own), Some(first), Some(second)) => {
                own == word && is_number(first) && is_number(second)
            }
            _ => false,
        }
    }
}

/// Whether this is a number from 1, as ids spell it: `02` would not equal the run's `2`.
fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|it| it > 0 && it.to_string() == text)
}
