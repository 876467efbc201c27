//! Writes the events of runs to the program's log, and alone chooses the level: `info` for starts
//! and ends of runs, changes by breaker, operator or command line, and warnings; `debug` for calls,
//! attempts, retries and events of patterns; `trace` for the rest.
//!
//! A line has the text of the events pane, shortened. Prompts are never logged, replies and
//! arguments only at `debug` and `trace`. The program's own actions (exports, permissions) are
//! logged where they happen.

use tracing::{Level, enabled};

use crate::base::visible::visible_within;
use crate::log::event::{Event, EventKind, World};
use crate::words::sentence::sentence;

/// Target of these lines, for filters such as `ROUNDTABLE_LOG=roundtable::run=debug`.
const TARGET: &str = "roundtable::run";

/// Length limit of a line, in characters.
const MAX_LINE_CHARS: usize = 300;

/// Whether any event would be logged.
pub fn is_on() -> bool {
    enabled!(target: TARGET, Level::INFO)
}

/// Logs an event. `world` already includes it.
pub fn log_event(event: &Event, world: &World) {
    let level = level(&event.kind);
    let wanted = match level {
        Level::INFO => is_on(),
        Level::DEBUG => enabled!(target: TARGET, Level::DEBUG),
        _ => enabled!(target: TARGET, Level::TRACE),
    };
    if !wanted {
        return;
    }
    let run = world.head.as_ref().map_or("-", |head| head.run.as_str());
    let words = sentence(event, world);
    let parts = [words.kind, &words.subject, &words.decided_text()];
    let line: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let line = visible_within(&line.join(" "), MAX_LINE_CHARS);
    let span = event.span.0;
    match level {
        Level::INFO => tracing::info!(target: TARGET, run, span, "{line}"),
        Level::DEBUG => tracing::debug!(target: TARGET, run, span, "{line}"),
        _ => tracing::trace!(target: TARGET, run, span, "{line}"),
    }
}

fn level(kind: &EventKind) -> Level {
    match kind {
        EventKind::RunStarted(_)
        | EventKind::RunClosed(_)
        | EventKind::Pausing { .. }
        | EventKind::Paused { .. }
        | EventKind::Resumed { .. }
        | EventKind::RunResumed { .. }
        | EventKind::RunForked { .. }
        | EventKind::CommandTaken { .. }
        | EventKind::CallInDoubt { .. }
        | EventKind::Stepped { .. }
        | EventKind::BreakpointChanged { .. }
        | EventKind::FlagChanged { .. }
        | EventKind::ConcurrencyChanged { .. }
        | EventKind::BreakerChanged { .. }
        | EventKind::LimitsChanged { .. }
        | EventKind::FaultInjected { .. }
        | EventKind::FaultRemoved { .. }
        | EventKind::Warning { .. }
        | EventKind::SessionRunDropped { .. } => Level::INFO,
        EventKind::Pattern(fact) if fact.get().confirms().is_some() => Level::INFO,
        // The run's own log has the first two; queue events are frequent and say little.
        EventKind::SessionRunStarted { .. }
        | EventKind::SessionRunClosed { .. }
        | EventKind::CallQueued
        | EventKind::CallAdmitted { .. }
        | EventKind::AttemptQueued { .. }
        | EventKind::ResultIgnored { .. }
        | EventKind::Unknown { .. } => Level::TRACE,
        _ => Level::DEBUG,
    }
}
