//! What was executed of a recording so far.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use super::error::Divergence;
use super::fork::ForkLog;
use super::keys::{EventKey, describe, key_of};
use super::turns::Turns;
use crate::event::{Command, Event, EventKind, Seq, SpanId};

/// What was executed of a recording, and what waits for more of it.
#[derive(Default)]
pub(super) struct ReplayState {
    /// Which recorded events were matched.
    pub matched: Vec<bool>,
    /// The first that was not.
    pub next: usize,
    /// The indices of the events that were not matched, by what they are matched by, in their order.
    pub unmatched: HashMap<EventKey, VecDeque<usize>>,
    /// Events that the recording does not have, in their order.
    pub held: Vec<(SpanId, EventKind)>,
    /// Spans that have such an event.
    pub held_spans: BTreeSet<SpanId>,
    /// Attempts that continue as their next recorded event says.
    pub delivered: BTreeSet<SpanId>,
    /// Attempts that wait for this, or for the recording to be used up.
    pub waiting: BTreeMap<SpanId, Waker>,
    /// Calls that wait for their turn.
    pub turns: Turns,
    /// Where the run left its recording.
    pub divergence: Option<Divergence>,
    /// Commands that were sent before the recording was used up.
    pub commands: Vec<Command>,
    /// What a fork takes from the recording; `None`: the log continues the recording.
    pub fork: Option<ForkLog>,
}

impl ReplayState {
    /// Matches an event with the first recorded one of this key.
    pub fn take(&mut self, key: &EventKey, events: &[Arc<Event>]) -> Option<usize> {
        let place = self.unmatched.get_mut(key)?.pop_front()?;
        self.mark(place, events);
        Some(place)
    }

    fn mark(&mut self, place: usize, events: &[Arc<Event>]) {
        self.matched[place] = true;
        if let (Some(fork), Some(event)) = (&mut self.fork, events.get(place)) {
            fork.take(event);
        }
        while self.matched.get(self.next) == Some(&true) {
            self.next += 1;
        }
    }

    /// Marks an event as matched that the run does not publish.
    pub fn skip(&mut self, place: usize, events: &[Arc<Event>]) {
        let Some(event) = events.get(place) else { return };
        // Not a scan: a log can have a million events with this key.
        if let Some(places) = self.unmatched.get_mut(&key_of(event))
            && let Ok(at) = places.binary_search(&place)
        {
            places.remove(at);
        }
        self.mark(place, events);
    }

    /// Keeps an event until the recording is used up.
    pub fn hold(&mut self, span: SpanId, kind: EventKind) {
        if self.divergence.is_none() {
            self.held_spans.insert(span);
            self.held.push((span, kind));
        }
    }

    /// The run leaves its recording at this event. The first one counts.
    pub fn diverge(&mut self, events: &[Arc<Event>], place: usize, executed: String) {
        let seq = Seq(place as u64);
        if self.divergence.as_ref().is_none_or(|known| seq < known.seq) {
            let recorded = events.get(place).map_or_else(String::new, |it| describe(&it.kind));
            self.divergence = Some(Divergence { seq, recorded, executed });
        }
    }
}
