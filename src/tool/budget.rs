//! The retry budget of a tool: how much of its traffic may be repeats, so that retries cannot become
//! the load that they wait out (source `003`, spec section 5). Pure: the time is passed in.

use tokio::time::Instant;

use crate::scenario::resilience::RetryBudgetLimits;

/// One slot for each second of the window.
const SLOTS: usize = RetryBudgetLimits::WINDOW.as_secs() as usize;

/// Attempts and retries of one tool in the last 60 seconds, counted by whole seconds from the first
/// attempt on.
#[derive(Debug)]
pub struct RetryBudget {
    /// Second 0, once there is one.
    origin: Option<Instant>,
    /// The latest second that anything was noted in: what comes with an earlier time counts there.
    latest: u64,
    /// A slot holds its second; one whose second has left the window is as good as empty, so time
    /// that goes by costs nothing.
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    second: u64,
    attempts: u32,
    retries: u32,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { origin: None, latest: 0, slots: [Slot::default(); SLOTS] }
    }
}

impl RetryBudget {
    /// Notes an attempt; a retry is an attempt too.
    pub fn attempt(&mut self, now: Instant) {
        let slot = self.slot(now);
        slot.attempts = slot.attempts.saturating_add(1);
    }

    /// Notes that a failed attempt is to be tried again.
    pub fn retried(&mut self, now: Instant) {
        let slot = self.slot(now);
        slot.retries = slot.retries.saturating_add(1);
    }

    /// Whether one more retry keeps within the limits.
    pub fn may_retry(&self, now: Instant, limits: RetryBudgetLimits) -> bool {
        let (retries, allowed) = self.used(now, limits);
        retries < allowed
    }

    /// Notes a retry if the limits leave room for it, and says whether they do.
    pub fn take(&mut self, now: Instant, limits: RetryBudgetLimits) -> bool {
        let may = self.may_retry(now, limits);
        if may {
            self.retried(now);
        }
        may
    }

    /// Retries in the window, and how many are allowed.
    pub fn used(&self, now: Instant, limits: RetryBudgetLimits) -> (u64, u64) {
        let second = self.second(now);
        let in_window = |slot: &&Slot| second - slot.second < SLOTS as u64;
        let (attempts, retries) =
            self.slots.iter().filter(in_window).fold((0, 0), |(attempts, retries), slot| {
                (attempts + u64::from(slot.attempts), retries + u64::from(slot.retries))
            });
        let share = attempts * u64::from(limits.ratio_percent) / 100;
        (retries, share.max(u64::from(limits.min)))
    }

    /// The second that this time counts as, never before one that was noted already.
    fn second(&self, now: Instant) -> u64 {
        let since = self.origin.map_or(0, |origin| now.saturating_duration_since(origin).as_secs());
        since.max(self.latest)
    }

    /// The slot of this moment, emptied if it held an older second.
    fn slot(&mut self, now: Instant) -> &mut Slot {
        self.origin.get_or_insert(now);
        let second = self.second(now);
        self.latest = second;
        let slot = &mut self.slots[(second % SLOTS as u64) as usize];
        if slot.second != second {
            *slot = Slot { second, ..Slot::default() };
        }
        slot
    }
}
