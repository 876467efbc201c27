//! The one place where a run can be held: pause, step, breakpoints, flags, cancel, the deadline,
//! and waiting for slow readers of the log. Every branch of a pattern awaits [`RunControl::pass`]
//! at a boundary before it acts; there it waits while the run is paused, and there flags change.
//!
//! The run is `pausing` until every branch waits at a boundary. Only then does its clock stop, and
//! `max_seconds` with it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::base::name::FlagName;
use crate::base::time::millis;
use crate::log::bus::Bus;
use crate::log::clock::Clock;
use crate::log::event::kind::{Initiator, StepSize};
use crate::log::event::{Boundary, BoundaryId, Command, EventKind, SpanId, StopReason};

/// Why a branch must not continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStopped(pub StopReason);

impl From<RunStopped> for StopReason {
    fn from(RunStopped(reason): RunStopped) -> Self {
        reason
    }
}

/// The control of one run. Commands come in at [`RunControl::command`], branches at [`RunControl::pass`].
pub struct RunControl {
    bus: Bus,
    max: Duration,
    state: Mutex<RunControlState>,
    changed: Notify,
    in_flight: AtomicU32,
}

impl RunControl {
    /// The control of a run with one branch. The run's clock starts now.
    pub fn new(bus: Bus, max: Duration, flags: BTreeMap<FlagName, bool>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(RunControlState::new(flags, bus.clock().clone())),
            bus,
            max,
            changed: Notify::new(),
            in_flight: AtomicU32::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, RunControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, kind: EventKind) {
        self.bus.publish(SpanId::RUN, kind);
    }

    /// Schedules a flag to be switched at this boundary, as the command line does (`--flag
    /// NAME=on@BOUNDARY`), or as a recorded run did.
    pub fn schedule(&self, at: BoundaryId, flag: FlagName, on: bool, by: Initiator) {
        self.lock().scheduled.push((at, flag, on, by));
    }

    /// Called where a fork begins: forgets the recorded flag changes at boundaries that the run has not
    /// reached. Changes that the command line scheduled stay.
    pub(super) fn forget_recorded_flags(&self) {
        self.lock().scheduled.retain(|(_, _, _, by)| *by == Initiator::Schedule);
    }

    /// One warning for each scheduled change whose boundary was never reached.
    pub fn unreached(&self) -> Vec<String> {
        let state = self.lock();
        let flags = state.scheduled.iter().map(|(at, flag, on, _)| {
            let position = if *on { "on" } else { "off" };
            format!("{at} was never reached: the flag {flag} was not switched {position}")
        });
        let rests = state
            .unreached_pauses
            .iter()
            .map(|at| format!("{at} was never reached: the run did not pause there"));
        flags.chain(rests).collect()
    }

    fn hold(&self, state: &mut RunControlState, by: Initiator) {
        if state.hold == PauseState::Running {
            state.hold = PauseState::Pausing;
            state.pause_at_round = false;
            self.publish(EventKind::Pausing { by, at_round: false });
            self.pause_if_all_wait(state);
        }
    }

    /// Stops the clock if no branch is active.
    fn pause_if_all_wait(&self, state: &mut RunControlState) {
        if state.hold == PauseState::Pausing
            && state.active_branches == 0
            && !state.waiting.is_empty()
        {
            state.hold = PauseState::Paused(
                state.suspended_since.take().unwrap_or_else(|| self.bus.clock().now()),
            );
            self.publish(EventKind::Paused { at: state.waiting.values().cloned().collect() });
        }
    }

    /// Starts one more branch next to the caller's. It is active until the returned guard is
    /// dropped.
    pub fn branch(self: &Arc<Self>) -> Branch {
        self.lock().active_branches += 1;
        Branch(Arc::clone(self))
    }

