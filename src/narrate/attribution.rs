//! What an event belongs to: the call of its span, the agent, task or source of that call, and the
//! tool that it calls.

use std::borrow::Cow;

use super::pattern_words::Narrate;
use super::patterns::words;
use crate::event::SpanId;
use crate::event::kind::{Asks, Purpose};
use crate::event::world::{RunFold, SpanKind, World};

/// The round and the call that a span belongs to.
pub fn round_and_purpose(span: SpanId, run: &RunFold) -> (Option<u32>, Option<&Purpose>) {
    let mut at = run.spans.get(span);
    // Attempt, call, round, run: our spans nest no deeper, but those of a log from a file may.
    for _ in 0..4 {
        match at.map(|span| (&span.kind, span.parent)) {
            Some((SpanKind::Call(purpose), _)) => {
                return (purpose.round(), Some(purpose));
            }
            Some((SpanKind::Round(round), _)) => return (Some(*round), None),
            Some((SpanKind::Attempt(_) | SpanKind::Task { .. } | SpanKind::Source(_), parent)) => {
                at = run.spans.get(parent)
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
    tool_of_call(purpose, words(world))
}

fn tool_of_call<'a>(purpose: &'a Purpose, words: Option<&'a dyn Narrate>) -> Option<&'a str> {
    let own = match purpose {
        Purpose::Tool { tool, .. } => Some(tool.as_str()),
        _ => purpose.called_agent().map(|agent| agent.as_str()),
    };
    match purpose.asks() {
        Asks::Model => Some("llm"),
        Asks::Tool | Asks::Agent => own.or_else(|| words?.tool_of(purpose)),
    }
}

/// The subject of an event of a call; if many agents call many tools, with the tool.
pub(crate) fn subject_name<'a>(
    purpose: Option<&'a Purpose>,
    words: Option<&dyn Narrate>,
) -> Cow<'a, str> {
    match purpose {
        Some(step @ Purpose::AgentStep { .. }) => match tool_of_call(step, words) {
            Some(tool) => Cow::Owned(format!("{} {tool}", purpose_name(purpose))),
            None => purpose_name(purpose),
        },
        purpose => purpose_name(purpose),
    }
}

/// The task of this span, if it is the span of a task.
pub(crate) fn task_of_span(span: SpanId, world: &World) -> Option<Cow<'_, str>> {
    match &world.spans.get(span)?.kind {
        kind @ SpanKind::Task { .. } => words(world)?.span_name(kind),
        _ => None,
    }
}
