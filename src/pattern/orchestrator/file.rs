//! Cross-checks between the tables of an orchestrator scenario.

mod outcome_fields;
pub(crate) mod reply;
pub(crate) mod script;
pub(crate) mod table;
pub(crate) mod workers;

use crate::scenario::file::format::Pattern;
use crate::scenario::file::reader::{closest_name, suggest_name};
use crate::scenario::pattern_row::{ModelKey, PatternRow, Speakers, ToolUse};
use crate::scenario::spec::boundary_form::BoundaryForm;
use crate::scenario::spec::model_assignment::ModelCaller;
use crate::scenario::spec::script::ScriptStep;

use crate::base::name::{FlagName, InputName, ToolName};
use crate::pattern::orchestrator::file::table::{LevelTable, OrchestratorTable, WorkerTable};
use crate::pattern::orchestrator::spec::{
    AggregateSection, LevelRule, LevelRules, OrchestratorBudget, OrchestratorSpec, Worker,
};
use crate::scenario::check::condition_check;
use crate::scenario::check::condition_check::ConditionScope;
use crate::scenario::check::unknown_name::report_unknown_name;
use crate::scenario::condition::Condition;
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::format_budget::BudgetTable;
use crate::scenario::file::format_tools::fill_table;
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::file::tree::TextSpan;

/// What a file of this pattern may contain.
pub(crate) const ROW: PatternRow = PatternRow {
    tables: &["workers"],
    // A planner needs a worker.
    required: &["workers"],
    budget: &[
        "max_tasks",
        "max_parallel",
        "max_retries_per_task",
        "max_dispatches",
        "task_timeout_seconds",
    ],
    outcome: outcome_fields::FIELDS,
    boundaries: &[
        BoundaryForm::Word("plan"),
        BoundaryForm::Named("dispatch"),
        BoundaryForm::Word("finalize"),
    ],
    speakers: Speakers::Steps("an orchestrator has no roles"),
    steps: &[(ScriptStep::Plan, script::PLAN_NAMES), (ScriptStep::Finalize, script::REPORT_NAMES)],
    check_reply: reply::check,
    report_silent: script::report_silent,
    models,
    own_tools: workers::tools,
    tool_use: |file, tool| {
        ToolUse::Never(match closest_name(tool, file.workers.names()) {
            Some(_) => suggest_name(tool, file.workers.names()),
            None => "an orchestrator calls its workers and llm".to_owned(),
        })
    },
    ..PatternRow::new(Pattern::Orchestrator, "orchestrator")
};

fn models(file: &ScenarioFile) -> Vec<ModelKey<'_>> {
    let Some(table) = &file.orchestrator else { return Vec::new() };
    vec![
        ModelKey::new(
            ModelCaller::Step(ScriptStep::Plan),
            "orchestrator.plan_model",
            &table.plan_model,
        ),
        ModelKey::new(
            ModelCaller::Step(ScriptStep::Finalize),
            "orchestrator.finalize_model",
            &table.finalize_model,
        ),
    ]
}

