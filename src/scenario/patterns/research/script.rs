//! The steps of research in scripts, and the checks of their replies (plan, notes, answer) and of
//! the results of fixtures.

use super::StepMode;
use crate::scenario::check::script;
use crate::scenario::check::script::{
    ScriptedText, each_item, expect_text, is_filled_in, report_silent_step, require_keys, text,
    warn_wrong_type, with_key,
};
use crate::scenario::patterns::research::{ACTIONS, READ, SEARCH};
use crate::scenario::read::ReadContext;
use crate::scenario::read::format::{ScenarioFile, ScriptTable};
use crate::scenario::read::shape::{FreeTable, Positioned};
use crate::scenario::read::tree::{TextSpan, TomlNode, TomlTable, TomlValue};
use crate::scenario::spec::script::ScriptStep;

/// Names bound in a condition on a research plan.
pub(super) const STEPS_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "max_steps"];

/// Names bound in a condition on the notes of a page.
pub(super) const NOTES_NAMES: &[&str] = &[
    "facts",
    "inputs",
    "goal",
    "attempt",
    "flags",
    "question",
    "url",
    "domain",
    "title",
    "body",
    "published_at",
    "notes",
];

/// Names bound in a condition on the answer of research.
pub(super) const SYNTHESIZE_NAMES: &[&str] =
    &["facts", "inputs", "goal", "attempt", "flags", "question", "notes"];

/// The key that says who does a step, with its value.
fn step_mode_key(
    file: &ScenarioFile,
    step: ScriptStep,
) -> Option<(&'static str, &Positioned<StepMode>)> {
    let table = file.research.as_ref()?;
    match step {
        ScriptStep::Plan => Some(("plan", &table.plan)),
        ScriptStep::Notes => Some(("notes", &table.notes)),
        ScriptStep::Synthesize => Some(("answer", &table.answer)),
        _ => None,
    }
}

/// Why no call matches a row: a rule does its step, or it is for an attempt past a limit.
pub(crate) fn unreachable_row(
    row: &ScriptTable,
    file: &ScenarioFile,
) -> Option<(TextSpan, String)> {
    if let Some(step) = &row.step
        && let Some((key, by)) = step_mode_key(file, step.value)
        && by.value != StepMode::Model
        && by.at.text == 0
    {
        return Some((step.at, format!("research.{key}: a rule does it in an offline run")));
    }
    script::unreachable(row, file)
}

/// Reports steps of the model without a scripted reply.
pub(crate) fn report_silent(file: &ScenarioFile, cx: &mut ReadContext) {
    let steps = [
        (ScriptStep::Plan, "plan"),
        (ScriptStep::Notes, "note"),
        (ScriptStep::Synthesize, "answer"),
    ];
    for (step, what) in steps {
        let Some((key, by)) =
            step_mode_key(file, step).filter(|(_, by)| by.value == StepMode::Model)
        else {
            continue;
        };
        if cx.at_key(&format!("research.{key}"), |cx| cx.has_error_here()) {
            continue;
        }
        let question = file.research.as_ref().and_then(|table| table.question.as_ref());
        // A step that the file does not set is reported at the question.
        let at = if by.at.end > 0 { Some(by.at) } else { question.map(|question| question.at) };
        if let Some(at) = at {
            report_silent_step(file, step, &format!("research.{key}"), at, what, cx);
        }
    }
}

