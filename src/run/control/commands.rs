//! What commands do to a run.

use crate::event::id::millis;
use crate::event::kind::{Initiator, StepSize};
use crate::event::{BoundaryId, Command, EventKind};
use crate::run::control::RunControl;
use crate::run::control::state::PauseState;

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
            Command::Pause {
                by: by @ (Initiator::Suspend | Initiator::Store | Initiator::Runner),
            } => {
                state.held_by_suspend = state.hold == PauseState::Running;
                let rest_at_round = state.pause_at_round;
                self.hold(&mut state, by);
                state.pause_at_round = rest_at_round;
                if state.hold == PauseState::Pausing {
                    state.suspended_since = Some(state.now());
                }
            }
            Command::Resume { by: Initiator::Suspend | Initiator::Store | Initiator::Runner }
                if !state.held_by_suspend =>
            {
                state.unfreeze();
            }
            Command::Pause { by } => self.hold(&mut state, by),
            Command::Resume { by } => {
                state.held_by_suspend = false;
                if state.hold != PauseState::Running || state.pause_at_round {
                    let paused_ms = millis(state.start_clock());
                    state.hold = PauseState::Running;
                    self.publish(EventKind::Resumed { by, paused_ms });
                }
                let for_itself =
                    matches!(by, Initiator::Suspend | Initiator::Store | Initiator::Runner);
                if state.pause_at_round && for_itself {
                    // The pause at the next round was requested before the suspension, and still
                    // applies.
                    self.publish(EventKind::Pausing { by: Initiator::You, at_round: true });
                } else {
                    state.pause_at_round = false;
                }
            }
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
                _ => {
                    if state.hold == PauseState::Pausing {
                        state.hold = PauseState::Running;
                    }
                    if !state.pause_at_round {
                        state.pause_at_round = true;
                        self.publish(EventKind::Pausing { by: Initiator::You, at_round: true });
                    }
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
}
