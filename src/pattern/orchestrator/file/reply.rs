//! Checks the scripted plans of an orchestrator.

use crate::scenario::check::scripted_reply::{
    ScriptedText, each_item, expect_text, is_filled_in, misspelt_key, require_keys, text,
    warn_wrong_type, with_key,
};
use crate::scenario::file::format::{ScenarioFile, ScriptTable};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::{FreeTable, Positioned};
use crate::scenario::file::tree::{TextSpan, TomlTable, TomlValue};
use crate::scenario::spec::script::ScriptStep;
use crate::scenario::spec::tool::REQUEST_ID;

/// Checks the reply of a row.
pub(super) fn check(
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
