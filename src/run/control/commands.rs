//! What commands do to a run.

use crate::event::id::millis;
use crate::event::kind::{Initiator, StepSize};
use crate::event::{BoundaryId, Command, EventKind};
use crate::run::control::RunControl;
use crate::run::control::state::{PauseState, ProgramHold, RunControlState};

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