    /// Splits the caller's branch into this many branches, at least one. Each calls
    /// [done](Fork::done) at its end; the last one continues as the caller's branch.
    pub fn fork(&self, branches: u32) -> Fork<'_> {
        self.lock().active_branches += branches.saturating_sub(1);
        Fork { control: self, left: AtomicU32::new(branches.max(1)) }
    }

    /// The caller only waits for other branches until the returned guard is dropped, so a pause
    /// does not wait for the caller.
    pub fn mark_waiting(&self) -> WaitingBranch<'_> {
        let mut state = self.lock();
        state.active_branches -= 1;
        self.pause_if_all_wait(&mut state);
        WaitingBranch(self)
    }

    /// Counter of the attempts in flight.
    pub(crate) fn in_flight(&self) -> &AtomicU32 {
        &self.in_flight
    }

    /// Whether a flag is on now. Read it right after a boundary: it does not change between two.
    pub fn flag(&self, flag: &FlagName) -> bool {
        self.lock().flags.get(flag).copied().unwrap_or(false)
    }

    /// The positions of all flags.
    pub fn flags(&self) -> BTreeMap<FlagName, bool> {
        self.lock().flags.clone()
    }

    /// Time that the run has been active, pauses not counted.
    pub fn active(&self) -> Duration {
        self.lock().active()
    }

    /// Time left until the run's limit.
    pub fn remaining(&self) -> Duration {
        self.max.saturating_sub(self.active())
    }

    /// Completes with the reason when the run is cancelled or stopped, or its time is up.
    pub async fn wait_until_over(&self) -> StopReason {
        self.wait_for(self.max, |state| self.stop_reason(state)).await
    }

    /// Sleeps for this much active (unpaused) run time.
    pub async fn sleep_active(&self, for_so_long: Duration) {
        let until = self.active().saturating_add(for_so_long);
        self.wait_for(until, |state| (state.active() >= until).then_some(())).await;
    }

    /// Waits until `found` returns a value. Checks after each change, and when the active time
    /// reaches `until`.
    async fn wait_for<T>(
        &self,
        until: Duration,
        found: impl Fn(&RunControlState) -> Option<T>,
    ) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let wake = {
                let state = self.lock();
                if let Some(found) = found(&state) {
                    return found;
                }
                if state.stopped_since().is_some() {
                    None
                } else {
                    state.now().checked_add(until.saturating_sub(state.active()))
                }
            };
            let reached = async {
                match wake {
                    Some(wake) => self.bus.clock().sleep_until(wake).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                // Either one only leads to another check, so a random choice is not needed.
                biased;
                () = changed => {}
                () = reached => {}
            }
        }
    }

    /// Pauses the run before an attempt that is in doubt; returns when it is resumed.
    ///
    /// # Errors
    /// As [`RunControl::pass`].
    pub(super) async fn pause_in_doubt(&self) -> Result<(), RunStopped> {
        self.command(Command::Pause { by: Initiator::Breakpoint });
        self.pass(&Boundary::Step("in_doubt")).await
    }

    /// Ends the run for this reason, wherever its branches are. The first reason counts.
    pub fn stop(&self, reason: StopReason) {
        let mut state = self.lock();
        let reason = state.settled.clone().unwrap_or(reason);
        state.stopped.get_or_insert(reason);
        drop(state);
        self.changed.notify_waiters();
    }

    /// The run ends for this reason: from now on only a cancel replaces it. The pattern only finishes
    /// what it has begun.
    pub fn settle(&self, reason: StopReason) {
        self.lock().settled.get_or_insert(reason);
    }

    /// From now on the run waits for attempts that are in flight, and begins no other.
    pub fn finish_only(&self) {
        self.lock().only_finishes = true;
    }

    /// Whether the run begins no further attempt of a call.
    pub fn only_finishes(&self) -> bool {
        self.lock().only_finishes
    }

    fn stop_reason(&self, state: &RunControlState) -> Option<StopReason> {
        if state.cancelled {
            Some(StopReason::Cancelled)
        } else if state.stopped.is_some() {
            state.stopped.clone()
        } else if state.active() >= self.max {
            Some(state.settled.clone().unwrap_or(StopReason::MaxSeconds))
        } else {
            None
        }
    }

    /// Closes the control: no command takes effect from now on. Returns the active time, the paused
    /// time, and the last boundary that was passed.
    pub fn close(&self) -> (Duration, Duration, Option<BoundaryId>) {
        let mut state = self.lock();
        state.start_clock();
        state.hold = PauseState::Running;
        state.closed = true;
        (state.active(), state.paused, state.last.as_ref().map(Boundary::id))
    }
}

/// A branch that only waits for others. It is active again when this is dropped.
pub struct WaitingBranch<'a>(&'a RunControl);

impl Drop for WaitingBranch<'_> {
    fn drop(&mut self) {
        self.0.lock().active_branches += 1;
    }
}

/// A branch that was split into several. When this is dropped, the original branch is active again,
/// even if some of the several were dropped early. They have to be dropped before this.
pub struct Fork<'a> {
    control: &'a RunControl,
    left: AtomicU32,
}

