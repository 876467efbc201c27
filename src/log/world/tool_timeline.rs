//! A tool over time: its requests, failed attempts, latencies, queue and the states of its breaker.
//! Its time is the run's own, without pauses. The number of buckets is bounded for a run of any
//! length, and copies share those that did not change.

use std::sync::Arc;
use std::time::Duration;

use super::chunked::Chunked;
use crate::log::event::{BreakerStage, Elapsed};

/// Number of buckets; their width doubles whenever the time exceeds the last one.
const BUCKETS: usize = 512;
/// Width of a bucket at the start, in microseconds.
const FIRST_WIDTH_US: u64 = 250_000;
/// Number of ranges that durations are counted in.
const RANGES: usize = 72;
/// Length of the first ranges, in microseconds as a power of two.
const RANGE_BITS: u32 = 7;

/// A tool over the time of its run, without pauses.
#[derive(Clone, Debug)]
pub struct ToolTimeline {
    buckets: Chunked<Bucket>,
    width: u64,
    now: Level,
}

/// What holds until it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    running: u32,
    queued: u32,
    stage: BreakerStage,
}

/// A part of the time.
#[derive(Clone, Debug, Default)]
struct Bucket {
    requests: u32,
    good: u32,
    bad: u32,
    running: u32,
    queued: u32,
    stages: StageSet,
    took: Option<Arc<Durations>>,
}

impl Bucket {
    fn starting_at(level: Level) -> Self {
        let mut bucket = Self::default();
        bucket.note(level);
        bucket
    }

    fn note(&mut self, level: Level) {
        self.running = self.running.max(level.running);
        self.queued = self.queued.max(level.queued);
        self.stages.add(level.stage);
    }

    fn add(&mut self, other: &Bucket) {
        self.requests = self.requests.saturating_add(other.requests);
        self.good = self.good.saturating_add(other.good);
        self.bad = self.bad.saturating_add(other.bad);
        self.running = self.running.max(other.running);
        self.queued = self.queued.max(other.queued);
        self.stages.0 |= other.stages.0;
        match (&mut self.took, &other.took) {
            (Some(took), Some(other)) => Arc::make_mut(took).add(other),
            (took @ None, other) => took.clone_from(other),
            (Some(_), None) => {}
        }
    }
}

/// A set of breaker states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StageSet(u8);

impl StageSet {
    /// The states, the one that matters most first.
    const BY_WEIGHT: [BreakerStage; 5] = [
        BreakerStage::Open,
        BreakerStage::Held,
        BreakerStage::HalfOpen,
        BreakerStage::Disabled,
        BreakerStage::Closed,
    ];

    fn add(&mut self, stage: BreakerStage) {
        if let Some(nth) = Self::BY_WEIGHT.iter().position(|it| *it == stage) {
            self.0 |= 1 << nth;
        }
    }

    fn heaviest(self) -> Option<BreakerStage> {
        Self::BY_WEIGHT.get(self.0.trailing_zeros() as usize).copied()
    }
}

/// Durations, counted in ranges of which each is at most a quarter longer than the one before.
#[derive(Clone, Debug)]
struct Durations {
    counts: [u16; RANGES],
    longest: Duration,
}

impl Durations {
    fn new() -> Self {
        Self { counts: [0; RANGES], longest: Duration::ZERO }
    }

    fn count(&mut self, took: Duration) {
        let units = u64::try_from(took.as_micros()).unwrap_or(u64::MAX) >> RANGE_BITS;
        let range = match units.checked_ilog2() {
            None | Some(0 | 1) => units,
            Some(log) => u64::from(4 * (log - 1)) + ((units >> (log - 2)) & 3),
        };
        let range = usize::try_from(range).unwrap_or(RANGES).min(RANGES - 1);
        self.counts[range] = self.counts[range].saturating_add(1);
        self.longest = self.longest.max(took);
    }

    fn add(&mut self, other: &Durations) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.longest = self.longest.max(other.longest);
    }

    /// The 95th percentile by nearest rank: the longest duration while there are fewer than 20, else
    /// the middle of its range.
    fn p95(&self) -> Duration {
        let all: u64 = self.counts.iter().copied().map(u64::from).sum();
        let above = all - (all * 95).div_ceil(100);
        let mut seen = 0;
        for (range, count) in self.counts.iter().enumerate().rev() {
            seen += u64::from(*count);
            if above > 0 && seen > above {
                return middle(range as u64).min(self.longest);
            }
        }
        self.longest
    }
}

