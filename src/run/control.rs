//! The one place where a run can be held: pause, step, breakpoints, flags, cancel, the deadline,
//! and waiting for slow readers of the log. Every branch of a pattern awaits [`RunControl::pass`]
//! at a boundary before it acts; there it waits while the run is paused, and there flags change.
//!
//! The run is `pausing` until every branch waits at a boundary. Only then does its clock stop, and
//! `max_seconds` with it.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::hold::{EnclosingScope, PauseState, ProgramHold, RunControlState};
use crate::base::name::FlagName;
use crate::base::time::millis;
use crate::log::bus::Bus;
use crate::log::event::{
    Boundary, BoundaryId, Command, EventKind, Initiator, SpanId, StepSize, StopReason,
};

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
            && (!state.waiting.is_empty() || state.asking > 0)
        {
            let since = state.stopped_since().unwrap_or_else(|| self.bus.clock().now());
            (state.suspended_since, state.all_wait_since) = (None, None);
            state.hold = PauseState::Paused(since);
            self.publish(EventKind::Paused { at: state.waiting.values().cloned().collect() });
        }
    }

    /// Starts one more branch next to the caller's. It is active until the returned guard is
    /// dropped.
    pub fn branch(self: &Arc<Self>) -> Branch {
        self.lock().add_active(1);
        Branch(Arc::clone(self))
    }

    /// Splits the caller's branch into this many branches, at least one. Each calls
    /// [done](Fork::done) at its end; the last one continues as the caller's branch.
    pub fn fork(&self, branches: u32) -> Fork<'_> {
        self.lock().add_active(branches.saturating_sub(1));
        Fork { control: self, left: AtomicU32::new(branches.max(1)) }
    }

    /// The caller only waits for other branches until the returned guard is dropped, so a pause
    /// does not wait for the caller.
    pub fn mark_waiting(&self) -> WaitingBranch<'_> {
        let mut state = self.lock();
        self.deactivate(&mut state, 1);
        WaitingBranch(self)
    }

    /// The caller waits for a person until the returned guard is dropped: a pause does not wait for it,
    /// the timeouts around `span` do not count the time, and if all branches wait, the run's clock is
    /// stopped.
    pub fn wait_for_person(&self, span: SpanId) -> PersonWait<'_> {
        let mut state = self.lock();
        state.asking += 1;
        state.enter_scopes(span, true);
        self.deactivate(&mut state, 1);
        drop(state);
        self.changed.notify_waiters();
        PersonWait { control: self, span }
    }

    /// A person is asked in the middle of a call of a tool until the returned guard is dropped: the run
    /// cannot be handed to another process meanwhile.
    pub(super) fn keep_calls(&self) -> KeptCall<'_> {
        self.lock().kept_calls += 1;
        KeptCall(self)
    }

    /// Waits until every branch waits for people, and no call of a tool is open meanwhile.
    pub(crate) async fn until_everybody_waits(&self) {
        self.wait_for(|_| None, |state| state.can_be_released().then_some(())).await;
    }

    /// Whether every branch waits for people now, and no call of a tool is open meanwhile.
    pub(crate) fn everybody_waits(&self) -> bool {
        self.lock().can_be_released()
    }

    /// How long the clock has been stopped because all branches wait for people, in milliseconds.
    pub(super) fn stood_for_people(&self) -> u64 {
        let state = self.lock();
        state.all_wait_since.map_or(0, |since| millis(state.clock.since(since)))
    }

    /// Marks a span as one whose timeout does not count waits for people inside it. `parent`: the
    /// span around it.
    pub fn enclose(self: &Arc<Self>, span: SpanId, parent: SpanId) -> Enclosing {
        let scope = EnclosingScope { parent, waiting: 0, since: None, stood: Duration::ZERO };
        self.lock().scopes.insert(span, scope);
        Enclosing { control: Arc::clone(self), span }
    }

    /// Time in which nobody inside this span waited for a person, since the run began.
    pub fn active_in(&self, span: SpanId) -> Duration {
        self.lock().active_in(span)
    }

    /// Completes when somebody inside this span waits for a person.
    pub async fn wait_until_asked(&self, span: SpanId) {
        let asked = |state: &RunControlState| {
            state.scopes.get(&span).and_then(|scope| (scope.waiting > 0).then_some(()))
        };
        self.wait_for(|_| None, asked).await;
    }

    /// Some branches of the run are not active any more.
    fn deactivate(&self, state: &mut RunControlState, branches: u32) {
        state.remove_active(branches);
        self.pause_if_all_wait(state);
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
        let left = |state: &RunControlState| Some(self.max.saturating_sub(state.active()));
        self.wait_for(left, |state| self.stop_reason(state)).await
    }

    /// Sleeps for this much active (unpaused) run time, without the time in which somebody inside
    /// this span waits for a person.
    pub async fn sleep_active_in(&self, span: SpanId, for_so_long: Duration) {
        let until = self.active_in(span).saturating_add(for_so_long);
        let left = |state: &RunControlState| {
            let waits = state.scopes.get(&span).is_some_and(|scope| scope.waiting > 0);
            (!waits).then(|| until.saturating_sub(state.active_in(span)))
        };
        self.wait_for(left, |state| (state.active_in(span) >= until).then_some(())).await;
    }

    /// Waits until `found` returns a value. Checks after each change, and after the active time that is
    /// `left`; `None`: only a change can lead to it.
    async fn wait_for<T>(
        &self,
        left: impl Fn(&RunControlState) -> Option<Duration>,
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
                let left = left(&state).filter(|_| state.stopped_since().is_none());
                left.and_then(|left| state.now().checked_add(left))
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
        self.0.lock().add_active(1);
    }
}

