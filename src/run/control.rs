//! The one place where a run can be held: pause, step, breakpoints, flags, cancel, the deadline,
//! and waiting for slow readers of the log. Every branch of a pattern awaits [`RunControl::pass`] before
//! it acts.
//!
//! The run is `pausing` until every branch waits at a boundary. Only then does its clock stop, and
//! `max_seconds` with it.

mod boundary;
mod commands;
mod state;

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use self::state::{PauseState, RunControlState};
use crate::base::name::FlagName;
use crate::bus::Bus;
use crate::event::kind::Initiator;
use crate::event::{Boundary, BoundaryId, Command, EventKind, SpanId, StopReason};

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

    /// Forgets what a recorded run switched at boundaries that it has not come to, as a fork of it does
    /// where it begins. What the command line scheduled stays.
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

    /// The run ends for this reason, whatever else would stop it from now on; a cancel still does.
    /// The pattern only finishes what it has begun.
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
