//! How far a run is: its stage, its clock without the pauses, its answer and its end. Pauses count
//! in no duration, just as in `max_seconds`.

use std::sync::Arc;
use std::time::Duration;

use crate::log::event::{BoundaryId, Elapsed, Event, Initiator, RunClosed, Seq};
use crate::scenario::spec::script::ReplyEnd;

/// Whether a run is running, paused or closed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RunState {
    /// No event yet.
    #[default]
    Empty,
    Running,
    /// A pause was requested; active branches finish first.
    Pausing {
        /// Who requested it.
        by: Initiator,
        /// When the clock stopped: it does not wait for the branches if the process is suspended or the
        /// store cannot be written. `None`: it continues until every branch waits.
        since: Option<Elapsed>,
    },
    /// Every branch waits at a boundary.
    Paused {
        /// The boundaries; the first one resumes first.
        at: Vec<BoundaryId>,
        /// When the pause began.
        since: Elapsed,
    },
    /// Ended; [`RunProgress::closed`] says how.
    Closed,
}

/// How far a run is.
#[derive(Clone, Debug, Default)]
pub struct RunProgress {
    /// Whether the run is running, paused or closed.
    pub stage: RunState,
    pub at: Elapsed,
    /// Sequence number of the next event.
    pub next: Seq,
    /// The answer, once it is composed.
    pub answer: Option<Arc<str>>,
    pub answer_end: ReplyEnd,
    /// The result of the run for the list of runs: a decision, a level, a route, or who answered.
    pub result: Option<Arc<str>>,
    /// The messages that were sent to the run: the next run of its session answers them.
    pub queued: Vec<Arc<str>>,
    /// How the run ended, once it has.
    pub closed: Option<Arc<RunClosed>>,
    /// Since when every branch waits for people, as far as the events tell: the clock is stopped.
    pub waits_since: Option<Elapsed>,
    /// When the last open span of a watched program ended: its clock is stopped since then.
    pub quiet_since: Option<Elapsed>,
    /// Total length of the pauses so far.
    paused: Duration,
    /// The part of it in which all branches waited for people.
    waited: Duration,
    pauses: Pauses,
}

/// More than the times of a run differ by rounding.
const ROUNDED: Duration = Duration::from_millis(20);

impl RunProgress {
    /// Counts the time and the number of an event.
    pub(crate) fn count(&mut self, event: &Event) {
        self.at = self.at.max(event.at);
        self.next = self.next.max(Seq(event.seq.0.saturating_add(1)));
    }

    /// The next message of the session: those that were queued, with an empty line between them.
    pub(crate) fn next_message(&self) -> Option<String> {
        (!self.queued.is_empty()).then(|| self.queued.join("\n\n"))
    }

    /// The run starts, unless it is closed already.
    pub(crate) fn start(&mut self) {
        if self.closed.is_none() {
            self.stage = RunState::Running;
        }
    }

    /// The run ends at `at`.
    pub(crate) fn close(&mut self, closed: &RunClosed, at: Elapsed) {
        if let Some(since) = self.stopped_since() {
            self.pauses.add(since, at);
            if !matches!(self.stage, RunState::Paused { .. }) {
                self.waited = self.waited.saturating_add(at.since(since));
            }
        }
        self.stage = RunState::Closed;
        self.closed = Some(Arc::new(closed.clone()));
        self.paused = Duration::from_millis(closed.paused_ms);
        // If the run ends while it waits for people, no event says how long it waited.
        let missing = self.paused.saturating_sub(self.pauses.between(Elapsed(0), at));
        if missing >= ROUNDED {
            self.waited = self.waited.saturating_add(missing);
            self.pauses.add(Elapsed(at.0.saturating_sub(missing.as_micros() as u64)), at);
        }
    }

    /// How long all branches waited for people, of the time without activity.
    pub(crate) fn waited(&self) -> Duration {
        self.waited.min(self.paused)
    }

