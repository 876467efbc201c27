//! Estimates the bytes that an event takes, which limits the memory of logs. Texts and names are
//! counted as if they were not shared, because in a log read from a file they are not.

use std::mem::{size_of, size_of_val};

use serde_json::Value;

use super::Event;
use super::kind::{ChatMessage, EventKind, RunStarted, ToolHead, ToolLimits};
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// Overhead of a map entry in bytes, without its key and value.
pub(crate) const ENTRY: usize = 64;
/// Overhead of a string in a list in bytes, without its text.
const TEXT: usize = 24;

/// Approximate bytes of a JSON value. It recurses: the parser has limited the depth.
pub(crate) fn json_weight(value: &Value) -> usize {
    let held = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(json_weight).sum(),
        Value::Object(fields) => entries(fields),
    };
    size_of::<Value>() + held
}

/// Bytes of these fields.
pub(crate) fn entries<'a>(fields: impl IntoIterator<Item = (&'a String, &'a Value)>) -> usize {
    fields.into_iter().map(|(name, value)| ENTRY + name.len() + json_weight(value)).sum()
}

fn tool(head: &ToolHead) -> usize {
    let texts = head.name.as_str().len() + head.kind.len();
    size_of::<ToolHead>()
        + texts
        + size_of_val(&*head.limits.backoff_ms)
        + size_of_val(&*head.faults)
}

/// Bytes of these texts in a list.
pub(crate) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    texts.into_iter().map(|text| TEXT + text.len()).sum()
}

/// Bytes of these tool calls.
pub(crate) fn calls(calls: &[ToolCall]) -> usize {
    calls
        .iter()
        .map(|call| size_of_val(call) + call.id.len() + call.name.len() + call.arguments.len())
        .sum()
}

fn message(message: &ChatMessage) -> usize {
    let blocks = message.blocks.as_deref().map_or(0, json_weight);
    size_of_val(message) + message.content.len() + calls(&message.tool_calls) + blocks
}

fn offer(offer: &ToolOffer) -> usize {
    size_of_val(offer) + offer.description.len() + json_weight(&offer.parameters)
}

fn head(head: &RunStarted) -> usize {
    let flags = head
        .flags
        .iter()
        .fold(0, |sum, flag| sum + size_of_val(flag) + flag.name.as_str().len() + flag.label.len());
    size_of::<RunStarted>()
        + head.title.len()
        + head.goal.len()
        + entries(&head.inputs)
        + flags
        + head.model_prices.iter().map(|it| size_of_val(it) + it.model.len()).sum::<usize>()
        + head.tools.iter().map(tool).sum::<usize>()
        + head.plan.get().weight()
}

impl EventKind {
    /// Approximate bytes of an event of this kind.
    pub fn weight(&self) -> usize {
        let held = match self {
            Self::CallStarted(call) => {
                let offers = call.prompt.tools.iter().flat_map(|tools| &**tools);
                call.prompt.messages.iter().map(message).sum::<usize>()
                    + offers.map(offer).sum::<usize>()
                    + call.args.as_deref().map_or(0, json_weight)
            }
            Self::AttemptAnswered(reply) => {
                128 + reply.text.len()
                    + calls(&reply.tool_calls)
                    + reply.result.as_deref().map_or(0, json_weight)
                    + reply.blocks.as_deref().map_or(0, json_weight)
            }
            Self::AttemptFailed(failed) => {
                128 + failed.text.len() + failed.partial.as_ref().map_or(0, |text| text.len())
            }
            Self::PlanRefused { raw, reason: why, details } => {
                json_weight(raw) + why.weight() + details.as_deref().map_or(0, json_weight)
            }
            Self::CallFailed { reason: why, .. }
            | Self::AttemptRefused { reason: why, .. }
            | Self::SessionRunClosed { reason: why, .. } => why.weight(),
            Self::CallDegraded { reason: why, value, .. } => {
                why.weight() + value.as_deref().map_or(0, json_weight)
            }
            Self::LimitsChanged { limits, .. } => {
                size_of::<ToolLimits>() + size_of_val(&*limits.backoff_ms)
            }
            Self::RunStarted(it) => head(it),
            Self::RequestAdapted { model, parameter } => model.len() + parameter.len(),
            Self::ReplyRepaired { repair, changed: what } => repair.len() + what.len(),
            Self::ReplyRefused(it) => {
                size_of_val(&**it) + it.reason.weight() + it.detail.len() + it.preview.len()
            }
            Self::Warning { text } => text.len(),
            Self::ConditionFailed { place, text } => place.len() + text.len(),
            Self::RunClosed(closed) => size_of_val(&**closed) + closed.reason.weight(),
            Self::AnswerComposed { text, .. } => text.len(),
            Self::Pattern(fact) => fact.get().weight(),
            Self::Unknown { kind, fields } => kind.len() + entries(&**fields),
            _ => 0,
        };
        size_of::<Event>() + 32 + held
    }
}
