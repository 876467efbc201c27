//! What the file format asks of a pattern before there is a scenario: each pattern's `file` fills in
//! a row, and the code that all patterns share asks it.

use std::collections::BTreeMap;

use crate::base::name::ToolName;
use crate::scenario::check::script_limits;
use crate::scenario::file::format::{Pattern, ScenarioFile, ScriptTable};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::{FreeTable, NonBlankString, Positioned};
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::boundary_form::BoundaryForm;
use crate::scenario::spec::model_assignment::ModelCaller;
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::tool::ToolSpec;

/// What a pattern's part of a file may contain, and how it is checked.
pub(crate) struct PatternRow {
    /// The pattern.
    pub pattern: Pattern,
    /// The word for it in files, and the name of its required table.
    pub name: &'static str,
    /// Its other tables.
    pub tables: &'static [&'static str],
    /// Those of its other tables that a file must have.
    pub required: &'static [&'static str],
    /// Its keys of `[budget]`, apart from those of all patterns: `max_seconds`, `max_total_tokens`
    /// and `max_cost_usd`.
    pub budget: &'static [&'static str],
    /// The place of a limit that does not belong into `[budget]`; `None` if the key is not one.
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
    /// Checks the reply of a row of the script.
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
    /// Its name.
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
    /// The text.
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
    /// It is called.
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
            unreachable: script_limits::unreachable,
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
