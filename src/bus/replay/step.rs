//! What comes next in a recorded run, and what a log gets from it.

use std::sync::Arc;

use crate::event::{Event, EventKind, SpanId};

/// How an attempt of a model or tool continues.
pub(crate) enum RecordedAttemptStep {
    /// As this recorded event says: it returned, or was in doubt.
    Event(Arc<Event>),
    /// The recording is used up, so the attempt is made. If its start is recorded, it is not known
    /// whether it took effect.
    Unknown {
        /// Whether its start is recorded.
        in_doubt: bool,
    },
}

/// The first recorded event that was not matched, if the run is idle: what has to happen next.
pub(crate) enum RecordedInput {
    /// The recording is used up.
    Over,
    /// A model or tool returned, or it is the turn of a call; the run continues.
    Delivered,
    /// An event that nothing in the run publishes again was skipped.
    Skipped,
    /// Any other event. A command or a timer has to lead to it.
    Event(Arc<Event>),
}

/// An event for a log that goes live.
pub enum ReplayedEvent {
    /// A recorded one, which a fork has from its parent.
    Recorded(Arc<Event>),
    /// A new one.
    New(SpanId, EventKind),
}