impl Fork<'_> {
    /// One of the branches has finished.
    pub fn done(&self) {
        let mut state = self.control.lock();
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            state.active_branches -= 1;
            self.control.pause_if_all_wait(&mut state);
        }
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        let left = self.left.load(Ordering::Acquire);
        self.control.lock().active_branches -= left.saturating_sub(1);
    }
}

/// An active branch next to the one that started it.
pub struct Branch(Arc<RunControl>);

impl Drop for Branch {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.active_branches -= 1;
        self.0.pause_if_all_wait(&mut state);
    }
}

pub(crate) struct RunControlState {
    clock: Clock,
    pub(crate) started: Instant,
    /// Time that the clock has been stopped so far.
    pub(crate) paused: Duration,
    pub(crate) hold: PauseState,
    /// Set while the process is suspended: the clock stops at once, even if branches are still
    /// active.
    suspended_since: Option<Instant>,
    /// The program itself holds the run: the hold ends with its reasons.
    program_hold: Option<ProgramHold>,
    /// A running run pauses at the next boundary that ends a round.
    pause_at_round: bool,
    /// Number of active branches: neither waiting at a boundary nor done.
    active_branches: u32,
    /// Branches that wait at a boundary, in the order of their arrival.
    pub(crate) waiting: BTreeMap<u64, BoundaryId>,
    pub(crate) arrivals: u64,
    pub(crate) breaks: BTreeSet<BoundaryId>,
    pub(crate) flags: BTreeMap<FlagName, bool>,
    pub(crate) pending_flags: Vec<(FlagName, bool, Initiator)>,
    scheduled: Vec<(BoundaryId, FlagName, bool, Initiator)>,
    /// Boundaries to pause at that were given before the run began and were not reached so far.
    unreached_pauses: BTreeSet<BoundaryId>,
    /// The last boundary that was passed.
    pub(crate) last: Option<Boundary>,
    pub(crate) cancelled: bool,
    /// Set if the run must stop, with the reason.
    pub(crate) stopped: Option<StopReason>,
    /// The reason for which the run will end, while it still finishes what it has begun.
    pub(crate) settled: Option<StopReason>,
    /// The run begins no further attempt of a call.
    pub(crate) only_finishes: bool,
    pub(crate) closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseState {
    /// Branches pass boundaries.
    Running,
    /// Branches wait at boundaries; some are still active.
    Pausing,
    /// Every branch waits; the clock has been stopped since then.
    Paused(Instant),
}

/// A pause by the program itself, for one or more reasons.
pub(crate) struct ProgramHold {
    /// The reason that began it, which its events name.
    pub first: Initiator,
    /// The reasons that last.
    pub reasons: Vec<Initiator>,
}

impl RunControlState {
    /// The state at the start of a run with one branch. It begins now, by this clock.
    pub(crate) fn new(flags: BTreeMap<FlagName, bool>, clock: Clock) -> Self {
        Self {
            started: clock.now(),
            clock,
            paused: Duration::ZERO,
            hold: PauseState::Running,
            suspended_since: None,
            program_hold: None,
            pause_at_round: false,
            active_branches: 1,
            waiting: BTreeMap::new(),
            arrivals: 0,
            breaks: BTreeSet::new(),
            flags,
            pending_flags: Vec::new(),
            scheduled: Vec::new(),
            unreached_pauses: BTreeSet::new(),
            last: None,
            cancelled: false,
            stopped: None,
            settled: None,
            only_finishes: false,
            closed: false,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Whether the next boundary needs no check at all.
    fn has_nothing_pending(&self) -> bool {
        self.hold == PauseState::Running
            && !self.pause_at_round
            && self.breaks.is_empty()
            && self.unreached_pauses.is_empty()
            && self.pending_flags.is_empty()
            && self.scheduled.is_empty()
    }

    /// The moment when the clock stopped, if it is stopped.
    pub(crate) fn stopped_since(&self) -> Option<Instant> {
        match self.hold {
            PauseState::Paused(since) => Some(since),
            PauseState::Running | PauseState::Pausing => self.suspended_since,
        }
    }

    pub(crate) fn active(&self) -> Duration {
        let standing = self.stopped_since().map_or(Duration::ZERO, |since| self.clock.since(since));
        self.clock.since(self.started).saturating_sub(self.paused).saturating_sub(standing)
    }

    /// Starts the clock again; returns how long it was stopped.
    fn start_clock(&mut self) -> Duration {
        let stood = self.stopped_since().map_or(Duration::ZERO, |since| self.clock.since(since));
        self.suspended_since = None;
        self.paused += stood;
        stood
    }

    /// Starts a clock again that only the suspension had stopped.
    fn unfreeze(&mut self) {
        if let Some(since) = self.suspended_since.take() {
            self.paused += self.clock.since(since);
        }
    }

    /// Makes a waiting branch active again.
    fn reactivate(&mut self, arrival: u64) {
        if self.waiting.remove(&arrival).is_some() {
            self.active_branches += 1;
        }
    }

    fn first_waiting(&self) -> Option<(u64, BoundaryId)> {
        self.waiting.iter().next().map(|(arrival, boundary)| (*arrival, boundary.clone()))
    }
}

impl RunControl {
    /// A branch awaits this before it acts: it passes, or waits while the run is paused. Pending
    /// flag changes take effect here. If the log is limited and a reader is too far behind, the
    /// branch first waits for the reader; it stays active meanwhile, so the run's clock continues.
    ///
    /// # Errors
    /// [`RunStopped`] if the run was cancelled or stopped, or its time is up.
    pub async fn pass(&self, boundary: &Boundary) -> Result<(), RunStopped> {
        if self.bus.replay().is_none()
            && self.bus.is_within_limits()
            && let Some(passed) = self.pass_at_once(&mut self.lock(), boundary)
        {
            return passed;
        }
        // Boxed because it is rare: otherwise the future of every run would be larger.
        Box::pin(self.wait_at(boundary)).await
    }

    /// Passes a boundary where nothing is to be done or waited for; `None`: something is.
    fn pass_at_once(
        &self,
        state: &mut RunControlState,
        boundary: &Boundary,
    ) -> Option<Result<(), RunStopped>> {
        if !state.has_nothing_pending() {
            return None;
        }
        Some(match self.stop_reason(state) {
            Some(reason) => Err(RunStopped(reason)),
            None => {
                state.last = Some(boundary.clone());
                Ok(())
            }
        })
    }

    async fn wait_at(&self, boundary: &Boundary) -> Result<(), RunStopped> {
        if let Some(replay) = self.bus.replay() {
            replay.arrive(boundary).await;
        }
        if !self.bus.is_within_limits() {
            let _outside = self.bus.clock().outside();
            // Ends at once if the run is over meanwhile: the slow reader may never read on.
            tokio::select! {
                biased;
                reason = self.wait_until_over() => return Err(RunStopped(reason)),
                () = self.bus.wait_for_room() => {}
            }
        }
        let id;
        let standing = {
            let mut state = self.lock();
            if let Some(passed) = self.pass_at_once(&mut state, boundary) {
                return passed;
            }
            id = boundary.id();
            state.unreached_pauses.remove(&id);
            if state.breaks.contains(&id) {
                // A run that the program holds stays paused here when the program's reasons have ended.
                state.program_hold = None;
                self.hold(&mut state, Initiator::Breakpoint);
            }
            if state.pause_at_round && boundary.ends_round() {
                state.pause_at_round = false;
                state.program_hold = None;
                state.hold = PauseState::Pausing;
            }
            state.arrivals += 1;
            let arrival = state.arrivals;
            state.active_branches -= 1;
            state.waiting.insert(arrival, id.clone());
            if let PauseState::Paused(_) = state.hold {
                // The run is paused and one more branch has arrived: publish the new list of
                // boundaries.
                self.publish(EventKind::Paused { at: state.waiting.values().cloned().collect() });
            }
            self.pause_if_all_wait(&mut state);
            BranchAtBoundary { control: self, arrival }
        };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(reason) = self.stop_reason(&state) {
                    return Err(RunStopped(reason));
                }
                if state.hold == PauseState::Running
                    || !state.waiting.contains_key(&standing.arrival)
                {
                    self.apply_pending_flags(&mut state, &id);
                    state.last = Some(boundary.clone());
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    fn apply_pending_flags(&self, state: &mut RunControlState, at: &BoundaryId) {
        let due: Vec<_> = {
            let (due, later) =
                std::mem::take(&mut state.scheduled).into_iter().partition(|(when, ..)| when == at);
            state.scheduled = later;
            due
        };
        let due = due.into_iter().map(|(_, flag, on, by): (BoundaryId, _, _, _)| (flag, on, by));
        let asked = std::mem::take(&mut state.pending_flags);
        for (flag, on, by) in due.chain(asked) {
            if let Some(position) = state.flags.get_mut(&flag).filter(|position| **position != on) {
                *position = on;
                self.publish(EventKind::FlagChanged { flag, on, by, boundary: at.clone() });
            }
        }
    }
}

/// A branch that waits at a boundary. It is active again when this is dropped, after any end of the
/// wait.
struct BranchAtBoundary<'a> {
    control: &'a RunControl,
    arrival: u64,
}

impl Drop for BranchAtBoundary<'_> {
    fn drop(&mut self) {
        self.control.lock().reactivate(self.arrival);
    }
}

impl RunControl {
    /// Schedules a pause at this boundary (`--pause-at BOUNDARY`).
    pub fn pause_at(&self, at: BoundaryId) {
        self.lock().unreached_pauses.insert(at.clone());
        self.command(Command::Break { at, set: true });
    }

    /// Takes a command. It becomes events when it takes effect, and none if it changes nothing.
    pub fn command(&self, command: Command) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        match command {
            Command::Pause { by } if by.is_program() => {
                if state.hold == PauseState::Running {
                    state.program_hold = Some(ProgramHold { first: by, reasons: vec![by] });
                    let rest_at_round = state.pause_at_round;
                    self.hold(&mut state, by);
                    state.pause_at_round = rest_at_round;
                } else if let Some(hold) = &mut state.program_hold
                    && !hold.reasons.contains(&by)
                {
                    hold.reasons.push(by);
                }
                if state.hold == PauseState::Pausing {
                    let now = state.now();
                    state.suspended_since.get_or_insert(now);
                }
            }
            Command::Resume { by } if by.is_program() => match &mut state.program_hold {
                Some(hold) if hold.reasons.contains(&by) => {
                    hold.reasons.retain(|reason| *reason != by);
                    if hold.reasons.is_empty() {
                        let first = hold.first;
                        self.resume(&mut state, first);
                    }
                }
                // It lasts for another reason.
                Some(_) => {}
                None => state.unfreeze(),
            },
            Command::Pause { by } => {
                // It stays paused when the program's own reasons have ended.
                state.program_hold = None;
                self.hold(&mut state, by);
            }
            Command::Resume { by } => self.resume(&mut state, by),
            Command::Step => match state.first_waiting() {
                Some((arrival, boundary)) if matches!(state.hold, PauseState::Paused(_)) => {
                    let paused_ms = millis(state.start_clock());
                    state.hold = PauseState::Pausing;
                    state.reactivate(arrival);
                    let step = StepSize::Boundary;
                    self.publish(EventKind::Stepped { step, boundary, paused_ms });
                }
                _ => self.hold(&mut state, Initiator::You),
            },
            Command::StepRound => match state.first_waiting() {
                Some((_, boundary)) if matches!(state.hold, PauseState::Paused(_)) => {
                    let paused_ms = millis(state.start_clock());
                    state.hold = PauseState::Running;
                    state.pause_at_round = true;
                    let step = StepSize::Round;
                    self.publish(EventKind::Stepped { step, boundary, paused_ms });
                }
                // It pauses already: at the next boundary, or at the next round.
                _ if state.hold == PauseState::Pausing || state.pause_at_round => {}
                _ => {
                    state.pause_at_round = true;
                    self.publish(EventKind::Pausing { by: Initiator::You, at_round: true });
                }
            },
            Command::SetFlag { flag, on, by } => {
                if state.flags.contains_key(&flag) {
                    state.pending_flags.retain(|(asked, _, _)| *asked != flag);
                    state.pending_flags.push((flag, on, by));
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
            // These take effect elsewhere, not here.
            Command::SetParallel { .. }
            | Command::Roster(_)
            | Command::SetLimit { .. }
            | Command::Breaker { .. }
            | Command::Inject { .. }
            | Command::RemoveFault { .. } => return,
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn resume(&self, state: &mut RunControlState, by: Initiator) {
        state.program_hold = None;
        if state.hold != PauseState::Running || state.pause_at_round {
            let paused_ms = millis(state.start_clock());
            state.hold = PauseState::Running;
            self.publish(EventKind::Resumed { by, paused_ms });
        }
        if state.pause_at_round && by.is_program() {
            // The pause at the next round was requested before, and still applies.
            self.publish(EventKind::Pausing { by: Initiator::You, at_round: true });
        } else {
            state.pause_at_round = false;
        }
    }
}
