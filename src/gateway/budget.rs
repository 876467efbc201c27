//! Retry budget of a tool: the share of its traffic that may be retries, so that retries do not
//! become the overload themselves (docs/rules/patterns.md, *Tool gateway*). Pure: the time is
//! passed in.

use tokio::time::Instant;

use crate::scenario::spec::policy::RetryBudgetLimits;

/// One slot for each second of the window.
const SLOTS: usize = RetryBudgetLimits::WINDOW.as_secs() as usize;

/// Counts attempts and retries of one tool in the last 60 seconds, by whole seconds since the first
/// attempt.
#[derive(Debug, Default)]
pub struct RetryBudget {
    /// Start of second 0; `None` before the first attempt.
    origin: Option<Instant>,
    /// Latest second with an entry; earlier times count as this one.
    latest: u64,
    /// Each slot stores its second. Slots that have left the window are ignored, so idle time costs
    /// nothing. The list grows up to the slot in use, because most runs need only a few.
    slots: Vec<SecondCounts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SecondCounts {
    second: u64,
    attempts: u32,
    retries: u32,
}

impl RetryBudget {
    /// Counts an attempt; a retry is an attempt too.
    pub fn count_attempt(&mut self, now: Instant) {
        let slot = self.slot(now);
        slot.attempts = slot.attempts.saturating_add(1);
    }

    /// Counts a retry.
    pub fn count_retry(&mut self, now: Instant) {
        let slot = self.slot(now);
        slot.retries = slot.retries.saturating_add(1);
    }

    /// Whether one more retry is within the limits.
    pub fn may_retry(&self, now: Instant, limits: RetryBudgetLimits) -> bool {
        let (retries, allowed) = self.usage(now, limits);
        retries < allowed
    }

    /// Counts a retry if the limits allow it, and returns whether they do.
    pub fn take_retry(&mut self, now: Instant, limits: RetryBudgetLimits) -> bool {
        let may = self.may_retry(now, limits);
        if may {
            self.count_retry(now);
        }
        may
    }

    /// Retries in the window, and the allowed number.
    pub fn usage(&self, now: Instant, limits: RetryBudgetLimits) -> (u64, u64) {
        let second = self.second(now);
        let in_window = |slot: &&SecondCounts| second - slot.second < SLOTS as u64;
        let (attempts, retries) =
            self.slots.iter().filter(in_window).fold((0, 0), |(attempts, retries), slot| {
                (attempts + u64::from(slot.attempts), retries + u64::from(slot.retries))
            });
        let share = attempts * u64::from(limits.ratio_percent) / 100;
        (retries, share.max(u64::from(limits.min)))
    }

    /// Second of this time, never before the latest one.
    fn second(&self, now: Instant) -> u64 {
        let since = self.origin.map_or(0, |origin| now.saturating_duration_since(origin).as_secs());
        since.max(self.latest)
    }

    /// Slot of this second, cleared if it held an older one.
    fn slot(&mut self, now: Instant) -> &mut SecondCounts {
        self.origin.get_or_insert(now);
        let second = self.second(now);
        self.latest = second;
        let index = (second % SLOTS as u64) as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, SecondCounts::default());
        }
        let slot = &mut self.slots[index];
        if slot.second != second {
            *slot = SecondCounts { second, ..SecondCounts::default() };
        }
        slot
    }
}
