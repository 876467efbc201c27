//! Checks whether a scripted reply keeps the contract of its step. A row may break it on purpose,
//! to show how a run stops, so each problem is a warning that names the stop reason.

use super::format::{File, Pattern, ScriptTable};
use super::model::ScriptStep;
use super::reader::{Reader, closest};
use super::research::ACTIONS;
use super::shape::{At, Free};
use super::tree::{Node, Span, Table, Tree};

/// The three stances (collaboration source document).
pub const STANCES: [&str; 3] = ["go", "caution", "block"];

/// Checks the reply of a row.
pub(super) fn judge(
    row: &ScriptTable,
    reply: &At<Free>,
    pattern: Pattern,
    file: &File,
    cx: &mut Reader,
) {
    let table = &reply.value.table;
    let step = row.step.as_ref().map(|step| step.value);
    cx.within("reply", |cx| match (pattern, step) {
        (Pattern::Collaboration, None) => contribution(row, table, reply.at, file, cx),
        (Pattern::Orchestrator, Some(ScriptStep::Plan)) => tasks(table, reply.at, file, cx),
        (Pattern::Research, Some(ScriptStep::Plan)) => steps(table, reply.at, cx),
        (Pattern::Research, Some(ScriptStep::Notes)) => notes(table, reply.at, cx),
        (Pattern::Research, Some(ScriptStep::Synthesize)) => synthesis(table, reply.at, cx),
        _ => {}
    });
}

fn contribution(row: &ScriptTable, table: &Table, at: Span, file: &File, cx: &mut Reader) {
    let stop = |fault: &str| format!("the run stops with invalid_contribution:{fault}");
    needed(table, at, &["stance", "summary", "confidence", "actions"], &stop("missing_keys"), cx);
    each(table, "agent", cx, |node, cx| match (text(node), &row.role) {
        (Known::Said(agent), Some(role)) if agent != role.text && file.roles.has(agent) => {
            let stop = stop(&format!("agent_mismatch:{}", role.text));
            cx.warn(node.at, format!("the row is for `{}`: {stop}", role.text), "remove `agent`");
        }
        (Known::Said(agent), _) if !file.roles.has(agent) => {
            let stop = stop(&format!("agent_not_allowed:{agent}"));
            let help = cx.among(agent, file.roles.names());
            cx.warn(node.at, format!("`{agent}` is not a role: {stop}"), help);
        }
        (Known::Not, _) => other(node, "the name of a role", &stop("agent"), cx),
        _ => {}
    });
    each(table, "stance", cx, |node, cx| match text(node) {
        Known::Said(stance) if !STANCES.contains(&stance) => {
            let help = cx.among(stance, STANCES);
            cx.warn(node.at, format!("`{stance}` is not a stance: {}", stop("stance")), help);
        }
        Known::Not => other(node, "go, caution or block", &stop("stance"), cx),
        _ => {}
    });
    each(table, "summary", cx, |node, cx| says(node, &stop("summary"), cx));
    each(table, "confidence", cx, |node, cx| match node.value {
        Tree::Whole(Some(0 | 1)) => {}
        Tree::Number(number) if (0.0..=1.0).contains(&number) => {}
        Tree::Whole(_) | Tree::Number(_) => {
            other(node, "a number from 0 to 1", &stop("confidence_range"), cx);
        }
        _ if is_filled_in(node) => {}
        _ => other(node, "a number from 0 to 1", &stop("confidence_type"), cx),
    });
    each(table, "actions", cx, |node, cx| {
        items(node, &stop("actions"), cx, |action, cx| says(action, &stop("action_item"), cx));
    });
}

