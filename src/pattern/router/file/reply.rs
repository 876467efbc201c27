//! Checks the scripted classifications of a router.

use crate::scenario::check::scripted_reply::{
    ScriptedText, each_item, expect_text, is_filled_in, require_keys, text, warn_wrong_type,
    with_key,
};
use crate::scenario::file::format::{ScenarioFile, ScriptTable};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::{FreeTable, Positioned};
use crate::scenario::file::tree::{TomlNode, TomlTable, TomlValue};
use crate::scenario::spec::script::ScriptStep;

/// Checks the reply of a row.
pub(super) fn check(
    row: &ScriptTable,
    reply: &Positioned<FreeTable>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    if row.step.as_ref().is_none_or(|step| step.value != ScriptStep::Classify) {
        return;
    }
    let table = &reply.value.table;
    cx.at_key("reply", |cx| {
        let keys = ["route", "confidence", "reason"];
        require_keys(table, reply.at, &keys, &stop("missing_keys"), cx);
        with_key(table, "route", cx, |node, cx| route(node, file, cx));
        with_key(table, "confidence", cx, |node, cx| confidence(node, "confidence_type", cx));
        with_key(table, "reason", cx, |node, cx| expect_text(node, &stop("reason"), cx));
        with_key(table, "alternatives", cx, |node, cx| {
            each_item(node, &stop("alternatives"), cx, |entry, cx| {
                let TomlValue::Table(fields) = &entry.value else {
                    return warn_wrong_type(entry, "a table", &stop("alternative"), cx);
                };
                alternative(fields, entry, cx);
            });
        });
    });
}

fn stop(fault: &str) -> String {
    format!("the run stops with invalid_route:{fault}")
}

fn route(node: &TomlNode, file: &ScenarioFile, cx: &mut ReadContext) {
    let ScriptedText::Text(name) = text(node) else {
        return expect_text(node, &stop("route"), cx);
    };
    let routes = file.router.as_ref().map(|table| &table.routes);
    if let Some(routes) = routes.filter(|routes| !routes.has(name)) {
        let help = cx.suggest(name, routes.names());
        let what = format!("`{name}` is not a route: the run stops with route_denied:{name}");
        cx.warn(node.at, what, help);
    }
}

fn alternative(fields: &TomlTable, entry: &TomlNode, cx: &mut ReadContext) {
    require_keys(fields, entry.at, &["route", "confidence"], &stop("alternative"), cx);
    with_key(fields, "route", cx, |node, cx| expect_text(node, &stop("alternative"), cx));
    with_key(fields, "confidence", cx, |node, cx| confidence(node, "alternative", cx));
}

fn confidence(node: &TomlNode, fault: &str, cx: &mut ReadContext) {
    let number = match node.value {
        TomlValue::Number(number) => number,
        TomlValue::Integer(Some(number)) => number as f64,
        _ if is_filled_in(node) => return,
        _ => return warn_wrong_type(node, "a number from 0 to 1", &stop(fault), cx),
    };
    if !(0.0..=1.0).contains(&number) {
        let what = format!("{number} is not from 0 to 1: {}", stop("confidence_range"));
        cx.warn(node.at, what, "write a number from 0 to 1");
    }
}
