//! What events are matched by, and what must be equal in them.

use crate::event::{Event, EventKind, SpanId};

/// What an event is matched by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EventKey {
    /// Its span, or the parent of the span that it opens.
    span: SpanId,
    /// Its kind, and what tells it from others of its kind.
    what: String,
}

impl EventKey {
    /// The key of an event that opens no span.
    pub(super) fn new(span: SpanId, kind: &EventKind) -> Self {
        let name = kind.name();
        let what = match kind {
            EventKind::BreakerChanged { tool, .. }
            | EventKind::LimitsChanged { tool, .. }
            | EventKind::FaultInjected { tool, .. }
            | EventKind::FaultRemoved { tool, .. } => format!("{name} {tool}"),
            EventKind::FlagChanged { flag, .. } => format!("{name} {flag}"),
            EventKind::Warning { text } => format!("{name} {text}"),
            _ => name.to_owned(),
        };
        Self { span, what }
    }
}

/// The key of an event that opens a span, if it opens one.
pub(super) fn opening_key(kind: &EventKind) -> Option<EventKey> {
    let (parent, what) = kind.opens()?;
    let what = match kind {
        // The tool tells a call from another one of the same purpose; an agent's call is known by
        // its purpose.
        EventKind::CallStarted(call) => format!("{} {what:?} {}", kind.name(), call.repeat),
        _ => format!("{} {what:?}", kind.name()),
    };
    Some(EventKey { span: parent, what })
}

/// The key of a recorded event.
pub(super) fn key_of(event: &Event) -> EventKey {
    let opening = opening_key(&event.kind).filter(|_| event.span != SpanId::RUN);
    opening.unwrap_or_else(|| EventKey::new(event.span, &event.kind))
}

/// Whether a call is the recorded one, if the event is a call.
///
/// # Errors
/// The part that differs.
pub(super) fn same_call(recorded: &EventKind, executed: &EventKind) -> Result<(), &'static str> {
    let (EventKind::CallStarted(recorded), EventKind::CallStarted(executed)) = (recorded, executed)
    else {
        return Ok(());
    };
    if recorded.tool != executed.tool {
        return Err("another tool");
    }
    if recorded.prompt != executed.prompt {
        return Err("another prompt");
    }
    if recorded.args != executed.args {
        return Err("other arguments");
    }
    if recorded.model != executed.model {
        return Err("another model");
    }
    Ok(())
}

/// Whether an event of a run is about its log, so that the run never publishes it again.
pub(super) fn is_never_repeated(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Unknown { .. }
            | EventKind::RunResumed { .. }
            | EventKind::RunForked { .. }
            | EventKind::CommandTaken { .. }
            | EventKind::EventsDropped { .. }
            | EventKind::SessionRunStarted { .. }
            | EventKind::SessionRunClosed { .. }
            | EventKind::SessionRunDropped { .. }
    )
}

/// An event in words, for an error.
pub(super) fn describe(kind: &EventKind) -> String {
    match kind {
        EventKind::CallStarted(call) => {
            format!("{} of {} ({:?})", kind.name(), call.tool, call.purpose)
        }
        _ => kind.name().to_owned(),
    }
}
