//! The run at an earlier fact. Worlds are kept at growing intervals, a bounded number of them, so
//! that a seek folds a stretch of the log and never all of it. Where the log no longer begins with
//! the run, one is kept at its first fact.

use super::RunLog;
use crate::event::World;

/// Worlds kept over the whole log; past them every other one is dropped.
const MOST: usize = 64;
/// Facts between two kept worlds at first.
const FIRST: usize = 512;
/// A stretch that is folded without keeping worlds on the way.
const SHORT: usize = 64;

/// Worlds along the log, and the one at the playhead.
#[derive(Debug)]
pub(super) struct Past {
    every: usize,
    kept: Vec<Kept>,
    /// Kept on the way to the playhead, closer and closer to it: steps back from there are short.
    near: Vec<Kept>,
    here: Option<Kept>,
    /// The log has dropped its first facts: the first of the kept worlds is what they were folded to.
    begins: bool,
}

#[derive(Clone, Debug)]
struct Kept {
    /// Facts folded.
    facts: usize,
    world: World,
}

impl Default for Past {
    fn default() -> Self {
        Self { every: FIRST, kept: Vec::new(), near: Vec::new(), here: None, begins: false }
    }
}

impl Past {
    /// Looks at the world of the whole log so far, after each fact, and keeps it now and then.
    pub(super) fn note(&mut self, facts: usize, world: &World) {
        if !facts.is_multiple_of(self.every) {
            return;
        }
        self.kept.push(Kept { facts, world: world.clone() });
        if self.kept.len() > MOST {
            self.every *= 2;
            let every = self.every;
            // The first may stand where the log begins.
            let first = self.kept.first().map(|kept| kept.facts);
            let first = first.filter(|_| self.begins);
            self.kept.retain(|kept| kept.facts.is_multiple_of(every) || Some(kept.facts) == first);
        }
    }

    /// The world at the playhead, where there is one.
    pub(super) fn world(&self) -> Option<&World> {
        self.here.as_ref().map(|here| &here.world)
    }

    /// How many facts are folded at the playhead.
    pub(super) fn facts(&self) -> Option<usize> {
        self.here.as_ref().map(|here| here.facts)
    }

    /// Away from the past.
    pub(super) fn leave(&mut self) {
        self.here = None;
        self.near.clear();
    }

    /// The log is about to let go of the facts before this place: what is kept from there on folds
    /// none of them.
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

    /// Puts the playhead after this many facts of the log, no earlier than those that it holds.
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
        assert_eq!(past.facts(), Some(first), "the playhead went with the window");
        for facts in [99_999, 95_000, first, 0, first + 1, 97_000, 300_000] {
            past.seek(facts, &held);
            let facts = facts.clamp(first, held.len());
            assert_eq!(past.facts(), Some(facts));
            assert_eq!(past.world().map(|world| world.tally.facts), Some(facts as u64));
            assert!(past.held() <= MOST + 18, "{}", past.held());
        }
    }
}