/// Checks the reply of a row.
pub(crate) fn check_scripted_reply(
    row: &ScriptTable,
    reply: &Positioned<FreeTable>,
    cx: &mut ReadContext,
) {
    let (table, at) = (&reply.value.table, reply.at);
    cx.at_key("reply", |cx| match row.step.as_ref().map(|step| step.value) {
        Some(ScriptStep::Plan) => steps(table, at, cx),
        Some(ScriptStep::Notes) => notes(table, at, cx),
        Some(ScriptStep::Synthesize) => synthesis(table, at, cx),
        _ => {}
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

/// Checks the envelope of results of the two research tools (research source document): a status,
/// and with `ok` the data. A row may break it on purpose to show the consequence, so problems are
/// warnings.
pub(super) fn check_envelopes(file: &ScenarioFile, cx: &mut ReadContext) {
    let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
    for entry in named.filter(|entry| [SEARCH, READ].contains(&&*entry.name)) {
        let fixture = entry.value.as_ref().and_then(|table| table.fixture.as_ref());
        let rows = fixture.iter().flat_map(|fixture| &fixture.value.rows);
        for (index, row) in rows.flat_map(|rows| rows.0.iter().enumerate()) {
            let Some(result) = &row.value.result else { continue };
            cx.at_key(&format!("tools.{}.fixture.rows", entry.name), |cx| {
                cx.at_index(index, |cx| {
                    // An empty result is not checked.
                    cx.at_key("result", |cx| {
                        match result.broken || result.table.entries.is_empty() {
                            true => {}
                            false => envelope(&result.table, row.at, &entry.name, cx),
                        }
                    });
                });
            });
        }
    }
}

fn envelope(result: &TomlTable, at: TextSpan, tool: &str, cx: &mut ReadContext) {
    let (right, stop) = match tool {
        SEARCH => (
            "{ status = \"ok\", data = { results = [{ url = \"https://…\" }] } }",
            "the run stops with tool_invalid_output:search_sources",
        ),
        _ => (
            "{ status = \"ok\", data = { body = \"…\" } }, or { status = \"error\", error = \"not_found\" }",
            "the page is skipped with tool_invalid_output:read_source",
        ),
    };
    let help = format!("result = {right}");
    let mut odd = |at: TextSpan, what: String, cx: &mut ReadContext| {
        cx.warn(at, format!("{what}: {stop}"), help.as_str());
    };
    let says =
        |node: &TomlNode| matches!(&node.value, TomlValue::Text(text) if !text.trim().is_empty());
    match result.get("status").map(|node| (node, &node.value)) {
        Some((_, TomlValue::Text(status))) if status == "ok" => {
            data(result, at, tool, &mut odd, cx)
        }
        Some((_, TomlValue::Text(status))) if status.contains("{{") => {}
        // A failed page is a valid result; a failed search is not.
        Some((node, TomlValue::Text(status))) if status == "error" && tool == READ => {
            if !result.get("error").is_some_and(says) {
                odd(node.at, "`error` is missing".to_owned(), cx);
            }
        }
        Some((node, _)) => {
            let what = format!("{} is not a status of {tool}", node.describe());
            cx.at_key("status", |cx| odd(node.at, what, cx));
        }
        None => odd(at, "`status` is missing".to_owned(), cx),
    }
}

fn data(
    result: &TomlTable,
    at: TextSpan,
    tool: &str,
    odd: &mut impl FnMut(TextSpan, String, &mut ReadContext),
    cx: &mut ReadContext,
) {
    let data = match result.get("data") {
        Some(TomlNode { value: TomlValue::Table(data), .. }) => data,
        Some(node) => {
            let what = format!("expected a table, found {}", node.describe());
            return cx.at_key("data", |cx| odd(node.at, what, cx));
        }
        None => return odd(at, "`data` is missing".to_owned(), cx),
    };
    let (key, wanted) = if tool == SEARCH { ("results", "a list") } else { ("body", "a text") };
    let fits = |node: &TomlNode| match &node.value {
        TomlValue::List(_) => tool == SEARCH,
        TomlValue::Text(text) => tool == READ || text.contains("{{"),
        _ => false,
    };
    match data.get(key) {
        Some(node) if fits(node) => {}
        Some(node) => {
            let what = format!("expected {wanted}, found {}", node.describe());
            cx.at_key(&format!("data.{key}"), |cx| odd(node.at, what, cx));
        }
        // Missing results and an empty page are valid, but hardly intended.
        None => {
            let what = format!("`{key}` is missing: it counts as empty");
            cx.at_key("data", |cx| cx.warn(at, what, format!("add {key}, {wanted}")));
        }
    }
}