/// Builds the orchestrator of a file. Problems are reported to `cx`.
pub(crate) fn orchestrator(
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<OrchestratorSpec> {
    if file.workers.entries.is_empty() && !cx.at_key("workers", |cx| cx.has_error_here()) {
        let what = "there are no workers";
        cx.at_key("workers", |cx| cx.error(TextSpan::new(0, 0..0), what, "add [workers.NAME]"));
    }
    let workers: Vec<Option<Worker>> = cx.at_key("workers", |cx| {
        file.workers.entries.iter().map(|entry| worker(entry, file, filling, cx)).collect()
    });
    let table = file.orchestrator.as_ref()?;
    let mut prompt = |key: &str, prompt: &Option<NonBlankString>| {
        let prompt = prompt.as_ref()?;
        let text = cx.at_key(&format!("orchestrator.{key}"), |cx| {
            filling.prompt(&prompt.text, prompt.at, cx)
        });
        Some(text)
    };
    let plan_prompt = prompt("plan_prompt", &table.plan_prompt);
    let finalize_prompt = prompt("finalize_prompt", &table.finalize_prompt);
    let (sections, level) = cx.at_key("orchestrator", |cx| {
        cx.at_key("echo", |cx| echo(table, file, cx));
        let sections = cx.at_key("sections", |cx| sections(table, file, cx));
        let level = table.level.as_ref().and_then(|level| {
            cx.at_key("level", |cx| self::level(level, table, file, filling, cx))
        });
        (sections, level)
    });
    Some(OrchestratorSpec {
        budget: budget(file.budget.as_ref()?),
        workers: workers.into_iter().collect::<Option<_>>()?,
        plan_prompt: plan_prompt?,
        finalize_prompt: finalize_prompt?,
        echo: table.echo.0.iter().map(|input| InputName::from(input.text.as_str())).collect(),
        sections,
        level: level?,
    })
}

fn budget(table: &BudgetTable) -> OrchestratorBudget {
    OrchestratorBudget {
        max_tasks: table.max_tasks.0,
        max_parallel: table.max_parallel.0,
        max_retries_per_task: table.max_retries_per_task.value.0,
        max_dispatches: table.max_dispatches.0,
        task_timeout: table.task_timeout_seconds.0,
        max_seconds: table.max_seconds(25),
    }
}

fn worker(
    entry: &NamedEntry<WorkerTable>,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<Worker> {
    cx.at_key(&entry.name, |cx| {
        let table = entry.value.as_ref()?;
        if let Some(flag) = &table.flag
            && !file.flags.has(&flag.text)
        {
            cx.at_key("flag", |cx| report_unknown_name(flag, "a flag", file.flags.names(), cx));
        }
        let args = cx.at_key("args", |cx| {
            fill_table(&table.args, &mut |text, at| filling.value_of(text, at, cx))
        });
        let description = table.description.as_ref()?;
        Some(Worker {
            name: ToolName::from(entry.name.as_str()),
            description: cx
                .at_key("description", |cx| filling.text(&description.text, description.at, cx)),
            args,
            flag: table.flag.as_ref().map(|flag| FlagName::from(flag.text.as_str())),
        })
    })
}

fn echo(table: &OrchestratorTable, file: &ScenarioFile, cx: &mut ReadContext) {
    for (index, input) in table.echo.0.iter().enumerate() {
        cx.at_index(index, |cx| {
            if !file.inputs.has(&input.text) {
                report_unknown_name(input, "an input", file.inputs.names(), cx);
            } else if PAYLOAD.contains(&input.text.as_str()) {
                let what = format!("the planner already sees a field `{}`", input.text);
                cx.error(input.at, what, "give the input another name");
            }
        });
    }
}

/// Names that the planner's and the aggregate's own fields have.
const PAYLOAD: [&str; 4] = ["goal", "max_tasks", "available_workers", FAILED];
const FAILED: &str = "failed_tasks";

/// Reserved words of CEL: a condition could not name a section that is called so.
const CEL_WORDS: [&str; 14] = [
    "bool",
    "bytes",
    "double",
    "false",
    "in",
    "int",
    "list",
    "map",
    "null",
    "null_type",
    "string",
    "true",
    "type",
    "uint",
];

fn sections(
    table: &OrchestratorTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Vec<AggregateSection> {
    let mut sections = Vec::new();
    for entry in &table.sections.entries {
        cx.at_key(&entry.name, |cx| {
            let name = entry.name.as_str();
            if ["inputs", FAILED].contains(&name) || CEL_WORDS.contains(&name) {
                let what = format!("`{name}` is reserved in conditions");
                cx.error(entry.at, what, "choose another name");
            } else if table.echo.0.iter().any(|input| input.text == name) {
                let what = format!("`{name}` is already an input in orchestrator.echo");
                cx.error(entry.at, what, "choose another name");
            }
            let Some(worker) = &entry.value else { return };
            if !file.workers.has(&worker.text) {
                report_unknown_name(worker, "a worker", file.workers.names(), cx);
            }
            let worker = ToolName::from(worker.text.as_str());
            sections.push(AggregateSection { name: entry.name.clone(), worker });
        });
    }
    sections
}

fn level(
    level: &LevelTable,
    table: &OrchestratorTable,
    file: &ScenarioFile,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<LevelRules> {
    let sections: Vec<&str> = table.sections.names().collect();
    if let Some(name) = &level.name {
        let repeated = table.echo.0.iter().any(|input| input.text == name.text);
        if repeated || name.text == FAILED || sections.contains(&name.text.as_str()) {
            let what = format!("the aggregate already has a field `{}`", name.text);
            cx.at_key("name", |cx| cx.error(name.at, what, "choose another name"));
        }
    }
    let names: Vec<&str> = sections.into_iter().chain(["inputs", FAILED]).collect();
    let shown = ConditionScope { names: &names, file, filling, of_run: false };
    let rules: Vec<Option<LevelRule>> = level
        .rules
        .0
        .iter()
        .enumerate()
        .map(|(index, rule)| {
            let place = |cx: &mut ReadContext, when| rule_condition(when, table, &shown, cx);
            let when = rule.when.as_ref().and_then(|when| {
                cx.at_key("rules", |cx| {
                    cx.at_index(index, |cx| cx.at_key("when", |cx| place(cx, when)))
                })
            });
            Some(LevelRule { level: rule.level.as_ref()?.text.clone(), when: when? })
        })
        .collect();
    Some(LevelRules {
        name: level.name.as_ref()?.text.clone(),
        rules: rules.into_iter().collect::<Option<_>>()?,
        otherwise: level.otherwise.as_ref()?.text.clone(),
    })
}

/// Compiles the condition of a rule. Of the inputs it may only use those in `echo`.
fn rule_condition(
    when: &NonBlankString,
    table: &OrchestratorTable,
    shown: &ConditionScope<'_>,
    cx: &mut ReadContext,
) -> Option<Condition> {
    let condition = condition_check::compile_condition(when, shown, cx)?;
    let repeated = || table.echo.0.iter().map(|input| input.text.as_str());
    let strange = condition.names().into_iter().find_map(|name| match name.path[..] {
        ["inputs", field, ..] if !repeated().any(|input| input == field) => {
            Some((field.to_owned(), name.at, name.at + "inputs.".len() + field.len()))
        }
        _ => None,
    });
    if let Some((field, from, to)) = strange {
        let at = cx.inner_span(when.at, from, to);
        let what = format!("`{field}` is not in orchestrator.echo");
        cx.error(at, what, "rules see only the inputs in orchestrator.echo: add it there");
        return None;
    }
    Some(condition)
}
