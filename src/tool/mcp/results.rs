//! From the messages of a server to tools and results. They are read as JSON, and not as types of rmcp,
//! so that one part that is not known does not spoil the others.

use std::collections::HashSet;

use rmcp::model::{ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::McpResult;
use crate::base::json_text::read_lenient;
use crate::base::visible::{visible_lines, visible_within};
use crate::log::event::question::check_fields;
use crate::log::event::tool::OfferedTool;
use crate::log::event::{AttemptFailed, FailureClass};
use crate::tool::link::LinkFailures;
use crate::tool::redact_json;

/// Most characters of the text of a tool that says that it failed.
const ERROR_CHARS: usize = 4_000;
/// The text of a result that has none: an empty one would look like a mistake of this program, and some
/// endpoints of models refuse it.
const NO_CONTENT: &str = "[no content]";
/// Most characters of a name, an address or a type of a part that is no text.
const PART_CHARS: usize = 200;

/// What a request asks for. It decides how its response is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Which versions of the protocol the server speaks (`server/discover`).
    Discovery,
    /// `initialize`.
    Initialize,
    /// Anything else.
    Other,
}

impl Asked {
    /// What this request asks for.
    pub(super) fn by(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::DiscoverRequest(_) => Self::Discovery,
            ClientRequest::InitializeRequest(_) => Self::Initialize,
            _ => Self::Other,
        }
    }
}

/// Reads a message of the server. `asked`: the kind of the request with this id. A result of
/// `server/discover` that is none is read as an error: the server does not know the request.
pub(super) fn read_message(
    json: &[u8],
    asked: impl FnOnce(&RequestId) -> Asked,
) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    let mut message: Value = read_lenient(json)?;
    let id = message.get("id").and_then(|id| RequestId::deserialize(id).ok());
    if let Some(id) = id
        && message.get("method").is_none()
        && let Some(result) = message.get_mut("result")
    {
        match asked(&id) {
            Asked::Discovery => match discovery(result) {
                Some(discovery) => *result = discovery,
                None => return Ok(no_discovery(id, "no result of server/discover")),
            },
            Asked::Initialize => *result = initialized(result),
            Asked::Other => {}
        }
    }
    serde_json::from_value(message)
}

/// The response to `server/discover` of a server that does not know the request. `why`: what it did.
pub(super) fn no_discovery(id: RequestId, why: &str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::invalid_request(why.to_owned(), None), Some(id))
}

/// The result of `server/discover`; `None`: it names no versions. Nothing else in it counts here, so it may
/// have any form.
fn discovery(result: &Value) -> Option<Value> {
    let versions = result.get("supportedVersions").and_then(Value::as_array)?;
    let versions: Vec<&Value> = versions.iter().filter(|version| version.is_string()).collect();
    (!versions.is_empty()).then(|| {
        json!({
            "resultType": "complete", "supportedVersions": versions,
            "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
        })
    })
}

/// The result of `initialize`. Only the version counts here: servers in PHP write `[]` for an empty map, and
/// others leave fields out.
fn initialized(result: &Value) -> Value {
    let unknown = json!({ "name": "", "version": "" });
    json!({
        "protocolVersion": result.get("protocolVersion"),
        "capabilities": { "tools": {} }, "serverInfo": unknown,
    })
}

/// A page of the tools that a server offers.
pub(super) struct ToolPage {
    pub(super) tools: Vec<OfferedTool>,
    /// Where the next page begins, if there is one.
    pub(super) cursor: Option<String>,
}

/// Reads a page. Tools without a name are left out.
pub(super) fn tool_page(
    result: Value,
    failures: &LinkFailures,
) -> Result<ToolPage, Box<AttemptFailed>> {
    let mut result = redacted(result, failures);
    let cursor = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    let Some(Value::Array(tools)) = result.get_mut("tools").map(Value::take) else {
        let what = "answered tools/list without a list of tools";
        return Err(failures.failure(FailureClass::BadResponse, what, "Is it an MCP server?"));
    };
    Ok(ToolPage { tools: tools.into_iter().filter_map(offered_tool).collect(), cursor })
}

fn redacted(result: Value, failures: &LinkFailures) -> Value {
    match failures.redactor.has_no_secrets() {
        true => result,
        false => redact_json(result, &failures.redactor),
    }
}

