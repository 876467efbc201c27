//! The pauses of a run, which do not count in durations, just as `max_seconds` does not count them.

use std::sync::Arc;
use std::time::Duration;

use crate::event::Elapsed;

/// The pauses of a run in order. Copies share the list until one of them grows.
#[derive(Clone, Debug, Default)]
pub struct Pauses(Arc<Vec<Pause>>);

#[derive(Clone, Copy, Debug)]
struct Pause {
    from: Elapsed,
    until: Elapsed,
    /// Total length of the earlier pauses.
    before: Duration,
}

impl Pause {
    /// Total paused time before `at`, which must not be before this pause.
    fn paused_until(&self, at: Elapsed) -> Duration {
        self.before.saturating_add(at.min(self.until).since(self.from))
    }
}

impl Pauses {
    /// Records a pause. The part of it that overlaps an earlier one is ignored.
    pub(super) fn add(&mut self, from: Elapsed, until: Elapsed) {
        let last = self.0.last().copied();
        let from = last.map_or(from, |last| from.max(last.until));
        if until > from {
            let before = last.map_or(Duration::ZERO, |last| last.paused_until(last.until));
            Arc::make_mut(&mut self.0).push(Pause { from, until, before });
        }
    }

    /// Whether there was none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The start and the end of each, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Elapsed, Elapsed)> {
        self.0.iter().map(|pause| (pause.from, pause.until))
    }

    /// Paused time between two moments.
    pub fn between(&self, from: Elapsed, until: Elapsed) -> Duration {
        self.paused_before(until).saturating_sub(self.paused_before(from))
    }

    fn paused_before(&self, at: Elapsed) -> Duration {
        let begun = self.0.partition_point(|rest| rest.from <= at);
        begun
            .checked_sub(1)
            .and_then(|nth| self.0.get(nth))
            .map_or(Duration::ZERO, |it| it.paused_until(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Elapsed {
        Elapsed::from_duration(Duration::from_millis(ms))
    }

    #[test]
    fn what_a_run_stood_is_counted_as_far_as_it_lies_between() {
        let mut rests = Pauses::default();
        rests.add(at(100), at(200));
        rests.add(at(500), at(900));
        rests.add(at(50), at(60)); // never in a log of roundtable
        let stood = |from, until| rests.between(at(from), at(until)).as_millis();
        let table = [
            ((0, 50), 0),
            ((0, 150), 50),
            ((150, 160), 10),
            ((0, 1_000), 500),
            ((200, 500), 0),
            ((150, 600), 150),
            ((900, 5_000), 0),
        ];
        for ((from, until), expected) in table {
            assert_eq!(stood(from, until), expected, "{from} to {until}");
        }
    }
}