/// The middle of a range of durations.
fn middle(range: u64) -> Duration {
    let start = |range: u64| match range {
        0..4 => range,
        _ => (4 + range % 4) << (range / 4 - 1),
    };
    Duration::from_micros(((start(range) + start(range + 1)) << RANGE_BITS) / 2)
}

impl ToolTimeline {
    /// Before the first event; the breaker is in this state.
    pub(crate) fn new(stage: BreakerStage) -> Self {
        let now = Level { running: 0, queued: 0, stage };
        Self { buckets: Chunked::default(), width: FIRST_WIDTH_US, now }
    }

    /// The bucket of a moment. A bucket without events keeps the level before it.
    fn bucket(&mut self, at: Elapsed) -> Option<&mut Bucket> {
        while at.0 / self.width >= BUCKETS as u64 {
            self.double_width();
        }
        let place = (at.0 / self.width) as usize;
        while self.buckets.len() <= place {
            self.buckets.push(Bucket::starting_at(self.now));
        }
        self.buckets.get_mut(place)
    }

    fn double_width(&mut self) {
        self.width = self.width.saturating_mul(2);
        let mut wider = Chunked::default();
        let mut first: Option<Bucket> = None;
        for bucket in self.buckets.iter() {
            match first.take() {
                Some(mut pair) => {
                    pair.add(bucket);
                    wider.push(pair);
                }
                None => first = Some(bucket.clone()),
            }
        }
        if let Some(last) = first {
            wider.push(last);
        }
        self.buckets = wider;
    }

    pub(super) fn count_request(&mut self, at: Elapsed) {
        if let Some(bucket) = self.bucket(at) {
            bucket.requests = bucket.requests.saturating_add(1);
        }
    }

