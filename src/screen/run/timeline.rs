//! The run at an earlier event. Snapshots of the world are kept at growing intervals, a bounded
//! number of them, so that a seek folds a part of the log and never all of it. If the first events
//! were dropped, there is a snapshot at the first that is left.

use super::EventWindow;
use crate::log::event::World;

/// Maximum number of snapshots along the whole log; above it every other one is dropped.
const MAX_SNAPSHOTS: usize = 64;
/// Events between two snapshots at first.
const FIRST_INTERVAL: usize = 512;
/// Longest part of the log that is folded without a snapshot on the way.
const SHORT_FOLD: usize = 64;

/// The log may keep more events than it is asked to, for the sake of a snapshot: an eighth of their number.
const MAX_KEPT_PART: usize = 8;

/// The snapshots along the log, and the world at the playhead.
#[derive(Debug)]
pub(crate) struct Timeline {
    interval: usize,
    snapshots: Vec<Snapshot>,
    /// Snapshots on the way to the playhead, closer and closer to it: they make steps back cheap.
    nearby: Vec<Snapshot>,
    playhead: Option<Snapshot>,
    /// Whether the log has dropped events: the first snapshot is then the world they folded to.
    is_truncated: bool,
}

#[derive(Clone, Debug)]
struct Snapshot {
    /// Number of events folded into it.
    events: usize,
    world: World,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            interval: FIRST_INTERVAL,
            snapshots: Vec::new(),
            nearby: Vec::new(),
            playhead: None,
            is_truncated: false,
        }
    }
}

impl Timeline {
    /// Called after each event with the world of the whole log; takes a snapshot now and then.
    pub(crate) fn record(&mut self, facts: usize, world: &World) {
        if !facts.is_multiple_of(self.interval) {
            return;
        }
        self.snapshots.push(Snapshot { events: facts, world: world.clone() });
        if self.snapshots.len() > MAX_SNAPSHOTS {
            self.interval *= 2;
            let every = self.interval;
            // The first snapshot may be the one at the start of a shortened log.
            let first = self.snapshots.first().map(|kept| kept.events);
            let first = first.filter(|_| self.is_truncated);
            self.snapshots
                .retain(|kept| kept.events.is_multiple_of(every) || Some(kept.events) == first);
        }
    }

    /// The world at the playhead; `None` at the head of the log.
    pub(crate) fn world(&self) -> Option<&World> {
        self.playhead.as_ref().map(|here| &here.world)
    }

    /// Number of events before the playhead; `None` at the head of the log.
    pub(super) fn event_count(&self) -> Option<usize> {
        self.playhead.as_ref().map(|here| here.events)
    }

    /// Goes back to the head of the log.
    pub(crate) fn go_live(&mut self) {
        self.playhead = None;
        self.nearby.clear();
    }

    /// Called before the log drops the events up to `place`. Returns the place up to which it may drop them;
    /// `None`: it keeps them all. The first snapshot is at that place. A snapshot shortly before `place` is
    /// used if there is one, so that no event is folded twice; else one is made at `place`.
    pub(crate) fn drop_before(&mut self, place: usize, log: &EventWindow) -> Option<usize> {
        let before = self.snapshots.partition_point(|kept| kept.events <= place);
        let at = before.checked_sub(1).map_or(0, |last| self.snapshots[last].events);
        let most = log.len().saturating_sub(place) / MAX_KEPT_PART;
        let is_near = place - at <= most;
        let place = if is_near { at } else { place };
        if place <= log.dropped_count() {
            return None;
        }
        let first = self.snapshots.drain(..before).next_back();
        let mut first = first.unwrap_or_else(|| Snapshot { events: 0, world: World::new() });
        if !is_near {
            for event in log.between(first.events, place) {
                first.world.apply(event);
            }
            first.events = place;
            if let Some(event) = log.get(place) {
                first.world.forget_before(event.seq);
            }
            // The window has become small. From now on there are more snapshots, so a later drop finds one.
            while self.interval > FIRST_INTERVAL && self.interval > most {
                self.interval /= 2;
            }
        }
        self.nearby.retain(|near| near.events >= place);
        if self.playhead.as_ref().is_some_and(|here| here.events < place) {
            self.playhead = Some(first.clone());
        }
        self.snapshots.insert(0, first);
        self.is_truncated = true;
        Some(place)
    }

