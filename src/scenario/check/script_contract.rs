//! Checks whether a scripted reply keeps the contract of its step. A row may break it on purpose,
//! to show how a run stops, so each problem is a warning that names the stop reason.

use crate::pattern::research::spec::ACTIONS;
use crate::scenario::file::format::{Pattern, ScenarioFile, ScriptTable};
use crate::scenario::file::reader::{ReadContext, closest_name};
use crate::scenario::file::shape::{FreeTable, Positioned};
use crate::scenario::file::tree::{TextSpan, TomlNode, TomlTable, TomlValue};
use crate::scenario::spec::model::ScriptStep;
use crate::scenario::spec::tool::REQUEST_ID;

/// The three stances (collaboration source document).
pub const STANCES: [&str; 3] = ["go", "caution", "block"];

/// Checks the reply of a row.
pub(crate) fn check_reply(
    row: &ScriptTable,
    reply: &Positioned<FreeTable>,
    pattern: Pattern,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let table = &reply.value.table;
    let step = row.step.as_ref().map(|step| step.value);
    cx.at_key("reply", |cx| match (pattern, step) {
        (Pattern::Collaboration, None) => contribution(row, table, reply.at, file, cx),
        (Pattern::Orchestrator, Some(ScriptStep::Plan)) => tasks(table, reply.at, file, cx),
        (Pattern::Research, Some(ScriptStep::Plan)) => steps(table, reply.at, cx),
        (Pattern::Research, Some(ScriptStep::Notes)) => notes(table, reply.at, cx),
        (Pattern::Research, Some(ScriptStep::Synthesize)) => synthesis(table, reply.at, cx),
        _ => {}
    });
}

fn contribution(
    row: &ScriptTable,
    table: &TomlTable,
    at: TextSpan,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let stop = |fault: &str| format!("the run stops with invalid_contribution:{fault}");
    require_keys(
        table,
        at,
        &["stance", "summary", "confidence", "actions"],
        &stop("missing_keys"),
        cx,
    );
    with_key(table, "agent", cx, |node, cx| match (text(node), &row.role) {
        (ScriptedText::Text(agent), Some(role)) if agent != role.text && file.roles.has(agent) => {
            let stop = stop(&format!("agent_mismatch:{}", role.text));
            cx.warn(node.at, format!("the row is for `{}`: {stop}", role.text), "remove `agent`");
        }
        (ScriptedText::Text(agent), _) if !file.roles.has(agent) => {
            let stop = stop(&format!("agent_not_allowed:{agent}"));
            let help = cx.suggest(agent, file.roles.names());
            cx.warn(node.at, format!("`{agent}` is not a role: {stop}"), help);
        }
        (ScriptedText::Missing, _) => {
            warn_wrong_type(node, "the name of a role", &stop("agent"), cx)
        }
        _ => {}
    });
    with_key(table, "stance", cx, |node, cx| match text(node) {
        ScriptedText::Text(stance) if !STANCES.contains(&stance) => {
            let help = cx.suggest(stance, STANCES);
            cx.warn(node.at, format!("`{stance}` is not a stance: {}", stop("stance")), help);
        }
        ScriptedText::Missing => warn_wrong_type(node, "go, caution or block", &stop("stance"), cx),
        _ => {}
    });
    with_key(table, "summary", cx, |node, cx| expect_text(node, &stop("summary"), cx));
    with_key(table, "confidence", cx, |node, cx| match node.value {
        TomlValue::Integer(Some(0 | 1)) => {}
        TomlValue::Number(number) if (0.0..=1.0).contains(&number) => {}
        TomlValue::Integer(_) | TomlValue::Number(_) => {
            warn_wrong_type(node, "a number from 0 to 1", &stop("confidence_range"), cx);
        }
        _ if is_filled_in(node) => {}
        _ => warn_wrong_type(node, "a number from 0 to 1", &stop("confidence_type"), cx),
    });
    with_key(table, "actions", cx, |node, cx| {
        each_item(node, &stop("actions"), cx, |action, cx| {
            expect_text(action, &stop("action_item"), cx)
        });
    });
}

