//! The prompt of a call exactly as the model saw it.

use serde_json::Value;

use super::calls::{prompt_call, reply};
use super::tool_calls;
use crate::app::run::data::RunData;
use crate::base::big_integer::first_changed_integer;
use crate::event::kind::{ChatMessage, MessageRole};
use crate::event::{Event, EventKind, SpanId};
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::StyledText;

/// Most calls that one prompt is put together from.
const MAX_PROMPT_CALLS: usize = 1000;

/// Indents a JSON object or list if that loses no digits; any other text stays as it is. The flag
/// says whether it was indented.
pub(super) fn pretty_json(text: &str) -> (String, bool) {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_)))
            if first_changed_integer(text, &value).is_none() =>
        {
            (serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned()), true)
        }
        _ => (text.to_owned(), false),
    }
}

fn role_name(role: MessageRole) -> &'static str {
    match role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "tool",
    }
}

/// The messages of a call exactly as the model saw them, those of earlier calls included.
#[cfg(test)]
pub fn prompt(run: &RunData, call: SpanId) -> Vec<ChatMessage> {
    prompt_in_memory(run, call).0
}

/// The messages of a call, and whether the first of them were dropped with their events.
fn prompt_in_memory(run: &RunData, call: SpanId) -> (Vec<ChatMessage>, bool) {
    let mut cut = false;
    let mut parts: Vec<Vec<ChatMessage>> = Vec::new();
    let mut next = Some(call);
    while let Some(call) = next.take()
        && parts.len() < MAX_PROMPT_CALLS
    {
        let Some(Event { kind: EventKind::CallStarted(started), .. }) = run.opening_event(call)
        else {
            cut = run.log().dropped_count() > 0;
            break;
        };
        let mut part = started.prompt.messages.to_vec();
        // An earlier call is part of the prompt together with its reply.
        let before = !parts.is_empty();
        if let Some(reply) = reply(run, call).filter(|_| before) {
            part.push(ChatMessage::from_reply(reply));
        }
        parts.push(part);
        next = started.prompt.after.filter(|before| *before != call);
    }
    (parts.into_iter().rev().flatten().collect(), cut)
}

pub(super) fn prompt_document(run: &RunData, call: Option<SpanId>) -> StyledText {
    let mut document = StyledText::default();
    let Some(call) = call else {
        document.add(StyleRole::Dim, "This event belongs to no call, so it has no prompt.");
        document.add(StyleRole::Dim, "c jumps to its cause.");
        return document;
    };
    if let Some(Event { kind: EventKind::CallStarted(started), .. }) = run.opening_event(call)
        && let Some(args) = &started.args
    {
        document.heading(format!("arguments of {}", started.tool));
        document.json(args);
        return document;
    }
    // The turn of an agent is many calls: the prompt of its last one is shown.
    let call = prompt_call(run, call);
    let (messages, cut) = prompt_in_memory(run, call);
    if cut {
        document.add(StyleRole::Dim, "The first messages of this prompt are missing.");
        document.add(StyleRole::Dim, run.dropped_notice());
    } else if messages.is_empty() {
        document.add(StyleRole::Dim, "The log has no prompt for this call.");
    }
    for (nth, message) in messages.iter().enumerate() {
        document.gap();
        let (text, json) = pretty_json(&message.content);
        let how = if json { ", pretty-printed (as sent: 3 Raw)" } else { "" };
        let size = format::bytes(message.content.len() as u64);
        let of = tool_calls::result_label(message, &messages[..nth]);
        document.heading(format!("{}{of}, {size}{how}", role_name(message.role)));
        if !text.is_empty() || message.tool_calls.is_empty() {
            document.text(StyleRole::Text, &text);
        }
        tool_calls::add_tool_calls(&mut document, &message.tool_calls);
    }
    tool_calls::add_offered_tools(run, &mut document, call);
    document
}
