//! What an event belongs to: the call of its span, the agent, task or source of that call, and the
//! tool that it calls.

use std::borrow::Cow;

use crate::event::SpanId;
use crate::event::kind::{Purpose, SourceNo};
use crate::event::world::{SpanKind, World};

/// The round and the call that a span belongs to.
pub fn round_and_purpose(span: SpanId, world: &World) -> (Option<u32>, Option<&Purpose>) {
    let mut at = world.spans.get(span);
    // Attempt, call, round, run: our spans nest no deeper, but those of a log from a file may.
    for _ in 0..4 {
        match at.map(|span| (&span.kind, span.parent)) {
            Some((SpanKind::Call(purpose), _)) => {
                let round = match purpose {
                    Purpose::Contribution { round, .. } => Some(*round),
                    _ => None,
                };
                return (round, Some(purpose));
            }
            Some((SpanKind::Round(round), _)) => return (Some(*round), None),
            Some((SpanKind::Attempt(_) | SpanKind::Task { .. } | SpanKind::Source(_), parent)) => {
                at = world.spans.get(parent)
            }
            Some((SpanKind::Run, _)) | None => break,
        }
    }
    (None, None)
}

/// The seat, agent, task or step that a call is made for, for the screen.
pub fn purpose_name<'a>(purpose: Option<&'a Purpose>) -> Cow<'a, str> {
    match purpose {
        Some(Purpose::Contribution { role, .. }) => Cow::Borrowed(role.as_str()),
        Some(Purpose::Plan) => Cow::Borrowed("plan"),
        Some(Purpose::Task { task, .. }) => Cow::Borrowed(task.as_str()),
        Some(Purpose::AgentStep { agent, .. }) => Cow::Owned(format!("agent {agent}")),
        Some(Purpose::Search) => Cow::Borrowed("search"),
        Some(Purpose::Read { source } | Purpose::Notes { source }) => {
            Cow::Owned(source.to_string())
        }
        Some(Purpose::Synthesize) => Cow::Borrowed("synthesize"),
        Some(Purpose::Finalize) => Cow::Borrowed("finalize"),
        Some(other) => Cow::Borrowed(other.agent().map_or("", |agent| agent.as_str())),
        None => Cow::Borrowed(""),
    }
}

/// The tool of a call with this purpose.
pub fn tool_of_purpose<'a>(purpose: &'a Purpose, world: &'a World) -> Option<&'a str> {
    match purpose {
        Purpose::Contribution { .. }
        | Purpose::Plan
        | Purpose::ModelCall { .. }
        | Purpose::Notes { .. }
        | Purpose::Synthesize
        | Purpose::Finalize => Some("llm"),
        Purpose::Tool { tool, .. } => Some(tool.as_str()),
        Purpose::Search
        | Purpose::Read { .. }
        | Purpose::Task { .. }
        | Purpose::AgentStep { .. } => world.projection()?.tool_of(purpose),
        other => other.called_agent().map(|agent| agent.as_str()),
    }
}

/// The subject of an event of a call; if many agents call many tools, with the tool.
pub(crate) fn subject_name<'a>(purpose: Option<&'a Purpose>, world: &World) -> Cow<'a, str> {
    match purpose {
        Some(step @ Purpose::AgentStep { .. }) => match tool_of_purpose(step, world) {
            Some(tool) => Cow::Owned(format!("{} {tool}", purpose_name(purpose))),
            None => purpose_name(purpose),
        },
        purpose => purpose_name(purpose),
    }
}

/// The source of this span, if it is the span of a source.
pub(crate) fn source_of_span(span: SpanId, world: &World) -> Option<SourceNo> {
    match world.spans.get(span)?.kind {
        SpanKind::Source(no) => Some(no),
        _ => None,
    }
}

/// The task of this span, if it is the span of a task.
pub(crate) fn task_of_span(span: SpanId, world: &World) -> Option<&str> {
    let SpanKind::Task { index } = world.spans.get(span)?.kind else { return None };
    let orchestrator = world.orchestrator()?;
    let row = orchestrator.tasks.get(usize::try_from(index).ok()?)?;
    Some(row.task.id.as_str())
}
