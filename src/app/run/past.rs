//! The run at an earlier event. Snapshots of the world are kept at growing intervals, a bounded
//! number of them, so that a seek folds a part of the log and never all of it. If the first events
//! were dropped, there is a snapshot at the first that is left.

use super::RunLog;
use crate::event::World;

/// Most snapshots along the whole log; above it every other one is dropped.
const MOST: usize = 64;
/// Events between two snapshots at first.
const FIRST: usize = 512;
/// Longest part of the log that is folded without a snapshot on the way.
const SHORT: usize = 64;

/// The snapshots along the log, and the world at the playhead.
#[derive(Debug)]
pub(super) struct Past {
    every: usize,
    kept: Vec<Kept>,
    /// Snapshots on the way to the playhead, closer and closer to it: they make steps back cheap.
    near: Vec<Kept>,
    here: Option<Kept>,
    /// Whether the log has dropped events: the first snapshot is then the world they folded to.
    begins: bool,
}

#[derive(Clone, Debug)]
struct Kept {
    /// Number of events folded into it.
    facts: usize,
    world: World,
}

impl Default for Past {
    fn default() -> Self {
        Self { every: FIRST, kept: Vec::new(), near: Vec::new(), here: None, begins: false }
    }
}

impl Past {
    /// Called after each event with the world of the whole log; takes a snapshot now and then.
    pub(super) fn note(&mut self, facts: usize, world: &World) {
        if !facts.is_multiple_of(self.every) {
            return;
        }
        self.kept.push(Kept { facts, world: world.clone() });
        if self.kept.len() > MOST {
            self.every *= 2;
            let every = self.every;
            // The first snapshot may be the one at the start of a shortened log.
            let first = self.kept.first().map(|kept| kept.facts);
            let first = first.filter(|_| self.begins);
            self.kept.retain(|kept| kept.facts.is_multiple_of(every) || Some(kept.facts) == first);
        }
    }

    /// The world at the playhead; `None` at the head of the log.
    pub(super) fn world(&self) -> Option<&World> {
        self.here.as_ref().map(|here| &here.world)
    }

    /// Number of events before the playhead; `None` at the head of the log.
    pub(super) fn facts(&self) -> Option<usize> {
        self.here.as_ref().map(|here| here.facts)
    }

    /// Goes back to the head of the log.
    pub(super) fn leave(&mut self) {
        self.here = None;
        self.near.clear();
    }

    /// Called before the log drops the events up to this place: replaces the snapshots among them
    /// by one at this place.
    pub(super) fn let_go(&mut self, place: usize, log: &RunLog) {
        let before = self.kept.partition_point(|kept| kept.facts <= place);
        let first = self.kept.drain(..before).next_back();
        let mut first = first.unwrap_or_else(|| Kept { facts: 0, world: World::new() });
        for event in log.between(first.facts, place) {
            first.world.apply(event);
        }
        first.facts = place;
        if let Some(event) = log.get(place) {
            first.world.forget_before(event.seq);
        }
        self.near.retain(|near| near.facts >= place);
        if self.here.as_ref().is_some_and(|here| here.facts < place) {
            self.here = Some(first.clone());
        }
        self.kept.insert(0, first);
        self.begins = true;
    }

    /// Moves the playhead after this many events of the log, or to the first event in memory if
    /// that is later.
    pub(super) fn seek(&mut self, facts: usize, log: &RunLog) {
        let facts = facts.clamp(log.gone(), log.len());
        self.near.retain(|near| near.facts <= facts);
        let here = self.here.take();
        let kept = &self.kept[..self.kept.partition_point(|kept| kept.facts <= facts)];
        let from = here
            .filter(|here| here.facts <= facts)
            .into_iter()
            .chain(self.near.last().cloned())
            .chain(kept.last().cloned())
            .max_by_key(|kept| kept.facts)
            .unwrap_or_else(|| Kept { facts: 0, world: World::new() });
        let Kept { facts: start, mut world } = from;
        let mut halt = start + (facts - start) / 2;
        for (folded, event) in (start..).zip(log.between(start, facts)) {
            if folded == halt && folded > start && facts - folded > SHORT {
                self.near.push(Kept { facts: folded, world: world.clone() });
                halt = folded + (facts - folded) / 2;
            }
            world.apply(event);
        }
        self.here = Some(Kept { facts, world });
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.kept.len() + self.near.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{Elapsed, Event, EventKind, Seq, SpanId};

    fn log(facts: u64) -> RunLog {
        let mut log = RunLog::default();
        for at in 0..facts {
            let kind = EventKind::Warning { text: String::new() };
            log.take(&Arc::new(Event { seq: Seq(at), at: Elapsed(at), span: SpanId::RUN, kind }));
        }
        log
    }

    #[test]
    fn any_place_of_the_log_is_reached_from_any_other() {
        let log = log(100_000);
        let (mut past, mut world) = (Past::default(), World::new());
        for (at, event) in log.iter().enumerate() {
            world.apply(event);
            past.note(at + 1, &world);
        }
        for facts in [99_999, 99_998, 99_000, 5, 0, 1, 50_000, 49_999, 49_900, 100_000, 300_000] {
            past.seek(facts, &log);
            let facts = facts.min(log.len());
            assert_eq!(past.facts(), Some(facts));
            assert_eq!(past.world().map(|world| world.tally.facts), Some(facts as u64));
            assert!(past.held() <= MOST + 17, "{}", past.held());
        }
        past.leave();
        assert!(past.world().is_none());
    }

    #[test]
    fn what_the_log_has_let_go_of_is_no_place_to_seek_to_and_the_rest_is_as_it_was() {
        let all = log(100_000);
        let (mut held, mut past, mut world) = (RunLog::default(), Past::default(), World::new());
        for (at, event) in all.iter().enumerate() {
            world.apply(event);
            held.take(event);
            past.note(at + 1, &world);
            if at == 30_000 {
                past.seek(3_000, &held);
            }
            if at > 10_000 && at % 777 == 0 {
                let place = at - 7_000;
                past.let_go(place, &held);
                held.let_go(place);
                assert_eq!((held.gone(), held.len()), (place, at + 1));
            }
        }
        let first = held.gone();
        assert_eq!(past.facts(), Some(first), "the playhead moved with the window");
        for facts in [99_999, 95_000, first, 0, first + 1, 97_000, 300_000] {
            past.seek(facts, &held);
            let facts = facts.clamp(first, held.len());
            assert_eq!(past.facts(), Some(facts));
            assert_eq!(past.world().map(|world| world.tally.facts), Some(facts as u64));
            assert!(past.held() <= MOST + 18, "{}", past.held());
        }
    }
}
