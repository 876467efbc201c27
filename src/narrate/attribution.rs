//! What an event belongs to: the call of its span, the agent, task or source of that call, and the
//! tool that it calls.

use std::borrow::Cow;

use crate::event::SpanId;
use crate::event::kind::{Asks, Purpose, SourceNo};
use crate::event::world::{SpanKind, World};

/// The round and the call that a span belongs to.
pub fn round_and_purpose(span: SpanId, world: &World) -> (Option<u32>, Option<&Purpose>) {
    let mut at = world.spans.get(span);
    // Attempt, call, round, run: our spans nest no deeper, but those of a log from a file may.
    for _ in 0..4 {
        match at.map(|span| (&span.kind, span.parent)) {
            Some((SpanKind::Call(purpose), _)) => {
                return (purpose.round(), Some(purpose));
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
    purpose.map_or(Cow::Borrowed(""), Purpose::label)
}

/// The tool of a call with this purpose.
pub fn tool_of_purpose<'a>(purpose: &'a Purpose, world: &'a World) -> Option<&'a str> {
    let own = match purpose {
        Purpose::Tool { tool, .. } => Some(tool.as_str()),
        _ => purpose.called_agent().map(|agent| agent.as_str()),
    };
    match purpose.asks() {
        Asks::Model => Some("llm"),
        Asks::Tool | Asks::Agent => own.or_else(|| world.projection()?.tool_of(purpose)),
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
