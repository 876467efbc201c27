//! Actions about the runs of the list: showing one of them, the next one, and pausing them all.

use super::effect::{Effect, Update};
use super::history::ListedRun;
use super::kept_actions;
use super::notice::NoticeKind;
use super::run::RunPage;
use super::state::{ActiveScreen, AppState};
use crate::event::kind::Initiator;
use crate::event::world::RunState;
use crate::event::{Command, RunId};

/// Shows the run that is so many places after the present one in the list.
pub(super) fn show_neighbour(state: &mut AppState, by: isize) -> Update {
    let ActiveScreen::Run(id) = &state.screen else { return Update::idle() };
    let listed = state.listed();
    let place = listed.position(id).and_then(|place| place.checked_add_signed(by));
    match place.and_then(|place| listed.get(place)).map(|run| run.id().clone()) {
        Some(run) => show(state, &run),
        None => {
            let end = if by < 0 { "first" } else { "last" };
            state.notify(NoticeKind::Info, format!("This is the {end} run of the list."));
            Update::redraw()
        }
    }
}

/// Shows a run of the list; a kept one is read from the store.
pub(super) fn show(state: &mut AppState, run: &RunId) -> Update {
    let listed = state.listed();
    match listed.position(run).and_then(|place| listed.get(place)) {
        Some(ListedRun::Session(_)) => {
            state.screen = ActiveScreen::Run(run.clone());
            Update::redraw()
        }
        Some(ListedRun::Kept(row)) => {
            let row = row.clone();
            kept_actions::open(state, row)
        }
        None => Update::idle(),
    }
}

/// Whether a run is live and not paused.
fn runs_on(page: &&RunPage) -> bool {
    matches!(page.world().progress.stage, RunState::Running)
}

/// Pauses every live run that is not paused; resumes them all if there is none.
pub(super) fn pause_or_resume_all(state: &mut AppState) -> Update {
    let pauses = state.live_runs().any(|page| runs_on(&page));
    let by = Initiator::You;
    let command = if pauses { Command::Pause { by } } else { Command::Resume { by } };
    let runs = state.live_runs().filter(|page| !pauses || runs_on(page));
    let effects: Vec<Effect> = runs
        .map(|page| Effect::Command { run: page.id().clone(), command: command.clone() })
        .collect();
    let text = match (effects.len(), pauses) {
        (0, _) => "No run is live.".to_owned(),
        (1, true) => "One run pauses at its next boundary.".to_owned(),
        (count, true) => format!("{count} runs pause at their next boundaries."),
        (1, false) => "One run resumes.".to_owned(),
        (count, false) => format!("{count} runs resume."),
    };
    state.notify(NoticeKind::Info, text);
    Update { redraw: true, effects }
}
