//! Tool calls and tools as the inspector shows them: what a model called, what it was told, what it
//! was offered.

use serde_json::Value;

use super::RunPage;
use super::document::{Document, Look};
use crate::app::format;
use crate::event::kind::{ChatMessage, EventKind, ToolCall, ToolOffer};
use crate::event::{Event, SpanId};
use crate::scenario::integer::changed;

/// Calls that a prompt may lead back to.
const CHAIN: usize = 1000;

/// The calls of a reply, each with its arguments laid out.
pub(super) fn calls(document: &mut Document, calls: &[ToolCall]) {
    for call in calls {
        document.add(Look::Head, format!("calls {} as {}", call.name, call.id));
        match serde_json::from_str::<Value>(&call.arguments) {
            Ok(value @ Value::Object(_)) if changed(&call.arguments, &value).is_none() => {
                document.json(&value);
            }
            Ok(Value::Object(_)) => document.text(Look::Text, &call.arguments),
            _ => {
                document.add(Look::Failed, "not a JSON object:");
                document.text(Look::Text, &call.arguments);
            }
        }
    }
}

/// What a message is the result of, where it is one.
pub(super) fn result_of(message: &ChatMessage, before: &[ChatMessage]) -> String {
    let Some(id) = &message.tool_call_id else { return String::new() };
    let mut made = before.iter().rev().flat_map(|said| said.tool_calls.iter());
    match made.find(|call| call.id == *id) {
        Some(call) => format!(" {}, of {id}", call.name),
        None => format!(", of {id}"),
    }
}

/// The tools that were offered.
fn offered(document: &mut Document, tools: &[ToolOffer]) {
    document.gap();
    document.add(Look::Head, format!("{} offered", format::things(tools.len() as u64, "tool")));
    for tool in tools {
        document.add(Look::Text, tool.name.to_string());
        if !tool.description.is_empty() {
            document.add(Look::Dim, format!("  {}", tool.description.replace('\n', " ")));
        }
        let told = tool.parameters.get("properties").and_then(Value::as_object);
        for (name, about) in told.into_iter().flatten() {
            let kind = about.get("type").and_then(Value::as_str).unwrap_or("any");
            let about = about.get("description").and_then(Value::as_str).unwrap_or_default();
            document.add(Look::Dim, format!("  {name} ({kind}) {about}").trim_end());
        }
    }
}

impl RunPage {
    /// Adds the tools that a call's model was offered: its own, or those of the calls before.
    pub(super) fn tools_offered(&self, document: &mut Document, call: SpanId) {
        let mut next = Some(call);
        for _ in 0..CHAIN {
            let Some(Event { kind: EventKind::CallStarted(started), .. }) =
                next.and_then(|call| self.opening(call))
            else {
                return;
            };
            if let Some(tools) = started.prompt.tools.as_ref().filter(|tools| !tools.is_empty()) {
                return offered(document, tools);
            }
            next = started.prompt.after;
        }
    }
}