    /// Counts an attempt that succeeded, or failed because of the tool.
    pub(crate) fn count_attempt(&mut self, at: Elapsed, good: bool) {
        if let Some(bucket) = self.bucket(at) {
            let count = if good { &mut bucket.good } else { &mut bucket.bad };
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn count_answer(&mut self, at: Elapsed, took: Duration) {
        if let Some(bucket) = self.bucket(at) {
            let durations = bucket.took.get_or_insert_with(|| Arc::new(Durations::new()));
            Arc::make_mut(durations).count(took);
        }
    }

    /// Sets what holds from this moment on: attempts in flight and queued, the state of the breaker.
    pub(super) fn set_level(
        &mut self,
        at: Elapsed,
        running: u32,
        queued: u32,
        stage: BreakerStage,
    ) {
        let level = Level { running, queued, stage };
        // The bucket starts with the level before this event.
        let Some(bucket) = self.bucket(at) else { return };
        bucket.note(level);
        self.now = level;
    }

    /// The tool from one moment until before another. That part is extended to whole buckets,
    /// and never ends after `now`. A bucket that has just begun says little, so the one before it is
    /// added to it.
    pub fn between(&self, from: Elapsed, until: Elapsed, now: Elapsed) -> ToolWindow {
        let end = until.0.min(now.0).max(from.0.saturating_add(1));
        let last = (end - 1) / self.width;
        let newest = now.0 / self.width;
        let mut first = from.0 / self.width;
        if last >= newest {
            first = first.min(newest.saturating_sub(1));
        }
        let end = last.saturating_add(1).saturating_mul(self.width).min(now.0);
        let time = end.saturating_sub(first.saturating_mul(self.width));
        let mut sum = Bucket::default();
        let place = |bucket: u64| usize::try_from(bucket).unwrap_or(usize::MAX);
        let count = place(last - first).saturating_add(1);
        for bucket in self.buckets.iter_from(place(first)).take(count) {
            sum.add(bucket);
        }
        if place(last) >= self.buckets.len() {
            sum.note(self.now);
        }
        ToolWindow { time: Duration::from_micros(time), sum }
    }
}

/// A tool in a part of its time.
#[derive(Clone, Debug)]
pub struct ToolWindow {
    time: Duration,
    sum: Bucket,
}

impl ToolWindow {
    /// Requests per second.
    pub fn request_rate(&self) -> f64 {
        let seconds = self.time.as_secs_f64();
        if seconds > 0.0 { f64::from(self.sum.requests) / seconds } else { 0.0 }
    }

    /// Share of failed attempts among those that count; `None` without any.
    pub fn error_rate(&self) -> Option<f64> {
        let judged = u64::from(self.sum.good) + u64::from(self.sum.bad);
        (judged > 0).then(|| f64::from(self.sum.bad) / judged as f64)
    }

    /// 95th percentile of the latency of answered calls, to about an eighth; `None` without any.
    pub fn p95(&self) -> Option<Duration> {
        self.sum.took.as_ref().map(|took| took.p95())
    }

    /// Most attempts in flight at the same time.
    pub fn most_running(&self) -> u32 {
        self.sum.running
    }

    /// Most attempts in the bulkhead's queue at the same time.
    pub fn most_queued(&self) -> u32 {
        self.sum.queued
    }

    /// The state of the breaker in these parts; of several the one that matters most.
    pub fn stage<'a>(parts: impl Iterator<Item = &'a ToolWindow>) -> Option<BreakerStage> {
        StageSet(parts.fold(0, |all, part| all | part.sum.stages.0)).heaviest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Elapsed {
        Elapsed(ms * 1_000)
    }

    #[test]
    fn counts_land_in_their_interval() {
        let mut tool = ToolTimeline::new(BreakerStage::Closed);
        for ms in (0..1_000).step_by(100) {
            tool.count_request(at(ms));
            tool.count_attempt(at(ms), ms % 200 == 0);
            tool.count_answer(at(ms), Duration::from_millis(ms));
        }
        tool.set_level(at(1_300), 2, 4, BreakerStage::Open);
        tool.set_level(at(3_000), 0, 0, BreakerStage::HalfOpen);
        let now = at(10_000);
        let first = tool.between(at(0), at(1_000), now);
        assert_eq!((first.request_rate(), first.error_rate()), (10.0, Some(0.5)));
        assert_eq!(first.p95(), Some(Duration::from_millis(900)), "exact while there are few");
        let stage = |window: &ToolWindow| ToolWindow::stage([window].into_iter());
        assert_eq!(stage(&first), Some(BreakerStage::Closed));
        let later = tool.between(at(2_000), at(2_500), now);
        assert_eq!((later.request_rate(), later.error_rate(), later.p95()), (0.0, None, None));
        assert_eq!((later.most_running(), later.most_queued()), (2, 4), "no event, no change");
        assert_eq!(stage(&later), Some(BreakerStage::Open));
        let last = tool.between(at(9_000), now, now);
        assert_eq!((stage(&last), last.most_queued()), (Some(BreakerStage::HalfOpen), 0));
    }

    #[test]
    fn new_bucket_counts_with_previous() {
        let mut tool = ToolTimeline::new(BreakerStage::Closed);
        for ms in (0..1_010).step_by(10) {
            tool.count_request(at(ms));
        }
        let now = at(1_001);
        let rate = tool.between(at(1_000), now, now).request_rate();
        assert!((95.0..=105.0).contains(&rate), "{rate}");
    }

    #[test]
    fn buckets_are_bounded_and_keep_counts() {
        let mut tool = ToolTimeline::new(BreakerStage::Closed);
        for minute in 0..100_000 {
            tool.count_request(at(minute * 60_000));
            tool.count_answer(at(minute * 60_000), Duration::from_millis(40));
        }
        assert!(tool.buckets.len() <= BUCKETS);
        let requests: u64 = tool.buckets.iter().map(|bucket| u64::from(bucket.requests)).sum();
        assert_eq!(requests, 100_000);
        tool.count_request(Elapsed(u64::MAX));
        assert!(tool.buckets.len() <= BUCKETS);
        let all = tool.between(Elapsed(0), Elapsed(u64::MAX), Elapsed(u64::MAX));
        assert_eq!(all.sum.requests, 100_001);
    }

    #[test]
    fn percentile_is_within_one_eighth() {
        for ms in [1, 3, 17, 240, 1_900, 31_000] {
            let mut took = Durations::new();
            for _ in 0..95 {
                took.count(Duration::from_millis(ms));
            }
            for _ in 0..5 {
                took.count(Duration::from_millis(ms * 10));
            }
            let (found, exact) = (took.p95().as_secs_f64(), ms as f64 / 1e3);
            assert!((found / exact - 1.0).abs() <= 0.26, "{found} for {exact}");
        }
    }
}
