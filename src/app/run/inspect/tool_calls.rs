//! Tool calls and tools in the inspector: the calls that a model made, the results that it
//! received, and the tools that it was offered.

use serde_json::Value;

use crate::app::run::data::RunData;
use crate::base::big_integer::first_changed_integer;
use crate::event::kind::{ChatMessage, EventKind, ToolCall, ToolOffer};
use crate::event::{Event, SpanId};
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledText;

/// Most calls that one prompt is put together from.
const MAX_PROMPT_CALLS: usize = 1000;

/// Adds the tool calls of a reply, each with its arguments indented.
pub(super) fn add_tool_calls(document: &mut StyledText, calls: &[ToolCall]) {
    for call in calls {
        document.heading(format!("calls {} (id {})", call.name, call.id));
        match serde_json::from_str::<Value>(&call.arguments) {
            Ok(value @ Value::Object(_))
                if first_changed_integer(&call.arguments, &value).is_none() =>
            {
                document.json(&value);
            }
            Ok(Value::Object(_)) => document.text(StyleRole::Text, &call.arguments),
            _ => {
                document.add(StyleRole::Failed, "not a JSON object:");
                document.text(StyleRole::Text, &call.arguments);
            }
        }
    }
}

/// For a message that is a tool's result: the name of the tool and the id of the call.
pub(super) fn result_label(message: &ChatMessage, before: &[ChatMessage]) -> String {
    let Some(id) = &message.tool_call_id else { return String::new() };
    let mut made = before.iter().rev().flat_map(|said| said.tool_calls.iter());
    match made.find(|call| call.id == *id) {
        Some(call) => format!(" {}, result of {id}", call.name),
        None => format!(", result of {id}"),
    }
}

/// Adds the tools that were offered, with their parameters.
fn add_tool_list(document: &mut StyledText, tools: &[ToolOffer]) {
    document.gap();
    document.heading(format!("{} offered", format::count_noun(tools.len() as u64, "tool")));
    for tool in tools {
        document.add(StyleRole::Text, tool.name.to_string());
        if !tool.description.is_empty() {
            document.add(StyleRole::Dim, format!("  {}", tool.description.replace('\n', " ")));
        }
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        for (name, about) in properties.into_iter().flatten() {
            let kind = about.get("type").and_then(Value::as_str).unwrap_or("any");
            let about = about.get("description").and_then(Value::as_str).unwrap_or_default();
            document
                .add(StyleRole::Dim, format!("  {name} ({kind}) {about}").trim_end().to_owned());
        }
    }
}

/// Adds the tools that a call's model was offered: its own, or those of the calls before it.
pub(super) fn add_offered_tools(run: &RunData, document: &mut StyledText, call: SpanId) {
    let mut next = Some(call);
    for _ in 0..MAX_PROMPT_CALLS {
        let Some(Event { kind: EventKind::CallStarted(started), .. }) =
            next.and_then(|call| run.opening_event(call))
        else {
            return;
        };
        if let Some(tools) = started.prompt.tools.as_ref().filter(|tools| !tools.is_empty()) {
            return add_tool_list(document, tools);
        }
        next = started.prompt.after;
    }
}
