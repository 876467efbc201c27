//! Events that were dropped from the page's memory: what is still known, and what is shown.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::data::RunData;
use super::inspect::target::InspectTarget;
use crate::event::{Elapsed, Event, EventKind, Seq, SpanId};
use crate::narrate::format;

/// Where the whole log is: in the store of this machine, or in the cluster of a watched run.
pub(in crate::app) fn log_place(run: &RunData) -> &'static str {
    if run.remote.is_some() { "cluster" } else { "store" }
}

impl RunData {
    /// Whether an event has happened and was dropped.
    pub fn is_dropped(&self, seq: Seq) -> bool {
        self.log().first().is_none_or(|first| seq < first.seq) && seq < self.world().progress.next
    }

    /// Whether all events of what is inspected were dropped.
    pub(super) fn is_target_dropped(&self, target: InspectTarget) -> bool {
        match target {
            InspectTarget::Event(seq) => self.is_dropped(seq),
            InspectTarget::Call(call) => match self.world().spans.get(call) {
                Some(span) => span.closed_by.is_some_and(|last| self.is_dropped(last)),
                None => self.log().dropped_count() > 0,
            },
        }
    }

    /// The notice that events were dropped, and why.
    pub fn dropped_notice(&self) -> String {
        let first = format::exact(self.log().dropped_count() as u64 + 1);
        if self.earlier.is_stored() {
            let place = log_place(self);
            return format!("The events before event {first} left memory; the {place} has them.");
        }
        format!("The events before event {first} were dropped to bound memory.")
    }

    /// Where the scrubber begins: at the start of the run, or at the first event in memory.
    pub fn scrubber_start(&self) -> Elapsed {
        let first = self.log().first().filter(|_| self.log().dropped_count() > 0);
        first.map_or(Elapsed(0), |first| first.at)
    }

    /// The part of the events pane that holds their rows: below the line that says how many were
    /// dropped, if any were.
    pub fn list_area(&self, pane: Rect) -> Rect {
        let head = u16::from(self.log().dropped_count() > 0 && pane.height > 1);
        Rect { y: pane.y + head, height: pane.height - head, ..pane }
    }

    /// The events in memory. If earlier ones were dropped, the head of the run still comes first,
    /// then an event that says how many are missing.
    pub(super) fn events_for_export(&self) -> Vec<Arc<Event>> {
        let (Some(first), Some(head)) = (self.log().first(), &self.world().head) else {
            return self.log().to_vec();
        };
        let missing = (self.log().dropped_count() as u64).saturating_sub(1);
        if missing == 0 {
            return self.log().to_vec();
        }
        let fact = |seq, at, kind| Arc::new(Event { seq: Seq(seq), at, span: SpanId::RUN, kind });
        let head = fact(0, Elapsed(0), EventKind::RunStarted(Arc::clone(head)));
        let note = fact(1, first.at, EventKind::EventsDropped { events: missing });
        [head, note].into_iter().chain(self.log().iter().cloned()).collect()
    }
}