/// Checks the plan of an orchestrator.
fn tasks(table: &TomlTable, at: TextSpan, file: &ScenarioFile, cx: &mut ReadContext) {
    let stop = |fault: &str| format!("the run stops with invalid_plan:{fault}");
    match table.get("kind").map(text) {
        Some(ScriptedText::Text("plan") | ScriptedText::FilledIn) => {}
        _ => {
            let at = table.get("kind").map_or(at, |node| node.at);
            let what = format!("a plan needs kind = \"plan\": {}", stop("kind"));
            cx.at_key("kind", |cx| cx.warn(at, what, "write kind = \"plan\""));
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

/// Checks a research plan; its steps are always the same.
fn steps(table: &TomlTable, at: TextSpan, cx: &mut ReadContext) {
    let plan = |fault: &str| format!("the run stops with invalid_plan:{fault}");
    let stop = |fault: &str| format!("the run stops with invalid_step:{fault}");
    require_keys(table, at, &["steps"], &plan("steps"), cx);
    with_key(table, "steps", cx, |node, cx| {
        let mut wanted = ACTIONS.iter();
        each_item(node, &plan("steps"), cx, |step, cx| {
            let wanted = wanted.next();
            let TomlValue::Table(fields) = &step.value else {
                return warn_wrong_type(step, "a table", &stop("not_object"), cx);
            };
            require_keys(fields, step.at, &["id"], &stop("id"), cx);
            require_keys(fields, step.at, &["action"], &stop("action"), cx);
            require_keys(fields, step.at, &["args"], &stop("args"), cx);
            with_key(fields, "id", cx, |node, cx| expect_text(node, &stop("id"), cx));
            with_key(fields, "action", cx, |node, cx| match (text(node), wanted) {
                (ScriptedText::Text(action), Some(wanted)) if action == *wanted => {}
                (ScriptedText::Text(action), _) => {
                    let what =
                        format!("`{action}` is not the step here: {}", plan("step_sequence"));
                    let help = wanted.map_or_else(
                        || format!("remove it: a plan has {} steps", ACTIONS.len()),
                        |wanted| format!("write {wanted:?}"),
                    );
                    cx.warn(node.at, what, help);
                }
                (ScriptedText::Missing, _) => {
                    warn_wrong_type(node, "a string", &stop("action"), cx)
                }
                (ScriptedText::FilledIn, _) => {}
            });
        });
        if matches!(&node.value, TomlValue::List(steps) if !steps.is_empty())
            && let Some(missing) = wanted.next()
        {
            let what = format!("`{missing}` is missing: {}", plan("step_sequence"));
            cx.warn(node.at, what, format!("the steps are {}", ACTIONS.join(", ")));
        }
    });
}

/// Checks the notes of a page; the list may be empty.
fn notes(table: &TomlTable, at: TextSpan, cx: &mut ReadContext) {
    let stop = "a note is a claim and a quote from its page";
    require_keys(table, at, &["notes"], stop, cx);
    with_key(table, "notes", cx, |node, cx| {
        if matches!(&node.value, TomlValue::List(notes) if notes.is_empty()) {
            return;
        }
        each_item(node, stop, cx, |note, cx| {
            let TomlValue::Table(fields) = &note.value else {
                return warn_wrong_type(note, "a table", stop, cx);
            };
            require_keys(fields, note.at, &["claim", "quote"], stop, cx);
            with_key(fields, "claim", cx, |node, cx| expect_text(node, stop, cx));
            with_key(fields, "quote", cx, |node, cx| expect_text(node, stop, cx));
        });
    });
}

/// Checks the answer of research, as one text or in sentences.
fn synthesis(table: &TomlTable, at: TextSpan, cx: &mut ReadContext) {
    let stop = |fault: &str| format!("the run stops with invalid_answer:{fault}");
    if let Some(node) = table.get("sentences") {
        let is_list = matches!(&node.value, TomlValue::List(sentences) if !sentences.is_empty());
        if !is_list && !is_filled_in(node) {
            cx.at_key("sentences", |cx| {
                warn_wrong_type(node, "a list of sentences", &stop("empty"), cx)
            });
        }
        return;
    }
    require_keys(table, at, &["answer"], &stop("empty"), cx);
    with_key(table, "answer", cx, |node, cx| expect_text(node, &stop("empty"), cx));
    // A mark such as [n1] in the text is a citation, too.
    let cites =
        |node: &TomlNode| matches!(text(node), ScriptedText::Text(answer) if answer.contains('['));
    if !table.get("answer").is_none_or(|node| is_filled_in(node) || cites(node)) {
        require_keys(table, at, &["citations"], &stop("citations"), cx);
    }
}

/// What a value says, as far as the file shows it.
enum ScriptedText<'n> {
    /// This text, trimmed.
    Text(&'n str),
    /// An input or a fact will be filled in.
    FilledIn,
    /// Not a string, or an empty one.
    Missing,
}

fn text(node: &TomlNode) -> ScriptedText<'_> {
    match &node.value {
        TomlValue::Text(text) if text.contains("{{") => ScriptedText::FilledIn,
        TomlValue::Text(text) if !text.trim().is_empty() => ScriptedText::Text(text.trim()),
        _ => ScriptedText::Missing,
    }
}

fn is_filled_in(node: &TomlNode) -> bool {
    matches!(text(node), ScriptedText::FilledIn)
}

fn expect_text(node: &TomlNode, stop: &str, cx: &mut ReadContext) {
    if matches!(text(node), ScriptedText::Missing) {
        warn_wrong_type(node, "a string that is not empty", stop, cx);
    }
}

/// Warns of a value of the wrong type, with the consequence.
fn warn_wrong_type(node: &TomlNode, wanted: &str, stop: &str, cx: &mut ReadContext) {
    cx.warn(node.at, format!("expected {wanted}, found {}: {stop}", node.describe()), "");
}

/// Reads the value under a key, if there is one.
fn with_key(
    table: &TomlTable,
    key: &str,
    cx: &mut ReadContext,
    read: impl FnOnce(&TomlNode, &mut ReadContext),
) {
    if let Some(node) = table.get(key) {
        cx.at_key(key, |cx| read(node, cx));
    }
}

/// Reads the items of a list that must not be empty.
fn each_item(
    node: &TomlNode,
    stop: &str,
    cx: &mut ReadContext,
    mut read: impl FnMut(&TomlNode, &mut ReadContext),
) {
    match &node.value {
        TomlValue::List(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                cx.at_index(index, |cx| read(item, cx));
            }
        }
        _ if is_filled_in(node) => {}
        TomlValue::List(_) => cx.warn(node.at, format!("the list is empty: {stop}"), ""),
        _ => warn_wrong_type(node, "a list", stop, cx),
    }
}

/// Warns of missing keys, with the consequence.
fn require_keys(table: &TomlTable, at: TextSpan, keys: &[&str], stop: &str, cx: &mut ReadContext) {
    for key in keys.iter().filter(|key| table.get(key).is_none()) {
        let others = table.entries.iter().map(|(other, _)| other.text.as_str());
        let near = closest_name(key, others.filter(|other| !keys.contains(other)));
        let help = near.map_or_else(String::new, |near| format!("rename `{near}`"));
        cx.at_key(key, |cx| cx.warn(at, format!("`{key}` is missing: {stop}"), help));
    }
}