    /// A pause is requested at `now`.
    pub(super) fn request_pause(&mut self, by: Initiator, now: Elapsed) {
        self.set_stage(RunState::Pausing { by, since: by.is_program().then_some(now) });
    }

    /// The run is paused at these boundaries. If it is paused already, one more branch has arrived.
    pub(crate) fn pause(&mut self, boundaries: &[BoundaryId], now: Elapsed) {
        let since = match self.stage {
            RunState::Paused { since, .. } => since,
            _ => self.stopped_since().unwrap_or(now),
        };
        self.set_stage(RunState::Paused { at: boundaries.to_vec(), since });
    }

    /// The run resumes at `until` after a pause of `paused_ms`.
    pub(crate) fn resume(&mut self, until: Elapsed, paused_ms: u64, stage: RunState) {
        self.paused = self.paused.saturating_add(Duration::from_millis(paused_ms));
        self.add_pause(until, paused_ms);
        // The pause counts as one: a wait for people that lasts counts from here.
        self.waits_since = self.waits_since.map(|_| until);
        self.set_stage(stage);
    }

    /// The clock was stopped for this long until now.
    fn add_pause(&mut self, until: Elapsed, paused_ms: u64) {
        let from = until.0.saturating_sub(paused_ms.saturating_mul(1_000));
        self.pauses.add(Elapsed(from), until);
    }

    /// Stops the clock between two moments, in which a watched program reported no span.
    pub(super) fn stand(&mut self, from: Elapsed, until: Elapsed) {
        self.paused = self.paused.saturating_add(until.since(from));
        self.pauses.add(from, until);
    }

    /// All branches waited for people until now.
    pub(super) fn waited_for_people(&mut self, until: Elapsed, stood_ms: u64) {
        let stood = Duration::from_millis(stood_ms);
        self.paused = self.paused.saturating_add(stood);
        self.waited = self.waited.saturating_add(stood);
        self.add_pause(until, stood_ms);
    }

    /// A closed run stays closed, even if a file has more events.
    fn set_stage(&mut self, stage: RunState) {
        if self.is_live() {
            self.stage = stage;
        }
    }

    /// Whether the run has started and is not closed.
    pub fn is_live(&self) -> bool {
        !matches!(self.stage, RunState::Empty | RunState::Closed)
    }

    /// When the clock of the run stopped, if it is stopped now.
    pub fn stopped_since(&self) -> Option<Elapsed> {
        match self.stage {
            RunState::Paused { since, .. } => Some(since),
            RunState::Pausing { since, .. } => since.or(self.waits_since),
            RunState::Running => self.waits_since.or(self.quiet_since),
            RunState::Empty | RunState::Closed => None,
        }
    }

    /// Time that the run has been active until `now`, without pauses: `max_seconds` limits it.
    pub fn active(&self, now: Elapsed) -> Duration {
        if let Some(closed) = &self.closed {
            return Duration::from_millis(closed.elapsed_ms);
        }
        let standing = self.stopped_since().map_or(Duration::ZERO, |since| now.since(since));
        now.duration().saturating_sub(self.paused).saturating_sub(standing)
    }

    /// The run's own time at a moment of its log: without the pauses before it. All times that are
    /// shown are of this clock.
    pub fn run_time(&self, at: Elapsed) -> Duration {
        self.active_between(Elapsed(0), at)
    }

    /// Like [`run_time`](Self::run_time), in the unit of the log.
    pub(super) fn run_time_us(&self, at: Elapsed) -> Elapsed {
        if self.has_never_paused() { at } else { Elapsed::from_duration(self.run_time(at)) }
    }

    /// Time between two moments, without the pauses between them.
    pub fn active_between(&self, from: Elapsed, until: Elapsed) -> Duration {
        if self.has_never_paused() {
            return until.since(from);
        }
        let stopped = self.stopped_since();
        let standing = stopped.map_or(Duration::ZERO, |since| until.since(since.max(from)));
        until.since(from).saturating_sub(self.pauses.between(from, until)).saturating_sub(standing)
    }

