//! Actions that end something: the kill switch, quitting, Ctrl-C, Ctrl-Z. Each asks first or can
//! be undone.

use super::confirm::Confirm;
use super::effect::Effect;
use super::message::unsent;
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::state::State;
use super::update::Update;
use crate::event::kind::By;
use crate::event::world::Stage;
use crate::event::{Command, RunId};

pub(super) fn kill(state: &mut State) -> Update {
    let live: Vec<RunId> = match state.watched() {
        Some(page) if page.world().is_live() => {
            let title = page.world().head.as_ref().map_or("", |head| &head.title);
            let ask = Confirm::kill(page.id(), title);
            state.overlays.push(Overlay::Confirm(ask));
            return Update::redraw();
        }
        Some(_) => Vec::new(),
        None => state.live_runs().map(|page| page.id().clone()).collect(),
    };
    if live.is_empty() {
        state.say(NoticeKind::Info, "No run is live.");
    } else {
        state.overlays.push(Overlay::Confirm(Confirm::kill_all(live)));
    }
    Update::redraw()
}

pub(super) fn quit(state: &mut State, code: u8) -> Update {
    match (state.live_runs().count(), unsent(state)) {
        (0, 0) => Update::effect(Effect::Quit { code }),
        (live, unsent) => {
            state.overlays.push(Overlay::Confirm(Confirm::quit(live, unsent, code)));
            Update::redraw()
        }
    }
}

/// Ctrl-C: asks to stop the run (on the first screen, to quit); twice quits.
pub(super) fn interrupt(state: &mut State) -> Update {
    if state.interrupted.is_some() {
        return Update::effect(Effect::Quit { code: 130 });
    }
    state.interrupted = Some(state.now);
    let ask = match state.watched() {
        Some(page) if page.world().is_live() => {
            let title = page.world().head.as_ref().map_or("", |head| &head.title);
            Some(Confirm::kill(page.id(), title))
        }
        _ => None,
    };
    match (ask, state.live_runs().count(), unsent(state)) {
        (Some(ask), ..) => state.overlays.push(Overlay::Confirm(ask)),
        (None, 0, 0) => {}
        (None, live, unsent) => {
            state.overlays.push(Overlay::Confirm(Confirm::quit(live, unsent, 130)));
        }
    }
    state.say(NoticeKind::Info, "Press Ctrl-C again to quit.");
    Update::redraw()
}

/// Ctrl-Z: pauses the running runs first, so that their clocks stop.
pub(super) fn suspend(state: &mut State) -> Update {
    let going: Vec<RunId> = state
        .runs
        .iter()
        .filter(|page| {
            matches!(page.world().stage, Stage::Running | Stage::Pausing { .. } | Stage::Empty)
        })
        .map(|page| page.id().clone())
        .collect();
    let pause = |run: &RunId| Effect::Command {
        run: run.clone(),
        command: Command::Pause { by: By::Suspend },
    };
    let mut effects: Vec<_> = going.iter().map(pause).collect();
    effects.push(Effect::Suspend);
    state.suspended = going;
    Update { redraw: true, effects }
}
