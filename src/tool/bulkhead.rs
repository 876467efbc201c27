//! The bulkhead of a tool: how many attempts are in flight at once, and who is next (source `003`,
//! spec section 5). A permit gives itself back when it is dropped, however its attempt ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;

/// A shared handle of one tool's bulkhead.
#[derive(Clone, Debug)]
pub struct Bulkhead(Arc<Mutex<Hold>>);

#[derive(Debug)]
struct Hold {
    permits: u32,
    in_flight: u32,
    counts: Counts,
    /// Who stands in line, by ticket number: the lowest is next. Whoever leaves takes its entry
    /// out itself, so the line holds only who still waits.
    line: BTreeMap<u64, oneshot::Sender<Permit>>,
    next_number: u64,
}

/// How full a bulkhead is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Permits that are held.
    pub in_flight: u32,
    /// Permits there are; fewer than `in_flight` for a while after they were cut.
    pub permits: u32,
    /// Attempts in line.
    pub queued: usize,
}

/// What became of all that asked: `asked` is the sum of the others and of those in line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Asked for a permit.
    pub asked: u64,
    /// Were given one, also when they had gone before they could take it.
    pub admitted: u64,
    /// Were turned away: full, or too long in line.
    pub rejected: u64,
    /// Were cancelled in line.
    pub left: u64,
}

/// No permit could be had. Not the tool's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no permit left ({} of {} in flight, {} in line)", .0.in_flight, .0.permits, .0.queued)]
pub struct Full(pub Fill);

/// Leave to have one attempt in flight; dropping it hands it to the next in line.
#[derive(Debug)]
#[must_use = "the permit is given back as soon as it is dropped"]
pub struct Permit {
    of: Bulkhead,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.of.hold().in_flight -= 1;
        self.of.hand_out();
    }
}

/// A place in line. Dropped, it takes itself out; a permit that was under way to it then drops with
/// `answer`, or comes back to its sender, and so goes on to the next.
struct Place {
    of: Bulkhead,
    number: u64,
    answer: oneshot::Receiver<Permit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hold = self.of.hold();
        if hold.line.remove(&self.number).is_some() {
            hold.counts.left += 1;
        }
    }
}

impl Bulkhead {
    /// An empty bulkhead with this many permits; with 0 nobody gets in.
    pub fn new(permits: u32) -> Self {
        Self(Arc::new(Mutex::new(Hold {
            permits,
            in_flight: 0,
            counts: Counts::default(),
            line: BTreeMap::new(),
            next_number: 0,
        })))
    }

    /// Takes a permit if one is free and nobody is in line for it.
    pub fn try_enter(&self) -> Result<Permit, Full> {
        let mut hold = self.hold();
        hold.counts.asked += 1;
        if hold.admit() {
            return Ok(Permit { of: self.clone() });
        }
        hold.counts.rejected += 1;
        Err(Full(hold.fill()))
    }

    /// Takes a permit, in line with others for at most `max_wait`: zero is not at all, `None` as
    /// long as the caller keeps waiting. Safe to cancel at any point.
    pub async fn enter(&self, max_wait: Option<Duration>) -> Result<Permit, Full> {
        self.enter_telling(max_wait, || None).await
    }

    /// As [`Bulkhead::enter`]; calls `queued` when it has to stand in line, which may give a clock
    /// of its own for the wait.
    pub async fn enter_telling<'t>(
        &self,
        max_wait: Option<Duration>,
        queued: impl FnOnce() -> Option<BoxFuture<'t, ()>>,
    ) -> Result<Permit, Full> {
        if max_wait == Some(Duration::ZERO) {
            return self.try_enter();
        }
        let mut place = {
            let mut hold = self.hold();
            hold.counts.asked += 1;
            if hold.admit() {
                return Ok(Permit { of: self.clone() });
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
                    let mut hold = self.hold();
                    if hold.line.remove(&place.number).is_some() {
                        hold.counts.rejected += 1;
                        return Err(Full(hold.fill()));
                    }
                    // Its turn came in the same moment: the permit is under way.
                }
            }
        }
        // The entry is taken out of the line only to be answered.
        (&mut place.answer).await.map_err(|_| Full(self.fill()))
    }

    /// Changes the number of permits. More let those in line in at once; with fewer nobody gets in
    /// until those in flight are fewer still.
    pub fn resize(&self, permits: u32) {
        self.hold().permits = permits;
        self.hand_out();
    }

    /// How full it is.
    pub fn fill(&self) -> Fill {
        self.hold().fill()
    }

    /// What became of all that asked.
    pub fn counts(&self) -> Counts {
        self.hold().counts
    }

    fn queue(&self, hold: &mut Hold) -> Place {
        let (sender, answer) = oneshot::channel();
        let number = hold.next_number;
        hold.next_number += 1;
        hold.line.insert(number, sender);
        Place { of: self.clone(), number, answer }
    }

    /// Gives what is free to those in line. The lock is not held while a permit is sent: sending
    /// wakes a task, and a permit that nobody takes drops here and asks for the lock itself.
    fn hand_out(&self) {
        loop {
            let next = {
                let mut hold = self.hold();
                if !hold.has_room() {
                    return;
                }
                let Some((_, next)) = hold.line.pop_first() else { return };
                hold.take();
                next
            };
            drop(next.send(Permit { of: self.clone() }));
        }
    }

    /// A panic elsewhere leaves the numbers whole: each change is done before anything can panic.
    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    fn has_room(&self) -> bool {
        self.in_flight < self.permits
    }

    fn take(&mut self) {
        self.in_flight += 1;
        self.counts.admitted += 1;
    }

    /// Lets a newcomer in, never past those in line.
    fn admit(&mut self) -> bool {
        let free = self.has_room() && self.line.is_empty();
        if free {
            self.take();
        }
        free
    }

    fn fill(&self) -> Fill {
        Fill { in_flight: self.in_flight, permits: self.permits, queued: self.line.len() }
    }
}
