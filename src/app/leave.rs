//! Actions that end something: the kill switch, quitting, Ctrl-C, Ctrl-Z. Each asks first or can
//! be undone.

use super::confirm::Confirm;
use super::effect::{Effect, Update};
use super::message_actions::unsent_count;
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::state::AppState;
use crate::event::kind::Initiator;
use crate::event::world::RunState;
use crate::event::{Command, RunId};

pub(super) fn kill(state: &mut AppState) -> Update {
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

pub(super) fn quit(state: &mut AppState, code: u8) -> Update {
    match (state.own_live_runs().count(), unsent_count(state)) {
        (0, 0) => Update::effect(Effect::Quit { code }),
        (live, unsent) => {
            state.overlays.push(Overlay::Confirm(Confirm::quit(live, unsent, code)));
            Update::redraw()
        }
    }
}

/// Ctrl-C: asks to stop the run (on the first screen, to quit); twice quits.
pub(super) fn interrupt(state: &mut AppState) -> Update {
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
    match (ask, state.own_live_runs().count(), unsent_count(state)) {
        (Some(ask), ..) => state.overlays.push(Overlay::Confirm(ask)),
        (None, 0, 0) => {}
        (None, live, unsent) => {
            state.overlays.push(Overlay::Confirm(Confirm::quit(live, unsent, 130)));
        }
    }
    state.notify(NoticeKind::Info, "Press Ctrl-C again to quit.");
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
