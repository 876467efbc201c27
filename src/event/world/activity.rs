//! Number of events over the time of the run, for the sparkline of the scrubber. Memory is bounded for a run of
//! any length.

use crate::event::Elapsed;

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
    pub(super) fn count(&mut self, at: Elapsed) {
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
