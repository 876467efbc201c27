//! The run at an earlier fact. Worlds are kept at growing intervals, a bounded number of them, so
//! that a seek folds a stretch of the log and never all of it.

use std::sync::Arc;

use crate::event::{Event, World};

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
}

#[derive(Clone, Debug)]
struct Kept {
    /// Facts folded.
    facts: usize,
    world: World,
}

impl Default for Past {
    fn default() -> Self {
        Self { every: FIRST, kept: Vec::new(), near: Vec::new(), here: None }
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
            self.kept.retain(|kept| kept.facts.is_multiple_of(every));
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

    /// Puts the playhead after this many facts of the log.
    pub(super) fn seek(&mut self, facts: usize, log: &[Arc<Event>]) {
        let facts = facts.min(log.len());
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
        for (folded, event) in log.iter().enumerate().take(facts).skip(start) {
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
    use super::*;
    use crate::event::{Elapsed, EventKind, Seq, SpanId};

    fn log(facts: u64) -> Vec<Arc<Event>> {
        (0..facts)
            .map(|at| {
                let kind = EventKind::Warning { text: String::new() };
                Arc::new(Event { seq: Seq(at), at: Elapsed(at), span: SpanId::RUN, kind })
            })
            .collect()
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
}