/// Checks the plan of an orchestrator.
fn tasks(table: &Table, at: Span, file: &File, cx: &mut Reader) {
    let stop = |fault: &str| format!("the run stops with invalid_plan:{fault}");
    match table.get("kind").map(text) {
        Some(Known::Said("plan") | Known::Later) => {}
        _ => {
            let at = table.get("kind").map_or(at, |node| node.at);
            let what = format!("a plan needs kind = \"plan\": {}", stop("kind"));
            cx.within("kind", |cx| cx.warn(at, what, "write kind = \"plan\""));
        }
    }
    needed(table, at, &["tasks"], &stop("tasks"), cx);
    each(table, "tasks", cx, |node, cx| {
        if matches!(&node.value, Tree::List(tasks) if tasks.is_empty()) {
            return;
        }
        items(node, &stop("tasks"), cx, |task, cx| {
            let Tree::Table(fields) = &task.value else {
                other(task, "a table", &stop("task_shape"), cx);
                return;
            };
            let keys = ["id", "worker", "args", "critical"];
            needed(fields, task.at, &keys, &stop("missing_keys"), cx);
            each(fields, "id", cx, |node, cx| says(node, &stop("task_id"), cx));
            each(fields, "critical", cx, |node, cx| {
                if !matches!(node.value, Tree::Truth(_)) && !is_filled_in(node) {
                    other(node, "true or false", &stop("critical"), cx);
                }
            });
            task_of_worker(fields, file, cx);
        });
    });
}

/// Checks the worker of a task, and whether it takes the arguments.
fn task_of_worker(fields: &Table, file: &File, cx: &mut Reader) {
    let stop = |fault: &str| format!("the run stops with invalid_plan:{fault}");
    let Some(node) = fields.get("worker") else { return };
    let Known::Said(name) = text(node) else {
        return each(fields, "worker", cx, |node, cx| says(node, &stop("worker"), cx));
    };
    if !file.workers.has(name) {
        let help = cx.among(name, file.workers.names());
        let what = format!("`{name}` is not a worker: {}", stop("worker_not_allowed"));
        cx.within("worker", |cx| cx.warn(node.at, what, help));
        return;
    }
    let worker = file.workers.entries.iter().find(|entry| entry.name == name);
    let Some(declared) = worker.and_then(|entry| entry.value.as_ref()).map(|table| &table.args)
    else {
        return;
    };
    each(fields, "args", cx, |node, cx| {
        let Tree::Table(given) = &node.value else {
            return other(node, "a table", &stop("args"), cx);
        };
        if declared.broken {
            return;
        }
        let fails = format!("the task fails with worker_bad_args:{name}");
        let names = || declared.table.entries.iter().map(|(key, _)| key.text.as_str());
        for (key, _) in given.entries.iter().filter(|(key, _)| key.text != REQUEST_ID) {
            if names().all(|declared| declared != key.text) {
                let help = cx.among(&key.text, names());
                let what = format!("`{}` is not an argument of `{name}`: {fails}", key.text);
                cx.within(&key.text, |cx| cx.warn(key.at, what, help));
            }
        }
        let names: Vec<&str> = names().filter(|name| *name != REQUEST_ID).collect();
        needed(given, node.at, &names, &fails, cx);
    });
}

/// The argument that the program adds itself.
pub(super) const REQUEST_ID: &str = "request_id";

/// Checks a research plan; its steps are always the same.
fn steps(table: &Table, at: Span, cx: &mut Reader) {
    let plan = |fault: &str| format!("the run stops with invalid_plan:{fault}");
    let stop = |fault: &str| format!("the run stops with invalid_step:{fault}");
    needed(table, at, &["steps"], &plan("steps"), cx);
    each(table, "steps", cx, |node, cx| {
        let mut wanted = ACTIONS.iter();
        items(node, &plan("steps"), cx, |step, cx| {
            let wanted = wanted.next();
            let Tree::Table(fields) = &step.value else {
                return other(step, "a table", &stop("not_object"), cx);
            };
            needed(fields, step.at, &["id"], &stop("id"), cx);
            needed(fields, step.at, &["action"], &stop("action"), cx);
            needed(fields, step.at, &["args"], &stop("args"), cx);
            each(fields, "id", cx, |node, cx| says(node, &stop("id"), cx));
            each(fields, "action", cx, |node, cx| match (text(node), wanted) {
                (Known::Said(action), Some(wanted)) if action == *wanted => {}
                (Known::Said(action), _) => {
                    let what =
                        format!("`{action}` is not the step here: {}", plan("step_sequence"));
                    let help = wanted.map_or_else(
                        || format!("remove it: a plan has {} steps", ACTIONS.len()),
                        |wanted| format!("write {wanted:?}"),
                    );
                    cx.warn(node.at, what, help);
                }
                (Known::Not, _) => other(node, "a string", &stop("action"), cx),
                (Known::Later, _) => {}
            });
        });
        if matches!(&node.value, Tree::List(steps) if !steps.is_empty())
            && let Some(missing) = wanted.next()
        {
            let what = format!("`{missing}` is missing: {}", plan("step_sequence"));
            cx.warn(node.at, what, format!("the steps are {}", ACTIONS.join(", ")));
        }
    });
}

