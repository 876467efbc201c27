//! Checks the scripted replies of research: its plan, the notes on a page, and the answer.

use crate::pattern::research::spec::ACTIONS;
use crate::scenario::check::scripted_reply::{
    ScriptedText, each_item, expect_text, is_filled_in, require_keys, text, warn_wrong_type,
    with_key,
};
use crate::scenario::file::format::ScriptTable;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::{FreeTable, Positioned};
use crate::scenario::file::tree::{TextSpan, TomlNode, TomlTable, TomlValue};
use crate::scenario::spec::script::ScriptStep;

/// Checks the reply of a row.
pub(super) fn check(row: &ScriptTable, reply: &Positioned<FreeTable>, cx: &mut ReadContext) {
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