    /// Moves the playhead after this many events of the log, or to the first event in memory if
    /// that is later.
    pub(crate) fn seek(&mut self, facts: usize, log: &EventWindow) {
        let facts = facts.clamp(log.dropped_count(), log.len());
        self.nearby.retain(|near| near.events <= facts);
        let here = self.playhead.take();
        let kept = &self.snapshots[..self.snapshots.partition_point(|kept| kept.events <= facts)];
        let from = here
            .filter(|here| here.events <= facts)
            .into_iter()
            .chain(self.nearby.last().cloned())
            .chain(kept.last().cloned())
            .max_by_key(|kept| kept.events)
            .unwrap_or_else(|| Snapshot { events: 0, world: World::new() });
        let Snapshot { events: start, mut world } = from;
        let mut halt = start + (facts - start) / 2;
        for (folded, event) in (start..).zip(log.between(start, facts)) {
            if folded == halt && folded > start && facts - folded > SHORT_FOLD {
                self.nearby.push(Snapshot { events: folded, world: world.clone() });
                halt = folded + (facts - folded) / 2;
            }
            world.apply(event);
        }
        self.playhead = Some(Snapshot { events: facts, world });
    }

    #[cfg(test)]
    fn snapshot_count(&self) -> usize {
        self.snapshots.len() + self.nearby.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::log::event::{Elapsed, Event, EventKind, Seq, SpanId};

    fn log(facts: u64) -> EventWindow {
        let mut log = EventWindow::default();
        for at in 0..facts {
            let kind = EventKind::Warning { text: String::new() };
            log.push(&Arc::new(Event { seq: Seq(at), at: Elapsed(at), span: SpanId::RUN, kind }));
        }
        log
    }

    #[test]
    fn seeks_between_any_two_places() {
        let log = log(100_000);
        let (mut past, mut world) = (Timeline::default(), World::new());
        for (at, event) in log.iter().enumerate() {
            world.apply(event);
            past.record(at + 1, &world);
        }
        for facts in [99_999, 99_998, 99_000, 5, 0, 1, 50_000, 49_999, 49_900, 100_000, 300_000] {
            past.seek(facts, &log);
            let facts = facts.min(log.len());
            assert_eq!(past.event_count(), Some(facts));
            assert_eq!(past.world().map(|world| world.tally.events), Some(facts as u64));
            assert!(past.snapshot_count() <= MAX_SNAPSHOTS + 17, "{}", past.snapshot_count());
        }
        past.go_live();
        assert!(past.world().is_none());
    }

    #[test]
    fn seeking_stops_at_first_held_event() {
        let all = log(100_000);
        let (mut held, mut past, mut world) =
            (EventWindow::default(), Timeline::default(), World::new());
        for (at, event) in all.iter().enumerate() {
            world.apply(event);
            held.push(event);
            past.record(at + 1, &world);
            if at == 30_000 {
                past.seek(3_000, &held);
            }
            if at > 10_000 && at % 777 == 0 {
                let place = at - 7_000;
                if let Some(first) = past.drop_before(place, &held) {
                    assert!(first.is_multiple_of(FIRST_INTERVAL), "a snapshot is there already");
                    held.drop_before(first);
                    assert_eq!((held.dropped_count(), held.len()), (first, at + 1));
                }
                let kept_more = place - held.dropped_count();
                assert!(kept_more <= 7_000 / MAX_KEPT_PART, "{kept_more} events");
            }
        }
        let first = held.dropped_count();
        assert_eq!(past.event_count(), Some(first), "the playhead moved with the window");
        assert_seeks(past, &held);
    }

    #[test]
    fn shrunken_window_starts_at_requested_place() {
        let all = log(100_000);
        let (mut held, mut past, mut world) =
            (EventWindow::default(), Timeline::default(), World::new());
        let mut folded = 0;
        for (at, event) in all.iter().enumerate() {
            world.apply(event);
            held.push(event);
            past.record(at + 1, &world);
            let keeps = if at < 80_000 { 60_000 } else { 8_000 };
            if at > keeps && at % 250 == 0 {
                let place = at - keeps;
                if let Some(first) = past.drop_before(place, &held) {
                    folded += usize::from(!first.is_multiple_of(FIRST_INTERVAL));
                    held.drop_before(first);
                }
                assert!(place - held.dropped_count() <= keeps / MAX_KEPT_PART);
            }
        }
        assert_eq!(past.interval, FIRST_INTERVAL, "it was twice that for the large window");
        assert!((1..20).contains(&folded), "{folded} drops folded events again");
        assert_seeks(past, &held);
    }

    /// Whether every place that is held is reached, and no other.
    fn assert_seeks(mut past: Timeline, held: &EventWindow) {
        let first = held.dropped_count();
        for facts in [99_999, 95_000, first, 0, first + 1, 97_000, 300_000] {
            past.seek(facts, held);
            let facts = facts.clamp(first, held.len());
            assert_eq!(past.event_count(), Some(facts));
            assert_eq!(past.world().map(|world| world.tally.events), Some(facts as u64));
            assert!(past.snapshot_count() <= MAX_SNAPSHOTS + 18, "{}", past.snapshot_count());
        }
    }
}