/// Checks the notes of a page; the list may be empty.
fn notes(table: &Table, at: Span, cx: &mut Reader) {
    let stop = "a note is a claim and a quote from its page";
    needed(table, at, &["notes"], stop, cx);
    each(table, "notes", cx, |node, cx| {
        if matches!(&node.value, Tree::List(notes) if notes.is_empty()) {
            return;
        }
        items(node, stop, cx, |note, cx| {
            let Tree::Table(fields) = &note.value else { return other(note, "a table", stop, cx) };
            needed(fields, note.at, &["claim", "quote"], stop, cx);
            each(fields, "claim", cx, |node, cx| says(node, stop, cx));
            each(fields, "quote", cx, |node, cx| says(node, stop, cx));
        });
    });
}

/// Checks the answer of research, as one text or in sentences.
fn synthesis(table: &Table, at: Span, cx: &mut Reader) {
    let stop = |fault: &str| format!("the run stops with invalid_answer:{fault}");
    if let Some(node) = table.get("sentences") {
        let is_list = matches!(&node.value, Tree::List(sentences) if !sentences.is_empty());
        if !is_list && !is_filled_in(node) {
            cx.within("sentences", |cx| other(node, "a list of sentences", &stop("empty"), cx));
        }
        return;
    }
    needed(table, at, &["answer"], &stop("empty"), cx);
    each(table, "answer", cx, |node, cx| says(node, &stop("empty"), cx));
    // A mark such as [n1] in the text is a citation, too.
    let cites = |node: &Node| matches!(text(node), Known::Said(answer) if answer.contains('['));
    if !table.get("answer").is_none_or(|node| is_filled_in(node) || cites(node)) {
        needed(table, at, &["citations"], &stop("citations"), cx);
    }
}

/// What a value says, as far as the file shows it.
enum Known<'n> {
    /// This text, trimmed.
    Said(&'n str),
    /// An input or a fact will be filled in.
    Later,
    /// Not a string, or an empty one.
    Not,
}

fn text(node: &Node) -> Known<'_> {
    match &node.value {
        Tree::Text(text) if text.contains("{{") => Known::Later,
        Tree::Text(text) if !text.trim().is_empty() => Known::Said(text.trim()),
        _ => Known::Not,
    }
}

fn is_filled_in(node: &Node) -> bool {
    matches!(text(node), Known::Later)
}

fn says(node: &Node, stop: &str, cx: &mut Reader) {
    if matches!(text(node), Known::Not) {
        other(node, "a string that is not empty", stop, cx);
    }
}

/// Warns of a value of the wrong type, with the consequence.
fn other(node: &Node, wanted: &str, stop: &str, cx: &mut Reader) {
    cx.warn(node.at, format!("expected {wanted}, found {}: {stop}", node.what()), "");
}

/// Reads the value under a key, if there is one.
fn each(table: &Table, key: &str, cx: &mut Reader, read: impl FnOnce(&Node, &mut Reader)) {
    if let Some(node) = table.get(key) {
        cx.within(key, |cx| read(node, cx));
    }
}

/// Reads the items of a list that must not be empty.
fn items(node: &Node, stop: &str, cx: &mut Reader, mut read: impl FnMut(&Node, &mut Reader)) {
    match &node.value {
        Tree::List(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                cx.item(index, |cx| read(item, cx));
            }
        }
        _ if is_filled_in(node) => {}
        Tree::List(_) => cx.warn(node.at, format!("the list is empty: {stop}"), ""),
        _ => other(node, "a list", stop, cx),
    }
}

/// Warns of missing keys, with the consequence.
fn needed(table: &Table, at: Span, keys: &[&str], stop: &str, cx: &mut Reader) {
    for key in keys.iter().filter(|key| table.get(key).is_none()) {
        let others = table.entries.iter().map(|(other, _)| other.text.as_str());
        let near = closest(key, others.filter(|other| !keys.contains(other)));
        let help = near.map_or_else(String::new, |near| format!("rename `{near}`"));
        cx.within(key, |cx| cx.warn(at, format!("`{key}` is missing: {stop}"), help));
    }
}
