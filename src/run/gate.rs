//! The one place where a run can be held: pause, step, breakpoints, flags, cancelling, the
//! deadline, and readers of its log that are too far behind. Every branch of a pattern awaits
//! [`Gate::pass`] before it acts.
//!
//! A pause is `pausing` until every branch stands at a boundary; only then does the run's clock
//! stop, and `max_seconds` with it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::bus::Bus;
use crate::event::id::millis;
use crate::event::kind::{By, Step};
use crate::event::{Boundary, BoundaryId, Command, EventKind, SpanId, StopReason};
use crate::scenario::name::FlagName;

/// Why a branch must not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop(pub StopReason);

impl From<Stop> for StopReason {
    fn from(Stop(reason): Stop) -> Self {
        reason
    }
}

/// The gate of one run. Commands come in at [`Gate::command`], branches at [`Gate::pass`].
pub struct Gate {
    bus: Bus,
    max: Duration,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    started: Instant,
    /// How long the clock has stood before now.
    paused: Duration,
    hold: Hold,
    /// The process is suspended since then: the clock stands at once, whoever is on their way.
    frozen: Option<Instant>,
    /// The hold came with the suspension, and goes with it.
    held_by_suspend: bool,
    /// A running run rests at the next boundary that ends a round.
    rest_at_round: bool,
    /// Branches on their way: neither standing at a boundary nor done.
    branches: u32,
    /// Branches standing at a boundary, in the order they came.
    standing: BTreeMap<u64, BoundaryId>,
    arrivals: u64,
    breaks: BTreeSet<BoundaryId>,
    flags: BTreeMap<FlagName, bool>,
    asked: Vec<(FlagName, bool, By)>,
    scheduled: Vec<(BoundaryId, FlagName, bool)>,
    /// Boundaries to rest at that were named before the run began, and have not come so far.
    awaited: BTreeSet<BoundaryId>,
    /// The last boundary that was passed.
    last: Option<Boundary>,
    cancelled: bool,
    /// The run may not go on, for this reason.
    stopped: Option<StopReason>,
    closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Boundaries let through.
    Going,
    /// They do not, and branches are still on their way.
    Pausing,
    /// Every branch stands; the clock stands since then.
    Paused(Instant),
}

