//! A run over time, for the scrubber: marks, the number of events over time, and the longest times
//! in which nothing happened (pauses do not count, since the clock is stopped). Memory is bounded
//! for a run of any length.

use std::time::Duration;

use super::progress::RunProgress;
use crate::base::name::{AgentName, FlagName, PersonName, ToolName};
use crate::log::event::{BreakerStage, Elapsed, Event, Seq};

/// Most marks for the scrubber; further ones are counted in [`RunOverTime::marks_not_kept`].
const MARKS: usize = 2048;

/// A run over time.
#[derive(Clone, Debug, Default)]
pub struct RunOverTime {
    /// Moments to mark on the scrubber, in order.
    pub marks: Vec<ScrubberMark>,
    /// Number of marks that were not kept.
    pub marks_not_kept: u64,
    /// Number of events over the time of the run, without its pauses.
    pub activity: Activity,
    /// The longest times without an event.
    pub idle: IdleTimes,
    last: Elapsed,
}

impl RunOverTime {
    /// Counts an event; `run` is as it was before it.
    pub(crate) fn count(&mut self, event: &Event, run: &RunProgress) {
        self.activity.count(run.run_time_us(event.at));
        let last = std::mem::replace(&mut self.last, event.at);
        if run.active_between(last, event.at) == event.at.since(last) {
            self.idle.add(last, event.at);
        }
    }

    pub(crate) fn mark(&mut self, event: &Event, what: MarkKind) {
        if self.marks.len() < MARKS {
            self.marks.push(ScrubberMark { at: event.at, seq: event.seq, what });
        } else {
            self.marks_not_kept += 1;
        }
    }
}

/// A moment to mark on the scrubber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubberMark {
    pub at: Elapsed,
    pub seq: Seq,
    pub what: MarkKind,
}

/// The meaning of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkKind {
    Round(u32),
    /// The answer is being composed.
    Finalize,
    /// A flag was switched.
    Flag(FlagName, bool),
    /// An agent of a swarm took over.
    Handoff(AgentName),
    /// The root agent consults another agent.
    Consulted(AgentName),
    /// A part of the work that the pattern names is done, such as reading a source's page; its short
    /// label.
    Part(Box<str>),
    Asked(PersonName),
    /// A call is retried.
    Retry,
    /// A tool's breaker changed its state.
    Breaker(ToolName, BreakerStage),
    /// A fault was injected into a tool (`true`) or removed.
    Fault(ToolName, bool),
    Paused,
    /// A handoff was refused by the limits of a swarm, or a source by an allowlist.
    Refused,
    /// A call or a contribution failed.
    Failed,
    Closed,
}

/// Number of buckets; their width doubles whenever the time exceeds the last one.
const BUCKETS: usize = 256;
/// Width of a bucket at the start, in microseconds.
const FIRST_WIDTH_US: u64 = 25_000;

/// Number of events over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    counts: Vec<u32>,
    width: u64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { counts: Vec::new(), width: FIRST_WIDTH_US }
    }
}

impl Activity {
    pub(crate) fn count(&mut self, at: Elapsed) {
        let mut bucket = at.0 / self.width;
        while bucket >= BUCKETS as u64 {
            self.width = self.width.saturating_mul(2);
            self.counts = self
                .counts
                .chunks(2)
                .map(|pair| pair.iter().fold(0, |a, b| u32::saturating_add(a, *b)))
                .collect();
            bucket = at.0 / self.width;
        }
        let bucket = bucket as usize;
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    /// The events from the start until `end`, in `columns` columns of equal time. The columns add
    /// up to the number of events up to the bucket of `end`.
    pub fn columns(&self, end: Elapsed, columns: usize) -> Vec<u32> {
        let mut out = vec![0u32; columns];
        if columns == 0 {
            return out;
        }
        let span = end.0.max(1);
        for (bucket, count) in self.counts.iter().enumerate() {
            let start = bucket as u64 * self.width;
            if start > end.0 {
                break;
            }
            let middle = (start + self.width / 2).min(span.saturating_sub(1));
            let column = (u128::from(middle) * columns as u128 / u128::from(span)) as usize;
            let column = column.min(columns - 1);
            out[column] = out[column].saturating_add(*count);
        }
        out
    }
}

/// Most idle times that are kept.
const KEPT: usize = 8;
/// Shortest idle time that is kept.
const MIN_IDLE: Duration = Duration::from_secs(30);

/// The longest idle times of a run.
#[derive(Clone, Debug, Default)]
pub struct IdleTimes {
    /// The longest first.
    longest: Vec<(Elapsed, Elapsed)>,
}

impl IdleTimes {
    /// Records the time between two consecutive events.
    pub(crate) fn add(&mut self, from: Elapsed, until: Elapsed) {
        let length = until.since(from);
        if length < MIN_IDLE {
            return;
        }
        let place = self.longest.partition_point(|(from, until)| until.since(*from) >= length);
        if place < KEPT {
            self.longest.insert(place, (from, until));
            self.longest.truncate(KEPT);
        }
    }

    /// The idle times from this moment on that are worth folding: each is longer than all that is
    /// left of `total`, which is the time of the run without pauses.
    pub(crate) fn folded(
        &self,
        total: Duration,
        from: Elapsed,
    ) -> impl Iterator<Item = (Elapsed, Elapsed)> {
        let mut left = total;
        let held = self.longest.iter().copied().filter(move |(start, _)| *start >= from);
        held.take_while(move |(from, until)| {
            let length = until.since(*from);
            left = left.saturating_sub(length);
            length > left
        })
    }
}
