//! The settings of an orchestrator (orchestrator source document), their file format, and the
//! fields of the outcome that expectations may use.

pub(crate) mod check;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::name::{FlagName, InputName, ToolName};
use crate::base::time;
use crate::base::time::duration_text;
use crate::scenario::cel::Condition;
use crate::scenario::patterns::row::{LabelledText, LimitField, OutcomeField, Spec};
use crate::scenario::people::{ApproveKey, Effects};
use crate::scenario::read::ReadContext;
use crate::scenario::read::names::{IdentName, NamedEntries, ResultKey};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, FreeTable, NonBlankString, ObjectSchema, Positioned, Requirement,
    join_doc_lines, record,
};
use crate::scenario::read::tree::TomlNode;
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::script::{PromptTemplate, ScriptStep};
use crate::scenario::spec::tool::{FieldKind, ToolSpec};
use crate::scenario::tools::command::CommandTable;
use crate::scenario::tools::fixture::FixtureTable;
use crate::scenario::tools::http::HttpTable;
use crate::scenario::tools::mcp::McpToolTable;

/// `pattern = "orchestrator"`.
#[derive(Debug)]
pub struct OrchestratorSpec {
    /// Limits as in the orchestrator source document.
    pub budget: OrchestratorBudget,
    /// The catalogue that the planner sees, in the file's order: the policy allowlist.
    pub workers: Vec<Worker>,
    /// System prompt of the planner, without the required reply format.
    pub plan_prompt: PromptTemplate,
    /// System prompt of the report at the end.
    pub finalize_prompt: PromptTemplate,
    /// Inputs that the planner sees and that are copied to the aggregate, such as `report_date`.
    pub echo: Vec<InputName>,
    /// The sections of the aggregate, in the file's order, each with its worker.
    pub sections: Vec<AggregateSection>,
    /// The level of the aggregate (`health` in the orchestrator source document).
    pub level: LevelRules,
}

/// Limits of an orchestrator run, named as in the orchestrator source document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OrchestratorBudget {
    /// Maximum number of tasks in a plan.
    pub max_tasks: u32,
    /// Maximum number of concurrent tasks, at least 1.
    pub max_parallel: u32,
    /// Retries of a task after a timeout of its worker.
    pub max_retries_per_task: u32,
    /// Maximum number of attempts, all tasks together.
    pub max_dispatches: u32,
    /// Timeout of one attempt, in the log in milliseconds.
    #[serde(rename = "task_timeout_ms", with = "time::as_millis")]
    #[schemars(with = "u64")]
    pub task_timeout: Duration,
    /// Time limit of the whole run, in the log in milliseconds; pauses are not counted.
    #[serde(rename = "max_ms", with = "time::as_millis")]
    #[schemars(with = "u64")]
    pub max_seconds: Duration,
}

/// A worker of the catalogue. The tool with the same name implements it.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Its name, as the planner uses it.
    pub name: ToolName,
    /// What it does, shown to the planner.
    pub description: String,
    /// Its arguments, each with a description for the planner.
    pub args: Map<String, Value>,
    /// A flag that takes it off the execution list while it is off.
    pub flag: Option<FlagName>,
}

/// A named part of the aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateSection {
    /// Its name, such as `payments`.
    pub name: String,
    /// The worker whose result it holds.
    pub worker: ToolName,
}

/// The rules for the level of the aggregate. The first rule that holds wins, so the most severe
/// comes first.
#[derive(Debug)]
pub struct LevelRules {
    /// Its name in the aggregate, such as `health`.
    pub name: String,
    /// The rules in order.
    pub rules: Arc<[LevelRule]>,
    /// The level if no rule holds.
    pub otherwise: String,
}

/// One rule of the level.
#[derive(Debug)]
pub struct LevelRule {
    /// The level of the aggregate if the rule holds.
    pub level: String,
    /// The condition: CEL over the sections, `inputs` and `failed_tasks`.
    pub when: Condition,
}

impl OrchestratorSpec {
    /// The worker with this name.
    pub fn worker(&self, name: &str) -> Option<&Worker> {
        self.workers.iter().find(|worker| worker.name.as_str() == name)
    }

    /// The workers that have a flag, with their flags.
    pub fn worker_flags(&self) -> BTreeMap<&ToolName, &FlagName> {
        self.workers
            .iter()
            .filter_map(|worker| Some((&worker.name, worker.flag.as_ref()?)))
            .collect()
    }
}

