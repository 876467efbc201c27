//! Whom a fact is about: the call that its span belongs to, on whose behalf that is made, and what
//! it asks.

use std::borrow::Cow;

use crate::event::SpanId;
use crate::event::kind::{Purpose, SourceNo};
use crate::event::world::{SpanKind, World};
use crate::scenario::research::{READ, SEARCH};

/// Whose call a span belongs to, and in which round it stands.
pub fn whose(span: SpanId, world: &World) -> (Option<u32>, Option<&Purpose>) {
    let mut at = world.spans.get(span);
    // Attempt, call, round, run: a tree of ours is no deeper, and a file's may be anything.
    for _ in 0..4 {
        match at.map(|span| (&span.what, span.parent)) {
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

/// On whose behalf a call is made, for people.
pub fn purpose_name<'a>(purpose: Option<&'a Purpose>) -> Cow<'a, str> {
    match purpose {
        Some(Purpose::Contribution { role, .. }) => Cow::Borrowed(role.as_str()),
        Some(Purpose::Plan) => Cow::Borrowed("plan"),
        Some(Purpose::Task { task, .. }) => Cow::Borrowed(task.as_str()),
        Some(Purpose::Step { agent, .. }) => Cow::Owned(format!("agent {agent}")),
        Some(
            Purpose::Say { agent, .. }
            | Purpose::Member { agent, .. }
            | Purpose::Hop { agent, .. }
            | Purpose::Tool { agent, .. },
        ) => Cow::Borrowed(agent.as_str()),
        Some(Purpose::Search) => Cow::Borrowed("search"),
        Some(Purpose::Read { source } | Purpose::Notes { source }) => {
            Cow::Owned(source.to_string())
        }
        Some(Purpose::Synthesize) => Cow::Borrowed("synthesize"),
        Some(Purpose::Finalize) => Cow::Borrowed("finalize"),
        None => Cow::Borrowed(""),
    }
}

/// The tool that such a call asks.
pub fn tool_of<'a>(purpose: &'a Purpose, world: &'a World) -> Option<&'a str> {
    match purpose {
        Purpose::Contribution { .. }
        | Purpose::Plan
        | Purpose::Say { .. }
        | Purpose::Notes { .. }
        | Purpose::Synthesize
        | Purpose::Finalize => Some("llm"),
        Purpose::Search => Some(SEARCH),
        Purpose::Read { .. } => Some(READ),
        Purpose::Member { agent, .. } | Purpose::Hop { agent, .. } => Some(agent.as_str()),
        Purpose::Tool { tool, .. } => Some(tool.as_str()),
        Purpose::Task { index, .. } => {
            let (orchestrator, _) = world.orchestrator()?;
            let row = orchestrator.tasks.get(usize::try_from(*index).ok()?)?;
            Some(row.task.worker.as_str())
        }
        Purpose::Step { step, .. } => {
            let (_, plan) = world.resilience()?;
            plan.steps.get(usize::from(*step)).map(|tool| tool.as_str())
        }
    }
}

/// Whom a fact of a call is about: where many agents ask many tools, the tool as well.
pub(super) fn who<'a>(purpose: Option<&'a Purpose>, world: &World) -> Cow<'a, str> {
    match purpose {
        Some(step @ Purpose::Step { .. }) => match tool_of(step, world) {
            Some(tool) => Cow::Owned(format!("{} {tool}", purpose_name(purpose))),
            None => purpose_name(purpose),
        },
        purpose => purpose_name(purpose),
    }
}

/// The source in whose span this stands.
pub(super) fn source_of(span: SpanId, world: &World) -> Option<SourceNo> {
    match world.spans.get(span)?.what {
        SpanKind::Source(no) => Some(no),
        _ => None,
    }
}

/// The task whose span this is.
pub(super) fn task_of(span: SpanId, world: &World) -> Option<&str> {
    let SpanKind::Task { index } = world.spans.get(span)?.what else { return None };
    let (orchestrator, _) = world.orchestrator()?;
    let row = orchestrator.tasks.get(usize::try_from(index).ok()?)?;
    Some(row.task.id.as_str())
}
