//! Actions about the runs of the list: showing one of them or the next one, pausing them all, the kill
//! switch, quitting, Ctrl-C, Ctrl-Z. An action that ends something asks first or can be undone.

use super::effect::{Effect, Update};
use super::home::history::ListedRun;
use super::home::kept;
use super::notice::NoticeKind;
use super::run::RunPage;
use super::state::{ActiveScreen, AppState};
use super::windows::Overlay;
use super::windows::confirm::Confirm;
use super::windows::message::unsent_count;
use crate::log::event::{Command, Initiator, RunId};
use crate::log::world::RunState;
use crate::words::format::count_noun;

/// Shows the run that is `by` places after the present one in the list.
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
pub(crate) fn show(state: &mut AppState, run: &RunId) -> Update {
    let listed = state.listed();
    match listed.position(run).and_then(|place| listed.get(place)) {
        Some(ListedRun::Session(_)) => {
            state.screen = ActiveScreen::Run(run.clone());
            Update::redraw()
        }
        Some(ListedRun::Kept(row)) => {
            let row = row.clone();
            kept::open(state, row)
        }
        None => Update::idle(),
    }
}

/// Whether a run is live and not paused.
fn runs_on(page: &&RunPage) -> bool {
    matches!(page.world().progress.stage, RunState::Running)
}

/// Pauses every live run that is not paused; if all of them are paused, resumes them.
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

pub(crate) fn kill(state: &mut AppState) -> Update {
    let live: Vec<RunId> = match state.visible_run() {
        Some(page) if page.world().progress.is_live() => {
            let title = page.world().head.as_ref().map_or("", |head| &head.title);
            let ask = Confirm::kill(page.id(), title);
            state.overlays.push(Overlay::Confirm(ask));
            return Update::redraw();
        }
        Some(_) => Vec::new(),
        None => state.live_runs().map(|page| page.id().clone()).collect(),
    };
    if live.is_empty() {
        state.notify(NoticeKind::Info, "No run is live.");
    } else {
        state.overlays.push(Overlay::Confirm(Confirm::kill_all(live)));
    }
    Update::redraw()
}

pub(crate) fn quit(state: &mut AppState, code: u8) -> Update {
    match confirm_quit(state, code) {
        None => Update::effect(Effect::Quit { code }),
        Some(confirm) => {
            state.overlays.push(Overlay::Confirm(confirm));
            Update::redraw()
        }
    }
}

/// The question before the program ends; `None`: it would end and lose nothing.
fn confirm_quit(state: &AppState, code: u8) -> Option<Confirm> {
    let (live, unsent) = (state.own_live_runs().count(), unsent_count(state));
    let asked = state.own_live_runs().map(|page| page.world().questions.open().len()).sum();
    let later = state.own_live_runs().any(|page| state.is_left(page));
    (live + unsent > 0).then(|| Confirm::quit(live, asked, unsent, later, code))
}

/// Ctrl-C: asks to stop the run (on the first screen, to quit); twice quits.
pub(crate) fn interrupt(state: &mut AppState) -> Update {
    if state.interrupted_at.is_some() {
        return Update::effect(Effect::Quit { code: 130 });
    }
    state.interrupted_at = Some(state.now);
    let ask = match state.visible_run() {
        Some(page) if page.world().progress.is_live() => {
            let title = page.world().head.as_ref().map_or("", |head| &head.title);
            Some(Confirm::kill(page.id(), title))
        }
        _ => None,
    };
    let ask = ask.or_else(|| confirm_quit(state, 130));
    state.overlays.extend(ask.map(Overlay::Confirm));
    let again = match state.own_live_runs().count() {
        0 => "Ctrl-C again quits.".to_owned(),
        live => format!("Ctrl-C again quits and ends {}.", count_noun(live as u64, "live run")),
    };
    state.notify(NoticeKind::Info, again);
    Update::redraw()
}

/// Ctrl-Z: pauses the running runs first, so that their clocks stop.
pub(super) fn suspend(state: &mut AppState) -> Update {
    let going: Vec<RunId> = state
        .runs
        .iter()
        // Those of the cluster continue on their runners.
        .filter(|page| page.remote.is_none())
        .filter(|page| {
            matches!(
                page.world().progress.stage,
                RunState::Running | RunState::Pausing { .. } | RunState::Empty
            )
        })
        .map(|page| page.id().clone())
        .collect();
    let pause = |run: &RunId| Effect::Command {
        run: run.clone(),
        command: Command::Pause { by: Initiator::Suspend },
    };
    let mut effects: Vec<_> = going.iter().map(pause).collect();
    effects.push(Effect::Suspend);
    state.paused_for_suspend = going;
    Update { redraw: true, effects }
}