/// A branch that waits for a person. It is active again when this is dropped.
pub struct PersonWait<'a> {
    control: &'a RunControl,
    span: SpanId,
}

impl Drop for PersonWait<'_> {
    fn drop(&mut self) {
        let mut state = self.control.lock();
        state.asking -= 1;
        state.enter_scopes(self.span, false);
        state.add_active(1);
        drop(state);
        self.control.changed.notify_waiters();
    }
}

/// A call of a tool in which a person is asked.
pub(super) struct KeptCall<'a>(&'a RunControl);

impl Drop for KeptCall<'_> {
    fn drop(&mut self) {
        self.0.lock().kept_calls -= 1;
        self.0.changed.notify_waiters();
    }
}

/// A span whose timeout does not count waits for people, until this is dropped.
pub struct Enclosing {
    control: Arc<RunControl>,
    span: SpanId,
}

impl Drop for Enclosing {
    fn drop(&mut self) {
        self.control.lock().scopes.remove(&self.span);
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
            self.control.deactivate(&mut state, 1);
        }
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        let left = self.left.load(Ordering::Acquire);
        self.control.lock().remove_active(left.saturating_sub(1));
    }
}

/// An active branch next to the one that started it.
pub struct Branch(Arc<RunControl>);

impl Drop for Branch {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        self.0.deactivate(&mut state, 1);
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
            state.remove_active(1);
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

    /// Pauses the run at the next boundary if one of these is a breakpoint.
    pub fn pause_if_breakpoint(&self, at: &[BoundaryId]) {
        let mut state = self.lock();
        let mut is_one = false;
        for id in at.iter().filter(|id| state.breaks.contains(*id)).cloned().collect::<Vec<_>>() {
            state.unreached_pauses.remove(&id);
            is_one = true;
        }
        if is_one {
            state.program_hold = None;
            self.hold(&mut state, Initiator::Breakpoint);
        }
    }

    /// Takes a command. It becomes events when it takes effect, and none if it changes nothing.
    pub fn command(&self, command: Command) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        match command {
            Command::Pause { by } if by.is_reason() => {
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
                if state.hold == PauseState::Pausing && by.is_program() {
                    let now = state.now();
                    state.suspended_since.get_or_insert(now);
                }
            }
            Command::Resume { by } if by.is_reason() => match &mut state.program_hold {
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
                    state.follow_waits();
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
                    state.follow_waits();
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
            | Command::RemoveFault { .. }
            | Command::Answer(_)
            | Command::WithdrawApproval { .. }
            | Command::Message { .. } => return,
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Lets the branch at this boundary pass, as a step does: a person has answered for it.
    pub(crate) fn step_past(&self, at: &BoundaryId) {
        let mut state = self.lock();
        let waiting = state.waiting.iter().find(|(_, id)| *id == at).map(|(arrival, _)| *arrival);
        let Some(arrival) = waiting else { return };
        if matches!(state.hold, PauseState::Paused(_)) {
            let paused_ms = millis(state.start_clock());
            state.hold = PauseState::Pausing;
            state.follow_waits();
            let (step, boundary) = (StepSize::Boundary, at.clone());
            self.publish(EventKind::Stepped { step, boundary, paused_ms });
        }
        state.reactivate(arrival);
        drop(state);
        self.changed.notify_waiters();
    }

    fn resume(&self, state: &mut RunControlState, by: Initiator) {
        state.program_hold = None;
        if state.hold != PauseState::Running || state.pause_at_round {
            let paused_ms = millis(state.start_clock());
            state.hold = PauseState::Running;
            state.follow_waits();
            self.publish(EventKind::Resumed { by, paused_ms });
        }
        if state.pause_at_round && by.is_reason() {
            // The pause at the next round was requested before, and still applies.
            self.publish(EventKind::Pausing { by: Initiator::You, at_round: true });
        } else {
            state.pause_at_round = false;
        }
    }
}
