//! From the messages of a server to tools and results. They are read as JSON, and not as types of rmcp,
//! so that one part that is not known does not spoil the others.

use std::collections::HashSet;

use rmcp::model::ServerResult;
use serde_json::{Map, Value, json};

use super::McpResult;
use crate::base::visible::{visible_lines, visible_within};
use crate::log::event::kind::{AttemptFailed, FailureClass};
use crate::log::event::question::check_fields;
use crate::log::event::tool::OfferedTool;
use crate::tool::link::LinkFailures;
use crate::tool::redact_json;

/// Most characters of the text of a tool that says that it failed.
const ERROR_CHARS: usize = 4_000;
/// Most characters of a name, an address or a type of a part that is no text.
const PART_CHARS: usize = 200;

/// A page of the tools that a server offers.
pub(super) struct ToolPage {
    pub(super) tools: Vec<OfferedTool>,
    /// Where the next page begins, if there is one.
    pub(super) cursor: Option<String>,
}

/// Reads a page. Tools without a name are left out.
///
/// # Errors
/// It is no page.
pub(super) fn tool_page(
    result: ServerResult,
    failures: &LinkFailures,
) -> Result<ToolPage, Box<AttemptFailed>> {
    let mut result = as_json(result, failures);
    let cursor = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    let Some(Value::Array(tools)) = result.get_mut("tools").map(Value::take) else {
        let what = "answered tools/list without a list of tools";
        return Err(failures.failure(FailureClass::BadResponse, what, "Is it an MCP server?"));
    };
    Ok(ToolPage { tools: tools.into_iter().filter_map(offered_tool).collect(), cursor })
}

fn as_json(result: ServerResult, failures: &LinkFailures) -> Value {
    let value = serde_json::to_value(result).unwrap_or_default();
    match failures.redactor.has_no_secrets() {
        true => value,
        false => redact_json(value, &failures.redactor),
    }
}

fn offered_tool(mut tool: Value) -> Option<OfferedTool> {
    let name = text_at(&tool, "/name").filter(|name| !name.trim().is_empty())?.to_owned();
    let description = ["/description", "/title", "/annotations/title"];
    let description = description.iter().find_map(|at| text_at(&tool, at));
    let description = description.unwrap_or_default().to_owned();
    let reads_only = tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true));
    let parameters = object_schema(tool.get_mut("inputSchema").map(Value::take));
    let result = tool.get_mut("outputSchema").map(Value::take).filter(Value::is_object);
    Some(OfferedTool { name, description, parameters, result, reads_only })
}

fn text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The schema if it is one of an object, else that of any object.
fn object_schema(schema: Option<Value>) -> Value {
    match schema {
        Some(schema) if schema.get("type").and_then(Value::as_str) == Some("object") => schema,
        _ => json!({ "type": "object" }),
    }
}

/// Adds the tools of a page whose names are new, up to `most` tools.
pub(super) fn add_tools(tools: &mut Vec<OfferedTool>, page: Vec<OfferedTool>, most: usize) {
    let mut names: HashSet<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    for tool in page {
        if tools.len() == most {
            return;
        }
        if names.insert(tool.name.clone()) {
            tools.push(tool);
        }
    }
}

/// Reads the result of a call. `schema`: that of its structured part, if the tool lists one.
///
/// # Errors
/// The tool says that it failed, or its result does not fit the schema.
pub(super) fn call_result(
    result: ServerResult,
    tool: &str,
    schema: Option<&Value>,
    failures: &LinkFailures,
) -> Result<McpResult, Box<AttemptFailed>> {
    let bad = |what: &str| {
        let what = format!("{what} of {}", visible_within(tool, PART_CHARS));
        failures.failure(FailureClass::BadResponse, &what, "Fix the server.")
    };
    let mut result = as_json(result, failures);
    let kind = text_at(&result, "/resultType").unwrap_or("complete");
    if kind != "complete" {
        return Err(bad("answered with a task, which roundtable does not offer, to a call"));
    }
    let parts = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(parts)) => parts,
        None | Some(Value::Null) if result.is_object() => Vec::new(),
        _ => return Err(bad("answered without content to a call")),
    };
    let text = parts.iter().map(part_text).collect::<Vec<_>>().join("\n");
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(AttemptFailed::new(FailureClass::Rejected, error_text(&text, tool, failures)));
    }
    let structured = match &mut result {
        Value::Object(fields) => fields.remove("structuredContent"),
        _ => None,
    };
    if let Some(schema) = schema {
        let Some(structured) = &structured else {
            return Err(bad("answered without the structured result that it lists to a call"));
        };
        check_fields(schema, structured, "field").map_err(|why| {
            bad(&format!("gave a structured result that does not fit its schema ({why}) to a call"))
        })?;
    }
    Ok(McpResult { text, structured })
}

/// The text of a tool that says that it failed, cut and visible.
fn error_text(text: &str, tool: &str, failures: &LinkFailures) -> String {
    let text = failures.redactor.redact(text.trim());
    if text.is_empty() {
        let tool = visible_within(tool, PART_CHARS);
        return format!("{tool} of the MCP server {} failed and says no more", failures.name());
    }
    let text = visible_lines(&text);
    match text.char_indices().nth(ERROR_CHARS - 1) {
        Some((end, _)) if text.chars().nth(ERROR_CHARS).is_some() => {
            format!("{}…", text.get(..end).unwrap_or_default())
        }
        _ => text.into_owned(),
    }
}

/// A part of a result: its text, or one line that says what it is.
fn part_text(part: &Value) -> String {
    let Some(fields) = part.as_object() else { return "[unknown part]".to_owned() };
    match text_of(fields, "type") {
        "text" => text_of(fields, "text").to_owned(),
        kind @ ("image" | "audio") => {
            let size = base64_size(text_of(fields, "data"));
            bracketed(&[kind, text_of(fields, "mimeType")], &format!(", {}", short_size(size)))
        }
        "resource" => {
            let empty = Map::new();
            let resource = fields.get("resource").and_then(Value::as_object).unwrap_or(&empty);
            if let Some(text) = resource.get("text").and_then(Value::as_str) {
                return text.to_owned();
            }
            let size = short_size(base64_size(text_of(resource, "blob")));
            let uri = visible_within(text_of(resource, "uri"), PART_CHARS);
            bracketed(&["resource", text_of(resource, "mimeType")], &format!(", {size}: {uri}"))
        }
        "resource_link" => {
            let size = fields.get("size").and_then(Value::as_u64);
            let size = size.map(|size| format!(", {}", short_size(size))).unwrap_or_default();
            let uri = visible_within(text_of(fields, "uri"), PART_CHARS);
            let name = text_of(fields, "name");
            bracketed(&["resource", name, text_of(fields, "mimeType")], &format!("{size}: {uri}"))
        }
        kind => bracketed(&["unknown part", kind], ""),
    }
}

fn text_of<'f>(fields: &'f Map<String, Value>, name: &str) -> &'f str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn bracketed(words: &[&str], rest: &str) -> String {
    let words = words.iter().filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| visible_within(word, PART_CHARS)).collect();
    format!("[{}{rest}]", words.join(" "))
}

/// Bytes of data in base64.
fn base64_size(data: &str) -> u64 {
    let digits = data.trim_end_matches('=').len() as u64;
    digits * 3 / 4
}

/// A size in decimal units, as file managers have it: `12.4 kB`.
fn short_size(bytes: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = bytes.saturating_mul(10).saturating_add(unit / 2) / unit;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", tenths(1_000)),
        _ => format!("{} MB", tenths(1_000_000)),
    }
}
