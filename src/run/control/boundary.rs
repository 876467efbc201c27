//! Boundaries: where a branch waits while the run is paused, and where changes of flags take effect.

use super::state::{PauseState, RunControlState};
use super::{RunControl, RunStopped};
use crate::event::kind::Initiator;
use crate::event::{Boundary, BoundaryId, EventKind};

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

/// A branch that waits at a boundary. It is active again when this is dropped, however the wait
/// ended.
struct BranchAtBoundary<'a> {
    control: &'a RunControl,
    arrival: u64,
}

impl Drop for BranchAtBoundary<'_> {
    fn drop(&mut self) {
        self.control.lock().reactivate(self.arrival);
    }
}
