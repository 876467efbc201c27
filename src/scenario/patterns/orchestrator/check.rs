//! The tables of an orchestrator in a file: from tables to the spec, cross-checks, the tools of its
//! workers, its steps in scripts and their plans.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    AggregateSection, LevelRule, LevelRules, LevelTable, OrchestratorBudget, OrchestratorSpec,
    OrchestratorTable, Worker, WorkerTable,
};
use crate::base::name::{FlagName, InputName, ToolName};
use crate::scenario::cel::Condition;
use crate::scenario::check::condition;
use crate::scenario::check::condition::ConditionScope;
use crate::scenario::check::script::{
    ScriptedText, each_item, expect_text, is_filled_in, misspelt_key, report_silent_step,
    report_unknown_name, require_keys, text, warn_wrong_type, with_key,
};
use crate::scenario::check::tools::{asks_by_default, faults, needs_approval, tool_policy};
use crate::scenario::patterns::row::{BoundaryForm, ModelKey, PatternRow, Speakers, ToolUse};
use crate::scenario::people::tool_approval;
use crate::scenario::read::format::tools::fill_table;
use crate::scenario::read::format::{BudgetTable, Pattern, ScenarioFile, ScriptTable};
use crate::scenario::read::names::NamedEntry;
use crate::scenario::read::shape::{FreeTable, NonBlankString, Positioned};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::{TextSpan, TomlTable, TomlValue};
use crate::scenario::read::{ReadContext, closest_name, suggest_name};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::policy::{CallPolicy, RetryOn, SafeMode};
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::tool::{REQUEST_ID, ToolOffer, ToolSpec};
use crate::scenario::tools::{
    AttemptLimit, DeclaredImplementation, KindTable, KnownArguments, tool_kind,
};

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
    outcome: super::OUTCOME_FIELDS,
    boundaries: &[
        BoundaryForm::Word("plan"),
        BoundaryForm::Named("dispatch"),
        BoundaryForm::Word("finalize"),
    ],
    speakers: Speakers::Steps("an orchestrator has no roles"),
    steps: &[(ScriptStep::Plan, PLAN_NAMES), (ScriptStep::Finalize, REPORT_NAMES)],
    check_reply: check_scripted_plan,
    report_silent: self::report_silent,
    models,
    own_tools: worker_tools,
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
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<OrchestratorSpec> {
    if file.workers.entries.is_empty() && !cx.at_key("workers", |cx| cx.has_error_here()) {
        let what = "there are no workers";
        cx.at_key("workers", |cx| cx.error(TextSpan::new(0, 0..0), what, "add [workers.NAME]"));
    }
    let workers: Vec<Option<Worker>> = cx.at_key("workers", |cx| {
        file.workers.entries.iter().map(|entry| worker(entry, file, scope, cx)).collect()
    });
    let table = file.orchestrator.as_ref()?;
    let mut prompt = |key: &str, prompt: &Option<NonBlankString>| {
        let prompt = prompt.as_ref()?;
        let text = cx
            .at_key(&format!("orchestrator.{key}"), |cx| scope.prompt(&prompt.text, prompt.at, cx));
        Some(text)
    };
    let plan_prompt = prompt("plan_prompt", &table.plan_prompt);
    let finalize_prompt = prompt("finalize_prompt", &table.finalize_prompt);
    let (sections, level) = cx.at_key("orchestrator", |cx| {
        cx.at_key("echo", |cx| echo(table, file, cx));
        let sections = cx.at_key("sections", |cx| sections(table, file, cx));
        let level = table
            .level
            .as_ref()
            .and_then(|level| cx.at_key("level", |cx| self::level(level, table, file, scope, cx)));
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
    scope: &TemplateScope<'_>,
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
            fill_table(&table.args, &mut |text, at| scope.value_of(text, at, cx))
        });
        let description = table.description.as_ref()?;
        Some(Worker {
            name: ToolName::from(entry.name.as_str()),
            description: cx
                .at_key("description", |cx| scope.text(&description.text, description.at, cx)),
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
    scope: &TemplateScope<'_>,
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
    let shown = ConditionScope { names: &names, file, scope, of_run: false };
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
    let condition = condition::compile_condition(when, shown, cx)?;
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

/// The tools of the workers. Problems are reported to `cx`.
fn worker_tools(
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Vec<ToolSpec> {
    let workers = file.workers.entries.iter();
    workers.filter_map(|entry| read_worker(entry, file, scope, cx)).collect()
}

fn read_worker(
    entry: &NamedEntry<WorkerTable>,
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ToolSpec> {
    let name = ToolName::from(entry.name.as_str());
    let tools = file.tools.as_ref()?;
    let guarded = tools.named.entries.iter().find(|tool| tool.name == entry.name);
    let limits = match guarded {
        Some(tool) => Some(tool.value.as_ref()?),
        None => None,
    };
    let place = format!("tools.{}", entry.name);
    let policy = match limits {
        Some(table) => cx.at_key(&place, |cx| tool_policy(&entry.name, table, file, scope, cx))?,
        None => own_policy(file),
    };
    let attempts = match limits {
        Some(table) => AttemptLimit::from_retries(&place, table.retries.as_ref()?),
        None => task_attempts(file.budget.as_ref()?),
    };
    let table = entry.value.as_ref()?;
    let answers = declared(table);
    if let Some(second) = limits.map(DeclaredImplementation::from_tool)
        && answers.has_implementation()
        && let Some(at) = second.first()
    {
        let what = format!("`workers.{}` already has an implementation", entry.name);
        cx.at_key(&place, |cx| cx.error(at, what, "remove one of the two"));
    }
    let (place, answers) = match limits.map(DeclaredImplementation::from_tool) {
        Some(second) if !answers.has_implementation() && second.has_implementation() => {
            (place.clone(), second)
        }
        _ => (format!("workers.{}", entry.name), answers),
    };
    let declared: Vec<&str> =
        table.args.table.entries.iter().map(|(key, _)| key.text.as_str()).collect();
    let args = (!table.args.broken).then_some(&declared[..]);
    let args = KnownArguments { names: args, certain: true };
    let kind = cx.at_key(&place, |cx| tool_kind(&answers, &args, &attempts, file, scope, cx))?;
    if kind.is_none() && !cx.at_key(&place, |cx| cx.has_error_here()) {
        cx.at_key(&format!("workers.{}", entry.name), |cx| {
            let what = format!(
                "`{}` has no implementation: its tasks fail with worker_missing",
                entry.name
            );
            cx.warn(entry.at, what, "add one of fixture, http, command and mcp");
        });
    }
    if limits.is_none()
        && let (Some(http), Some(_)) = (&table.http, &kind)
    {
        cx.at_key(&format!("workers.{}.http", entry.name), |cx| {
            let what = "only timeouts of this worker are retried, as in the source document";
            let help = format!("add [tools.{}] with retries = {{ max_attempts = 2 }}", entry.name);
            cx.warn(http.at, what, help);
        });
    }
    let (own, place) = match (&table.approve, limits.and_then(|table| table.approve.as_ref())) {
        (None, Some(key)) => (Some(key), format!("tools.{}", entry.name)),
        (own, _) => (own.as_ref(), format!("workers.{}", entry.name)),
    };
    let approve = cx.at_key(&place, |cx| tool_approval(own, file, scope, cx))?;
    let is_default = limits.is_none_or(|table| table.idempotent.is_not_in_file());
    let idempotent = policy.idempotent && !(is_default && needs_approval(&entry.name, own, file));
    let policy = CallPolicy { idempotent, ..policy };
    Some(ToolSpec {
        name,
        asks_by_default: asks_by_default(kind.as_ref(), own),
        kind,
        policy,
        contract: answers.contract(),
        shared: limits.is_some_and(|table| table.shared),
        faults: match limits {
            Some(table) => {
                cx.at_key(&format!("tools.{}", entry.name), |cx| faults(&table.faults, cx))?
            }
            None => Vec::new(),
        },
        offer: offer(&entry.name, table),
        approve,
        effects: table.effects.or(limits.and_then(|table| table.effects)),
    })
}

/// The worker as a person sees it who has to approve a task: all its arguments, of any type.
fn offer(name: &str, table: &WorkerTable) -> ToolOffer {
    let args = table.args.table.entries.iter();
    let args: Map<String, Value> = args.map(|(key, _)| (key.text.clone(), json!({}))).collect();
    let required: Vec<&String> = args.keys().filter(|key| *key != REQUEST_ID).collect();
    let parameters = json!({ "type": "object", "required": required, "properties": args });
    ToolOffer {
        description: table.description.as_ref().map_or_else(Arc::default, |it| (*it.text).into()),
        parameters: Arc::new(parameters),
        ..ToolOffer::bare(name)
    }
}

/// The implementations that the table of a worker declares.
fn declared(table: &WorkerTable) -> DeclaredImplementation<'_> {
    let kinds = [
        table.fixture.as_ref().map(KindTable::Fixture),
        table.http.as_ref().map(KindTable::Http),
        table.command.as_ref().map(KindTable::Command),
        table.mcp.as_ref().map(KindTable::Mcp),
    ];
    let kinds = kinds.into_iter().flatten().collect();
    DeclaredImplementation { kinds, what: "worker", contract: &table.contract }
}

/// How many attempts a task may have.
fn task_attempts(budget: &BudgetTable) -> AttemptLimit {
    let limit = &budget.max_retries_per_task;
    let of = format!("budget.max_retries_per_task is {}", limit.value.0);
    AttemptLimit { most: limit.value.0 + 1, set: limit.at.text > 0, of }
}

/// The orchestrator's own policy for its workers (orchestrator source document): it retries a
/// timeout without a wait, and nothing else.
fn own_policy(file: &ScenarioFile) -> CallPolicy {
    let retries = file.budget.as_ref().map_or(1, |budget| budget.max_retries_per_task.value.0);
    CallPolicy {
        timeout: None,
        max_attempts: retries + 1,
        backoff: [].into(),
        jitter: false,
        idempotent: true,
        retry_on: RetryOn::Timeout,
        retry_budget: None,
        breaker: None,
        bulkhead: None,
        rate: None,
        safe_mode: SafeMode::OFF,
    }
}

/// Names bound in a condition on an orchestrator's plan.
const PLAN_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "max_tasks", "available_workers"];

/// Names bound in a condition on an orchestrator's report.
const REPORT_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "aggregate", "results"];

/// Reports a plan and a report without a scripted reply.
pub(crate) fn report_silent(file: &ScenarioFile, cx: &mut ReadContext) {
    let Some(table) = &file.orchestrator else { return };
    let steps = [
        (ScriptStep::Plan, "orchestrator.plan_prompt", "plan", &table.plan_prompt),
        (ScriptStep::Finalize, "orchestrator.finalize_prompt", "report", &table.finalize_prompt),
    ];
    for (step, place, what, prompt) in steps {
        if let Some(prompt) = prompt {
            report_silent_step(file, step, place, prompt.at, what, cx);
        }
    }
}

/// Checks the reply of a row.
fn check_scripted_plan(
    row: &ScriptTable,
    reply: &Positioned<FreeTable>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    if row.step.as_ref().is_some_and(|step| step.value == ScriptStep::Plan) {
        cx.at_key("reply", |cx| tasks(&reply.value.table, reply.at, file, cx));
    }
}

/// Checks the plan of an orchestrator.
fn tasks(table: &TomlTable, at: TextSpan, file: &ScenarioFile, cx: &mut ReadContext) {
    let stop = |fault: &str| format!("the run stops with invalid_plan:{fault}");
    match table.get("kind").map(text) {
        Some(ScriptedText::Text("plan") | ScriptedText::FilledIn) => {}
        _ => {
            let (at, help) = match (table.get("kind"), misspelt_key(table, "kind", &["tasks"])) {
                (None, Some(wrong)) => (wrong.at, format!("rename `{}`", wrong.text)),
                (found, _) => {
                    (found.map_or(at, |node| node.at), "write kind = \"plan\"".to_owned())
                }
            };
            let what = format!("a plan needs kind = \"plan\": {}", stop("kind"));
            cx.at_key("kind", |cx| cx.warn(at, what, help));
        }
    }
    require_keys(table, at, &["tasks"], &stop("tasks"), cx);
    with_key(table, "tasks", cx, |node, cx| {
        if matches!(&node.value, TomlValue::List(tasks) if tasks.is_empty()) {
            return;
        }
        each_item(node, &stop("tasks"), cx, |task, cx| {
            let TomlValue::Table(fields) = &task.value else {
                warn_wrong_type(task, "a table", &stop("task_shape"), cx);
                return;
            };
            let keys = ["id", "worker", "args", "critical"];
            require_keys(fields, task.at, &keys, &stop("missing_keys"), cx);
            with_key(fields, "id", cx, |node, cx| expect_text(node, &stop("task_id"), cx));
            with_key(fields, "critical", cx, |node, cx| {
                if !matches!(node.value, TomlValue::Boolean(_)) && !is_filled_in(node) {
                    warn_wrong_type(node, "true or false", &stop("critical"), cx);
                }
            });
            task_of_worker(fields, file, cx);
        });
    });
}

/// Checks the worker of a task, and whether it takes the arguments.
fn task_of_worker(fields: &TomlTable, file: &ScenarioFile, cx: &mut ReadContext) {
    let stop = |fault: &str| format!("the run stops with invalid_plan:{fault}");
    let Some(node) = fields.get("worker") else { return };
    let ScriptedText::Text(name) = text(node) else {
        return with_key(fields, "worker", cx, |node, cx| expect_text(node, &stop("worker"), cx));
    };
    if !file.workers.has(name) {
        let help = cx.suggest(name, file.workers.names());
        let what = format!("`{name}` is not a worker: {}", stop("worker_not_allowed"));
        cx.at_key("worker", |cx| cx.warn(node.at, what, help));
        return;
    }
    let worker = file.workers.entries.iter().find(|entry| entry.name == name);
    let Some(declared) = worker.and_then(|entry| entry.value.as_ref()).map(|table| &table.args)
    else {
        return;
    };
    with_key(fields, "args", cx, |node, cx| {
        let TomlValue::Table(given) = &node.value else {
            return warn_wrong_type(node, "a table", &stop("args"), cx);
        };
        if declared.broken {
            return;
        }
        let fails = format!("the task fails with worker_bad_args:{name}");
        let names = || declared.table.entries.iter().map(|(key, _)| key.text.as_str());
        for (key, _) in given.entries.iter().filter(|(key, _)| key.text != REQUEST_ID) {
            if names().all(|declared| declared != key.text) {
                let help = cx.suggest(&key.text, names());
                let what = format!("`{}` is not an argument of `{name}`: {fails}", key.text);
                cx.at_key(&key.text, |cx| cx.warn(key.at, what, help));
            }
        }
        let names: Vec<&str> = names().filter(|name| *name != REQUEST_ID).collect();
        require_keys(given, node.at, &names, &fails, cx);
    });
}
