//! The facts of runs as lines of the program's log. The one place that decides which of them a person
//! looks for there, and at what level:
//!
//! - `info`: a run starts and ends; breakers move; what a person or the command line changes; warnings.
//! - `debug`: calls, attempts, retries, and what the pattern made of them.
//! - `trace`: every other fact.
//!
//! A line says what the list of events says, cut off. No prompt is in it at any level, and replies and
//! arguments only from `debug` on. The program's own doings (files written, consent) are logged where
//! they are done.

use tracing::{Level, enabled};

use crate::app::run::told;
use crate::event::visible::visible_within;
use crate::event::{Event, EventKind, World};

/// What the filter calls these lines: `ROUNDTABLE_LOG=roundtable::run=debug`.
const TARGET: &str = "roundtable::run";

/// The most characters of a line.
const MOST: usize = 300;

/// Whether any fact would be logged.
pub fn is_on() -> bool {
    enabled!(target: TARGET, Level::INFO)
}

/// Logs a fact. `world` has it folded already.
pub fn note(event: &Event, world: &World) {
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
    let told = told::tell(event, world);
    let parts = [told.kind, &told.who, &told.what];
    let line: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let line = visible_within(&line.join(" "), MOST);
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
        | EventKind::Stepped { .. }
        | EventKind::BreakpointChanged { .. }
        | EventKind::FlagChanged { .. }
        | EventKind::ParallelChanged { .. }
        | EventKind::RosterChanged { .. }
        | EventKind::BreakerChanged { .. }
        | EventKind::LimitsChanged { .. }
        | EventKind::FaultInjected { .. }
        | EventKind::FaultHealed { .. }
        | EventKind::Warning { .. }
        | EventKind::SessionRunForgotten { .. } => Level::INFO,
        // Said by the run itself, and queues are many facts that say little.
        EventKind::SessionRunStarted { .. }
        | EventKind::SessionRunClosed { .. }
        | EventKind::CallQueued
        | EventKind::CallAdmitted { .. }
        | EventKind::AttemptQueued { .. }
        | EventKind::ResultStale { .. }
        | EventKind::Unknown { .. } => Level::TRACE,
        _ => Level::DEBUG,
    }
}