    /// Whether the run has not paused so far, as most runs: then no pause is subtracted.
    fn has_never_paused(&self) -> bool {
        self.pauses.is_empty() && self.stopped_since().is_none()
    }

    pub(crate) fn pauses(&self) -> &Pauses {
        &self.pauses
    }
}

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
    pub(crate) fn add(&mut self, from: Elapsed, until: Elapsed) {
        let last = self.0.last().copied();
        let from = last.map_or(from, |last| from.max(last.until));
        if until > from {
            let before = last.map_or(Duration::ZERO, |last| last.paused_until(last.until));
            Arc::make_mut(&mut self.0).push(Pause { from, until, before });
        }
    }

    /// Whether there was none.
    pub(crate) fn is_empty(&self) -> bool {
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

    const fn at(ms: u64) -> Elapsed {
        Elapsed(ms * 1_000)
    }

    #[test]
    fn clock_stops_where_nothing_can_continue() {
        for (by, stops) in
            [(Initiator::You, false), (Initiator::Store, true), (Initiator::Suspend, true)]
        {
            let mut progress = RunProgress::default();
            progress.start();
            progress.request_pause(by, at(100));
            let shown = |progress: &RunProgress| progress.active(at(400)).as_millis();
            assert_eq!(shown(&progress), if stops { 100 } else { 400 }, "{by:?}");
            progress.pause(&[BoundaryId::new("x")], at(200));
            assert_eq!(shown(&progress), if stops { 100 } else { 200 }, "{by:?}");
            let paused_ms = if stops { 400 } else { 300 };
            progress.resume(at(500), paused_ms, RunState::Running);
            assert_eq!(progress.active(at(600)).as_millis(), u128::from(600 - paused_ms), "{by:?}");
            assert_eq!(
                progress.active_between(at(0), at(600)).as_millis(),
                u128::from(600 - paused_ms),
                "{by:?}"
            );
        }
    }

    #[test]
    fn wait_before_end_is_no_activity() {
        let mut progress = RunProgress::default();
        progress.start();
        let closed = RunClosed {
            reason: crate::log::event::StopReason::Cancelled,
            phase: None,
            boundary: None,
            elapsed_ms: 100,
            paused_ms: 400,
            in_flight: 0,
        };
        progress.close(&closed, at(500));
        assert_eq!(progress.run_time(at(500)).as_millis(), 100);
        assert_eq!(progress.waited().as_millis(), 400);
    }

    #[test]
    fn pause_during_wait_counts_once() {
        let at = pauses_at;
        let mut progress = RunProgress::default();
        progress.start();
        progress.waits_since = Some(at(100));
        progress.pause(&[BoundaryId::new("x")], at(300));
        progress.resume(at(500), 400, RunState::Running);
        assert_eq!(progress.run_time(at(500)).as_millis(), 100);
        assert_eq!(progress.run_time(at(600)).as_millis(), 100, "it still waits");
        progress.waits_since = None;
        progress.waited_for_people(at(700), 200);
        assert_eq!(progress.active(at(800)).as_millis(), 200);
        assert_eq!(progress.run_time(at(800)).as_millis(), 200);
    }

    fn pauses_at(ms: u64) -> Elapsed {
        Elapsed::from_duration(Duration::from_millis(ms))
    }

    #[test]
    fn counts_pauses_within_interval() {
        let mut pauses = Pauses::default();
        pauses.add(pauses_at(100), pauses_at(200));
        pauses.add(pauses_at(500), pauses_at(900));
        pauses.add(pauses_at(50), pauses_at(60)); // never in a log of roundtable
        let stood = |from, until| pauses.between(pauses_at(from), pauses_at(until)).as_millis();
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
