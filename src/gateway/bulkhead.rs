//! Bulkhead of a tool: limits how many attempts are in flight and queues the others
//! (docs/rules/patterns.md, *Tool gateway*). A permit is returned when it is dropped, after any end
//! of its attempt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;

/// Shared handle of one tool's bulkhead.
#[derive(Clone, Debug)]
pub struct Bulkhead(Arc<Mutex<BulkheadState>>);

#[derive(Debug)]
struct BulkheadState {
    permits: u32,
    in_flight: u32,
    counts: BulkheadCounts,
    /// Queue of waiting attempts by ticket number, lowest first. An attempt that stops waiting
    /// removes its own entry, so the queue holds only attempts that still wait.
    queue: BTreeMap<u64, oneshot::Sender<Permit>>,
    next_number: u64,
}

/// Load of a bulkhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueFill {
    /// Permits in use.
    pub in_flight: u32,
    /// Total permits; may be below `in_flight` for a while after the limit was lowered.
    pub permits: u32,
    /// Attempts in the queue.
    pub queued: usize,
}

/// Counters of all requests for a permit: `asked` is the sum of the others plus the attempts in the
/// queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkheadCounts {
    /// Requests for a permit.
    pub asked: u64,
    /// Permits granted, including those to attempts that were cancelled before they took them.
    pub admitted: u64,
    /// Requests rejected: bulkhead full, or queued too long.
    pub rejected: u64,
    /// Requests cancelled while queued.
    pub cancelled: u64,
}

/// No permit was available. This is not a failure of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no permit left ({} of {} in flight, {} queued)", .0.in_flight, .0.permits, .0.queued)]
pub struct BulkheadFull(pub QueueFill);

/// Permission to have one attempt in flight; dropping it passes it to the next in the queue.
#[derive(Debug)]
#[must_use = "the permit is returned as soon as it is dropped"]
pub struct Permit {
    bulkhead: Bulkhead,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.bulkhead.lock().in_flight -= 1;
        self.bulkhead.grant_free();
    }
}

/// A place in the queue. Dropping it removes the entry; a permit already sent to it is dropped with
/// `answer`, or returned to the sender, and goes to the next in the queue.
struct QueueEntry {
    bulkhead: Bulkhead,
    number: u64,
    answer: oneshot::Receiver<Permit>,
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        let mut hold = self.bulkhead.lock();
        if hold.queue.remove(&self.number).is_some() {
            hold.counts.cancelled += 1;
        }
    }
}

impl Bulkhead {
    /// An empty bulkhead with this many permits; with 0, no attempt is admitted.
    pub fn new(permits: u32) -> Self {
        Self(Arc::new(Mutex::new(BulkheadState {
            permits,
            in_flight: 0,
            counts: BulkheadCounts::default(),
            queue: BTreeMap::new(),
            next_number: 0,
        })))
    }

    /// Takes a permit if one is free and the queue is empty; otherwise nothing is counted.
    pub fn enter_at_once(&self) -> Option<Permit> {
        let mut hold = self.lock();
        let free = hold.admit();
        hold.counts.asked += u64::from(free);
        free.then(|| Permit { bulkhead: self.clone() })
    }

    /// Takes a permit if one is free and the queue is empty.
    pub fn try_enter(&self) -> Result<Permit, BulkheadFull> {
        let mut hold = self.lock();
        hold.counts.asked += 1;
        if hold.admit() {
            return Ok(Permit { bulkhead: self.clone() });
        }
        hold.counts.rejected += 1;
        Err(BulkheadFull(hold.fill()))
    }

    /// Takes a permit, queued for at most `max_wait`: zero does not queue, `None` waits without
    /// limit. Safe to cancel at any point.
    pub async fn enter(&self, max_wait: Option<Duration>) -> Result<Permit, BulkheadFull> {
        self.enter_with(max_wait, || None).await
    }

    /// Like [`Bulkhead::enter`]; calls `queued` if it has to queue. `queued` may return a clock of
    /// its own for the wait.
    pub async fn enter_with<'t>(
        &self,
        max_wait: Option<Duration>,
        queued: impl FnOnce() -> Option<BoxFuture<'t, ()>>,
    ) -> Result<Permit, BulkheadFull> {
        if max_wait == Some(Duration::ZERO) {
            return self.try_enter();
        }
        let mut place = {
            let mut hold = self.lock();
            hold.counts.asked += 1;
            if hold.admit() {
                return Ok(Permit { bulkhead: self.clone() });
            }
            self.queue(&mut hold)
        };
        let time_up = queued();
        if let Some(max_wait) = max_wait {
            let time_up = time_up.unwrap_or_else(|| Box::pin(tokio::time::sleep(max_wait)));
            let answered = tokio::select! {
                biased;
                answered = &mut place.answer => answered.ok(),
                () = time_up => None,
            };
            match answered {
                Some(permit) => return Ok(permit),
                None => {
                    let mut hold = self.lock();
                    if hold.queue.remove(&place.number).is_some() {
                        hold.counts.rejected += 1;
                        return Err(BulkheadFull(hold.fill()));
                    }
                    // The permit was granted in the same moment and will arrive.
                }
            }
        }
        // An entry leaves the queue only when a permit is sent to it.
        (&mut place.answer).await.map_err(|_| BulkheadFull(self.fill()))
    }

    /// Changes the number of permits. More permits admit queued attempts at once; fewer admit none
    /// until enough of those in flight have ended.
    pub fn resize(&self, permits: u32) {
        self.lock().permits = permits;
        self.grant_free();
    }

    /// Current load.
    pub fn fill(&self) -> QueueFill {
        self.lock().fill()
    }

    /// Counters since the start.
    pub fn counts(&self) -> BulkheadCounts {
        self.lock().counts
    }

    fn queue(&self, hold: &mut BulkheadState) -> QueueEntry {
        let (sender, answer) = oneshot::channel();
        let number = hold.next_number;
        hold.next_number += 1;
        hold.queue.insert(number, sender);
        QueueEntry { bulkhead: self.clone(), number, answer }
    }

    /// Grants free permits to the queue. The lock is released before a permit is sent: sending
    /// wakes a task, and a permit that is not taken locks again when it is dropped.
    fn grant_free(&self) {
        loop {
            let next = {
                let mut hold = self.lock();
                if !hold.has_room() {
                    return;
                }
                let Some((_, next)) = hold.queue.pop_first() else { return };
                hold.count_admitted();
                next
            };
            drop(next.send(Permit { bulkhead: self.clone() }));
        }
    }

    /// The counters stay consistent after a panic elsewhere: each change is complete before
    /// anything can panic.
    fn lock(&self) -> MutexGuard<'_, BulkheadState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BulkheadState {
    fn has_room(&self) -> bool {
        self.in_flight < self.permits
    }

    fn count_admitted(&mut self) {
        self.in_flight += 1;
        self.counts.admitted += 1;
    }

    /// Admits a new attempt, never ahead of the queue.
    fn admit(&mut self) -> bool {
        let free = self.has_room() && self.queue.is_empty();
        if free {
            self.count_admitted();
        }
        free
    }

    fn fill(&self) -> QueueFill {
        QueueFill { in_flight: self.in_flight, permits: self.permits, queued: self.queue.len() }
    }
}