impl Spec for OrchestratorSpec {
    fn name(&self) -> &'static str {
        "orchestrator"
    }

    fn max_time(&self) -> Duration {
        self.budget.max_seconds
    }

    fn size(&self) -> (u64, &'static str) {
        (self.workers.len() as u64, "worker")
    }

    fn limits(&self) -> Vec<LimitField> {
        let budget = &self.budget;
        let retries = budget.max_retries_per_task;
        vec![
            LimitField::new("budget.max_tasks", "Max tasks", budget.max_tasks),
            LimitField::new("budget.max_parallel", "Parallel tasks", budget.max_parallel),
            LimitField::new("budget.max_retries_per_task", "Retries per task", retries),
            LimitField::new("budget.max_dispatches", "Max dispatches", budget.max_dispatches),
            LimitField::max_seconds(budget.max_seconds),
        ]
    }

    fn preview(&self) -> Vec<LabelledText> {
        let budget = &self.budget;
        let limits = format!(
            "{} tasks, {} concurrent, {} dispatches, {} s; timeout {} per attempt, {} retries",
            budget.max_tasks,
            budget.max_parallel,
            budget.max_dispatches,
            budget.max_seconds.as_secs(),
            duration_text(budget.task_timeout),
            budget.max_retries_per_task,
        );
        let workers = self.workers.iter().map(|worker| match &worker.flag {
            None => format!("{}: {}", worker.name, worker.description),
            Some(flag) => {
                format!("{}, while flag {flag} is on: {}", worker.name, worker.description)
            }
        });
        let mut lines = vec![LabelledText::new("limits", limits)];
        lines.extend(LabelledText::list("workers", workers));
        lines
    }

    /// Checks `plan`, `dispatch:ATTEMPT:TASK` and `finalize`. Any task name passes: the planner
    /// makes the names.
    fn check_boundary(&self, at: &str, tools: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let mut parts = at.splitn(3, ':');
        match (parts.next(), parts.next().map(str::parse::<u32>), parts.next()) {
            (Some("plan" | "finalize"), None, None) => Ok(()),
            (Some("dispatch"), Some(Ok(attempt)), Some(_)) => {
                let most = self.budget.max_dispatches;
                if attempt > most {
                    return Err(format!("never reached: budget.max_dispatches is {most}"));
                }
                let attempts = self.workers.iter().filter_map(|it| tools.get(&it.name));
                let most = attempts.map(|tool| tool.policy.max_attempts).max().unwrap_or(1);
                if attempt > most {
                    return Err(format!("never reached: a task has at most {most} attempts"));
                }
                Ok(())
            }
            _ => Err("never reached here; use plan, dispatch:1:TASK, finalize".to_owned()),
        }
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        vec![ModelCaller::Step(ScriptStep::Plan), ModelCaller::Step(ScriptStep::Finalize)]
    }

    fn attempt_time(&self, _: &ToolName) -> Option<Duration> {
        Some(self.budget.task_timeout)
    }
}

record! {
    /// The prompts of the planner and of the report, and how results are aggregated.
    struct OrchestratorTable => {
        /// System prompt of the planner; the required reply format is appended. `{{input}}` is
        /// filled in.
        plan_prompt: NonBlankString = needed_or_file,
        /// System prompt of the report at the end. `{{input}}` is filled in.
        finalize_prompt: NonBlankString = needed_or_file,
        /// The model that plans. Default: that of [model].
        plan_model: NonBlankString = optional,
        /// The model that writes the report. Default: that of [model].
        finalize_model: NonBlankString = optional,
        /// Inputs that the planner sees and that are copied to the aggregate.
        echo: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
        /// The sections of the aggregate by name: the worker whose result each one holds.
        sections: NamedEntries<NonBlankString, IdentName> = default(NamedEntries::default()),
        /// The level of the aggregate: [orchestrator.level] with name = "health" and otherwise =
        /// "green", or other words.
        level: LevelTable = needed,
    }
}

record! {
    /// The level of the aggregate: the level of the first rule that holds.
    struct LevelTable => {
        /// Its name in the aggregate, such as health.
        name: NonBlankString = needed,
        /// The level if no rule holds.
        otherwise: NonBlankString = needed,
        /// The rules, the most severe first.
        rules: BoundedList<LevelRuleTable, 0, 100> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// A rule of the level.
    struct LevelRuleTable => {
        /// The level of the aggregate if this rule holds.
        level: NonBlankString = needed,
        /// The condition: CEL over the sections, failed_tasks, and the inputs in `echo`. A result
        /// may lack a field, so guard it with `has()`.
        when: NonBlankString = needed,
    }
}

record! {
    /// A worker that the planner may give tasks to. Exactly one of fixture, http, command and
    /// mcp implements it.
    struct WorkerTable => {
        /// What it does, shown to the planner.
        description: NonBlankString = needed,
        /// Its arguments, each with a description for the planner.
        args: FreeTable = default(FreeTable::default()),
        /// A flag that takes it off the execution list while it is off.
        flag: NonBlankString = optional,
        /// Whether its tasks need approval: true, false, or when, and who approves.
        approve: Positioned<ApproveKey> = optional,
        /// What a task does. Default: write for a program or a request, read otherwise.
        effects: Effects = optional,
        /// Results that are listed in this file.
        fixture: Positioned<FixtureTable> = optional,
        /// An HTTP request whose response is the result.
        http: Positioned<HttpTable> = optional,
        /// A program whose output is the result.
        command: Positioned<CommandTable> = optional,
        /// A tool of an MCP server.
        mcp: Positioned<McpToolTable> = optional,
        /// Keys that a result must have, each with its type.
        contract: NamedEntries<FieldKind, ResultKey> = default(NamedEntries::default()),
    }
}

/// The fields, in the order of an outcome.
pub(crate) const OUTCOME_FIELDS: &[OutcomeField] = &[
    OutcomeField::new("answer", "string|null", "The report. With success."),
    OutcomeField::new("details", "any", "What was expected of a refused plan, and what came."),
    OutcomeField::new("raw_plan", "any", "The plan that was refused."),
    OutcomeField::new("plan", "array", "The tasks of the plan."),
    OutcomeField::new(
        "failed_critical",
        "array",
        "The critical tasks that failed and stopped the run.",
    ),
    OutcomeField::new(
        "aggregate",
        "object",
        "The results of the workers by section, and the level.",
    ),
    OutcomeField::new("trace", "array", "Each task that has ended: attempts, status, stop reason."),
    OutcomeField::new("history", "array", "The same tasks with their results."),
    OutcomeField::new(
        "unfinished",
        "array",
        "Tasks that were running or had not started when the run was stopped.",
    ),
];
