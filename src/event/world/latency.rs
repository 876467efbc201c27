//! Durations of the latest calls, in bounded memory.

use std::time::Duration;

/// Number of samples; further ones replace the oldest.
const SAMPLES: usize = 256;
/// Min number of samples for a percentile.
pub const MIN_SAMPLES: usize = 5;

/// The latest durations, for their percentiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    samples: Vec<u32>,
    next: usize,
    count: u64,
}

impl Latencies {
    /// Adds a duration.
    pub fn add(&mut self, took: Duration) {
        let sample = u32::try_from(took.as_micros() / 100).unwrap_or(u32::MAX);
        self.count += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push(sample);
        } else {
            self.samples[self.next] = sample;
            self.next = (self.next + 1) % SAMPLES;
        }
    }

    /// Number of durations ever added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest of the latest durations.
    pub fn longest(&self) -> Option<Duration> {
        self.samples.iter().max().map(|sample| Duration::from_micros(u64::from(*sample) * 100))
    }

    /// The `percent`th percentile of the latest durations (nearest rank, to a tenth of a
    /// millisecond); `None` with fewer than [`MIN_SAMPLES`] samples.
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        if self.samples.len() < MIN_SAMPLES {
            return None;
        }
        let mut samples = self.samples.clone();
        let rank = (samples.len() * percent.min(100) as usize).div_ceil(100).max(1) - 1;
        let (_, sample, _) = samples.select_nth_unstable(rank);
        Some(Duration::from_micros(u64::from(*sample) * 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_latest_samples_by_nearest_rank() {
        let mut latencies = Latencies::default();
        for ms in 1..MIN_SAMPLES as u64 {
            latencies.add(Duration::from_millis(ms));
        }
        assert_eq!(latencies.percentile(50), None, "too few to say");
        for ms in MIN_SAMPLES as u64..=100 {
            latencies.add(Duration::from_millis(ms));
        }
        assert_eq!(latencies.percentile(50), Some(Duration::from_millis(50)));
        assert_eq!(latencies.percentile(95), Some(Duration::from_millis(95)));
        assert_eq!(latencies.percentile(100), Some(Duration::from_millis(100)));
        for _ in 0..SAMPLES {
            latencies.add(Duration::from_millis(7));
        }
        assert_eq!(latencies.percentile(100), Some(Duration::from_millis(7)), "old ones are gone");
        assert_eq!(latencies.count(), 100 + SAMPLES as u64);
    }
}
