//! Manual control of a run: pause, step and breakpoints. Each change is sent as a command, and shown
//! once its event arrives. While the past is shown, commands still act on the present, as the flags
//! do.

use super::data::RunData;
use super::input_outcome::InputOutcome;
use crate::app::effect::Effect;
use crate::event::Command;
use crate::event::kind::Initiator;
use crate::event::world::RunState;

/// Sends a command to a run that has not ended.
pub(super) fn send(run: &RunData, command: Command) -> InputOutcome {
    if !run.world().progress.is_live() {
        return InputOutcome::Handled { redraw: false };
    }
    InputOutcome::Emit(vec![Effect::Command { run: run.id().clone(), command }])
}

/// Runs to the next round; a run that is pausing already stays so.
pub(super) fn step_round(run: &RunData) -> InputOutcome {
    match run.world().progress.stage {
        RunState::Pausing { .. } => InputOutcome::Say("The run is pausing already.".to_owned()),
        _ => send(run, Command::StepRound),
    }
}

/// Pauses the run, or resumes it.
pub(super) fn pause_or_resume(run: &RunData) -> InputOutcome {
    let command = match run.world().progress.stage {
        RunState::Paused { .. } | RunState::Pausing { .. } => {
            Command::Resume { by: Initiator::You }
        }
        RunState::Empty | RunState::Running | RunState::Closed => {
            Command::Pause { by: Initiator::You }
        }
    };
    send(run, command)
}

/// Sets or clears a breakpoint at the boundary that comes next.
pub(super) fn toggle_breakpoint(run: &RunData) -> InputOutcome {
    let pattern = run.world().projection();
    match pattern.map(|pattern| pattern.next_breakpoint(run.world())) {
        Some(Ok(at)) => {
            let set = !run.world().settings.breakpoints.contains(&at);
            send(run, Command::Break { at, set })
        }
        Some(Err(_)) | None => InputOutcome::Ignored,
    }
}
