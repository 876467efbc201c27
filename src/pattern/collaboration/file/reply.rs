//! Checks the scripted replies of roles.

use crate::scenario::check::scripted_reply::{
    ScriptedText, each_item, expect_text, is_filled_in, require_keys, text, warn_wrong_type,
    with_key,
};
use crate::scenario::file::format::{ScenarioFile, ScriptTable};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::{FreeTable, Positioned};
use crate::scenario::file::tree::{TextSpan, TomlTable, TomlValue};

/// The three stances (collaboration source document).
pub(super) const STANCES: [&str; 3] = ["go", "caution", "block"];

/// Checks the reply of a row.
pub(super) fn check(
    row: &ScriptTable,
    reply: &Positioned<FreeTable>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    if row.step.is_none() {
        cx.at_key("reply", |cx| contribution(row, &reply.value.table, reply.at, file, cx));
    }
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
