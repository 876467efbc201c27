//! Checks the results that fixtures of the two research tools give.

use crate::pattern::research::spec::{READ, SEARCH};
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::tree::{TextSpan, TomlNode, TomlTable, TomlValue};

/// Checks the envelope of results of the two research tools (research source document): a status,
/// and with `ok` the data. A row may break it on purpose to show the consequence, so problems are
/// warnings.
pub(crate) fn check_envelopes(file: &ScenarioFile, cx: &mut ReadContext) {
    let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
    for entry in named.filter(|entry| [SEARCH, READ].contains(&&*entry.name)) {
        let fixture = entry.value.as_ref().and_then(|table| table.fixture.as_ref());
        let rows = fixture.iter().flat_map(|fixture| &fixture.value.rows);
        for (index, row) in rows.flat_map(|rows| rows.0.iter().enumerate()) {
            let Some(result) = &row.value.result else { continue };
            cx.at_key(&format!("tools.{}.fixture.rows", entry.name), |cx| {
                cx.at_index(index, |cx| {
                    // An empty result stands for any envelope.
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