impl Gate {
    /// A gate whose clock starts now, for a run with one branch.
    pub fn new(bus: Bus, max: Duration, flags: BTreeMap<FlagName, bool>) -> Arc<Self> {
        Arc::new(Self {
            bus,
            max,
            state: Mutex::new(State {
                started: Instant::now(),
                paused: Duration::ZERO,
                hold: Hold::Going,
                frozen: None,
                held_by_suspend: false,
                rest_at_round: false,
                branches: 1,
                standing: BTreeMap::new(),
                arrivals: 0,
                breaks: BTreeSet::new(),
                flags,
                asked: Vec::new(),
                scheduled: Vec::new(),
                awaited: BTreeSet::new(),
                last: None,
                cancelled: false,
                stopped: None,
                closed: false,
            }),
            changed: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, kind: EventKind) {
        self.bus.publish(SpanId::RUN, kind);
    }

    /// Turns a flag when this boundary comes, as `--flag NAME=on@BOUNDARY` asks.
    pub fn schedule(&self, at: BoundaryId, flag: FlagName, on: bool) {
        self.lock().scheduled.push((at, flag, on));
    }

    /// Rests at this boundary when it comes, as `--pause-at BOUNDARY` asks.
    pub fn rest_at(&self, at: BoundaryId) {
        self.lock().awaited.insert(at.clone());
        self.command(Command::Break { at, set: true });
    }

    /// What was asked for at boundaries that have not come, a line each.
    pub fn not_come(&self) -> Vec<String> {
        let state = self.lock();
        let flags = state.scheduled.iter().map(|(at, flag, on)| {
            let position = if *on { "on" } else { "off" };
            format!("{at} did not come in this run: the flag {flag} was not turned {position}")
        });
        let rests =
            state.awaited.iter().map(|at| format!("{at} did not come in this run: no pause there"));
        flags.chain(rests).collect()
    }

    /// Takes a command. It becomes facts when it takes effect; one that changes nothing becomes
    /// none.
    pub fn command(&self, command: Command) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        match command {
            Command::Pause { by: By::Suspend } => {
                state.held_by_suspend = state.hold == Hold::Going;
                let rest_at_round = state.rest_at_round;
                self.hold(&mut state, By::Suspend);
                state.rest_at_round = rest_at_round;
                if state.hold == Hold::Pausing {
                    state.frozen = Some(Instant::now());
                }
            }
            Command::Resume { by: By::Suspend } if !state.held_by_suspend => {
                state.unfreeze();
            }
            Command::Pause { by } => self.hold(&mut state, by),
            Command::Resume { by } => {
                state.held_by_suspend = false;
                if state.hold != Hold::Going || state.rest_at_round {
                    let paused_ms = millis(state.start_clock());
                    state.hold = Hold::Going;
                    self.publish(EventKind::Resumed { by, paused_ms });
                }
                if state.rest_at_round && by == By::Suspend {
                    // The rest at the next round was asked for before the suspension, and still is.
                    self.publish(EventKind::Pausing { by: By::You });
                } else {
                    state.rest_at_round = false;
                }
            }
            Command::Step => match state.first_standing() {
                Some((arrival, boundary)) if matches!(state.hold, Hold::Paused(_)) => {
                    let paused_ms = millis(state.start_clock());
                    state.hold = Hold::Pausing;
                    state.set_out(arrival);
                    let step = Step::Boundary;
                    self.publish(EventKind::Stepped { step, boundary, paused_ms });
                }
                _ => self.hold(&mut state, By::You),
            },
            Command::StepRound => match state.first_standing() {
                Some((_, boundary)) if matches!(state.hold, Hold::Paused(_)) => {
                    let paused_ms = millis(state.start_clock());
                    state.hold = Hold::Going;
                    state.rest_at_round = true;
                    let step = Step::Round;
                    self.publish(EventKind::Stepped { step, boundary, paused_ms });
                }
                _ => {
                    if state.hold == Hold::Pausing {
                        state.hold = Hold::Going;
                    }
                    if !state.rest_at_round {
                        state.rest_at_round = true;
                        self.publish(EventKind::Pausing { by: By::You });
                    }
                }
            },
            Command::SetFlag { flag, on, by } => {
                if state.flags.contains_key(&flag) {
                    state.asked.retain(|(asked, _, _)| *asked != flag);
                    state.asked.push((flag, on, by));
                }
            }
            Command::Break { at, set } => {
                let changed =
                    if set { state.breaks.insert(at.clone()) } else { state.breaks.remove(&at) };
                if changed {
                    self.publish(EventKind::BreakpointChanged { at, set });
                }
            }
            Command::Cancel => state.cancelled = true,
            // These go to what they are about, past the gate.
            Command::SetParallel { .. }
            | Command::Roster { .. }
            | Command::SetLimit { .. }
            | Command::Breaker { .. }
            | Command::Inject { .. }
            | Command::Heal { .. } => return,
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn hold(&self, state: &mut State, by: By) {
        if state.hold == Hold::Going {
            state.hold = Hold::Pausing;
            state.rest_at_round = false;
            self.publish(EventKind::Pausing { by });
            self.rest_if_all_stand(state);
        }
    }

    /// Stops the clock once nothing is on its way any more.
    fn rest_if_all_stand(&self, state: &mut State) {
        if state.hold == Hold::Pausing && state.branches == 0 && !state.standing.is_empty() {
            state.hold = Hold::Paused(state.frozen.take().unwrap_or_else(Instant::now));
            self.publish(EventKind::Paused { at: state.standing.values().cloned().collect() });
        }
    }

    /// Awaited by a branch before it acts: lets it through, or holds it while the run is paused.
    /// Flags that were asked for take effect here. Where the log is bounded and a reader is too far
    /// behind, a branch waits for it first, on its way: the run's clock goes on, as for anything that
    /// writes to a slow pipe.
    ///
    /// # Errors
    /// [`Stop`] when the run has been cancelled or stopped, or its time is up.
    pub async fn pass(&self, boundary: &Boundary) -> Result<(), Stop> {
        if !self.bus.has_room() {
            // At once also where the run is over meanwhile: whoever holds the facts may never read.
            tokio::select! {
                biased;
                reason = self.over_now() => return Err(Stop(reason)),
                () = self.bus.room() => {}
            }
        }
        let id;
        let standing = {
            let mut state = self.lock();
            if state.is_free() {
                return match self.over(&state) {
                    Some(reason) => Err(Stop(reason)),
                    None => {
                        state.last = Some(boundary.clone());
                        Ok(())
                    }
                };
            }
            id = boundary.id();
            state.awaited.remove(&id);
            if state.breaks.contains(&id) {
                self.hold(&mut state, By::Breakpoint);
            }
            if state.rest_at_round && boundary.ends_round() {
                state.rest_at_round = false;
                state.held_by_suspend = false;
                state.hold = Hold::Pausing;
            }
            state.arrivals += 1;
            let arrival = state.arrivals;
            state.branches -= 1;
            state.standing.insert(arrival, id.clone());
            if let Hold::Paused(_) = state.hold {
                // One more that stands while the run does: where is told anew.
                self.publish(EventKind::Paused { at: state.standing.values().cloned().collect() });
            }
            self.rest_if_all_stand(&mut state);
            Standing { gate: self, arrival }
        };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(reason) = self.over(&state) {
                    return Err(Stop(reason));
                }
                if state.hold == Hold::Going || !state.standing.contains_key(&standing.arrival) {
                    self.turn_flags(&mut state, &id);
                    state.last = Some(boundary.clone());
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    fn turn_flags(&self, state: &mut State, at: &BoundaryId) {
        let due: Vec<_> = {
            let (due, later) =
                std::mem::take(&mut state.scheduled).into_iter().partition(|(when, ..)| when == at);
            state.scheduled = later;
            due
        };
        let due = due.into_iter().map(|(_, flag, on): (BoundaryId, _, _)| (flag, on, By::Schedule));
        let asked = std::mem::take(&mut state.asked);
        for (flag, on, by) in due.chain(asked) {
            if let Some(position) = state.flags.get_mut(&flag).filter(|position| **position != on) {
                *position = on;
                self.publish(EventKind::FlagChanged { flag, on, by, boundary: at.clone() });
            }
        }
    }

    /// A further branch sets out beside the one that calls this; it is on its way until the
    /// returned guard is dropped.
    pub fn branch(self: &Arc<Self>) -> Branch {
        self.lock().branches += 1;
        Branch(Arc::clone(self))
    }

    /// The branch that calls this goes on as so many, at least one, until all of them are
    /// [done](Fork::done): the last goes on as the one.
    pub fn fork(&self, branches: u32) -> Fork<'_> {
        self.lock().branches += branches.saturating_sub(1);
        Fork { gate: self, left: AtomicU32::new(branches.max(1)) }
    }

    /// The branch that calls this only waits for others until the returned guard is dropped: a
    /// pause does not wait for it.
    pub fn only_waits(&self) -> OnlyWaits<'_> {
        let mut state = self.lock();
        state.branches -= 1;
        self.rest_if_all_stand(&mut state);
        OnlyWaits(self)
    }

    /// Whether a flag is on now. Read it right after a boundary: between two it does not change.
    pub fn flag(&self, flag: &FlagName) -> bool {
        self.lock().flags.get(flag).copied().unwrap_or(false)
    }

    /// The positions of all flags.
    pub fn flags(&self) -> BTreeMap<FlagName, bool> {
        self.lock().flags.clone()
    }

    /// Time the run has been going, pauses left out.
    pub fn active(&self) -> Duration {
        self.lock().active()
    }

    /// What is left of the run's time.
    pub fn remaining(&self) -> Duration {
        self.max.saturating_sub(self.active())
    }

    /// Completes with the reason when the run has been cancelled or stopped, or its time is up.
    pub async fn over_now(&self) -> StopReason {
        self.wait_for(self.max, |state| self.over(state)).await
    }

    /// Completes once the run has gone on for so long from now, pauses left out.
    pub async fn has_gone_on(&self, for_so_long: Duration) {
        let until = self.active().saturating_add(for_so_long);
        self.wait_for(until, |state| (state.active() >= until).then_some(())).await;
    }

    /// Looks again at each change, and once the run has gone on until then.
    async fn wait_for<T>(&self, until: Duration, found: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let wake = {
                let state = self.lock();
                if let Some(found) = found(&state) {
                    return found;
                }
                if state.standing_since().is_some() {
                    None
                } else {
                    Instant::now().checked_add(until.saturating_sub(state.active()))
                }
            };
            let reached = async {
                match wake {
                    Some(wake) => sleep_until(wake).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = reached => {}
            }
        }
    }

    /// Ends the run for this reason, wherever its branches are.
    pub fn stop(&self, reason: StopReason) {
        self.lock().stopped.get_or_insert(reason);
        self.changed.notify_waiters();
    }

    fn over(&self, state: &State) -> Option<StopReason> {
        if state.cancelled {
            Some(StopReason::Cancelled)
        } else if state.stopped.is_some() {
            state.stopped.clone()
        } else if state.active() >= self.max {
            Some(StopReason::MaxSeconds)
        } else {
            None
        }
    }

    /// Closes the gate: no command takes effect any more. Gives the time the run was going, the
    /// time it stood, and the last boundary that was passed.
    pub fn close(&self) -> (Duration, Duration, Option<BoundaryId>) {
        let mut state = self.lock();
        state.start_clock();
        state.hold = Hold::Going;
        state.closed = true;
        (state.active(), state.paused, state.last.as_ref().map(Boundary::id))
    }
}

impl State {
    /// Whether nothing is to happen at the next boundary, wherever it is.
    fn is_free(&self) -> bool {
        self.hold == Hold::Going
            && !self.rest_at_round
            && self.breaks.is_empty()
            && self.awaited.is_empty()
            && self.asked.is_empty()
            && self.scheduled.is_empty()
    }

    /// Since when the clock stands, if it does.
    fn standing_since(&self) -> Option<Instant> {
        match self.hold {
            Hold::Paused(since) => Some(since),
            Hold::Going | Hold::Pausing => self.frozen,
        }
    }

    fn active(&self) -> Duration {
        let standing = self.standing_since().map_or(Duration::ZERO, |since| since.elapsed());
        self.started.elapsed().saturating_sub(self.paused).saturating_sub(standing)
    }

    /// Lets the clock go on; gives how long it stood.
    fn start_clock(&mut self) -> Duration {
        let stood = self.standing_since().map_or(Duration::ZERO, |since| since.elapsed());
        self.frozen = None;
        self.paused += stood;
        stood
    }

    /// Lets a clock that only the suspension had stopped go on.
    fn unfreeze(&mut self) {
        if let Some(since) = self.frozen.take() {
            self.paused += since.elapsed();
        }
    }

    /// A branch that stood is on its way again.
    fn set_out(&mut self, arrival: u64) {
        if self.standing.remove(&arrival).is_some() {
            self.branches += 1;
        }
    }

    fn first_standing(&self) -> Option<(u64, BoundaryId)> {
        self.standing.iter().next().map(|(arrival, boundary)| (*arrival, boundary.clone()))
    }
}

/// A branch that stands at a boundary; on its way again when this is dropped, however the wait
/// ended.
struct Standing<'a> {
    gate: &'a Gate,
    arrival: u64,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.gate.lock().set_out(self.arrival);
    }
}

/// A branch that only waits for others; on its way again when this is dropped.
pub struct OnlyWaits<'a>(&'a Gate);

impl Drop for OnlyWaits<'_> {
    fn drop(&mut self) {
        self.0.lock().branches += 1;
    }
}

/// A branch that goes on as several. Whatever of them is dropped in the middle, the one that they
/// came from is on its way when this is dropped; they are to be dropped before it.
pub struct Fork<'a> {
    gate: &'a Gate,
    left: AtomicU32,
}

impl Fork<'_> {
    /// One of them has come to its end.
    pub fn done(&self) {
        let mut state = self.gate.lock();
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            state.branches -= 1;
            self.gate.rest_if_all_stand(&mut state);
        }
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        let left = self.left.load(Ordering::Acquire);
        self.gate.lock().branches -= left.saturating_sub(1);
    }
}

/// A branch on its way beside the one that started it.
pub struct Branch(Arc<Gate>);

impl Drop for Branch {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.branches -= 1;
        self.0.rest_if_all_stand(&mut state);
    }
}