fn offered_tool(mut tool: Value) -> Option<OfferedTool> {
    let name = text_at(&tool, "/name").filter(|name| !name.trim().is_empty())?.to_owned();
    let description = ["/description", "/title", "/annotations/title"];
    let description = description.iter().find_map(|at| text_at(&tool, at));
    let description = description.unwrap_or_default().to_owned();
    let reads_only = tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true));
    // What a model cannot be sent of it is repaired where the run offers the tool.
    let parameters = tool.get_mut("inputSchema").map(Value::take).filter(Value::is_object);
    let parameters = parameters.unwrap_or_else(|| json!({ "type": "object" }));
    let result = tool.get_mut("outputSchema").map(Value::take).filter(Value::is_object);
    Some(OfferedTool { name, description, parameters, result, reads_only })
}

fn text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
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
pub(super) fn call_result(
    result: Value,
    tool: &str,
    schema: Option<&Value>,
    failures: &LinkFailures,
) -> Result<McpResult, Box<AttemptFailed>> {
    let bad = |what: &str| {
        let what = format!("{what} of {}", visible_within(tool, PART_CHARS));
        failures.failure(FailureClass::BadResponse, &what, "Fix the server.")
    };
    let Value::Object(mut result) = redacted(result, failures) else {
        return Err(bad("answered without content to a call"));
    };
    let kind = result.remove("resultType");
    if kind.is_some_and(|kind| kind != "complete") {
        return Err(bad("answered with a task, which roundtable does not offer, to a call"));
    }
    let is_error = result.remove("isError") == Some(Value::Bool(true));
    let content = result.remove("content").filter(|content| !content.is_null());
    let structured = result.remove("structuredContent").filter(|value| !value.is_null());
    // The first version of the protocol called it so.
    let structured = structured.or_else(|| result.remove("toolResult"));
    result.remove("_meta");
    // Some servers send what their handler returned as it is.
    let is_plain = content.is_none() && structured.is_none() && !result.is_empty();
    let structured = if is_plain { Some(Value::Object(result)) } else { structured };
    let parts = match content {
        Some(Value::Array(parts)) => parts,
        one => one.into_iter().collect(),
    };
    let mut texts: Vec<String> = parts.iter().map(part_text).collect();
    let is_news = |structured: &&Value| !is_said(structured, &texts);
    if let Some(more) = structured.as_ref().filter(is_news).map(value_text) {
        texts.push(more);
    }
    let mut text = texts.join("\n");
    if is_error {
        return Err(AttemptFailed::new(FailureClass::Rejected, error_text(&text, tool, failures)));
    }
    if let Some(schema) = schema {
        // Some servers send a structured result as a text alone.
        let written = || serde_json::from_str(&text).ok().filter(Value::is_object);
        let Some(structured) = structured.clone().or_else(written) else {
            return Err(bad("answered without the structured result that it lists to a call"));
        };
        check_fields(schema, &structured, "field").map_err(|why| {
            bad(&format!("gave a structured result that does not fit its schema ({why}) to a call"))
        })?;
    }
    if text.trim().is_empty() {
        NO_CONTENT.clone_into(&mut text);
    }
    Ok(McpResult { text, structured })
}

/// Whether the texts of a result have its structured part already: as JSON, or as its one field, into which
/// libraries put a result that is no object.
fn is_said(structured: &Value, texts: &[String]) -> bool {
    let says = |text: &str, value: &Value| match value {
        Value::String(said) => text == said,
        value => serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value),
    };
    let is_all = |value: &Value| match (texts, value) {
        ([text], value) if says(text, value) => true,
        (texts, Value::Array(items)) if !texts.is_empty() => {
            texts.len() == items.len() && texts.iter().zip(items).all(|(text, it)| says(text, it))
        }
        _ => false,
    };
    let wrapped = structured.as_object().filter(|fields| fields.len() == 1);
    texts.iter().any(|text| says(text, structured))
        || wrapped.and_then(|fields| fields.values().next()).is_some_and(is_all)
}

/// A value as a text: a text as it is, anything else as JSON.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
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
    let Some(fields) = part.as_object() else { return value_text(part) };
    match text_of(fields, "type") {
        "text" | "" if fields.contains_key("text") => value_text(&part["text"]),
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
        "" => part.to_string(),
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
