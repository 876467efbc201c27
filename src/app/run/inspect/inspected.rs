//! A run as the inspector shows it: up to the playhead, or as it is now for an event after it.

use super::target::InspectTarget;
use crate::app::run::data::RunData;
use crate::app::run::event_window::EventWindow;
use crate::event::{Event, SpanId, World};

/// A run up to a moment. What came later is not shown.
#[derive(Clone, Copy)]
pub(crate) struct InspectedRun<'a> {
    /// The run.
    pub run: &'a RunData,
    /// The world at that moment.
    pub world: &'a World,
    /// The number of events in memory before that moment.
    pub events: usize,
}

impl<'a> InspectedRun<'a> {
    /// The run for a target: up to the playhead, unless the target is an event after it.
    pub(crate) fn for_target(run: &'a RunData, target: InspectTarget) -> Self {
        let is_later = match target {
            InspectTarget::Event(seq) => run.place(seq) >= run.shown_event_count(),
            InspectTarget::Call(call) => run.shown().spans.get(call).is_none(),
        };
        match is_later {
            true => Self { run, world: run.world(), events: run.log().len() },
            false => Self { run, world: run.shown(), events: run.shown_event_count() },
        }
    }

    /// The run's events in memory.
    pub(super) fn log(&self) -> &'a EventWindow {
        self.run.log()
    }

    /// The event that closed a span, if it is closed at that moment.
    pub(super) fn closing_event(&self, span: SpanId) -> Option<&'a Event> {
        self.run.event(self.world.spans.get(span)?.closed_by?)
    }

    /// The event that opened a span.
    pub(super) fn opening_event(&self, span: SpanId) -> Option<&'a Event> {
        self.run.event(self.world.spans.get(span)?.opened_by)
    }
}
