//! Estimates the bytes that an event takes, which limits the memory of logs. Texts and names are
//! counted as if they were not shared, because in a log read from a file they are not.

use std::mem::{size_of, size_of_val};

use serde_json::Value;

use super::Event;
use super::kind::{
    ChatMessage, EventKind, RunStarted, SourceOutcome, Task, ToolCall, ToolHead, ToolLimits,
    ToolOffer,
};
use super::stop::{ContributionFault, StopReason};
use crate::pattern::orchestrator::faults::PlanFault;

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

fn entries<'a>(fields: impl IntoIterator<Item = (&'a String, &'a Value)>) -> usize {
    fields.into_iter().map(|(name, value)| ENTRY + name.len() + json_weight(value)).sum()
}

/// Bytes that a stop reason refers to, besides its own size.
fn reason(reason: &StopReason) -> usize {
    match reason {
        StopReason::InvalidContribution(ContributionFault::AgentNotAllowed(name))
        | StopReason::InvalidPlan(PlanFault::WorkerNotAllowed(name))
        | StopReason::Other(name) => name.len(),
        StopReason::Stuck(agent) | StopReason::NodeTimeout(agent) => agent.as_str().len(),
        StopReason::InvalidContribution(ContributionFault::AgentMismatch(role))
        | StopReason::AgentDenied(role) => role.as_str().len(),
        StopReason::Worker(_, tool)
        | StopReason::ToolError(tool, _)
        | StopReason::ToolInvalidOutput(tool)
        | StopReason::CircuitOpen(tool)
        | StopReason::BulkheadFull(tool) => tool.as_str().len(),
        _ => 0,
    }
}

fn task(task: &Task) -> usize {
    let names = task.id.as_str().len() + task.worker.as_str().len();
    size_of::<Task>() + names + entries(&*task.args)
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
            Self::ContributionAccepted { contribution, .. } => {
                contribution.summary.len() + texts(contribution.actions.iter().map(|it| &**it))
            }
            Self::ContributionRefused { raw, reason: why, .. } => {
                raw.as_deref().map_or(0, json_weight) + reason(why)
            }
            Self::PlanAccepted { tasks } => tasks.iter().map(task).sum(),
            Self::PlanRefused { raw, reason: why, details } => {
                json_weight(raw) + reason(why) + details.as_deref().map_or(0, json_weight)
            }
            Self::StepsAccepted { steps } => {
                steps.iter().map(|it| size_of_val(it) + it.id.len() + it.action.len()).sum()
            }
            Self::SourcesFound(found) => {
                let each = found.sources.iter().map(|it| {
                    let texts = [&it.url, &it.title, &it.snippet, &it.published_at];
                    size_of_val(it) + texts.iter().map(|text| text.len()).sum::<usize>()
                });
                found.query.len() + each.sum::<usize>() + found.unsearched.len() * ENTRY
            }
            Self::SourcesDeduped(it) => {
                let kept =
                    it.kept.iter().map(|it| size_of_val(it) + it.url.len() + it.domain.len());
                kept.sum::<usize>() + size_of_val(&*it.dropped)
            }
            Self::PageRead(page) => {
                size_of_val(&**page) + page.url.len() + page.title.len() + page.published_at.len()
            }
            Self::NoteTaken { note, .. } => {
                let texts = [&note.claim, &note.quote, &note.url, &note.title, &note.published_at];
                size_of_val(&**note) + texts.iter().map(|text| text.len()).sum::<usize>()
            }
            Self::NoteRefused(note) => size_of_val(&**note) + note.claim.len() + note.quote.len(),
            Self::SourceClosed(came) => {
                let texts = match &**came {
                    SourceOutcome::Denied { location, .. } => {
                        location.as_ref().map_or(0, |it| it.len())
                    }
                    SourceOutcome::Skipped { reason, text } => reason.len() + text.len(),
                    SourceOutcome::Read { .. } | SourceOutcome::Cancelled => 0,
                };
                size_of_val(&**came) + texts
            }
            Self::NotesCompared(it) => {
                let ends =
                    it.conflicts.iter().map(|it| it.left_figure.len() + it.right_figure.len());
                size_of_val(&*it.agree)
                    + size_of_val(&*it.conflicts)
                    + size_of_val(&*it.unconfirmed)
                    + ends.sum::<usize>()
            }
            Self::NotesVerified(it) => size_of_val(&*it.issues),
            Self::AnswerCited(it) => {
                let each = it
                    .sentences
                    .iter()
                    .map(|it| size_of_val(it) + it.text.len() + size_of_val(&*it.citations));
                each.sum::<usize>() + size_of_val(&*it.citations)
            }
            Self::AnswerRefused(it) => json_weight(&it.raw) + reason(&it.reason),
            Self::TaskStarted { task, worker, args_hash, .. } => {
                task.as_str().len() + worker.as_str().len() + args_hash.len()
            }
            Self::TaskFailed { reason: why, .. }
            | Self::CallFailed { reason: why, .. }
            | Self::AttemptRefused { reason: why, .. }
            | Self::SessionRunClosed { reason: why, .. } => reason(why),
            Self::CallDegraded { reason: why, value, .. } => {
                reason(why) + value.as_deref().map_or(0, json_weight)
            }
            Self::ResultsAggregated { aggregate, overwritten } => {
                json_weight(aggregate) + texts(overwritten.iter().map(|task| task.as_str()))
            }
            Self::LimitsChanged { limits, .. } => {
                size_of::<ToolLimits>() + size_of_val(&*limits.backoff_ms)
            }
            Self::RunStarted(it) => head(it),
            Self::RequestAdapted { model, parameter } => model.len() + parameter.len(),
            Self::ReplyRepaired { repair, changed: what } => repair.len() + what.len(),
            Self::ReplyRefused(it) => {
                size_of_val(&**it) + reason(&it.reason) + it.detail.len() + it.preview.len()
            }
            Self::Warning { text } => text.len(),
            Self::ConditionFailed { place, text } => place.len() + text.len(),
            Self::RunClosed(closed) => size_of_val(&**closed) + reason(&closed.reason),
            Self::RoundStarted { seats, .. } => seats.len() * 32,
            Self::AnswerComposed { text, .. } | Self::AnswerPartial { text, .. } => text.len(),
            Self::AnswerIncomplete { missing } => {
                missing.iter().map(|it| size_of_val(it) + it.name.len() + it.text.len()).sum()
            }
            Self::HandoffMade { message, .. } => message.as_ref().map_or(0, |text| text.len()),
            Self::ToolCallRefused { tool, text, .. } => tool.len() + text.len(),
            Self::RosterChanged { members, .. } => texts(members.iter().map(|it| it.as_str())),
            Self::Unknown { kind, fields } => kind.len() + entries(&**fields),
            _ => 0,
        };
        size_of::<Event>() + 32 + held
    }
}
