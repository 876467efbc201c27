//! Events that were dropped from the page's memory: what is still known, and what is shown.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::RunPage;
use super::inspect::Target;
use crate::app::format;
use crate::event::{Elapsed, Event, EventKind, Seq, SpanId};

impl RunPage {
    /// Drops the events before this one, as the run's own log did; the world stays. A playhead
    /// among them moves to the first event that is left. Returns whether any event was dropped.
    pub fn let_go(&mut self, before: Seq) -> bool {
        let place = self.log.place(before).min(self.log.len().saturating_sub(1));
        if place <= self.log.gone() {
            return false;
        }
        self.past.let_go(place, &self.log);
        self.log.let_go(place);
        self.list.let_go(place);
        self.world.forget_before(before);
        true
    }

    /// Whether an event has happened and was dropped.
    pub fn is_gone(&self, seq: Seq) -> bool {
        self.log.first().is_none_or(|first| seq < first.seq) && seq < self.world.next
    }

    /// Whether all events of what is inspected were dropped.
    pub(super) fn is_target_gone(&self, target: Target) -> bool {
        match target {
            Target::Fact(seq) => self.is_gone(seq),
            Target::Call(call) => match self.world().spans.get(call) {
                Some(span) => span.closed_by.is_some_and(|last| self.is_gone(last)),
                None => self.log.gone() > 0,
            },
        }
    }

    /// The notice that events were dropped, and why.
    pub fn dropped(&self) -> String {
        let first = format::exact(self.log.gone() as u64 + 1);
        format!("The events before event {first} were dropped to bound memory.")
    }

    /// Where the scrubber begins: at the start of the run, or at the first event in memory.
    pub fn scrubbed_from(&self) -> Elapsed {
        let first = self.log.first().filter(|_| self.log.gone() > 0);
        first.map_or(Elapsed(0), |first| first.at)
    }

    /// The part of the events pane that holds their rows: below the line that says how many were
    /// dropped, if any were.
    pub fn list_area(&self, pane: Rect) -> Rect {
        let head = u16::from(self.log.gone() > 0 && pane.height > 1);
        Rect { y: pane.y + head, height: pane.height - head, ..pane }
    }

    /// The events in memory. If earlier ones were dropped, the head of the run still comes first,
    /// then an event that says how many are missing.
    pub(super) fn facts_for_a_file(&self) -> Vec<Arc<Event>> {
        let (Some(first), Some(head)) = (self.log.first(), &self.world.head) else {
            return self.log.to_vec();
        };
        let missing = (self.log.gone() as u64).saturating_sub(1);
        if missing == 0 {
            return self.log.to_vec();
        }
        let fact = |seq, at, kind| Arc::new(Event { seq: Seq(seq), at, span: SpanId::RUN, kind });
        let head = fact(0, Elapsed(0), EventKind::RunStarted(Arc::clone(head)));
        let note = fact(1, first.at, EventKind::FactsDropped { facts: missing });
        [head, note].into_iter().chain(self.log.iter().cloned()).collect()
    }
}
